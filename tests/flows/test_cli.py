"""The ``minuted`` command on wrong input: exit code 2 and one line that says what and where."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows import cli, command_settings
from flows.brokers import free_port
from tests.flows.live_chain import meeting_folder


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of something that was refused."""
        assert self.code == 2, self
        assert self.out == ""
        assert self.err.startswith("minuted: ")
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


Minuted = Callable[..., Ended]


@pytest.fixture
def minuted(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Minuted:
    """Runs the command in this process, with a short patience for brokers."""
    for name in [name for name in os.environ if name.startswith("MINUTED_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(cli, "PATIENCE_S", 0.5)

    def run(*arguments: str | Path) -> Ended:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 1, said.out, said.err)

    return run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def written(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# minuted run


def test_run_writes_the_minutes_and_the_log_gives_them_again(
    minuted: Minuted, tmp_path: Path, out: Path
) -> None:
    done = minuted("run", meeting_folder(tmp_path / "room", "m"), "--out", out)
    assert (done.code, done.err) == (0, "")
    assert done.out.strip().endswith(str(out / "minutes.md"))
    assert {p.name for p in out.iterdir()} == {
        "minutes.json",
        "minutes.md",
        "transcript.vtt",
        "timeline.jsonl",
        "audit.jsonl",
    }
    again = minuted("run", out / "timeline.jsonl", "--out", tmp_path / "again", "--json")
    assert again.out.encode() == (out / "minutes.json").read_bytes()
    for name in ("minutes.json", "minutes.md", "transcript.vtt", "timeline.jsonl", "audit.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_run_twice_gives_the_same_bytes(minuted: Minuted, tmp_path: Path, out: Path) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    minuted("run", room, "--out", out)
    first = {p.name: p.read_bytes() for p in out.iterdir()}
    minuted("run", room, "--out", out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == first


def test_no_such_file(minuted: Minuted, out: Path) -> None:
    assert minuted("run", "no such.wav", "--out", out).line == "minuted: no such.wav: file not found"
    assert not out.exists()


@pytest.mark.parametrize("name", ["empty.wav", "empty.mp4", "empty.jsonl", "empty.vtt"])
def test_an_empty_file(minuted: Minuted, tmp_path: Path, out: Path, name: str) -> None:
    file = written(tmp_path / name)
    assert file.name in minuted("run", file, "--out", out).line


@pytest.mark.parametrize(
    "name", ["noise.wav", "noise.mp4", "noise.m4a", "noise.jsonl", "noise.srt", "noise.xyz"]
)
def test_a_damaged_file(minuted: Minuted, tmp_path: Path, out: Path, name: str) -> None:
    file = written(tmp_path / name, bytes(range(256)) * 40)
    assert file.name in minuted("run", file, "--out", out).line


def test_an_empty_folder(minuted: Minuted, tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    assert folder.name in minuted("run", folder, "--out", out).line


def test_a_folder_without_room_json_is_a_room_all_the_same(
    minuted: Minuted, tmp_path: Path, out: Path
) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    (room / "room.json").unlink()
    assert minuted("run", room, "--out", out).code == 0
    assert json.loads((out / "minutes.json").read_text())["utterances"]


def test_a_room_json_that_is_none(minuted: Minuted, tmp_path: Path, out: Path) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    (room / "room.json").write_text("{")
    assert "room.json" in minuted("run", room, "--out", out).line


def test_an_out_folder_that_cannot_be_written(minuted: Minuted, tmp_path: Path) -> None:
    file = written(tmp_path / "file")
    room = meeting_folder(tmp_path / "room", "m")
    line = minuted("run", room, "--out", file / "out").line
    assert line == f"minuted: --out {file / 'out'}: cannot be written (Not a directory)"
    assert (
        minuted("run", room, "--out", file).line == f"minuted: --out {file}: cannot be written (File exists)"
    )


def test_a_log_that_was_cut_off_or_damaged(minuted: Minuted, tmp_path: Path, out: Path) -> None:
    minuted("run", meeting_folder(tmp_path / "room", "m"), "--out", out)
    lines = (out / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    cut = written(tmp_path / "cut.jsonl", b"".join(lines[:-1]))
    assert (
        minuted("run", cut, "--out", tmp_path / "x").line
        == f"minuted: {cut}: the log has no end of the meeting; it was cut off"
    )
    damaged = written(tmp_path / "damaged.jsonl", b"".join([*lines[:3], b"{}\n", *lines[3:]]))
    assert (
        minuted("run", damaged, "--out", tmp_path / "x").line
        == f"minuted: {damaged}: line 4 is no record of a meeting's log"
    )


# Options


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--date", "tomorrow"), "--date tomorrow: not a day of the form YYYY-MM-DD"),
        (("--date", "2026-02-30"), "--date 2026-02-30: not a day of the form YYYY-MM-DD"),
        (("--speed", "0"), "--speed 0: use realtime, max or a number above 0"),
        (("--speed", "nan"), "--speed nan: use realtime, max or a number above 0"),
        (("--sped", "1"), "No such option: --sped"),
    ],
)
def test_options(minuted: Minuted, tmp_path: Path, out: Path, arguments: Sequence[str], said: str) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    assert minuted("run", room, "--out", out, *arguments).line.startswith(f"minuted: {said}")


@pytest.mark.parametrize(
    "arguments", [("run",), ("frobnicate",), ("run", "x.wav"), ("broker", "up", "--port", "x")]
)
def test_usage_is_one_line_too(minuted: Minuted, arguments: Sequence[str]) -> None:
    assert "--help" in minuted(*arguments).line


def test_help_is_help(minuted: Minuted) -> None:
    assert minuted("--help").code == 0
    assert "publish" in minuted("--help").out


def test_a_meeting_id_that_is_none(minuted: Minuted, tmp_path: Path) -> None:
    room = meeting_folder(tmp_path / "room", "m")
    line = minuted("publish", room, "--meeting", "x" * 65).line
    assert line == "minuted: --meeting: use 1 to 64 bytes of NFC text without control characters, and not *"
    assert minuted("publish", room, "--meeting", "*").line == line


def test_settings_are_checked_here_too(
    minuted: Minuted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINUTED_SHARDS", "0")
    assert minuted("topics", "create").line.startswith("minuted: MINUTED_SHARDS is '0': ")


# Brokers


def test_a_broker_nobody_answers_at(minuted: Minuted, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    room = meeting_folder(tmp_path / "room", "m")
    for command in (("topics", "create"), ("watch",), ("publish", room)):
        line = minuted(*command, "--brokers", address).line
        assert line == f"minuted: no broker answers at {address} (waited 0.5 s)" or "(waited 0 s)" in line


def test_patience_is_half_a_minute() -> None:
    assert command_settings.PATIENCE_S == 30.0


def test_an_address_that_is_none(minuted: Minuted) -> None:
    assert "use host:port" in minuted("watch", "--brokers", "nonsense").line
