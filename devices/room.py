"""``room.json``: what a folder says about its meeting beyond the recordings themselves.

Everything may be missing. Times: ``start_ns`` is the timeline (PTP, TAI) of the zero of every file;
``start_time`` is the same in ISO 8601, with a time zone (without one it is read as UTC).

    {"meeting_id", "title", "date", "start_time", "start_ns", "tai_utc_offset_s", "language",
     "attendees":   ["Name" | {"name", "speaker", "role", "seat"}],
     "seats":       {seat: {"mouth_m": [x, y, z], "microphone_m": [x, y, z]}},
     "devices":     {device: {"file", "modality", "role", "seat", "speaker", "start_s",
                              "microphones_m": [[x, y, z] for each channel]}},
     "channel_map": [{"device", "channel", "speaker"}],
     "agenda": [str], "key_topics": [str], "speech_source": "sound" | "transcript",
     "calibration": [{"device", "offset_ns", "skew_ppb", "ref_ns", "uncertainty_ns"}]}
"""

import datetime
import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contracts.base import Id, LengthNs, Name, Ns, PersonName, Somebody
from contracts.leap_seconds import TAI_UTC_S
from contracts.messages import ChannelSpeaker, MicrophonePlace, Position, SeatPlace
from contracts.refusals import refusal_line
from contracts.small_files import read_small

from .streams import InputError, Note

ROOM_FILE: Final = "room.json"
_MOST_BYTES: Final = 16 * 1024 * 1024


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Seat(_Part):
    """Where somebody sits: positions in metres from one corner of the floor."""

    mouth_m: Position | None = None
    microphone_m: Position | None = None


class RoomAttendee(_Part):
    """Somebody in the meeting; ``speaker`` is the label that streams use, where it is not the name."""

    name: PersonName
    speaker: Somebody = None
    role: Name | None = None
    seat: Name | None = None


class RoomDevice(_Part):
    """One file of the folder and what it is."""

    file: Name | None = None
    """Path in the folder; without it the file whose name without ending is the device's."""
    modality: Literal["audio", "video", "transcript"] | None = None
    role: Name | None = None
    """``slides`` or ``camera`` for a video device."""
    seat: Name | None = None
    speaker: Somebody = None
    """Who is heard on channel 0, where the channel map does not say."""
    start_s: Annotated[float, Field(ge=-86_400, le=86_400, allow_inf_nan=False)] = 0.0
    """The file's zero, in seconds after the room's."""
    microphones_m: Annotated[tuple[Position, ...], Field(max_length=8)] = ()
    """Where the microphones behind its channels stand, channel 0 first."""


class RoomCalibration(_Part):
    """Stored measurement of a device's clock: ``timeline = raw - offset - skew * (raw - ref)``."""

    device: Id
    offset_ns: Ns = 0
    skew_ppb: Annotated[float, Field(ge=-1e6, le=1e6)] = 0.0
    ref_ns: Ns = 0
    uncertainty_ns: LengthNs = 0
    method: Name = "stored"
    measured: datetime.date | None = None


def _named(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{"name": one} if isinstance(one, str) else one for one in value]


class RoomFile(_Part):
    """Contents of ``room.json``."""

    meeting_id: Id | None = None
    title: Name | None = None
    date: datetime.date | None = None
    start_time: datetime.datetime | None = None
    start_ns: Ns | None = None
    tai_utc_offset_s: Annotated[int, Field(ge=0, le=1000)] = TAI_UTC_S
    language: Name | None = None
    attendees: Annotated[tuple[RoomAttendee, ...], BeforeValidator(_named)] = ()
    seats: dict[str, Seat] = Field(default_factory=dict)
    devices: dict[Id, RoomDevice] = Field(default_factory=dict)
    channel_map: tuple[ChannelSpeaker, ...] = ()
    agenda: tuple[Name, ...] = ()
    key_topics: tuple[Name, ...] = ()
    speech_source: Literal["sound", "transcript"] | None = None
    calibration: tuple[RoomCalibration, ...] = ()

    @property
    def begins_ns(self) -> int | None:
        """Timeline time of the files' zero, where the room says it."""
        if self.start_ns is not None or self.start_time is None:
            return self.start_ns
        start = self.start_time
        start = start if start.tzinfo is not None else start.replace(tzinfo=datetime.UTC)
        since = start - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return micros * 1000 + self.tai_utc_offset_s * 10**9

    @property
    def meeting_date(self) -> datetime.date | None:
        """``date``, or the day of the start in the zone it was given in."""
        return self.date or (self.start_time.date() if self.start_time is not None else None)

    def speakers(self) -> tuple[ChannelSpeaker, ...]:
        """The channel map, completed by the devices that name their speaker or a seat somebody sits at."""
        sits = {one.seat: one.speaker or one.name for one in self.attendees if one.seat is not None}
        known = {(entry.device, entry.channel) for entry in self.channel_map}
        more = [
            ChannelSpeaker(device=device, channel=0, speaker=speaker)
            for device, info in self.devices.items()
            if (speaker := info.speaker or (sits.get(info.seat) if info.seat else None)) is not None
            and (device, 0) not in known
        ]
        return (*self.channel_map, *more)

    def places(self) -> tuple[SeatPlace, ...]:
        """Where the attendees' mouths are, as far as their seats are known."""
        return tuple(
            SeatPlace(speaker=one.speaker or one.name, position_m=seat.mouth_m)
            for one in self.attendees
            if one.seat is not None and (seat := self.seats.get(one.seat)) is not None
            if seat.mouth_m is not None
        )

    def microphones(self) -> tuple[MicrophonePlace, ...]:
        """Where microphones stand: what the devices say, else the microphone of the device's seat."""
        found: list[MicrophonePlace] = []
        for device, info in self.devices.items():
            places = info.microphones_m
            seat = self.seats.get(info.seat) if info.seat is not None and info.modality != "video" else None
            if not places and seat is not None and seat.microphone_m is not None:
                places = (seat.microphone_m,)
            found += [
                MicrophonePlace(device=device, channel=channel, position_m=place)
                for channel, place in enumerate(places)
            ]
        return tuple(found)


def read_room(folder: Path, note: Note) -> RoomFile:
    """Contents of the folder's ``room.json``; an empty one where there is none.

    Fields that no room has (a typing mistake) are told to ``note``.

    Raises:
        InputError: the file cannot be read, is no JSON, or a field has a wrong value.
    """
    path = folder / ROOM_FILE
    if not path.exists():
        return RoomFile()
    try:
        data = json.loads(read_small(path, _MOST_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(path, "no JSON: it is not UTF-8 text") from error
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(path, f"no JSON: it cannot be understood from {where} on") from error
    except RecursionError as error:
        raise InputError(path, "no room: its JSON is nested too deeply") from error
    if not isinstance(data, dict):
        raise InputError(path, "no room: must be a JSON object")
    unknown = sorted(str(name) for name in data if name not in RoomFile.model_fields and name != "schema")
    if unknown:
        note(f"{ROOM_FILE} has unknown fields, ignored: {', '.join(unknown)}")
    try:
        return RoomFile.model_validate(data)
    except ValidationError as error:
        raise InputError(path, refusal_line(error)) from error
