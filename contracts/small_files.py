"""Small files: read to a limit, so that a device or a wrong name costs a line and not the memory."""

import errno
import os
from pathlib import Path


def read_small(path: Path, most_bytes: int, *, pipes: bool = False) -> bytes:
    """Content of a file of at most so many bytes.

    Args:
        pipes: somebody has named it, and may hand it over by a pipe; what lies in a folder must be a file, since
            nobody may ever write into a pipe that lies there.

    Raises:
        OSError: it cannot be read, is larger, or is no file.
    """
    if not pipes and path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "It is not a file", os.fspath(path))
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"It has more than {most_bytes:,} bytes", os.fspath(path))
    return content
