"""Parse and write git objects: trees and loose objects."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

from swarm_tui.adapters.git.command import GitError

TREE_MODE: Final = "40000"
FILE_MODES: Final = frozenset({"100644", "100755"})


_NAMES: Final = sys.getfilesystemencoding()
_ROW_BY_ID_LENGTH: Final = {
    length: re.compile(rb"([0-7]+) ([^\0]+)\0(.{%d})" % length, re.DOTALL) for length in (20, 32)
}
# Most of a tree is hashes, which do not compress.
UNCOMPRESSED: Final = 0


class TreeEntry(NamedTuple):
    """The mode and id of a name in a tree."""

    mode: str
    id: str


def read_object(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """Parse one answer of `cat-file --batch`: kind and content, or None for a missing object."""
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


def parse_tree(content: bytes, id_length: int) -> dict[str, TreeEntry]:
    """Return the entries of a tree object, without incomplete ones."""
    rows = _ROW_BY_ID_LENGTH[id_length].findall(content)
    return {name.decode(_NAMES, "surrogateescape"): TreeEntry(mode.decode(), id.hex()) for mode, name, id in rows}


def tree_content(entries: Mapping[str, TreeEntry]) -> bytes:
    # git sorts a folder as if there was a slash after its name.
    rows = [(os.fsencode(name) + (b"/" if entry.mode == TREE_MODE else b""), name) for name, entry in entries.items()]
    return b"".join(_row(name, entries[name]) for _, name in sorted(rows))


def with_replaced_rows(content: bytes, old: Mapping[str, TreeEntry], new: Mapping[str, TreeEntry]) -> bytes | None:
    """Return the content of a tree with replaced entries, or None if only sorting all of them is safe.

    This is fast in folders of thousands of files.
    """
    for name, entry in new.items():
        before = old.get(name)
        if before is None or (before.mode == TREE_MODE) != (entry.mode == TREE_MODE):
            return None
        row = _row(name, before)
        # The end of another file's row can look like this row: "a100644 b" next to "b", with the same content.
        if content.count(row) != 1:
            return None
        content = content.replace(row, _row(name, entry))
    return content


def _row(name: str, entry: TreeEntry) -> bytes:
    return entry.mode.encode() + b" " + os.fsencode(name) + b"\0" + bytes.fromhex(entry.id)


def write_loose(objects: Path, object_format: str, kind: str, content: bytes, *, level: int = 1) -> str:
    """Write a loose object into an object directory, and return its id."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(object_format, whole, usedforsecurity=False).hexdigest()
    folder = f"{objects}/{name[:2]}"
    target = f"{folder}/{name[2:]}"
    if os.path.exists(target):
        return name
    draft = f"{folder}/tmp_obj_{os.urandom(8).hex()}"
    try:
        os.makedirs(folder, exist_ok=True)
        with open(draft, "xb") as file:
            file.write(zlib.compress(whole, level))
        os.replace(draft, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise GitError(f"cannot write {target}: {error.strerror or error}") from error
    return name
