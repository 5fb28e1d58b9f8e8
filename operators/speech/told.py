"""What is told of a piece: text while it is open, and its decided text, in parts where sentences were told before."""

from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np

from models.speech_features import SAMPLE_RATE_HZ, Samples
from models.speech_recogniser import Recognition, Word
from models.speech_sentences import standing
from operators.speech.events import PieceClosed, PieceText
from operators.speech.piece import Piece
from operators.speech.prosody import prosody_of


def open_text(
    piece: Piece, version: int, state: Literal["partial", "tentative"], found: Recognition
) -> PieceText:
    """Text of a piece that may still grow."""
    return PieceText(
        piece_id=piece.piece_id,
        version=version,
        state=state,
        device=piece.device,
        speaker=piece.speaker,
        start_ns=piece.start_ns,
        end_ns=piece.end_ns,
        samples_start_ns=piece.samples_start_ns,
        text=found.text,
        words=found.words,
        average_log_probability=found.average_log_probability,
        boundary_ms=found.boundary_ms,
    )


def beginning(piece: Piece, version: int, found: Recognition, count: int) -> PieceText:
    """The first words of a piece that goes on, told as if it ended with them."""
    words = found.words[:count]
    end_ns = max(piece.start_ns + 1, min(piece.end_ns, _at_ns(piece, words[-1].end_s)))
    return replace(
        open_text(piece, version, "tentative", found), end_ns=end_ns, text=_text(words), words=words
    )


def decided(piece: Piece, found: Recognition) -> list[PieceClosed]:
    """The decided text of a piece: one utterance, or one more behind each sentence that stands as it was told."""
    # Only now: nobody waits for it while somebody speaks.
    samples = np.frombuffer(piece.pcm, np.int16).astype(np.float32) / 32768.0
    whole = PieceClosed(
        piece_id=piece.piece_id,
        version=piece.settled,
        device=piece.device,
        speaker=piece.speaker,
        start_ns=piece.start_ns,
        end_ns=piece.end_ns,
        samples_start_ns=piece.samples_start_ns,
        text=found.text,
        words=found.words,
        average_log_probability=found.average_log_probability,
        boundary_ms=found.boundary_ms,
        gaps=tuple(piece.gaps),
    )
    edges = standing(piece.sentences, found.words)
    if not edges:
        return [replace(whole, prosody=prosody_of(samples))]
    return _parts(whole, [found.words[a:b] for a, b in pairwise((0, *edges, len(found.words)))], samples)


def _parts(whole: PieceClosed, parts: list[tuple[Word, ...]], samples: Samples) -> list[PieceClosed]:
    """One utterance for each group of words; the times of words go on counting from the piece's first sample."""
    stream, _, first_index = whole.piece_id.rpartition("/")
    begins = [0, *(round(part[0].start_s * SAMPLE_RATE_HZ) for part in parts[1:]), len(samples)]
    for number in range(1, len(begins) - 1):
        # Each has a sample of its own to be named after, however little time the words were given.
        begins[number] = max(begins[number], begins[number - 1] + 1)
    told = []
    for number, part in enumerate(parts):
        first, last = number == 0, number == len(parts) - 1
        start_ns = whole.start_ns if first else _sample_ns(whole, begins[number])
        next_ns = None if last else _sample_ns(whole, begins[number + 1])
        end_ns = whole.end_ns if next_ns is None else min(next_ns, _at_ns(whole, part[-1].end_s))
        told.append(
            replace(
                whole,
                piece_id=whole.piece_id if first else f"{stream}/{int(first_index) + begins[number]}",
                start_ns=start_ns,
                end_ns=max(start_ns + 1, end_ns),
                text=_text(part),
                words=part,
                gaps=tuple(gap for gap in whole.gaps if _told_with(gap, start_ns, next_ns)),
                prosody=prosody_of(samples[begins[number] : begins[number + 1]]),
                follows_ns=next_ns,
            )
        )
    return told


def _told_with(gap: tuple[int, int], start_ns: int, next_ns: int | None) -> bool:
    """Whether a gap is told with this part: it ends in it, so that no gap is told twice."""
    return start_ns < gap[1] and (next_ns is None or gap[1] <= next_ns)


def _text(words: tuple[Word, ...]) -> str:
    return " ".join(word.text for word in words)


def _at_ns(piece: Piece | PieceClosed, second: float) -> int:
    return piece.samples_start_ns + round(second * 1e9)


def _sample_ns(piece: PieceClosed, sample: int) -> int:
    return piece.samples_start_ns + sample * 1_000_000_000 // SAMPLE_RATE_HZ
