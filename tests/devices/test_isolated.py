"""Media files are read in processes of their own: what a crash, a hang or a swelling decoder costs."""

import os
import struct
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import soundfile

from contracts.packet import Modality, Packet
from devices import isolated
from devices.inputs import open_inputs
from devices.isolated import IsolatedSource, ReadLimits, isolated_probe
from devices.media import SoundSource, probe
from devices.streams import InputError, Problem, Stream
from tests.devices.hostile_sources import HostileSource

FILE = Path("meeting.wav")
LIMITS = ReadLimits(memory_mb=200, silent_s=1.5)


def told(source: HostileSource) -> tuple[int, list[str]]:
    """Blocks that came of a stream with this source, and what was said about it."""
    problems: list[Problem] = []
    stream = Stream("m", "mic", Modality.AUDIO, IsolatedSource(source, FILE, LIMITS), FILE, problems=problems)
    blocks = sum(isinstance(message, Packet) for message in stream.packets())
    return blocks, [problem.in_minutes for problem in problems if "misbehave" not in problem.what]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("crash", "damaged: its decoder broke down over it"),
        ("hang", "reading it hangs: nothing came for 2 s"),
        ("swell", "reading it needs more memory than a file may take"),
        ("give up", "damaged: a decoder gave up on it"),
    ],
)
def test_trouble_costs_the_file_and_nothing_else(trouble: str, said: str) -> None:
    source = HostileSource(trouble)  # type: ignore[arg-type]
    begun = time.monotonic()
    blocks, problems = told(source)
    assert problems in ([f"meeting.wav: cannot be read beyond 0.0 s: {said}"], [f"meeting.wav: {said}"])
    assert blocks <= 1
    assert time.monotonic() - begun < 20
    assert told(HostileSource("none", good=3)) == (3, [])


def test_what_is_read_is_the_same_as_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "mic.flac"
    soundfile.write(path, np.random.default_rng(1).normal(0, 0.1, (30_000, 2)), 22_050)
    info = probe(path)
    assert isolated_probe(path) == info
    assert info.sound is not None
    source, notes = SoundSource(path, info.sound), list[str]()
    assert list(IsolatedSource(source, path).pieces(notes.append)) == list(source.pieces(notes.append))
    assert notes == []


def test_a_reader_that_nobody_listens_to_any_more_ends() -> None:
    pieces = IsolatedSource(HostileSource("none", good=100_000), FILE).pieces(lambda _: None)
    for _ in range(3):
        next(pieces)
    server = isolated._READERS._process
    assert server is not None
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    assert children.read_text().split()
    pieces.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 10
    while children.read_text().split():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_reading_process_is_started_again_after_it_was_killed() -> None:
    assert told(HostileSource("none")) == (1, [])
    server = isolated._READERS._process
    assert server is not None
    os.kill(server.pid, 9)
    server.wait()
    assert told(HostileSource("none")) == (1, [])


def test_a_picture_bomb_among_good_files_is_named(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    side = 60_000
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(side // 8 + 1)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    (tmp_path / "deck").mkdir()
    (tmp_path / "deck" / "1s.png").write_bytes(bomb)
    soundfile.write(tmp_path / "mic.wav", np.zeros(16_000), 16_000)
    room = open_inputs([tmp_path])
    messages = [sum(isinstance(m, Packet) for m in stream.packets()) for stream in room.streams]
    assert sorted(messages) == [0, 50]
    assert [problem.in_minutes for problem in room.problems] == ["deck: damaged or no picture"]


def test_a_file_that_breaks_the_reader_at_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(b"RIFF")
    with pytest.raises(InputError, match=r"x\.wav: damaged, cut short or empty"):
        isolated_probe(path)
    for program in ("/bin/false", "/nowhere/python"):
        monkeypatch.setattr("sys.executable", program)
        monkeypatch.setattr(isolated, "_READERS", isolated._Readers())
        with pytest.raises(InputError, match=r"x\.wav: (damaged|the process that reads files)"):
            isolated_probe(path)
