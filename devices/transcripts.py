"""Transcripts of other tools as streams of speakers' words, and speaker turns (RTTM)."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .captions import MAX_NAME_CHARS, MAX_SPAN_NS, lines_of_cues, unrolled
from .cues import plain, read_cues, read_text
from .streams import InputError, Note, TextPiece, WordPiece

_MAX_RECORD: Final = 16 * 1024 * 1024
TRANSCRIPT_SUFFIXES: Final = frozenset({".vtt", ".srt", ".jsonl"})


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """Lines of a transcript, read and sorted when the input was opened."""

    lines: tuple[TextPiece, ...]

    def pieces(self, note: Note) -> Iterator[TextPiece]:
        """Lines by start; see ``Source``."""
        del note
        return iter(self.lines)

    @property
    def duration_ns(self) -> int:
        """End of the last line."""
        return max((line.offset_ns + line.duration_ns for line in self.lines), default=0)


def read_transcript(path: Path, note: Note) -> TranscriptSource:
    """Lines of a ``.vtt``, ``.srt`` or ``.jsonl`` transcript by start.

    Raises:
        InputError: not found, empty, or without one line of a transcript.
    """
    text = read_text(path, note)
    if path.suffix.lower() == ".jsonl":
        lines = _json_lines(path, text, note)
    else:
        cues = read_cues(path, text, note)
        lines = lines_of_cues(unrolled(cues))
        if not lines:
            raise InputError(path, "empty transcript: nobody says anything in it")
    return TranscriptSource(tuple(sorted(lines, key=lambda line: line.offset_ns)))


def is_timeline(path: Path) -> bool:
    """Whether a ``.jsonl`` file is the journal of a meeting: its first line is a record with a type."""
    try:
        with path.open("rb") as file:
            # A journal may be larger than memory; one record is not.
            first = next(
                (line for line in iter(lambda: file.readline(_MAX_RECORD), b"") if line.strip()), b""
            )
        value = json.loads(first)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "start_s" not in value


def _json_lines(path: Path, text: str, note: Note) -> list[TextPiece]:
    lines: list[TextPiece] = []
    bad: list[str] = []
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip():
            continue
        try:
            line = _json_line(json.loads(row))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            bad.append(f"line {number} ({_why(error)})")
            continue
        if line.text:
            lines.append(line)
    if not lines:
        what = f"no transcript: {bad[0]}" if bad else "empty transcript: none of its lines has text"
        raise InputError(path, what)
    if bad:
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        note(f"left out {', '.join(bad[:3])}{more}")
    return lines


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "no JSON"
    if isinstance(error, KeyError):
        return f"no {error.args[0]}"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error)


def _json_line(value: Any) -> TextPiece:
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    text = value["text"]
    if not isinstance(text, str):
        raise ValueError("text is no text")
    start_ns = _json_ns(value["start_s"], "start_s")
    end_ns = _json_ns(value.get("end_s", value["start_s"]), "end_s")
    if end_ns < start_ns:
        raise ValueError("end_s is before start_s")
    if end_ns - start_ns > MAX_SPAN_NS:
        raise ValueError("longer than a day")
    speaker = value.get("speaker")
    if speaker is not None and not isinstance(speaker, str | int):
        raise ValueError("speaker is no text")
    name = plain(str(speaker))[:MAX_NAME_CHARS] if speaker is not None else None
    spelled = value.get("words") or []
    if not isinstance(spelled, list):
        raise ValueError("words is no list")
    words = tuple(_json_word(word) for word in spelled)
    return TextPiece(start_ns, end_ns - start_ns, name or None, " ".join(text.split()), words)


def _json_word(value: Any) -> WordPiece:
    if isinstance(value, dict):
        probability = value.get("probability")
        start, end, text = value["start_s"], value["end_s"], value["text"]
    elif isinstance(value, list) and len(value) == 3:
        (start, end, text), probability = value, None
    else:
        raise ValueError("a word is an object or [start_s, end_s, text]")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("a word without text")
    if isinstance(probability, bool) or not isinstance(probability, int | float | None):
        raise ValueError("a word's probability is no number")
    share = None if probability is None else min(max(float(probability), 0.0), 1.0)
    start_ns, end_ns = _json_ns(start, "a word's start"), _json_ns(end, "a word's end")
    return WordPiece(start_ns, end_ns, text.strip()[:MAX_NAME_CHARS], share)


def _json_ns(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} is no number")
    if not math.isfinite(value) or not 0 <= value < 10**7:
        raise ValueError(f"{what} is out of range")
    return round(value * 10**9)


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of an RTTM file; ns from the zero of the recording it names."""

    recording: str
    start_ns: int
    end_ns: int
    speaker: str


def read_turns(path: Path, note: Note) -> tuple[Turn, ...]:
    """Speaker turns of an RTTM file by start (NIST Rich Transcription format, ``SPEAKER`` lines).

    Raises:
        InputError: not found, empty, or without one speaker turn.
    """
    turns: list[Turn] = []
    bad = 0
    for row in read_text(path, note).splitlines():
        fields = row.split()
        if not fields or fields[0].startswith(";;") or fields[0] != "SPEAKER":
            continue
        try:
            start, length, name = float(fields[3]), float(fields[4]), fields[7]
            if not (0 <= start < 10**7 and 0 < length < 10**6):  # false for NaN too
                raise ValueError("times out of range")
        except (IndexError, ValueError):
            bad += 1
            continue
        begin_ns = round(start * 10**9)
        turns.append(Turn(fields[1], begin_ns, begin_ns + round(length * 10**9), name[:MAX_NAME_CHARS]))
    if not turns:
        raise InputError(path, "no speaker turns: it has no SPEAKER line with times and a name")
    if bad:
        note(f"{bad} SPEAKER line{'s' if bad > 1 else ''} without times or a name left out")
    return tuple(sorted(turns, key=lambda turn: turn.start_ns))
