"""Transcripts in the styles that meeting tools, video sites and caption editors export."""

import json
import time
from pathlib import Path

import pytest

from devices.streams import InputError, TextPiece
from devices.transcripts import is_timeline, read_transcript, read_turns

Line = tuple[float, float, str | None, str]


def lines_of(folder: Path, name: str, content: str | bytes) -> tuple[list[Line], list[str]]:
    """(start s, end s, speaker, text) of each line, and what was noted."""
    pieces, notes = pieces_of(folder, name, content)
    return [
        (p.offset_ns / 1e9, (p.offset_ns + p.duration_ns) / 1e9, p.speaker, p.text) for p in pieces
    ], notes


def pieces_of(folder: Path, name: str, content: str | bytes) -> tuple[list[TextPiece], list[str]]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    notes: list[str] = []
    return list(read_transcript(path, notes.append).pieces(notes.append)), notes


def spoken(lines: list[Line]) -> list[tuple[str | None, str]]:
    return [(speaker, text) for _, _, speaker, text in lines]


def test_voice_tags_as_teams_writes_them(tmp_path: Path) -> None:
    text = """WEBVTT

3f1c2a/17-0
00:00:02.140 --> 00:00:05.600
<v Nadia Okafor>The pump arrives on Tuesday,
so we can test it.</v>

3f1c2a/17-1
00:00:05.600 --> 00:00:07.000
<v Nadia Okafor>Is that &quot;early&quot; enough?</v>

3f1c2a/18-0
00:00:07.250 --> 00:00:09.000
<v.loud Jürgen Weiß>Yes.</v>
"""
    lines, notes = lines_of(tmp_path, "teams.vtt", text)
    assert lines == [
        (2.14, 5.6, "Nadia Okafor", "The pump arrives on Tuesday, so we can test it."),
        (5.6, 7.0, "Nadia Okafor", 'Is that "early" enough?'),
        (7.25, 9.0, "Jürgen Weiß", "Yes."),
    ]
    assert notes == []


def test_names_before_the_text_as_zoom_writes_them(tmp_path: Path) -> None:
    text = """WEBVTT\r
\r
1\r
00:00:01.000 --> 00:00:03.500\r
Priya Nair: Good morning, everyone.\r
\r
2\r
00:00:03.600 --> 00:00:06.000\r
Tom O'Neill: So: we do this in two steps.\r
\r
3\r
00:00:06.000 --> 00:00:08.000\r
Priya Nair: Note: the second one is harder.\r
\r
4\r
00:00:08.000 --> 00:00:09.000\r
And that is why.\r
"""
    lines, _ = lines_of(tmp_path, "zoom.vtt", text)
    assert spoken(lines) == [
        ("Priya Nair", "Good morning, everyone."),
        ("Tom O'Neill", "So: we do this in two steps."),
        ("Priya Nair", "Note: the second one is harder."),
        (None, "And that is why."),
    ]


def test_account_names_that_come_back_are_speakers(tmp_path: Path) -> None:
    said = [
        "jsmith: one",
        "anna k: two",
        "so: three",
        "jsmith: four",
        "anna k: five",
        "jsmith: six",
        "anna k: seven",
    ]
    cues = [f"{n}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{text}.\n" for n, text in enumerate(said, 1)]
    lines, _ = lines_of(tmp_path, "accounts.srt", "\n".join(cues))
    assert [speaker for speaker, _ in spoken(lines)] == [
        "jsmith", "anna k", None, "jsmith", "anna k", "jsmith", "anna k",
    ]  # fmt: skip


def test_speakers_in_cue_ids_as_webex_writes_them(tmp_path: Path) -> None:
    text = """WEBVTT

1 "Nadia Okafor" (3221226240)
00:00:02.000 --> 00:00:04.000
The pump arrives
on Tuesday.

2 "" (0)
00:00:04.000 --> 00:00:05.000
Who is this?

3 "Jürgen Weiß" (42)
00:00:05.000 --> 00:00:06.000
Me.
"""
    lines, _ = lines_of(tmp_path, "webex.vtt", text)
    assert spoken(lines) == [
        ("Nadia Okafor", "The pump arrives on Tuesday."), (None, "Who is this?"), ("Jürgen Weiß", "Me."),
    ]  # fmt: skip


def test_a_sentence_with_a_colon_is_no_speaker(tmp_path: Path) -> None:
    text = """1
00:00:01,000 --> 00:00:03,000
So: we do this.

2
00:00:03,000 --> 00:00:05,000
The result: nobody came.

3
00:00:05,000 --> 00:00:07,000
We meet at 10:30 in Berlin: bring a coat.

4
00:00:07,000 --> 00:00:09,000
Remember: http://example.org is down.

5
00:00:09,000 --> 00:00:11,000
Two things: time and money.
"""
    lines, _ = lines_of(tmp_path, "plain.srt", text)
    assert [speaker for speaker, _ in spoken(lines)] == [None] * 5
    assert lines[0][3] == "So: we do this."


def test_one_file_may_name_a_speaker_only_when_it_changes(tmp_path: Path) -> None:
    text = """1
00:00:01,000 --> 00:00:03,000
ANNA: The first thing is

2
00:00:03,000 --> 00:00:05,000
that the boiler leaks.

3
00:00:05,000 --> 00:00:07,000
Somebody should look at it.

4
00:00:07,000 --> 00:00:09,000
BEN: I will call the plumber.

5
00:00:12,000 --> 00:00:13,000
ANNA: Thanks.

6
00:00:14,000 --> 00:00:15,000
BEN: Sure.
"""
    lines, _ = lines_of(tmp_path, "change.srt", text)
    # The second cue goes on with Anna's sentence. Who says the third one is not in the file.
    assert spoken(lines) == [
        ("ANNA", "The first thing is that the boiler leaks."),
        (None, "Somebody should look at it."),
        ("BEN", "I will call the plumber."),
        ("ANNA", "Thanks."),
        ("BEN", "Sure."),
    ]


PODCAST = """1
00:00:01,000 --> 00:00:04,000
Anna: Hello and welcome. What did

2
00:00:04,000 --> 00:00:07,000
Doctor Kim of the North Hospital
say about the new

3
00:00:06,500 --> 00:00:09,000
ward? He is away. I will

4
00:00:09,200 --> 00:00:10,000
ask him.

5
00:00:15,000 --> 00:00:17,000
Another matter now.

6
00:00:17,000 --> 00:00:19,000
Ben: Yes, the lift. It stands

7
00:00:21,000 --> 00:00:23,000
still, says J. Wu.

8
00:00:23,000 --> 00:00:25,000
Anna: Oh, dear.

9
00:00:25,000 --> 00:00:26,000
42

10
00:00:26,000 --> 00:00:27,000
Steps.

11
00:00:27,000 --> 00:00:29,000
Ben: Yes.
"""


def test_sentences_that_cues_cut_are_whole_again(tmp_path: Path) -> None:
    lines, _ = lines_of(tmp_path, "podcast.srt", PODCAST)
    # Names stand where the speaker changes, and only there: the lines after a pause are still theirs.
    assert spoken(lines) == [
        ("Anna", "Hello and welcome."),
        ("Anna", "What did Doctor Kim of the North Hospital say about the new ward? He is away."),
        ("Anna", "I will ask him."),
        ("Anna", "Another matter now."),
        ("Ben", "Yes, the lift. It stands"),  # two seconds of silence: nobody knows whether it goes on
        ("Ben", "still, says J. Wu."),
        ("Anna", "Oh, dear."),
        ("Anna", "42"),
        ("Anna", "Steps."),
        ("Ben", "Yes."),
    ]
    starts, ends = [start for start, *_ in lines], [end for _, end, *_ in lines]
    assert starts == sorted(starts)
    assert 1.0 < starts[1] < 4.0 and ends[0] == starts[1]
    assert starts[2] > 6.5 and ends[2] == 10.0


def test_a_joined_sentence_keeps_the_times_of_its_words(tmp_path: Path) -> None:
    text = """WEBVTT

00:01.000 --> 00:03.000
<v Anna>Good.<00:01.500> We<00:02.000> close<00:02.500> it

00:03.000 --> 00:05.000
<v Anna>on<00:04.000> Monday.
"""
    pieces, _ = pieces_of(tmp_path, "words.vtt", text)
    assert [piece.text for piece in pieces] == ["Good.", "We close it on Monday."]
    assert [(word.text, word.start_ns / 1e9) for word in pieces[1].words] == [
        ("We", 1.5), ("close", 2.0), ("it", 2.5), ("on", 3.0), ("Monday.", 4.0),
    ]  # fmt: skip


@pytest.mark.parametrize("arrow", ["-->", "->", "–>", "—>", "→", " --> ", "–-> "])
def test_times_with_the_arrows_of_word_processors(tmp_path: Path, arrow: str) -> None:
    lines, _ = lines_of(tmp_path, "arrow.srt", f"1\n0: 0: 8,5{arrow}0: 1 : 02.0\nWe start.\n")
    assert lines == [(8.5, 62.0, None, "We start.")]


def test_captions_without_full_stops_stay_as_they_are(tmp_path: Path) -> None:
    cues = [f"00:0{n}.000 --> 00:0{n + 1}.000\nand number {n} of these long ones\n" for n in range(8)]
    lines, _ = lines_of(tmp_path, "bare.vtt", "WEBVTT\n\n" + "\n".join(cues))
    assert len(lines) == 8


@pytest.mark.parametrize(
    ("written", "speaker", "text"),
    [
        ("[Maria Lopez] We start late.", "Maria Lopez", "We start late."),
        ("[Maria Lopez]: We start late.", "Maria Lopez", "We start late."),
        ("MARIA LOPEZ >> We start late.", "MARIA LOPEZ", "We start late."),
        ("&gt;&gt; Maria Lopez: We start late.", "Maria Lopez", "We start late."),
        (">> MARIA: We start late.", "MARIA", "We start late."),
        (">> We start late.", None, "We start late."),
        ("- Maria: We start late.", "Maria", "We start late."),
        ("<b>Maria</b>: We start late.", "Maria", "We start late."),
        ("Dr. Maria Lopez: We start late.", "Dr. Maria Lopez", "We start late."),
        ("Maria Lopez (Guest): We start late.", "Maria Lopez (Guest)", "We start late."),
        ("SPEAKER_01: We start late.", "SPEAKER_01", "We start late."),
        ("Speaker 2: We start late.", "Speaker 2", "We start late."),
        ("李雷: 我们开始吧。", "李雷", "我们开始吧。"),
        ("李雷：我们开始吧。", "李雷", "我们开始吧。"),
        ("Maria Lopez (she/her): We start late.", "Maria Lopez (she/her)", "We start late."),
        ("Maria Lopez | Acme: We start late.", "Maria Lopez | Acme", "We start late."),
        ("Jean-Luc d'Arc: We start late.", "Jean-Luc d'Arc", "We start late."),
        ("<v Maria\u00a0Lopez>We start late.", "Maria Lopez", "We start late."),
        ("<i>We start late.</i>", None, "We start late."),
        ("{\\an8}We&nbsp;start <font color='red'>late</font>.", None, "We start late."),
        ("We start at 5 < 6 &amp; end > 7.", None, "We start at 5 < 6 & end > 7."),
    ],
)  # fmt: skip
def test_marks_of_speakers_and_tags(tmp_path: Path, written: str, speaker: str | None, text: str) -> None:
    lines, _ = lines_of(tmp_path, "one.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{written}\n")
    assert spoken(lines) == [(speaker, text)]


def test_two_speakers_in_one_cue_share_its_time(tmp_path: Path) -> None:
    text = """WEBVTT

00:10.000 --> 00:14.000
<v Ann>Shall we?</v> <v Bo>We shall.</v>

00:20.000 --> 00:24.000
<v Ann>Now?</v>
<v Bo>Now.</v>
"""
    lines, _ = lines_of(tmp_path, "two.vtt", text)
    assert spoken(lines) == [("Ann", "Shall we?"), ("Bo", "We shall."), ("Ann", "Now?"), ("Bo", "Now.")]
    assert lines[0][0] == 10.0 and lines[0][1] == lines[1][0] and lines[1][1] == 14.0


ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.000 align:start position:0%
 
good<00:00:00.480><c> morning</c><00:00:00.900><c> all</c>

00:00:02.000 --> 00:00:02.010 align:start position:0%
good morning all
 

00:00:02.010 --> 00:00:04.000 align:start position:0%
good morning all
we<00:00:02.300><c> have</c><00:00:02.800><c> three</c><00:00:03.100><c> points</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
we have three points
 

00:00:04.010 --> 00:00:06.500 align:start position:0%
we have three points
on<00:00:04.500><c> the</c><00:00:05.000><c> list</c>
"""  # noqa: W293 -- the lines with one space are what such files look like


def test_rolling_captions_are_said_once_and_keep_their_word_times(tmp_path: Path) -> None:
    pieces, _ = pieces_of(tmp_path, "site.en.vtt", ROLLING)
    assert [piece.text for piece in pieces] == ["good morning all", "we have three points", "on the list"]
    assert [(word.text, word.start_ns / 1e9) for word in pieces[1].words] == [
        ("we", 2.01), ("have", 2.3), ("three", 2.8), ("points", 3.1),
    ]  # fmt: skip
    assert pieces[0].words[-1].end_ns == 2_000_000_000


def test_rolling_captions_in_srt(tmp_path: Path) -> None:
    rows = ["the budget is", "nearly spent", "and it is", "only June", "so we stop", "buying chairs"]
    cues = [
        f"{n + 1}\n00:00:{2 * n:02},000 --> 00:00:{2 * n + 4:02},000\n"
        + "\n".join(rows[max(0, n - 1) : n + 1])
        for n in range(len(rows))
    ]
    lines, _ = lines_of(tmp_path, "rolling.srt", "\n\n".join(cues))
    assert [text for _, text in spoken(lines)] == rows
    # A line stays on the screen for the next one, but was said before it.
    assert lines[1][:2] == (2.0, 4.0)


def test_live_captions_that_grow_are_said_once(tmp_path: Path) -> None:
    text = """WEBVTT

00:00.000 --> 00:01.000
I think

00:01.000 --> 00:02.000
I think we should

00:02.000 --> 00:03.000
I think we should wait.

00:03.000 --> 00:04.000
Until when?
"""
    lines, _ = lines_of(tmp_path, "live.vtt", text)
    assert lines == [(0.0, 3.0, None, "I think we should wait."), (3.0, 4.0, None, "Until when?")]


def test_the_same_word_said_twice_stays_twice(tmp_path: Path) -> None:
    cues = [(1, "Yes."), (2, "Yes."), (4, "Good.")]
    text = "WEBVTT\n" + "".join(f"\n00:0{n}.000 --> 00:0{n + 1}.000\n{said}\n" for n, said in cues)
    assert len(lines_of(tmp_path, "yes.vtt", text)[0]) == 3


def test_notes_styles_and_regions_are_no_speech(tmp_path: Path) -> None:
    text = """\ufeffWEBVTT - minutes of the board
X-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000

STYLE
::cue(.loud) { color: red; }

REGION
id:left
width:40%

NOTE this file was checked
by two people

intro
00:01.000 --> 00:02.000 line:10% align:center
We begin.

NOTE
Not said.

00:03.000 --> 00:04.000
[Music]

00:05.000 --> 00:06.000
♪ a song ♪

00:07.000 --> 00:08.000
(laughter) [inaudible]

00:09.000 --> 00:10.000
We end (at last).
"""
    lines, _ = lines_of(tmp_path, "blocks.vtt", text)
    assert [text for _, text in spoken(lines)] == ["We begin.", "We end (at last)."]


@pytest.mark.parametrize(
    ("times", "start_s", "end_s"),
    [
        ("00:00:01,500 --> 00:00:02,250", 1.5, 2.25),
        ("00:01.500 --> 00:02.250", 1.5, 2.25),
        ("0:00:01.5 --> 0:00:02.25", 1.5, 2.25),
        ("00:00:01 --> 00:00:02", 1.0, 2.0),
        ("00:00:01:500 --> 00:00:02:250", 1.5, 2.25),
        ("100:00:01.500 --> 100:00:02.000", 360_001.5, 360_002.0),
        ("00:00:01.500000 --> 00:00:02.250000", 1.5, 2.25),
        ("00:00:01,500-->00:00:02,250", 1.5, 2.25),
        ("  00:00:01,500 -> 00:00:02,250  X1:10 Y1:20", 1.5, 2.25),
    ],
)
def test_time_formats(tmp_path: Path, times: str, start_s: float, end_s: float) -> None:
    assert lines_of(tmp_path, "t.srt", f"1\n{times}\nHello.\n")[0] == [(start_s, end_s, None, "Hello.")]


def test_cues_unsorted_overlapping_empty_repeated_and_backwards(tmp_path: Path) -> None:
    text = """3
00:00:09,000 --> 00:00:12,000
Last.

1
00:00:01,000 --> 00:00:05,000
First.

1
00:00:01,000 --> 00:00:05,000
First.

2
00:00:04,000 --> 00:00:06,000
Second.

4
00:00:07,000 --> 00:00:08,000

5
00:00:08,000 --> 00:00:07,000
Backwards in time.
"""
    lines, notes = lines_of(tmp_path, "mess.srt", text)
    assert [(start, text) for start, _, _, text in lines] == [
        (1.0, "First."), (4.0, "Second."), (8.0, "Backwards in time."), (9.0, "Last."),
    ]  # fmt: skip
    assert lines[2][1] > 8.0
    assert notes == ["1 cue ended before the start; the end is estimated"]


def test_times_that_no_clock_shows_are_mended_and_said(tmp_path: Path) -> None:
    text = """WEBVTT

00:00:01.000 --> 00:00:03.000
First.

99:99:99.999 --> 99:99:99.999
Second.

00:00:07.000 --> 00:00:75.000
Third.

75:10.000 --> 75:12.000
Fourth.
"""
    lines, notes = lines_of(tmp_path, "mess.vtt", text)
    assert [(start, text) for start, _, _, text in lines] == [
        (1.0, "First."), (3.0, "Second."), (7.0, "Third."), (4510.0, "Fourth."),
    ]  # fmt: skip
    assert all(end < start + 3 for start, end, _, _ in lines)
    assert notes == [
        "1 cue ended before the start; the end is estimated",
        "1 cue starts at a time that no clock shows; placed after the cue before",
    ]


def test_numbers_said_are_kept_and_cue_numbers_are_not(tmp_path: Path) -> None:
    said = ["How many?", "42", "Right."]
    cues = [f"{n}\n00:0{n}.000 --> 00:0{n + 1}.000\n{text}\n" for n, text in enumerate(said, 1)]
    assert [text for _, text in spoken(lines_of(tmp_path, "n.srt", "\n".join(cues))[0])] == said
    dense = "".join(cues).replace("42", "Ten.")
    assert [text for _, text in spoken(lines_of(tmp_path, "d.srt", dense)[0])] == [
        "How many?",
        "Ten.",
        "Right.",
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"]
)
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nJosé: Ça coûte 5 £ à Zürich.\n"
    assert spoken(lines_of(tmp_path, "e.srt", text.encode(encoding))[0]) == [
        ("José", "Ça coûte 5 £ à Zürich.")
    ]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("koi8-r", "Доброе утро, давайте начнём совещание. Я пришлю отчёт в пятницу."),
        ("cp1251", "Доброе утро, давайте начнём совещание. Я пришлю отчёт в пятницу."),
        ("shift_jis", "おはようございます。会議を始めましょう。金曜日までに送ります。"),
        ("cp1253", "Καλημέρα, ας αρχίσουμε τη συνάντηση. Θα το στείλω την Παρασκευή."),
    ],
)
def test_other_scripts_are_read_by_a_guess_that_is_told(tmp_path: Path, encoding: str, words: str) -> None:
    text = f"1\n00:00:01,000 --> 00:00:02,000\n{words}\n"
    lines, notes = lines_of(tmp_path, "e.srt", text.encode(encoding))
    assert " ".join(t for _, t in spoken(lines)) == words
    assert len(notes) == 1
    assert "guess" in notes[0]


def test_times_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    text = "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nOne.\n\n99999:00:01.000 --> 99999:00:02.000\nTwo.\n"
    lines, notes = lines_of(tmp_path, "e.vtt", text.encode())
    assert "One." in " ".join(t for _, t in spoken(lines))
    assert notes == ["1 line with times that cannot be read passed over"]


def test_line_ends_of_all_systems(tmp_path: Path) -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\nOne\ntwo.\n\n2\n00:00:03,000 --> 00:00:04,000\nThree.\n"
    for end in ("\n", "\r\n", "\r"):
        lines, _ = lines_of(tmp_path, "e.srt", text.replace("\n", end))
        assert [t for _, t in spoken(lines)] == ["One two.", "Three."]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.vtt", b"", "empty file"),
        ("a.srt", b"\xef\xbb\xbf \r\n", "empty file"),
        ("a.vtt", b"WEBVTT\n\n", "empty transcript: it has no cues"),
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\n\n", "empty transcript: none of its cues has text"),
        (
            "a.srt",
            b"1\n00:00:01,000 --> 00:00:02,000\n[Music]\n",
            "empty transcript: nobody says anything in it",
        ),
        ("a.srt", b"just a letter\n", "no transcript: no line has times"),
        ("a.srt", bytes(range(256)) * 50 + b"\0" * 4000, "no text: it holds binary data"),
        ("a.jsonl", b"", "empty file"),
        ("a.jsonl", b"{\n", "no transcript: line 1 (no JSON)"),
        ("a.jsonl", b'{"start_s": 1}\n', "no transcript: line 1 (no text)"),
        ("a.jsonl", b'{"start_s": "x", "text": "a"}\n', "no transcript: line 1 (start_s is no number)"),
        ("a.jsonl", b'{"start_s": NaN, "text": "a"}\n', "no transcript: line 1 (start_s is out of range)"),
    ],
)
def test_what_is_no_transcript_says_so(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    with pytest.raises(InputError) as failure:
        pieces_of(tmp_path, name, content)
    assert str(failure.value) == f"{tmp_path / name}: {what}"


def test_json_lines(tmp_path: Path) -> None:
    rows = [
        {"start_s": 2.5, "end_s": 4, "speaker": "Ann", "text": "We agreed.",
         "words": [[2.5, 3.0, "We"], [3.0, 4.0, "agreed."]]},
        {"start_s": 0.1, "end_s": 0.3, "speaker": None, "text": " Hi \n there "},
        {"start_s": 5, "speaker": 3, "text": "No end."},
        {"start_s": 6, "end_s": 7, "text": ""},
    ]  # fmt: skip
    content = "\n".join(json.dumps(row) for row in rows) + "\n\nnot json\n"
    pieces, notes = pieces_of(tmp_path, "t.jsonl", content)
    assert [(p.offset_ns, p.duration_ns, p.speaker, p.text) for p in pieces] == [
        (100_000_000, 200_000_000, None, "Hi there"),
        (2_500_000_000, 1_500_000_000, "Ann", "We agreed."),
        (5_000_000_000, 0, "3", "No end."),
    ]
    assert [word.text for word in pieces[1].words] == ["We", "agreed."]
    assert notes == ["left out line 6 (no JSON)"]


def test_the_log_of_a_meeting_is_told_from_a_transcript(tmp_path: Path) -> None:
    log, lines = tmp_path / "timeline.jsonl", tmp_path / "t.jsonl"
    log.write_text('\n{"type": "control", "meeting_id": "m"}\n')
    lines.write_text('{"type": "x", "start_s": 0, "text": "a"}\n')
    assert is_timeline(log) and not is_timeline(lines)


def test_speaker_turns(tmp_path: Path) -> None:
    path = tmp_path / "a.rttm"
    path.write_text(
        ";; made by hand\nSPEAKER a 1 2.50 1.25 <NA> <NA> bea <NA> <NA>\nSPKR-INFO a 1 <NA>\n"
        "SPEAKER a 1 0.00 1.00 <NA> <NA> abe <NA>\nSPEAKER a 1 x 1.00 <NA> <NA> abe <NA>\n"
    )
    notes: list[str] = []
    turns = read_turns(path, notes.append)
    assert [(t.start_ns, t.end_ns, t.speaker) for t in turns] == [
        (0, 10**9, "abe"), (2_500_000_000, 3_750_000_000, "bea"),
    ]  # fmt: skip
    assert notes == ["1 SPEAKER line without times or a name left out"]
    path.write_text("nothing\n")
    with pytest.raises(InputError, match="no speaker turns"):
        read_turns(path, notes.append)


def test_ten_hours_are_read_quickly(tmp_path: Path) -> None:
    count = 36_000  # one cue a second
    rows = []
    for n in range(count):
        clock = f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
        rows.append(
            f"{n + 1}\n{clock},000 --> {clock},900\nPerson {n % 7}: this is what I say in second {n}.\n"
        )
    begin = time.perf_counter()
    lines, _ = lines_of(tmp_path, "long.srt", "\n".join(rows))
    assert len(lines) == count and lines[-1][2] == f"Person {(count - 1) % 7}"
    assert time.perf_counter() - begin < 30  # takes one or two seconds; what is quadratic takes minutes
