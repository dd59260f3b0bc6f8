"""The parts of an object store: entries of trees, objects as bytes, and writing one as git does."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

from swarm_tui.doors.git.command import GitError

TREE_MODE: Final = "40000"
FILE_MODES: Final = frozenset({"100644", "100755"})


class Entry(NamedTuple):
    """What a tree holds under one name."""

    mode: str
    id: str


def read_object(stream: IO[bytes]) -> tuple[str, bytes] | None:
    header = stream.readline()
    if not header:
        raise EOFError
    words = header.split()
    if len(words) != 3:
        return None
    size = int(words[2])
    content = stream.read(size + 1)
    if len(content) != size + 1:
        raise EOFError
    return words[1].decode(), content[:-1]


def parse_tree(content: bytes, id_length: int) -> dict[str, Entry]:
    entries = {}
    place = 0
    while place < len(content):
        space = content.index(b" ", place)
        end = content.index(b"\0", space)
        after = end + 1 + id_length
        name = os.fsdecode(content[space + 1 : end])
        entries[name] = Entry(content[place:space].decode(), content[end + 1 : after].hex())
        place = after
    return entries


def tree_content(entries: Mapping[str, Entry]) -> bytes:
    # git sorts a folder as if its name ended with a slash.
    rows = [
        (os.fsencode(name) + (b"/" if entry.mode == TREE_MODE else b""), os.fsencode(name), entry)
        for name, entry in entries.items()
    ]
    return b"".join(
        entry.mode.encode() + b" " + name + b"\0" + bytes.fromhex(entry.id) for _, name, entry in sorted(rows)
    )


def write_loose(objects: Path, object_format: str, kind: str, content: bytes) -> str:
    """Write an object into an object directory, as git does, and give its id."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(object_format, whole, usedforsecurity=False).hexdigest()
    folder = f"{objects}/{name[:2]}"
    place = f"{folder}/{name[2:]}"
    if os.path.exists(place):
        return name
    draft = f"{folder}/tmp_obj_{os.getpid()}_{threading.get_ident()}"
    try:
        os.makedirs(folder, exist_ok=True)
        with open(draft, "wb") as file:
            file.write(zlib.compress(whole, 1))
        os.replace(draft, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise GitError(f"{place} cannot be written", error.strerror or str(error)) from error
    return name
