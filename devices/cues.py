"""VTT and SRT as they are found: cue times, raw cue text, and the encodings they come in.

An own reader: ``webvtt-py`` and ``pysrt`` raise on what real exports are full of (missing hours, cues out
of order, a broken line among good ones, SRT headers in VTT) and would have to be fed repaired text.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from charset_normalizer import from_bytes

from .streams import InputError, Note, WordPiece

_TIME = r"(?:(\d{1,4})\s*:\s*)?(\d{1,2})\s*:\s*(\d{1,2})(?:\s*[.,:]\s*(\d{1,9}))?"
_ARROW: Final = re.compile(rf"^\s*{_TIME}\s*(?:[-–—]{{1,3}}>|→)\s*{_TIME}(?:\s|$)")
"""Word processors make one dash or one arrow of ``-->``."""
_LIKE_ARROW: Final = re.compile(r"^\s*[\d:., ]*\d\s*(?:[-–—]{1,3}>|→)\s*\d")
_NAMED_ID: Final = re.compile(r'^\s*\d+\s+"([^"<>]{1,100})"\s*(?:\(\d*\)\s*)?$')
"""Cue ids as Webex writes them: number, speaker in quotes, account."""
_INLINE_TIME: Final = re.compile(rf"<{_TIME}>")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,500}>|</?>|\{\\[^{}]{0,200}\}")
_BLOCK: Final = re.compile(r"^(NOTE|STYLE|REGION)(?:\s|:|$)")
_SPACES: Final = re.compile(r"[\s\u00a0\u200b\u200e\u200f\u2060\ufeff]+")
_GUESSED_BYTES: Final = 1 << 16
MAX_BYTES: Final = 64 * 1024 * 1024
"""A day of talk with times for each word has a quarter of it."""


@dataclass(frozen=True, slots=True)
class Cue:
    """One cue as it stands in the file: times in ns, lines with their tags."""

    start_ns: int
    end_ns: int
    lines: tuple[str, ...]


def read_text(path: Path, note: Note) -> str:
    """Text of a file in UTF-8, UTF-16, UTF-32 or Windows-1252, with or without a byte-order mark.

    Letters of other scripts than Latin are read by a guess, which is noted.

    Raises:
        InputError: not found, unreadable, too large, empty, or plainly no text.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(path, f"larger than {MAX_BYTES >> 20} MiB, no transcript")
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(path, "file not found") from error
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    text = _decoded(data, note)
    if not text.strip("\ufeff \t\r\n\0"):
        raise InputError(path, "empty file")
    if text.count("\0") > len(text) // 100:
        raise InputError(path, "no text: it holds binary data")
    return text.replace("\0", "\ufffd")


def _decoded(data: bytes, note: Note) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"),
                       (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):  # fmt: skip
        if data.startswith(mark):
            return data.decode(name, "replace").removeprefix("\ufeff")
    head = data[:4096]
    if len(head) > 3 and head.count(0) > len(head) // 4:
        # No mark: plain letters have their zero byte second in little, first in big endian order.
        little = head[1::2].count(0) > head[0::2].count(0)
        return data.decode("utf-16-le" if little else "utf-16-be", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        repaired = data.decode("utf-8", "replace")
        broken = repaired.count("\ufffd")
        good = sum(character > "\x7f" for character in repaired) - broken
        # A few broken bytes among many good sequences are damage; otherwise the file is not UTF-8 at all.
        return repaired if good > 10 * broken else _of_one_byte(data, note)


def _of_one_byte(data: bytes, note: Note) -> str:
    """Text in an encoding that no mark names: Windows-1252, unless it makes sense in another script alone."""
    western = data.decode("cp1252", "replace")
    match = from_bytes(data[:_GUESSED_BYTES]).best()
    if match is None:
        return western
    guessed = data.decode(match.encoding, "replace")
    letters = [c for c in guessed[:_GUESSED_BYTES] if c.isalpha() and c > "\x7f"]
    foreign = sum(not unicodedata.name(c, "LATIN").startswith("LATIN") for c in letters)
    # Encodings of Latin letters look alike in a few words: the most common one is then the best guess.
    if foreign * 2 <= len(letters):
        return western
    note(f"not UTF-8; read as {match.encoding.replace('_', '-')}, which is a guess")
    return guessed


def read_cues(path: Path, text: str, note: Note) -> list[Cue]:
    """Cues of a VTT or SRT file by start, those of the same start in file order.

    Everything that is no cue (headers, ids, NOTE, STYLE and REGION blocks) is passed over; cues without
    text are dropped, exact repetitions too, an end before its start is mended; a cue that starts at a time that no
    clock shows follows the one before it.

    Raises:
        InputError: there is not one cue with text.
    """
    cues: list[Cue] = []
    seen: set[tuple[int, int, tuple[str, ...]]] = set()
    mended = timed = placed = last_ns = 0
    for start_ns, end_ns, lines in _blocks(text):
        timed += 1
        kept = tuple(line for line in lines if plain(line))
        if start_ns is None:
            start_ns, end_ns, placed = last_ns, last_ns, placed + 1
        if end_ns is None or end_ns <= start_ns:
            mended += end_ns is None or end_ns < start_ns
            end_ns = start_ns + _reading_time_ns(kept)
        last_ns = end_ns
        if not kept or (start_ns, end_ns, kept) in seen:
            continue
        seen.add((start_ns, end_ns, kept))
        cues.append(Cue(start_ns, end_ns, kept))
    if not cues:
        what = "empty transcript: none of its cues has text" if timed else "no transcript: no line has times"
        if not timed and text.lstrip("\ufeff \r\n").startswith("WEBVTT"):
            what = "empty transcript: it has no cues"
        raise InputError(path, what)
    if lost := sum(_LIKE_ARROW.match(line) is not None for line in text.splitlines()) - timed:
        note(f"{lost} line{'s' if lost > 1 else ''} with times that cannot be read passed over")
    if mended:
        cue = "1 cue" if mended == 1 else f"{mended} cues"
        note(f"{cue} ended before the start; the end is estimated")
    if placed:
        cue = "1 cue starts" if placed == 1 else f"{placed} cues start"
        note(f"{cue} at a time that no clock shows; placed after the cue before")
    cues.sort(key=lambda cue: cue.start_ns)
    return cues


def _blocks(text: str) -> Iterator[tuple[int | None, int | None, list[str]]]:
    """Start, end and text lines of each cue, in file order; None for times that no clock shows."""
    lines = re.split(r"\r\n|\r|\n|\u2028|\u2029|\x0b|\x0c|\x85", text)
    times: tuple[int | None, int | None] | None = None
    body: list[str] = []
    skipping = after_blank = False
    above = speaker = ""
    for line in [*lines, ""]:
        match = _ARROW.match(line) if ">" in line or "→" in line else None
        if match is not None:
            if times is not None:
                yield (*times, _voiced(_without_id(body, after_blank), speaker))
            named = None if after_blank else _NAMED_ID.match(above)
            times, body, skipping, speaker = _times(match), [], False, named[1] if named else ""
        elif not line.strip():
            # A blank line inside a cue (rolling captions, SRT by hand) ends it only for what follows it.
            after_blank = True
            continue
        elif times is None or (after_blank and _BLOCK.match(line)):
            skipping = skipping or _BLOCK.match(line) is not None
            if times is not None:
                yield (*times, _voiced(body, speaker))
                times, body = None, []
        elif not skipping:
            body.append(("\n" if after_blank else "") + line.strip())
        after_blank, above = False, line
    if times is not None:
        yield (*times, _voiced(body, speaker))


def _without_id(body: list[str], after_blank: bool) -> list[str]:
    """A cue's lines without the next cue's id: a line alone above its times, or a number just above them."""
    if body and not after_blank and (body[-1].startswith("\n") or (len(body) > 1 and body[-1].isdigit())):
        return body[:-1]
    return body


def _voiced(body: list[str], speaker: str) -> list[str]:
    """A cue's lines as said by whom its id names, where it does."""
    return [f"<v {speaker}>{line}" for line in body] if speaker else body


def _times(match: re.Match[str]) -> tuple[int | None, int | None]:
    groups = match.groups()
    return _ns(groups[:4]), _ns(groups[4:])


def _ns(parts: tuple[str | None, ...]) -> int | None:
    """Nanoseconds; None for a time that no clock shows (*99:99:99.999*). Without hours there may be 60 minutes or more."""
    hours, minutes, seconds, fraction = parts
    if int(seconds or 0) >= 60 or (hours is not None and int(minutes or 0) >= 60):
        return None
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return whole * 10**9 + int((fraction or "0").ljust(9, "0"))


def _reading_time_ns(lines: tuple[str, ...]) -> int:
    """Length of speech with this text: about 15 characters a second, half a second at least."""
    return max(500_000_000, sum(len(plain(line)) for line in lines) * 10**9 // 15)


def plain(line: str) -> str:
    """A line's text: tags and inline times off, entities resolved, spaces folded."""
    if "<" in line or "{" in line:
        line = _TAG.sub("", _INLINE_TIME.sub("", line))
    return _SPACES.sub(" ", html.unescape(line) if "&" in line else line).strip()


def without_tags(line: str) -> str:
    """A line with its inline times but no other tags, so that a speaker's mark stands at its start."""
    return _TAG.sub("", line).replace("&gt;", ">") if "<" in line or "&" in line or "{" in line else line


def timed_words(line: str, start_ns: int, end_ns: int) -> tuple[WordPiece, ...]:
    """Words of a line with inline times (``one<00:00:01.200><c> two</c>``); empty where it has none."""
    if "<" not in line:
        return ()
    read = ((m.end(), _ns(m.groups())) for m in _INLINE_TIME.finditer(line))
    marks = [(0, start_ns), *((end, at_ns) for end, at_ns in read if at_ns is not None)]
    if len(marks) == 1:
        return ()
    words: list[WordPiece] = []
    for (begin, from_ns), following in zip(marks, [*marks[1:], (len(line), end_ns)], strict=True):
        found = plain(line[begin : following[0]]).split()
        until_ns = max(following[1], from_ns)
        for place, word in enumerate(found):
            words.append(
                WordPiece(
                    from_ns + (until_ns - from_ns) * place // len(found),
                    from_ns + (until_ns - from_ns) * (place + 1) // len(found),
                    word,
                )
            )
    return tuple(words)
