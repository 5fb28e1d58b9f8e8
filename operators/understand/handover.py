"""Whoever has a task gives it away: to somebody who offered, to whoever is told or asked, or to nobody yet."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, NOT_BY_ASKED, TIME_STEMS, said_in
from operators.understand.state import Claim, Draft, State, later_due, owners_of, piece, piece_of
from operators.understand.topic import ANY_TASK, THINGS, asks_else, speaks_of_else

HANDED_OVER: Final = "handed over"
AFTER_ALL: Final = "by another after all"
PASSED_ON: Final = "passed on"
_REACH: Final = 3
_LATER_REACH: Final = 60
_LEADS_IN: Final = (
    r"^(?:(?:oh|well|so|then|and|but|yes|no|okay|right|fine|all right|sure|hm|go on|of course|ah|in that case|"
    r"@) )*"
)
_WOULD_YOU: Final = re.compile(
    _LEADS_IN
    + r"(?:would|could|do|will|can) you(?: (?:really|honestly|do (?:it|that)|take (?:it|that)|mind))*$"
)
_GLAD: Final = re.compile(
    r"\b(?:please|bless you|thanks?|thank you|weight off|lovely|(?:an? )?(?:angel|saint|star|hero)|grateful|kind|"
    r"brilliant|wonderful|perfect|marvellous|that would (?:help|be)|love you for)\b"
)
_YOU_DO: Final = re.compile(
    _LEADS_IN
    + r"(?:you(?: had better| would best| would better)? (?:do|write|take|handle|make|send|ring|call|ask|order|book|"
    r"fetch|print) (?:it|that|them|this)|you then|(?:over to|up to|down to) you)(?: (?:then|instead|please|by|before|"
    r"on|till|@)\b.*)?$"
)
_YOU_DO_NAMED: Final = re.compile(
    _LEADS_IN + r"you (?:had better|would best|would better) (?:do|take|have|write|handle|make) "
)
_BIDS: Final = re.compile(
    r"\bi (?:would|could|can|will|had better|always|might|am happy|do not mind)\b|\bfrom me\b|\blet me\b|\bmyself\b|"
    r"\bi (?:\w+ ){1,3}anyway\b"
)
"""What somebody says who would do it, or has a reason to."""
_FOR_YOU: Final = re.compile(r"\bi (?:would|could|can|will) [\w'-]+ you\b")
"""What somebody offers to do for another is not the other's task (*I can lend you a pen for that*)."""
_ASKS_ON: Final = re.compile(
    r"(?:\b(?:can|could|would|will|might) (?:you|[@~])|(?:^|[@~] |\b(?:so|then|and|okay|maybe|perhaps) )you"
    r"(?: had better| would better| could| can| should| will)?|\blet [@~])"
    r"(?: (?:just|please|maybe|perhaps|not|possibly|then|instead|mind))* (?P<verb>[a-z]+)(?: (?:over|on|care of))? (?P<rest>.+)$"
)
"""How somebody asks another to do what is spoken of (*So Jun, you finish it?*, *Bo, could you take the texts?*)."""
_TAKES: Final = words_in("do doing take taking finish handle complete cover")
_BY_THE_WAY: Final = stems("instead please maybe perhaps actually then now rather straight quickly")
_GIVING: Final = stems(
    "love like rather sooner come came write wrote handle sort mind glad happy easily gladly could would better me anyway"
)
"""Words of somebody who would do what is spoken of, which name no work of their own."""
_PART_OF_IT: Final = re.compile(
    r"\b(?:half|part|some|rest|other|both|too|also|as well|again|help|any of|one of|with (?:me|us|him|her|@)|to me)\b"
)
"""What gives another a share of a task, or the same beside it."""
_A_REASON: Final = re.compile(_LEADS_IN + r"(?:i|you|he|she|@|~|actually @)\b")
_TAKES_IT: Final = re.compile(
    r"^(?:(?:and|so|well|oh|hm) )*(?:yes|yeah|okay|sure|fine|right|all right|gladly|happily|of course|no problem|will do|"
    r"consider it done|why not|go on|i (?:can|will|could)|with pleasure|happy to)\b|\b(?:is|are)(?: both| all)? (?:with|on) me\b"
)
_TAKES_NOT: Final = re.compile(
    r"\b(?:can not|could not|will not|not me|not really|would rather|sorry|too much|"
    r"no(?! problem| worries| trouble)|(?:@|he|she) (?:will|has|does|can|is))\b"
)
_NOT_ME: Final = re.compile(r"^(?:(?:well|oh|okay|right) )*(?:so|then) (?:it is )?not me\b")
_WAS: Final = re.compile(r"\bi (?:was|came|had|went|did)\b")
_MYSELF_AFTER_ALL: Final = re.compile(
    r"\bi (?:will|shall|am going to|have to|had better|would sooner|"
    r"would rather)(?: have to)? (?P<what>[\w' -]{2,40}?) myself\b(?! (?:a|an|the|some|my|to|for|with)\b)"
)
_IF: Final = re.compile(r"^(?:(?:and|but|so|well) )*(?:if|unless|in case|suppose)\b")
_IT: Final = re.compile(
    r"\b(?:it|them|those|these)\b|\b(?:that|this)\b(?= (?:come|came|be|is|to|should|would|for you|myself|instead|too|then|"
    r"anyway|off you)\b|$)"
)


def hand_over(heard: Heard, drafts: list[Draft], state: State) -> bool:
    """Who has a task thanks somebody who would do it, or tells them to (*Would you? Bless you.*, *Okay, you write it.*)."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    before = state.recent[-1] if state.recent else None
    if me is None or before is None or before.spoken.speaker is None or heard.words > 30:
        return False
    if _passed_on(heard, drafts, me, state):
        return True
    other = state.roster.of_speaker(before.spoken.speaker) or before.spoken.speaker
    if other == me or any(c.signals & {"joke", "reported"} for c in heard.clauses[:1]):
        return False
    place = _gives(heard, before)
    at = _mine(heard, drafts, before, me, state) if place is not None else None
    if at is None:
        place, at = _tells(heard, drafts, me, state)
    if at is None or place is None:
        return False
    dues = [d for i in range(place, len(heard.clauses)) if (d := said_due(heard, i))]
    draft = drafts[at]
    due = later_due(draft.due, dues[-1]) if dues else draft.due
    draft = draft.grown(0.0, HANDED_OVER, piece_of(before.spoken, before.index, 2.0))
    grown = draft.grown(0.1, HANDED_OVER, piece(heard, 2.0), claim=Claim("named", (other,)), due=due, mode="")
    drafts[at] = replace(grown, accepted=False)
    return True


def _passed_on(heard: Heard, drafts: list[Draft], me: str, state: State) -> bool:
    """Who is asked to do what another has says yes (*Jun, you finish it?* *Yes, fine.*): it is theirs."""
    if not _says_yes(heard):
        return False
    for before in reversed(state.recent[-2:]):
        giver = state.roster.of_speaker(before.spoken.speaker)
        # Whoever has not spoken before the question may still be a stranger in it.
        said = {n.casefold() for m in before.people.values() for n in (*m.names, m.said)}
        named = me in before.called or me.casefold() in said
        if giver is None or giver == me or (not named and (before.called or before is not state.recent[-1])):
            continue
        for place, clause in enumerate(before.clauses):
            asked = _ASKS_ON.search(clause.clause.norm)
            if asked is None or _PART_OF_IT.search(asked["rest"]) or "joke" in clause.signals:
                continue
            at = _passed(before, place, asked, drafts, me, giver, state)
            if at is None or (not named and giver not in owners_of(drafts[at], state)):
                continue
            dues = [d for i in range(len(heard.clauses)) if (d := said_due(heard, i))]
            asking = [d for d in drafts if _asks(d, before, drafts[at])]
            due = drafts[at].due
            for later in (*(d.due for d in asking), *dues[-1:]):
                due = later_due(due, later)
            draft = drafts[at].grown(0.0, PASSED_ON, piece_of(before.spoken, before.index, 2.0))
            draft = draft.grown(
                0.1, PASSED_ON, piece(heard, 2.0), claim=Claim("named", (me,)), due=due, mode=""
            )
            drafts[at] = replace(draft, speaker=heard.spoken.speaker, accepted=True)
            drafts[:] = [d for d in drafts if d not in asking]
            return True
    return False


def _says_yes(heard: Heard) -> bool:
    if not heard.clauses or heard.clauses[0].clause.question_mark or heard.clauses[0].signals & {"refuse"}:
        return False
    norms = [c.clause.norm for c in heard.clauses[:2]]
    if any("refuse" in c.signals for c in heard.clauses) or any(_TAKES_NOT.search(n) for n in norms[:1]):
        return False
    return any(_TAKES_IT.search(n) for n in norms) or bool(heard.clauses[0].signals & {"accept", "commit"})


def _asks(draft: Draft, before: Heard, passed: Draft) -> bool:
    """Whether a draft is no more than the question whether somebody takes over what another has."""
    here = draft.family == "action" and draft.first_index == before.index and draft is not passed
    return here and draft.claim.kind in ("you", "named", "none")


def _passed(
    before: Heard, place: int, asked: re.Match[str], drafts: list[Draft], me: str, giver: str, state: State
) -> int | None:
    """The place of the task that somebody asks another to do in the place of who has it."""
    own = stems(asked["rest"]) - TIME_STEMS - LIGHT - _BY_THE_WAY
    verb = asked["verb"]
    stands_for = asked["rest"].split()[0] in THINGS
    if not own and not stands_for:
        return None
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        if draft.family != "action" or draft.withdrawn or draft.first_index >= before.index:
            continue
        if draft.mode in ("refused", "offer") or not _meant(draft):
            continue
        age = before.index - draft.last_index
        mine = giver in owners_of(draft, state)
        has = draft.claim.kind in ("self", "named", "you") and bool(draft.claim.people)
        same = verb in _TAKES or bool(stems(verb) & stems(draft.text.split()[0].lower()))
        reach = (_LATER_REACH if mine else 4 * _REACH) if own else _REACH
        if has and me not in owners_of(draft, state) and same and own <= draft.stems and age <= reach:
            led_to = before.clauses[:place]
            else_ = any(speaks_of_else(c, draft) and not _A_REASON.match(c.clause.norm) for c in led_to)
            between = [h for h in state.recent if draft.last_index < h.index < before.index]
            else_ = else_ or any(speaks_of_else(c, draft) for h in between for c in h.clauses)
            return None if else_ and not own else at
        if not own:
            return None  # *it* is what was spoken of last
    return None


def _gives(heard: Heard, before: Heard) -> int | None:
    """The clause that hands the task to whoever spoke before."""
    bids = any(_BIDS.search(c.clause.norm) and not _FOR_YOU.search(c.clause.norm) for c in before.clauses)
    for place, clause in enumerate(heard.clauses[:2]):
        norm = clause.clause.norm
        glad = any(_GLAD.search(c.clause.norm) for c in heard.clauses[place + 1 :])
        if bids and glad and _WOULD_YOU.match(norm):
            return place
        if bids and not clause.clause.question_mark and _YOU_DO.match(norm):
            return place
    return None


def _tells(heard: Heard, drafts: list[Draft], me: str, state: State) -> tuple[int | None, int | None]:
    """The clause that tells another to do a task by its name (*You'd best do eleven, then*), and the place of the task."""
    for place, clause in enumerate(heard.clauses[:2]):
        found = _YOU_DO_NAMED.match(clause.clause.norm)
        if found is None or clause.clause.question_mark:
            continue
        what = stems(clause.clause.norm[found.end() :]) - LIGHT
        for at in range(len(drafts) - 1, -1, -1):
            draft = drafts[at]
            mine = me in owners_of(draft, state)
            open_ = (
                draft.family == "action" and not draft.withdrawn and draft.mode not in ("refused", "request")
            )
            near = 0 < heard.index - draft.last_index <= _LATER_REACH and draft.likely_work
            if open_ and mine and near and what & draft.stems:
                return place, at
    return None, None


def _meant(draft: Draft) -> bool:
    return not draft.by_model or draft.likely_work


def _mine(heard: Heard, drafts: list[Draft], before: Heard, me: str, state: State) -> int | None:
    """The place of the task of whoever speaks that was spoken of last, and that the turn before was about."""
    said = said_in(before) - TIME_STEMS - LIGHT
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        if draft.family != "action" or draft.withdrawn or draft.mode in ("refused", "request"):
            continue
        if me not in owners_of(draft, state):
            continue
        if draft.first_index == heard.index or heard.index - draft.last_index > _REACH or not _meant(draft):
            continue
        bids = [c for c in before.clauses if _BIDS.search(c.clause.norm)] or before.clauses
        about = any(
            said & c.clause.stems & draft.stems
            or (
                _IT.search(c.clause.norm)
                and not c.clause.stems - TIME_STEMS - LIGHT - ANY_TASK - _GIVING - draft.stems
            )
            for c in bids
        )
        return at if about and not asks_else(before, draft) else None
    return None


def give_up(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Who took a task on says that it is not them after all (*So not me, I don't know anybody there*): it is open."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    if (
        me is None
        or heard.words > 24
        or not any(_NOT_ME.match(c.clause.norm) and not _WAS.search(c.clause.norm) for c in heard.clauses[:2])
    ):
        return
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        if draft.family != "action" or draft.withdrawn or draft.claim.kind != "self":
            continue
        mine = me in owners_of(draft, state)
        if mine and 0 < heard.index - draft.last_index <= _REACH + 1:
            drafts[at] = draft.grown(-0.05, NOT_BY_ASKED, piece(heard, 0.5), claim=Claim("none"))
            return


def after_all(heard: Heard, drafts: list[Draft], state: State) -> bool:
    """Somebody does another's task, in its own words (*Then I'll have to do the form myself*)."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    if me is None or heard.spoken.speaker is None:
        return False
    for place, clause in enumerate(heard.clauses):
        if clause.clause.question_mark or clause.signals & {"past", "reported", "joke"}:
            continue
        own, verb = _matter(clause)
        if not own or _IF.match(clause.clause.norm) or "hypothetical" in clause.signals:
            continue
        for at in range(len(drafts) - 1, -1, -1):
            draft = drafts[at]
            theirs = owners_of(draft, state)
            if draft.family != "action" or draft.withdrawn or draft.mode in ("refused", "offer"):
                continue
            near = 0 < heard.index - draft.last_index <= _LATER_REACH
            if not near or not draft.likely_work or not theirs or me in theirs or not own <= draft.stems:
                continue
            named_so = (
                stems(draft.text.split()[0].lower()) & verb and heard.index - draft.last_index <= 4 * _REACH
            )
            if own <= verb and not named_so:
                continue  # *I'll drink it all myself* is no word of *Order the drinks*
            due = said_due(heard, place) if clause.dues else None
            grown = draft.grown(
                0.1, AFTER_ALL, piece(heard, 2.0), claim=Claim("self", (heard.spoken.speaker,))
            )
            drafts[at] = replace(
                grown, speaker=heard.spoken.speaker, accepted=True, mode="", due=later_due(draft.due, due)
            )
            return True
    return False


def _matter(clause: HeardClause) -> tuple[frozenset[str], frozenset[str]]:
    """What somebody says that they will do themselves, nothing where no word says what; and its verb."""
    found = _MYSELF_AFTER_ALL.search(clause.clause.norm)
    if found is None:
        return frozenset(), frozenset()
    first, _, rest = found["what"].partition(" ")
    verb = stems(first)
    if first != "do" and not verb - LIGHT:
        return frozenset(), verb  # *look at that form myself*
    return (stems(rest) if first == "do" else stems(found["what"])) - TIME_STEMS - LIGHT, verb
