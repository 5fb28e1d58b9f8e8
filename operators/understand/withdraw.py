"""What an utterance takes back, or says to be off, of the items before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from operators.language.days import named_days
from operators.language.text import stems
from operators.understand.birth import SAYS_LITTLE
from operators.understand.hear import Heard
from operators.understand.merge import LIGHT, TIME_STEMS
from operators.understand.state import Draft, State, piece

YES_NO: Final = re.compile(r"(?:do|does|did|is|are|was|were|will|has|have|can)\b", re.IGNORECASE)
"""What a question opens with that is answered by yes or no."""
_OWN_WITHDRAWAL = frozenset(
    ("i_will_not_after_all", "then_i_will_not", "only_joking", "take_me_off", "away_that_day", "backing_out")
)
_OFF_THE_LIST = frozenset(("take_me_off",))
_SPOKEN_OF = 3
"""Utterances before a *take me off* that may say what of."""
_NAMES_ITS_THING = frozenset(
    ("then_no_x", "that_is_off", "forget_the_x", "drop_the_x", "cannot_do_the_x_then", "the_x_is_out")
)
_ABOUT_DECISIONS = frozenset(("back_to_the_old",))
_PLAIN = frozenset(
    (
        "scratch_that",
        "unsaid",
        "let_us_not",
        "drop_it",
        "changed_my_mind",
        "not_needed_any_more",
        "not_after_all",
    )
)
_NEW_MATTER = frozenset(("commit", "promise", "decide", "assign"))
_PUT_SOMEWHERE = re.compile(r"\bdrop (?:[\w'-]+ ){1,4}?(?:at|with|to|into|onto|outside|behind|home)\b")
"""*Drop the keys at the desk* hands something over."""
ANYONE_REACH = 4
"""Turns after which a bare *scratch that* by somebody else no longer means an item."""


def take_back(heard: Heard, drafts: list[Draft], state: State, look_back: int) -> bool:
    """Mark what is taken back; true if there was anything."""
    hits = [
        (c, h)
        for c in heard.clauses
        for h in c.hits
        if h.rule.signal == "withdraw"
        and not (h.rule.name in _NAMES_ITS_THING and _PUT_SOMEWHERE.search(c.clause.norm))
    ]
    if not hits or any("unknown" in c.signals for c, _ in hits):
        return False
    said = frozenset().union(*(c.clause.stems for c in heard.clauses))
    _no_longer_asked(heard, drafts, said, look_back)
    names = frozenset(h.rule.name for _, h in hits)
    moved = any(h.rule.name == "make_it_another_day" for c in heard.clauses for h in c.hits)
    if names == {"away_that_day"} and (moved or not _NEW_MATTER.isdisjoint(heard.signals())):
        return False
    supposed = state.recent and any("hypothetical" in c.signals for c in state.recent[-1].clauses)
    if supposed and names <= {"let_us_not"} and state.recent[-1].spoken.speaker != heard.spoken.speaker:
        return False  # *If we had a horse ...* *Let's not.*
    just_done = any(d.withdrawn and heard.index - d.last_index <= 2 for d in drafts)
    best = _best_taken_back(heard, drafts, names, said, look_back, just_done)
    if best is None and names & _OFF_THE_LIST:
        # *Take me off again*: off what was spoken of just before, however long ago it was taken on.
        said = said.union(*(c.clause.stems for h in state.recent[-_SPOKEN_OF:] for c in h.clauses))
        best = _best_taken_back(heard, drafts, names, said, look_back, just_done)
    if best is None:
        return False
    near = heard.index - drafts[best[1]].last_index <= ANYONE_REACH and not names.isdisjoint(_PLAIN)
    if best[0] <= (0.2 if near else 0.4):
        return False
    target = drafts[best[1]]
    spots = {p.quote.utterance_id for p in target.evidence if p.weight >= 2}
    for place, draft in enumerate(drafts):
        alike = len(draft.stems & target.stems) >= max(1, 0.5 * min(len(draft.stems), len(target.stems)))
        same_place = any(p.quote.utterance_id in spots and p.weight >= 1 for p in draft.evidence)
        near = abs(draft.first_index - target.first_index) <= 4
        same = (alike and (same_place or near)) or (SAYS_LITTLE in draft.reasons and same_place)
        if draft is target or (draft.family != "question" and not draft.withdrawn and same):
            drafts[place] = draft.grown(0.0, hits[0][1].rule.name, piece(heard, 2.0), withdrawn=True)
    return True


def _best_taken_back(
    heard: Heard,
    drafts: Sequence[Draft],
    names: frozenset[str],
    said: frozenset[str],
    look_back: int,
    just_done: bool,
) -> tuple[float, int] | None:
    """How well what is most likely taken back fits, and its place."""
    best: tuple[float, int] | None = None
    for place in range(len(drafts) - 1, -1, -1):
        value = _taken_back_value(heard, drafts[place], names, said, look_back, just_done)
        if value is not None and (best is None or value > best[0]):
            best = (value, place)
    return best


def _no_longer_asked(heard: Heard, drafts: list[Draft], said: frozenset[str], look_back: int) -> None:
    """*Then no party* answers *Are we still having the party?*"""
    for place, draft in enumerate(drafts):
        asked = draft.family == "question" and not draft.withdrawn and not draft.solved
        if not asked or heard.index - draft.last_index > look_back or not YES_NO.match(draft.text):
            continue
        if len(draft.stems & said) >= max(1.0, 0.6 * len(draft.stems)):
            drafts[place] = draft.grown(0.1, "answered", piece(heard, 2.0), mode="solved", solved=True)


def _taken_back_value(
    heard: Heard, draft: Draft, names: frozenset[str], said: frozenset[str], look_back: int, just_done: bool
) -> float | None:
    """How well a draft fits as what is taken back; None if it cannot be."""
    if draft.family == "question" or draft.withdrawn or draft.mode == "refused":
        return None
    if draft.support < 0.3 and not draft.by_model:
        return None
    own = names <= _OWN_WITHDRAWAL
    if own and (draft.claim.kind not in ("self", "you", "named") or not _owns(heard, draft)):
        return None
    if names <= _ABOUT_DECISIONS and draft.family != "decision":
        return None
    if names <= _AWAY_THEN and draft.family == "action" and _other_day(heard):
        return None  # *So not Friday, I'm away all day. Saturday.*
    if names <= {"then_no_x"} and draft.family == "action" and _only_a_day(heard):
        return None  # *So not Friday* is said of the date
    age = heard.index - draft.last_index
    timed = stems(draft.due.phrase.words) if draft.due else frozenset()
    common = len((draft.stems | timed) & said)
    if names <= {"the_x_is_out"} and not ((draft.stems | timed) & said) - LIGHT:
        return None
    told = any(name in draft.claim.people for name in heard.called)
    mine = draft.speaker == heard.spoken.speaker or told or (own and _owns(heard, draft))
    reach = (
        ANYONE_REACH
        if names
        <= {"i_will_not_after_all", "then_i_will_not", "only_joking", "away_that_day", "back_to_the_old"}
        else look_back
    )
    if common == 0 and (names <= _NAMES_ITS_THING or age > reach):
        return None
    if common == 0 and just_done and (not mine or names == {"changed_my_mind"}):
        return None  # *never mind* to somebody who has just taken something back
    # Who scratches something by its name may mean what was said long ago.
    plainly = ((draft.stems | timed) & said) - LIGHT and not names.isdisjoint(_PLAIN)
    plainly = plainly or (not names.isdisjoint(_NAMES_ITS_THING) and _named_by(heard, draft.stems, timed))
    named = plainly or (own and mine and (draft.stems & said) - LIGHT - TIME_STEMS)
    long_ago = min(age * 0.06, 0.5) if named else age * 0.06
    return common + (0.8 if mine else 0.0) + min(draft.support, 1.0) * 0.5 - long_ago


_AWAY_THEN = frozenset(("away_that_day", "then_no_x", "i_will_not_after_all"))


def _other_day(heard: Heard) -> bool:
    """Whether a day is put in the place of another."""
    days = [d for c in heard.clauses for d in named_days(c.clause.norm, c.clause.question_mark)]
    return any(d.dropped for d in days) and any(not d.dropped for d in days)


def _only_a_day(heard: Heard) -> bool:
    """Whether what is said not to be is a day and nothing else."""
    for clause in heard.clauses:
        for hit in clause.hits:
            if hit.rule.name == "then_no_x" and hit.task is not None:
                thing = stems(clause.clause.norm[hit.task[0] : hit.task[1]])
                return thing <= TIME_STEMS and " not " in f" {clause.clause.norm[: hit.task[0]]}"
    return False


def _named_by(heard: Heard, known: frozenset[str], timed: frozenset[str]) -> bool:
    """Whether the very thing that is said to be off is what an item is about."""
    for clause in heard.clauses:
        for hit in clause.hits:
            if hit.rule.name not in _NAMES_ITS_THING:
                continue
            first, last = hit.task or (hit.first, hit.last)
            thing = stems(_REASON.split(clause.clause.norm[first:last])[0]) - LIGHT - _OFF_WORDS
            mine = known | timed if thing <= TIME_STEMS else known
            if thing and len(thing & mine) * 2 > len(thing):
                return True
    return False


_REASON = re.compile(r" (?:because|since|it|that|this|i|we|they|he|she|there|and|but|then)\b")
_OFF_WORDS = stems(
    "dead off scrap scratch scrapped forget cancel cancelled drop dropped cross shelved called call"
)


def _owns(heard: Heard, draft: Draft) -> bool:
    return heard.spoken.speaker in draft.claim.people
