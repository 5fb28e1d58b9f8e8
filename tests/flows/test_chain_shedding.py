"""More sound than one recogniser can hear, through the real chain, with a kill while a meeting is left out."""

import json
from functools import partial
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import soundfile

from contracts.timeline import GapRecord, MarkRecord, NoticeRecord, StreamRecord, UtteranceRecord
from devices.inputs import open_inputs
from devices.publisher import Publisher, tai_now_ns
from flows.installation import ROOT, Installation
from tests.flows.live_chain import Chain

pytestmark = pytest.mark.slow

SECONDS, SPEED = 300, 20.0
"""Two meetings that are sent for a quarter of a minute: 40 s of sound a second, several times what a worker hears."""
PATIENCE_S = 300.0
SETTINGS = {
    "MINUTED_PARTIALS": "false", "MINUTED_MODEL": "rules", "MINUTED_RECOGNITION_WORKERS": "1", "MINUTED_SHED_AFTER_S": "1",
}  # fmt: skip


def sound_folder(folder: Path, meeting_id: str) -> Path:
    """Talk at one microphone."""
    folder.mkdir(parents=True)
    samples, rate_hz = soundfile.read(ROOT / "devices" / "sample" / "mic-1.flac", dtype="int16")
    soundfile.write(folder / "mic.wav", np.resize(samples, SECONDS * rate_hz), rate_hz)
    (folder / "room.json").write_text(
        json.dumps({"title": "Talk", "meeting_id": meeting_id}), encoding="utf-8"
    )
    return folder


def _publish(chain: Chain, folder: Path, name: str) -> None:
    """Faster than it was made, as of ten minutes ago: what its time is still to come for is not late."""
    room = open_inputs([folder], meeting_id=name)
    start_ns = tai_now_ns() - 600 * 10**9
    Publisher(chain.link.bootstrap, chain.link.names).publish(room, speed=SPEED, start_ns=start_ns)


def _begun(chain: Chain, name: str) -> bool:
    return bool(chain.log(name))


def _left_out(chain: Chain, name: str) -> bool:
    return any(isinstance(r, StreamRecord) and r.state == "shed" for r in chain.log(name))


def test_who_began_last_is_left_out_and_a_kill_meanwhile_closes_what_is_open(tmp_path: Path) -> None:
    with Installation(tmp_path / "installation", settings=SETTINGS) as installation:
        chain = Chain(installation)
        publishing = []
        for name in ("first", "later"):
            thread = Thread(target=_publish, args=(chain, sound_folder(tmp_path / name, name), name))
            thread.start()
            publishing.append(thread)
            chain.wait(partial(_begun, chain, name), f"the log of {name}")
        chain.wait(partial(_left_out, chain, "later"), "the later meeting to be left out")
        flow = installation.flows["perceive"]
        flow.kill()
        said = flow.log.read_text(encoding="utf-8")
        for thread in publishing:
            thread.join()
        # All that is there now came before the flow begins again: it is heard, however long that takes.
        flow.start()
        flow.wait_ready()
        for name in ("first", "later"):
            chain.wait(partial(chain.ended, name), f"the end of {name}", PATIENCE_S)
        minutes = chain.minutes("later")
        log = chain.log("later")
        chain.close()
    assert "sound and pictures of meeting later, which began last, are left out" in said
    assert said.index("meeting later, which began last") < (said + "meeting first, which").index(
        "meeting first, which"
    )
    names = [r.identity for r in log if not isinstance(r, MarkRecord)]
    assert sorted(names) == sorted(set(names))
    states = [r.state for r in log if isinstance(r, StreamRecord)]
    assert states == ["opened", "shed", "resumed", "ended"]
    assert [r.code for r in log if isinstance(r, NoticeRecord) and r.code == "shed"] == ["shed"]
    assert any("left out for a while" in notice for notice in minutes.notices)
    shed, resumed = (r.raw_ns for r in log if isinstance(r, StreamRecord) and r.state in ("shed", "resumed"))
    gaps = [r for r in log if isinstance(r, GapRecord) and r.what == "shed"]
    assert [(gap.raw_start_ns, gap.raw_end_ns) for gap in gaps] in ([], [(shed, resumed)])
    closed = [r for r in log if isinstance(r, UtteranceRecord) and r.state == "closed"]
    assert any(r.raw_start_ns >= resumed for r in closed)
