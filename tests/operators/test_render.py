"""Minutes as files: what a reader sees, and that foreign text stays text."""

from __future__ import annotations

import datetime as dt
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from contracts.minutes import (
    ActionItem,
    Attendee,
    Evidence,
    Gap,
    Item,
    MinutesDocument,
    Review,
    SlideShown,
    SummarySentence,
    UtteranceShown,
    Versions,
)
from operators.deliver.render import (
    clock_text,
    date_text,
    escape_markdown,
    length_text,
    minutes_json,
    minutes_markdown,
    transcript_vtt,
)
from operators.plain_text import plain

NASTY = "a|b `code` <img src=x onerror=alert(1)> [link](javascript:alert(1)) **bold** &lt; https://evil.example $x$"


def evidence(start_s: float, quote: str = "I will", speaker: str | None = "Anna") -> tuple[Evidence, ...]:
    return (
        Evidence(
            kind="speech", start_s=start_s, end_s=start_s + 2, device="mic", speaker=speaker, quote=quote,
            error_ms=1, sampling_ms=1, boundary_ms=1,
        ),
    )  # fmt: skip


def action(text: str = "Send the list", **changes: object) -> ActionItem:
    fields = {
        "id": "a", "text": text, "confidence": 0.9, "origin": "rules", "verdict": "pass", "owner": "Anna",
        "due": dt.date(2026, 3, 13), "due_text": "by Friday", "evidence": evidence(65),
    }  # fmt: skip
    return ActionItem.model_validate(fields | changes)


def decision(text: str, verdict: str = "pass") -> Item:
    fields = {
        "id": "d",
        "text": text,
        "confidence": 0.9,
        "origin": "rules",
        "verdict": verdict,
        "evidence": evidence(5),
    }
    return Item.model_validate(fields)


def document(**changes: object) -> MinutesDocument:
    empty = MinutesDocument(
        schema="minuted.minutes/1", meeting_id="m", generation=0, revision=7, title="Spring sale",
        started=dt.datetime(2026, 3, 10, 9, 0, tzinfo=dt.UTC), start_ns=0, duration_s=118.0,
        attendees=(Attendee(name="Anna", speaker="a", external=False), Attendee(name="Pavel", speaker=None, external=True)),
        summary=(), decisions=(), action_items=(), open_questions=(), answered_questions=(), gaps=(), notices=(),
        review=Review(waiting=0), versions=Versions(product="0.1.0", model=None, rules="en-1", contract="1"),
    )  # fmt: skip
    return empty.model_copy(update=changes)


def html(markdown: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))


def test_everything_a_reader_needs_is_there() -> None:
    text = minutes_markdown(
        document(
            summary=(SummarySentence(text="The sale opens in May.", evidence=evidence(5)),),
            decisions=(decision("Open on 2 May"),),
            action_items=(action(),),
            open_questions=(decision("Who pays?"),),
            answered_questions=(decision("When is it?"),),
            slides=(SlideShown(start_s=0, end_s=61, text="Sale\nBudget"),),
            gaps=(Gap(start_s=3, end_s=4, what="lost"),),
            notices=("The model was not used.",),
            review=Review(waiting=2),
        )
    )
    for expected in (
        "# Spring sale", "Tuesday 10 March 2026, 09:00 UTC", "1 min 58 s", "**Present:** Anna\n",
        "not in the meeting:** Pavel", "The sale opens in May. (00:05)", "1. Open on 2 May (00:05)",
        "| 1 | Send the list | Anna | Friday 13 March 2026 (“by Friday”) | 01:05 |", "1. Who pays? (00:05)",
        "1. When is it? (00:05)", "00:00 to 01:01: Sale / Budget", "From 00:03 to 00:04 packets of a device were lost.",
        "The model was not used.", "The minutes as a whole wait for a person", "by rules (en-1)",
    ):  # fmt: skip
        assert expected in text
    titles = re.findall(r"^## (.*)$", text, re.M)
    assert titles == [
        "Summary",
        "Decisions",
        "Action items",
        "Open questions",
        "Answered questions",
        "Slides",
        "Remarks",
    ]


def test_empty_sections_say_so() -> None:
    text = minutes_markdown(document(title=None, started=None, attendees=()))
    for expected in ("Minutes of the meeting", "No decisions were found.", "No action items were found.",
                     "No open questions were found.", "No slides were seen.", "not known"):  # fmt: skip
        assert expected in text
    assert "Remarks" not in text


def test_a_reader_can_find_what_waits_for_a_person() -> None:
    nothing = minutes_markdown(document(review=Review(waiting=1)))
    assert "- Nothing was found to put into these minutes; they wait for a person to look at." in nothing
    talk = minutes_markdown(
        document(review=Review(waiting=1), summary=(SummarySentence(text="We talked.", evidence=()),))
    )
    assert "- No decision, task or question was found; these minutes wait for a person to look at." in talk
    doubtful = tuple(decision(text, "review") for text in ("Open in May", "Close in June"))
    one = minutes_markdown(document(decisions=doubtful[:1], review=Review(waiting=1)))
    assert "- 1 point waits for a person to look at, marked “please check” above." in one
    both = minutes_markdown(document(decisions=doubtful, review=Review(waiting=3)))
    assert "- 2 points wait for a person to look at, marked “please check” above." in both
    assert "- The minutes as a whole wait for a person to look at." in both


def test_doubts_are_marked() -> None:
    text = minutes_markdown(
        document(
            decisions=(decision("Open in May", "review"),),
            action_items=(
                action(owner=None, due=None, due_text="next Friday"),
                action(due=None, due_text=None),
            ),
        )
    )
    assert "*owner not named*" in text
    assert "“next Friday”, date open" in text
    assert "*no date named*" in text
    assert "please check" in text
    assert "Anna said “I will”" in text


def test_foreign_text_stays_text() -> None:
    text = minutes_markdown(
        document(
            title=NASTY,
            decisions=(decision(NASTY, "review"),),
            action_items=(action(NASTY, owner=NASTY, due_text=NASTY),),
            slides=(SlideShown(start_s=0, end_s=1, text=NASTY),),
            notices=(NASTY,),
            attendees=(Attendee(name=NASTY, speaker=None, external=False),),
        )
    )
    page = html(text)
    assert "<img" not in page
    assert "<a " not in page
    assert "<code" not in page
    assert page.count("<tr>") == 2
    assert page.count("<td") == 5


@given(st.text(max_size=80))
def test_markdown_shows_any_text_as_it_is(text: str) -> None:
    shown = plain(text)
    page = html(f"- {escape_markdown(text)} x\n")
    body = page.removeprefix("<ul>\n<li>").removesuffix(" x</li>\n</ul>\n")
    assert (
        body == shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
        or not shown
    )


@pytest.mark.parametrize(
    "text", ["# x", "1. x", "- x", "+ x", "> x", "---", "===", "| a | b |", "~~x~~", "![a](b)"]
)
def test_markup_at_the_start_of_a_line_stays_text(text: str) -> None:
    assert html(escape_markdown(text)) == f"<p>{text.replace('>', '&gt;')}</p>\n"


def test_the_json_is_the_document_in_the_order_of_the_contract() -> None:
    original = document(action_items=(action("Schöne Grüße"),), utterances=(
        UtteranceShown(id="u", start_s=0, end_s=1, speaker=None, text="Grüße"),))  # fmt: skip
    data = minutes_json(original)
    assert data.endswith(b"}\n")
    assert "Schöne Grüße".encode() in data
    assert next(iter(json.loads(data))) == "schema"
    assert MinutesDocument.model_validate_json(data) == original


def test_the_transcript_is_valid_webvtt() -> None:
    text = transcript_vtt(
        [
            UtteranceShown(id="b", start_s=3600.5, end_s=3600.5, speaker=None, text="Late --> <b>&amp;"),
            UtteranceShown(id="a", start_s=1.25, end_s=2.5, speaker="Anna <x>", text="Hello\n\nthere"),
            UtteranceShown(id="c", start_s=2.0, end_s=2.1, speaker="B", text=" \u200b"),
        ]
    )
    assert text == (
        "WEBVTT\n\n"
        "1\n00:00:01.250 --> 00:00:02.500\n<v Anna &lt;x&gt;>Hello there\n\n"
        "2\n01:00:00.500 --> 01:00:00.501\nLate --&gt; &lt;b&gt;&amp;amp;\n"
    )


@given(
    st.lists(
        st.tuples(st.floats(-1, 1e5), st.floats(0, 100), st.text(max_size=30), st.text(max_size=10)),
        max_size=5,
    )
)
def test_webvtt_holds_for_any_text(said: list[tuple[float, float, str, str]]) -> None:
    text = transcript_vtt(
        UtteranceShown(id=str(n), start_s=start, end_s=start + length, speaker=speaker, text=words)
        for n, (start, length, words, speaker) in enumerate(said)
    )
    head, *cues = text.removesuffix("\n").split("\n\n")
    assert head == "WEBVTT"
    for number, cue in enumerate(cues, 1):
        name, timing, payload = cue.split("\n")
        assert name == str(number)
        start, end = timing.split(" --> ")
        assert start < end or len(start) != len(end)
        assert "-->" not in payload


def test_plain_text_has_no_terminal_sequences_and_no_hidden_characters() -> None:
    assert plain("a\x1b[31;1mb\x1b[0m \x1b]0;title\x07c\x9b2Jd\x1bMe\u202ef\u2066\x00") == "abcdef".replace(
        "b", "b ", 1
    )
    assert plain("two\nlines\tand\u2028more") == "two lines and more"
    assert plain("Grüße, 日本語 😀") == "Grüße, 日本語 😀"


def test_times_dates_and_lengths() -> None:
    assert [clock_text(s) for s in (-1, 0, 59.9, 65, 3661)] == ["00:00", "00:00", "00:59", "01:05", "1:01:01"]
    assert [length_text(s) for s in (40, 60, 118, 720, 3900)] == [
        "40 s",
        "1 min",
        "1 min 58 s",
        "12 min",
        "1 h 05 min",
    ]
    assert date_text(dt.date(2026, 3, 13)) == "Friday 13 March 2026"
