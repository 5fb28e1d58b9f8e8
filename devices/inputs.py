"""What an input is: files and folders a person names become the streams of one meeting.

Sound and video files, folders of pictures, transcripts (``.vtt .srt .jsonl``), speaker turns (``.rttm``),
or one folder that is a room: one file for each device and perhaps a ``room.json``.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from contracts.base import seen
from contracts.messages import (
    AnyControl,
    AttendeeInfo,
    Calibration,
    ChannelSpeaker,
    MeetingStarted,
    SpeakerTurn,
    SpeakerTurns,
)
from contracts.packet import MAX_ID_BYTES, Modality
from contracts.refusals import refusal_line

from .captions import MAX_NAME_CHARS
from .input_names import day_in_name, device_id_of, meeting_id_of, name_of, shortened
from .isolated import IsolatedSource, isolated_probe
from .media import MEDIA_SUFFIXES, SoundSettings, SoundSource
from .pictures import PICTURE_SUFFIXES, PictureSource, is_picture_folder, natural_order
from .room import ROOM_FILE, RoomCalibration, RoomDevice, RoomFile, read_room
from .stored_calibrations import FOLDER as CALIBRATION_FOLDER
from .stored_calibrations import read_stored
from .streams import MAX_LENGTH_NS, InputError, Problem, Source, Stream, merged
from .transcripts import TRANSCRIPT_SUFFIXES, TranscriptSource, Turn, is_timeline, read_transcript, read_turns
from .video import VideoSettings, VideoSource

TURNS_SUFFIX: Final = ".rttm"
_NOT_INPUTS: Final = frozenset({".json", ".md", ".txt", ".yaml", ".yml", ".toml", ".csv", ".log", ""})
"""Endings that a room folder may hold beside its devices; passed over in silence."""
_SLIDE_WORDS: Final = re.compile(r"slide|screen|present|share|deck|projector|beamer", re.IGNORECASE)
MAX_STREAMS: Final = 64
_FAR_NS: Final = 2**62 - MAX_LENGTH_NS


@dataclass(frozen=True, slots=True)
class InputSettings:
    """How media are cut and coded when they become packets."""

    sound: SoundSettings = field(default_factory=SoundSettings)
    video: VideoSettings = field(default_factory=VideoSettings)


@dataclass(frozen=True, slots=True)
class Room:
    """The streams of one meeting and what is to be said before them."""

    meeting_id: str
    control: tuple[AnyControl, ...]
    streams: tuple[Stream, ...]
    start_ns: int = 0
    """Timeline time of the files' zero; 0 where nobody said when the recording was made."""
    start_known: bool = False
    timeline: Path | None = None
    """The journal of a meeting instead of streams: nothing is left to perceive."""
    problems: list[Problem] = field(default_factory=list, compare=False)
    """What a person should know; grows while streams are read."""
    live: bool = False
    """Streams come from devices of this machine: they set the pace, and their stamps are true already."""

    @property
    def duration_ns(self) -> int | None:
        """Length of the longest stream as far as the files say, None where none says."""
        return max((s.duration_ns for s in self.streams if s.duration_ns is not None), default=None)


@dataclass(slots=True)
class _Device:
    """One input file (or folder of pictures) on its way to streams."""

    name: str
    path: Path
    sources: dict[Modality, Source] = field(default_factory=dict)
    duration_ns: int | None = None
    shift_ns: int = 0
    recorded: datetime.date | None = None


def open_inputs(
    paths: Sequence[Path],
    *,
    title: str | None = None,
    date: datetime.date | None = None,
    attendees: Sequence[str] = (),
    meeting_id: str | None = None,
    start_ns: int | None = None,
    speech_source: Literal["sound", "transcript"] | None = None,
    settings: InputSettings | None = None,
    calibrations: Path | None = None,
) -> Room:
    """The room that the inputs make; reads headers and transcripts, media only when their streams are read.

    What is given here wins over ``room.json``. ``calibrations``: a folder of stored ones; by default that of the
    room's folder. Without ``start_ns`` and a room that knows its start, the
    timeline begins at 0. The date falls back to one in a file's name, then to the recorder's.

    Raises:
        InputError: an input does not exist, or nothing in the inputs can be read. One bad file among good
            ones is told in ``problems``.
    """
    if not paths:
        raise InputError("", "no input given")
    for path in paths:
        if not path.exists():
            raise InputError(path, "file not found")
    timelines = [p for p in paths if p.is_file() and p.suffix.lower() == ".jsonl" and is_timeline(p)]
    if timelines:
        if len(paths) > 1:
            raise InputError(timelines[0], "the log of a meeting holds all of it and goes alone")
        return Room(meeting_id or meeting_id_of(timelines[0].stem), (), (), timeline=timelines[0])
    return _Opening(paths, settings or InputSettings(), calibrations).room(
        title, date, tuple(attendees), meeting_id, start_ns, speech_source
    )


class _Opening:
    """Opens the inputs of one room one after the other and collects what is wrong with some of them."""

    def __init__(self, paths: Sequence[Path], settings: InputSettings, calibrations: Path | None) -> None:
        self.problems: list[Problem] = []
        self._settings = settings
        self._first = paths[0]
        try:
            rooms = [path for path in paths if path.is_dir() and not is_picture_folder(path)]
        except PermissionError as error:
            raise InputError(str(error.filename), "no permission to read this folder") from error
        if rooms and len(paths) > 1:
            raise InputError(rooms[0], "a room folder goes alone, not with other inputs")
        self._folder = rooms[0] if rooms else None
        self._calibration_folder = calibrations
        if calibrations is None and self._folder is not None:
            self._calibration_folder = self._folder / CALIBRATION_FOLDER
        self._info = (
            read_room(self._folder, self._noting(self._folder / ROOM_FILE)) if self._folder else RoomFile()
        )
        self._devices: list[_Device] = []
        self._turns: list[tuple[Path, tuple[Turn, ...]]] = []
        errors: list[InputError] = []
        for name, path, told in self._wanted(paths):
            try:
                self._open(name, path, told)
            except InputError as error:
                errors.append(error)
                self.problems.append(Problem(error.path, error.what))
        if not self._devices:
            if errors:
                raise errors[0]
            if self._turns:
                raise InputError(self._turns[0][0], "speaker turns need the sound they belong to beside them")
            raise InputError(self._first, "nothing in this folder is a sound, video, picture or transcript")

    def _noting(self, path: Path) -> "_Noting":
        return _Noting(path, self.problems)

    def _wanted(self, paths: Sequence[Path]) -> list[tuple[str | None, Path, RoomDevice]]:
        """Device name where the room tells one, file, and what the room tells about it."""
        if self._folder is None:
            return [(None, path, RoomDevice()) for path in paths]
        folder = self._folder
        wanted: list[tuple[str | None, Path, RoomDevice]] = []
        files = [
            path for path in sorted(folder.iterdir(), key=natural_order) if not path.name.startswith(".")
        ]
        told: dict[Path, tuple[str, RoomDevice]] = {}
        for name, info in self._info.devices.items():
            if info.file:
                path = (folder / info.file).resolve()
                if path in told:
                    self._noting(folder / ROOM_FILE)(
                        f"{info.file} is named by two devices, {told[path][0]} and {name}; it is read as {name}"
                    )
                told[path] = (name, info)
        stems = {name: info for name, info in self._info.devices.items() if not info.file}
        pictures = [path for path in files if path.is_file() and path.suffix.lower() in PICTURE_SUFFIXES]
        for path in files:
            called, known = told.pop(path.resolve(), (None, None))
            if known is None and path.stem in stems:
                called, known = path.stem, stems[path.stem]
            if path.is_dir():
                if known is not None or is_picture_folder(path):
                    wanted.append((called, path, known or RoomDevice()))
            elif known is not None or (path.suffix.lower() not in _NOT_INPUTS and path not in pictures):
                wanted.append((called, path, known or RoomDevice()))
        if pictures:
            wanted.append(
                ("slides" if "slides" not in self._info.devices else None, folder, RoomDevice(role="slides"))
            )
        wanted += [(name, folder / (info.file or name), info) for name, info in told.values()]
        return wanted

    def _open(self, name: str | None, path: Path, told: RoomDevice) -> None:
        if told.file is not None and (Path(told.file).is_absolute() or ".." in Path(told.file).parts):
            # Rooms are handed on; what lies elsewhere on this machine is nothing that they may name.
            raise InputError(
                (self._folder or path.parent) / ROOM_FILE,
                f"{told.file} lies outside of this folder; left out",
            )
        if not path.exists():
            raise InputError(path, f"file not found, though {ROOM_FILE} names it")
        suffix, note = path.suffix.lower(), self._noting(path)
        if suffix == TURNS_SUFFIX and path.is_file():
            self._turns.append((path, read_turns(path, note)))
            return
        device = _Device(self._unused(device_id_of(name or path.stem or path.name)), path)
        device.shift_ns = round(told.start_s * 10**9)
        if path.is_dir() or suffix in PICTURE_SUFFIXES:
            pictures = PictureSource.of(path, self._settings.video, note)
            device.sources[Modality.VIDEO], device.duration_ns = pictures, pictures.duration_ns
        elif suffix in TRANSCRIPT_SUFFIXES:
            lines = read_transcript(path, note)
            device.sources[Modality.TRANSCRIPT], device.duration_ns = lines, lines.duration_ns
        else:
            self._open_media(device, told)
        self._devices.append(device)

    def _open_media(self, device: _Device, told: RoomDevice) -> None:
        if device.path.suffix.lower() not in MEDIA_SUFFIXES and device.path.stat().st_size == 0:
            raise InputError(device.path, "empty file")
        info = isolated_probe(device.path)
        for what in info.notes:
            self.problems.append(Problem(device.path, what))
        device.duration_ns, device.recorded = info.duration_ns, info.recorded
        mapped = sum(entry.device == device.name for entry in self._info.channel_map)
        if info.picture is not None and told.modality in (None, "video"):
            device.sources[Modality.VIDEO] = VideoSource(
                device.path, info.picture, self._settings.video, info.duration_ns
            )
        if info.sound is not None and told.modality in (None, "audio"):
            device.sources[Modality.AUDIO] = SoundSource(
                device.path, info.sound, self._settings.sound, info.duration_ns, keep_channels=mapped > 2
            )
        if not device.sources:
            raise InputError(device.path, f"has no {told.modality}, though {ROOM_FILE} says so")

    def _unused(self, name: str) -> str:
        used = {device.name for device in self._devices}
        number, candidate = 1, name
        while candidate in used:
            number += 1
            candidate = shortened(name, MAX_ID_BYTES - len(f"-{number}")) + f"-{number}"
        return candidate

    def room(
        self,
        title: str | None,
        date: datetime.date | None,
        attendees: tuple[str, ...],
        meeting_id: str | None,
        start_ns: int | None,
        speech_source: Literal["sound", "transcript"] | None,
    ) -> Room:
        info = self._info
        if start_ns is None:
            start_ns = info.begins_ns
        begins_ns = start_ns or 0
        about = self._folder / ROOM_FILE if self._folder is not None else self._first
        if abs(begins_ns) > _FAR_NS:
            raise InputError(about, "start of the meeting: must be a time between 1900 and 2100")
        name = name_of(self._first)
        meeting = meeting_id or info.meeting_id or meeting_id_of(name)
        streams = self._streams(meeting, begins_ns)
        try:
            started = self._started(
                meeting,
                begins_ns,
                (title or info.title or name)[:200],
                date,
                attendees,
                speech_source,
                streams,
            )
            calibrations, turns = self._calibrations(meeting), self._speaker_turns(meeting, begins_ns)
        except ValidationError as error:
            raise InputError(about, refusal_line(error)) from error
        control: tuple[AnyControl, ...] = (started, *calibrations, *turns)
        return Room(meeting, control, streams, begins_ns, start_ns is not None, None, self.problems)

    def _started(
        self,
        meeting: str,
        begins_ns: int,
        title: str,
        date: datetime.date | None,
        attendees: tuple[str, ...],
        speech_source: Literal["sound", "transcript"] | None,
        streams: Sequence[Stream],
    ) -> MeetingStarted:
        info = self._info
        there = {stream.device_id for stream in streams}
        kinds = {stream.modality for stream in streams}
        only_text = Modality.TRANSCRIPT in kinds and Modality.AUDIO not in kinds
        return MeetingStarted(
            meeting_id=meeting,
            start_ns=begins_ns,
            title=title,
            date=date or info.meeting_date or self._day(),
            attendees=tuple(AttendeeInfo(name=name) for name in _visible(attendees))
            or tuple(AttendeeInfo(name=a.name, speaker=a.speaker, role=a.role) for a in info.attendees),
            channel_map=self._channel_map(),
            seats=self._info.places()[:64],
            microphones=tuple(m for m in self._info.microphones() if m.device in there)[:64],
            agenda=info.agenda,
            key_topics=info.key_topics,
            slide_devices=self._slide_devices(),
            streams=tuple(stream.name for stream in streams),
            tai_utc_offset_s=info.tai_utc_offset_s,
            speech_source=speech_source or info.speech_source or ("transcript" if only_text else "sound"),
        )

    def _streams(self, meeting: str, start_ns: int) -> tuple[Stream, ...]:
        streams = [
            Stream(
                meeting, device.name, modality, source, device.path, start_ns + device.shift_ns,
                device.duration_ns, problems=self.problems,
            )
            for device in self._devices
            for modality, source in device.sources.items()
        ]  # fmt: skip
        if len(streams) > MAX_STREAMS:
            raise InputError(self._first, f"{len(streams)} streams; a meeting has at most {MAX_STREAMS}")
        longest_ns = max(
            (s.duration_ns or 0 for s in streams if not isinstance(s.source, PictureSource)), default=0
        )
        return tuple(_ready(stream, longest_ns) for stream in streams)

    def _channel_map(self) -> tuple[ChannelSpeaker, ...]:
        """The room's channel map as far as its devices are there."""
        there = {device.name for device in self._devices}
        missing = sorted({entry.device for entry in self._info.speakers()} - there)
        if missing:
            names = ", ".join(missing)
            self.problems.append(
                Problem(
                    (self._folder or Path()) / ROOM_FILE,
                    f"the channel map names devices that are not there: {names}",
                )
            )
        return tuple(entry for entry in self._info.speakers() if entry.device in there)

    def _slide_devices(self) -> tuple[str, ...]:
        """Video devices that the room calls slides; where it says nothing, those named like slides."""
        video = [device for device in self._devices if Modality.VIDEO in device.sources]
        told = {
            name for name, info in self._info.devices.items() if info.role and _SLIDE_WORDS.search(info.role)
        }
        named = [
            d.name for d in video if d.name in told or isinstance(d.sources[Modality.VIDEO], PictureSource)
        ]
        if not named and not any(
            d.name in self._info.devices and self._info.devices[d.name].role for d in video
        ):
            named = [d.name for d in video if _SLIDE_WORDS.search(d.name)]
        return tuple(named[:16])

    def _calibrations(self, meeting: str) -> list[Calibration]:
        """What the room tells, and above it what is stored beside it, device by device."""
        known: dict[str, RoomCalibration] = {entry.device: entry for entry in self._info.calibration}
        if self._calibration_folder is not None:
            names = [device.name for device in self._devices]
            known |= {c.device: c for c in read_stored(self._calibration_folder, names, self.problems.append)}
        return [Calibration(meeting_id=meeting, **entry.model_dump()) for entry in known.values()]

    def _speaker_turns(self, meeting: str, start_ns: int) -> list[SpeakerTurns]:
        """Turns go to the sound whose name the file or its lines bear, else to the only sound there is."""
        sounds = {d.name: d for d in self._devices if Modality.AUDIO in d.sources}
        result: list[SpeakerTurns] = []
        for path, turns in self._turns:
            names = {turn.recording for turn in turns}
            by_name = [d for d in sounds.values() if d.path.stem == path.stem] or [
                d for d in sounds.values() if d.path.stem in names
            ]
            device = by_name[0] if by_name else next(iter(sounds.values())) if len(sounds) == 1 else None
            if device is None:
                self.problems.append(Problem(path, "speaker turns of no sound file that is here, left out"))
                continue
            if len(names) > 1 and device.path.stem in names:
                turns = tuple(turn for turn in turns if turn.recording == device.path.stem)
            if len(turns) > 20_000:
                self.problems.append(Problem(path, f"{len(turns)} speaker turns; the first 20,000 are used"))
            zero_ns = start_ns + device.shift_ns
            spoken = tuple(
                SpeakerTurn(start_ns=zero_ns + t.start_ns, end_ns=zero_ns + t.end_ns, speaker=t.speaker)
                for t in turns[:20_000]
            )
            result.append(SpeakerTurns(meeting_id=meeting, device=device.name, turns=spoken))
        return result

    def _day(self) -> datetime.date | None:
        for path in (self._first, *(device.path for device in self._devices)):
            if (day := day_in_name(path.name)) is not None:
                return day
        return next((device.recorded for device in self._devices if device.recorded is not None), None)


def _visible(names: Sequence[str]) -> list[str]:
    """Names of people as given on a command line, those of which nothing is seen left out."""
    long = next((name for name in names if len(name) > MAX_NAME_CHARS), None)
    if long is not None:
        raise InputError("--attendees", f"“{long[:20]}…” is longer than {MAX_NAME_CHARS} characters")
    return [name for name in names if seen(name)]


def _ready(stream: Stream, longest_ns: int) -> Stream:
    """The stream in a room whose longest recording has this length; compressed media are read elsewhere."""
    source = stream.source
    if isinstance(source, TranscriptSource):
        return stream
    if isinstance(source, PictureSource):
        source = source.lasting(longest_ns)
        stream = replace(stream, duration_ns=source.duration_ns)
    return replace(stream, source=IsolatedSource(source, stream.path))


@dataclass(frozen=True, slots=True)
class _Noting:
    """Collects what is noticed about one input."""

    path: Path
    problems: list[Problem]

    def __call__(self, what: str) -> None:
        self.problems.append(Problem(self.path, what))


__all__ = [
    "InputError",
    "InputSettings",
    "Problem",
    "Room",
    "Stream",
    "merged",
    "open_inputs",
]
