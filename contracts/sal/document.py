"""What rules are held against: a meeting's minutes as they stand, told what changes in them."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ..minutes import Attendee, Item, MinutesDocument, MinutesState
from .kinds import FINAL_LISTS, GROWING, ITEM_LISTS, SHORT

_LOG_KEPT: Final = 4_096


@dataclass(frozen=True, slots=True)
class MeetingFacts:
    """What rules know of the meeting as ``meeting``."""

    meeting_id: str
    title: str | None = None
    date: datetime.date | None = None
    started: datetime.datetime | None = None
    duration_s: float = 0.0


class Growing:
    """A list that grows with the meeting: entries by key, and which keys have changed lately."""

    __slots__ = ("dropped", "entries", "log")

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.log: list[str] = []
        self.dropped = 0

    @property
    def version(self) -> int:
        """How many changes there have been."""
        return self.dropped + len(self.log)

    def put(self, key: str, entry: Any) -> None:
        """Add or replace; the same value again changes nothing."""
        known = self.entries.get(key)
        if known is entry or (known is not None and known == entry):
            return
        self.entries[key] = entry
        self._changed(key)

    def remove(self, key: str) -> None:
        """Take out; a key that is not there changes nothing."""
        if self.entries.pop(key, None) is not None:
            self._changed(key)

    def since(self, version: int) -> Sequence[str] | None:
        """Keys that changed after ``version``; None where that is too long ago to be known."""
        return None if version < self.dropped else self.log[version - self.dropped :]

    def _changed(self, key: str) -> None:
        self.log.append(key)
        if len(self.log) > 2 * _LOG_KEPT + 2 * len(self.entries):
            gone = len(self.log) - _LOG_KEPT - len(self.entries)
            del self.log[:gone]
            self.dropped += gone


class Document:
    """Minutes under the rules. One for a meeting; changed in place, so that little is checked anew.

    ``lists`` holds what grows (items by id, all else by place); the short lists are replaced as wholes.
    """

    def __init__(
        self,
        meeting: MeetingFacts,
        attendees: Iterable[Attendee] = (),
        key_topics: Iterable[str] = (),
        agenda: Iterable[str] = (),
    ) -> None:
        self.lists: Mapping[str, Growing] = {name: Growing() for name in GROWING}
        self._item_lists = tuple(self.lists[name] for name in ITEM_LISTS)
        self._versions = dict.fromkeys(("meeting", *SHORT), 0)
        self.meeting = meeting
        self.attendees = tuple(attendees)
        self.key_topics = tuple(key_topics)
        self.agenda = tuple(agenda)

    @classmethod
    def of(
        cls,
        minutes: MinutesState,
        *,
        date: datetime.date | None = None,
        key_topics: Iterable[str] = (),
        agenda: Iterable[str] = (),
    ) -> Self:
        """Of written minutes. ``date`` is that of the start where it is not given."""
        day = date or (minutes.started.date() if minutes.started is not None else None)
        facts = MeetingFacts(minutes.meeting_id, minutes.title, day, minutes.started, minutes.duration_s)
        made = cls(facts, minutes.attendees, key_topics, agenda)
        for name in ITEM_LISTS:
            for item in getattr(minutes, name):
                made.put(name, item)
        for name in ("summary", "gaps", "notices"):
            made.replace(name, getattr(minutes, name))
        if isinstance(minutes, MinutesDocument):
            for name in FINAL_LISTS:
                made.replace(name, getattr(minutes, name))
        return made

    @property
    def size(self) -> int:
        """How many entries all lists have together."""
        short = len(self.attendees) + len(self.key_topics) + len(self.agenda)
        return short + sum(len(growing.entries) for growing in self.lists.values())

    def put(self, section: str, item: Item) -> None:
        """Add an item or replace it, also one that stood in another section."""
        for name, growing in zip(ITEM_LISTS, self._item_lists, strict=True):
            if name != section:
                growing.remove(item.id)
        self.lists[section].put(item.id, item)

    def remove(self, item_id: str) -> None:
        """Take an item out, wherever it stands."""
        for growing in self._item_lists:
            growing.remove(item_id)

    def find(self, item_id: str) -> tuple[str, Item] | None:
        """Section and value of an item."""
        for name, growing in zip(ITEM_LISTS, self._item_lists, strict=True):
            if (found := growing.entries.get(item_id)) is not None:
                return name, found
        return None

    def replace(self, name: str, entries: Iterable[Any]) -> None:
        """Summary, gaps, notices, utterances or slides anew; what stays in its place costs a comparison."""
        growing = self.lists[name]
        count = 0
        for count, entry in enumerate(entries, start=1):
            growing.put(str(count - 1), entry)
        for place in range(count, len(growing.entries)):
            growing.remove(str(place))

    def tell(
        self,
        *,
        meeting: MeetingFacts | None = None,
        attendees: Sequence[Attendee] | None = None,
        key_topics: Sequence[str] | None = None,
        agenda: Sequence[str] | None = None,
    ) -> None:
        """What has become known of the meeting; None leaves it as it is."""
        told = {
            "meeting": meeting,
            "attendees": None if attendees is None else tuple(attendees),
            "key_topics": None if key_topics is None else tuple(key_topics),
            "agenda": None if agenda is None else tuple(agenda),
        }
        for name, value in told.items():
            if value is not None and value != getattr(self, name):
                setattr(self, name, value)
                self._versions[name] += 1

    def version(self, name: str) -> int:
        """Changes when what ``name`` names has changed."""
        if name == "items":
            return sum(growing.version for growing in self._item_lists)
        growing = self.lists.get(name)
        return self._versions[name] if growing is None else growing.version
