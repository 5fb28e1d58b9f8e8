"""Somebody else takes a task over, or is named instead: the last word on who does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from operators.language.people import Mention
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.anew import DATE_OPEN
from operators.understand.asked import asked_since
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, NOT_BY_ASKED, TIME_STEMS, said_in
from operators.understand.state import Claim, Draft, State, later_due, owners_of, piece
from operators.understand.topic import ANY_TASK, asks_else, speaks_of_else

TAKEN_OVER: Final = "taken over"
VOLUNTEERED: Final = "volunteered"
IN_QUESTION: Final = "owner in question"
_REACH: Final = 2
_VOLUNTEER_REACH: Final = 4
_LATER_REACH: Final = 60
_IT: Final = r"(?:it|that|this|them|those|that one|this one)"
_PUT_RIGHT: Final = r"(?:no|sorry|wait|actually|rather|or|not)"
_OPEN: Final = rf"(?:(?:{_PUT_RIGHT}|right|okay|well|fine|oh|yes|then|so|but|and|hm|ah) )*"
_LEADS_IN: Final = (
    r"^(?:(?:oh|well|so|then|and|but|yes|no|okay|right|fine|all right|sure|hm|go on|course|of course|sorry|"
    r"actually|look|listen|ah|now|"
    r"in that case|never mind|let me see|no no|@) )*"
)
_THING: Final = (
    r"(?:it|that|this|them|those|these|him|her|that one|this one|(?:the|that|those) [\w'-]+(?: [\w'-]+)?)"
)
_ME: Final = re.compile(
    _LEADS_IN
    + r"(?:(?:(?:so |i (?:suppose|guess|think) )?(?:it|that|this)(?: one)?(?: always)? (?:is|will be|would be|"
    r"had better be|has to be|must be|should be|could be) "
    r"|so |down |i (?:suppose|guess|think) )?(?:(?:for|on|down to|with|to) )?(?:me(?! and (?:the|@|~|my|you|him|"
    r"her|a)\b)|mine|my (?:job|turn|department|lot|patch|line|one))"
    r"|(?:it |that |this )?(?:is |goes )?(?:already )?on my (?:list|pile|plate|desk|to[ -]do list)|"
    r"i am (?:on it|your (?:man|woman|girl|person))"
    rf"|(?:give|pass|hand|bring|send) {_THING}(?: over| across)? (?:here|to me|over|over here)|give (?:it|that|"
    rf"those|them) me|leave {_THING} (?:to|with) me"
    rf"|(?:you )?let me (?:do|have|take|handle|see to|sort) {_THING}|i (?:will|can|could|shall|am going to|"
    rf"would)(?: just| gladly| happily| easily| then)*"
    rf" (?:do|take|handle|have|sort(?: out)?|see to|manage|cover) {_THING}|(?:all right |okay |"
    rf"go on )?put me down|count me in|"
    r"i (?:am|will be) doing (?:it|that)|(?:i am )?happy to(?: do it)?|i do not mind(?: doing (?:it|that))?|"
    r"i (?:will|can|volunteer)|"
    rf"i had better|i would better|i have (?:got )?{_THING} then|i will have to)"
    r"(?: (?:then|obviously|again|yes|sorry|myself|instead|i (?:suppose|guess|think|reckon|know|see)|to do|"
    r"of course|here|too|as well|over|off you|"
    r"for you|as usual|this time|in that case|is not it|really|no problem|anyway|no worries|okay))*"
    r"(?=$| (?:i|we|because|it|since|if|that|by|on|and|before|after|tomorrow|today|tonight|only|but|@|give me|"
    r"monday|tuesday|wednesday|thursday|"
    r"friday|saturday|sunday)\b)"
)
"""How somebody takes on what nobody has, or what was too much for another."""
_AS_I_SEE_IT: Final = re.compile(
    _LEADS_IN + r"(?:(?:for|to|with|on) me|my (?:job|turn|department|lot|patch|line|one))"
    r"(?! it is(?: then)?$)(?: (?!(?:i|we|then|because|since|my)\b)[\w'-]+){1,3}? "
    r"(?:is|are|was|were|will|would|has|looks|seems|sounds|feels|works|suits)\b"
)
"""*For me Saturday is better*, *my department on Mondays is closed*: no task is taken on by that."""
_ONLY_NO: Final = re.compile(r"^(?:(?:no|nope|sorry|oh|well|@)(?: |$))+$")
_FOR_ANYBODY: Final = re.compile(
    r"^(?:(?:and|but|so|then|okay|right|well) )*(?:who|any|anyone|anybody|someone)\b"
)
_YOU_COULD: Final = re.compile(r"\b(?:can|could|will|would|may|might) (?:you|@)\b")
_MYSELF: Final = re.compile(
    r"^(?:.{0,40} )?i (?:will|would|am|shall|can|could)\b.{0,40}\b(?:myself|instead|for you|off you|"
    r"off your hands|then)\b"
    r"|^(?:and |but |so |well |no )*(?:the|that) [\w'-]+(?: [\w'-]+)? is (?:mine|on me|with me|my job)(?: now|"
    r" then)*$"
    r"|^(?:go on |okay |all right |fine |then |well )*give me (?!a\b|an\b|till|until|five|ten|one|two|your|some|"
    r"time)[\w'-]+(?: [\w'-]+)?(?: then)?$"
    r"|\bi would (?:sooner|rather) [a-z]+ (?:it|that|them|him|her|the [\w'-]+)\b"
)
"""How somebody takes on what another has and can hardly do."""
_TROUBLE: Final = re.compile(
    r"\bi (?:really |just |still )?(?:can not|could not|will not be able|am not going to manage|have no time|"
    r"do not have time)\b"
    r"|\bi (?:forgot|had forgotten)\b|\b(?:someone|one|anyone) else (?:could|can|should|will have to|has to|"
    r"might|would)\b"
    r"|\bi am (?:away|off|abroad|on (?:holiday|leave)|in (?!on\b|for\b|favou?r)|teaching|working)\b|"
    r"\bwith respect\b|\bshould not that\b"
)
_ABOUT: Final = re.compile(
    r"^(?:and |oh |so |well |now |sorry |@ )*about (?:the|that|this|my|your|our) [\w' -]{2,30}$"
)
_INSTEAD_OF: Final = re.compile(r"\b(?:instead of|in place of|rather than|so that) (?P<whom>[@~])")
_NOT_ME: Final = re.compile(
    r"(?:^|\b(?:no|sorry|oh|but) )(?:i (?:really |just |simply |honestly |am afraid i )?(?:can not|could not|"
    r"will not|would rather not|had better not|do not have time)"
    r"(?: (?:do (?:it|that|this|them|both)|sorry|really|this (?:week|time)|today|tomorrow|@|not|with|because|i|"
    r"the way|take))?\b.*"
    r"|not me(?: @| sorry| please)*$|(?:no )*sorry$|no(?: no)*$|i would (?:be terrible|rather not|only|"
    r"make a mess)\b.*|count me out\b.*|"
    r"ask (?:someone|one|somebody) else\b.*|do not look at me\b.*|(?:can|could) not you(?: do (?:it|that))?(?: @)?$)"
)
_CANNOT: Final = re.compile(
    r"(?P<who>[@~]|he|she) (?:can not|could not|will not be able to|is (?:away|off|out|on holiday|on leave|ill|"
    r"sick)|has no time|is too busy)\b"
)
_MINE: Final = re.compile(
    rf"(?:^|\bi am .{{1,30}} ){_OPEN}"
    rf"(?:i (?:will|can|could|would rather|would better)(?: just| gladly| happily)? (?:do|take|handle) {_IT}"
    rf"|(?:please )?let me (?:do|take|handle) {_IT}|leave {_IT} (?:to|with) me)(?: (?:then|instead|myself|over|"
    rf"off you|on))*"
    r"(?=$| (?:i|we|because|it|since|if|that|by|on|tomorrow|today|tonight|@)\b)"
)
_THEIRS: Final = re.compile(
    rf"^(?P<open>{_OPEN})(?:(?P<who>[@~])(?: 's)? (?:will|can|does|do|takes|should|shall|is going to|has to|"
    rf"had better|is doing|doing|has(?: got)?|"
    rf"got|is handling|handles|looks after|is on|sorts|is sorting)(?: (?:do|take|handle))?(?: {_IT})?(?: (?:now|"
    rf"this time|not me|not you|always|already))*"
    rf"|(?:that|it|this)(?: one)? is (?P<theirs>[@~])(?: 's)?(?: (?:job|one|department|now|not me|not mine))*"
    rf"|make (?:it|that) (?P<whom>[@~])|(?:can|could|would) (?P<whose>[@~]) (?:do|take|"
    rf"handle) {_IT})(?: instead| then| please)*$"
)


def take_over(heard: Heard, drafts: list[Draft], state: State) -> bool:
    """Give the task that was spoken of just before to whoever now has it; true if there was one."""
    done = False
    for place, clause in enumerate(heard.clauses):
        taker = _taker(clause, place, heard)
        if taker is None:
            continue
        claim, put_right = taker
        at = next(_given(heard, drafts, claim, state, here=place > 0 and put_right), None)
        if at is None or (place == 0 and _only_mentioned(clause, drafts[at], state)):
            continue
        due = later_due(drafts[at].due, said_due(heard, place)) if clause.dues else drafts[at].due
        own = claim.kind == "self"
        grows = 0.2 if own else 0.1
        changed = drafts[at].grown(grows, TAKEN_OVER, piece(heard, 2.0), claim=claim, due=due, mode="")
        drafts[at] = replace(changed, speaker=heard.spoken.speaker if own else changed.speaker, accepted=own)
        done = True
    return done


def _taker(clause: HeardClause, place: int, heard: Heard) -> tuple[Claim, bool] | None:
    """Who takes it by the words of a clause, and whether they say that what was said before was wrong."""
    norm = clause.clause.norm
    if clause.signals & {"past", "hypothetical", "reported", "joke"}:
        return None
    if heard.spoken.speaker and _MINE.search(norm) and not clause.clause.question_mark:
        return Claim("self", (heard.spoken.speaker,)), False
    named = _THEIRS.match(norm)
    if named is None:
        return None
    group = next(g for g in ("who", "theirs", "whom", "whose") if named[g] is not None)
    token = clause.clause.tokens[clause.clause.token_at(named.start(group))]
    mention = heard.people.get(token.first)
    right = re.search(rf"\b{_PUT_RIGHT}\b", named["open"]) is not None or group in ("whom", "whose")
    denies = re.search(r"\bnot (?:me|mine|you)\b", norm) is not None
    if mention is None or (group in ("who", "theirs") and not (right or denies)):
        return None
    return _claim(mention), right or denies


def _only_mentioned(clause: HeardClause, draft: Draft, state: State) -> bool:
    """Whether a name is said in answer to something else (*Who is at the door?* *Oh no, that is Tom.*)."""
    named = _THEIRS.match(clause.clause.norm)
    if named is None or not state.recent or re.search(r"\bnot (?:me|mine|you)\b", clause.clause.norm):
        return False
    before = state.recent[-1]
    if before.index <= draft.last_index:
        return asks_else(before, draft)
    return bool(before.clauses) and all(
        speaks_of_else(c, draft) or not c.clause.stems - LIGHT for c in before.clauses
    )


def _claim(mention: Mention) -> Claim:
    if mention.by == "outside":
        return Claim("named", (), mention.said, True)
    return Claim("named", mention.names, mention.said)


def _given(heard: Heard, drafts: list[Draft], claim: Claim, state: State, *, here: bool) -> Iterator[int]:
    """Places of tasks that somebody else was given just before (``here``: in this very utterance), the latest first."""
    mine = {state.roster.of_speaker(p) for p in claim.people} or {claim.said}
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        age = heard.index - draft.last_index
        near = age == 0 if here else 0 < age <= _REACH
        if draft.family != "action" or draft.withdrawn or draft.mode == "refused" or not near:
            continue
        if draft.claim.kind not in ("self", "named", "you") or (
            draft.support < 0.3 and draft.mode != "offer"
        ):
            continue
        theirs = owners_of(draft, state) or {draft.claim.said}
        if theirs != {""} and not theirs & mine:
            yield at
        return


def declined(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Who is asked says no: the task is open again."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    if heard.words > 24 or heard.signals() & {"commit", "accept", "promise"} or me is None:
        return
    refused = any("refuse" in c.signals for c in heard.clauses[:2])
    if not refused and not any(_NOT_ME.search(c.clause.norm) for c in heard.clauses):
        return
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        asked = draft.family == "action" and not draft.withdrawn and draft.claim.kind in ("you", "named")
        if (
            asked
            and not draft.accepted
            and 0 < heard.index - draft.last_index <= 2
            and me in draft.claim.people
        ):
            if _side_question(heard, draft, state):
                return
            kept = Claim("you") if draft.mode == "request" else Claim("none")
            drafts[at] = draft.grown(-0.1, NOT_BY_ASKED, claim=kept, called=())
            return


def _side_question(heard: Heard, draft: Draft, state: State) -> bool:
    """Whether a bare *no* answers another question than whether somebody will do a task."""
    last = state.recent[-1].clauses[-1] if state.recent and state.recent[-1].clauses else None
    if last is None or not last.clause.question_mark or _YOU_COULD.search(last.clause.norm):
        return False
    own = last.clause.stems - TIME_STEMS
    only_no = all(_ONLY_NO.match(c.clause.norm) for c in heard.clauses)
    return only_no and bool(own - LIGHT - ANY_TASK) and not own & draft.stems


def volunteer(heard: Heard, drafts: list[Draft], state: State) -> bool:
    """Somebody takes what nobody has yet: what has to be done, what the one asked said no to, what was given up."""
    if heard.spoken.speaker is None:
        return False
    for place, clause in enumerate(heard.clauses):
        myself = _MYSELF.search(clause.clause.norm) is not None
        if clause.signals & {"past", "reported", "joke"} or ("hypothetical" in clause.signals and not myself):
            continue
        if clause.clause.question_mark:  # "Me?" asks back
            continue
        plainly = _ME.match(clause.clause.norm) is not None and not _AS_I_SEE_IT.match(clause.clause.norm)
        at = _free(heard, drafts, place) if plainly else None
        if at is not None and place == 0 and _answers_else(heard, clause, drafts[at], state):
            continue
        if at is None and (
            plainly or clause.signals & {"commit", "accept"} or _MYSELF.search(clause.clause.norm)
        ):
            at = _in_question(heard, drafts, clause, state, plainly)
        if at is None and "commit" in clause.signals:
            at = _instead(heard, drafts, clause, state)
        if at is None:
            continue
        draft = drafts[at]
        dues = [d for i in range(place, len(heard.clauses)) if (d := said_due(heard, i))]
        draft = replace(draft, reasons=tuple(r for r in draft.reasons if r not in (IN_QUESTION, DATE_OPEN)))
        due = later_due(draft.due, dues[-1]) if dues else draft.due
        claim = Claim("self", (heard.spoken.speaker,))
        grown = draft.grown(
            0.3, VOLUNTEERED, piece(heard, 2.0), claim=claim, due=due, mode="", withdrawn=False
        )
        drafts[at] = replace(
            grown, speaker=heard.spoken.speaker if draft.mode != "request" else draft.speaker, accepted=True
        )
        return True
    return False


def _answers_else(heard: Heard, clause: HeardClause, draft: Draft, state: State) -> bool:
    """Whether *I can* answers a question of its own (*Can you hear me, Tom?*) that was asked after a task."""
    if not state.recent:
        return False
    before = state.recent[-1]
    if {w for t in clause.clause.tokens for w in t.low.split()} & _PRONOUNS:
        # *I can do that* after *Eve, can you open the window?* is no word of the task before it.
        called = state.roster.of_speaker(heard.spoken.speaker) in before.called
        return (
            called
            and _YOU_COULD.search(before.clauses[-1].clause.norm) is not None
            and asks_else(before, draft)
        )
    anybody = any(_FOR_ANYBODY.match(c.clause.norm) for c in before.clauses[-1:])
    return not anybody and asks_else(before, draft)


def questioned(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Whoever has a task can hardly do it, or it is spoken of again: another may take it over in the next turns."""
    if heard.words > 60:
        return
    me = state.roster.of_speaker(heard.spoken.speaker)
    said = said_in(heard) - TIME_STEMS - LIGHT
    trouble = any(_TROUBLE.search(c.clause.norm) for c in heard.clauses)
    about = any(_ABOUT.match(c.clause.norm) for c in heard.clauses)
    unable = {
        n
        for c in heard.clauses
        for m in _CANNOT.finditer(c.clause.norm)
        for n in _named_at(heard, c, m.start("who"))
    }
    if trouble:
        said = (
            said.union(*(c.clause.stems for h in state.recent[-2:] for c in h.clauses)) - TIME_STEMS - LIGHT
        )
    best: tuple[int, int, int] | None = None
    for at, draft in enumerate(drafts):
        if (
            draft.family != "action"
            or draft.withdrawn
            or draft.mode in ("offer", "refused")
            or draft.claim.outside
        ):
            continue
        owners = owners_of(draft, state)
        if draft.first_index == heard.index or not owners or draft.support < 0.4:
            continue
        given_up = DATE_OPEN in draft.reasons and draft.last_index == heard.index
        named = bool((trouble and me in owners) or about or unable & owners) and bool(said & draft.stems)
        if given_up or named:
            rank = (int(given_up), len(said & draft.stems), at)
            best = max(best, rank) if best is not None else rank
    if best is not None:
        drafts[best[2]] = drafts[best[2]].grown(0.0, IN_QUESTION, piece(heard, 0.4))


def _named_at(heard: Heard, clause: HeardClause, at: int) -> tuple[str, ...]:
    token = clause.clause.tokens[clause.clause.token_at(at)]
    mention = heard.people.get(token.first)
    return mention.names if mention is not None else ()


def _in_question(
    heard: Heard, drafts: list[Draft], clause: HeardClause, state: State, plainly: bool
) -> int | None:
    """The place of the task whose owner was in question just before and that these words mean."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        age = heard.index - draft.last_index
        if IN_QUESTION not in draft.reasons or draft.withdrawn or not 0 < age <= _VOLUNTEER_REACH:
            continue
        if me in owners_of(draft, state):
            continue
        means = {w for t in clause.clause.tokens for w in t.low.split()} & _PRONOUNS
        common = (clause.clause.stems - TIME_STEMS - LIGHT) & draft.stems
        asked = bool(state.recent) and me in state.recent[-1].called and "accept" in heard.signals()
        asked = asked and not asks_else(state.recent[-1], draft)
        own = clause.clause.stems - TIME_STEMS - LIGHT - draft.stems - _RATHER
        if (
            (plainly and (age <= 3 or DATE_OPEN not in draft.reasons))
            or asked
            or common
            or ("accept" not in clause.signals and means and len(own) <= 1)
        ):
            return at
    return None


def _instead(heard: Heard, drafts: list[Draft], clause: HeardClause, state: State) -> int | None:
    """The place of the task of whoever somebody does it instead of (*I'll ring him instead of Eve*)."""
    found = _INSTEAD_OF.search(clause.clause.norm)
    if found is None:
        return None
    names = set(_named_at(heard, clause, found.start("whom")))
    theirs = [
        at
        for at, d in enumerate(drafts)
        if d.family == "action"
        and not d.withdrawn
        and heard.index - d.last_index <= _LATER_REACH
        and names & owners_of(d, state)
    ]
    alike = [at for at in theirs if (clause.clause.stems - TIME_STEMS) & drafts[at].stems]
    return alike[-1] if alike else theirs[0] if len(theirs) == 1 else None


_RATHER: Final = stems("myself sooner rather")
_PRONOUNS: Final = words_in("it that them this those him her")


def _free(heard: Heard, drafts: list[Draft], place: int) -> int | None:
    """The place of the task that nobody has and that was spoken of last."""
    for at in range(len(drafts) - 1, -1, -1):
        draft = drafts[at]
        age = heard.index - draft.last_index
        if (
            draft.family != "action"
            or not (draft.likely_work or NOT_BY_ASKED in draft.reasons)
            or not (0 < age <= _VOLUNTEER_REACH or (age == 0 and place > 0))
        ):
            continue
        given_up = draft.withdrawn and draft.reasons[-1] in _GIVEN_UP and age <= _VOLUNTEER_REACH
        if (draft.withdrawn and not given_up) or draft.mode in ("offer", "refused") or draft.claim.outside:
            continue
        open_ = draft.claim.kind == "none" or (
            draft.claim.kind == "you" and not draft.claim.people and not draft.accepted
        )
        if open_ or given_up or (NOT_BY_ASKED in draft.reasons and not draft.accepted):
            # *Who picks her up?* asked since then is what *I'll do it* answers.
            return None if asked_since(draft, drafts) else at
        if age > 0:
            return None
    return None


_GIVEN_UP: Final = frozenset(
    (
        "i_will_not_after_all",
        "away_that_day",
        "backing_out",
        "take_me_off",
        "then_i_will_not",
        "not_after_all",
    )
)
