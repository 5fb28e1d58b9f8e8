"""What meetings and devices are called that have only the names of their files."""

import datetime
import os
import re
import unicodedata
from pathlib import Path
from typing import Final

from contracts.packet import MAX_ID_BYTES

from .streams import readable

_DAY_IN_NAME: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


def name_of(path: Path) -> str:
    """What a meeting is called that has only its file or folder; links are called as they are named."""
    path = Path(os.path.abspath(path))
    return readable(path.name if path.is_dir() else path.stem)


def day_in_name(name: str) -> datetime.date | None:
    """The date that a recorder put into a file's name: ``GMT20240506-140012``, ``2024-05-06 14-00-12``."""
    for match in _DAY_IN_NAME.finditer(name):
        try:
            return datetime.date(int(match[1]), int(match[3]), int(match[4]))
        except ValueError:
            continue
    return None


def meeting_id_of(name: str) -> str:
    """Meeting id made of a file's or folder's name: lower case, joined by ``-``, NFC, at most 64 bytes."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name).lower())
    return shortened("-".join(words), MAX_ID_BYTES) or "meeting"


def device_id_of(name: str) -> str:
    """Device id made of a file's name: NFC, no slashes or control characters, at most 64 bytes."""
    text = "".join(c if unicodedata.category(c)[0] != "C" and c != "/" else "-" for c in name)
    return shortened(unicodedata.normalize("NFC", text).strip(), MAX_ID_BYTES) or "device"


def shortened(text: str, size: int) -> str:
    """The text cut to at most ``size`` bytes of UTF-8, between characters."""
    cut = text.encode("utf-8")[:size].decode("utf-8", "ignore")
    return unicodedata.normalize("NFC", cut).strip("- ") if cut != text else text
