"""New drafts out of one utterance: actions, decisions and questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from operators.compose import (
    question_text,
    says_little,
    sentence,
    statement_tokens,
    task_tokens,
    with_antecedent,
)
from operators.language.rules import Hit, piece_named
from operators.language.text import clause_of, stems
from operators.language.words import words_in
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.joined import settled_text
from operators.understand.matter import (
    FINAL,
    GIVES_REASON,
    just_said,
    matter_of,
    names_topic,
    proposed,
    said_next,
)
from operators.understand.state import MATTER, Claim, Draft, Piece, State, piece_of
from operators.understand.types import Family
from operators.understand.vote import is_procedure, only_voted, voted
from operators.understand.wording import (
    condition_of,
    leant_on,
    lowered,
    of_a_person,
    said_span,
    span_of,
    worded,
)

SAYS_LITTLE = "says little alone"
PLAIN_WORK = "plain work"
ONE_OF_SEVERAL = "one of several tasks"
LEANS = "leans on what was said"
MOCKS = "mocks a wish"
_MOCKING = re.compile(r"(?:oh |well )*(?:sure|yes|yeah|right|of course|absolutely) and (?:then )?(?:i|we) ")
TAKEN_BACK = "taken back in the same breath"
JOKED = "only a joke"
ON_CONDITION = "on a condition"
_JOKED = frozenset(("only_joking",))
ACTION_SIGNALS = ("commit", "promise", "assign", "request", "need", "group", "offer", "handover")
TASK_VERB = re.compile(rf"(?:{piece_named('TASK_VERB')})\b")
"""Verbs of work; after *I will* they weigh more than others."""
_PLAIN_WORK = re.compile(
    r"(?:call|ring|phone|e-?mail|mail|text|contact|order|buy|book|rent|hire|reserve|invite|print|fetch|collect|pick up|"
    r"deliver|pay|renew|repair|fix|paint|bake|clean|register|upload|draft|update|install|replace|return|send|write to|"
    r"talk to|speak to|write|ask|prepare|organi[sz]e|arrange) "
    r"(?:a|an|the|my|our|your|them|him|her|@|~|all|up|to the|[a-z]+s|you (?:the|my|our)|you an? (?:list|copy|draft|"
    r"mail|e-?mail|link|quote|letter|summary|plan|message|note|version))\b(?! (?:moment|second|question|chance|bit)\b)"
)
"""Work that is done to something or somebody: who says so needs no date to be believed."""
DUE_BONUS = 0.25
LEAD_BONUS = 0.12
GUARDS = {"habit": 0.5, "past": 0.5, "hypothetical": 0.5, "reported": 0.5, "joke": 0.6}


def births(heard: Heard, state: State) -> tuple[Draft, ...]:
    """Drafts that this utterance starts, strongest reading of each clause."""
    out: list[Draft] = []
    for place in range(len(heard.clauses)):
        if "unknown" in heard.clauses[place].signals:
            question = _question(heard, place, state)
            _add(out, question)
            continue
        action = _action(heard, place, state)
        decision = _decision(heard, place, state)
        if action and decision:
            if (
                action.support + 0.05 >= decision.support and action.claim.kind != "group"
            ) or action.support >= 0.6:
                decision = None
            else:
                action = None
        _add(out, action)
        _add(out, decision)
        if not (action and action.support > 0.3):
            _add(out, _question(heard, place, state))
    return tuple(_dated_in_sight(d, heard) for d in _told_apart(out))


def _dated_in_sight(draft: Draft, heard: Heard) -> Draft:
    """The draft with so much of a very long utterance as evidence that the words of its date are in it."""
    if draft.due is None or draft.due.said_in != heard.spoken.id:
        return draft
    at = heard.spoken.text.find(draft.due.words)
    if at < 0:
        return draft
    last = at + len(draft.due.words)
    return replace(draft, evidence=tuple(_widened(p, heard.spoken.id, at, last) for p in draft.evidence))


def _widened(piece: Piece, utterance: str, first: int, last: int) -> Piece:
    quote = piece.quote
    if quote.utterance_id != utterance or (quote.first <= first and last <= quote.last):
        return piece
    wider = replace(quote, first=min(quote.first, first), last=max(quote.last, last))
    longer = (wider.last - wider.first) / max(1, quote.last - quote.first)
    return replace(piece, quote=wider, duration_ns=int(piece.duration_ns * longer))


def _told_apart(out: list[Draft]) -> list[Draft]:
    """Tasks that one breath gives to several people say so: who has which, no score of the whole utterance can tell."""
    takers = {(d.claim.people, d.claim.said) for d in out if d.family == "action"}
    if len(takers) < 2:
        return out
    return [replace(d, reasons=(*d.reasons, ONE_OF_SEVERAL)) if d.family == "action" else d for d in out]


def _add(out: list[Draft], draft: Draft | None) -> None:
    """Take a draft in; what one utterance asks for, assigns or asks twice in a row is one matter."""
    if draft is None:
        return
    for place, other in enumerate(out):
        if other.family != draft.family:
            continue
        if draft.family == "question" and other.last_index == draft.last_index and len(out) - place == 1:
            text = other.text.rstrip("?") + ", " + draft.text[:1].lower() + draft.text[1:]
            out[place] = replace(
                other, text=text, stems=other.stems | draft.stems, support=max(other.support, draft.support)
            )
            return
        if draft.family == "action" and _one_promise(other, draft):
            fuller, other_one = (draft, other) if SAYS_LITTLE in other.reasons else (other, draft)
            out[place] = replace(
                fuller, id=other.id, due=fuller.due or other_one.due, support=max(other.support, draft.support),
                reasons=tuple(r for r in (*fuller.reasons, *other_one.reasons) if r != SAYS_LITTLE),
            )  # fmt: skip
            return
        handed = {other.claim.kind, draft.claim.kind} & {"named", "you", "none", "group"}
        if draft.family == "action" and handed and "self" not in (other.claim.kind, draft.claim.kind):
            if _for_others(other.claim, draft.claim):
                continue
            vague = len(other.stems) <= 1 and len(draft.stems) > len(other.stems)
            claim = other.claim if other.claim.people or other.claim.outside else draft.claim
            out[place] = replace(
                other,
                text=draft.text if vague else other.text,
                due=other.due or draft.due,
                stems=other.stems | draft.stems,
                claim=claim,
                support=max(other.support, draft.support) + 0.05,
                reasons=(*other.reasons, *draft.reasons),
            )
            return
    number = sum(d.family == draft.family for d in out)
    out.append(replace(draft, id=draft.id + (f".{number}" if number else "")))


def _for_others(one: Claim, other: Claim) -> bool:
    """Whether two tasks of one breath are plainly for different people."""
    left, right = set(one.people) or {one.said}, set(other.people) or {other.said}
    return "" not in left | right and not left & right


def _one_promise(other: Draft, draft: Draft) -> bool:
    """Whether one of two promises of a turn only announces the other (*I'm on it. You'll have it by Sunday*)."""
    both = other.claim.kind == draft.claim.kind == "self" and other.claim.people == draft.claim.people
    return both and (SAYS_LITTLE in other.reasons) != (SAYS_LITTLE in draft.reasons)


def _id(family: Family, heard: Heard) -> str:
    return f"{family}:{heard.spoken.id}"


def guard_weight(clause: HeardClause, cue: Hit | None = None) -> tuple[float, tuple[str, ...]]:
    """What speaks against a clause being meant, and the names of the cues."""
    found = {
        h.rule.signal: h.rule.name
        for h in clause.hits
        if h.rule.signal in GUARDS
        and (cue is None or h.rule.signal != "past" or h.last > cue.first or cue.rule.signal not in _FUTURE)
    }
    return sum(GUARDS[s] for s in found), tuple(found.values())


_DENIED = re.compile(
    r"(?:(?:will|can|shall|does|did|is|has|would|could|should|must) )?(?:not|never|no longer)\b(?! forget)"
)
_LETS_ME = re.compile(r"(?:just )?let (?:me|us)\b(?! (?:have|know|see)\b)")
"""*Leon, let me* asks to do it oneself; *let me know* asks for something."""
_FUTURE = frozenset(("commit", "request", "assign", "group"))
"""Signals whose own words point ahead: what was past before them in the clause does not matter."""


def _pick(clause: HeardClause) -> Hit | None:
    hits = [h for h in clause.hits if h.rule.signal in ACTION_SIGNALS]
    return max(hits, key=lambda h: h.rule.strength) if hits else None


def _action(heard: Heard, place: int, state: State) -> Draft | None:
    clause = heard.clauses[place]
    hit = _pick(clause)
    if hit is None or (hit.rule.signal == "commit" and clause.clause.norm.startswith("because ")):
        return None
    if hit.task and _DENIED.match(clause.clause.norm[hit.task[0] :]):
        return None
    if (
        hit.task
        and hit.rule.signal in ("assign", "request")
        and _LETS_ME.match(clause.clause.norm[hit.task[0] :])
    ):
        return None
    claim = claim_of(hit, clause, heard, state)
    if claim is None:
        return None
    against, guards = guard_weight(clause, hit)
    ahead = clause.clause.between(0, hit.first)
    due = said_due(heard, place)
    if condition_of(ahead) and due is not None and any(d.last <= hit.first for d in clause.dues):
        due = None  # *If it rains tomorrow, I'll ...* tells when it may rain
    tokens = task_tokens(clause.clause, hit.task, clause.dues)
    if any(
        c.signals & {"joke"} or _JOKED & {h.rule.name for h in c.hits} for c in heard.clauses[place + 1 :]
    ):
        against += GUARDS["joke"]
        guards = (*guards, JOKED)
    support = hit.rule.strength - against
    reasons = [hit.rule.name, *guards]
    signal = hit.rule.signal
    if due is None and mocks(heard, state):
        support -= GUARDS["joke"]
        reasons.append(MOCKS)
    if due is not None:
        support += DUE_BONUS if signal != "offer" else 0.15
        reasons.append("due date said")
    if leads(heard, state):
        support += LEAD_BONUS if signal in ("request", "assign", "need", "group", "handover") else 0.0
        reasons.append("said by who leads")
    if signal == "request" and heard.called:
        support += 0.1
    if signal == "request" and (clause.clause.question_mark or "please" in clause.clause.norm):
        reasons.append("asked directly")
    if clause.clause.question_mark and signal in ("commit", "promise", "need", "group"):
        support -= 0.25
    text, known, extra = worded(tokens, heard, place, state, ahead)
    if not known or not text:
        return None
    condition = condition_of(ahead) if extra is None or extra.heard is not heard else ()
    if condition:
        support -= 0.1 if due is None else 0.0
        text = f"{text} {lowered(sentence(condition))}"
        reasons.append(ON_CONDITION)
    if says_little(tokens):
        support -= 0.15 if extra is None and not of_a_person(tokens) else 0.0
        reasons.append(SAYS_LITTLE)
    if signal == "commit" and TASK_VERB.match(clause.clause.norm[hit.task[0] :] if hit.task else ""):
        plain = _PLAIN_WORK.match(clause.clause.norm[hit.task[0] :] if hit.task else "") is not None
        support += 0.2 if plain else 0.1
        if plain:
            reasons.append(PLAIN_WORK)
    pieces = [piece_of(heard.spoken, heard.index, 3.0, said_span(tokens, heard, place, extra))]
    pieces = [*leant_on(heard, extra), *pieces]
    mode = {"offer": "offer", "request": "request"}.get(signal, "")
    before = _spoken_on(heard, state)
    if before is not None:
        pieces.insert(0, piece_of(before.spoken, before.index, 0.3))
        carried = {n for m in before.people.values() for n in m.names if len(m.names) == 1}
        if claim.kind == "you" and not claim.people and len(carried) == 1:
            claim = Claim("named", tuple(carried), next(iter(before.people.values())).said)
    return Draft(
        _id("action", heard),
        "action",
        text,
        support,
        heard.spoken.speaker,
        claim,
        due,
        tuple(pieces),
        known,
        heard.index,
        heard.index,
        tuple(reasons),
        mode,
        heard.called,
    )


def mocks(heard: Heard, state: State) -> bool:
    """Whether this only carries somebody's *if we had …* on into the absurd (*sure, and I will fly to the moon*)."""
    if not state.recent or state.recent[-1].spoken.speaker == heard.spoken.speaker:
        return False
    wished = any("hypothetical" in clause.signals for clause in state.recent[-1].clauses)
    return wished and _MOCKING.match(" ".join(c.clause.norm for c in heard.clauses)) is not None


CONTINUES_WITHIN_NS = 2_000_000_000


def _spoken_on(heard: Heard, state: State) -> Heard | None:
    """The utterance right before, where the same speaker went on after a short start of a sentence."""
    if not state.recent:
        return None
    before = state.recent[-1]
    near = heard.spoken.start_ns - before.spoken.end_ns < CONTINUES_WITHIN_NS
    started = 0 < before.words <= 7 and not before.spoken.text.rstrip().endswith((".", "?", "!"))
    named = any(m.by != "outside" for m in before.people.values())
    same = before.spoken.speaker is not None and before.spoken.speaker == heard.spoken.speaker
    return before if same and near and started and named else None


def leads(heard: Heard, state: State) -> bool:
    """Who opened the meeting or has the chair by role hands out work and closes matters."""
    speaker = heard.spoken.speaker
    if any(p.leads for p in state.roster.people):
        return state.roster.leads(state.roster.of_speaker(speaker))
    return bool(state.speakers) and speaker == state.speakers[0]


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
        asked = _asked_stranger(clause, heard)
        if asked is not None and not heard.called:
            return Claim("named", (), asked, True)
        return Claim("you", _asked_here(clause, heard))
    if hit.who is None:
        return Claim("you", _asked_here(clause, heard))
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


def _asked_here(clause: HeardClause, heard: Heard) -> tuple[str, ...]:
    """Who is asked: the one called in the clause where several are, else the only one called."""
    if len(heard.called) <= 1:
        return heard.called
    here = {
        name
        for token in clause.clause.tokens
        if (mention := heard.people.get(token.first)) is not None
        for name in mention.names
    }
    called = tuple(name for name in heard.called if name in here)
    return called if len(called) == 1 else ()


_LEADS_IN = words_in("and so then but okay now")


def _asked_stranger(clause: HeardClause, heard: Heard) -> str | None:
    """The name of somebody not on the list with which a request opens (*Carl, please call the bank*)."""
    first = next((t for t in clause.clause.tokens if t.low not in _LEADS_IN), clause.clause.tokens[0])
    mention = heard.people.get(first.first)
    return mention.said if mention is not None and mention.by == "outside" and first.comma else None


def _decision(heard: Heard, place: int, state: State) -> Draft | None:
    clause = heard.clauses[place]
    hits = [h for h in clause.hits if h.rule.signal in ("decide", "propose")]
    if not hits or clause.clause.norm.startswith(GIVES_REASON) or is_procedure(clause.clause.norm):
        return None
    best = max(hits, key=lambda h: h.rule.strength)
    against, guards = guard_weight(clause)
    if "habit" in clause.signals:
        against -= GUARDS["habit"]
    support = best.rule.strength - against + 0.08 * (len(hits) - 1)
    reasons = [h.rule.name for h in hits] + list(guards)
    sums_up = len(clause.clause.stems) <= 1 or best.rule.name == "final_word"
    if not clause.clause.stems - FINAL and said_next(heard, place):
        return None
    if sums_up and place > 0 and len(heard.clauses[place - 1].clause.stems) >= 2:
        clause = heard.clauses[place - 1]
        more = [h for h in clause.hits if h.rule.signal in ("decide", "propose")]
        support += max((h.rule.strength for h in more), default=0.05)
        reasons = [h.rule.name for h in more] + reasons
    if any(c.retracts for c in heard.clauses[place:]):
        support -= 0.3
        reasons.append(TAKEN_BACK)
    if leads(heard, state):
        support += LEAD_BONUS
        reasons.append("said by who leads")
    support += 0.1 * min(2, sum(_agreeing(o, heard) for o in state.recent[-3:]))
    if clause.clause.question_mark or clause.best("ask"):
        support -= 0.2 if clause.clause.question_mark else 0.3
    if only_voted(clause.clause.tokens):
        put = voted(heard, place, state)
        return None if put is None else _decided(heard, *put, support, (*reasons, LEANS))
    topic, matter_clause = proposed(clause.clause) if best.rule.signal == "propose" else ((), clause.clause)
    tokens = statement_tokens(matter_clause)
    known = stems(clause_of(tokens).norm) or clause.clause.stems
    text = sentence(tokens)
    if not topic and best.rule.signal == "propose" and place > 0:
        topic = names_topic(heard.clauses[place - 1].clause.tokens)
    if topic:
        text = with_antecedent(text, topic)
        known = known | stems(clause_of(topic).norm)
    reverses = best.rule.name == "x_it_is_not_y"
    if reverses:
        known = known | stems(" ".join(t.low for t in tokens))
    matter, about = (None, None) if reverses else matter_of(known, heard, state)
    if matter is None and says_little(tokens) and not reverses:
        matter, about = just_said(heard, place, state)
    pieces = [piece_of(heard.spoken, heard.index, 3.0, span_of(tokens))]
    if len(known) < 3 and matter is not None:
        text = settled_text(text, tokens, about) if about else text
        known = known | (about.stems if about else frozenset())
        reasons.append(LEANS)
        span = span_of(about.tokens) if about is not None else None
        if matter.index != heard.index:
            pieces.insert(0, piece_of(matter.spoken, matter.index, MATTER, span))
            support += 0.05
        elif span is not None and tokens:
            span = (min(span[0], tokens[0].first), max(span[1], tokens[-1].last))
            pieces = [piece_of(heard.spoken, heard.index, 3.0, span)]
    if not known or not text:
        return None
    mode = "propose" if best.rule.signal == "propose" else ""
    return _decided(heard, text, known, pieces, support, tuple(reasons), mode)


def _decided(
    heard: Heard, text: str, known: frozenset[str], pieces: Sequence[Piece], support: float, reasons: tuple[str, ...],
    mode: str = "",
) -> Draft:  # fmt: skip
    return Draft(
        _id("decision", heard), "decision", text, support, heard.spoken.speaker, Claim("none"), None, tuple(pieces), known,
        heard.index, heard.index, reasons, mode,
    )  # fmt: skip


def _agreeing(other: Heard, heard: Heard) -> bool:
    """Whether somebody else just agreed with what is now put into words."""
    if other.spoken.speaker == heard.spoken.speaker:
        return False
    return any("settle" in c.signals for c in other.clauses)


def settled(heard: Heard, clause: HeardClause, state: State) -> Draft:
    """A plain statement that others firmly agreed with."""
    tokens = statement_tokens(clause.clause)
    support = 0.35 + (LEAD_BONUS if leads(heard, state) else 0.0)
    said = piece_of(heard.spoken, heard.index, 3.0, span_of(tokens))
    return _decided(heard, sentence(tokens), clause.clause.stems, [said], support, ("statement",))


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
        (piece_of(heard.spoken, heard.index, 3.0, span_of(tokens)),),
        clause.clause.stems,
        heard.index,
        heard.index,
        reasons,
        "asked",
    )
