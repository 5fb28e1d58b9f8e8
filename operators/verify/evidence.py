"""Evidence of an item: which stretch of speech or of a slide it rests on, with times and error figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from contracts.minutes import Evidence
from operators.language.text import stems
from operators.plain_text import plain
from operators.understand.sensed import SensePiece
from operators.understand.types import Quote, Spoken
from operators.verify.claims import Said, unsupported_numbers
from operators.verify.types import Draft, seconds


def spoken_span(quote: Quote, spoken: Spoken) -> tuple[int, int]:
    """Timeline span of a quote: of its words where they have times and stand in the text, else all of it."""
    if not spoken.words or (quote.first == 0 and quote.last == len(spoken.text)):
        return spoken.start_ns, spoken.end_ns
    inside: list[tuple[int, int]] = []
    place = 0
    for word in spoken.words:
        bare = word.text.strip()
        found = spoken.text.find(bare, place)
        if found < 0:
            return spoken.start_ns, spoken.end_ns
        place = found + len(bare)
        if found < quote.last and place > quote.first:
            inside.append((word.start_ns, word.end_ns))
    return (inside[0][0], max(e for _, e in inside)) if inside else (spoken.start_ns, spoken.end_ns)


def is_real(quote: Quote, utterances: Mapping[str, Spoken]) -> bool:
    spoken = utterances.get(quote.utterance_id)
    if spoken is None or not 0 <= quote.first < quote.last <= len(spoken.text):
        return False
    return bool(spoken.text[quote.first : quote.last].strip())


def speech_evidence(quote: Quote, utterances: Mapping[str, Spoken], zero_ns: int) -> Evidence:
    """Evidence of a quote that is known to be real; times count from ``zero_ns``."""
    spoken = utterances[quote.utterance_id]
    start_ns, end_ns = spoken_span(quote, spoken)
    return Evidence(
        kind="speech",
        start_s=seconds(start_ns, zero_ns),
        end_s=seconds(max(start_ns, end_ns), zero_ns),
        device=spoken.device or "unknown",
        speaker=spoken.speaker,
        quote=plain(spoken.text[quote.first : quote.last]),
        error_ms=round(spoken.error_ms, 3),
        sampling_ms=round(spoken.sampling_ms, 3),
        boundary_ms=round(spoken.boundary_ms, 3),
    )


def borne_out(piece: SensePiece, utterances: Mapping[str, Spoken]) -> bool:
    """Whether what an item rests on besides speech was really seen or shown beside that utterance."""
    spoken = utterances.get(piece.utterance_id)
    senses = spoken.senses if spoken is not None else None
    if senses is None:
        return False
    if piece.kind == "slide":
        return any(piece.quote in shown.lines for shown in senses.shown if shown.device == piece.device)
    kind = next((kind for word, kind in _GESTURES if word in piece.quote), None)
    seen = [
        g for g in senses.gestures
        if g.kind == kind and g.device == piece.device and piece.start_ns <= g.start_ns and g.end_ns <= piece.end_ns
    ]  # fmt: skip
    return len(seen) >= piece.count


_GESTURES: Final = (("nod", "nod"), ("shake", "shake"), ("hand", "raise_hand"))
"""The word for each gesture in quotes of pictures."""


def sense_evidence(pieces: Iterable[SensePiece], zero_ns: int) -> tuple[Evidence, ...]:
    """Evidence of pieces that are known to be real, in the order of time."""
    return in_time(
        Evidence(
            kind=piece.kind,
            start_s=seconds(piece.start_ns, zero_ns),
            end_s=seconds(max(piece.start_ns, piece.end_ns), zero_ns),
            device=piece.device or "unknown",
            speaker=piece.who,
            quote=plain(piece.quote),
            error_ms=round(piece.error_ms, 3),
            sampling_ms=round(piece.sampling_ms, 3),
            boundary_ms=round(piece.boundary_ms, 3),
        )
        for piece in pieces
    )


def in_time(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    return tuple(sorted(evidence, key=lambda e: (e.start_s, e.end_s)))


def slide_evidence(text: str, speech: Sequence[Evidence], draft: Draft) -> tuple[Evidence, ...]:
    """Slides that stood while the item was spoken of, with the line that shares most words with it.

    A line counts if it shares at least two content words and names no number that was not said.
    """
    wanted = stems(text.casefold())
    said = Said(tuple(e.quote for e in speech), tuple(e.speaker for e in speech))
    found: list[Evidence] = []
    for slide in draft.slides:
        start_s, end_s = seconds(slide.start_ns, draft.zero_ns), seconds(slide.end_ns, draft.zero_ns)
        during = [e for e in speech if e.start_s < end_s and start_s < e.end_s]
        lines = [line for raw in slide.text.splitlines() if (line := plain(raw))] if during else []
        fitting = [line for line in lines if not unsupported_numbers(line, said)]
        line = max(fitting, key=lambda t: len(wanted & stems(t.casefold())), default="")
        if len(wanted & stems(line.casefold())) < 2:
            continue
        # Clipped to the speech, so that a slide that goes on standing does not change the item.
        found.append(
            Evidence(
                kind="slide",
                start_s=max(start_s, during[0].start_s),
                end_s=min(end_s, during[0].end_s),
                device=slide.device or "unknown",
                speaker=None,
                quote=line,
                error_ms=round(slide.error_ms, 3),
                sampling_ms=round(slide.sampling_ms, 3),
                boundary_ms=0.0,
            )
        )
    return tuple(found)
