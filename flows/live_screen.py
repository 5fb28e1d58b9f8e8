"""Draws a live view for a terminal of any size: what is said, the slide, and the minutes so far."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from contracts.minutes import ActionItem, Item, Section
from operators.deliver.render import clock_text, due_text_of
from operators.plain_text import plain

from .live_view import LiveView, MeetingView

_WIDE: Final = 110
"""From this many columns on, speech and minutes stand side by side."""
_COLOURS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_red")
_HEADINGS: Final[tuple[tuple[Section, str, str], ...]] = (
    ("decisions", "Decisions", "green"),
    ("action_items", "Action items", "yellow"),
    ("open_questions", "Open questions", "magenta"),
    ("answered_questions", "Answered questions", "blue"),
)
_MEASURE: Final = Console(file=io.StringIO(), width=200, color_system=None)
"""Wrapping needs a console for its tab and width rules; nothing is written to it."""


def screen(view: LiveView, width: int, height: int) -> RenderableType:
    """The whole screen: exactly ``height`` lines, ``width`` columns."""
    meeting = view.meeting
    head = _head(view, width)
    if meeting is None:
        return Group(head, Text("Waiting for a meeting …", style="dim"))
    body = max(6, height - 1)
    if width >= _WIDE:
        left = width * 9 // 20
        slide = min(8, max(4, body // 4))
        speech = _panel("Now", _speech(meeting, left - 4, body - slide - 2), left, body - slide)
        shown = _panel(_slide_title(meeting), _slide(meeting, left - 4, slide - 2), left, slide)
        minutes = _panel("Minutes so far", _minutes(view, width - left - 4, body - 2), width - left, body)
        table = Table.grid(padding=0)
        table.add_column(width=left)
        table.add_column(width=width - left)
        table.add_row(Group(speech, shown), minutes)
        return Group(head, table)
    slide = 3 if body >= 16 else 0
    spoken = max(4, min(9, (body - slide) * 2 // 5))
    parts: list[RenderableType] = [
        head,
        _panel("Now", _speech(meeting, width - 4, spoken - 2), width, spoken),
    ]
    if slide:
        parts.append(_panel(_slide_title(meeting), _slide(meeting, width - 4, 1), width, slide))
    rest = body - slide - spoken
    parts.append(_panel("Minutes so far", _minutes(view, width - 4, rest - 2), width, rest))
    return Group(*parts)


def _panel(title: str, lines: Sequence[Text], width: int, height: int) -> Panel:
    return Panel(
        Group(*lines), title=Text(title, style="bold"), title_align="left", border_style="dim",
        width=width, height=height, padding=(0, 1),
    )  # fmt: skip


def _head(view: LiveView, width: int) -> RenderableType:
    meeting = view.meeting
    elapsed = meeting.elapsed_s if meeting else 0.0
    state = "final" if view.finished else "ended" if meeting and meeting.ended else "live"
    clock = (
        f"{clock_text(elapsed)} / {clock_text(view.expected_s)}" if view.expected_s else clock_text(elapsed)
    )
    right = Text.assemble(
        (f" {clock} ", "bold"), (f" {state} ", "reverse green" if state == "live" else "reverse")
    )
    bar_width = min(24, width // 4) if view.expected_s else 0
    room = max(8, width - right.cell_len - bar_width - 3)
    title = Text.assemble(
        (" minuted ", "reverse bold"), " ", (meeting.title or plain(meeting.meeting_id)) if meeting else ""
    )
    title.truncate(room - 1, overflow="ellipsis", pad=True)
    table = Table.grid(padding=0)
    table.add_column(width=room, no_wrap=True)
    table.add_column(width=bar_width + 1 if bar_width else 0)
    table.add_column(no_wrap=True)
    bar: RenderableType = ""
    if view.expected_s:
        done = view.expected_s if view.finished else min(elapsed, view.expected_s)
        bar = Columns([ProgressBar(total=view.expected_s, completed=done, width=bar_width)])
    table.add_row(title, bar, right)
    return table


def _wrap(text: Text, width: int, indent: int) -> list[Text]:
    """Lines of at most ``width`` cells, all but the first indented."""
    first, *rest = text.wrap(_MEASURE, max(8, width)) or [Text("")]
    if not rest:
        return [first]
    again = text[len(first.plain) :]
    again = again[len(again.plain) - len(again.plain.lstrip()) :]
    return [first, *(Text(" " * indent).append_text(t) for t in again.wrap(_MEASURE, max(8, width - indent)))]


def _colour(meeting: MeetingView, speaker: str) -> str:
    order = list(dict.fromkeys(line.speaker for line in meeting.lines))
    place = order.index(speaker) if speaker in order else len(order)
    return _COLOURS[place % len(_COLOURS)]


def _speech(meeting: MeetingView, width: int, height: int) -> list[Text]:
    """The end of the conversation: closed utterances, then what is being said."""
    lines: list[Text] = []
    for line in list(meeting.lines)[-height:]:
        at = clock_text(line.at_s)
        said = Text.assemble(
            (f"{at} ", "dim"), (line.speaker, _colour(meeting, line.speaker)), f": {line.text}"
        )
        lines += _wrap(said, width, len(at) + 1)
    for speaking in meeting.speaking.values():
        who = (f"{speaking.speaker}: ", f"bold {_colour(meeting, speaking.speaker)}")
        lines += _wrap(Text.assemble(("  ▶   ", "bold red"), who, (f"{speaking.text} …", "italic")), width, 6)
    return lines[-height:]


def _slide_title(meeting: MeetingView) -> str:
    if not meeting.slides_seen:
        return "Slide"
    return f"Slide {meeting.slides_seen}, since {clock_text(meeting.slide_at_s)}"


def _slide(meeting: MeetingView, width: int, height: int) -> list[Text]:
    if not meeting.slide:
        return [Text("none yet" if not meeting.slides_seen else "no text on it", style="dim")]
    if height == 1:
        line = Text(" / ".join(meeting.slide), no_wrap=True)
        line.truncate(width, overflow="ellipsis")
        return [line]
    lines = [
        part
        for n, raw in enumerate(meeting.slide)
        for part in _wrap(Text(raw, "bold" if n == 0 else ""), width, 2)
    ]
    return lines[:height]


def _item(item: Item, width: int, newest: bool) -> list[Text]:
    at = clock_text(item.evidence[0].start_s) if item.evidence else "     "
    text = Text.assemble((f"{at} ", "dim"), (plain(item.text), "bold" if newest else ""))
    if isinstance(item, ActionItem):
        owner = (plain(item.owner), "cyan") if item.owner else ("owner not named", "dim italic")
        due = due_text_of(item, weekday=False)
        text.append_text(Text.assemble(" → ", owner, f", {due}" if due else ""))
    if item.verdict in ("review", "fallback"):
        text.append_text(Text(" (please check)", "bold red"))
    return _wrap(text, width, len(at) + 1)


def _minutes(view: LiveView, width: int, height: int) -> list[Text]:
    """All sections that hold something; where there is no room the oldest items give way."""
    newest = view.meeting.last_item if view.meeting else None
    blocks: list[_Block] = []
    for section, heading, colour in _HEADINGS:
        if items := view.items(section):
            drawn = [_item(item, width, item.id == newest) for item in items]
            blocks.append(_Block(Text(f"{heading} ({len(items)})", f"bold {colour}"), len(items), drawn))
    if not blocks:
        return [Text("Nothing yet", style="dim")]
    while sum(b.height for b in blocks) > height and any(len(b.items) > 1 for b in blocks):
        max(blocks, key=lambda b: b.height if len(b.items) > 1 else 0).items.pop(0)
    return [line for block in blocks for line in block.lines()][:height]


@dataclass
class _Block:
    """A section on the screen; ``items`` are those for which there is room, as wrapped lines."""

    title: Text
    total: int
    items: list[list[Text]]

    @property
    def height(self) -> int:
        return 1 + sum(len(lines) for lines in self.items)

    def lines(self) -> list[Text]:
        hidden = self.total - len(self.items)
        title = Text.assemble(self.title, (f", {hidden} earlier not shown" if hidden else "", "dim"))
        return [title, *(line for lines in self.items for line in lines)]


def closing(view: LiveView, width: int) -> list[Text]:
    """What stays on the terminal in the end: all items, wrapped to ``width``."""
    meeting = view.meeting
    if meeting is None:
        return [Text("No meeting was seen.")]
    name = meeting.title or plain(meeting.meeting_id)
    state = "final minutes" if view.finished else "minutes so far, not final"
    out = [Text.assemble((name, "bold"), f": {state} after {clock_text(meeting.elapsed_s)}")]
    for section, heading, colour in _HEADINGS:
        if items := view.items(section):
            out.append(Text(heading, f"bold {colour}"))
            out += [line for item in items for line in _item(item, width - 1, False)]
    return out if len(out) > 1 else [*out, Text("No decisions, action items or questions were found.")]
