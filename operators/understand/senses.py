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
from operators.compose import sentence
from operators.language.text import stems
from operators.language.words import words_in
from operators.understand.hands import BY_HANDS, BY_NOD, heads, votes
from operators.understand.hear import Heard
from operators.understand.screen import (
    POINTING,
    THAT_DATE,
    THAT_NAME,
    dates_in,
    pointed_date,
    pointed_line,
    slide_piece,
)
from operators.understand.sensed import Tone
from operators.understand.state import Claim, Draft, Due, State, piece_of
from operators.understand.types import Spoken

RISES_ST: Final = 1.5
_RISING_ST_S: Final = 4.0
"""Pitch at the end against the utterance's own, semitones, and its slope, semitones a second, from which a voice has
risen. Of lines whose end was made to glide up by six semitones 59 % pass, of plain statements by synthetic voices
2 %, of pieces of real recordings 16 %: so a voice that rises asks only where nobody has a plain answer.
"""
FALLS_ST: Final = -1.0
_SURE_VOICED: Final = 0.3
_DUE_REACH: Final = 3
_NAME_REACH: Final = 2
ASKED_BY_TONE: Final = "asked by tone"
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
    votes(heard, drafts, state)
    heads(heard, drafts, state)


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
        due=Due(found.phrase, words, heard.spoken.id),
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
