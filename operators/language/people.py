"""Who is meant: attendee names and roles in what was said, also where a recogniser misheard them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from operators.language.text import STOP, Token, expand
from operators.language.words import words_in

_VOWEL_PAIRS = (("ay", "e"), ("ai", "e"), ("ei", "e"), ("ey", "e"), ("ee", "i"), ("ph", "f"), ("ck", "k"))
_SOUND = str.maketrans(
    {"w": "v", "z": "s", "c": "k", "q": "k", "x": "s", "d": "t", "b": "p", "y": "", "j": "y"}
)
_VOWELS = re.compile(r"[aeiouhy]")


@lru_cache(maxsize=65536)
def sound_of(name: str) -> tuple[str, ...]:
    """Consonant skeletons of a name; a ``j`` can be said as in *jam*, as ``y`` or as ``h``."""
    low = re.sub(r"[^a-z]", "", name.lower())
    for pair, sound in _VOWEL_PAIRS:
        low = low.replace(pair, sound)
    spoken = {low}
    if "j" in low:
        spoken |= {low.replace("j", "h").replace("g", "h"), low.replace("j", "sh")}
    keys = []
    for form in sorted(spoken):
        first_is_vowel = form[:1] in "aeiou"
        key = _VOWELS.sub("", form.translate(_SOUND))
        key = re.sub(r"(.)\1+", r"\1", key)
        if len(key) < 2:
            key = form
        keys.append(("*" if first_is_vowel else "") + key)
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Person:
    """One attendee as the rules see it. ``calls`` are the ways others may say the name."""

    name: str
    speaker: str | None
    role: str | None
    external: bool
    calls: tuple[str, ...]
    leads: bool
    aliases: tuple[str, ...] = ()
    """Further ways, which people said to mean this attendee."""


_LEADING = re.compile(
    r"\b(?:chair(?:man|woman|person)?|project manager|project lead|team lead|shift lead|president|foreman)\b"
)


def person_of(
    name: str, speaker: str | None, role: str | None, external: bool, aliases: Sequence[str] = ()
) -> Person:
    """An attendee with the short forms of the name that people say."""
    words = [w for w in re.split(r"[^\w'’-]+", name.lower()) if len(w) > 1]
    calls = [name.lower(), *words[:1], *(w for w in words[1:] if len(w) > 3)]
    leads = bool(role and _LEADING.search(role.lower()))
    heard = tuple(alias.lower() for alias in aliases)
    return Person(name, speaker, role, external, tuple(dict.fromkeys(calls)), leads, heard)


@dataclass(frozen=True)
class Roster:
    """Everybody who can own something, with look-up by what was said."""

    people: tuple[Person, ...]
    by_call: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_role: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_department: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_sound: dict[str, tuple[str, ...]] = field(default_factory=dict)
    by_speaker: dict[str, str] = field(default_factory=dict)

    def named(self, said: str) -> tuple[str, ...]:
        """Attendees that ``said`` (one or two lower-case words) may mean by name or short name."""
        found = self.by_call.get(said, ())
        if not found and len(said) >= 3:
            found = tuple(
                p.name
                for p in self.people
                if any(c.startswith(said) for c in p.calls[1:2])
                and said not in STOP
                and said not in EVERYDAY_WORDS
            )
        return found

    def sounds_like(self, said: str) -> tuple[str, ...]:
        """Attendees whose name sounds like ``said``; only to be asked where a name is expected."""
        if len(said) < 3 or (said in STOP and said not in EVERYDAY_WORDS):
            return ()
        hits: list[str] = []
        for key in sound_of(said):
            hits.extend(self.by_sound.get(key, ()) if len(key) > 1 else ())
        if not hits:
            hits = [p.name for p in self.people if _close(said, p.calls[0])]
        return tuple(dict.fromkeys(hits))

    def with_role(self, said: str) -> tuple[str, ...]:
        """Attendees with the spoken role."""
        return self.by_role.get(said, ())

    def of_department(self, said: str) -> tuple[str, ...]:
        """Attendees whose role is of that trade (*marketing* for a marketing expert)."""
        return self.by_department.get(said, ())

    def of_speaker(self, speaker: str | None) -> str | None:
        """Name of the attendee who speaks under this label."""
        return None if speaker is None else self.by_speaker.get(speaker, speaker)

    def person(self, name: str) -> Person | None:
        """The attendee of that name."""
        return next((p for p in self.people if p.name == name), None)

    def leads(self, name: str | None) -> bool:
        """Whether the role says that this attendee runs things."""
        person = self.person(name) if name else None
        return bool(person and person.leads)


EVERYDAY_WORDS = words_in("""
    mark will may hope grace rose joy art bill jack frank rob dawn max pat sue ray jean van don
    max march april june august summer the and man men how sam car dar ann tar all ram son ten
""")


def _close(said: str, name: str) -> bool:
    """One letter apart in names of at least five letters that begin alike."""
    if min(len(said), len(name)) < 5 or said[0] != name[0] or abs(len(said) - len(name)) > 1:
        return False
    left = 0
    while left < min(len(said), len(name)) and said[left] == name[left]:
        left += 1
    right = 0
    while right < min(len(said), len(name)) - left and said[-1 - right] == name[-1 - right]:
        right += 1
    return max(len(said), len(name)) - left - right <= 2


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    out: dict[str, list[str]] = {}
    for key, name in pairs:
        names = out.setdefault(key, [])
        if name not in names:
            names.append(name)
    return {k: tuple(v) for k, v in out.items()}


def _role_forms(role: str) -> set[str]:
    """Ways to say a role: whole, its part before a comma, its last words, its initials."""
    low = re.sub(r"[^\w\s,'’-]", " ", role.lower())
    whole = " ".join(low.replace(",", " ").split())
    head = " ".join(low.split(",")[0].split())
    words = head.split()
    forms = {whole, head, *(" ".join(words[i:]) for i in range(1, len(words)) if len(words) - i >= 2)}
    if len(words) >= 2:
        forms.add("".join(w[0] for w in words))
        if words[-1].endswith(("er", "or", "ist", "ant")) and len(words) >= 3:
            forms.add(f"{words[0]} {words[-1]}")
            forms.add(f"{words[-2]} specialist")
        if words[-1] in ("designer", "manager", "expert", "specialist", "executive"):
            forms.add(f"{words[0]} {words[-1]}")
            forms |= {f"{words[0]} {w}" for w in ("person", "guy", "executive", "expert", "specialist")}
    return {f for f in forms if len(f) > 1}


def _department(role: str) -> str:
    """What is left of a role without its last word: *marketing*, *user interface*."""
    words = role.lower().split(",")[0].split()
    titles = (
        "designer",
        "manager",
        "expert",
        "specialist",
        "executive",
        "engineer",
        "officer",
        "lead",
        "editor",
    )
    return " ".join(words[:-1]) if len(words) >= 2 and words[-1] in titles else ""


def roster_of(people: Sequence[Person], speakers: Sequence[str] = ()) -> Roster:
    """Attendees of the control list, and speakers who were heard but are not on it."""
    known = list(people)
    labels = {p.speaker for p in known if p.speaker} | {p.name for p in known}
    for speaker in speakers:
        if speaker not in labels:
            known.append(person_of(speaker, speaker, None, False))
    calls = _index((c, p.name) for p in known for c in (*p.calls, *p.aliases))
    roles = _index((f, p.name) for p in known if p.role for f in _role_forms(p.role))
    departments = _index((d, p.name) for p in known if p.role and (d := _department(p.role)))
    sounds = _index(
        (key, p.name) for p in known for key in sound_of(p.calls[1] if len(p.calls) > 1 else p.calls[0])
    )
    by_speaker = {label: p.name for p in known for label in (p.speaker, p.name) if label}
    return Roster(tuple(known), calls, roles, departments, sounds, by_speaker)


@dataclass(frozen=True, slots=True)
class Mention:
    """A person spoken of: token indices ``first`` to ``last`` (inclusive) of the clause."""

    first: int
    last: int
    names: tuple[str, ...]
    said: str
    by: str
    """``name``, ``role``, ``sound`` or ``outside`` (a capitalised name of nobody on the list)."""


def mentions_in(tokens: Sequence[Token], roster: Roster) -> tuple[Mention, ...]:
    """Names and roles of attendees spoken in a clause."""
    lows = [t.low[:-2] if t.low.endswith("'s") else t.low for t in tokens]
    found: list[Mention] = []
    index = 0
    while index < len(lows):
        mention = _mention_at(tokens, lows, index, roster)
        if mention is None:
            index += 1
        else:
            found.append(mention)
            index = mention.last + 1
    return tuple(found)


_DEPARTMENT_ACTS = re.compile(r"(?:will|you|you're|you'll|gonna|gets|is going|is gonna|they want|has to)\b")


def _mention_at(tokens: Sequence[Token], lows: list[str], index: int, roster: Roster) -> Mention | None:
    for width in (4, 3, 2, 1):
        if index + width > len(lows):
            continue
        said = " ".join(lows[index : index + width])
        names = roster.with_role(said)
        if names and (width > 1 or tokens[index].text.isupper()):
            return Mention(index, index + width - 1, names, said, "role")
        if width <= 2 and _DEPARTMENT_ACTS.match(" ".join(lows[index + width : index + width + 2])):
            names = roster.of_department(said)
            if names:
                return Mention(index, index + width - 1, names, said, "role")
        if width <= 2 and (width == 2 or _may_be_name(tokens, index)):
            names = roster.by_call.get(said, ())
            if names:
                return Mention(index, index + width - 1, names, said, "name")
    word = tokens[index].text
    common = lows[index] in EVERYDAY_WORDS and not _may_be_name(tokens, index)
    if word[0].isupper() and len(word) > 2 and lows[index] not in STOP and not common:
        names = roster.named(lows[index])
        if names:
            return Mention(index, index, names, lows[index], "name")
    return None


_DATE_BEFORE = re.compile(
    r"^(?:of|by|in|until|till|before|early|late|next|this|last|since|from|"
    r"\d+(?:st|nd|rd|th)?|first|second|third|\w+(?:[fhnrx]|tie)th)$"
)


def _may_be_name(tokens: Sequence[Token], index: int) -> bool:
    """A name that is also an everyday word (*Will*, *May*) needs its capital inside a sentence."""
    token = tokens[index]
    if (
        token.low in ("april", "may", "june", "august", "summer")
        and index
        and _DATE_BEFORE.search(tokens[index - 1].low)
    ):
        return False
    if token.low not in EVERYDAY_WORDS and token.low not in STOP:
        return True
    if not token.text[0].isupper():
        return False
    opens = index == 0 or tokens[index - 1].ends_clause
    return not opens or token.comma or _acts(tokens, index)


_ACTS = re.compile(
    r"(?:will|has|is|was|gets|takes|does|did|had|and|wants|needs|should|shall|can|could|would|says|said|to|please|just|who)$"
)


def _acts(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word that opens a sentence is somebody who does something (*Mark has it*, not *Mark the boxes*)."""
    if index + 1 == len(tokens) or tokens[index].ends_clause:
        return tokens[index].low not in STOP
    after = tokens[index + 1]
    acts = bool(_ACTS.match(expand(after.text).split()[0])) or after.low.endswith(("'s", "'ll", "'d"))
    return acts or (after.low == "may" and not after.text[0].isupper())
