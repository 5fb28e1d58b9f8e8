"""Controlled corruptions of items that hold: each makes one that does not, in one known way.

A corruption that would leave the item true (another word for the same day, a name that was said as well) is not made:
each function checks that and gives None.
"""

import datetime as dt
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from models.verifier import words as w
from models.verifier.features import Case, Heard, Item

Corruption = Callable[[Case, random.Random, Sequence[Case]], Case | None]
"""Takes a case that holds, chance, and other cases of the same meeting to borrow from."""

_NUMBER_WORDS: Final = w.listed(
    """two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
    ninety"""
)
_INVENTED: Final = (
    "Order new chairs for the reception", "Move the server room to the second floor", "Raise the entry fee for visitors",
    "Hire a translator for the Lisbon office", "Cancel the insurance on the old van", "Write to the mayor about the bridge",
    "Paint the corridor green", "Print four hundred leaflets for the fair", "Replace the coffee machine on the third floor",
    "Ask the bank for another account", "Sell the piano in the hall", "Start the newsletter again in spring",
)  # fmt: skip


def owner_swapped(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """Somebody else is made the owner, who neither speaks of it nor is named."""
    item = case.item
    if item.kind != "action_item" or item.owner is None:
        return None
    speaking = {case.name_of(h.speaker) for h in case.evidence if w.COMMITS.search(w.plain(h.text))}
    said = " ".join(w.plain(h.text) for h in case.evidence).split()
    free = [
        name
        for name in case.attendees
        if name != item.owner and name not in speaking and not set(w.plain(name).split()) & set(said)
    ]
    return _with(case, owner=chance.choice(free)) if free else None


def date_moved(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """The due date is another day; its words stay."""
    due = case.item.due
    if due is None or not case.item.due_text or case.meeting_date is None:
        return None
    days = [
        n
        for n in (-7, -4, -3, -2, -1, 1, 2, 3, 4, 5, 7, 14)
        if due + dt.timedelta(days=n) >= case.meeting_date
    ]
    if w.due_matches(due, case.item.due_text, case.meeting_date) is None:
        return None
    moved = due + dt.timedelta(days=chance.choice(days))
    if w.due_matches(moved, case.item.due_text, case.meeting_date) is not False:
        return None
    return _with(case, due=moved)


def number_changed(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """A number in the text is another one that nobody said."""
    said = frozenset().union(*(w.numbers(h.text) for h in case.evidence))
    places = [t for t in w.tokens(case.item.text) if w.numbers(t.text)]
    if not places:
        return None
    token = chance.choice(places)
    if token.text[0].isdigit():
        digits = re.sub(
            r"\d", lambda m: str((int(m.group()) + chance.randint(1, 8)) % 10 or 1), token.text, count=1
        )
        new = digits
    else:
        free = [word for word in _NUMBER_WORDS if word != token.low and not w.numbers(word) & said]
        if not free:
            return None
        new = chance.choice(free)
    if w.numbers(new) <= said or w.numbers(new) == w.numbers(token.text):
        return None
    return _with(case, text=case.item.text[: token.first] + new + case.item.text[token.last :])


def negation_changed(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """A *not* goes, or comes where none was said."""
    text = case.item.text
    match = re.search(r"(?i)\b(?:do not|don't|will not|won't|not|no longer|never|without)\s+", text)
    if match:
        changed = text[: match.start()] + text[match.end() :]
        return _with(case, text=changed[:1].upper() + changed[1:]) if changed.strip() else None
    if case.item.kind in ("open_question", "answered_question"):
        return None
    verb = re.search(r"(?i)\b(?:is|are|will|can|should|must|shall)\b", text)
    changed = (
        f"{text[: verb.end()]} not{text[verb.end() :]}" if verb else f"Do not {text[:1].lower()}{text[1:]}"
    )
    return _with(case, text=changed)


def question_as_decision(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """A question that nobody answered is told as a decision or a task."""
    if case.item.kind != "open_question":
        return None
    text = re.sub(
        r"(?i)^(?:so |and |but )*(?:who (?:is going to|will|can)|should we|shall we|do we|can we|are we going to|will we|"
        r"what about|how about|is it|are we|does it|could we)\s+", "", case.item.text.rstrip(" ?"),
    )  # fmt: skip
    kind = "decision" if chance.random() < 0.7 else "action_item"
    return _with(case, kind=kind, text=text[:1].upper() + text[1:] if text else "")


def neighbour_evidence(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """The evidence is what was said beside it."""
    near = [h for h in (*case.before[-4:], *case.after[:4]) if len(w.content(h.text)) >= 3]
    near = [h for h in near if not set(w.content(case.item.text)) & set(w.content(h.text))]
    return replace(case, evidence=(chance.choice(near),)) if near else None


def item_invented(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """The text is of something that nobody here spoke of."""
    texts = [*_INVENTED, *(o.item.text for o in others if o.item.kind == case.item.kind)]
    said = {s for h in (*case.before, *case.evidence, *case.after) for s in w.content(h.text)}
    strange = [t for t in texts if len(set(w.content(t)) & said) <= len(set(w.content(t))) // 4]
    return _with(case, text=chance.choice(strange)) if strange else None


def half_sentence(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """The text breaks off in its middle, so that what it is about is gone."""
    mine = w.tokens(case.item.text)
    if len(mine) < 6:
        return None
    keep = mine[: max(2, len(mine) // 2)]
    kept, whole = len(w.content(case.item.text[: keep[-1].last])), len(w.content(case.item.text))
    if keep[-1].ends or whole - kept < max(2, whole // 3):
        # At a comma it may be whole, and with little gone it may still say what was meant.
        return None
    return _with(case, text=case.item.text[: keep[-1].last])


def name_changed(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """A person named inside the text is another one."""
    said = {word for h in case.evidence for word in w.plain(h.text).split()}
    for token in w.tokens(case.item.text)[1:]:
        for name in case.attendees:
            first = name.split()[0]
            if token.text == first:
                free = [
                    o.split()[0]
                    for o in case.attendees
                    if w.plain(o.split()[0]) not in said and o != case.item.owner
                ]
                if not free:
                    return None
                new = chance.choice(free)
                return _with(case, text=case.item.text[: token.first] + new + case.item.text[token.last :])
    return None


def taken_back(case: Case, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """Somebody takes it back a little later."""
    if case.item.kind not in ("decision", "action_item"):
        return None
    stems = [t.text for t in w.tokens(case.item.text) if t.low not in w.STOP]
    if len(stems) < 2:
        return None
    about = " ".join(stems[-2:])
    how = chance.choice((
        f"Actually, scratch that about the {about}.", f"On second thoughts, forget the {about}, we leave it.",
        f"No, sorry, the {about} thing, I take that back.", f"Can we cancel the {about}? It is not needed any more.",
        f"I changed my mind about the {about}, never mind.",
    ))  # fmt: skip
    speaker = case.evidence[-1].speaker
    back = Heard("added-1", speaker, how)
    agreed = Heard("added-2", None, "Okay, fine.")
    return replace(case, after=(*case.after[: chance.randint(0, 2)], back, agreed, *case.after[:2]))


KINDS: Final[Mapping[str, Corruption]] = {
    "owner_swapped": owner_swapped,
    "date_moved": date_moved,
    "number_changed": number_changed,
    "negation_changed": negation_changed,
    "question_as_decision": question_as_decision,
    "neighbour_evidence": neighbour_evidence,
    "item_invented": item_invented,
    "half_sentence": half_sentence,
    "name_changed": name_changed,
    "taken_back": taken_back,
}
UNSEEN: Final = frozenset({"number_changed", "name_changed", "half_sentence"})
"""Kinds that training never sees; what they cost is measured apart."""


def corrupted(case: Case, kind: str, chance: random.Random, others: Sequence[Case]) -> Case | None:
    """The case with one thing made untrue; None where this kind does not apply or would leave it true."""
    return KINDS[kind](case, chance, others)


def _with(case: Case, **change: object) -> Case | None:
    item: Item = replace(case.item, **change)  # type: ignore[arg-type]
    return replace(case, item=item) if item != case.item and item.text.strip() else None
