"""Log records of what was heard and seen: pure functions from pieces to records."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from contracts.messages import TextLine, TranscriptMessage
from contracts.packet import ClockKind, Modality, Packet
from contracts.timeline import Prosody, RecordWord, SlideRecord, UtteranceRecord
from models.speech_recogniser import Recognition, Word
from operators.perceive.types import Stream
from operators.pictures.picture import FeatureBlock
from operators.speech.events import PieceClosed, PieceText
from operators.speech.prosody import STEP_NS

_SAMPLING_MS: Final = 1000 / 16_000
_UNTIMED_WORDS_MS: Final = 500.0
"""How sharply the edges of an utterance are known whose words carry no times."""


def heard_record(
    meeting_id: str,
    piece: PieceText | PieceClosed,
    stream: Stream,
    *,
    clock: int | None,
    text: str,
    speaker: str | None,
    mark_ns: int | None,
) -> UtteranceRecord:
    """A tentative or closed piece; ``text``: with names corrected; ``mark_ns``: the stream's mark, raw.

    ``clock``: number of the clock record that its times refer to, None for the newest.
    """
    return UtteranceRecord(
        meeting_id=meeting_id, id=piece.piece_id, version=piece.version,
        state="closed" if isinstance(piece, PieceClosed) else "tentative", stream=stream.name, device=piece.device,
        clock=stream.clock if clock is None else clock, raw_start_ns=piece.start_ns, raw_end_ns=piece.end_ns,
        mark_ns=piece.start_ns if mark_ns is None else mark_ns, speaker=speaker, text=text,
        heard=piece.text if text != piece.text else None, words=record_words(piece.words, piece.samples_start_ns),
        source="recogniser", confidence=min(1.0, float(np.exp(min(0.0, piece.average_log_probability)))),
        sampling_ms=_SAMPLING_MS, boundary_ms=piece.boundary_ms, prosody=_prosody(piece),
    )  # fmt: skip


def _prosody(piece: PieceText | PieceClosed) -> Prosody | None:
    spoken = piece.prosody if isinstance(piece, PieceClosed) else None
    if spoken is None:
        return None
    return Prosody(
        step_ns=STEP_NS, pitch_hz=spoken.pitch_hz, typical_hz=spoken.typical_hz, level_db=spoken.level_db
    )


def withdrawn_record(
    meeting_id: str, piece_id: str, version: int, stream: Stream, mark_ns: int
) -> UtteranceRecord:
    """A piece that turned out to be no utterance."""
    return UtteranceRecord(
        meeting_id=meeting_id, id=piece_id, version=version, state="withdrawn", stream=stream.name,
        device=stream.device, clock=stream.clock, raw_start_ns=mark_ns, raw_end_ns=mark_ns, mark_ns=mark_ns,
        speaker=None, text="", source="recogniser", sampling_ms=_SAMPLING_MS, boundary_ms=0.0,
    )  # fmt: skip


def transcript_record(message: TranscriptMessage, stream: Stream) -> UtteranceRecord:
    """An utterance of an outside recogniser."""
    return UtteranceRecord(
        meeting_id=message.meeting_id, id=f"{message.device_id}/{message.stream_epoch}/{message.sequence}", version=1,
        state="closed", stream=stream.name, device=message.device_id, clock=stream.clock,
        raw_start_ns=message.timestamp_ns, raw_end_ns=message.timestamp_ns + message.duration_ns,
        mark_ns=message.timestamp_ns, speaker=message.speaker, text=message.text.strip(),
        words=tuple(
            RecordWord(start_ns=w.start_ns, end_ns=w.end_ns, text=w.text, probability=w.probability)
            for w in message.words
        ),
        source="transcript", sampling_ms=0.0, boundary_ms=0.0 if message.words else _UNTIMED_WORDS_MS,
    )  # fmt: skip


def slide_record(
    meeting_id: str, stream: Stream, raw_ns: int, lines: tuple[TextLine, ...], *,
    known: bool, sampling_ms: float, mark_ns: int | None,
) -> SlideRecord:  # fmt: skip
    """A slide from ``raw_ns`` on; ``known``: shown before, not read again."""
    return SlideRecord(
        meeting_id=meeting_id, id=f"{stream.name}/{stream.epoch}/{raw_ns}", stream=stream.name, device=stream.device,
        clock=stream.clock, raw_start_ns=raw_ns, mark_ns=raw_ns if mark_ns is None else mark_ns,
        text="\n".join(line.text for line in lines), lines=lines, known=known, sampling_ms=sampling_ms,
    )  # fmt: skip


def features_packet(meeting_id: str, stream: Stream, block: FeatureBlock) -> Packet:
    """Features of a camera, in the packet layout; their stream epoch is set to the run that writes them."""
    return Packet(
        meeting_id=meeting_id, device_id=stream.device, modality=Modality.PICTURE_FEATURES, codec=block.codec,
        clock_kind=ClockKind.PTP, stream_epoch=0, sequence=stream.features, timestamp_ns=block.timestamp_ns,
        duration_ns=block.duration_ns, payload=block.payload, width=block.width, height=block.height,
        channels=block.channels,
    )  # fmt: skip


def own_bytes(packet: Packet) -> Packet:
    """The packet with bytes of its own, not a view into a message that may be released."""
    if isinstance(packet.payload, bytes):
        return packet
    return Packet(
        **{name: getattr(packet, name) for name in Packet.__slots__} | {"payload": bytes(packet.payload)}
    )


def record_words(words: Iterable[Word], start_ns: int) -> tuple[RecordWord, ...]:
    """Words with raw times; ``start_ns``: raw time of the first sample that was recognised."""
    return tuple(
        RecordWord(
            start_ns=start_ns + round(w.start_s * 1e9), end_ns=start_ns + round(w.end_s * 1e9), text=w.text.strip() or "·",
            probability=min(1.0, max(0.0, w.probability)),
        )
        for w in words
    )  # fmt: skip


def as_recognition(record: UtteranceRecord, start_ns: int) -> Recognition:
    """What the log says was heard, in the form of a recogniser's answer."""
    words = tuple(
        Word((w.start_ns - start_ns) / 1e9, (w.end_ns - start_ns) / 1e9, w.text, w.probability or 0.0)
        for w in record.words
    )
    text = record.text if record.heard is None else record.heard
    log_probability = float(np.log(max(record.confidence, 1e-6)))
    return Recognition(text, words, average_log_probability=log_probability, boundary_ms=record.boundary_ms)
