"""What an utterance does to earlier drafts: answers, agreement, refusal, taking back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from operators.language.words import words_in
from operators.understand.birth import leads, settled
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import TAKEN_UP, TIME_STEMS, asked_of_all, own_task, taken_up
from operators.understand.state import Claim, Draft, State, later_due, piece
from operators.understand.vote import is_procedure
from operators.understand.withdraw import YES_NO, take_back

REPLY_REACH = 3
UNKNOWN_REACH = 6
AGREE_REACH = 4
FIRMLY_AGREED = "firmly agreed"


def follow(heard: Heard, drafts: list[Draft], state: State, look_back: int) -> tuple[bool, bool]:
    """Change ``drafts`` in place; whether the utterance accepted something, and whether it took something back.

    A commitment in an accepting answer is part of what was asked for, no item of its own.
    """
    if not heard.clauses:
        return False, False
    _refuse(heard, drafts)
    done = _done(heard, drafts)
    taken = take_back(heard, drafts, state, look_back)
    accepted = not done and _accept(heard, drafts, state)
    _agree(heard, drafts, state)
    _approve(heard, drafts)
    _settle(heard, drafts, state)
    _answer(heard, drafts)
    _unknown(heard, drafts)
    _unowned(heard, drafts)
    return accepted, taken


def _begins(heard: Heard, signal: str) -> bool:
    return any(signal in c.signals for c in heard.clauses[:2])


_MOCKERY = "yes right"
_TALL = re.compile(
    r"\b(?:totally|whole|entire|everyone|everything|every|all of|single|million|hundred)\b", re.IGNORECASE
)
"""Words of promises too tall to be meant, if somebody mocks them."""


def _mocked(heard: Heard, drafts: Sequence[Draft]) -> bool:
    """Whether all that somebody says is *Yeah right*, without a pause, to a tall promise."""
    tokens = [t for c in heard.clauses for t in c.clause.tokens]
    said = len(heard.clauses) == 1 and heard.clauses[0].clause.norm == _MOCKERY and not tokens[0].comma
    last = drafts[-1] if drafts else None
    tall = last is not None and heard.index - last.last_index == 1 and _TALL.search(last.text) is not None
    return said and tall


def _refuse(heard: Heard, drafts: list[Draft]) -> None:
    if not any("refuse" in c.signals for c in heard.clauses[:2]) and not _mocked(heard, drafts):
        return
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        age = heard.index - draft.last_index
        if age > 2:
            break
        if draft.speaker == heard.spoken.speaker or draft.accepted:
            continue
        if draft.family == "decision" and draft.mode == "propose" and not draft.agreed:
            drafts[place] = draft.grown(-0.6, "refused", mode="refused")
            return
        if draft.family != "action":
            continue
        if draft.claim.kind == "self" and TAKEN_UP in draft.reasons:
            drafts[place] = draft.grown(0.0, "not by whoever offered", claim=Claim("none"))
            return
        if draft.claim.kind == "self":
            drafts[place] = draft.grown(-0.8, "refused", mode="refused")
            return
        if draft.mode == "request" and age <= 1:
            drafts[place] = draft.grown(-0.15, "not accepted")
            return


def _done(heard: Heard, drafts: list[Draft]) -> bool:
    """Whether somebody has done already what was just asked of them or of all (*I did, yesterday*): it is no task."""
    if not any(_DONE.match(c.clause.norm) for c in heard.clauses[:2]) or "commit" in heard.signals():
        return False
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if draft.family != "action" or draft.speaker == heard.spoken.speaker or draft.withdrawn:
            continue
        if draft.last_index != heard.index - 1 or draft.accepted or draft.mode != "request":
            return False
        drafts[place] = draft.grown(-0.6, DONE_ALREADY, mode="refused")
        return True
    return False


DONE_ALREADY = "done already"
_WHEN_DONE = (
    r"(?:already|yesterday|just now|ages ago|long ago|this (?:morning|week|afternoon)|last (?:week|night|month|time)|"
    r"(?:on|last) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:an? |two |three |\w+ )(?:hour|day|week)s? ago|"
    r"before (?:the|this) meeting|earlier)"
)
_DONE = re.compile(
    r"(?:(?:oh|well|yes|yeah|no|actually|but|sorry|i think|good news) )*"
    rf"(?:(?:i|we|he|she|they|@|~)(?: (?:already|just))* (?:did|have)(?: (?:that|it|so|this))?(?: {_WHEN_DONE})*$|"
    rf"(?:i|we)(?: have)? already (?:did|done|have)\b(?! to)|"
    rf"(?:that|it|this) (?:is|was|has been) (?:already )?done(?: {_WHEN_DONE})*$|"
    rf"(?:all |already )?done(?: {_WHEN_DONE})+$|"
    rf"did (?:that|it|this)(?: {_WHEN_DONE})+$|already (?:did|done)\b)"
)


def _accept(heard: Heard, drafts: list[Draft], state: State) -> bool:
    me = state.roster.of_speaker(heard.spoken.speaker)
    yes = _begins(heard, "accept") and not (heard.clauses[0].signals & {"refuse"})
    thanks = _begins(heard, "acknowledge")
    taking = [c for c in heard.clauses if c.signals & {"commit"}]
    takes = bool(taking)
    opens = takes and taking[0] is heard.clauses[0] and taking[0].clause.norm.startswith("i ")
    firm = takes or any(h.rule.name in _FIRM for c in heard.clauses for h in c.hits)
    if not (yes or thanks or takes):
        return False
    of_another = not takes and (
        _ANOTHER_HAS_IT.match(heard.clauses[0].clause.norm) or _confirms(heard, state)
    )
    reach = [p for p, d in enumerate(drafts) if heard.index - d.first_index <= 12]
    # What was just given to whoever answers comes before what others took on in the same breath.
    for place in sorted(
        reach, key=lambda p: (me in drafts[p].claim.people and drafts[p].last_index == heard.index - 1, p)
    )[::-1]:
        draft = drafts[place]
        age = heard.index - draft.last_index
        if age > REPLY_REACH or draft.family != "action" or draft.speaker == heard.spoken.speaker:
            continue
        # *Shall I write to him?* is not accepted by *I'll do that*, which takes it over.
        if draft.mode == "offer" and (thanks or yes) and not opens and age <= 2:
            plain = not thanks and heard.words <= 2
            drafts[place] = draft.grown(
                0.2 if plain else 0.45, "offer accepted", piece(heard), mode="", accepted=True
            )
            _one_with_what_was_asked(drafts, place, state)
            return False
        elsewhere = (
            (opens or (takes and not yes))
            and not draft.claim.people
            and all(own_task(c, draft) for c in taking)
        ) or (not takes and not draft.claim.people and own_task(heard.clauses[0], draft, {"offer"}))
        if (
            draft.mode == "request"
            and not draft.accepted
            and not elsewhere
            and not of_another
            and _for_me(draft, me)
            and (yes or takes)
        ):
            due = next((d for i in range(len(heard.clauses)) if (d := said_due(heard, i))), None)
            owner = Claim("you", (heard.spoken.speaker,) if heard.spoken.speaker else ())
            asked = bool(draft.called) or draft.due is not None or "asked directly" in draft.reasons
            drafts[place] = draft.grown(
                0.4 if firm or asked else 0.15,
                "accepted",
                piece(heard, 2.0),
                mode="",
                accepted=True,
                claim=owner,
                due=later_due(draft.due, due),
            )
            return True
        if draft.claim.kind == "self" and thanks and age <= 2 and not draft.accepted:
            drafts[place] = draft.grown(0.15, "acknowledged", accepted=True)
            return False
        if draft.claim.kind in ("none", "group") and draft.reasons[0] != "handover" and yes and age <= 2:
            drafts[place] = draft.grown(0.1, "agreed")
            return False
        mine = me is not None and (me in draft.claim.people or _called_so(draft, me))
        if draft.claim.kind == "named" and me is not None and mine and (yes or takes):
            one = Claim("named", (me,), draft.claim.said)
            drafts[place] = draft.grown(0.25, "accepted", piece(heard), accepted=True, claim=one)
            return True
    return False


def _one_with_what_was_asked(drafts: list[Draft], place: int, state: State) -> None:
    """An offer that was accepted is the task that was asked of the room just before (*Shall I ring them?*)."""
    offer = drafts[place]
    said = next((h for h in state.recent if h.index == offer.first_index), None)
    at = asked_of_all(said, offer, drafts) if said is not None else None
    if at is not None:
        drafts[at] = taken_up(drafts[at], offer)
        del drafts[place]


_ANOTHER_HAS_IT = re.compile(
    r"^(?:(?:yes|yeah|right|true|exactly|okay|oh|well|indeed|correct|sure|and|so|that is right) )+"
    r"(?:@|~|he|she|they)(?: (?:already|always|usually|still|now|just))* (?:has|have|got|did|does|do|took|takes|is|are|will|"
    r"was|were|had|said|told|wanted)\b"
)
"""*Yes, Felix has them* says that somebody else does it."""
_GAVE_ON = re.compile(
    r"\bi (?:already |have |had )*(?:passed|gave|given|handed|sent|left|forwarded)\b.*\bto (?:@|~|my|our|the|your|him|her)"
)


def _confirms(heard: Heard, state: State) -> bool:
    """Whether *yes* is said to somebody's word that another has it (*I passed those on to Tom.* *Yes.*)."""
    before = state.recent[-1] if state.recent else None
    if before is None or before.spoken.speaker == heard.spoken.speaker:
        return False
    return any(_GAVE_ON.search(c.clause.norm) and not c.clause.question_mark for c in before.clauses)


_FIRM = frozenset(("i_can_do_that", "firm_yes", "echo_accept"))


def _called_so(draft: Draft, me: str | None) -> bool:
    """Whether a task was given to somebody by the name of whoever answers, who had not spoken before."""
    return draft.claim.outside and me is not None and draft.claim.said.casefold() == me.casefold()


def _for_me(draft: Draft, me: str | None) -> bool:
    """Whether a request is for the one who answers: whoever was called by name keeps it."""
    if draft.claim.outside:
        return _called_so(draft, me)
    return not draft.claim.people or me in draft.claim.people or not draft.called


def _agree(heard: Heard, drafts: list[Draft], state: State) -> None:
    first = heard.clauses[0]
    agrees = any("agree" in c.signals for c in heard.clauses[:2])
    if "refuse" in first.signals or first.clause.question_mark:
        return
    if first.signals & {"decide", "propose", "ask"} and first.clause.stems and heard.words > 4:
        return
    said = frozenset().union(*(c.clause.stems for c in heard.clauses))
    if not agrees and not (said and heard.words <= 8):
        return
    who = heard.spoken.speaker or "?"
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if heard.index - draft.first_index > 12:
            break
        if draft.family != "decision" or draft.speaker == heard.spoken.speaker or who in draft.agreed:
            continue
        echoed = len(said & draft.stems) >= 0.6 * len(said) if said and heard.words <= 8 else False
        if not agrees and not echoed:
            continue
        if heard.index - draft.last_index <= AGREE_REACH and len(draft.agreed) < 3:
            proof = piece(heard) if len(draft.agreed) < 2 else None
            gain = (0.2 if echoed else 0.15) + (
                0.15 if draft.mode == "propose" and leads(heard, state) else 0.0
            )
            drafts[place] = draft.grown(gain, "agreed", proof, agreed=(*draft.agreed, who))
            return


def _approve(heard: Heard, drafts: list[Draft]) -> None:
    """*Do it*, *go ahead*, *approved*: the proposal before it is accepted."""
    if not any("approve" in c.signals for c in heard.clauses[:2]):
        return
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if heard.index - draft.last_index > REPLY_REACH:
            continue
        if draft.family == "decision" and draft.speaker != heard.spoken.speaker:
            drafts[place] = draft.grown(0.3, "approved", piece(heard, 2.0), mode="")
            return


def _settle(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Firm agreement with what somebody just stated makes it settled, whatever words it was in."""
    if not any("settle" in c.signals for c in heard.clauses) or not state.recent:
        return
    before = state.recent[-1]
    if before.spoken.speaker == heard.spoken.speaker or any(d.last_index >= before.index for d in drafts):
        for place in range(len(drafts) - 1, -1, -1):
            if drafts[place].family == "decision" and heard.spoken.speaker in drafts[place].agreed:
                drafts[place] = drafts[place].grown(0.1, FIRMLY_AGREED)
                return
        return
    clause = max(before.clauses, key=lambda c: len(c.clause.stems), default=None)
    if clause is None or len(clause.clause.stems) < 3 or clause.clause.question_mark:
        return
    if clause.signals & {"past", "hypothetical", "reported", "joke", "unknown", "ask"}:
        return
    if is_procedure(clause.clause.norm):
        return
    drafts.append(
        settled(before, clause, state).grown(
            0.15, FIRMLY_AGREED, piece(heard), agreed=(heard.spoken.speaker or "?",)
        )
    )


def _unowned(heard: Heard, drafts: list[Draft]) -> None:
    """That nobody has it yet confirms that it has to be done."""
    if not any("unowned" in c.signals for c in heard.clauses):
        return
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if heard.index - draft.last_index > UNKNOWN_REACH:
            break
        if draft.family == "action" and draft.claim.kind == "none":
            drafts[place] = draft.grown(0.25, "nobody has it yet", piece(heard))
            return


def _unknown(heard: Heard, drafts: list[Draft]) -> None:
    solved = any("solved" in c.signals for c in heard.clauses)
    strong = [h for c in heard.clauses for h in c.hits if h.rule.signal == "unknown"]
    if not strong and not solved:
        return
    if not solved and any(c.signals & {"commit", "momentary"} for c in heard.clauses):
        return
    best: tuple[float, int] | None = None
    said = frozenset().union(*(c.clause.stems for c in heard.clauses))
    early = heard.words <= 20 or any("unknown" in c.signals for c in heard.clauses[:2])
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if heard.index - draft.last_index > (30 if solved else UNKNOWN_REACH):
            continue
        if draft.family != "question" or (solved and draft.mode != "open") or draft.withdrawn or draft.solved:
            continue
        common = len(draft.stems & said)
        if not solved and common and _COUNTING.match(draft.text) and _counts(heard):
            continue
        if not solved and common == 0 and (heard.index - draft.last_index > 3 or not early):
            continue
        value = common * 0.5 + draft.support - 0.06 * (heard.index - draft.last_index)
        if draft.mode == "open":
            value += 0.3
        if best is None or value > best[0]:
            best = (value, place)
    if best is None:
        return
    draft = drafts[best[1]]
    if solved:
        drafts[best[1]] = draft.grown(0.1, "solved", piece(heard), mode="solved", solved=True)
    else:
        gain = max(h.rule.strength for h in strong) if draft.mode != "open" else 0.15
        drafts[best[1]] = draft.grown(gain, strong[0].rule.name, piece(heard), mode="open")


_COUNTING = re.compile(r"(?:so |and |but )?how (?:many|much)\b", re.IGNORECASE)
_WHO = re.compile(r"who\b", re.IGNORECASE)
_WHEN = re.compile(r"(?:when|what (?:day|date|time))\b", re.IGNORECASE)
_NO_ANSWER = frozenset(
    ("unknown", "ask", "hypothetical", "rhetorical", "joke", "reported", "propose", "need")
)
_DOUBT = re.compile(r"\b(?:whether|if|maybe|perhaps|probably|might|could|should|would|hope|think|guess)\b")
ANSWER_REACH = 60


def _counts(heard: Heard) -> bool:
    words = [w for c in heard.clauses for w in c.clause.norm.split()]
    return any(w[0].isdigit() or w in _NUMBERS for w in words if w)


_NUMBERS = words_in("""
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred none
""")


def _answer(heard: Heard, drafts: list[Draft]) -> None:
    """A plain statement in the words of an open question answers it, however much later."""
    for place, draft in enumerate(drafts):
        age = heard.index - draft.last_index
        if (
            draft.family != "question"
            or draft.mode != "open"
            or draft.withdrawn
            or not 0 < age <= ANSWER_REACH
        ):
            continue
        for clause in heard.clauses:
            if (
                clause.clause.question_mark
                or clause.signals & _NO_ANSWER
                or _DOUBT.search(clause.clause.norm)
            ):
                continue
            asked = draft.stems - TIME_STEMS
            common = len(asked & clause.clause.stems)
            if (
                common < 2
                or common < (0.66 if common < 3 else 0.6) * len(asked)
                or not _fits(draft.text, clause, heard)
            ):
                continue
            drafts[place] = draft.grown(0.1, "answered", piece(heard, 2.0), mode="solved", solved=True)
            break


def _fits(question: str, clause: HeardClause, heard: Heard) -> bool:
    """Whether a statement has the kind of thing that the question asks for."""
    if YES_NO.match(question):
        return True
    if _WHO.match(question):
        return bool(clause.signals & {"commit", "assign", "decide"}) or any(
            t.first in heard.people for t in clause.clause.tokens
        )
    if _WHEN.match(question):
        return bool(clause.dues)
    return bool(_COUNTING.match(question)) and _counts(heard)
