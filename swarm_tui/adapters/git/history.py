"""Read the commits of a branch, their changes and diffs, with one process for the whole branch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Final

from swarm_tui.adapters.git.command import GitError, KeptProcess
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.errors import UsageError
from swarm_tui.model.commits import Commit, Diff, FileChange, parse_diff

EVERY_SUBMODULE: Final = "--ignore-submodules=none"
"""With this option, diffs do not read .gitmodules, which could hide changes or be unreadable."""
_FIELDS: Final = ("%H", "%P", "%T", "%an", "%ae", "%ad", "%B")
# Override all settings that change diffs, because we parse diffs and use their hash as a key.
_DIFF_OPTIONS: Final = (
    "--patch",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--no-indent-heuristic",
    "--find-renames=50%",
    "-l1000",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--full-index",
    "--submodule=short",
    EVERY_SUBMODULE,
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
)
_END_OF_DIFF: Final = b"end of this diff\n"
_DIFF_LIMIT: Final = 32 * 1024 * 1024
_HUNK_HEADER: Final = re.compile(rb"^@@ -[0-9,]+ \+[0-9,]+ @@.*$", re.MULTILINE)
_TEXT_INDEX: Final = re.compile(rb"^index [0-9a-f]+\.\.[0-9a-f]+(?: [0-7]+)?\n(?=---)", re.MULTILINE)


def read_commits(repository: Repository, base: str, tip: str) -> tuple[Commit, ...]:
    """Return the commits after `base` up to `tip`, oldest first; raise UsageError unless history is linear."""
    if not repository.is_ancestor(base, tip):
        raise UsageError(
            f"{base[:12]} is not an ancestor of {tip[:12]}",
            "use the commit where the branch begins; find it with `git merge-base A B`",
        )
    rows = list(log_rows(repository, [f"^{base}", tip]))
    for commit, parents in ((row[0], row[1].split()) for row in rows):
        if len(parents) > 1:
            raise UsageError(
                f"{commit[:12]} is a merge, but only a linear history can be reviewed fix by fix",
                "create one with `git rebase`",
            )
    changes = read_changes(repository, [row[0] for row in rows])
    shown = _read_shown_lines(repository, changes)
    commits = []
    parent, parent_tree = base, repository.tree_of(base)
    for name, parents_text, tree, author, email, authored, message in rows:
        if parents_text != parent:
            raise UsageError(
                f"the history from {base[:12]} to {tip[:12]} is not linear: {name[:12]} does not follow {parent[:12]}",
                "the base may be on another branch; see `git log --graph`",
            )
        commits.append(
            Commit(
                name, parent, tree, parent_tree, author, email, authored, message, tuple(changes.get(name, ())),
                shown.get(name),
            )
        )  # fmt: skip
        parent, parent_tree = name, tree
    return tuple(commits)


def log_rows(repository: Repository, revisions: Iterable[str]) -> Iterator[list[str]]:
    """Return id, parents, tree, author, address, author date and message of each commit, oldest first."""
    arguments = ("log", "-z", "--reverse", "--topo-order", "--date=raw", "--encoding=UTF-8", "--no-show-signature")
    wanted = f"--format={'%x00'.join(_FIELDS)}"
    lines = "".join(f"{revision}\n" for revision in revisions).encode()
    options = ("--no-notes", "--no-mailmap", "--no-decorate", "--stdin")
    answer = repository.run(*arguments, wanted, *options, stdin=lines, timeout=600)
    parts = answer.stdout.decode("utf-8", "replace").split("\0")
    for start in range(0, len(parts) - len(_FIELDS) + 1, len(_FIELDS)):
        yield parts[start : start + len(_FIELDS)]


def read_changes(repository: Repository, commits: Sequence[str]) -> dict[str, list[FileChange]]:
    """Return the changed files of each commit; a rename is a deletion and an addition.

    A commit is compared with its parent, or with the commit that follows it after a space: "COMMIT PARENT".
    """
    if not commits:
        return {}
    lines = "".join(f"{commit}\n" for commit in commits).encode()
    options = ("--stdin", "-r", "-z", "--root", "--raw", "--numstat", "--no-abbrev", "--no-renames", "--no-ext-diff")
    words = ("diff-tree", *options, "--no-textconv", EVERY_SUBMODULE)
    answer = repository.run(*words, stdin=lines, timeout=300)
    return _parse_changes(answer.fields)


def _read_shown_lines(
    repository: Repository, changes: Mapping[str, Sequence[FileChange]]
) -> dict[str, tuple[int, int]]:
    """Return the lines with similarity of commits with possible renames, which delete and add files."""
    wanted = [name for name, files in changes.items() if {"A", "D"} <= {change.status for change in files}]
    if not wanted:
        return {}
    lines = "".join(f"{name}\n" for name in wanted).encode()
    options = ("--stdin", "-r", "-z", "--root", "--numstat", "--find-renames=50%", "-l1000", "--no-ext-diff")
    words = ("diff-tree", *options, "--no-textconv", EVERY_SUBMODULE)
    fields = iter(repository.run(*words, stdin=lines, timeout=300).fields)
    found: dict[str, tuple[int, int]] = {}
    name = ""
    for field in fields:
        if is_commit_id(field):
            name = field
            found[name] = (0, 0)
            continue
        added, removed, path = field.split("\t", 2)
        if not path:
            # A renamed file has two paths, old and new.
            next(fields), next(fields)
        if added != "-":
            found[name] = (found[name][0] + int(added), found[name][1] + int(removed))
    return found


def read_tree_changes(repository: Repository, old: str, new: str) -> list[FileChange]:
    """Return the changed files between two trees."""
    options = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv")
    fields = repository.run("diff-tree", *options, EVERY_SUBMODULE, old, new).fields
    return _parse_changes([new, *fields]).get(new, [])


def _parse_changes(fields: Iterable[str]) -> dict[str, list[FileChange]]:
    found: dict[str, list[FileChange]] = {}
    current: dict[str, FileChange] = {}
    parts = iter(fields)
    name = ""
    for part in parts:
        if part.startswith(":"):
            old_mode, new_mode, old_id, new_id, status = part[1:].split(" ")
            path = next(parts)
            current[path] = FileChange(path, status[0], old_mode, new_mode, old_id, new_id)
        elif is_commit_id(part):
            found[name] = list(current.values())
            name, current = part, {}
        else:
            added, removed, path = part.split("\t", 2)
            if added != "-" and path in current:
                current[path] = replace(current[path], added=int(added), removed=int(removed))
    found[name] = list(current.values())
    found.pop("", None)
    return found


class DiffReader:
    """Reads diffs from a running process, in about a millisecond each."""

    def __init__(self, space: ObjectSpace) -> None:
        arguments = ("diff-tree", "--stdin", "-r", "--root", *_DIFF_OPTIONS)
        self._process = KeptProcess(lambda: space.repository.start(*arguments))

    def raw_diff(self, old: str, new: str) -> tuple[bytes, bool]:
        """Return the diff between two trees as git writes it, and whether it was truncated."""
        if not (is_commit_id(old) and is_commit_id(new)):
            raise GitError("invalid tree for a diff", "this is a bug of swarm-tui")
        if old == new:
            return b"", False
        # git repeats an invalid line, and flushes its output before that.
        request = f"{old} {new}\n".encode() + _END_OF_DIFF
        try:
            return self._process.request(request, _read_diff), False
        except _TooLong as error:
            return error.start, True

    def diff(self, old: str, new: str) -> Diff:
        """Return the diff between two trees without control characters."""
        raw, is_truncated = self.raw_diff(old, new)
        return parse_diff(raw, is_truncated=is_truncated)

    def content_key(self, old: str, new: str) -> str:
        """Return a key that is the same for the same change at other line numbers.

        `git patch-id --stable` ignores white space, which has a meaning in Python, and the content of binary files.
        """
        raw, _ = self.raw_diff(old, new)
        without_positions = _HUNK_HEADER.sub(b"@@", _TEXT_INDEX.sub(b"", raw))
        return hashlib.sha256(without_positions).hexdigest()[:40]

    def close(self) -> None:
        self._process.close()


class _TooLong(Exception):
    def __init__(self, start: bytes) -> None:
        super().__init__()
        self.start = start


def _read_diff(stream: IO[bytes]) -> bytes:
    header = stream.readline()
    if not header:
        raise EOFError
    if header == _END_OF_DIFF:
        raise GitError("cannot compare trees, because objects are missing", "list them with `git fsck`")
    read = bytearray()
    while not (read == _END_OF_DIFF or read.endswith(b"\n" + _END_OF_DIFF)):
        chunk = stream.read1(1 << 20)  # type: ignore[attr-defined]  # a pipe is a BufferedReader
        if not chunk:
            raise EOFError
        read += chunk
        if len(read) > _DIFF_LIMIT:
            raise _TooLong(bytes(read[:_DIFF_LIMIT]))
    return bytes(read[: -len(_END_OF_DIFF)])
