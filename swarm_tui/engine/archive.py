"""Unpacks what an agent handed in: bounded in size and number, files and folders only, nothing outside the target."""

from __future__ import annotations

import errno
import gzip
import io
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.agents.contract import BUNDLE_FILE, PACKED_OUTPUT_FOLDER
from swarm_tui.errors import JournalError

SIZE_LIMIT: Final = 64_000_000
COUNT_LIMIT: Final = 5_000
_NAME_LIMIT: Final = 240
_CHUNK: Final = 1 << 18
# Errors that names in an archive can cause; others come from our own disk. Those of gzip have no number.
_FAULTS_OF_NAMES: Final = frozenset(
    {None, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}
)


class BadArchive(ValueError):
    """An archive that cannot be unpacked; its text is the reason that a person sees."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What came out of an archive."""

    files: tuple[str, ...]
    refused: tuple[str, ...]
    """Members that were passed over: links, devices, and paths out of the folder."""


def unpack_archive(archive: Path, target: Path) -> Unpacked:
    """Unpack an agent's archive into an empty folder of its own, or raise BadArchive; JournalError without room.

    Written by hand and not with tarfile's `extractall`: its filters are missing from some Pythons that we run on.
    """
    files: list[str] = []
    refused: list[str] = []
    try:
        # As a stream: no member is read twice, and no index of a hostile archive is built.
        with gzip.open(archive, "rb") as unzipped, tarfile.open(fileobj=_Bounded(unzipped), mode="r|") as packed:
            for member in packed:
                if len(files) + len(refused) >= COUNT_LIMIT:
                    raise BadArchive(f"its archive holds more than {COUNT_LIMIT:,} files")
                path = _target_of(member)
                if path is None:
                    refused.append(member.name)
                elif member.isfile():
                    _write_member(packed, member, target / path)
                    files.append(str(path))
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError, RecursionError) as error:
        if isinstance(error, BadArchive):
            raise
        if isinstance(error, OSError) and error.errno not in _FAULTS_OF_NAMES:
            raise JournalError(f"{target} cannot be written", error.strerror or str(error)) from error
        raise BadArchive(f"its archive is broken: {error}") from error
    return Unpacked(tuple(files), tuple(refused))


class _Bounded(io.RawIOBase):
    """The content of a stream; BadArchive when it is more than an archive may hold."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = SIZE_LIMIT

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = _CHUNK if size < 0 else size
        content = self._stream.read(min(wanted, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise BadArchive(f"its archive unpacks to more than {SIZE_LIMIT // 1_000_000} MB")
        return content


def _target_of(member: tarfile.TarInfo) -> PurePosixPath | None:
    """Return where a member may be written below the target, or None for what is refused."""
    path = PurePosixPath(member.name)
    parts = [part for part in path.parts if part != "."]
    if not (member.isfile() or member.isdir()) or path.is_absolute() or ".." in parts or "\0" in member.name:
        return None
    if any(len(part.encode(errors="replace")) > _NAME_LIMIT for part in parts):
        return None
    is_ours = parts[:1] == [PACKED_OUTPUT_FOLDER] or parts == [BUNDLE_FILE]
    return PurePosixPath(*parts) if is_ours or (member.isdir() and not parts) else None


def _write_member(packed: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = packed.extractfile(member)
    if source is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, path.open("xb") as file:
        shutil.copyfileobj(source, file, _CHUNK)
