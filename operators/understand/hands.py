"""Hands and heads that a camera saw: votes that carry a motion or not, and answers without a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from operators.compose import sentence, statement_tokens, task_tokens
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.due import said_due
from operators.understand.hear import Heard, HeardClause
from operators.understand.sensed import Gesture, GestureKind, SensePiece
from operators.understand.state import Claim, Draft, Piece, State, piece_of
from operators.understand.wording import worded

_LEAST_HANDS: Final = 2
_VOTE_REACH: Final = 4
"""Utterances after the call for votes in which the votes against are called."""
_MOTION_REACH: Final = 15
_REQUEST_REACH: Final = 1
BY_HANDS: Final = "voted by hands"
BY_NOD: Final = "accepted by a nod"

_FOR: Final = re.compile(
    r"\b(?:(?:those|all|everyone|everybody|anyone|who is|who are|all those) (?:who (?:is|are) )?"
    r"(?:in favou?r|for (?:it|that|this|the \w+))|in favou?r (?:of\b.*|please.*)?$|in favou?r\?|"
    r"(?:show of |your )?hands? (?:up )?(?:for|please|go on|who)\b|(?:can|could) i see (?:some |your )?hands|"
    r"who is for\b|\bhands up\b|"
    r"show of hands|raise (?:a|your|the) hands?|(?:please )?show (?:of hands|please)?$|put (?:up )?your hands? up)"
)
_AGAINST: Final = re.compile(
    r"(?:^|\b(?:and|those|anyone|anybody|all|who is|who are|votes|hands) )(?:those )?(?:against|opposed)(?: it| that| please)?$"
)
_BARE_HANDS: Final = re.compile(
    r"^(?:and |so |then |okay |right )*(?:show of )?hands(?: up)?(?: please| everyone| then| now)?$"
)
_MOTION: Final = re.compile(
    r"\b(?:i (?:would )?(?:like to )?(?:propose|move)(?: that)?|the motion (?:is|reads|says)(?: then| now)?|motion is then|"
    r"my motion is)\b"
)
_ABOUT_VOTING: Final = re.compile(
    r"\b(?:vote|votes|voting|motion|favou?r|against|hands?|seconder|second it|thank you|thanks|count|feel)\b"
)
_YOU: Final = words_in("you your")


def votes(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Hands that went up after a call for votes."""
    call = _call(heard)
    if call is None or heard.spoken.senses is None:
        return
    hands = _seen(heard, "raise_hand")
    if call[0] == "against":
        _outvoted(heard, hands, drafts)
    elif len(hands) >= _LEAST_HANDS:
        _carried(heard, call[1], hands, drafts, state)
    elif heard.spoken.senses.watched:
        _stayed_down(heard, call[1], drafts, state)


def _call(heard: Heard) -> tuple[str, HeardClause] | None:
    """The last call for votes in an utterance."""
    found = None
    for clause in heard.clauses:
        norm = clause.clause.norm
        if _AGAINST.search(norm):
            found = ("against", clause)
        elif _FOR.search(norm) or _BARE_HANDS.match(norm):
            found = ("for", clause)
    return found


def _seen(heard: Heard, kind: GestureKind) -> list[Gesture]:
    senses = heard.spoken.senses
    return [] if senses is None else [g for g in senses.gestures if g.kind == kind]


def _carried(
    heard: Heard, call: HeardClause, hands: Sequence[Gesture], drafts: list[Draft], state: State
) -> None:
    """The motion that was voted on is decided."""
    seen = _hands_piece(heard, hands)
    motion = _motion(heard, call, state)
    about = frozenset() if motion is None else motion[1].clause.stems
    for draft in [d for d in drafts if d.first_index == heard.index and d.stems <= call.clause.stems]:
        if draft.family != "decision" or not _after_call(call):
            drafts.remove(draft)  # a call for votes is no item itself
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        near = heard.index - draft.last_index <= _MOTION_REACH
        same = len(draft.stems & about) * 2 >= max(2, len(about)) if about else draft.mode == "propose"
        if draft.family == "decision" and near and same and not draft.withdrawn:
            more = draft.grown(max(0.3, 0.85 - draft.support), BY_HANDS, _said(heard), mode="")
            drafts[place] = replace(more, senses=(*draft.senses, seen))
            return
    if motion is None:
        return
    of, clause = motion
    text = _worded(clause, call)
    if not text:
        return
    pieces = [piece_of(of.spoken, of.index, 3.0)]
    if of is not heard:
        pieces.append(_said(heard))
    drafts.append(
        Draft(
            f"decision:{heard.spoken.id}:v", "decision", text, 0.85, of.spoken.speaker, Claim("none"), None, tuple(pieces),
            clause.clause.stems, heard.index, heard.index, (BY_HANDS,), senses=(seen,),
        )
    )  # fmt: skip


def _stayed_down(heard: Heard, call: HeardClause, drafts: list[Draft], state: State) -> None:
    """A camera saw the whole vote and (nearly) no hand: what was put to the vote is not carried by that."""
    motion = _motion(heard, call, state)
    if motion is None or motion[0] is heard:
        return
    about = motion[1].clause.stems
    for place, draft in enumerate(drafts):
        same = len(draft.stems & about) * 2 >= max(2, len(about))
        if draft.family == "decision" and draft.first_index == motion[0].index and same:
            drafts[place] = draft.grown(-0.5, "no hands were seen", mode="refused")


def _outvoted(heard: Heard, hands: Sequence[Gesture], drafts: list[Draft]) -> None:
    """As many hands or more against what hands had carried, or against what was proposed: it is refused."""
    if len(hands) < _LEAST_HANDS:
        return
    seen = _hands_piece(heard, hands)
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if draft.family != "decision" or heard.index - draft.last_index > _VOTE_REACH:
            continue
        votes = [p.count for p in draft.senses if p.kind == "picture"]
        if BY_HANDS not in draft.reasons and draft.mode != "propose":
            continue
        if not votes or len(hands) >= votes[-1]:
            refused = draft.grown(-1.0, "voted down by hands", mode="refused")
            drafts[place] = replace(refused, senses=(*draft.senses, seen))
        return


def _motion(heard: Heard, call: HeardClause, state: State) -> tuple[Heard, HeardClause] | None:
    """What is voted on: a motion put into words, else what the call names, else what was said before it."""
    put = _put(heard)
    if put is not None and put is not call:
        return heard, put
    named = bool(_after_call(call)) and "motion" not in call.clause.norm
    moved = [(h, c) for h in reversed(state.recent[-_MOTION_REACH:]) if (c := _put(h)) is not None]
    if moved and not named:
        return moved[0]
    if named:
        return heard, call
    best = max((c for c in heard.clauses if c is not call), key=_says, default=None)
    return (heard, best) if best is not None and _says(best) else None


def _put(heard: Heard) -> HeardClause | None:
    """The clause in which an utterance puts a motion into words."""
    for place, clause in enumerate(heard.clauses):
        opened = _MOTION.search(clause.clause.norm)
        if opened is None:
            continue
        rest = stems(clause.clause.norm[opened.end() :])
        after = heard.clauses[place + 1] if place + 1 < len(heard.clauses) else None
        if len(rest) >= 2:
            return clause
        if after is not None and len(after.clause.stems) >= 2:
            return after
    return None


def _says(clause: HeardClause) -> int:
    """How much a clause may say of a matter; nothing where it is only about voting or asks."""
    if clause.clause.question_mark or "ask" in clause.signals:
        return 0
    if _ABOUT_VOTING.search(clause.clause.norm) and not _MOTION.search(clause.clause.norm):
        return 0
    return len(clause.clause.stems) if len(clause.clause.stems) >= 2 else 0


def _after_call(call: HeardClause) -> frozenset[str]:
    """What a call names itself: *hands for the sausage*, *those in favour of buying the bike*."""
    found = re.search(r"\b(?:hands? for|favou?r of|for) (?P<matter>.+)$", call.clause.norm)
    said = stems(found.group("matter")) if found is not None else frozenset()
    return said - stems("motion it that please hand hands raise")


def _worded(clause: HeardClause, call: HeardClause) -> str:
    """The motion in the words in which it was put."""
    whole = clause.clause
    if clause is call:
        found = re.search(r"\b(?:hands? for|favou?r of|for) ", whole.norm)
        return sentence(whole.between(found.end(), len(whole.norm))) if found is not None else ""
    opened = _MOTION.search(whole.norm)
    rest = whole.between(opened.end(), len(whole.norm)) if opened is not None else ()
    tokens = list(rest if len(rest) >= 2 else statement_tokens(whole))
    while tokens and tokens[0].low in ("that", "then", "so", "and"):
        tokens = tokens[1:]
    return sentence(tokens)


def heads(heard: Heard, drafts: list[Draft], state: State) -> None:
    """A nod or a shake of the head after a request answers it, where it is clear whose it was."""
    nods, shakes = _seen(heard, "nod"), _seen(heard, "shake")
    if not nods and not shakes:
        return
    place = _request(heard, drafts)
    if place is None:
        fresh = _asked_of(heard, state)
        if fresh is None:
            return
        drafts.append(fresh)
        place = len(drafts) - 1
    draft = drafts[place]
    wanted = draft.claim.people or draft.called
    answers = [g for g in (*nods, *shakes) if _may_be(g, wanted, state)]
    if len({g.kind for g in answers}) != 1:
        return  # one nods, another shakes the head: nobody can say for whom
    answer = max(answers, key=lambda g: g.confidence)
    seen = _head_piece(heard, answer)
    if answer.kind == "shake":
        refused = draft.grown(-0.8, "refused by a shake of the head", mode="refused")
        drafts[place] = replace(refused, senses=(*draft.senses, seen))
        return
    who = wanted[:1] if len(wanted) == 1 else ((answer.who,) if answer.who is not None else ())
    accepted = draft.grown(0.4, BY_NOD, piece_of(heard.spoken, heard.index, 2.0), mode="", accepted=True)
    drafts[place] = replace(accepted, claim=Claim("you", who), senses=(*draft.senses, seen))


def _request(heard: Heard, drafts: Sequence[Draft]) -> int | None:
    """The request that waits for an answer to this utterance's speaker."""
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if heard.index - draft.last_index > _REQUEST_REACH:
            continue
        asks = draft.mode == "request" or (draft.claim.kind == "you" and heard.index == draft.first_index)
        if draft.family == "action" and asks and not draft.accepted and draft.speaker == heard.spoken.speaker:
            return place
    return None


def _asked_of(heard: Heard, state: State) -> Draft | None:
    """A request in words that are none by themselves: somebody is called and told *you ...*, with a question mark."""
    for clause in reversed(heard.clauses):
        words = clause.clause.tokens
        first = next((n for n, t in enumerate(words) if t.low in _YOU or t.low in ("you'll", "you’ll")), None)
        asks = clause.clause.question_mark or bool(heard.called)
        if first is None or not asks or len(words) - first < 3 or len(clause.clause.stems) < 2:
            continue
        if clause.signals & {"past", "hypothetical", "joke", "reported"}:
            continue
        start = clause.clause.norm.find("you") + 4
        rest = re.sub(r"^(?:will|can|could|would|to) ", "", clause.clause.norm[start:])
        place, whole = heard.clauses.index(clause), len(clause.clause.norm)
        tokens = task_tokens(clause.clause, (whole - len(rest), whole), clause.dues)
        text, known, _ = worded(tokens, heard, place, state, clause.clause.tokens[:first])
        if not text or not known:
            continue
        due = said_due(heard, place)
        return Draft(
            f"action:{heard.spoken.id}:n", "action", text, 0.3, heard.spoken.speaker,
            Claim("you", heard.called if len(heard.called) == 1 else ()), due,
            (piece_of(heard.spoken, heard.index, 3.0),), known, heard.index, heard.index,
            ("asked directly",), "request", heard.called,
        )  # fmt: skip
    return None


def _may_be(gesture: Gesture, wanted: Sequence[str], state: State) -> bool:
    """Whether a gesture can be the answer of whoever was asked: unless it is known to be somebody else's."""
    if gesture.who is None or not wanted:
        return True
    return state.roster.of_speaker(gesture.who) in wanted or gesture.who in wanted


def _said(heard: Heard) -> Piece:
    return piece_of(heard.spoken, heard.index, 2.0)


def _hands_piece(heard: Heard, hands: Sequence[Gesture]) -> SensePiece:
    first, last = min(g.start_ns for g in hands), max(g.end_ns for g in hands)
    quote = "a raised hand" if len(hands) == 1 else f"{len(hands)} raised hands"
    return _gesture_piece(heard, hands[0], quote, first, last, len(hands))


def _head_piece(heard: Heard, gesture: Gesture) -> SensePiece:
    quote = "a nod" if gesture.kind == "nod" else "a shake of the head"
    return _gesture_piece(heard, gesture, quote, gesture.start_ns, gesture.end_ns, 1)


def _gesture_piece(
    heard: Heard, gesture: Gesture, quote: str, start_ns: int, end_ns: int, count: int
) -> SensePiece:
    return SensePiece(
        "picture", heard.spoken.id, quote, start_ns, end_ns, gesture.device, gesture.who if count == 1 else None,
        gesture.error_ms, gesture.sampling_ms, gesture.boundary_ms, count,
    )  # fmt: skip
