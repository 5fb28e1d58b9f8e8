"""``minuted run``: reads a room of files, writes its log as it goes, and its minutes at the end."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from contracts.messages import DeadLetter, MeetingStarted
from contracts.minutes import MinutesDocument
from contracts.timeline import TIMELINE_RECORD, ClockRecord, ControlRecord, EndedRecord, Fence, NoticeRecord
from contracts.topics import DEADLETTER, TIMELINE
from devices.inputs import Room
from devices.streams import InputError, Problem, StreamMessage, due_ns
from models.speech_recogniser import SpeechRecogniser
from models.voice_activity import VoiceActivity
from operators.deliver.keys import Keys
from operators.perceive.step import MediaWorkers
from operators.settings import Settings

from .build import perceive_settings, product_versions, recogniser_settings, verifier
from .files import MinutesOfLog, is_features, log_line, perceive_room
from .minutes_model import understanding
from .output import write_minutes

Speed = Literal["realtime", "max"] | float
_HEADLESS: Final = "the beginning of the log is missing; the minutes hold only what follows"


def run_files(room: Room, out: Path, *, speed: Speed, settings: Settings) -> MinutesDocument:
    """Minutes of a room, or of the log of a meeting, in ``out``.

    Raises:
        InputError: the log is damaged or has no end.
        ModelError: the recogniser's weights are missing.
    """
    minutes = minutes_by(settings)
    if room.timeline is not None:
        _read_log(room, room.timeline, minutes)
        log = None
    else:
        log = out / "timeline.jsonl"
        _perceive(room, log, minutes, speed, settings)
    document = minutes.document()
    if document is None:
        raise InputError(room.timeline or out, "the log has no end of the meeting; it was cut off")
    write_minutes(document, out, date=minutes.date, audit=minutes.audit)
    if room.timeline is not None and room.timeline.resolve() != (out / "timeline.jsonl").resolve():
        (out / "timeline.jsonl").write_bytes(room.timeline.read_bytes())
    return document


def minutes_by(settings: Settings, keys: Keys | None = None) -> MinutesOfLog:
    """The second flow over one log, as the settings ask for it.

    Raises:
        SettingsProblem: the rule file cannot be used.
    """
    found = understanding(settings)
    guard = verifier(settings, found.notices)
    return MinutesOfLog(product_versions(found.model, guard.judged_by), keys, guard, found.engine)


def _read_log(room: Room, path: Path, minutes: MinutesOfLog) -> None:
    """Read the log of a meeting; one whose first lines are missing is read, and that is said."""
    opened = headless = False
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                if not opened and not is_features(line):
                    record = TIMELINE_RECORD.validate_json(line)
                    opened = isinstance(record, ControlRecord) and isinstance(record.control, MeetingStarted)
                    headless = headless or not (
                        opened or isinstance(record, ControlRecord | ClockRecord | Fence)
                    )
                if headless and isinstance(ended := _ended(line), EndedRecord):
                    told = NoticeRecord(meeting_id=ended.meeting_id, code="input", text=_HEADLESS)
                    minutes.read(told.to_bytes())
                minutes.read(line)
            except ValueError as error:
                raise InputError(path, f"line {number} is no record of a meeting's log") from error
    if headless:
        room.problems.append(Problem(path, _HEADLESS))


def _ended(line: bytes) -> object:
    return TIMELINE_RECORD.validate_json(line) if b'"ended"' in line else None


def _perceive(room: Room, log: Path, minutes: MinutesOfLog, speed: Speed, settings: Settings) -> None:
    recogniser: list[SpeechRecogniser] = []

    def weights() -> SpeechRecogniser:
        if not recogniser:
            recogniser.append(SpeechRecogniser(recogniser_settings(settings)))
        return recogniser[0]

    ordinary: frozenset[str] = frozenset()
    if any(stream.modality.name == "AUDIO" for stream in room.streams):
        ordinary = weights().ordinary_words()
    workers = MediaWorkers(weights, recognition_workers=settings.recognition_workers)
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    unread: dict[str, list[str]] = {}
    try:
        with log.open("wb") as lines, progress:
            task = progress.add_task("reading", total=room.duration_ns)
            held = _pace(room, speed)

            def pace(message: StreamMessage) -> None:
                held(message)
                progress.update(task, completed=due_ns(message) - room.start_ns)

            messages = perceive_room(
                room, perceive_settings(settings, ordinary), workers, VoiceActivity(), pace=pace
            )
            for message in messages:
                if message.topic is DEADLETTER:
                    letter = DeadLetter.model_validate_json(message.value)
                    unread.setdefault(letter.topic, []).append(letter.detail)
                if message.topic is TIMELINE:
                    line = log_line(message.value)
                    lines.write(line + b"\n")
                    minutes.read(line)
    finally:
        workers.close()
    for topic, details in sorted(unread.items()):
        what = "1 packet" if len(details) == 1 else f"{len(details)} packets"
        print(f"minuted: {what} of {topic} could not be read: {details[0]}", file=sys.stderr)


def _pace(room: Room, speed: Speed) -> Callable[[StreamMessage], None]:
    """What holds messages back to the speed asked for."""
    if speed == "max":
        return lambda _: None
    factor = 1.0 if speed == "realtime" else float(speed)
    begin = time.monotonic()

    def hold(message: StreamMessage) -> None:
        wait_s = begin + (due_ns(message) - room.start_ns) / 1e9 / factor - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)

    return hold
