"""Who says what in captions: rolling repetitions taken out, the marks of speakers read and taken off.

Marks: voice tags (Teams, WebVTT), ``Name: text`` (Zoom, Webex), ``[Name]``, ``NAME >>`` and ``>>``
(broadcast captions). Rolling captions (video sites, live captions) repeat the line before.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .cues import Cue, plain, timed_words, without_tags
from .streams import TextPiece

_VOICE: Final = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>", re.IGNORECASE)
_CHEVRON_NAME: Final = re.compile(r"^\s*([^<>:]{1,40}?)\s*>>+\s*:?\s*")
_CHEVRON: Final = re.compile(r"^\s*(?:>>+|»)\s*")
_BRACKET: Final = re.compile(r"^\s*\[([^\[\]]{1,60})\]\s*:?\s*(?=\S)")
_PLAIN: Final = r"[^:：;,.!?<>\[\]\"“”]"
_PREFIX: Final = re.compile(
    rf"^\s*(?:[-–—]\s*)?({_PLAIN}{{1,50}}(?:\.{_PLAIN}{{0,46}}){{0,2}}?)\s*(?::\s+|：\s*)(?=\S)"
)
_DASH: Final = re.compile(r"^\s*[-–—]\s*(?=\S)")
_LABEL: Final = re.compile(
    r"(?:speaker|spk|participant|guest|caller|voice|person)[\s_#-]*(?:\d{1,3}|[a-z])", re.IGNORECASE
)
_NAME_WORD: Final = re.compile(r"[^\W\d_][\w.'’-]*|\([^()]{1,30}\)|\d{1,3}|@[\w.-]+|[-–/|&]")
_SOUND_NOTES: Final = re.compile(
    r"music|applause|laughter|laughs?|laughing|silence|inaudible|crosstalk|cross-talk|noise|background|"
    r"unintelligible|foreign|blank_audio|no audio|beep|cough|sigh|clears? throat|indistinct",
    re.IGNORECASE,
)
_NO_SPEECH: Final = re.compile(r"(?:\s*(?:\[[^\[\]]*\]|\([^()]*\)|[♪♫#*]+[^♪♫]*[♪♫]*)\s*)+")
_NAME_PARTICLES: Final = "van von de der den di da del la le el al bin ibn ter ten zu zur und y e of and"
_NO_NAMES: Final = """
    so well note notes question questions answer answers okay ok yes no yeah yep nope but and or then
    also now first second third fourth fifth next last finally action actions decision decisions decided
    agenda reminder update updates summary example warning important remember meaning result results
    conclusion options option item items point points topic topics task tasks todo step steps idea
    problem issue issues plan plans goal goals why what who when where how which here there this that
    these those today tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday time
    date ps fyi btw q a i we it he she they you to recap background context outcome caution tip hint
    fact facts total cost price budget owner owners due status deadline edit music applause laughter
    translation http https basically actually honestly anyway right listen look see think
"""
_SMALL_NAME_WORDS: Final = frozenset(_NAME_PARTICLES.split())
_NOT_NAMES: Final = frozenset(_NO_NAMES.split())
"""Words that begin a sentence with a colon in it ("So: we do this") and are no names."""
MAX_NAME_CHARS: Final = 200
MAX_SPAN_NS: Final = 86_400 * 10**9
"""Longest stretch of one line: a day."""
_NEAR_NS: Final = 500_000_000
_LONGEST_JOINED: Final = 400
"""Characters of a sentence put together from cues; captions without full stops are not one sentence."""
_SHORTEST_CUT: Final = 20
"""Characters of a cue that was full when its sentence was not; a shorter one ("42") was meant to end."""
_SENTENCE_END: Final = re.compile(
    r"""(?<![\s.][A-Z])(?<!\b(?:Dr|Mr|Ms|St|vs|No))(?<!\bMrs)[.?!]+["”)]*(?=\s|$)"""
)


def unrolled(cues: Sequence[Cue]) -> list[Cue]:
    """Cues without what rolling captions repeat from the cue before."""
    if not _is_rolling(cues):
        return list(cues)
    kept: list[Cue] = []
    shown: tuple[str, ...] = ()
    shown_until_ns = 0
    for cue in cues:
        texts = tuple(plain(line) for line in cue.lines)
        fresh = 0
        if cue.start_ns <= shown_until_ns + _NEAR_NS:
            overlap = min(len(shown), len(texts))
            fresh = next((n for n in range(overlap, 0, -1) if shown[-n:] == texts[:n]), 0)
            if not fresh and kept and len(texts) == 1 and shown and texts[0].startswith(shown[-1] + " "):
                # Live captions: the line grows word by word, and the last state holds all of it.
                last = kept[-1]
                kept[-1] = Cue(last.start_ns, max(last.end_ns, cue.end_ns), (*last.lines[:-1], *cue.lines))
                shown, shown_until_ns = texts, cue.end_ns
                continue
        if cue.lines[fresh:]:
            kept.append(Cue(cue.start_ns, cue.end_ns, cue.lines[fresh:]))
        shown, shown_until_ns = texts, cue.end_ns
    # A line stays on the screen after it was said; it ends at the latest where the next one begins.
    return [
        replace(cue, end_ns=min(cue.end_ns, after.start_ns) if after.start_ns > cue.start_ns else cue.end_ns)
        for cue, after in zip(kept, [*kept[1:], Cue(MAX_SPAN_NS, MAX_SPAN_NS, ())], strict=True)
    ]


def _is_rolling(cues: Sequence[Cue]) -> bool:
    """Whether many cues begin with the line (or grow from the line) that the cue before ended with."""
    repeats = 0
    for before, cue in itertools.pairwise(cues):
        if cue.start_ns <= before.end_ns + _NEAR_NS:
            last, first = plain(before.lines[-1]), plain(cue.lines[0])
            repeats += first == last or (len(cue.lines) == 1 and first.startswith(last + " "))
    return repeats >= 2 and repeats * 4 >= len(cues)


def lines_of_cues(cues: Sequence[Cue]) -> list[TextPiece]:
    """One line for each stretch of one speaker in each cue; what tells the speaker is taken off the text.

    A sentence that cues cut into pieces is put together again.
    """
    names = _prefix_names(cues)
    lines: list[TextPiece] = []
    speaker: str | None = None
    for cue in cues:
        parts: list[tuple[str | None, list[str]]] = []
        for line in _voice_lines(cue.lines):
            told, raw = _speaker_of(line, names)
            if told is _SAME:
                goes_on = bool(parts) or names.persistent or _goes_on(lines, cue)
                told = speaker if goes_on and not line.voice_over else None
                if not parts or parts[-1][0] != told:
                    parts.append((told, []))
            elif not parts or parts[-1][0] != told or told is None:
                parts.append((told, []))
            parts[-1][1].append(raw)
            speaker = told
        lines.extend(_split(cue, parts))
    return _whole_sentences(lines)


def _whole_sentences(lines: Sequence[TextPiece]) -> list[TextPiece]:
    """Lines where the beginning of a sentence has moved on to the line that goes on with it.

    Subtitles break lines by their length, so that half a question stands at the end of one cue and half at
    the start of the next. Only the part behind the last full stop moves: lines stay as short as cues.
    """
    closed = sum(_is_closed(line) for line in lines)
    if closed * 10 < len(lines):
        return list(lines)  # recognised without full stops: nothing tells where a sentence ends
    whole: list[TextPiece] = []
    for line in lines:
        if whole and (opened := _opened(whole[-1], line)):
            kept, begun = opened
            whole[-1:] = [kept] if kept is not None else []
            line = _joined(begun, line)
        whole.append(line)
    return whole


def _is_closed(line: TextPiece) -> bool:
    return line.text[-1:] in '.?!…"”)'


def _opened(before: TextPiece, line: TextPiece) -> tuple[TextPiece | None, TextPiece] | None:
    """A line without and with what its last sentence begins with, where the next line goes on with it."""
    until_ns = before.offset_ns + before.duration_ns
    if before.speaker != line.speaker or line.offset_ns - until_ns > _NEAR_NS:
        return None
    if _is_closed(before) or bool(before.words) != bool(line.words):
        return None
    if len(before.text) < _SHORTEST_CUT and not line.text[0].islower():
        return None
    ends = [match.end() for match in _SENTENCE_END.finditer(before.text)]
    place = ends[-1] if ends else 0
    begun = before.text[place:].lstrip()
    if len(begun) + len(line.text) > _LONGEST_JOINED:
        return None
    if not place:
        return None, before
    count = len(before.text[:place].split())
    cut_ns = before.offset_ns + before.duration_ns * place // len(before.text)
    if before.words:
        cut_ns = max(before.words[count].start_ns, before.offset_ns)
    cut_ns = min(cut_ns, until_ns, line.offset_ns)
    head = replace(before, duration_ns=cut_ns - before.offset_ns, text=before.text[:place],
                   words=before.words[:count])  # fmt: skip
    tail = replace(before, offset_ns=cut_ns, duration_ns=until_ns - cut_ns, text=begun,
                   words=before.words[count:])  # fmt: skip
    return head, tail


def _joined(begun: TextPiece, line: TextPiece) -> TextPiece:
    until_ns = max(line.offset_ns + line.duration_ns, begun.offset_ns + begun.duration_ns)
    duration_ns = min(until_ns - begun.offset_ns, MAX_SPAN_NS)
    return replace(
        begun, duration_ns=duration_ns, text=f"{begun.text} {line.text}", words=begun.words + line.words
    )


@dataclass(frozen=True, slots=True)
class _Line:
    raw: str
    voice: str | None = None
    voice_over: bool = False
    """Stands outside a voice tag in a cue that has one."""


@dataclass(frozen=True, slots=True)
class _Names:
    """What the whole file shows about its speaker prefixes."""

    prefixes: frozenset[str]
    brackets: bool
    persistent: bool
    """Marks stand at every change (``>>``, or names that never come twice running), so that a line without
    a mark is the same speaker's."""


_SAME: Final = "\0same"


def _voice_lines(lines: Iterable[str]) -> Iterator[_Line]:
    voice: str | None = None
    voiced = False
    for line in lines:
        if "<" not in line:
            yield _Line(line, voice, voiced and voice is None)
            continue
        parts = _VOICE.split(line)
        if plain(parts[0]):
            yield _Line(parts[0], voice, voiced and voice is None)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            voice, voiced = plain(name) or None, True
            inside, closed, outside = text.partition("</v>")
            if plain(inside):
                yield _Line(inside, voice)
            if closed:
                voice = None
                if plain(outside):
                    yield _Line(outside, None, True)
        if "</v>" in parts[0]:
            voice = None


def _speaker_of(line: _Line, names: _Names) -> tuple[str | None, str]:
    """Speaker that a line names (``_SAME``: it names none) and the line without that."""
    if line.voice is not None:
        return line.voice[:MAX_NAME_CHARS], line.raw
    text = without_tags(line.raw)
    if match := _CHEVRON.match(text):
        rest = text[match.end() :]
        named = _PREFIX.match(rest)
        if named and _could_be_name(named[1]):
            return named[1].strip(), rest[named.end() :]
        return None, rest
    if (match := _CHEVRON_NAME.match(text)) and _could_be_name(match[1]):
        return match[1].strip(), text[match.end() :]
    if names.brackets and (match := _BRACKET.match(text)) and not _SOUND_NOTES.search(match[1]):
        return match[1].strip(), text[match.end() :]
    if (match := _PREFIX.match(text)) and match[1].strip() in names.prefixes:
        return match[1].strip(), text[match.end() :]
    return _SAME, line.raw


def _could_be_name(text: str) -> bool:
    """Whether a text has the shape of a name: ``Anna``, ``Dr. Ben van Dyk (guest)``, ``SPEAKER_01``."""
    text = text.strip()
    if _LABEL.fullmatch(text):
        return True
    words = text.split()
    if not 1 <= len(words) <= 6 or words[0].lower().strip(".") in _NOT_NAMES or text[0].isdigit():
        return False
    strong = [word for word in words if word.lower() not in _SMALL_NAME_WORDS and not word.startswith("(")]
    return bool(strong) and all(_NAME_WORD.fullmatch(word) and _starts_like_a_name(word) for word in strong)


def _starts_like_a_name(word: str) -> bool:
    """Capital first, or after an elided article (d'Arc); scripts without capitals pass."""
    return not word[0].islower() or (word[1:2] in {"'", "’"} and word[2:3].isupper())


def _prefix_names(cues: Sequence[Cue]) -> _Names:
    """Which prefixes are speakers.

    Where most cues have a prefix: all that look like names, and short ones that come back ("jsmith"). Else
    names that come back. A sentence with a colon ("So: we do this") neither looks like a name nor comes back.
    """
    likely: Counter[str] = Counter()
    short: Counter[str] = Counter()
    prefixed = brackets = chevrons = 0
    order: list[str] = []
    for cue in cues:
        told = [m[1].strip() for line in cue.lines if (m := _PREFIX.match(without_tags(line)))]
        order += told
        found = set(told)
        likely.update(name for name in found if _could_be_name(name))
        short.update(name for name in found if _is_short(name))
        prefixed += bool(found)
        first = without_tags(cue.lines[0])
        bracket = _BRACKET.match(first)
        brackets += bracket is not None and not _SOUND_NOTES.search(bracket[1]) and _could_be_name(bracket[1])
        chevrons += _CHEVRON.match(first) is not None
    come_back = {name for name, count in likely.items() if count > 1 or _LABEL.fullmatch(name)}
    if prefixed * 2 >= len(cues):
        come_back |= set(likely) | {name for name, count in short.items() if count > 2}
    named = [name for name in order if name in come_back]
    persistent = chevrons * 20 > len(cues) or (prefixed * 2 < len(cues) and _only_at_changes(named))
    return _Names(frozenset(come_back), brackets * 5 >= len(cues) or brackets > 2, persistent)


def _only_at_changes(names: Sequence[str]) -> bool:
    """Whether the names in a file stand where the speaker changes, and nowhere else."""
    again = sum(one == other for one, other in itertools.pairwise(names))
    return len(names) >= 4 and again * 20 <= len(names)


def _is_short(text: str) -> bool:
    words = text.lower().split()
    return 1 <= len(words) <= 3 and words[0] not in _NOT_NAMES and not words[0][0].isdigit()


def _goes_on(lines: Sequence[TextPiece], cue: Cue) -> bool:
    """Whether a cue goes on with the sentence before it, so that its speaker is the same."""
    if not lines:
        return False
    before = lines[-1]
    near = cue.start_ns - (before.offset_ns + before.duration_ns) <= 2_000_000_000
    return near and before.text[-1:] not in '.?!…"”'


def _split(cue: Cue, parts: Sequence[tuple[str | None, list[str]]]) -> Iterator[TextPiece]:
    """Lines of one cue; several speakers share its time by the length of their text."""
    spoken: list[tuple[str | None, list[str], str]] = []
    for speaker, raws in parts:
        text = " ".join(filter(None, (plain(_DASH.sub("", raw)) for raw in raws)))
        if text and not (_NO_SPEECH.fullmatch(text)):
            spoken.append((speaker, raws, text))
    total, done, span = sum(len(text) for _, _, text in spoken), 0, cue.end_ns - cue.start_ns
    for speaker, raws, text in spoken:
        start_ns = cue.start_ns + span * done // total
        done += len(text)
        end_ns = cue.start_ns + span * done // total
        words = tuple(word for raw in raws for word in timed_words(raw, start_ns, end_ns))
        complete = words and [word.text for word in words] == text.split()
        duration_ns = min(end_ns - start_ns, MAX_SPAN_NS)
        yield TextPiece(start_ns, duration_ns, speaker, text, words if complete else ())
