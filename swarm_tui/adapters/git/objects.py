"""A repository with a temporary object directory for new trees, merges and commits.

New objects of an `ObjectSpace` are visible in it only. The user's object store, refs, index and checkout do not
change until `copy_to_repository` copies finished commits.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from swarm_tui.adapters.git.command import GitError, KeptProcess
from swarm_tui.adapters.git.merging import Merger, MergeResult, MergeWay, best_merge_way
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.repository import Identity, Repository
from swarm_tui.adapters.git.trees import (
    TREE_MODE,
    UNCOMPRESSED,
    TreeEntry,
    parse_tree,
    read_object,
    tree_content,
    with_replaced_rows,
    write_loose,
)
from swarm_tui.adapters.scratch import ScratchFolder, memory_folder

SIZE_LIMIT: Final = 256 * 1024 * 1024
_ENTRIES_KNOWN: Final = 200_000
# git removes these from a name, and rejects a name that has nothing else.
_NO_NAME: Final = re.compile(r"""[\x00-\x20.,:;<>"\\']*""")
_DATE: Final = re.compile(r"@[0-9]{1,18} [+-][0-9]{4}")


class ObjectSpace:
    """A repository with a temporary object directory. Close it, or use it in a `with`."""

    def __init__(
        self,
        repository: Repository,
        *,
        borrowed: Sequence[Path] = (),
        merge_way: MergeWay | None = None,
        size_limit: int = SIZE_LIMIT,
    ) -> None:
        self.original = repository
        self._folder = ScratchFolder("swarm-objects-", memory_folder())
        folder = self._folder.path
        own = repository.common_directory.absolute() / "objects"
        self.object_folders = (folder / "objects", own, *borrowed)
        """The folders to read objects from. The first one is temporary, and new objects are written there."""
        (folder / "objects/info").mkdir(parents=True)
        (folder / "tree").mkdir()
        write_alternates(folder / "objects", self.object_folders[1:])
        self.repository = repository.with_environment(
            {
                "GIT_DIR": str(repository.git_directory.absolute()),
                "GIT_WORK_TREE": str(folder / "tree"),
                "GIT_INDEX_FILE": str(folder / "index"),
                "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            },
            folder / "tree",
        )
        self._reader = KeptProcess(lambda: self.repository.start("cat-file", "--batch"))
        self.merger = Merger(self, merge_way or best_merge_way(repository.version), folder / "tree")
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._known_entries = 0
        self._made_bytes, self._size_limit = 0, size_limit
        self._holders = 0
        self._is_closed = False
        self._lock = threading.Lock()
        self._pack_times = _pack_times(own)

    def close(self) -> None:
        """Stop the processes and remove all new objects."""
        self._reader.close()
        self.merger.close()
        with self._lock:
            self._is_closed = True
            self._folder.close()
        _restore_times(self._pack_times)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Size

    @contextlib.contextmanager
    def retained(self) -> Iterator[None]:
        """Keep new objects within the `with` block."""
        self.retain()
        try:
            yield
        finally:
            self.release()

    def retain(self) -> None:
        """Keep new objects until `release` is called."""
        with self._lock:
            self._holders += 1

    def release(self) -> None:
        """Undo one `retain`."""
        with self._lock:
            self._holders -= 1

    @property
    def is_retained(self) -> bool:
        return self._holders > 0

    def clear_if_full(self) -> bool:
        """Remove all new objects if they exceed the limit and are not retained; return whether they were removed."""
        with self._lock:
            if self._made_bytes < self._size_limit or self._holders:
                return False
            self._reader.close()
            self.merger.close()
            for folder in self.object_folders[0].iterdir():
                if folder.name != "info":
                    shutil.rmtree(folder, ignore_errors=True)
            self._trees, self._known_entries, self._made_bytes = {}, 0, 0
            return True

    # Objects

    def read(self, name: str) -> tuple[str, bytes]:
        """Return the kind and the content of an object, for example ("blob", b"...")."""
        if not is_commit_id(name):
            raise GitError(f"invalid object id: {name!r}", "this is a bug of swarm-tui")
        found = self._reader.request(name.encode() + b"\n", read_object)
        if found is None:
            raise GitError(
                f"object {name} is missing",
                "list others with `git fsck`; in a partial clone, run `git fetch --refetch --no-filter`",
            )
        return found

    def write(self, kind: str, content: bytes) -> str:
        with self._lock:
            # A thread without a waiting caller may still write. It must not create the folder again.
            if self._is_closed:
                raise GitError("the temporary object directory is closed")
            self._made_bytes += len(content)
            folder, object_format = self.object_folders[0], self.repository.object_format
            return write_loose(folder, object_format, kind, content, level=UNCOMPRESSED)

    def tree(self, name: str) -> dict[str, TreeEntry]:
        """Return the entries of a tree by name. Do not change the dictionary."""
        known = self._trees.get(name)
        if known is None:
            known = parse_tree(self.read(name)[1], len(name) // 2)
            self._remember(name, known)
        return known

    def _remember(self, tree: str, entries: dict[str, TreeEntry]) -> None:
        self._known_entries += len(entries)
        if self._known_entries > _ENTRIES_KNOWN:
            self._trees, self._known_entries = {}, len(entries)
        self._trees[tree] = entries

    def entry(self, tree: str, path: str) -> TreeEntry | None:
        """Return the entry at a path of a tree, or None."""
        found = TreeEntry(TREE_MODE, tree)
        for part in path.split("/"):
            if found.mode != TREE_MODE:
                return None
            below = self.tree(found.id).get(part)
            if below is None:
                return None
            found = below
        return found

    def with_entries(self, tree: str, changes: Mapping[str, TreeEntry | None]) -> str:
        """Return the tree with changed entries (None removes one), without empty folders."""
        return self._with_entries(tree, changes) or self.write("tree", b"")

    def _with_entries(self, tree: str | None, changes: Mapping[str, TreeEntry | None]) -> str | None:
        old = self.tree(tree) if tree else {}
        wanted: dict[str, TreeEntry | None] = {}
        below: dict[str, dict[str, TreeEntry | None]] = {}
        for path, entry in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = entry
            else:
                wanted[name] = entry
        for name, inner in below.items():
            before = wanted[name] if name in wanted else old.get(name)
            folder = before.id if before and before.mode == TREE_MODE else None
            made = self._with_entries(folder, inner)
            if made is not None:
                wanted[name] = TreeEntry(TREE_MODE, made)
            elif before is None or folder:
                wanted[name] = None
        replaced = {name: entry for name, entry in wanted.items() if entry is not None}
        entries = {name: entry for name, entry in (old | replaced).items() if wanted.get(name, entry) is not None}
        if not entries:
            return None
        content = None
        if tree and len(replaced) == len(wanted):
            content = with_replaced_rows(self.read(tree)[1], old, replaced)
        made = self.write("tree", tree_content(entries) if content is None else content)
        self._remember(made, entries)
        return made

    # Merges

    def merge(self, *, base: str, ours: str, theirs: str) -> MergeResult:
        """Merge two trees with a base, exactly like git in a work tree with `ours`."""
        return self.merger.merge(base=base, ours=ours, theirs=theirs)

    def flat_tree(self, tree: str, paths: Iterable[str]) -> str:
        """Return a tree with only these paths in one folder, which is fast to compare."""
        held = ((path.replace("/", "%"), self.entry(tree, path)) for path in paths)
        return self.write("tree", tree_content({name: entry for name, entry in held if entry is not None}))

    def synthetic_commit(self, tree: str, parent: str | None = None) -> str:
        """Create a commit of a tree with an empty author, for commands that require commits."""
        parents = f"parent {parent}\n" if parent else ""
        content = f"tree {tree}\n{parents}author - <-> 0 +0000\ncommitter - <-> 0 +0000\n\n"
        return self.write("commit", content.encode())

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
        """Create a commit by the user, or by another author, and return its id.

        `authored` is a time such as "@1763445120 +0100"; "" means now.
        """
        environment = _environment_of_author(author, authored) if author is not None else {}
        words = [word for parent in parents for word in ("-p", parent)]
        sign = ("-S",) if is_signed else ("--no-gpg-sign",)
        arguments = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", *sign, *words, "-F", "-", tree)
        answer = self.repository.run(*arguments, stdin=message, environment=environment, codes=(0, 1, 128))
        if answer.code:
            hint = (
                "sign one commit by hand to see the reason, or `git config commit.gpgsign false`" if is_signed else ""
            )
            raise GitError(f"cannot create a commit: {answer.error_text}", hint)
        return answer.text

    def copy_to_repository(self, commit: str, *, known: Sequence[str]) -> None:
        """Copy a new commit into the repository, with everything that the known commits do not have."""
        wanted = "".join(f"{line}\n" for line in (commit, *(f"^{name}" for name in known)))
        pack = self.repository.run("pack-objects", "--revs", "--stdout", "--quiet", stdin=wanted.encode(), timeout=600)
        self.original.run("unpack-objects", "-q", "--strict", stdin=pack.stdout, timeout=600)


def _pack_times(objects: Path) -> dict[Path, os.stat_result]:
    with contextlib.suppress(OSError):
        return {path: path.stat() for path in (objects / "pack").iterdir()}
    return {}


def _restore_times(known: Mapping[Path, os.stat_result]) -> None:
    """Restore the times of packs, which git renews when their objects are written to another folder."""
    for path, before in known.items():
        # Another git may have removed or replaced the pack.
        with contextlib.suppress(OSError):
            now = path.stat()
            is_same = (now.st_ino, now.st_size) == (before.st_ino, before.st_size)
            if is_same and now.st_mtime_ns != before.st_mtime_ns:
                os.utime(path, ns=(now.st_atime_ns, before.st_mtime_ns))


def _environment_of_author(author: Identity, authored: str) -> dict[str, str]:
    """Return the variables for the author of a commit, without values that git rejects."""
    is_date = not authored or _DATE.fullmatch(authored) is not None
    return {
        "GIT_AUTHOR_NAME": "unknown" if _NO_NAME.fullmatch(author.name) else author.name,
        "GIT_AUTHOR_EMAIL": author.email,
        "GIT_AUTHOR_DATE": authored if is_date else "@0 +0000",
    }


def write_alternates(objects: Path, others: Sequence[Path]) -> None:
    """Let an object directory borrow the objects of others."""
    (objects / "info/alternates").write_bytes(b"".join(os.fsencode(other) + b"\n" for other in others))
