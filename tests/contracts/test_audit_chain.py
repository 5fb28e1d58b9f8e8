"""The audit chain: what was removed, changed, exchanged or moved is found, and what was written twice is not."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.audit import FIRST, AuditHead, AuditProof, ChainReport, SealedEntry, bound_bytes, entry_hash


def chain(count: int, meeting: str = "m", close: bool = False) -> list[SealedEntry]:
    previous, out = FIRST, list[SealedEntry]()
    for n in range(count):
        closing, sealed = close and n == count - 1, f"sealed {n}".encode()
        bound = bound_bytes(meeting, 0, n, closing, previous)
        previous = entry_hash(bound, sealed)
        out.append(
            SealedEntry(
                meeting_id=meeting, generation=0, sequence=n, previous=out[-1].sha256 if out else FIRST,
                closing=closing, ciphertext=base64.b64encode(sealed).decode(), sha256=previous,
            )
        )  # fmt: skip
    return out


def report(entries: list[SealedEntry], *heads: AuditHead) -> ChainReport:
    proof = AuditProof()
    for entry in entries:
        proof.add(entry.to_bytes())
    for head in heads:
        proof.add_head("m", 0, head)
    (found,) = proof.reports()
    return found


WHOLE = chain(8)
HEAD = AuditHead(entries=8, sha256=WHOLE[-1].sha256)


def test_a_whole_chain_holds_and_says_how_far_it_is_proven() -> None:
    assert report(WHOLE, HEAD) == ChainReport("m", 0, 8, 0, 8, False, ())
    early = AuditHead(entries=5, sha256=WHOLE[4].sha256)
    assert report(WHOLE, early).proven == 5
    assert report(WHOLE).proven == 0
    assert report(chain(3, close=True)).proven == 3


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 8), max_size=4))
def test_what_a_restarted_flow_writes_again_changes_nothing(replays: list[int]) -> None:
    written = list(WHOLE)
    for upto in replays:
        written += WHOLE[:upto]
    found = report(written, HEAD)
    assert found.holds and found.repeated == sum(replays)


@pytest.mark.parametrize("gone", range(8))
def test_a_missing_entry_is_found(gone: int) -> None:
    left = WHOLE[:gone] + WHOLE[gone + 1 :]
    assert report(left, HEAD).problems == (
        (f"entry {gone} is missing",)
        if gone < 7
        else ("entry 7 is missing: the minutes were published with 8 entries",)
    )


def test_a_cut_off_end_is_found_by_the_head_alone() -> None:
    assert report(WHOLE[:3]).holds
    assert "entries 3 to 7 are missing" in report(WHOLE[:3], HEAD).problems[0]
    assert "entries 0 to 7 are missing" in report([], HEAD).problems[0]


@pytest.mark.parametrize("changed", range(8))
@pytest.mark.parametrize("field", ["ciphertext", "previous", "sha256", "closing"])
def test_a_changed_entry_is_found(changed: int, field: str) -> None:
    other = {"ciphertext": "AAAA", "previous": "1" * 64, "sha256": "2" * 64, "closing": True}[field]
    spoilt = [*WHOLE]
    spoilt[changed] = WHOLE[changed].model_copy(update={field: other})
    assert not report(spoilt, HEAD).holds


def test_an_entry_written_anew_with_its_hash_does_not_fit_the_next_one() -> None:
    bound = bound_bytes("m", 0, 3, False, WHOLE[2].sha256)
    forged = WHOLE[3].model_copy(
        update={"ciphertext": base64.b64encode(b"x").decode(), "sha256": entry_hash(bound, b"x")}
    )
    assert report([*WHOLE[:3], forged, *WHOLE[4:]], HEAD).problems == (
        "entry 4 does not follow the entry before it",
    )
    assert report([*WHOLE, forged], HEAD).problems == ("entry 3 stands twice with different content",)


def test_a_chain_written_anew_from_some_entry_on_does_not_fit_the_head() -> None:
    other = [e.model_copy() for e in chain(8, "m")]
    previous = other[2].sha256
    for n in range(3, 8):
        bound, sealed = bound_bytes("m", 0, n, False, previous), b"forged"
        digest = entry_hash(bound, sealed)
        text = base64.b64encode(sealed).decode()
        other[n] = other[n].model_copy(update={"previous": previous, "ciphertext": text, "sha256": digest})
        previous = digest
    assert report(other).holds
    assert report(other, HEAD).problems == ("entry 7 is not the one that the minutes were published with",)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(8)))
def test_a_changed_order_is_found(order: list[int]) -> None:
    assert report([WHOLE[n] for n in order], HEAD).holds == (order == sorted(order))


def test_nothing_follows_a_closed_chain() -> None:
    assert not report([*chain(3, close=True), *chain(5)[3:]]).holds


def test_chains_of_different_meetings_do_not_mix_and_garbage_is_told() -> None:
    proof = AuditProof()
    for a, b in zip(chain(3), chain(3, "other"), strict=True):
        proof.add(a.to_bytes())
        proof.add(b.to_bytes())
    assert [r.holds for r in proof.reports()] == [True, True]
    moved = json.loads(chain(3, "other")[1].to_bytes()) | {"meeting_id": "m"}
    proof.add(json.dumps(moved).encode())
    assert [r.holds for r in proof.reports()] == [False, True]
    proof.add(b"\xff{", "somewhere")
    assert proof.unreadable[0].startswith("somewhere is no audit entry")
