"""Keys of meetings: one for good, wrapped, destroyed for good; entries open with the right one alone."""

import stat
from pathlib import Path

import pytest

from contracts.audit import AuditProof, SealedEntry
from contracts.minutes import AuditEntry, Versions
from operators.deliver.keys import KeyProblem, KeyStore, MeetingKey, OpenKeys, master_key
from operators.deliver.trail import AuditTrail, opened

MASTER = bytes(range(32))
VERSIONS = Versions(product="0", model=None, rules="r", contract="c")


def entry(sequence: int, text: str = "We open in May") -> AuditEntry:
    return AuditEntry(
        meeting_id="m", generation=0, sequence=sequence, stage="settled", item_id="i1", section="decisions",
        verdict="pass", checks={}, actions=(), origin="rules", versions=VERSIONS, text=text,
    )  # fmt: skip


@pytest.mark.parametrize("master", [None, MASTER])
def test_a_meeting_keeps_its_key_over_restarts(tmp_path: Path, master: bytes | None) -> None:
    first = KeyStore(tmp_path, master).key_of("Büro/会議")
    assert first is not None
    again = KeyStore(tmp_path, master)
    assert again.key_of("Büro/会議") == first
    assert again.key_of("other") != first
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    if master is not None:
        assert not any(first.secret in f.read_bytes() for f in tmp_path.iterdir())


@pytest.mark.parametrize(("made", "opened_with"), [(None, MASTER), (MASTER, None), (MASTER, bytes(32))])
def test_another_master_key_is_refused_at_once(
    tmp_path: Path, made: bytes | None, opened_with: bytes | None
) -> None:
    KeyStore(tmp_path, made)
    with pytest.raises(KeyProblem, match="master key"):
        KeyStore(tmp_path, opened_with)


def test_a_destroyed_key_stays_destroyed(tmp_path: Path) -> None:
    store = KeyStore(tmp_path, MASTER)
    assert store.key_of("m") is not None
    store.destroy("m")
    store.destroy("m")
    for one in (store, KeyStore(tmp_path, MASTER)):
        assert one.key_of("m") is None and one.destroyed("m") and not one.destroyed("n")
        assert one.key_of("n") is not None
    assert len(list(tmp_path.glob("*.key"))) == 1


def test_a_reader_makes_no_keys(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    assert store.find("m") is None
    key = store.key_of("m")
    assert store.find("m") == key
    with pytest.raises(KeyProblem, match="no key store"):
        KeyStore(tmp_path / "none", create=False)


def test_a_damaged_key_is_told(tmp_path: Path) -> None:
    KeyStore(tmp_path).key_of("m")
    (file,) = tmp_path.glob("*.key")
    file.write_text("{}")
    with pytest.raises(KeyProblem, match="damaged"):
        KeyStore(tmp_path).key_of("m")


def test_master_key_files(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(MASTER)
    (tmp_path / "hex").write_text(MASTER.hex() + "\n")
    (tmp_path / "short").write_text("abcd")
    assert master_key(tmp_path / "raw") == master_key(tmp_path / "hex") == MASTER
    assert master_key(None) is None
    for wrong in ("short", "missing"):
        with pytest.raises(KeyProblem):
            master_key(tmp_path / wrong)


def test_sealing_is_repeatable_and_bound_to_its_place() -> None:
    key = MeetingKey(bytes(range(64)))
    first, again = AuditTrail("m", 0, key=key), AuditTrail("m", 0, key=key)
    written = [first.append(entry(n)) for n in range(3)]
    assert written == [again.append(entry(n)) for n in range(3)]
    assert first.head == again.head
    sealed = [SealedEntry.model_validate_json(m.value) for m in written]
    assert [opened(s, key) for s in sealed] == [entry(n) for n in range(3)]
    assert b"May" not in b"".join(m.value for m in written)
    with pytest.raises(KeyProblem):
        opened(sealed[0], MeetingKey(bytes(64)))
    with pytest.raises(KeyProblem):
        opened(sealed[1].model_copy(update={"sequence": 2}), key)


def test_a_second_text_in_the_same_place_shares_nothing_with_the_first() -> None:
    """As after an upgrade between a kill and the replay: the same sequence, another plaintext."""
    key = MeetingKey(bytes(range(64)))
    one, other = (
        SealedEntry.model_validate_json(AuditTrail("m", 0, key=key).append(entry(0, text)).value).sealed
        for text in ("We open in May", "We open in Mai")
    )
    same = sum(a == b for a, b in zip(one, other, strict=True))
    assert same < len(one) // 8


def test_a_chain_holds_after_its_key_is_destroyed(tmp_path: Path) -> None:
    store, proof = KeyStore(tmp_path), AuditProof()
    key = store.key_of("m")
    trail = AuditTrail("m", 0, key=key)
    for n in range(3):
        proof.add(trail.append(entry(n), closing=n == 2).value)
    store.destroy("m")
    (report,) = proof.reports()
    assert report.holds and report.closed and report.proven == 3


def test_the_key_of_files_is_the_same_everywhere() -> None:
    assert OpenKeys().key_of("m") == OpenKeys().key_of("m") != OpenKeys().key_of("n")
