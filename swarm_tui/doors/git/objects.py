"""A repository with a throw-away object directory: trees, merges and commits are made there, and only kept when asked.

What is made in an `ObjectSpace` is seen by every later call in it, and by nobody else: the user's object store, refs,
index and checkout stay as they are until `keep` copies finished commits over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from swarm_tui.doors.git.command import GitError
from swarm_tui.doors.git.kept import KeptProcess
from swarm_tui.doors.git.names import is_commit_id, is_inside
from swarm_tui.doors.git.repository import Identity, Repository

TREE_MODE: Final = "40000"
FILE_MODES: Final = frozenset({"100644", "100755"})
ATTRIBUTES_FILE: Final = ".gitattributes"


class Entry(NamedTuple):
    """What a tree holds under one name."""

    mode: str
    id: str


class Stage(NamedTuple):
    """One of the up to three versions of a path that could not be merged: 1 base, 2 ours, 3 theirs."""

    path: str
    number: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Merge:
    """What a three-way merge gave. With conflicts the tree holds files with conflict markers."""

    tree: str
    stages: tuple[Stage, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.stages

    @property
    def conflict_paths(self) -> tuple[str, ...]:
        """The paths that could not be merged, each once."""
        return tuple(dict.fromkeys(stage.path for stage in self.stages))


class MergeWay(Enum):
    """How merge-tree is told the base: what the installed git offers decides."""

    MADE_UP_BASE = "2.38"
    """Commits are made up so that the wanted base is the one that git finds."""
    BASE_COMMIT = "2.40"
    """--merge-base, with commits made up around the trees."""
    BARE_TREES = "2.45"
    """--merge-base with trees as they are."""


def best_merge_way(version: tuple[int, ...]) -> MergeWay:
    """Give the quickest way that this version of git offers."""
    if version >= (2, 45):
        return MergeWay.BARE_TREES
    return MergeWay.BASE_COMMIT if version >= (2, 40) else MergeWay.MADE_UP_BASE


class ObjectSpace:
    """A repository seen through a throw-away object directory. Close it, or use it in a `with`."""

    def __init__(
        self, repository: Repository, *, borrowed: Sequence[Path] = (), merge_way: MergeWay | None = None
    ) -> None:
        self._original = repository
        self._merge_way = merge_way or best_merge_way(repository.version)
        self._folder = tempfile.TemporaryDirectory(prefix="swarm-objects-")
        folder = Path(self._folder.name)
        self._objects = folder / "objects"
        (self._objects / "info").mkdir(parents=True)
        self._set_borrowed(borrowed)
        # git reads .gitattributes from the folder it runs in: the user's checkout may hold those of another branch.
        self._attributes_folder = folder / "tree"
        self._attributes_folder.mkdir()
        self.repository = repository.seen_with(
            {
                "GIT_DIR": str(repository.git_directory.absolute()),
                "GIT_WORK_TREE": str(self._attributes_folder),
                "GIT_INDEX_FILE": str(folder / "index"),
                "GIT_OBJECT_DIRECTORY": str(self._objects),
            },
            self._attributes_folder,
        )
        self._reader = KeptProcess(lambda: self.repository.start("cat-file", "--batch"))
        self._trees: dict[str, dict[str, Entry]] = {}
        self._attributes_tree: str | None = None
        self._merge_lock = threading.Lock()

    def _set_borrowed(self, folders: Sequence[Path]) -> None:
        own = self._original.common_directory.absolute() / "objects"
        lines = [os.fsencode(folder) for folder in (own, *folders)]
        (self._objects / "info/alternates").write_bytes(b"\n".join(lines) + b"\n")

    def close(self) -> None:
        """Throw away everything that was made here."""
        self._reader.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def object_folder(self) -> Path:
        """Where the objects that were made here lie."""
        return self._objects

    # Objects

    def read(self, name: str) -> tuple[str, bytes]:
        """Give the kind and the content of an object, such as ("blob", b"...")."""
        if not is_commit_id(name):
            raise GitError(f"{name!r} is no object id", "this is a fault of swarm-tui")
        found = self._reader.ask(name.encode() + b"\n", _read_object)
        if found is None:
            raise GitError(
                f"object {name} is missing", "`git fsck` says what else is; a partial clone gets it by `git fetch`"
            )
        return found

    def write(self, kind: str, content: bytes) -> str:
        """Write an object and give its id."""
        return write_loose(self._objects, self.repository.object_format, kind, content)

    def tree(self, name: str) -> dict[str, Entry]:
        """Give what a tree holds, by name; not to be changed."""
        known = self._trees.get(name)
        if known is None:
            known = _parse_tree(self.read(name)[1], len(name) // 2)
            self._trees[name] = known
        return known

    def entry(self, tree: str, path: str) -> Entry | None:
        """Give what a tree holds under a path, or None."""
        found = Entry(TREE_MODE, tree)
        for part in path.split("/"):
            if found.mode != TREE_MODE:
                return None
            below = self.tree(found.id).get(part)
            if below is None:
                return None
            found = below
        return found

    def with_entries(self, tree: str, changes: Mapping[str, Entry | None]) -> str:
        """Give the tree in which the paths hold the entries (None: hold nothing); empty folders vanish."""
        return self._with_entries(tree, changes) or self.write("tree", b"")

    def _with_entries(self, tree: str | None, changes: Mapping[str, Entry | None]) -> str | None:
        entries = dict(self.tree(tree)) if tree else {}
        below: dict[str, dict[str, Entry | None]] = {}
        for path, entry in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = entry
            elif entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        for name, inner in below.items():
            old = entries.get(name)
            new = self._with_entries(old.id if old and old.mode == TREE_MODE else None, inner)
            if new is not None:
                entries[name] = Entry(TREE_MODE, new)
            elif old is None or old.mode == TREE_MODE:
                entries.pop(name, None)
        if not entries:
            return None
        name = self.write("tree", _tree_content(entries))
        self._trees[name] = entries
        return name

    # Merges

    def merge(self, *, base: str, ours: str, theirs: str) -> Merge:
        """Merge two trees that both come from `base`, exactly as git would in a work tree that holds `ours`."""
        if theirs in (base, ours):
            return Merge(ours)
        if ours == base:
            return Merge(theirs)
        sides: tuple[str, ...]
        match self._merge_way:
            case MergeWay.BARE_TREES:
                sides = (f"--merge-base={base}", ours, theirs)
            case MergeWay.BASE_COMMIT:
                sides = (f"--merge-base={self._made_up(base)}", self._made_up(ours), self._made_up(theirs))
            case MergeWay.MADE_UP_BASE:
                root = self._made_up(base)
                sides = (self._made_up(ours, root), self._made_up(theirs, root))
        with self._merge_lock:
            self._lay_out_attributes(ours)
            answer = self.repository.run("merge-tree", "--write-tree", "-z", "--no-messages", *sides, codes=(0, 1))
        tree, *rest = answer.fields
        return Merge(tree, tuple(_parse_stage(field, sides) for field in rest if field))

    def _made_up(self, tree: str, parent: str | None = None) -> str:
        parents = f"parent {parent}\n" if parent else ""
        content = f"tree {tree}\n{parents}author - <-> 0 +0000\ncommitter - <-> 0 +0000\n\n"
        return self.write("commit", content.encode())

    def _lay_out_attributes(self, tree: str) -> None:
        """Put the .gitattributes files of a tree where git looks for them: they may choose how a file is merged."""
        if tree == self._attributes_tree:
            return
        if self._attributes_tree is None:
            listed = self.repository.run("ls-tree", "-r", "-z", tree).fields
            entries = (_parse_listed(field) for field in listed if field.endswith(ATTRIBUTES_FILE))
            changes: dict[str, Entry | None] = {path: entry for path, entry in entries if _is_attributes(path)}
        else:
            changes = dict(self._changed_attributes(self._attributes_tree, tree, ""))
        for path, entry in changes.items():
            if not is_inside(path):
                continue
            place = self._attributes_folder / path
            place.unlink(missing_ok=True)
            if entry is not None and entry.mode in FILE_MODES:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(self.read(entry.id)[1])
        self._attributes_tree = tree

    def _changed_attributes(self, old: str | None, new: str | None, prefix: str) -> Iterator[tuple[str, Entry | None]]:
        """Give the .gitattributes files that differ between two trees; only folders that differ are read."""
        before, after = (self.tree(tree) if tree else {} for tree in (old, new))
        for name in before.keys() | after.keys():
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            if name == ATTRIBUTES_FILE:
                yield prefix + name, now
                continue
            folders = [entry.id if entry and entry.mode == TREE_MODE else None for entry in (was, now)]
            if any(folders):
                yield from self._changed_attributes(folders[0], folders[1], f"{prefix}{name}/")

    # Commits

    def commit(
        self,
        tree: str,
        parents: Sequence[str],
        message: bytes,
        *,
        author: Identity | None = None,
        authored: str = "",
        is_signed: bool = False,
    ) -> str:
        """Make a commit by the user (or by another author) and give its id."""
        environment = {}
        if author is not None:
            environment = {
                "GIT_AUTHOR_NAME": author.name,
                "GIT_AUTHOR_EMAIL": author.email,
                "GIT_AUTHOR_DATE": authored,
            }
        words = [word for parent in parents for word in ("-p", parent)]
        sign = ("-S",) if is_signed else ("--no-gpg-sign",)
        arguments = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", *sign, *words, "-F", "-", tree)
        answer = self.repository.run(*arguments, stdin=message, environment=environment, codes=(0, 1, 128))
        if answer.code:
            hint = "sign one commit by hand to see why, or `git config commit.gpgsign false`" if is_signed else ""
            raise GitError(f"a commit could not be made: {answer.error_text}", hint)
        return answer.text

    def keep(self, commit: str, *, known: Sequence[str]) -> None:
        """Copy a commit that was made here, and all it needs beyond the known commits, into the repository itself."""
        wanted = "".join(f"{line}\n" for line in (commit, *(f"^{name}" for name in known)))
        pack = self.repository.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=wanted.encode(), timeout=600)
        self._original.run("unpack-objects", "-q", "--strict", stdin=pack.stdout, timeout=600)


def write_loose(objects: Path, object_format: str, kind: str, content: bytes) -> str:
    """Write an object into an object directory, as git does, and give its id."""
    whole = f"{kind} {len(content)}\0".encode() + content
    name = hashlib.new(object_format, whole, usedforsecurity=False).hexdigest()
    place = objects / name[:2] / name[2:]
    if place.exists():
        return name
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=place.parent, prefix="tmp_obj_")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(zlib.compress(whole, 1))
        os.chmod(draft, 0o444)
        os.replace(draft, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise GitError(f"{place} cannot be written", error.strerror or str(error)) from error
    return name


def _is_attributes(path: str) -> bool:
    return path.rpartition("/")[2] == ATTRIBUTES_FILE


def _read_object(stream: IO[bytes]) -> tuple[str, bytes] | None:
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


def _parse_tree(content: bytes, id_length: int) -> dict[str, Entry]:
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


def _tree_content(entries: Mapping[str, Entry]) -> bytes:
    # git sorts a folder as if its name ended with a slash.
    rows = [
        (os.fsencode(name) + (b"/" if entry.mode == TREE_MODE else b""), os.fsencode(name), entry)
        for name, entry in entries.items()
    ]
    return b"".join(
        entry.mode.encode() + b" " + name + b"\0" + bytes.fromhex(entry.id) for _, name, entry in sorted(rows)
    )


def _parse_listed(field: str) -> tuple[str, Entry]:
    words, _, path = field.partition("\t")
    mode, _, name = words.split(" ")
    return path, Entry(mode, name)


def _parse_stage(field: str, sides: Sequence[str]) -> Stage:
    words, _, path = field.partition("\t")
    mode, name, number = words.split(" ")
    # Where a file and a link or folder meet, git keeps both and calls one "path~side".
    before, tilde, side = path.rpartition("~")
    shown = before if tilde and side.partition("_")[0] in sides else path
    return Stage(shown, int(number), Entry(mode, name))
