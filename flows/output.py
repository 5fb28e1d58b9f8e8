"""Writes the minutes of a meeting into a folder."""

import datetime
from collections.abc import Iterable
from pathlib import Path

from contracts.minutes import MinutesDocument
from operators.deliver.render import minutes_json, minutes_markdown, transcript_vtt


def write_minutes(
    document: MinutesDocument,
    out: Path,
    *,
    date: datetime.date | None = None,
    timeline: Iterable[bytes] | None = None,
    audit: Iterable[bytes] = (),
) -> None:
    """Write ``minutes.json``, ``minutes.md``, ``transcript.vtt``, ``audit.jsonl`` and, where given, ``timeline.jsonl``.

    Args:
        date: day of the meeting, for the Markdown, where the document's start does not tell it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "minutes.json").write_bytes(minutes_json(document))
    (out / "minutes.md").write_text(minutes_markdown(document, date), encoding="utf-8")
    (out / "transcript.vtt").write_text(transcript_vtt(document.utterances), encoding="utf-8")
    with (out / "audit.jsonl").open("wb") as entries:
        entries.writelines(value + b"\n" for value in audit)
    if timeline is not None:
        with (out / "timeline.jsonl").open("wb") as log:
            log.writelines(value + b"\n" for value in timeline)
