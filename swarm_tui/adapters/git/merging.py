"""Three-way merges of trees, in the fastest way of the installed git. The result is always the same."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from swarm_tui.adapters.git.command import KeptProcess
from swarm_tui.adapters.git.trees import FILE_MODES, TREE_MODE, TreeEntry
from swarm_tui.model.text import is_inside

if TYPE_CHECKING:
    from swarm_tui.adapters.git.objects import ObjectSpace

ATTRIBUTES_FILE: Final = ".gitattributes"
BATCH_VERSION: Final = (2, 39)
_MERGE: Final = ("merge-tree", "--write-tree", "-z", "--messages")


class Stage(NamedTuple):
    """A version of a path with a conflict: 1 base, 2 ours, 3 theirs."""

    path: str
    number: int
    entry: TreeEntry


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a three-way merge. With conflicts, files of the tree contain conflict markers."""

    tree: str
    stages: tuple[Stage, ...] = ()
    is_clean: bool = True
    """False if `git revert` would stop, even if no path is unmerged, for example after a rename of a folder.

    Also false if git reports success but has written conflict markers, as for some renames that collide.
    """
    blocked_paths: tuple[str, ...] = ()
    """The paths that git names in a conflict without an unmerged path."""

    @property
    def conflict_paths(self) -> tuple[str, ...]:
        """The paths with conflicts, without repetitions."""
        return tuple(dict.fromkeys(stage.path for stage in self.stages)) or self.blocked_paths


class MergeWay(Enum):
    """How to pass the base to merge-tree, which depends on the version of git."""

    MADE_UP_BASE = "2.38"
    """Create commits whose history has the base."""
    BASE_COMMIT = "2.40"
    """--merge-base with commits that are created for the trees."""
    BARE_TREES = "2.45"
    """--merge-base with trees."""
    KEPT_PROCESS = "2.49"
    """Whether one process can answer many merges. Older versions keep their answers until they exit."""


def best_merge_way(version: tuple[int, ...]) -> MergeWay:
    offered = [way for way in MergeWay if tuple(map(int, way.value.split("."))) <= version]
    return offered[-1] if offered else MergeWay.MADE_UP_BASE


class _Sides(NamedTuple):
    """The three sides of a merge as arguments of merge-tree. Without a base, git finds it."""

    base: str
    ours: str
    theirs: str


class Merger:
    """Merges trees of an object space."""

    def __init__(self, space: ObjectSpace, way: MergeWay, folder: Path) -> None:
        self._space = space
        self._way = way
        # git reads .gitattributes from its current folder, and the user's checkout may have those of another branch.
        self._attributes_folder = folder
        self._attributes_tree: str | None = None
        self._process = KeptProcess(lambda: space.repository.start(*_MERGE, "--stdin"))
        self._lock = threading.Lock()

    def close(self) -> None:
        self._process.close()

    def merge(self, *, base: str, ours: str, theirs: str) -> MergeResult:
        """Merge two trees with a base, exactly like git in a work tree with `ours`."""
        if theirs in (base, ours):
            return MergeResult(ours)
        if ours == base:
            return MergeResult(theirs)
        with self._lock:
            self._lay_out_attributes(ours)
            return self._merge_now(base, ours, theirs)

    def warm_up(self, tree: str) -> None:
        """Prepare the first merge onto this tree."""
        with self._lock:
            _ = self._space.repository.object_format
            self._lay_out_attributes(tree)
            self._space.tree(tree)
            if self._way is MergeWay.KEPT_PROCESS:
                self._merge_now(tree, tree, tree)

    @property
    def is_slow(self) -> bool:
        """Whether each merge takes a process, although many independent merges can share one."""
        return self._way is not MergeWay.KEPT_PROCESS and self._space.repository.version >= BATCH_VERSION

    def merge_many_onto(self, ours: str, pairs: Sequence[tuple[str, str]]) -> list[MergeResult]:
        """Merge many (base, theirs) onto the same tree, exactly like git in a work tree with that tree."""
        with self._lock:
            self._lay_out_attributes(ours)
        return self.merge_many([(base, ours, theirs) for base, theirs in pairs])

    def merge_many(self, triples: Sequence[tuple[str, str, str]]) -> list[MergeResult]:
        """Merge many independent (base, ours, theirs), with one process if git supports that.

        All use the .gitattributes of the last merge, so the results are good for questions only.
        """
        with self._lock:
            if self._way is MergeWay.KEPT_PROCESS or self._space.repository.version < BATCH_VERSION:
                return [self._merge_now(*triple) for triple in triples]
            if not triples:
                return []
            sides = [self._sides(*triple) for triple in triples]
            answer = self._space.repository.run(*_MERGE, "--stdin", stdin=b"".join(map(_batch_line, sides)))
            fields = iter(os.fsdecode(answer.stdout).split("\0"))
            return [_parse_answer(fields, merged) for merged in sides]

    def _merge_now(self, base: str, ours: str, theirs: str) -> MergeResult:
        sides = self._sides(base, ours, theirs)
        if self._way is MergeWay.KEPT_PROCESS:
            raw = self._process.request(_batch_line(sides), read_answer)
            return _parse_answer(iter(os.fsdecode(raw).split("\0")), sides)
        answer = self._space.repository.run(*_MERGE, *_side_arguments(sides), codes=(0, 1))
        return _parse_merge(answer.code == 0, iter(os.fsdecode(answer.stdout).split("\0")), sides)

    def _sides(self, base: str, ours: str, theirs: str) -> _Sides:
        match self._way:
            case MergeWay.KEPT_PROCESS | MergeWay.BARE_TREES:
                return _Sides(base, ours, theirs)
            case MergeWay.BASE_COMMIT:
                return _Sides(*(self._space.synthetic_commit(tree) for tree in (base, ours, theirs)))
            case MergeWay.MADE_UP_BASE:
                root = self._space.synthetic_commit(base)
                return _Sides("", self._space.synthetic_commit(ours, root), self._space.synthetic_commit(theirs, root))

    def _lay_out_attributes(self, tree: str) -> None:
        """Write the .gitattributes of a tree to the folder where git reads them, because they can select drivers."""
        if tree == self._attributes_tree:
            return
        if self._attributes_tree is None:
            listed = self._space.repository.run("ls-tree", "-r", "-z", tree).fields
            wanted = (f"\t{ATTRIBUTES_FILE}", f"/{ATTRIBUTES_FILE}")
            changes: dict[str, TreeEntry | None] = dict(
                _parse_listed(field) for field in listed if field.endswith(wanted)
            )
        else:
            changes = dict(self._changed_attributes(self._attributes_tree, tree, ""))
        if changes:
            # git reads them once when it starts.
            self._process.close()
        for path, entry in changes.items():
            if not is_inside(path):
                continue
            target = self._attributes_folder / path
            target.unlink(missing_ok=True)
            if entry is not None and entry.mode in FILE_MODES:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._space.read(entry.id)[1])
        self._attributes_tree = tree

    def _changed_attributes(
        self, old: str | None, new: str | None, prefix: str
    ) -> Iterator[tuple[str, TreeEntry | None]]:
        """Return the .gitattributes files that differ between two trees. Read only folders that differ."""
        before, after = (self._space.tree(tree) if tree else {} for tree in (old, new))
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


def _parse_listed(field: str) -> tuple[str, TreeEntry]:
    words, _, path = field.partition("\t")
    mode, _, name = words.split(" ")
    return path, TreeEntry(mode, name)


def _side_arguments(sides: _Sides) -> tuple[str, ...]:
    base = (f"--merge-base={sides.base}",) if sides.base else ()
    return (*base, sides.ours, sides.theirs)


def _batch_line(sides: _Sides) -> bytes:
    base = f"{sides.base} -- " if sides.base else ""
    return f"{base}{sides.ours} {sides.theirs}\n".encode()


def read_answer(stream: IO[bytes]) -> bytes:
    """Return one answer of `--stdin`. It ends with an empty field instead of another message."""
    read = b""
    while not (read.endswith(b"\0") and _is_whole(read)):
        chunk = stream.read1(1 << 20)  # type: ignore[attr-defined]  # a pipe is a BufferedReader
        if not chunk:
            raise EOFError
        read += chunk
    return read


def _is_whole(answer: bytes) -> bool:
    try:
        _parse_answer(iter(os.fsdecode(answer).split("\0")[:-1]), ())
    except StopIteration:
        return False
    return True


def _parse_answer(fields: Iterator[str], sides: Sequence[str]) -> MergeResult:
    """Return the next result of `--stdin`, which begins with 1 for a clean merge and 0 for a conflict."""
    return _parse_merge(next(fields) == "1", fields, sides)


def _parse_merge(is_clean: bool, fields: Iterator[str], sides: Sequence[str]) -> MergeResult:
    """Return the result in the fields of an answer.

    The fields are the tree, the unmerged paths, an empty field, the messages, and an empty field. Each message has the
    number of its paths, the paths, its kind and its text. Older gits write advice on submodules before the last field.
    """
    tree, stages = next(fields), []
    while field := next(fields):
        stages.append(_parse_stage(field, sides))
    named: dict[str, None] = {}
    while (count := next(fields)).isdigit():
        paths = [next(fields) for _ in range(int(count))]
        kind, _text = next(fields), next(fields)
        # git moves a file away from a folder, and moves it back if the folder is removed: then the merge is clean.
        if kind.startswith("CONFLICT") and not (is_clean and kind == "CONFLICT (file/directory)"):
            named.update(dict.fromkeys(paths))
    return MergeResult(tree, tuple(stages), is_clean and not named, () if stages else tuple(named))


def _parse_stage(field: str, sides: Sequence[str]) -> Stage:
    words, _, path = field.partition("\t")
    mode, name, number = words.split(" ")
    # If a file and a link or folder collide, git keeps both and renames one to "path~side".
    before, tilde, side = path.rpartition("~")
    shown = before if tilde and side.partition("_")[0] in sides else path
    return Stage(shown, int(number), TreeEntry(mode, name))
