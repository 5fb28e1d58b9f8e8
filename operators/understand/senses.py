"""What a gesture, a slide or a tone of voice means for the items: rules, after those of the words.

Hands that go up after a call for votes make the decision, or undo it; a nod accepts a request, a shake of the head
refuses it; words that point at the screen get the date or the name that stands there; a statement whose voice
rises asks. Without the senses none of these functions changes anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from models.minutes.senses import Present, Vector, sense_vector
from operators.compose import sentence, statement_tokens, task_tokens
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.birth import said_due, worded
from operators.understand.hear import Heard, HeardClause
from operators.understand.screen import (
    POINTING,
    THAT_DATE,
    THAT_NAME,
    dates_in,
    pointed_date,
    pointed_line,
    slide_piece,
)
from operators.understand.sensed import Gesture, GestureKind, SensePiece, Tone
from operators.understand.state import Claim, Draft, Due, Piece, State, piece_of
from operators.understand.types import Spoken

RISES_ST: Final = 1.5
_RISING_ST_S: Final = 4.0
"""Pitch at the end against the utterance's own, semitones, and its slope, semitones a second, from which a voice has
risen. Of lines whose end was made to glide up by six semitones 59 % pass, of plain statements by synthetic voices
2 %, of pieces of real recordings 16 %: so a voice that rises asks only where nobody has a plain answer.
"""
FALLS_ST: Final = -1.0
_SURE_VOICED: Final = 0.3
_LEAST_HANDS: Final = 2
_VOTE_REACH: Final = 4
"""Utterances after the call for votes in which the votes against are called."""
_MOTION_REACH: Final = 15
_REQUEST_REACH: Final = 1
_DUE_REACH: Final = 3
_NAME_REACH: Final = 2
ASKED_BY_TONE: Final = "asked by tone"
BY_HANDS: Final = "voted by hands"
BY_NOD: Final = "accepted by a nod"

_FOR: Final = re.compile(
    r"\b(?:(?:those|all|everyone|everybody|anyone|who is|who are|all those) (?:who (?:is|are) )?"
    r"(?:in favou?r|for (?:it|that|this|the \w+))|in favou?r (?:of\b.*|please.*)?$|in favou?r\?|"
    r"(?:show of |your )?hands? (?:up )?(?:for|please|go on|who)\b|(?:can|could) i see (?:some |your )?hands|"
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
_ANSWERS: Final = frozenset(("accept", "agree", "refuse", "settle", "approve", "solved"))
_ANSWERED: Final = re.compile(
    r"^(?:yes|no|yeah|yep|nope|of course|right|exactly|indeed|true|they are|it is|we are|i am)\b"
)
_NO_WORDS: Final = words_in("hm hmm mm mhm um uh oh ah eh well er huh")


def sense(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Change ``drafts`` in place by what was sensed around an utterance that they know already."""
    _answered(heard, drafts)
    senses = heard.spoken.senses
    if senses is None or not heard.clauses:
        return
    if senses.shown:
        _pointed(heard, drafts, state)
    if senses.tone is not None:
        _asked(heard, senses.tone, drafts)
    _votes(heard, drafts, state)
    _heads(heard, drafts, state)


def sure_by_senses(draft: Draft) -> float:
    """How sure an item is by what was seen or heard in the voice alone; 0 where it rests on words.

    A model that has only read words has no say against it.
    """
    if draft.withdrawn or draft.mode == "refused":
        return 0.0
    if BY_HANDS in draft.reasons:
        return 0.85
    if BY_NOD in draft.reasons:
        return 0.75
    return 0.65 if ASKED_BY_TONE in draft.reasons and draft.mode == "open" else 0.0


# --- the voice


def rises(tone: Tone | None) -> bool:
    """Whether a voice clearly went up at the end."""
    if tone is None or tone.voiced_share < _SURE_VOICED:
        return False
    return tone.rise_st >= RISES_ST and tone.slope_st_s >= _RISING_ST_S


def falls(tone: Tone | None) -> bool:
    """Whether a voice clearly went down at the end."""
    return tone is not None and tone.voiced_share >= _SURE_VOICED and tone.rise_st <= FALLS_ST


def _asked(heard: Heard, tone: Tone, drafts: list[Draft]) -> None:
    """A statement that rises asks; one that falls with a question mark was misheard."""
    last = heard.clauses[-1]
    plain = not last.best("ask") and not last.signals & {"request", "offer", "joke", "hypothetical"}
    mine = [d for d in drafts if d.first_index == heard.index]
    if falls(tone) and plain:
        for draft in mine:
            if (
                draft.family == "question"
                and draft.reasons[:1] == ("question mark",)
                and draft.mode == "asked"
            ):
                drafts[drafts.index(draft)] = draft.grown(-0.15, "said flat")
        return
    statement = plain and not last.clause.question_mark and len(last.clause.tokens) >= 4
    if not rises(tone) or not statement or len(last.clause.stems) < 2:
        return
    text = sentence(last.clause.tokens).rstrip("?.! ") + "?"
    drafts.append(
        Draft(
            f"question:{heard.spoken.id}:t", "question", text, 0.3, heard.spoken.speaker, Claim("none"), None,
            (piece_of(heard.spoken, heard.index, 3.0),), last.clause.stems, heard.index, heard.index,
            (ASKED_BY_TONE,), "asked",
        )
    )  # fmt: skip


def _answered(heard: Heard, drafts: list[Draft]) -> None:
    """Whether the others had anything to say to a question asked by tone: what gets no answer stays open."""
    for place, draft in enumerate(list(drafts)):
        age = heard.index - draft.first_index
        if ASKED_BY_TONE not in draft.reasons or draft.mode != "asked" or not 0 < age <= 2:
            continue
        if heard.spoken.speaker == draft.speaker:
            continue
        said = frozenset().union(*(c.clause.stems for c in heard.clauses))
        first = heard.clauses[0].clause.norm if heard.clauses else ""
        if heard.signals() & _ANSWERS or _ANSWERED.match(first) or len(said & draft.stems) >= 2:
            drafts.remove(draft)
            return
        if all(t.low.strip(".…") in _NO_WORDS for c in heard.clauses[:1] for t in c.clause.tokens) or (
            "unknown" in heard.signals()
        ):
            drafts[place] = draft.grown(0.4, "no answer", mode="open")
            # What was asked was not settled by asking it; until nobody answers a voice may rise for other reasons.
            drafts[:] = [d for d in drafts if d.family != "decision" or d.first_index != draft.first_index]
            return


# --- the screen


def _pointed(heard: Heard, drafts: list[Draft], state: State) -> None:
    """Words that stand for what is on the screen."""
    # Names are marks to the rules: what stands on a slide is found by the words themselves.
    norms = [
        " ".join((*(c.clause.norm for c in h.clauses), h.spoken.text.lower()))
        for h in (heard, *reversed(state.recent[-5:]))
    ]
    if THAT_DATE.search(norms[0]) is not None and not any(c.dues for c in heard.clauses):
        _dated(heard, norms, drafts, state)
    if THAT_NAME.search(norms[0]) is not None:
        _named(heard, norms, drafts, state)
    elif POINTING.search(norms[0]) is not None:
        _lined(heard, norms, drafts)


def _dated(heard: Heard, norms: Sequence[str], drafts: list[Draft], state: State) -> None:
    place = _task(heard, drafts, _DUE_REACH)
    if place is None or heard.spoken.senses is None:
        return
    draft = drafts[place]
    found = pointed_date(norms, heard.spoken.senses.shown, state.context.date, draft.stems)
    if found is None:
        return
    words = _as_said(heard.spoken, found.words)
    more = draft.grown(0.25, "due date shown", piece_of(heard.spoken, heard.index, 1.5))
    drafts[place] = replace(
        more,
        due=Due(found.phrase, words),
        senses=(*draft.senses, slide_piece(heard.spoken, found.shown, found.line)),
    )


def _task(heard: Heard, drafts: Sequence[Draft], reach: int) -> int | None:
    """The newest task that has no date yet; one of this utterance before all others."""
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        if draft.family != "action" or draft.withdrawn or draft.mode == "refused":
            continue
        if draft.due is None and heard.index - draft.last_index <= reach:
            return place
    return None


def _named(heard: Heard, norms: Sequence[str], drafts: list[Draft], state: State) -> None:
    """*The name up there*: whoever stands in the line that fits has the task."""
    place = _task(heard, drafts, _NAME_REACH)
    if heard.spoken.senses is None:
        return
    for one in heard.spoken.senses.shown:
        named = {line: n for line in one.lines if len(n := _people_in(line, state)) == 1}
        fits = re.compile("|".join(f"^{re.escape(line)}$" for line in named)) if named else None
        about = drafts[place].stems if place is not None else frozenset()
        found = pointed_line(norms, (one,), about, fits) if fits is not None else None
        if found is None:
            continue
        claim = Claim("named", named[found[1]], named[found[1]][0])
        seen = slide_piece(heard.spoken, *found)
        if place is not None and not drafts[place].claim.people:
            draft = drafts[place]
            drafts[place] = replace(
                draft.grown(0.2, "name shown"), claim=claim, senses=(*draft.senses, seen), mode=""
            )
        return


def _people_in(line: str, state: State) -> tuple[str, ...]:
    words = re.findall(r"[^\W\d_]+", line)
    found = [n for word in words if word[:1].isupper() for n in state.roster.named(word.lower())]
    return tuple(dict.fromkeys(found))


def _lined(heard: Heard, norms: Sequence[str], drafts: list[Draft]) -> None:
    """The line that an item's words point at is evidence for it."""
    if heard.spoken.senses is None:
        return
    for place, draft in enumerate(drafts):
        if draft.first_index != heard.index or draft.senses:
            continue
        found = pointed_line(norms, heard.spoken.senses.shown, draft.stems)
        if found is not None:
            drafts[place] = replace(draft, senses=(slide_piece(heard.spoken, *found),))


def _as_said(spoken: Spoken, words: str) -> str:
    """The same words as they stand in the utterance."""
    pattern = r"\W+".join(re.escape(word) for word in words.split()).replace(r"\W+is", r"(?:\W+is|['’]s)")
    found = re.search(pattern, spoken.text, re.IGNORECASE)
    return found.group() if found is not None else words


# --- hands and heads


def _votes(heard: Heard, drafts: list[Draft], state: State) -> None:
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


def _heads(heard: Heard, drafts: list[Draft], state: State) -> None:
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


# --- figures for a model


def figures_of(spoken: Spoken) -> tuple[Vector, Present]:
    """What the senses tell about an utterance, as a network takes it: see ``models.minutes.senses``."""
    senses = spoken.senses
    if senses is None:
        return sense_vector()
    tone, seen = senses.tone, senses.gestures
    sound = (
        None
        if tone is None
        else (tone.rise_st / 6.0, tone.slope_st_s / 20.0, tone.voiced_share, (tone.level_db + 30.0) / 30.0)
    )
    kinds = [g.kind for g in seen]
    picture = (
        kinds.count("nod") / 4.0, kinds.count("shake") / 4.0, kinds.count("raise_hand") / 8.0,
        max((g.confidence for g in seen), default=0.0), senses.moving or 0.0, float(senses.moving is not None),
    )  # fmt: skip
    lines = [line for one in senses.shown for line in one.lines]
    known = frozenset().union(*(stems(line.lower()) for line in lines))
    said = stems(spoken.text.lower())
    slide = (
        len(lines) / 10.0, sum(bool(dates_in(line)) for line in lines) / 5.0,
        sum(any(c.isdigit() for c in line) for line in lines) / 5.0, len(said & known) / max(1, len(said)),
        float(POINTING.search(spoken.text.lower()) is not None),
    )  # fmt: skip
    return sense_vector(sound, picture if senses.watched or seen else None, slide if lines else None)
