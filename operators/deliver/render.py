"""The finished minutes as files: ``minutes.md``, ``minutes.json`` and ``transcript.vtt``.

Everything that was said or shown is foreign text: it is escaped for the format it goes into, and
control and direction characters are taken out.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from contracts.minutes import (
    ActionItem,
    Attendee,
    Evidence,
    Item,
    MinutesDocument,
    SlideShown,
    SummarySentence,
    UtteranceShown,
)
from operators.plain_text import plain

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MAX_SLIDE_CHARS: Final = 160
_MAX_QUOTE_CHARS: Final = 200

_INLINE: Final = re.compile(r"([\\`*_\[\]<>|~$])")
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_URL: Final = re.compile(r"(?i)(https?|ftp)(?=://)|\b(www)(?=\.)")
_BLOCK: Final = re.compile(r"^(#{1,6}(?=\s|$)|[-+](?=\s|$)|=+$|-{2,})")
_BLOCK_NUMBER: Final = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")


def escape_markdown(text: str) -> str:
    """``text`` on one line so that Markdown shows it as it is: no markup, HTML, link or table border."""
    out = _ENTITY.sub("&amp;", plain(text))
    out = _INLINE.sub(r"\\\1", out)
    out = _URL.sub(lambda m: f"{m.group(1)}\\" if m.group(1) else f"{m.group(2)}\\", out)
    out = _BLOCK.sub(r"\\\1", out)
    return _BLOCK_NUMBER.sub(r"\1\\\2", out)


def clock_text(seconds: float) -> str:
    """``mm:ss``, with hours in front from one hour on; times before the zero show as ``00:00``."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def length_text(seconds: float) -> str:
    """A duration in words: ``1 h 05 min``, ``12 min``, ``1 min 58 s``, ``40 s``."""
    whole = max(0, round(seconds))
    if whole >= 3600:
        return f"{whole // 3600} h {whole // 60 % 60:02d} min"
    if whole >= 600 or (whole >= 60 and whole % 60 == 0):
        return f"{whole // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def date_text(day: dt.date, weekday: bool = True) -> str:
    """``Thursday 12 March 2026``, the same in every locale."""
    text = f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    return f"{_DAYS[day.weekday()]} {text}" if weekday else text


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"


def _at(evidence: Sequence[Evidence]) -> str:
    return clock_text(evidence[0].start_s) if evidence else "no time"


def _doubt(item: Item) -> str:
    """What the reader is asked to check, with the words it rests on; empty without doubt."""
    if item.verdict not in ("review", "fallback"):
        return ""
    said = next((e for e in item.evidence if e.kind == "speech" and e.quote), None)
    if said is None:
        return " **(please check)**"
    who = escape_markdown(said.speaker) if said.speaker else "somebody"
    quote = escape_markdown(_shortened(plain(said.quote), _MAX_QUOTE_CHARS))
    return f" **(please check:** {who} said “{quote}”**)**"


def _head(document: MinutesDocument, date: dt.date | None) -> list[str]:
    lines = [f"# {escape_markdown(document.title or 'Minutes of the meeting')}", ""]
    when = date or (document.started.date() if document.started else None)
    if when is not None:
        started = document.started
        clock = f", {started.astimezone(dt.UTC):%H:%M} UTC" if started else ""
        lines.append(f"- **Date:** {date_text(when)}{clock}")
    else:
        lines.append("- **Date:** not known")
    lines.append(f"- **Length:** {length_text(document.duration_s)}")
    lines.append(f"- **Present:** {_people(document.attendees, external=False) or 'nobody is known by name'}")
    if outside := _people(document.attendees, external=True):
        lines.append(f"- **Also named, not in the meeting:** {outside}")
    return lines


def _people(attendees: Iterable[Attendee], external: bool) -> str:
    return ", ".join(escape_markdown(a.name) for a in attendees if a.external == external)


def _summary(sentences: Sequence[SummarySentence]) -> list[str]:
    if not sentences:
        return ["No summary could be drawn from what was said."]
    return [f"- {escape_markdown(s.text)} ({_at(s.evidence)})" for s in sentences]


def _numbered(items: Sequence[Item], nothing: str) -> list[str]:
    if not items:
        return [nothing]
    return [
        f"{n}. {escape_markdown(item.text)} ({_at(item.evidence)}){_doubt(item)}"
        for n, item in enumerate(items, 1)
    ]


def due_text_of(item: ActionItem, weekday: bool = True) -> str:
    """Due date as people read it: the date with the words, or the words alone; empty without either."""
    if item.due is not None and item.due_text:
        return f"{date_text(item.due, weekday)} (“{plain(item.due_text)}”)"
    if item.due is not None:
        return date_text(item.due, weekday)
    return f"“{plain(item.due_text)}”, date open" if item.due_text else ""


def _actions(items: Sequence[ActionItem]) -> list[str]:
    if not items:
        return ["No action items were found."]
    lines = ["| # | What | Owner | Due | Said at |", "|--:|------|-------|-----|---------|"]
    for n, item in enumerate(items, 1):
        owner = escape_markdown(item.owner) if item.owner else "*owner not named*"
        due = escape_markdown(due_text_of(item)) or "*no date named*"
        what = escape_markdown(item.text) + _doubt(item)
        lines.append(f"| {n} | {what} | {owner} | {due} | {_at(item.evidence)} |")
    return lines


def _slides(slides: Sequence[SlideShown]) -> list[str]:
    if not slides:
        return ["No slides were seen."]
    lines = []
    for slide in slides:
        parts = [part for line in slide.text.splitlines() if (part := plain(line))]
        text = escape_markdown(_shortened(" / ".join(parts), _MAX_SLIDE_CHARS)) or "*no text*"
        lines.append(f"- {clock_text(slide.start_s)} to {clock_text(slide.end_s)}: {text}")
    return lines


_GAP_WORDS: Final = {
    "lost": "packets of {} were lost",
    "undecodable": "media of {} could not be decoded",
    "shed": "work for {} was left out under load",
    "silent_device": "{} sent nothing",
    "late": "packets of {} came too late",
}
_GAPS_SHOWN: Final = 12


def _remarks(document: MinutesDocument) -> list[str]:
    lines = [f"- {escape_markdown(text)}" for text in document.notices]
    for gap in document.gaps[:_GAPS_SHOWN]:
        stream = escape_markdown(gap.stream) or "a device"
        what = _GAP_WORDS.get(gap.what, escape_markdown(gap.what) + " ({})").format(stream)
        start, end = clock_text(gap.start_s), clock_text(gap.end_s)
        lines.append(f"- {f'At {start}' if start == end else f'From {start} to {end}'} {what}.")
    if len(document.gaps) > _GAPS_SHOWN:
        lines.append(f"- {len(document.gaps) - _GAPS_SHOWN} more gaps are listed in minutes.json.")
    return [*lines, *_waiting(document)]


def _waiting(document: MinutesDocument) -> list[str]:
    """What waits for a person: the items marked above, and the minutes as a whole."""
    items = [
        *document.decisions,
        *document.action_items,
        *document.open_questions,
        *document.answered_questions,
    ]
    count = document.review.waiting
    marked = min(count, sum(bool(_doubt(item)) for item in items))
    lines = []
    if marked:
        points = "1 point waits" if marked == 1 else f"{marked} points wait"
        lines.append(f"- {points} for a person to look at, marked “please check” above.")
    if count > marked:
        why = "The minutes as a whole wait"
        if not items and document.summary:
            why = "No decision, task or question was found; these minutes wait"
        elif not items:
            why = "Nothing was found to put into these minutes; they wait"
        lines.append(f"- {why} for a person to look at.")
    return lines


def minutes_markdown(document: MinutesDocument, date: dt.date | None = None) -> str:
    """The minutes as a secretary would send them round.

    Args:
        document: finished minutes.
        date: day of the meeting where it is known otherwise than by ``document.started``.
    """
    sections: list[tuple[str, list[str]]] = [
        ("Summary", _summary(document.summary)),
        ("Decisions", _numbered(document.decisions, "No decisions were found.")),
        ("Action items", _actions(document.action_items)),
        ("Open questions", _numbered(document.open_questions, "No open questions were found.")),
    ]
    if document.answered_questions:
        sections.append(("Answered questions", _numbered(document.answered_questions, "")))
    sections.append(("Slides", _slides(document.slides)))
    if remarks := _remarks(document):
        sections.append(("Remarks", remarks))
    lines = _head(document, date)
    for title, body in sections:
        lines += ["", f"## {title}", "", *body]
    versions = document.versions
    found = f"by the model {versions.model}" if versions.model else f"by rules ({versions.rules})"
    lines += ["", "---", "", f"*Written by minuted {escape_markdown(versions.product)}; items were found "
              f"{escape_markdown(found)}. Times count from the start of the meeting.*"]  # fmt: skip
    return "\n".join(lines) + "\n"


def minutes_json(document: MinutesDocument) -> bytes:
    """``minutes.json``: fields in the order of the contract, two spaces, UTF-8, closing newline."""
    value = document.model_dump(mode="json", by_alias=True)
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def _vtt_time(seconds: float) -> str:
    ms = max(0, round(seconds * 1000))
    return f"{ms // 3_600_000:02d}:{ms // 60_000 % 60:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}"


def _vtt_text(text: str) -> str:
    return plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def transcript_vtt(utterances: Iterable[UtteranceShown]) -> str:
    """The transcript as WebVTT (W3C), a cue an utterance in order of start, speakers as voice tags."""
    blocks = ["WEBVTT"]
    for shown in sorted(utterances, key=lambda u: (u.start_s, u.id)):
        text = _vtt_text(shown.text)
        if not text:
            continue
        # A cue must end after it starts, else players drop it.
        end_s = max(shown.end_s, max(0.0, shown.start_s) + 0.001)
        voice = _vtt_text(shown.speaker or "")
        said = f"<v {voice}>{text}" if voice else text
        blocks.append(f"{len(blocks)}\n{_vtt_time(shown.start_s)} --> {_vtt_time(end_s)}\n{said}")
    return "\n\n".join(blocks) + "\n"
