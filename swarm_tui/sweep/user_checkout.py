"""Compare the user's repository before and after a sweep, because agents on this machine can change it.

Changes are reported with the agents whose transcripts mention them. The user may be their author as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from swarm_tui.adapters.git import Repository
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.sweep.context import SweepContext
from swarm_tui.transcripts.locate import PULLED_TRANSCRIPT

_BEFORE_FILE: Final = "checkout.json"
_SHORT: Final = 10
_FILES_LIMIT: Final = 5_000
_LISTED: Final = 20
_TRANSCRIPT_LIMIT: Final = 100_000_000
_AGENTS_NAMED: Final = 2
# The sweep's own refs, and those that only a fetch changes.
_OTHER_REFS: Final = re.compile(r"refs/(swarm|swarm-fetched|swarm-held|swarm-bundles|remotes|heads/swarm)/.*")
_CODES: Final = {"?": "new", "D": "deleted"}


class CheckoutState(BaseModel):
    """HEAD, refs and uncommitted files of the user's repository at one moment."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    head: str
    """The branch that is checked out, or the commit of a detached HEAD."""
    refs: Mapping[str, str]
    files: Mapping[str, str]
    """By path: git's code for the difference to the commit, with the size and time of the file."""


@dataclass(frozen=True, slots=True)
class CheckoutDifference:
    """One difference between two moments."""

    words: str
    path: str = ""
    """The changed file in the checkout."""


def remember_checkout(folder: SweepFolder, repository: Repository) -> None:
    """Save the state of the repository, unless an earlier engine that was killed did."""
    if not (folder.root / _BEFORE_FILE).exists():
        write_beside(folder.root / _BEFORE_FILE, read_checkout(repository).model_dump_json().encode())


def checkout_changes(context: SweepContext) -> tuple[str, ...]:
    """Return sentences about the differences since `remember_checkout`. A later engine compares with the new state."""
    path = context.folder.root / _BEFORE_FILE
    try:
        before = CheckoutState.model_validate_json(read_regular(path))
    except (OSError, ValidationError):
        return ()
    changes = list(_differences(context.repository, before, read_checkout(context.repository)))
    path.unlink(missing_ok=True)
    makers = _makers_of(context, changes)
    found = tuple(f"{change.words} ({makers[change]})" for change in changes[:_LISTED])
    return (*found, f"and {len(changes) - _LISTED} more") if len(changes) > _LISTED else found


def read_checkout(repository: Repository) -> CheckoutState:
    """Return the present state of a repository."""
    refs = {name: commit for name, commit in repository.refs().items() if not _OTHER_REFS.fullmatch(name)}
    files = {path: f"{code} {_stamp(repository.root / path)}" for code, path in repository.uncommitted()}
    head = repository.current_branch() or repository.find("HEAD") or ""
    return CheckoutState(head=head, refs=refs, files=files if len(files) <= _FILES_LIMIT else {})


def _stamp(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def _differences(repository: Repository, before: CheckoutState, after: CheckoutState) -> Iterator[CheckoutDifference]:
    if before.head != after.head:
        yield CheckoutDifference(f"HEAD was at {_name(before.head)}, and is at {_name(after.head)}")
    for name in sorted(before.refs.keys() | after.refs.keys()):
        old, new = before.refs.get(name, ""), after.refs.get(name, "")
        # The branches that applying a review creates.
        if old != new and not _is_ours(repository, name):
            yield CheckoutDifference(_words_of_ref(name, old, new))
    for path in sorted(before.files.keys() | after.files.keys()):
        old, new = before.files.get(path, ""), after.files.get(path, "")
        if old != new:
            yield CheckoutDifference(_words_of_file(path, old, new), path)


def _is_ours(repository: Repository, name: str) -> bool:
    log = repository.reflog(name)
    return bool(log) and log[0][1].startswith("swarm-tui: ")


def _name(head: str) -> str:
    return plain(head[:_SHORT] if re.fullmatch("[0-9a-f]{40,64}", head) else head, 100) or "no commit"


def _words_of_ref(name: str, old: str, new: str) -> str:
    kinds = {"refs/heads/": "the branch ", "refs/tags/": "the tag "}
    prefix = next((prefix for prefix in kinds if name.startswith(prefix)), "")
    shown = f"{kinds.get(prefix, '')}{plain(name.removeprefix(prefix), 100)}"
    if not old:
        return f"{shown} is new, at {new[:_SHORT]}"
    return f"{shown} was at {old[:_SHORT]}, and is {f'at {new[:_SHORT]}' if new else 'deleted'}"


def _words_of_file(path: str, old: str, new: str) -> str:
    shown = plain(path, 200)
    if not new:
        return f"{shown} had uncommitted changes, and has none"
    return f"{shown} was changed again" if old else f"{shown} is {_CODES.get(new.strip()[:1], 'changed')}"


def _makers_of(context: SweepContext, changes: Iterable[CheckoutDifference]) -> dict[CheckoutDifference, str]:
    """Return for each change whose transcript mentions its file, or else the folder of the checkout."""
    wanted = list(changes)
    roots = {context.repository.root.absolute(), context.repository.root.resolve()}
    forms = {change: [form for root in roots for form in _forms_of(root / change.path)] for change in wanted}
    # In a command such as `cd FOLDER`; the interpreter of the project is below the same folder.
    folders = [re.escape(form) for root in roots for form in _forms_of(root)]
    of_root = re.compile(b"(" + b"|".join(folders) + rb")/?(?![\w./-])")
    names: dict[CheckoutDifference, list[str]] = {change: [] for change in wanted}
    in_root: list[str] = []
    for record in context.state.tests() if wanted else ():
        try:
            content = read_regular(context.folder.agent(record.agent) / PULLED_TRANSCRIPT, _TRANSCRIPT_LIMIT)
        except OSError:
            continue
        for change, found in forms.items():
            if change.path and any(form in content for form in found):
                names[change].append(record.test)
        if of_root.search(content):
            in_root.append(record.test)
    return {change: _words_of_makers(names[change], in_root) for change in wanted}


def _forms_of(path: Path) -> tuple[bytes, ...]:
    """Return the forms of a path in a transcript of JSON lines."""
    return tuple(dict.fromkeys((os.fsencode(path), dumps(str(path))[1:-1].encode())))


def _words_of_makers(named: list[str], in_root: list[str]) -> str:
    found = named or in_root
    if not found:
        return "no agent's transcript names it"
    listed = ", ".join(plain(test, 200) for test in found[:_AGENTS_NAMED])
    more = f" and {counted(len(found) - _AGENTS_NAMED, 'other')}" if len(found) > _AGENTS_NAMED else ""
    what = "it" if named else "the checkout"
    return f"likely by the agent of {listed}{more}, whose transcript names {what}"
