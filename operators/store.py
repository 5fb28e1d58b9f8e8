"""State of the steps: one RocksDB for each (flow, shard), a column family a step, and roll-back.

Bytewax may resume from a snapshot that is older than what a step has already written. So every write
leaves an undo entry under the step's running sequence number; a snapshot is only the marker
``{format, sequence}``, and resuming rolls back everything past it before the first replayed input.
Undo entries are dropped once the snapshot is known to be durable. Because the value before a
deletion lives on in the undo entry, a deletion takes effect one snapshot after it was decided.
"""

import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypedDict

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteBufferManager,
)

MARKER_FORMAT: Final = 6
"""Goes up when what steps keep cannot be read by an older or newer version."""
_DATA: Final = b"d"
_UNDO: Final = b"u"
_UNDO_END: Final = b"v"
_SEQUENCE: Final = b"s"
_UNDO_KEY: Final = struct.Struct(">cQI")
_BLOCK_CACHE_BYTES: Final = 64 * 1024 * 1024


class Marker(TypedDict):
    """What a step gives Bytewax as its snapshot."""

    format: int
    shard: int
    sequence: int


class StateError(RuntimeError):
    """State on disk does not fit the snapshot that is to be resumed."""


class StepStore:
    """Keys and values of one step of one shard; bytes to bytes, with roll-back to a marker."""

    def __init__(self, database: Rdict, family: str, shard: int, *, sync: bool) -> None:
        self._database = database
        self._family = database.get_column_family(family)
        self._handle = database.get_column_family_handle(family)
        self._sync = sync
        self._undo_count = 0
        self._unproved: int | None = None
        self._forgotten: int | None = None
        self.shard = shard
        raw = self._raw(_SEQUENCE)
        self.sequence = int.from_bytes(raw, "big") if raw is not None else 0

    def _raw(self, key: bytes) -> bytes | None:
        value = self._family.get(key)
        # In raw mode values are bytes; the type stub also knows the other mode.
        return value if isinstance(value, bytes) else None

    def close(self) -> None:
        """Let go of the column family; the database closes when no step holds it."""
        self._family.close()
        del self._handle, self._database

    def begin(self, *, proved: bool) -> None:
        """Start the changes of one activation.

        Args:
            proved: this activation proves that the last snapshot is durable. Bytewax gives that guarantee
                for the first input after a snapshot, not for a timer.
        """
        if proved and self._unproved is not None:
            self._family.delete_range(_UNDO, _UNDO_KEY.pack(_UNDO, self._unproved + 1, 0))
            if self._forgotten is not None and self._forgotten <= self._unproved:
                # Deleted values stay in RocksDB's files until these are written anew.
                self._family.compact_range(None, None)
                self._forgotten = None
            self._unproved = None
        self.sequence += 1
        self._undo_count = 0

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        return self._raw(_DATA + key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set a key."""
        self._change(key, value)

    def delete(self, key: bytes) -> None:
        """Remove a key; its value can still be rolled back until the next durable snapshot."""
        self._change(key, None)

    def forget(self, key: bytes) -> None:
        """As ``delete``; once the deletion is durable the value is taken out of the files too."""
        self.delete(key)
        self._forgotten = self.sequence

    def scan(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with ``prefix``, in order, with their values."""
        start = _DATA + prefix
        for key, value in self._entries(start):
            if not key.startswith(start):
                return
            yield key[1:], value

    def _entries(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._family.items(from_key=start):
            if isinstance(key, bytes) and isinstance(value, bytes):
                yield key, value

    def marker(self) -> Marker:
        """Snapshot: everything written so far is on disk, and this says how far that is."""
        self._family.put(_SEQUENCE, self.sequence.to_bytes(8, "big"))
        self._database.flush_wal(self._sync)
        self._unproved = self.sequence
        return Marker(format=MARKER_FORMAT, shard=self.shard, sequence=self.sequence)

    def roll_back(self, marker: Marker | None) -> None:
        """Undo everything after the marker; None means a start from nothing.

        Raises:
            StateError: the marker is of another format, or the store is behind it (the directory was
                exchanged or restored from an older copy).
        """
        if marker is not None and marker.get("format") != MARKER_FORMAT:
            raise StateError(
                f"snapshot format {marker.get('format')}, this version reads {MARKER_FORMAT}: another version wrote "
                "it; begin with empty state and recovery directories, the log holds what was decided"
            )
        target = marker["sequence"] if marker is not None else 0
        if marker is None:
            self._family.delete_range(b"", b"\xff")
        else:
            if self.sequence < target:
                raise StateError(
                    f"state of shard {self.shard} ends at {self.sequence}, the snapshot is at {target}: "
                    "the state directory is not the one that belongs to this recovery directory"
                )
            self._undo_past(target)
        self.sequence = target
        self._unproved = None
        self._family.put(_SEQUENCE, target.to_bytes(8, "big"))

    def _undo_past(self, target: int) -> None:
        entries = [e for e in self._entries(_UNDO_KEY.pack(_UNDO, target + 1, 0)) if e[0] < _UNDO_END]
        batch = WriteBatch(raw_mode=True)
        for key, entry in reversed(entries):
            size = int.from_bytes(entry[:4], "big")
            name, before = entry[4 : 4 + size], entry[4 + size :]
            if before[:1] == b"\1":
                batch.put(_DATA + name, before[1:], self._handle)
            else:
                batch.delete(_DATA + name, self._handle)
            batch.delete(key, self._handle)
        self._database.write(batch)

    def _change(self, key: bytes, value: bytes | None) -> None:
        before = self._raw(_DATA + key)
        if value is None and before is None:
            return
        batch = WriteBatch(raw_mode=True)
        undo = len(key).to_bytes(4, "big") + key + (b"\0" if before is None else b"\1" + before)
        batch.put(_UNDO_KEY.pack(_UNDO, self.sequence, self._undo_count), undo, self._handle)
        self._undo_count += 1
        if value is None:
            batch.delete(_DATA + key, self._handle)
        else:
            batch.put(_DATA + key, value, self._handle)
        batch.put(_SEQUENCE, self.sequence.to_bytes(8, "big"), self._handle)
        self._database.write(batch)


class Stores:
    """All shard databases of one flow in this process; handles are opened once and shared by steps."""

    def __init__(self, root: Path, flow: str, families: tuple[str, ...], *, sync: bool = False) -> None:
        self._root = root / flow
        self._families = families
        self._sync = sync
        self._open: dict[int, Rdict] = {}
        self._handed_out: list[StepStore] = []
        self._lock = threading.Lock()
        self._cache = Cache(_BLOCK_CACHE_BYTES)
        self._buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            _BLOCK_CACHE_BYTES // 2, False, self._cache
        )

    def step(self, shard: int, family: str) -> StepStore:
        """Store of one step of one shard.

        Raises:
            StateError: the directory cannot be opened, for example because another process holds it.
        """
        with self._lock:
            database = self._open.get(shard)
            if database is None:
                database = self._open[shard] = self._open_database(shard)
            store = StepStore(database, family, shard, sync=self._sync)
            self._handed_out.append(store)
        return store

    def close(self) -> None:
        """Close all databases."""
        with self._lock:
            for store in self._handed_out:
                store.close()
            self._handed_out.clear()
            for database in self._open.values():
                database.close()
            self._open.clear()

    def _open_database(self, shard: int) -> Rdict:
        path = self._root / f"{shard:02d}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            known = set(Rdict.list_cf(str(path))) - {"default"} if (path / "CURRENT").exists() else set()
            options = self._options()
            database = Rdict(
                str(path),
                options,
                column_families={name: self._options() for name in known} or None,
                access_type=AccessType.read_write(),
            )
            for name in self._families:
                if name not in known:
                    database.create_column_family(name, self._options())
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StateError(f"cannot open state in {path}: {error}") from error
        return database

    def _options(self) -> Options:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(2)
        options.set_write_buffer_manager(self._buffers)
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        options.set_block_based_table_factory(table)
        return options
