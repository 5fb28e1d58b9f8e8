"""Restating and correcting: what an utterance adds to an item that is already there."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import replace

from operators.compose import sentence, task_tokens
from operators.language.rules import piece_named, rules_of
from operators.language.text import STOP, stems
from operators.language.words import words_in
from operators.understand.asked import asked_since
from operators.understand.birth import CONTINUES_WITHIN_NS, DUE_BONUS, ONE_OF_SEVERAL, SAYS_LITTLE
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.state import Draft, State, later_due, piece

PUT_ASIDE = "put aside"
TAKEN_UP = "taken up"
NOT_BY_ASKED = "not by the one asked"


def restate(heard: Heard, fresh: Draft, drafts: list[Draft], before: Heard | None = None) -> bool:
    """Merge a new draft into an earlier one about the same thing; true if it was merged.

    The last owner and date count; both utterances are evidence. A decision that only says once more
    that something was taken back (*no party then*) is swallowed. ``before`` is the utterance that it may answer.
    """
    undone = fresh.family == "decision" and "withdraw" in heard.signals()
    if undone and any(d.withdrawn and d.stems & fresh.stems for d in drafts):
        return True
    asked = asked_of_all(heard, fresh, drafts, before)
    if asked is not None:
        drafts[asked] = taken_up(drafts[asked], fresh)
        return True
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if draft.family != fresh.family or draft.mode == "refused" or draft.withdrawn:
            continue
        if fresh.family == "action" and _other_object(draft, fresh):
            continue
        apart = draft.stems - TIME_STEMS != fresh.stems - TIME_STEMS and _owned_apart(draft, fresh)
        if draft.first_index == fresh.first_index and apart:
            continue  # what one breath gives to two people are two tasks
        both = draft.stems & fresh.stems
        common = shared(draft.stems, fresh.stems) if fresh.family == "action" else len(both - TIME_STEMS)
        if fresh.family == "decision" and _dated(draft, fresh):
            drafts[place] = _merged(draft, fresh)
            return True
        if common == 0:
            continue
        likeness = common / max(1, min(len(draft.stems), len(fresh.stems)))
        age = heard.index - draft.last_index
        if fresh.family == "question":
            same = likeness >= 0.6 and age <= 40
        elif fresh.family == "decision":
            same = (likeness >= 0.6 and common >= 2 and age <= 60) or (likeness >= 0.5 and age <= 10)
        else:
            rivals = draft.claim.kind == fresh.claim.kind == "self" and _owned_apart(draft, fresh)
            others = fresh.claim.kind == "self" and not _same_owner(draft, fresh)
            if others and _own_work(heard, draft, fresh):
                continue
            if age > _NEAR and _owned_apart(draft, fresh) and both - TIME_STEMS <= VERBS:
                continue  # *You'll have a written quote from me*, *Greta, would you write us something*
            same = (likeness >= (0.01 if _sums_up(fresh) else 0.5) and _same_owner(draft, fresh)) or (
                likeness > (0.7 if fresh.mode == "request" else 0.5)
                and age <= 8
                and (common > 1 or not rivals)
            )
        if same:
            drafts[place] = _merged(draft, fresh)
            return True
    return False


def asked_of_all(heard: Heard, fresh: Draft, drafts: list[Draft], before: Heard | None = None) -> int | None:
    """The place of the task asked of the room that a promise means with a pronoun alone; None where it means none.

    *Somebody has to ask the fire brigade.* *I can ring them.* What the promise says of it is done in a like way, or is
    only *do it*; words of its own object (*I'll tell them about the cake*) make it another task.
    """
    if fresh.family != "action" or fresh.claim.kind != "self" or not fresh.claim.people:
        return None
    for clause in heard.clauses:
        found = _ONLY_IT.search(clause.clause.norm)
        if found is None or clause.signals & {"past", "reported", "joke", "hypothetical"}:
            continue
        if clause.clause.question_mark and not fresh.accepted:
            continue
        rest = stems(_BESIDE.split(f" {found['rest']}")[0]) - TIME_STEMS - LIGHT - _MANNER
        kind = _way_of(found["verb"])
        for place in range(len(drafts) - 1, -1, -1):
            draft = drafts[place]
            if draft.id == fresh.id or draft.family != "action" or draft.withdrawn or draft.mode == "refused":
                continue
            if (
                draft.first_index >= fresh.first_index
                or fresh.first_index - draft.last_index > _TAKEN_UP_REACH
            ):
                continue
            if asked_since(draft, drafts):
                return None
            refused = NOT_BY_ASKED in draft.reasons
            if draft.support < _MEANT_TASK and not draft.likely_work and not refused:
                continue
            if draft.mode == "request" and draft.speaker == fresh.speaker and not refused:
                continue
            alike = kind == "" or kind in _ways_of(draft.text)
            if draft.claim.kind == "group" and (kind == "" or _EVERYONE & set(draft.text.lower().split())):
                continue  # what everybody does is done by each
            if _open_to_all(draft) and alike and rest <= draft.stems:
                return None if before is not None and _bids_else(before, draft) else place
            if alike:
                return None  # *it* is what was spoken of last
    return None


def _bids_else(before: Heard, draft: Draft) -> bool:
    """Whether an utterance asks somebody for something else than a task (*Eve, can you open the window?*)."""
    last = before.clauses[-1].clause if before.clauses else None
    if last is None:
        return False
    own = last.stems - TIME_STEMS - LIGHT
    if not own or own & draft.stems:
        return False
    return (last.question_mark and _OF_ELSE.search(last.norm) is not None) or _SHOWS.match(
        last.norm
    ) is not None


def _open_to_all(draft: Draft) -> bool:
    """Whether nobody has a task yet, and whoever wants to may take it."""
    return (
        not draft.claim.people and not draft.claim.outside and not draft.claim.said and not draft.accepted
    ) and draft.mode != "offer"


def taken_up(asked: Draft, promise: Draft) -> Draft:
    """A task asked of the room with the owner and the date of whoever takes it; both are its evidence."""
    evidence = asked.evidence
    for part in promise.evidence:
        if part.weight >= 1 and all(p.quote.utterance_id != part.quote.utterance_id for p in evidence):
            evidence = (*evidence, part)
    return replace(
        asked,
        support=max(asked.support, promise.support) + 0.12,
        speaker=promise.speaker,
        claim=promise.claim,
        due=later_due(asked.due, promise.due),
        evidence=evidence,
        last_index=max(asked.last_index, promise.last_index),
        reasons=tuple(dict.fromkeys((*asked.reasons, TAKEN_UP))),
        mode="",
        accepted=promise.accepted,
        by_model=asked.by_model and promise.by_model,
        judged=tuple(sorted({**dict(asked.judged), **dict(promise.judged)}.items())),
    )


_EVERYONE = words_in("all everyone everybody each")
_TAKEN_UP_REACH = 5
_MEANT_TASK = 0.3
_ONLY_IT = re.compile(
    r"(?:^|\b)(?:i (?:will|can|could|shall|am going to|am happy to|would|had better)|(?:shall|should|can|could) i|let me)"
    r"(?: (?:just|gladly|happily|then|also|quickly|easily|try and|try to|go and))* "
    r"(?P<verb>(?:let|drop|give) (?=(?:them|him|her) (?:know|a (?:line|call|ring|message|note)))|"
    r"[a-z]+(?: up| to| with| after| out)? )"
    r"(?:it|that|this|them|those|these|him|her)(?: both| all)?(?P<rest>(?: .*)?)$"
)
_BESIDE = re.compile(
    r" (?:together|along|with|on|after|before|when|while|at|if|in|by|until|till|because|since|as|and|so|then|but|i|we|@|next|"
    r"from|for|during|over|once|tomorrow|today|tonight)\b"
)
"""Where what is said of the task itself ends: how, when and why it is done comes after it."""
_MANNER = stems("know line call ring message note myself instead quick quickly anyway okay")
_WAYS = {
    verb: way
    for way, verbs in {
        "tell": "ask tell ring call phone mail email text contact message speak talk inform warn remind let drop give invite",
        "get": "get buy order fetch pick bring collect",
        "mend": "fix mend repair",
        "clean": "clean wash tidy sweep wipe",
        "book": "book reserve",
        "check": "check look find",
        "make": "write draft prepare make",
        "": "do take handle sort manage cover have see",
    }.items()
    for verb in verbs.split()
}
"""Verbs of which one may be said for another; those of the last line for all."""


_OF_ELSE = re.compile(r"\b(?:can|could|would|will|do|did|have) (?:you|@)\b|^(?:what|where|how|whose)\b")
_SHOWS = re.compile(
    r"^(?:(?:and|but|oh|so|well|look) )*(?:(?:here|there) (?:is|are)\b|my (?:mum|mother|dad|father|wife|husband|sister|brother|"
    r"son|daughter|boss|aunt|uncle|gran|nan)\b)"
)
"""What brings up a thing or a person that a pronoun then means (*Here's your biscuit*, *My mum's ill again*)."""


def _way_of(verb: str) -> str:
    words = verb.split()
    if words[:2] == ["write", "to"]:
        return "tell"
    return _WAYS.get(words[0], words[0])


def _ways_of(text: str) -> set[str]:
    """What kinds of work a task is: that of its first word, or where that is no verb, of any (*Somebody to fix ...*)."""
    first, *others = (w.strip(",.:").lower() for w in text.split())
    if first in _WAYS or stems(first) & VERBS:
        return {_way_of(" ".join((first, *others[:1])))}
    return {_way_of(w) for w in (first, *others) if w}


def _sums_up(fresh: Draft) -> bool:
    """Whether a list of who does what names the matter in a word or two (*Mark, the patch; Will, the index*)."""
    return ONE_OF_SEVERAL in fresh.reasons and fresh.reasons[0] in _NAMED_ONLY


_NAMED_ONLY = frozenset(r.name for r in rules_of() if r.signal == "handover")


def _own_work(heard: Heard, draft: Draft, fresh: Draft) -> bool:
    """Whether another's promise, in words that lean on the one before it, has work of its own.

    *I'll send the report.* *I'll check it.* are two tasks; *I'll do it* takes the task over.
    """
    own = (fresh.stems & said_in(heard)) - TIME_STEMS
    return SAYS_LITTLE in fresh.reasons and bool(own) and not own & draft.stems


def supersede(heard: Heard, fresh: Draft, drafts: list[Draft]) -> bool:
    """Take back the earlier decision that a new one puts aside by name (*MySQL it is, not Postgres*)."""
    if fresh.family != "decision":
        return False
    for clause in heard.clauses:
        aside = _INSTEAD_OF.search(clause.clause.norm)
        if aside is None:
            continue
        tokens = clause.clause.tokens
        place = clause.clause.token_at(aside.end() + 1)
        kept = {t.low for t in tokens[:place]} - STOP
        dropped = {t.low for t in tokens[place : place + 3]} - STOP
        if not kept or kept & dropped:
            continue  # *It's not for a hundred people* puts nothing in its place
        for number in range(len(drafts) - 1, -1, -1):
            draft = drafts[number]
            said = {w.strip(",.:?").lower() for w in draft.text.split()}
            standing = draft.family == "decision" and not draft.withdrawn and draft.id != fresh.id
            denies = _INSTEAD_OF.search(draft.text.lower()) is not None
            if standing and dropped and dropped <= said and not kept & (said - _USUAL) and not denies:
                drafts[number] = draft.grown(0.0, PUT_ASIDE, piece(heard, 2.0), withdrawn=True)
                return True
    return False


_INSTEAD_OF = re.compile(
    r"\b(?:and not|not|instead of|rather than|no longer)(?: (?:the|a|an|to|on|in|with|for|use))*"
)
_USUAL = words_in("use used using take taken go decided decide agreed choose chosen keep pick set")


def _dated(draft: Draft, fresh: Draft) -> bool:
    """Whether the date that was proposed just before is now made firm."""
    proposed = draft.stems & TIME_STEMS
    near = fresh.first_index - draft.last_index <= 6 and fresh.speaker is not None
    return (
        draft.mode == "propose" and fresh.mode == "" and near and bool(proposed) and proposed <= fresh.stems
    )


def _other_object(draft: Draft, fresh: Draft) -> bool:
    """Whether the same verb has another object: *call the bank*, *call the plumber*; *call Zoe*, *call Eve*.

    Where each has its own owner, any other word on either side tells them apart (*paint the front door*,
    *the back door*; *write chapter three*, *chapter four*): people share out parts of one thing.
    """
    left, right = _named_in(draft.text), _named_in(fresh.text)
    if left and right and not left & right:
        return True
    if _owned_apart(draft, fresh):
        one, other = _words_in(draft.text), _words_in(fresh.text)
        if all(kept and not stems(" ".join(kept)) & VERBS for kept in (one - other, other - one)):
            return True
    common = draft.stems & fresh.stems
    only_verb = bool(common) and common <= VERBS
    apart = draft.stems - common - TIME_STEMS and fresh.stems - common - TIME_STEMS
    dated = draft.due is not None and fresh.due is not None
    long_ago = fresh.first_index - draft.last_index > _OLD
    return only_verb and bool(apart) and (dated or long_ago or fresh.mode == "offer")


_NEAR = 2
_OLD = 12
"""Utterances after which only a verb in common says no longer that the same thing is meant."""


def _named_in(text: str) -> frozenset[str]:
    """Words with a capital inside a text, but days and months."""
    return frozenset(w.strip(",.:()") for w in text.split()[1:] if w[:1].isupper() and len(w) > 2) - _CALENDAR


def _words_in(text: str) -> frozenset[str]:
    """Words of a text that say what it is about, sides and numbers too."""
    return frozenset(w.strip(",.:#()").lower() for w in text.split()) - (STOP - _SIDES)


def _owned_apart(draft: Draft, fresh: Draft) -> bool:
    """Whether both have owners and share none."""
    left, right = (set(d.claim.people) or {d.claim.said} - {""} for d in (draft, fresh))
    return bool(left and right) and not left & right


def _same_owner(draft: Draft, fresh: Draft) -> bool:
    left, right = set(draft.claim.people), set(fresh.claim.people)
    return bool(left & right) or (draft.claim.said != "" and draft.claim.said == fresh.claim.said)


LIGHT = stems("come get give go look make pay put run set take want")
"""Verbs that are in too many tasks to say alone which one is meant."""
VERBS = stems(" ".join(re.findall(r"(?<=[(|])[a-z]+(?=[|)])", piece_named("TASK_VERB"))))
_SIDES = words_in("back up down out off other another right one")
_CALENDAR = words_in("""
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
    July August September October November December
""")
_PROPOSES = frozenset(r.name for r in rules_of() if r.signal == "propose")


_WORK = re.compile(rf"(?:{piece_named('TASK_VERB')})\b", re.IGNORECASE)


def _names_the_work(draft: Draft, fresh: Draft) -> bool:
    """Whether only rules say in words of work what the model saw before (*Are the books ready?* *I'll have them ready*)."""
    seen = draft.family == "action" and draft.by_model and not fresh.by_model and len(fresh.stems) > 1
    return seen and _WORK.match(fresh.text) is not None and _WORK.match(draft.text) is None


def _merged(draft: Draft, fresh: Draft) -> Draft:
    support = max(draft.support, fresh.support) + 0.12
    evidence = draft.evidence
    for part in fresh.evidence:
        if all(p.quote.utterance_id != part.quote.utterance_id for p in evidence):
            evidence = (*evidence, part)
    better = fresh.support > draft.support + 0.05 or (draft.mode == "propose" and fresh.mode == "")
    if draft.family == "decision" and fresh.mode == "" and _PROPOSES & set(draft.reasons):
        better = better or len(fresh.stems) >= min(len(draft.stems), 3)
    keep_text = (draft.family != "decision" or not better) and not _names_the_work(draft, fresh)
    claim = fresh.claim if fresh.claim.people or fresh.claim.outside else draft.claim
    if fresh.by_model and (draft.claim.people or draft.claim.outside):
        # Only scores say that this is about work at all: they do not say whose.
        claim = draft.claim
    if fresh.mode in ("offer", "request") and draft.mode == "" and draft.claim.people:
        # *I could help with that* takes nothing from whoever has it already, nor does asking somebody else, who may refuse.
        claim = draft.claim
    if fresh.mode == "request" and draft.mode == "request" and not fresh.claim.people:
        claim = fresh.claim
    return replace(
        draft,
        text=draft.text if keep_text else fresh.text,
        support=support,
        evidence=evidence,
        due=draft.due if fresh.by_model and not draft.by_model else later_due(draft.due, fresh.due),
        claim=claim if draft.family == "action" else draft.claim,
        stems=draft.stems | fresh.stems,
        last_index=fresh.last_index,
        reasons=tuple(dict.fromkeys((*draft.reasons, *fresh.reasons, "said again"))),
        mode=draft.mode if fresh.mode else "",
        accepted=draft.accepted or fresh.accepted,
    )


_NUMBER = (
    r"(?:\d[\d.,]*|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    r"seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|half)"
    r"(?:[ -](?:one|two|three|four|five|six|seven|eight|nine|hundred|thousand))*)"
)
_RIGHT_NUMBER = re.compile(
    rf"^(?P<told>(?:(?:no|sorry|i mean|correction|rather|actually|oh|right|okay|so|yes|exactly|then|and|make it) )+)"
    rf"(?P<number>{_NUMBER})(?: (?P<noun>[a-z'-]+))?(?= |$)"
)
_IN_TEXT = re.compile(rf"\b(?P<number>{_NUMBER})\b(?: (?P<noun>[a-z'-]+))?", re.IGNORECASE)
NUMBER_CHANGED = "number changed"
_NUMBER_REACH = 3


def renumber(heard: Heard, drafts: list[Draft]) -> None:
    """Who said what was decided puts its number right (*Hire three people.* *Sorry, two.*)."""
    for clause in heard.clauses[:2]:
        right = _RIGHT_NUMBER.match(clause.clause.norm)
        if right is None or clause.clause.question_mark:
            continue
        for place in range(len(drafts) - 1, -1, -1):
            draft = drafts[place]
            if (
                heard.index - draft.last_index > _NUMBER_REACH
                or draft.family != "decision"
                or draft.withdrawn
            ):
                continue
            wrong = list(_IN_TEXT.finditer(draft.text))
            if draft.speaker != heard.spoken.speaker or len(wrong) != 1 or not _same_thing(right, wrong[0]):
                continue
            first, last = wrong[0].span("number")
            text = f"{draft.text[:first]}{right['number']}{draft.text[last:]}"
            stays = draft.stems - stems(wrong[0]["number"].lower()) | stems(right["number"])
            drafts[place] = replace(
                draft.grown(0.1, NUMBER_CHANGED, piece(heard, 2.0)), text=text, stems=stays
            )
            return


def _same_thing(right: re.Match[str], wrong: re.Match[str]) -> bool:
    """Whether another number is said of the same things, or of nothing in particular."""
    noun = right["noun"]
    other = right["number"].lower() != wrong["number"].lower()
    return other and (noun is None or noun in STOP or stems(noun) == stems((wrong["noun"] or "").lower()))


def own_task(clause: HeardClause, draft: Draft, signals: Set[str] = frozenset(("commit", "promise"))) -> bool:
    """Whether a clause takes on something else: its own verb and object, nothing of the draft, no *it*."""
    if not clause.signals & signals:
        return False
    words = {w for t in clause.clause.tokens for w in t.low.split()}
    if words & _MEANS_BEFORE:
        return False
    known = clause.clause.stems - TIME_STEMS
    named, about = {t.text for t in clause.clause.tokens if t.person}, _named_in(draft.text)
    if named and about:
        return not named & about
    fresh = known - draft.stems
    common = known & draft.stems
    return bool(fresh) and (not common or (common <= VERBS and bool(draft.stems - common - TIME_STEMS)))


_MEANS_BEFORE = words_in("it that this them those these one both same")


def go_on(heard: Heard, drafts: list[Draft], state: State) -> None:
    """The same speaker goes on: what was begun in the utterance before gets the rest of its words."""
    if not state.recent or not heard.clauses or heard.signals() & _OWN_MATTER:
        return
    before = state.recent[-1]
    if before.spoken.speaker is None or before.spoken.speaker != heard.spoken.speaker:
        return
    if heard.spoken.start_ns - before.spoken.end_ns >= CONTINUES_WITHIN_NS:
        return
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if (
            draft.family != "action"
            or draft.first_index != before.index
            or draft.speaker != heard.spoken.speaker
        ):
            continue
        due = said_due(heard, 0) if draft.due is None else draft.due
        grown = draft.grown(DUE_BONUS if due is not draft.due else 0.0, "went on", piece(heard, 0.4), due=due)
        clause = heard.clauses[0]
        unfinished = not before.spoken.text.rstrip().endswith((".", "?", "!"))
        if unfinished and len(draft.stems) <= 3 and clause.clause.stems:
            more = sentence(task_tokens(clause.clause, None, clause.dues))
            text = f"{draft.text} {more[:1].lower()}{more[1:]}" if more else draft.text
            grown = replace(grown, text=text, stems=grown.stems | clause.clause.stems)
        drafts[place] = grown
        return


_OWN_MATTER = frozenset(
    (
        "commit",
        "promise",
        "request",
        "assign",
        "need",
        "group",
        "handover",
        "withdraw",
        "refuse",
        "ask",
        "decide",
    )
)


def said_in(heard: Heard) -> frozenset[str]:
    """Stems of an utterance."""
    return frozenset().union(*(c.clause.stems for c in heard.clauses))


TIME_STEMS = stems("""
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen thirty forty fifty sixty seventy eighty ninety hundred thousand point half
    monday tuesday wednesday thursday friday saturday sunday today tomorrow tonight morning afternoon evening night
    week month january february march april may june july august september october november december noon first
    second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth twenty thirty thirtieth twentieth
    fifteenth sixteenth seventeenth eighteenth nineteenth thirteenth fourteenth twenty-first twenty-second
    twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirty-first
""")


def shared(left: frozenset[str], right: frozenset[str]) -> int:
    """Content stems in common; a short form counts (*refs* for *referees*)."""
    common = len(left & right)
    if common:
        return common
    starts = {a[:3]: a for a in left if len(a) >= 3}
    return sum(
        1 for b in right if (a := starts.get(b[:3])) is not None and (a.startswith(b) or b.startswith(a))
    )
