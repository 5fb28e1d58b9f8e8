"""What cameras, slides and the voice add to utterances: read from the alignment, in the same times.

Provisional utterances get their tone alone; settled and final ones also what was shown and what was seen. An
utterance owns the gestures that begin between its start and the start of the next one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from contracts.timeline import Prosody, UtteranceRecord
from operators.align.alignment import Alignment
from operators.align.slides import SlideAt
from operators.understand.sensed import Senses, Shown, Tone
from operators.understand.types import Spoken

_NS: Final = 1_000_000_000
_AFTER_NS: Final = 6 * _NS
"""A gesture this long after the last word belongs to nothing that was said."""
_ANSWERED_NS: Final = 1_500_000_000
"""Who nods or shakes the head has begun by then."""
_MOST_LINES: Final = 60
_MOST_CHARS: Final = 200
_END_NS: Final = 500_000_000
_SLOPE_NS: Final = 300_000_000
_LEAST_VOICED: Final = 5


def tone_of(prosody: Prosody | None) -> Tone | None:
    """How a voice ended; None where too little of the end was voiced to tell."""
    if prosody is None or prosody.typical_hz <= 0.0:
        return None
    pitch = np.asarray(prosody.pitch_hz[-(_END_NS // prosody.step_ns) :], np.float64)
    voiced = np.flatnonzero(pitch)
    if len(voiced) < _LEAST_VOICED:
        return None
    semitones = 12.0 * np.log2(pitch[voiced] / prosody.typical_hz)
    late = voiced >= len(pitch) - _SLOPE_NS // prosody.step_ns
    slope = 0.0
    if np.count_nonzero(late) >= _LEAST_VOICED:
        at_s = voiced[late] * (prosody.step_ns / _NS)
        at_s = at_s - at_s.mean()
        slope = float(np.dot(at_s, semitones[late]) / np.dot(at_s, at_s))
    return Tone(
        round(float(np.median(semitones[-4:])), 2),
        round(slope, 2),
        round(len(voiced) / len(pitch), 3),
        prosody.level_db,
    )


def with_tone(spoken: Spoken, record: UtteranceRecord | None) -> Spoken:
    """An utterance with how its voice ended, as far as the log says so."""
    tone = tone_of(record.prosody) if record is not None else None
    return spoken if tone is None else replace(spoken, senses=Senses(tone=tone))


def with_senses(
    alignment: Alignment,
    spoken: Sequence[Spoken],
    records: Mapping[str, UtteranceRecord],
    starts_ns: Sequence[int],
) -> tuple[Spoken, ...]:
    """Utterances with everything that was seen, shown and heard around them.

    Args:
        spoken: in order.
        records: the utterances of the log by id.
        starts_ns: starts of all utterances known, rising; those of ``spoken`` are among them.
    """
    gestures = alignment.gestures()
    begins = [g.start_ns for g in gestures]
    watched = alignment.watched()
    slides = _shown(alignment, [s.end_ns for s in spoken])
    out = []
    for place, one in enumerate(spoken):
        later = bisect_right(starts_ns, one.start_ns)
        until_ns = one.end_ns + _AFTER_NS
        if later < len(starts_ns):
            until_ns = min(until_ns, starts_ns[later])
        own = gestures[bisect_left(begins, one.start_ns) : bisect_left(begins, until_ns)]
        looked_ns = min(until_ns, one.end_ns + _ANSWERED_NS)
        record = records.get(one.id)
        senses = Senses(
            tuple(own),
            slides[place],
            None if record is None else tone_of(record.prosody),
            any(since <= one.start_ns and looked_ns <= until for since, until in watched),
        )
        out.append(one if senses == NOTHING else replace(one, senses=senses))
    return tuple(out)


NOTHING: Final = Senses()


def _shown(alignment: Alignment, times_ns: Sequence[int]) -> list[tuple[Shown, ...]]:
    """The slides of all streams that stood at each time."""
    found: list[list[Shown]] = [[] for _ in times_ns]
    for slides in alignment.slides_at(np.asarray(times_ns, np.int64)).values():
        for place, slide in enumerate(slides):
            if slide.id is not None and slide.text.strip():
                found[place].append(_as_shown(slide, slide.id))
    return [tuple(shown) for shown in found]


def _as_shown(slide: SlideAt, slide_id: str) -> Shown:
    lines = [line.strip()[:_MOST_CHARS] for line in slide.text.splitlines()]
    return Shown(
        slide_id, slide.device, tuple(line for line in lines if line)[:_MOST_LINES],
        round(slide.error_ns / 1e6, 3), slide.sampling_ms,
    )  # fmt: skip
