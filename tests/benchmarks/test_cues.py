"""The file of rule figures: what a pipeline holds against the last one must be the same whenever it is written."""

import gzip
import time
from pathlib import Path

import pytest

from benchmarks.cues import packed


def test_the_same_text_makes_the_same_file_at_another_time_and_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("one.gz", "other.gz")):
        monkeypatch.setattr(time, "time", lambda number=number: 1e9 + 1e5 * number)
        with packed(tmp_path / name) as out:
            out.write("a line\n")
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == b"a line\n"
