"""Dates that are put right: by the owner or by others, at once or much later, in whole sentences or in a word."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from operators.language.dates import DuePhrase, resolve
from operators.language.days import bare_words, named_days, same_day
from operators.language.text import stems
from operators.understand.anew import (
    DATE_CHANGED,
    DATE_OPEN,
    NEAR,
    OPENS,
    SaidDay,
    day_then,
    due_of,
    said_anew,
    stands,
    with_due,
)
from operators.understand.due import begins, said_due, spoken_words
from operators.understand.hear import Heard, HeardClause
from operators.understand.merge import LIGHT, TIME_STEMS, own_task, said_in, shared
from operators.understand.state import Claim, Draft, Due, State, later_due, owners_of, piece
from operators.understand.topic import THINGS, asks_else

_LONG: Final = 60
_BARE_REACH: Final = 2
_FIRM: Final = re.compile(
    r"\b(?:make (?:it|that)|move[ds]? (?:it|that)?|push(?:ed)?|postpone|rather|instead|better|sooner|sorry|"
    r"i mean|actually|correction|"
    r"(?:could|can|shall|let) (?:we|us) (?:say|make)|shall we say|too (?:late|early)|have till|have until|"
    r"need (?:till|until)|no later)\b"
)
"""What makes a day that is named late in a meeting a new one of something spoken of long before."""
_WISER: Final = re.compile(
    r"(?:'s|is|would be|will be) (?:even |much |probably |rather )*(?:wis|saf|easi|bett|nic|good|fine)[a-z]*$"
)
_AFTER: Final = (
    r"(?: (?:even|then|latest|at the latest|first thing|morning|afternoon|evening|night|lunchtime|will do|would do|"
    r"(?:is|'s|would be|will be)(?: (?:even|much|probably|rather|quite))* (?:fine|okay|good|great|best|"
    r"all right|perfect|[a-z]+er)|"
    r"works(?: better)?|suits(?: me| us)?(?: better)?|"
    r"if that is (?:okay|all right|fine)|please|instead|it is|it was|i can(?: do(?: it)?)?|i can do|i think|"
    r"okay|fine|easily|"
    r"by lunch|at noon|yes|sorry|@|for (?:me|us)|not (?:an? [a-z]+ )?later|though|they have it|you have it|"
    r"you will have it|you get it|"
    r"(?:you|they) will get it))*$"
)
_WHEN_ASKED: Final = re.compile(
    r"^(?:(?:and|so|but|okay|right|@) )*(?:(?:by|until|till|for|on) )?(?:when(?: (?:is|would|will) (?:that|it|"
    r"this)(?: be)?)?(?: then)?$|"
    r"(?:by|until|till) when\b|what (?:day|date)|which (?:day|date)|how (?:soon|quickly|fast|long))"
    r"|\b(?:by|until|till) when$|\bwhen (?:can|could|will|do|would) (?:you|we|i|@)\b"
)
_WHO: Final = re.compile(r"^(?:(?:and|but|so|then) )*(?:who|why|what|where|how|if|unless|because|since)\b")
_OPENS_AT: Final = re.compile(
    r"^(?:(?:and|but|so|then|because|only) )*(?:they|he|she|it|[\w'-]+) (?:shuts?|closes?|opens?|leaves?|"
    r"starts?|finish(?:es)?|goes?|comes?|is there|are there|is open)\b"
)
"""What happens at a time by itself."""
_OF_ELSE: Final = re.compile(
    r"^(?:(?:and|but|so|then|because|okay|yes|well|by the way) )*(?:the|our|my|your|his|her|their) (?:[\w'-]+ ){1,3}?"
    r"(?:is|are|was|were|starts?|begins?|opens?|closes?|will be|goes out|go out) (?:on|at|from|in) "
)
"""When something is that is no task (*The fair is on the fourth of April*)."""
_THIRD: Final = re.compile(r"^(?:(?:and|but|so|then|good|okay|right) )*(?:he|she|@|~)(?: 's)? ")
_ONE_AFTER: Final = re.compile(
    r"\b(?:the (?:one|week) (?:after|following)(?: that)?|(?:a|one) week later|the week after that|"
    r"(?P<next>the (?:day after(?! tomorrow)|next day|"
    r"following day)|a day later)|(?P<before>the day before(?: that)?|a day (?:earlier|before)))(?= (?:then|"
    r"please|instead|if|because|so)\b|$)"
)
"""Days told by their distance to one that was said before."""

_CONTRAST: Final = re.compile(
    r"\b(?:but|instead|no longer|after all|make (?:it|that)|(?:can|could|will) not)\b"
)
"""What shows that a day said before is brought up to change it, though no other one is named yet."""


def correct(heard: Heard, drafts: list[Draft], state: State, look_back: int) -> bool:
    """A new date (or the same once more) for an earlier action; true if it was one."""
    if heard.words > _LONG:
        return False
    timed = [i for i, c in enumerate(heard.clauses) if c.dues]
    days = _days_in(heard)
    if not timed and not days and not heard.people:
        return False
    if _moved(heard, drafts, state, days, look_back):
        return True
    if _filled(heard, drafts, state, days) or said_anew(heard, drafts, state, days):
        return True
    alone = _told_alone(heard, drafts, state, days)
    if alone is not None:
        return alone
    if day_then(heard, drafts, state, days):
        return True
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if not stands(draft):
            continue
        changed = _named_again(heard, draft, state, timed) or _redated(heard, draft, state, timed, look_back)
        if changed is not None:
            drafts[place] = changed
            return True
    return False


def _days_in(heard: Heard) -> list[SaidDay]:
    """Days of an utterance; one that is dropped somewhere in it is dropped wherever it is named."""
    found = [
        SaidDay(place, day)
        for place, clause in enumerate(heard.clauses)
        for day in named_days(clause.clause.norm, clause.clause.question_mark)
        if day.dropped or not begins(day.phrase, clause.clause.norm, own=True)
    ]
    other = {bare_words(d.day.phrase) for d in found if not d.day.dropped}
    if not any(_CONTRAST.search(c.clause.norm) or _ONE_AFTER.search(c.clause.norm) for c in heard.clauses):
        # *We agreed on Friday*, *we have a stall on Friday*: no word of another day, so nothing is changed.
        found = [d for d in found if not d.day.doubtful or other - {bare_words(d.day.phrase)}]
    gone = {bare_words(d.day.phrase) for d in found if d.day.dropped}
    return [
        d
        if d.day.dropped or bare_words(d.day.phrase) not in gone
        else replace(d, day=replace(d.day, dropped=True))
        for d in found
    ]


def _moved(heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay], look_back: int) -> bool:
    """The day that was said is named as one that will not do, with another one or without."""
    gone = [d for d in days if d.day.dropped and not _put_aside(heard.clauses[d.place])]
    if not gone:
        return _spoken_of_again(heard, drafts, state, days, look_back)
    said, today = said_in(heard), state.context.date
    me = state.roster.of_speaker(heard.spoken.speaker)
    best: tuple[float, int] | None = None
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if not stands(draft) or draft.due is None or draft.due.said_in == heard.spoken.id:
            continue
        known = draft.due.phrase
        about = len((said & draft.stems) - TIME_STEMS - LIGHT)
        named = [
            d
            for d in gone
            if same_day(d.day.phrase, known, today)
            and (about or not own_task(heard.clauses[d.place], draft))
            and (d.day.strongly or about > 1 or not _of_somebody_else(heard, d.place, draft, state))
        ]
        if not named:
            continue
        age = heard.index - draft.last_index
        mine = me is not None and (
            me in owners_of(draft, state) or me == state.roster.of_speaker(draft.speaker)
        )
        if not mine and about < 2 and age > NEAR and heard.signals() & {"commit", "promise"}:
            continue  # *That's mine. Tomorrow, not tonight* tells when the speaker's own work is done
        strongly = any(d.day.strongly for d in named) or (
            age <= _BARE_REACH and bool(set(heard.called) & owners_of(draft, state))
        )
        far = look_back * 10
        reach = far if about or (mine and strongly and _only_one(drafts, draft, me, state)) else NEAR
        if age > reach or not (strongly or mine or about):
            continue
        value = 2.0 * min(about, 2) + 1.0 * mine - 0.05 * age + 0.5 * strongly
        if best is None or value > best[0]:
            best = (value, place)
    if best is None:
        return False
    draft = drafts[best[1]]
    due = _new_day(heard, draft, days, today)
    reason = DATE_CHANGED if due is not None else DATE_OPEN
    changed = with_due(draft.grown(0.05, reason, piece(heard, 2.0)), due)
    drafts[best[1]] = changed if due is None else _answered(changed, heard, state)
    return True


def _of_somebody_else(heard: Heard, place: int, draft: Draft, state: State) -> bool:
    """Whether it is another than the owner who is said to be away or busy then."""
    owners = owners_of(draft, state)
    clause = heard.clauses[place].clause
    words = set(clause.norm.split())
    if words & {"i", "me", "my"}:
        return state.roster.of_speaker(heard.spoken.speaker) not in owners
    if words & {"you", "your"}:
        return state.roster.of_speaker(heard.spoken.speaker) in owners
    named = {n for t in clause.tokens if t.first in heard.people for n in heard.people[t.first].names}
    return not named & owners if named else bool(words & {"he", "she", "they", "~"})


def _only_one(drafts: Sequence[Draft], draft: Draft, me: str | None, state: State) -> bool:
    """Whether this is the only task of somebody that is due on its day."""
    if draft.due is None:
        return False
    return not any(
        other.due is not None
        and other.id != draft.id
        and stands(other)
        and me in owners_of(other, state)
        and same_day(other.due.phrase, draft.due.phrase, state.context.date)
        for other in drafts
    )


def _spoken_of_again(
    heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay], look_back: int
) -> bool:
    """The owner or who asked comes back to a task of long before, and to another day (*Actually, the van. Friday's safer*)."""
    if not days or not any(
        _FIRM.search(c.clause.norm) or _WISER.search(c.clause.norm) for c in heard.clauses
    ):
        return False
    said = said_in(heard) - TIME_STEMS
    me = state.roster.of_speaker(heard.spoken.speaker)
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        age = heard.index - draft.last_index
        mine = me is not None and (
            me in owners_of(draft, state) or me == state.roster.of_speaker(draft.speaker)
        )
        if not stands(draft) or draft.due is None or not mine or not _BARE_REACH < age <= 10 * look_back:
            continue
        if not shared(said, draft.stems - TIME_STEMS):
            continue
        due = _new_day(
            heard,
            draft,
            [d for d in days if _alone(heard.clauses[d.place].clause.norm, d.day.phrase)],
            state.context.date,
        )
        if due is None:
            return False
        drafts[place] = with_due(draft.grown(0.05, DATE_CHANGED, piece(heard, 2.0)), due)
        return True
    return False


def _put_aside(clause: HeardClause) -> bool:
    return bool(clause.signals & {"hypothetical", "joke"})


def _answered(draft: Draft, heard: Heard, state: State) -> Draft:
    """A request whose answer is another day is accepted by it."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    owners = owners_of(draft, state)
    asked = me in owners if owners else heard.spoken.speaker != draft.speaker
    if draft.mode != "request" or heard.spoken.speaker is None or not asked:
        return draft
    return replace(draft, claim=Claim("you", (heard.spoken.speaker,)), mode="", accepted=True)


def _new_day(heard: Heard, draft: Draft, days: Sequence[SaidDay], today: dt.date | None) -> Due | None:
    """The day of an utterance that takes the place of the one that it drops."""
    for clause in heard.clauses:
        after = _ONE_AFTER.search(clause.clause.norm)
        if after is not None and draft.due is not None:
            return _counted(after, clause, heard, draft.due.phrase, today)
    kept = [
        d
        for d in days
        if not d.day.dropped
        and not heard.clauses[d.place].signals & {"past", "reported", "hypothetical", "joke"}
        and not _WHO.match(heard.clauses[d.place].clause.norm)
        and not own_task(heard.clauses[d.place], draft)
        and not _of_others(heard, d.place, draft)
    ]
    if not kept:
        return None

    def firm(d: SaidDay) -> bool:
        clause = heard.clauses[d.place]
        short = len(clause.clause.tokens) <= 5
        return (
            short
            or d.day.phrase.sets_deadline
            or bool(clause.signals & {"correct", "commit", "promise", "assign", "request"})
        )

    chosen = ([d for d in kept if firm(d)] or kept)[-1]
    return due_of(heard, chosen)


def _of_others(heard: Heard, place: int, draft: Draft) -> bool:
    """Whether a clause gives work to somebody who does not have this task."""
    clause = heard.clauses[place]
    named = {n for t in clause.clause.tokens if t.first in heard.people for n in heard.people[t.first].names}
    outside = any(t.person == "~" for t in clause.clause.tokens)
    return "assign" in clause.signals and (outside or bool(named - set(draft.claim.people)))


def _counted(
    match: re.Match[str], clause: HeardClause, heard: Heard, known: DuePhrase, today: dt.date | None
) -> Due | None:
    """*The one after*: a day counted from the one that was said, where that is one."""
    start = resolve(known, today)
    if start is None:
        return None
    days = 1 if match["next"] else -1 if match["before"] else 7
    day = start + dt.timedelta(days=days)
    tokens = clause.clause.between(match.start(), match.end())
    words = spoken_words(heard.spoken.text, tokens)
    return Due(DuePhrase(match.start(), match.end(), "iso", day.isoformat(), None), words, heard.spoken.id)


def _filled(heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay]) -> bool:
    """Whoever has a task whose day was given up just before says another day in whole sentences."""
    me = state.roster.of_speaker(heard.spoken.speaker)
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        open_ = stands(draft) and draft.due is None and DATE_OPEN in draft.reasons
        if not open_ or me not in owners_of(draft, state) or not 0 < heard.index - draft.last_index <= NEAR:
            continue
        due = _new_day(heard, draft, days, state.context.date)
        if due is not None:
            drafts[place] = with_due(draft.grown(0.05, DATE_CHANGED, piece(heard, 2.0)), due)
            return True
    return False


def _told_alone(heard: Heard, drafts: list[Draft], state: State, days: Sequence[SaidDay]) -> bool | None:
    """All that somebody says is a day, right after a task, its date or the question when (*Thursday even.*).

    True where nothing else was said, None where this was no such day.
    """
    alone = [
        d for d in days if not d.day.dropped and _alone(heard.clauses[d.place].clause.norm, d.day.phrase)
    ]
    if (
        not alone
        or not state.recent
        or heard.clauses[alone[0].place].signals & {"unknown", "past", "reported"}
    ):
        return None
    if sum(len(c.clause.tokens) for c in heard.clauses[: alone[0].place]) > 3 and heard.words > 12:
        return None
    before = state.recent[-1]
    asked = any(_WHEN_ASKED.search(c.clause.norm) for c in before.clauses)
    timed = any(c.dues or named_days(c.clause.norm, False) for c in before.clauses)
    near = [
        p
        for p, d in enumerate(drafts)
        if (stands(d) or _own_offer(d, state, heard))
        and 0 < heard.index - d.last_index <= (NEAR if asked or DATE_OPEN in d.reasons else _BARE_REACH)
    ]
    if not near:
        return None
    spoken_of = stems(" ".join(c.clause.norm for c in before.clauses)) - TIME_STEMS
    me = state.roster.of_speaker(heard.spoken.speaker)
    latest = max(drafts[p].last_index for p in near)

    def fits(p: int) -> tuple[bool, bool, int, int, int]:
        due = drafts[p].due
        just = due is not None and due.said_in == before.spoken.id
        return (
            me in owners_of(drafts[p], state),
            just,
            drafts[p].last_index,
            shared(spoken_of, drafts[p].stems),
            p,
        )

    place = max((p for p in near if drafts[p].last_index >= latest - 1), key=fits)
    draft = drafts[place]
    mine = me is not None and (me in owners_of(draft, state) or me == state.roster.of_speaker(draft.speaker))
    just = before.spoken.id == (draft.due.said_in if draft.due else None) or draft.first_index == before.index
    about = not spoken_of or bool(shared(spoken_of, draft.stems))
    if not (mine or (asked and about) or DATE_OPEN in draft.reasons or (timed and just)):
        return None
    if before.spoken.speaker != heard.spoken.speaker and asks_else(before, draft):
        return False  # *When do you fly to Rome?* *Monday.*
    if not mine and heard.clauses[alone[-1].place].clause.question_mark:
        return None  # *Sorry, Sunday?* asks what was said
    only = not any(_another(heard, p, draft, alone[-1].day.phrase, state) for p in range(len(heard.clauses)))
    due = due_of(heard, max(alone, key=lambda d: (*_how_plain(d.day.phrase), d.place)))
    if draft.due is not None and same_day(draft.due.phrase, due.phrase, state.context.date):
        drafts[place] = draft.grown(0.1, "date said again")
        return only
    grown = draft.grown(0.1, "date said again" if draft.due is None else DATE_CHANGED, piece(heard, 2.0))
    drafts[place] = _answered(with_due(grown, later_due(draft.due, due)), heard, state)
    return only


def _how_plain(phrase: DuePhrase) -> tuple[bool, bool]:
    """A weekday with its date says more than a date, a date more than a weekday (*The fifteenth, then. Wednesday.*)."""
    return phrase.kind == "day_date", phrase.kind in ("iso", "date", "ordinal")


def _own_offer(draft: Draft, state: State, heard: Heard) -> bool:
    """Whether somebody offered to do it who now speaks (*I can run it on the ninth*)."""
    open_ = draft.family == "action" and not draft.withdrawn and draft.mode == "offer"
    return open_ and state.roster.of_speaker(heard.spoken.speaker) in owners_of(draft, state)


def _another(heard: Heard, place: int, draft: Draft, day: DuePhrase, state: State) -> bool:
    """Whether a clause beside the day has a task of its own."""
    clause = heard.clauses[place]
    if clause.signals & {"assign", "request", "need", "group"}:
        return True
    return own_task(clause, draft) and not any(same_day(d, day, state.context.date) for d in clause.dues)


def _alone(norm: str, phrase: DuePhrase) -> bool:
    return (
        re.match(OPENS + "$", norm[: phrase.first]) is not None
        and re.match("^" + _AFTER, norm[phrase.last :]) is not None
    )


def _tells_when(clause: HeardClause) -> bool:
    """Whether a clause says until when something just spoken of is wanted (*Only get it to them by Monday*)."""
    means = {w for t in clause.clause.tokens for w in t.low.split()} & THINGS
    return bool(means) and any(d.sets_deadline for d in clause.dues) and not clause.clause.question_mark


def _named_again(heard: Heard, draft: Draft, state: State, timed: list[int]) -> Draft | None:
    """The owner is reminded of it (*Kamala, rota Thursday*)."""
    names = {n for m in heard.people.values() for n in m.names}
    if not names & owners_of(draft, state) or heard.index - draft.last_index < 2 or heard.words > 14:
        return None
    phrases = [d.words for i in timed for d in heard.clauses[i].dues]
    if (draft.due is None or draft.due.phrase.words not in phrases) and not shared(
        said_in(heard), draft.stems
    ):
        return None
    due = next((d for i in timed if (d := said_due(heard, i))), None)
    return draft.grown(0.15, "named again", piece(heard), due=draft.due or due)


def _redated(heard: Heard, draft: Draft, state: State, timed: list[int], look_back: int) -> Draft | None:
    """The owner or who asked says another date, or the same once more."""
    age = heard.index - draft.last_index
    me = state.roster.of_speaker(heard.spoken.speaker)
    mine = me in owners_of(draft, state) or me == state.roster.of_speaker(draft.speaker)
    for number in sorted(timed, key=lambda i: ("correct" not in heard.clauses[i].signals, -i)):
        clause = heard.clauses[number]
        norm = clause.clause.norm
        told = clause.best("correct")
        anyone = told is not None and told.rule.name == "make_it_another_day" and age <= 2
        new = len(clause.clause.stems - draft.stems - TIME_STEMS)
        anyone = anyone or (age <= 1 and new == 0 and draft.due is None and _tells_when(clause))
        if (
            not (mine or anyone)
            or new > 2
            or clause.signals & {"past", "reported", "hypothetical", "unknown"}
        ):
            continue
        if new and clause.signals & {"group", "request", "assign", "need"}:
            continue
        if (
            own_task(clause, draft)
            or _WHO.match(norm)
            or _OPENS_AT.match(norm)
            or (new and _OF_ELSE.match(norm))
            or (new and _THIRD.match(norm))
        ):
            continue
        if told is not None and (
            age <= NEAR
            or (
                age <= 10 * look_back
                and shared(said_in(heard), draft.stems)
                and _FIRM.search(norm) is not None
            )
        ):
            said = said_due(heard, number, last=True)
            if said is None:
                continue  # *From April first* tells when something holds
            due = later_due(draft.due, said)
            return with_due(draft.grown(0.05, DATE_CHANGED, piece(heard, 2.0)), due)
        named = named_days(norm, clause.clause.question_mark)
        if named and all(d.dropped for d in named):
            continue  # *I've got the wedding till Wednesday* tells when somebody has no time
        other = said_in(heard) - draft.stems - TIME_STEMS
        if age <= 2 and (heard.words <= 10 or (len(other) <= 3 and heard.words <= 16)):
            # *And Friday at two, the boxes*: words of another matter move no date that is known.
            if new and (draft.due is not None or norm.startswith("and ")):
                return draft.grown(0.1, "date said again", piece(heard))
            said = said_due(heard, number)
            if said is None:
                continue
            return with_due(draft.grown(0.1, "date said again", piece(heard)), later_due(draft.due, said))
    return None
