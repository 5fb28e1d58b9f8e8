"""What an utterance does to earlier drafts: answers, corrections, restatements, taking back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from operators.language.days import named_days
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.birth import SAYS_LITTLE, leads, settled
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, TIME_STEMS, own_task
from operators.understand.state import Claim, Draft, State, later_due, piece

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
    taken = _take_back(heard, drafts, state, look_back)
    accepted = _accept(heard, drafts, state)
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
        if draft.claim.kind == "self":
            drafts[place] = draft.grown(-0.8, "refused", mode="refused")
            return
        if draft.mode == "request" and age <= 1:
            drafts[place] = draft.grown(-0.15, "not accepted")
            return


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
    reach = [p for p, d in enumerate(drafts) if heard.index - d.first_index <= 12]
    # What was just given to whoever answers comes before what others took on in the same breath.
    for place in sorted(
        reach, key=lambda p: (me in drafts[p].claim.people and drafts[p].last_index == heard.index - 1, p)
    )[::-1]:
        draft = drafts[place]
        age = heard.index - draft.last_index
        if age > REPLY_REACH or draft.family != "action" or draft.speaker == heard.spoken.speaker:
            continue
        if draft.mode == "offer" and (thanks or yes) and age <= 2:
            plain = not thanks and heard.words <= 2
            drafts[place] = draft.grown(
                0.2 if plain else 0.45, "offer accepted", piece(heard), mode="", accepted=True
            )
            return False
        elsewhere = opens and not draft.claim.people and all(own_task(c, draft) for c in taking)
        if (
            draft.mode == "request"
            and not draft.accepted
            and not elsewhere
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
_YES_NO = re.compile(r"(?:do|does|did|is|are|was|were|will|has|have|can)\b", re.IGNORECASE)
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
    if _YES_NO.match(question):
        return True
    if _WHO.match(question):
        return bool(clause.signals & {"commit", "assign", "decide"}) or any(
            t.first in heard.people for t in clause.clause.tokens
        )
    if _WHEN.match(question):
        return bool(clause.dues)
    return bool(_COUNTING.match(question)) and _counts(heard)


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
ANYONE_REACH = 4
"""Turns after which a bare *scratch that* by somebody else no longer means an item."""


def _take_back(heard: Heard, drafts: list[Draft], state: State, look_back: int) -> bool:
    hits = [(c, h) for c in heard.clauses for h in c.hits if h.rule.signal == "withdraw"]
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
        if not asked or heard.index - draft.last_index > look_back or not _YES_NO.match(draft.text):
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
