"""A purged meeting: gone from every step and from the files, its key a snapshot later, and it stays gone."""

from __future__ import annotations

from pathlib import Path

from contracts.audit import AuditProof
from contracts.messages import EndOfStream, MeetingEnded, MeetingPurged, MeetingStarted, TranscriptMessage
from contracts.minutes import Versions
from contracts.timeline import ControlRecord, EndedRecord, StreamRecord, UtteranceRecord
from contracts.topics import AUDIT, CONTROL, MINUTES, STATE, TRANSCRIPT, TopicNames
from operators.align.aligned import Purged
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.broker.sink import Outgoing
from operators.broker.source import Received
from operators.deliver.keys import KeyStore
from operators.deliver.step import Deliver, judge
from operators.draft import Drafting
from operators.ingest import Ingest, IngestSettings
from operators.store import MARKER_FORMAT, Stores
from operators.understand.engine import RuleEngine
from operators.verify.check import Verifier

S = 1_000_000_000
VERSIONS = Versions(product="0", model=None, rules="r", contract="c")
SECRET = "We decided that the vault opens with four one seven."


def records(meeting_id: str) -> list[ControlRecord | StreamRecord | UtteranceRecord | EndedRecord]:
    said = UtteranceRecord(
        meeting_id=meeting_id, id="u1", version=0, state="closed", stream="a/transcript", device="a", clock=0,
        raw_start_ns=S, raw_end_ns=3 * S, mark_ns=3 * S, speaker="Anna", text=SECRET, source="transcript",
        sampling_ms=0, boundary_ms=0,
    )  # fmt: skip
    started = MeetingStarted(meeting_id=meeting_id, start_ns=0)
    opened = StreamRecord(
        meeting_id=meeting_id, stream="a/transcript", state="opened", stream_epoch=1, sequence=-1, raw_ns=0
    )
    return [
        ControlRecord(meeting_id=meeting_id, control=started, source="s"), opened, said,
        EndedRecord(meeting_id=meeting_id, reason="control", end_ns=4 * S),
    ]  # fmt: skip


def purge_record(meeting_id: str, source: str = "p") -> ControlRecord:
    return ControlRecord(meeting_id=meeting_id, control=MeetingPurged(meeting_id=meeting_id), source=source)


class Half:
    """The minutes flow of one shard, with real stores and a snapshot where the test takes one."""

    def __init__(self, folder: Path, keys: KeyStore, resume: bool = False) -> None:
        self.stores = Stores(folder, "minutes", ("align", "understand", "deliver"))
        self.align, self.drafting = Align(AlignSettings()), Drafting(RuleEngine())
        self.deliver = Deliver(VERSIONS, keys)
        names = ("align", "understand", "deliver")
        self.kept = [self.stores.step(0, name) for name in names]
        for store in self.kept if resume else ():
            store.roll_back({"format": MARKER_FORMAT, "shard": 0, "sequence": store.sequence})
        self.align.open(self.kept[0])
        self.drafting.open(self.kept[1])
        self.deliver.open(self.kept[2])
        self.verifier = Verifier()

    def read(self, *log: ControlRecord | StreamRecord | UtteranceRecord | EndedRecord) -> list[Outgoing]:
        out: list[Outgoing] = []
        for store in self.kept:
            store.begin(proved=True)
        for record in log:
            for change in self.align.read(record):
                drafts = self.drafting.on_batch([change])
                out += self.deliver.on_batch([judge(self.verifier, drafted) for drafted in drafts])
        return out

    def snapshot(self) -> None:
        self.align.save(self.kept[0])
        self.drafting.save(self.kept[1])
        self.deliver.save(self.kept[2])
        for store in self.kept:
            store.marker()

    def kill(self) -> None:
        self.stores.close()


def files_with(folder: Path, text: str) -> list[str]:
    return [str(f) for f in folder.rglob("*") if f.is_file() and text.encode() in f.read_bytes()]


def test_the_key_goes_one_snapshot_after_the_purge(tmp_path: Path) -> None:
    """Killed in between, the flow writes the same last entries again."""
    keys = KeyStore(tmp_path / "keys")
    half = Half(tmp_path, keys)
    first = half.read(*records("m"), *records("n"))
    half.snapshot()
    purged = half.read(purge_record("m"))
    assert [m.kind for m in purged] == ["purged", "audit_sealed", "minutes_state"]
    assert purged[-1].value == b"" and purged[-1].topic is STATE
    assert keys.key_of("m") is not None
    half.kill()

    half = Half(tmp_path, keys, resume=True)
    assert half.read(purge_record("m")) == purged
    half.snapshot()
    assert keys.key_of("m") is not None
    half.kill()

    half = Half(tmp_path, keys, resume=True)
    assert half.read(purge_record("m", "again")) == []
    assert keys.key_of("m") is None and keys.key_of("n") is not None
    proof = AuditProof()
    for message in (*first, *purged):
        if message.topic is AUDIT:
            proof.add(message.value)
    (report,) = proof.reports("m")
    assert report.holds and report.closed
    half.snapshot()
    assert half.read(*records("m")) == []
    half.kill()


def test_nothing_that_was_said_is_left_in_the_files(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys")
    half = Half(tmp_path, keys)
    half.read(*records("m"))
    half.snapshot()
    half.kill()
    assert files_with(tmp_path / "minutes", "vault")
    half = Half(tmp_path, keys, resume=True)
    half.read(purge_record("m"))
    half.snapshot()
    half.read(purge_record("m", "again"))
    half.snapshot()
    half.read(purge_record("m", "once more"))
    half.kill()
    assert files_with(tmp_path / "minutes", "vault") == []


def test_a_flow_that_reads_everything_again_does_not_bring_it_back(tmp_path: Path) -> None:
    """Recovery lost, keys kept: of the purged meeting nothing is written, of others the same."""
    keys = KeyStore(tmp_path / "keys")
    half = Half(tmp_path / "before", keys)
    first = half.read(*records("m"), *records("n"))
    half.read(purge_record("m"))
    half.snapshot()
    half.read(purge_record("m", "again"))
    half.kill()
    again = Half(tmp_path / "after", keys)
    written = again.read(*records("m"), *records("n"), purge_record("m"))
    assert written == [m for m in first if m.key not in (b"m", b"m/minutes/")]
    assert any(m.topic is MINUTES for m in written)
    again.kill()


def test_align_tells_of_a_second_purge_and_reads_nothing_else() -> None:
    align = Align(AlignSettings())
    for record in records("m"):
        align.read(record)
    assert align.read(purge_record("m")) == [Purged("m")]
    assert [c for record in records("m") for c in align.read(record)] == []
    assert align.read(purge_record("m", "again")) == [Purged("m")]


def test_ingest_takes_nothing_more_of_a_purged_meeting(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("ingest",))
    store = stores.step(0, "ingest")
    ingest = Ingest(IngestSettings(), TopicNames(shards=1))
    ingest.open(store)

    def handed_on(step: Ingest, *messages: object) -> int:
        received = [
            Received(
                (TRANSCRIPT if isinstance(m, TranscriptMessage | EndOfStream) else CONTROL).name, 0, n, 0, True,
                m.to_bytes(),  # type: ignore[attr-defined]
            )
            for n, m in enumerate(messages)
        ]  # fmt: skip
        return len(step.on_batch(list(received)))

    said = [
        TranscriptMessage(
            meeting_id="m", device_id="a", stream_epoch=1, sequence=n, timestamp_ns=n * S, text="Hello."
        )
        for n in range(4)
    ]
    assert handed_on(ingest, said[0]) == 1
    assert handed_on(ingest, MeetingPurged(meeting_id="m")) == 1
    assert handed_on(ingest, said[1], MeetingEnded(meeting_id="m"), MeetingStarted(meeting_id="m")) == 0
    store.begin(proved=True)
    ingest.save(store)
    store.marker()
    resumed = Ingest(IngestSettings(), TopicNames(shards=1))
    resumed.open(store)
    assert handed_on(resumed, said[2]) == 0
    assert handed_on(resumed, MeetingPurged(meeting_id="m")) == 1
    stores.close()
