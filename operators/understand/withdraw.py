"""What an utterance takes back, or says to be off, of the items before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from operators.language.days import named_days
from operators.language.rules import Hit
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.birth import SAYS_LITTLE
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, TIME_STEMS
from operators.understand.state import MAIN, Draft, State, piece

YES_NO: Final = re.compile(r"(?:do|does|did|is|are|was|were|will|has|have|can)\b", re.IGNORECASE)
"""What a question opens with that is answered by yes or no."""
_OWN_WITHDRAWAL = frozenset(
    ("i_will_not_after_all", "then_i_will_not", "only_joking", "take_me_off", "away_that_day", "backing_out")
)
_OFF_THE_LIST = frozenset(("take_me_off",))
_SPOKEN_OF = 3
"""Utterances before a *take me off* that may say what of."""
_NAMES_ITS_THING = frozenset(
    (
        "then_no_x",
        "that_is_off",
        "forget_the_x",
        "drop_the_x",
        "cannot_do_the_x_then",
        "the_x_is_out",
        "kill_that_day",
        "throw_the_x_out",
        "so_x_is_out",
    )
)
_DONE_AWAY = frozenset(("forget_the_x", "drop_the_x", "kill_that_day", "throw_the_x_out"))
"""Ways of which an item may speak itself: *cancel the coach* says a task to cancel it once more."""
_SAYS_NO = frozenset(("then_no_x", "the_x_is_out"))
_DENIES = re.compile(r"\b(?:no|not|never|without|cannot)\b|n['\u2019]t\b")
_MUST_NAME = frozenset(("the_x_is_out", "kill_that_day", "throw_the_x_out", "so_x_is_out"))
_NAMED_IN = 4
"""Words in which a thing is named; what follows is why."""
_ABOUT_DECISIONS = frozenset(("back_to_the_old", "so_x_is_out"))
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
    sayings = tuple(_saying(c, h) for c, h in hits if not _says_nothing(c, h))
    just_done = any(d.withdrawn and heard.index - d.last_index <= 2 for d in drafts)
    best = _best_taken_back(heard, drafts, sayings, said, look_back, just_done)
    if best is None and names & _OFF_THE_LIST:
        # *Take me off again*: off what was spoken of just before, however long ago it was taken on.
        said = said.union(*(c.clause.stems for h in state.recent[-_SPOKEN_OF:] for c in h.clauses))
        best = _best_taken_back(heard, drafts, sayings, said, look_back, just_done)
    if best is None:
        return False
    near = heard.index - drafts[best[1]].last_index <= ANYONE_REACH and not names.isdisjoint(_PLAIN)
    if best[0] <= (0.2 if near else 0.4):
        return False
    _spread(heard, drafts, drafts[best[1]], hits[0][1].rule.name)
    return True


def _spread(heard: Heard, drafts: list[Draft], target: Draft, name: str) -> None:
    """Take back one item and all others that are made of the same talk; no other rests on that talk any longer."""
    spots = {p.quote.utterance_id for p in target.evidence if p.weight >= 2}
    made_of = {p.quote.utterance_id for p in target.evidence if p.weight >= MAIN}
    gone: set[str] = set()
    for place, draft in enumerate(drafts):
        if draft is not target:
            if draft.family == "question" or draft.withdrawn:
                continue
            alike = len(draft.stems & target.stems) >= max(1, 0.5 * min(len(draft.stems), len(target.stems)))
            same_place = any(p.quote.utterance_id in spots and p.weight >= 1 for p in draft.evidence)
            near = abs(draft.first_index - target.first_index) <= 4
            same = (alike and (same_place or near)) or (SAYS_LITTLE in draft.reasons and same_place)
            if not same and not (_main(draft) <= made_of and (draft.family == "decision" or draft.by_model)):
                continue
        gone |= {p.quote.utterance_id for p in draft.evidence if p.weight >= 2}
        drafts[place] = draft.grown(0.0, name, piece(heard, 2.0), withdrawn=True)
    for place, draft in enumerate(drafts):
        if draft.family == "decision" and not draft.withdrawn and not _main(draft) & gone:
            drafts[place] = _without(draft, gone)


def _main(draft: Draft) -> set[str]:
    return {p.quote.utterance_id for p in draft.evidence if p.weight >= MAIN}


def _without(draft: Draft, spots: set[str]) -> Draft:
    """A decision that no longer rests on talk that was taken back."""
    kept = tuple(p for p in draft.evidence if p.quote.utterance_id not in spots or p.weight < 1)
    if len(kept) in (0, len(draft.evidence)):
        return draft
    gone = {p.index for p in draft.evidence} - {p.index for p in kept}
    judged = tuple(pair for pair in draft.judged if pair[0] not in gone)
    return replace(draft, evidence=kept, judged=judged)


@dataclass(frozen=True, slots=True)
class _Saying:
    """One way in which an utterance takes something back: by what cue, and what it calls by its name."""

    name: str
    thing: frozenset[str]
    least: float
    """Share of the named words that an item must have."""
    verb: frozenset[str] = frozenset()
    """What is done to it, if an item to do just that is meant and not taken back."""


def _saying(clause: HeardClause, hit: Hit) -> _Saying:
    norm = clause.clause.norm
    if hit.rule.name in _NAMES_ITS_THING or hit.rule.name in _MUST_NAME:
        if hit.task is None:
            return _Saying(hit.rule.name, stems(norm[hit.first : hit.last]) - LIGHT - _OFF_WORDS, 0.34)
        words = " ".join(_REASON.split(norm[hit.task[0] : hit.task[1]])[0].split()[:_NAMED_IN])
        thing = stems(words) - LIGHT - _OFF_WORDS
        least = 0.51 if hit.rule.name == "then_no_x" else 0.5
        away = hit.rule.name in _DONE_AWAY
        verb = stems(norm[hit.first : hit.task[0]]) - LIGHT if away else frozenset()
        return _Saying(hit.rule.name, thing - TIME_STEMS or thing, least, verb & _DROPPING)
    if hit.rule.name == "i_will_not_after_all" and hit.task is not None:
        return _Saying(hit.rule.name, stems(norm[hit.task[0] : hit.task[1]]) - LIGHT - _OFF_WORDS, 0.3)
    object_ = _OBJECT.search(norm, hit.first) if hit.rule.name in _PLAIN else None
    thing = stems(_REASON.split(object_["thing"])[0]) - _OFF_WORDS if object_ else frozenset()
    return _Saying(hit.rule.name, thing, 0.3)


def _says_nothing(clause: HeardClause, hit: Hit) -> bool:
    """*No wonder*, *Not announced to me either?*, *because it's off*, *I always forget that* take nothing back."""
    norm = clause.clause.norm
    if hit.rule.name == "scratch_that":
        before, cue = norm[: hit.first].split(), norm[hit.first : hit.last]
        if cue.startswith(("that ", "it ", "this ")):
            return "because" in before or bool(stems(" ".join(before)) - _OFF_WORDS) or " off a " in cue
        return cue.startswith("forget ") and bool(before) and before[-1] in _WHO_FORGETS
    if hit.rule.name != "then_no_x" or hit.task is None:
        return False
    first = norm[hit.task[0] : hit.task[1]].split(" ")[0]
    return clause.clause.question_mark or first in _IDIOMS


def _best_taken_back(
    heard: Heard,
    drafts: Sequence[Draft],
    sayings: Sequence[_Saying],
    said: frozenset[str],
    look_back: int,
    just_done: bool,
) -> tuple[float, int] | None:
    """How well what is most likely taken back fits, and its place."""
    best: tuple[float, int] | None = None
    for place in range(len(drafts) - 1, -1, -1):
        for saying in sayings:
            value = _taken_back_value(heard, drafts[place], saying, said, look_back, just_done)
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
    heard: Heard, draft: Draft, saying: _Saying, said: frozenset[str], look_back: int, just_done: bool
) -> float | None:
    """How well a draft fits as what is taken back; None if it cannot be."""
    names = frozenset((saying.name,))
    if draft.family == "question" or draft.withdrawn or draft.mode == "refused":
        return None
    if draft.support < 0.3 and not draft.by_model:
        return None
    own = names <= _OWN_WITHDRAWAL
    if own and (draft.claim.kind not in ("self", "you", "named") or not _owns(heard, draft)):
        return None
    if names <= _ABOUT_DECISIONS and draft.family != "decision":
        return None
    if saying.verb & draft.stems:
        return None  # *I'll cancel the coach.* *Yes, cancel the coach.* says it once more
    if names <= _AWAY_THEN and draft.family == "action" and _other_day(heard):
        return None  # *So not Friday, I'm away all day. Saturday.*
    if names <= {"then_no_x"} and draft.family == "action" and _only_a_day(heard):
        return None  # *So not Friday* is said of the date
    if names <= _SAYS_NO and draft.family == "decision" and _DENIES.search(draft.text.lower()):
        return None  # *No dogs in the hall.* *Yes, no dogs.* says it once more
    age = heard.index - draft.last_index
    timed = stems(draft.due.phrase.words) if draft.due else frozenset()
    common = len((draft.stems | timed) & said)
    if saying.thing:
        by_day = saying.thing <= TIME_STEMS or names <= _OWN_WITHDRAWAL
        known = draft.stems | timed if by_day else draft.stems
        if len(saying.thing & known) < saying.least * len(saying.thing):
            return None
    elif names <= _MUST_NAME or (common == 0 and names <= _NAMES_ITS_THING):
        return None
    told = any(name in draft.claim.people for name in heard.called)
    mine = draft.speaker == heard.spoken.speaker or told or (own and _owns(heard, draft))
    reach = (
        ANYONE_REACH
        if names
        <= {"i_will_not_after_all", "then_i_will_not", "only_joking", "away_that_day", "back_to_the_old"}
        else look_back
    )
    if common == 0 and age > reach:
        return None
    if common == 0 and own and _brought_up_here(heard, draft):
        return None  # *Then a playlist. I'm not making it.*
    if common == 0 and just_done and (not mine or names == {"changed_my_mind"}):
        return None  # *never mind* to somebody who has just taken something back
    # Who scratches something by its name may mean what was said long ago.
    plainly = ((draft.stems | timed) & said) - LIGHT and not names.isdisjoint(_PLAIN)
    plainly = plainly or (bool(saying.thing) and not names.isdisjoint(_NAMES_ITS_THING))
    named = plainly or (own and mine and (draft.stems & said) - LIGHT - TIME_STEMS)
    long_ago = min(age * 0.06, 0.5) if named else age * 0.06
    return common + (0.8 if mine else 0.0) + min(draft.support, 1.0) * 0.5 - long_ago


def _brought_up_here(heard: Heard, draft: Draft) -> bool:
    """Whether what is not done is a thing that the clause before it, and nothing else, has named (*a*, *another*)."""
    norms = [c.clause for c in heard.clauses]
    for before, clause in pairwise(norms):
        if _NOT_IT.search(clause.norm) and _NEW_THING.match(before.norm):
            return not before.stems & draft.stems
    return False


_NOT_IT = re.compile(r"\bi (?:am|will) not (?:[\w'-]+ )?(?:it|them|that|one)\b")
_NEW_THING = re.compile(
    r"^(?:(?:then|so|or|well|and|okay|but|maybe|perhaps) )*(?:an?|another|some) [\w' -]{2,30}$"
)
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


_REASON = re.compile(r" (?:because|since|it|that|this|i|we|they|he|she|there|and|but|then)\b")
_OFF_WORDS = stems(
    "dead off scrap scratch scrapped forget cancel cancelled drop dropped cross shelve shelved called call need needed "
    "skip park bin axe ditch lose mind never leave list agenda plan programme table happen happening wait idea better "
    "then okay right well fine oh no not let after all any more now time necessary wanted longer please again until next year"
)


_OBJECT = re.compile(
    r"(?:\b(?:forget|scratch|scrap|strike|cancel|drop|undo|reverse|withdraw|withdrawing|take|taking|retract|retracting)"
    r"(?: back)?|\babout|\bmentioned) (?:my|our|the) (?P<thing>(?!one\b|idea\b|plan\b|last\b|name\b)[\w'@~-]+(?: [\w'@~-]+){0,2})"
)
"""What is taken back by its name (*forget my sticker*, *what I said about the harp*)."""
_DROPPING = stems("axe bin cancel chuck ditch drop kill lose nix park scrap shelve skip strike throw toss")
_WHO_FORGETS = words_in("i we they people always often never sometimes")
_IDIOMS = words_in("""
    answer chance comment difference dissent doubt harm hurry luck matter news objection objections point reply rush
    squeals surprise trouble wonder
""")


def _owns(heard: Heard, draft: Draft) -> bool:
    return heard.spoken.speaker in draft.claim.people
