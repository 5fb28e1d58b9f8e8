"""``minuted watch``: live text and minutes in the terminal, from the topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition
from rich.console import Console
from rich.live import Live

from contracts.topics import TopicNames
from operators.broker.kafka_link import BrokerLink, check_topics

from .live_screen import closing, screen
from .live_view import WATCHED, LiveView

_REDRAW_S: Final = 0.1
_POLL_S: Final = 0.05
_BATCH: Final = 500

Poll = Callable[[], Iterable[tuple[str, bytes]]]
"""Waits a moment for messages: topic names without prefix, and values."""


def run_view(
    view: LiveView,
    poll: Poll,
    console: Console,
    *,
    stop: Callable[[], bool] = lambda: False,
    until_final: bool = False,
    last_lines: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Feed a view and show it until told to stop, or until the minutes are final.

    On a terminal the screen is redrawn in place; elsewhere each event is one plain line.

    Args:
        last_lines: asked at the end for lines to print below everything else.
    """
    if console.is_terminal and not console.is_dumb_terminal:
        _run_on_terminal(view, poll, console, stop, until_final)
        for text in closing(view, console.width):
            console.print(text)
    else:
        _run_plain(view, poll, console, stop, until_final)
    for line in last_lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _run_plain(
    view: LiveView, poll: Poll, console: Console, stop: Callable[[], bool], until_final: bool
) -> None:
    while not stop() and not (until_final and view.finished):
        for topic, value in poll():
            for line in view.feed(topic, value):
                console.out(line, highlight=False)


def _run_on_terminal(
    view: LiveView, poll: Poll, console: Console, stop: Callable[[], bool], until_final: bool
) -> None:
    drawn_at, drawn = 0.0, None
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while not stop() and not (until_final and view.finished):
            for topic, value in poll():
                view.feed(topic, value)
            look = (view.look, console.size)
            if look != drawn and time.monotonic() - drawn_at >= _REDRAW_S:
                live.update(screen(view, console.width, console.height), refresh=True)
                drawn_at, drawn = time.monotonic(), look


def topic_poll(
    link: BrokerLink, *, from_beginning: bool, meeting_id: str | None = None, wait_s: float = 30.0
) -> tuple[Poll, Callable[[], None]]:
    """A poll over the watched topics, and what closes it.

    With a meeting id only its partition is read. The broker may go away and come back.

    Raises:
        BrokerUnreachable: no broker answered within ``wait_s``.
        TopicProblem: topics are missing or have another number of partitions.
    """
    check_topics(link, "minuted watch", WATCHED, wait_s=wait_s)
    names = link.names
    partitions = range(names.shards) if meeting_id is None else (names.partition(meeting_id),)
    start = OFFSET_BEGINNING if from_beginning else OFFSET_END
    consumer = Consumer(link.consumer() | {"enable.partition.eof": False, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(names.of(t), p, start) for t in WATCHED for p in partitions])

    def poll() -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for message in consumer.consume(_BATCH, _POLL_S):
            value = message.value()
            if message.error() is None and value is not None:
                found.append((names.bare(str(message.topic())), value))
        return found

    return poll, consumer.close


def watch(
    bootstrap: str,
    names: TopicNames,
    meeting_id: str | None,
    client_overrides: Mapping[str, str | int],
    stop: Callable[[], bool],
    until_final: bool,
    console: Console | None = None,
    *,
    wait_s: float = 30.0,
) -> None:
    """Show a meeting live: from its beginning where its id is given, else what comes from now on.

    Raises:
        BrokerUnreachable, TopicProblem: as :func:`topic_poll`.
    """
    link = BrokerLink(bootstrap, names, client_overrides)
    poll, close = topic_poll(
        link, from_beginning=meeting_id is not None, meeting_id=meeting_id, wait_s=wait_s
    )
    try:
        run_view(LiveView(meeting_id), poll, console or Console(), stop=stop, until_final=until_final)
    finally:
        close()
