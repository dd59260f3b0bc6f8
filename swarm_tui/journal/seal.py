"""Seals the lines of the engine and of people, so that a line which something else has written is found and said.

A seal is a hash of the line, its sweep and a key in the person's own state folder. It is enough against accidents, and
against an agent that writes where it should not; a program that runs as the same person and looks for the key can seal.
Each line is sealed by itself: one that is lost or changed casts no doubt on others. That none is missing or repeated is
seen by the sequence numbers, which the seals hold fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from enum import Enum
from pathlib import Path
from typing import Final

from swarm_tui.journal.personal_files import state_folder
from swarm_tui.regular_file import read_regular

KEY_FILE: Final = "journal.key"
_KEY_SIZE: Final = 32
_MARK: Final = b',"seal":"'
_NAME_SIZE: Final = 8
_HASH_SIZE: Final = 16
_LENGTH: Final = len(_MARK) + _NAME_SIZE + _HASH_SIZE + len(b'"}')


class Sealing(Enum):
    """What a line's seal says of its writer."""

    NONE = "none"
    OURS = "ours"
    BROKEN = "broken"
    """It names our key, and is not what that makes of the line."""
    ANOTHER = "another"
    """It was made with a key that is not here: by another person, or on another machine."""


class Sealer:
    """Seals lines of one sweep, or looks at their seals."""

    def __init__(self, key: bytes, sweep: str) -> None:
        self._key = hashlib.blake2b(sweep.encode(errors="replace"), key=key, digest_size=_KEY_SIZE).digest()
        self._name = hashlib.blake2b(key, digest_size=_NAME_SIZE // 2, person=b"name of a key").hexdigest().encode()

    def seal(self, line: bytes) -> bytes:
        """Return a line, a JSON object with at least one field, with a seal as its last one."""
        return line[:-1] + _MARK + self._name + self._hash(line) + b'"}'

    def look_at(self, line: bytes) -> Sealing:
        """Return what the seal of a line says."""
        content, seal = split_seal(line)
        if not seal:
            return Sealing.NONE
        if seal[:_NAME_SIZE] != self._name:
            return Sealing.ANOTHER
        return Sealing.OURS if seal[_NAME_SIZE:] == self._hash(content) else Sealing.BROKEN

    def _hash(self, line: bytes) -> bytes:
        return hashlib.blake2b(line, key=self._key, digest_size=_HASH_SIZE // 2).hexdigest().encode()


def split_seal(line: bytes) -> tuple[bytes, bytes]:
    """Return a line without its seal, and the seal; nothing for a line without one."""
    if line[-_LENGTH : len(_MARK) - _LENGTH] != _MARK or line[-2:] != b'"}':
        return line, b""
    return line[:-_LENGTH] + b"}", line[len(_MARK) - _LENGTH : -2]


def sealer_of(sweep: str, *, is_writing: bool = False) -> Sealer | None:
    """Return a sealer with the person's key, which a writer makes where there is none; None without a key."""
    path = key_path()
    if is_writing and not path.exists():
        _make_key(path)
    try:
        key = read_regular(path, _KEY_SIZE)
    except OSError:
        return None
    return Sealer(key, sweep) if len(key) == _KEY_SIZE else None


def key_path() -> Path:
    """Return where the person's key is, or would be."""
    return state_folder() / KEY_FILE


def _make_key(path: Path) -> None:
    """Make a key; of two processes that do so at once, the first has its way."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_SIZE))
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)


class SealWatch:
    """Looks at the lines of one journal in their order: once one is sealed, all that follow have to be."""

    def __init__(self, sealer: Sealer | None, *, is_sealed: bool = False) -> None:
        self._sealer = sealer
        self.is_sealed = is_sealed
        """Whether a sealed line has been seen."""
        self.has_unknown_key = False
        """Whether a line was sealed with a key that is not here."""

    def reason_against(self, line: bytes) -> str:
        """Return why a line is not from the engine; empty when it is, as far as can be known."""
        if self._sealer is None:
            self.is_sealed = self.is_sealed or bool(split_seal(line)[1])
            self.has_unknown_key = self.has_unknown_key or self.is_sealed
            return ""
        match self._sealer.look_at(line):
            case Sealing.NONE:
                return "it has no seal" if self.is_sealed else ""
            case Sealing.BROKEN:
                return "its seal does not fit"
            case Sealing.ANOTHER:
                self.is_sealed = self.has_unknown_key = True
            case Sealing.OURS:
                self.is_sealed = True
        return ""
