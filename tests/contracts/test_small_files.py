"""Small files: neither a device that never ends nor a pipe that nobody writes into holds a command up."""

import os
import threading
from pathlib import Path

import pytest

from contracts.small_files import read_small


def test_a_file_is_read_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"1234")
    assert read_small(path, 4) == b"1234"
    with pytest.raises(OSError, match="It has more than 3 bytes"):
        read_small(path, 3)
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "none", 3)


def test_what_is_no_file_is_refused_where_it_only_lies(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="It is not a file"):
            read_small(path, 4)
    with pytest.raises(OSError, match="It has more than 4 bytes"):
        read_small(Path("/dev/zero"), 4, pipes=True)


def test_a_pipe_that_somebody_names_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"key"), daemon=True).start()
    assert read_small(tmp_path / "pipe", 4, pipes=True) == b"key"
