"""New drafts out of one utterance: actions, decisions and questions."""

from __future__ import annotations

from dataclasses import replace

from operators.compose import question_text, says_little, sentence, task_tokens, with_antecedent
from operators.language.dates import DuePhrase
from operators.language.rules import Hit
from operators.language.text import Clause, Token, stems
from operators.understand_hear import Heard, HeardClause
from operators.understand_state import Claim, Draft, Due, State, piece_of
from operators.understand_types import Family

ACTION_SIGNALS = ("commit", "promise", "assign", "request", "need", "group", "offer", "handover")
DUE_BONUS = 0.25
LEAD_BONUS = 0.12
GUARDS = {"past": 0.5, "hypothetical": 0.5, "reported": 0.5, "joke": 0.6}


def births(heard: Heard, state: State) -> tuple[Draft, ...]:
    """Drafts that this utterance starts, strongest reading of each clause."""
    out: list[Draft] = []
    for place in range(len(heard.clauses)):
        action = _action(heard, place, state)
        decision = _decision(heard, place, state)
        if action and decision:
            keep_action = action.support + 0.05 >= decision.support and action.claim.kind != "group"
            decision, action = (None, action) if keep_action or action.support >= 0.6 else (decision, None)
        question = _question(heard, place, state) if not (action and action.support > 0.3) else None
        for draft in (action, decision, question):
            if draft:
                number = sum(d.family == draft.family for d in out)
                out.append(replace(draft, id=draft.id + (f".{number}" if number else "")))
    return tuple(out)


def _id(family: Family, heard: Heard) -> str:
    return f"{family}:{heard.spoken.id}"


def _span(tokens: tuple[Token, ...]) -> tuple[int, int] | None:
    return (tokens[0].first, tokens[-1].last) if tokens else None


def _due_near(heard: Heard, place: int) -> tuple[Clause, DuePhrase] | None:
    """The time phrase of this clause, else of the clause after or before it that has no task itself."""
    order = [place, place + 1, place - 1]
    for index in order:
        if not 0 <= index < len(heard.clauses):
            continue
        other = heard.clauses[index]
        if index != place and (
            other.signals & {"commit", "promise", "past", "reported", "assign", "hypothetical"}
            or len(other.clause.tokens) > 9
        ):
            continue
        if other.dues:
            return other.clause, _deadline(other.dues)
    return None


def _deadline(dues: tuple[DuePhrase, ...]) -> DuePhrase:
    """*By* phrases first, dates before vague ones, else the first."""
    return min(dues, key=lambda d: (not d.sets_deadline, d.kind in ("vague", "clock"), d.first))


def said_due(heard: Heard, place: int) -> Due | None:
    """The due date stated in or beside a clause, with the words as they were said."""
    found = _due_near(heard, place)
    if found is None:
        return None
    clause, phrase = found
    tokens = clause.between(phrase.first, phrase.last)
    words = heard.spoken.text[tokens[0].first : tokens[-1].last] if tokens else phrase.words
    return Due(phrase, words)


def guard_weight(clause: HeardClause) -> tuple[float, tuple[str, ...]]:
    """What speaks against a clause being meant, and the names of the cues."""
    found = {h.rule.signal: h.rule.name for h in clause.hits if h.rule.signal in GUARDS}
    return sum(GUARDS[s] for s in found), tuple(found.values())


def _pick(clause: HeardClause) -> Hit | None:
    hits = [h for h in clause.hits if h.rule.signal in ACTION_SIGNALS]
    return max(hits, key=lambda h: h.rule.strength) if hits else None


def _action(heard: Heard, place: int, state: State) -> Draft | None:
    clause = heard.clauses[place]
    hit = _pick(clause)
    if hit is None:
        return None
    claim = claim_of(hit, clause, heard, state)
    if claim is None:
        return None
    against, guards = guard_weight(clause)
    due = said_due(heard, place)
    tokens = task_tokens(clause.clause, hit.task, clause.dues)
    support = hit.rule.strength - against
    reasons = [hit.rule.name, *guards]
    signal = hit.rule.signal
    if due is not None:
        support += DUE_BONUS if signal != "offer" else 0.15
        reasons.append("due date said")
    if signal in ("request", "assign", "need", "group", "handover") and _leads(heard, state):
        support += LEAD_BONUS
        reasons.append("said by who leads")
    if signal == "request" and heard.called:
        support += 0.1
    if clause.clause.question_mark and signal in ("commit", "promise", "need", "group"):
        support -= 0.25
    text, known, extra = _worded(tokens, heard, place, state)
    if not known:
        return None
    if extra is None and says_little(tokens):
        support -= 0.15
    mode = {"offer": "offer", "request": "request"}.get(signal, "")
    return Draft(
        _id("action", heard),
        "action",
        text,
        support,
        heard.spoken.speaker,
        claim,
        due,
        (piece_of(heard.spoken, heard.index, 3.0, _span(tokens)),),
        known,
        heard.index,
        heard.index,
        tuple(reasons),
        mode,
        heard.called,
    )


def _worded(
    tokens: tuple[Token, ...], heard: Heard, place: int, state: State
) -> tuple[str, frozenset[str], Heard | None]:
    """Text of an item, its content stems, and the earlier utterance whose words it needed."""
    text = sentence(tokens)
    known = stems(" ".join(t.low for t in tokens if not t.person))
    if not says_little(tokens):
        return text, known, None
    if place > 0 and not says_little(heard.clauses[place - 1].clause.tokens):
        before = heard.clauses[place - 1].clause
        return with_antecedent(text, before.tokens), known | before.stems, heard
    for other in reversed(state.recent[-3:]):
        for clause in reversed(other.clauses):
            if len(clause.clause.stems) >= 2:
                return text, known | clause.clause.stems, None
    return text, known, None


def _leads(heard: Heard, state: State) -> bool:
    name = state.roster.of_speaker(heard.spoken.speaker)
    if any(p.leads for p in state.roster.people):
        return state.roster.leads(name)
    return bool(state.speakers) and heard.spoken.speaker == state.speakers[0]


def claim_of(hit: Hit, clause: HeardClause, heard: Heard, state: State) -> Claim | None:
    """Who the action falls to, by the kind of cue and the people named in it."""
    signal, speaker = hit.rule.signal, heard.spoken.speaker
    if signal in ("commit", "promise", "offer"):
        plural = clause.clause.norm[hit.first : hit.first + 3] == "we "
        return Claim("self", (speaker,) if speaker and not plural else ())
    if signal == "need":
        return Claim("none")
    if signal == "group":
        return Claim("group")
    if signal == "request":
        return Claim("you", heard.called if len(heard.called) == 1 else ())
    if hit.who is None:
        return Claim("you", heard.called if len(heard.called) == 1 else ())
    named = [t for t in clause.clause.between(*hit.who) if t.person]
    mentions = [heard.people[t.first] for t in named if t.first in heard.people]
    if not mentions:
        return None
    if len(mentions) > 1:
        return Claim("group", (), " and ".join(m.said for m in mentions))
    mention = mentions[0]
    if mention.by == "outside":
        return Claim("named", (), mention.said, True)
    return Claim("named", mention.names, mention.said)


def _decision(heard: Heard, place: int, state: State) -> Draft | None:
    clause = heard.clauses[place]
    hits = [h for h in clause.hits if h.rule.signal in ("decide", "propose")]
    if not hits:
        return None
    best = max(hits, key=lambda h: h.rule.strength)
    against, guards = guard_weight(clause)
    support = best.rule.strength - against + 0.08 * (len(hits) - 1)
    reasons = [h.rule.name for h in hits] + list(guards)
    if _leads(heard, state):
        support += LEAD_BONUS
        reasons.append("said by who leads")
    if clause.clause.question_mark or clause.best("ask"):
        support -= 0.2
    tokens = task_tokens(clause.clause, None, ())
    known = clause.clause.stems
    text = sentence(tokens)
    matter, about = _matter(known, heard, state)
    pieces = [piece_of(heard.spoken, heard.index, 3.0, _span(tokens))]
    if len(known) < 3 and matter is not None:
        text = with_antecedent(text, about.tokens) if about else text
        known = known | (about.stems if about else frozenset())
        if matter.index != heard.index:
            pieces.insert(0, piece_of(matter.spoken, matter.index, 1.0))
            support += 0.05
    if not known or not text:
        return None
    return Draft(
        _id("decision", heard),
        "decision",
        text,
        support,
        heard.spoken.speaker,
        Claim("none"),
        None,
        tuple(pieces),
        known,
        heard.index,
        heard.index,
        tuple(reasons),
        "propose" if best.rule.signal == "propose" else "",
    )


def _matter(known: frozenset[str], heard: Heard, state: State) -> tuple[Heard | None, Clause | None]:
    """The latest earlier clause that brought up what a short decision is about."""
    for other in reversed(state.recent[-10:]):
        for clause in reversed(other.clauses):
            shared = clause.clause.stems & known
            if (
                shared
                and len(clause.clause.stems) >= 2
                and (clause.signals & {"ask", "propose"} or clause.clause.question_mark)
            ):
                return other, clause.clause
    for other in reversed(state.recent[-8:]):
        for clause in reversed(other.clauses):
            if known & clause.clause.stems and len(clause.clause.stems) >= 3:
                return other, clause.clause
    return None, None


def _question(heard: Heard, place: int, state: State) -> Draft | None:
    del state
    clause = heard.clauses[place]
    hit = clause.best("ask")
    if hit is None and not (clause.clause.question_mark and len(clause.clause.stems) >= 2):
        return None
    reasons: tuple[str, ...] = (hit.rule.name,) if hit else ("question mark",)
    support = (hit.rule.strength if hit else 0.2) * 0.5
    if clause.best("rhetorical"):
        support -= 0.3
        reasons = (*reasons, "rhetorical")
    if clause.clause.question_mark:
        support += 0.05
    tokens = clause.clause.tokens
    if len(tokens) < 3:
        return None
    span = hit.task if hit else None
    text = question_text(clause.clause, span)
    return Draft(
        _id("question", heard),
        "question",
        text,
        support,
        heard.spoken.speaker,
        Claim("none"),
        None,
        (piece_of(heard.spoken, heard.index, 3.0, _span(tokens)),),
        clause.clause.stems,
        heard.index,
        heard.index,
        reasons,
        "asked",
    )
