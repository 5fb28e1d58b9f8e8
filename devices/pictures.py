"""Pictures of slides as a video stream: a folder of them, or one.

When a slide came up: from times in the names (``slide_00-12-30.png``, ``90.5s.png``), from the moments in
screenshots' names, from the files' dates where these look like a meeting; else the slides share the time
evenly, which is said.
"""

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import av

from contracts.packet import Codec

from .streams import InputError, MediaPiece, Note
from .video import VideoSettings, jpeg_of, upright

PICTURE_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_PIXELS: Final = 8192 * 8192
_REPEAT_NS: Final = 2_000_000_000
_LAST_NS: Final = 10_000_000_000
"""How long the last slide stays where nothing else in the room goes on longer; also the even spacing then."""
_CLOCK: Final = re.compile(
    r"(?<!\d)(\d{1,2})[h:_.-](\d\d)[m:_.-](\d\d)(?:[.,](\d{1,3}))?s?(?!\d)", re.IGNORECASE
)
_SECONDS: Final = re.compile(
    r"(?<![\d.])(\d{1,6}(?:[.,]\d{1,3})?) ?(?:s|sec|seconds)(?![a-z])", re.IGNORECASE
)
_DAY: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)-?(\d\d)-?(\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class PictureSource:
    """Slides with the time each comes up; a slide that stays is sent again every two seconds."""

    paths: tuple[Path, ...]
    starts_ns: tuple[int, ...] | None
    """Times from zero, None: the slides share ``duration_ns`` evenly."""
    settings: VideoSettings
    duration_ns: int

    @classmethod
    def of(cls, path: Path, settings: VideoSettings, note: Note) -> "PictureSource":
        """Slides of a folder, or the one picture; raises ``InputError`` where there is none."""
        paths = pictures_in(path) if path.is_dir() else [path]
        if not paths:
            raise InputError(path, "no pictures in this folder")
        starts_ns = slide_times(paths)
        if starts_ns is None and len(paths) > 1:
            note("its slides carry no times; they are taken to have been shown for equally long")
        order = (
            range(len(paths)) if starts_ns is None else sorted(range(len(paths)), key=starts_ns.__getitem__)
        )
        return cls(
            tuple(paths[index] for index in order),
            None if starts_ns is None else tuple(starts_ns[index] for index in order),
            settings,
            (starts_ns is None and len(paths) * _LAST_NS) or max(starts_ns or [0]) + _LAST_NS,
        )

    def lasting(self, other_ns: int) -> "PictureSource":
        """The same slides in a room whose other streams last ``other_ns``."""
        if self.starts_ns is None:
            return replace(self, duration_ns=other_ns or self.duration_ns)
        return replace(self, duration_ns=max(self.starts_ns[-1] + _REPEAT_NS, other_ns))

    def pieces(self, note: Note) -> Iterator[MediaPiece]:
        """JPEG pictures by rising time; see ``Source``."""
        count = len(self.paths)
        starts = self.starts_ns or tuple(self.duration_ns * index // count for index in range(count))
        readable = 0
        for path, start_ns, end_ns in zip(self.paths, starts, [*starts[1:], self.duration_ns], strict=True):
            try:
                payload, width, height = self._picture(path)
            except InputError as error:
                if count == 1:
                    raise
                note(f"{path.name}: {error.what}")
                continue
            readable += 1
            for at_ns in range(start_ns, max(end_ns, start_ns + 1), _REPEAT_NS):
                length_ns = max(min(_REPEAT_NS, end_ns - at_ns), 1)
                yield MediaPiece(
                    at_ns, length_ns, Codec.JPEG, payload, 0, width, height, key_frame=True
                )  # fmt: skip
        if not readable:
            raise InputError(self.paths[0].parent, "none of its pictures can be read")

    def _picture(self, path: Path) -> tuple[bytes, int, int]:
        """JPEG file, width and height; the size is checked before the pixels are unpacked."""
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise InputError(path, f"a picture file above {MAX_FILE_BYTES >> 20} MiB")
            # As an open file: "slide%d.png" would be taken for a pattern, and other files be read for it.
            with path.open("rb") as file, av.open(file, "r") as container:
                stream = container.streams.video[0]
                width, height = stream.codec_context.width, stream.codec_context.height
                if width * height > MAX_PIXELS:
                    raise InputError(path, f"a picture of {width} x {height} is too large")
                frame = next(container.decode(stream))
                frame = upright(frame, int(frame.rotation))
        except (av.FFmpegError, OSError, IndexError, AttributeError, StopIteration, ValueError) as error:
            raise InputError(path, "damaged or no picture") from error
        size = self.settings.fitted(frame.width, frame.height)
        pixels = frame.to_ndarray(format="bgr24", width=size[0], height=size[1], interpolation="AREA")
        return jpeg_of(pixels, self.settings.jpeg_quality), *size


def is_picture_folder(path: Path) -> bool:
    """Whether a folder holds pictures and no other file that could be a device."""
    if not path.is_dir():
        return False
    files = [one for one in path.iterdir() if not one.name.startswith(".")]
    pictures = [one for one in files if one.suffix.lower() in PICTURE_SUFFIXES]
    others = [
        one
        for one in files
        if one not in pictures and one.suffix.lower() not in {".txt", ".md", ".db", ".ini"}
    ]
    return bool(pictures) and not others


def pictures_in(folder: Path) -> list[Path]:
    """Pictures of a folder by name, numbers counting as numbers."""
    files = (one for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
    return sorted((one for one in files if one.suffix.lower() in PICTURE_SUFFIXES), key=natural_order)


def natural_order(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Sorting key of a file name in which numbers count as numbers: slide2 before slide10."""
    parts = re.split(r"(\d+)", path.name.casefold())
    return tuple((1, int(part), "") if index % 2 else (0, 0, part) for index, part in enumerate(parts))


def slide_times(paths: Sequence[Path]) -> list[int] | None:
    """When each picture came up in ns from zero, as names or file dates tell; None where they do not."""
    names = [path.stem for path in paths]
    days = [_DAY.search(name) for name in names]
    clocks = [_CLOCK.search(_DAY.sub(" ", name)) for name in names]
    if all(days) and all(clocks):
        moments = [_moment(day, clock) for day, clock in zip(days, clocks, strict=True) if day and clock]
        return [moment - min(moments) for moment in moments]
    if all(clocks):
        return [_clock_ns(clock) for clock in clocks if clock]
    seconds = [_SECONDS.search(name) for name in names]
    if all(seconds):
        return [round(float(match[1].replace(",", ".")) * 10**9) for match in seconds if match]
    dates = [path.stat().st_mtime_ns for path in paths]
    # Copied or unpacked files share one moment; a slide show takes some seconds a slide and less than a day.
    if (
        len(paths) > 1
        and all(b - a >= 2 * 10**9 for a, b in pairwise(dates))
        and dates[-1] - dates[0] < 86_400 * 10**9
    ):
        return [date - dates[0] for date in dates]
    return None


def _clock_ns(clock: re.Match[str]) -> int:
    seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])
    return seconds * 10**9 + int((clock[4] or "0").ljust(9, "0"))


def _moment(day: re.Match[str], clock: re.Match[str]) -> int:
    try:
        days = datetime.date(int(day[1]), int(day[2]), int(day[3])).toordinal()
    except ValueError:
        days = 0
    return days * 86_400 * 10**9 + _clock_ns(clock)
