"""Keys of meetings: what seals a meeting's audit entries, and is destroyed when the meeting is purged."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from contracts.small_files import read_small

KEY_BYTES: Final = 64
"""AES-256 in SIV mode takes two keys of 32 bytes."""
MASTER_BYTES: Final = 32
_FORMAT: Final = 1
_CHECK: Final = b"minuted key store check value 1.\0"[:32]
_CHECK_NAME: Final = "master.check"


class KeyProblem(RuntimeError):
    """The key store cannot be used; the message is one line."""


@dataclass(frozen=True)
class MeetingKey:
    """Seals and opens entries of one meeting; repeatable, and safe where one place is ever sealed twice.

    AES-SIV (RFC 5297): equal plaintext and associated data give equal bytes, and a second plaintext under the
    same data reveals nothing of the first, which a nonce made from the sequence could not promise.
    """

    secret: bytes = field(repr=False)

    def seal(self, plain: bytes, bound: bytes) -> bytes:
        """Ciphertext of ``plain``, bound to ``bound``."""
        return AESSIV(self.secret).encrypt(plain, [bound])

    def open(self, sealed: bytes, bound: bytes) -> bytes:
        """What was sealed.

        Raises:
            KeyProblem: it was sealed with another key, or changed since.
        """
        try:
            return AESSIV(self.secret).decrypt(sealed, [bound])
        except InvalidTag as error:
            raise KeyProblem("an entry was sealed with another key, or changed since") from error


class Keys(Protocol):
    """Where keys of meetings come from."""

    def key_of(self, meeting_id: str) -> MeetingKey | None:
        """The meeting's key, made at first use; None once it was destroyed."""

    def destroy(self, meeting_id: str) -> None:
        """Destroy the meeting's key for good; does nothing where that was done."""


class OpenKeys:
    """For minutes of files: whoever has the files has the words, so the key hides nothing and is no secret.

    The same log then gives the same chain.
    """

    def key_of(self, meeting_id: str) -> MeetingKey | None:
        return MeetingKey(hashlib.sha512(b"minuted open audit key\0" + meeting_id.encode()).digest())

    def destroy(self, meeting_id: str) -> None:
        """There is nothing to destroy."""
        del meeting_id


class KeyStore:
    """A folder with one file for each meeting: its key, wrapped by the master key where there is one.

    Files are named by a hash of the meeting id. Of a destroyed key a mark stays, so that the same meeting never
    gets a second one.
    """

    def __init__(self, folder: Path, master: bytes | None = None, *, create: bool = True) -> None:
        """Open the folder.

        Raises:
            KeyProblem: it cannot be written, or was made with another master key.
        """
        if master is not None and len(master) != MASTER_BYTES:
            raise KeyProblem(f"a master key has {MASTER_BYTES} bytes, this one has {len(master)}")
        self._folder = folder
        self._master = master
        try:
            if create:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._check_master(create)
        except OSError as error:
            raise KeyProblem(f"{folder} cannot be used ({error.strerror})") from error

    def key_of(self, meeting_id: str) -> MeetingKey | None:
        """As ``Keys``.

        Raises:
            KeyProblem: the folder or the meeting's file cannot be read or written.
        """
        try:
            if self._mark(meeting_id).exists():
                return None
            path = self._path(meeting_id)
            if not path.exists():
                secret = secrets.token_bytes(KEY_BYTES)
                # Another process may have been quicker: what is in the file then is the key.
                self._write_new(path, self._wrapped(secret))
            return MeetingKey(self._unwrapped(path))
        except OSError as error:
            raise KeyProblem(f"{self._folder} cannot be used ({error.strerror})") from error

    def find(self, meeting_id: str) -> MeetingKey | None:
        """The meeting's key where there is one; makes none."""
        return self.key_of(meeting_id) if self._path(meeting_id).exists() else None

    def destroyed(self, meeting_id: str) -> bool:
        """Whether the meeting's key was destroyed."""
        return self._mark(meeting_id).exists()

    def destroy(self, meeting_id: str) -> None:
        """As ``Keys``; the mark is on the disk before the key goes.

        Raises:
            KeyProblem: the folder cannot be written.
        """
        path = self._path(meeting_id)
        try:
            self._write_new(self._mark(meeting_id), b'{"destroyed":true}')
            if path.exists():
                with path.open("r+b") as file:
                    file.write(bytes(path.stat().st_size))
                    file.flush()
                    os.fsync(file.fileno())
                path.unlink()
                self._sync_folder()
        except OSError as error:
            raise KeyProblem(f"{self._folder} cannot be used ({error.strerror})") from error

    def _path(self, meeting_id: str) -> Path:
        return self._folder / f"{_name(meeting_id)}.key"

    def _mark(self, meeting_id: str) -> Path:
        return self._folder / f"{_name(meeting_id)}.destroyed"

    def _check_master(self, create: bool) -> None:
        """A value under the master key tells a wrong one at once, not at the first meeting."""
        check = self._folder / _CHECK_NAME
        if not check.exists():
            if not create:
                raise KeyProblem(f"{self._folder} is no key store")
            self._write_new(check, self._wrapped(_CHECK))
        if self._unwrapped(check) != _CHECK:
            raise KeyProblem(f"{check} is damaged")

    def _wrapped(self, secret: bytes) -> bytes:
        value = secret if self._master is None else aes_key_wrap(self._master, secret)
        held = {
            "format": _FORMAT,
            "wrapped": self._master is not None,
            "key": base64.b64encode(value).decode(),
        }
        return json.dumps(held).encode()

    def _unwrapped(self, path: Path) -> bytes:
        try:
            held = json.loads(path.read_bytes())
            value, wrapped = base64.b64decode(held["key"], validate=True), bool(held["wrapped"])
        except (ValueError, KeyError, TypeError) as error:
            raise KeyProblem(f"{path} is damaged") from error
        if wrapped != (self._master is not None):
            needed = "needs the master key" if wrapped else "was made without a master key"
            raise KeyProblem(f"{self._folder} {needed}")
        try:
            return value if self._master is None else aes_key_unwrap(self._master, value)
        except (InvalidUnwrap, ValueError) as error:
            raise KeyProblem(f"{self._folder} was made with another master key") from error

    def _write_new(self, path: Path, content: bytes) -> None:
        """Write a file as a whole, unless it is there."""
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(name, path)
            except FileExistsError:
                return
            self._sync_folder()
        finally:
            os.unlink(name)

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def master_key(path: Path | None) -> bytes | None:
    """The master key in a file: 32 bytes, or 64 hexadecimal digits.

    Raises:
        KeyProblem: the file cannot be read or holds something else.
    """
    if path is None:
        return None
    try:
        content = read_small(path, 1024, pipes=True)
    except OSError as error:
        raise KeyProblem(f"{path} cannot be read ({error.strerror})") from error
    if len(content) == MASTER_BYTES:
        return content
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != MASTER_BYTES:
        raise KeyProblem(
            f"{path} holds no master key: {MASTER_BYTES} bytes, or {2 * MASTER_BYTES} hexadecimal digits"
        )
    return key


def _name(meeting_id: str) -> str:
    return hashlib.sha256(b"minuted meeting\0" + meeting_id.encode("utf-8")).hexdigest()[:40]
