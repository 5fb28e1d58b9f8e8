"""The store rolls back to any marker, whatever was written after it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from operators.store import MARKER_FORMAT, Marker, StateError, Stores


def contents(stores: Stores) -> dict[bytes, bytes]:
    return dict(stores.step(3, "speech").scan())


def test_values_survive_reopening(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("speech", "clock"))
    store = stores.step(3, "speech")
    store.begin(proved=True)
    store.put(b"a", b"1")
    marker = store.marker()
    stores.close()

    stores = Stores(tmp_path, "perceive", ("speech", "clock"))
    store = stores.step(3, "speech")
    store.roll_back(marker)
    assert store.get(b"a") == b"1"
    assert stores.step(3, "clock").get(b"a") is None
    stores.close()


def test_what_follows_the_marker_is_undone(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("speech",))
    store = stores.step(3, "speech")
    store.begin(proved=True)
    store.put(b"kept", b"old")
    store.put(b"gone", b"here")
    marker = store.marker()
    store.begin(proved=True)
    store.put(b"kept", b"new")
    store.put(b"kept", b"newer")
    store.delete(b"gone")
    store.put(b"fresh", b"x")

    stores.close()  # the process dies here; nothing more was snapshotted
    stores = Stores(tmp_path, "perceive", ("speech",))
    stores.step(3, "speech").roll_back(marker)
    assert contents(stores) == {b"kept": b"old", b"gone": b"here"}
    stores.close()


def test_a_timer_between_a_snapshot_and_its_commit_keeps_the_way_back(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("speech",))
    store = stores.step(3, "speech")
    store.begin(proved=True)
    store.put(b"count", b"1")
    committed = store.marker()
    store.begin(proved=True)
    store.put(b"count", b"2")
    store.marker()  # not committed yet …
    store.begin(proved=False)  # … when a timer fires, and the process dies
    store.put(b"count", b"3")
    stores.close()
    stores = Stores(tmp_path, "perceive", ("speech",))
    stores.step(3, "speech").roll_back(committed)
    assert contents(stores) == {b"count": b"1"}
    stores.close()


def test_a_start_without_a_marker_begins_with_nothing(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("speech",))
    store = stores.step(3, "speech")
    store.begin(proved=True)
    store.put(b"a", b"1")
    store.roll_back(None)
    assert contents(stores) == {}
    assert store.sequence == 0
    stores.close()


def test_a_store_that_is_behind_the_snapshot_is_refused(tmp_path: Path) -> None:
    stores = Stores(tmp_path, "perceive", ("speech",))
    with pytest.raises(StateError, match="not the one that belongs"):
        stores.step(3, "speech").roll_back(Marker(format=MARKER_FORMAT, shard=3, sequence=9))
    with pytest.raises(StateError, match="format 7"):
        stores.step(3, "speech").roll_back(Marker(format=7, shard=3, sequence=0))
    stores.close()


def test_a_directory_held_by_somebody_else_is_refused(tmp_path: Path) -> None:
    first, second = (Stores(tmp_path, "perceive", ("speech",)) for _ in range(2))
    first.step(3, "speech")
    with pytest.raises(StateError, match="cannot open state"):
        second.step(3, "speech")
    first.close()


CHANGES = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.one_of(st.none(), st.binary(max_size=3))), max_size=8
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(epochs=st.lists(CHANGES, min_size=1, max_size=5), back=st.integers(0, 1))
def test_any_history_rolls_back_to_either_of_the_last_two_snapshots(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[list[tuple[bytes, bytes | None]]], back: int
) -> None:
    root = tmp_path_factory.mktemp("state")
    stores = Stores(root, "perceive", ("speech",))
    store = stores.step(3, "speech")
    model: dict[bytes, bytes] = {}
    snapshots = [(store.marker(), dict(model))]
    for changes in epochs:
        # A new activation may start only when the snapshot before it is durable.
        for key, value in changes:
            store.begin(proved=True)
            if value is None:
                store.delete(key)
                model.pop(key, None)
            else:
                store.put(key, value)
                model[key] = value
        snapshots.append((store.marker(), dict(model)))
    marker, expected = snapshots[-1 - back]
    stores.close()
    stores = Stores(root, "perceive", ("speech",))
    stores.step(3, "speech").roll_back(marker)
    assert contents(stores) == expected
    stores.close()
