"""Writes branches into bundles, lists what is in a bundle, and fetches the expected branch from one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.git.names import branch_ref, checked_ref, checked_revision, is_commit_id
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

_HEADER_LIMIT: Final = 65_536


def bundle_heads(repository: Repository, bundle: Path) -> dict[str, str]:
    """Return the full ref names in a bundle, each with its commit; raise GitError for any other content."""
    answer = repository.run("bundle", "list-heads", str(bundle.absolute()), codes=(0, 1, 128))
    if answer.code:
        raise GitError(f"{plain(bundle.name, 80)} cannot be read as a bundle", answer.error_text or "it is empty")
    heads = {}
    for line in answer.text.split("\n"):
        commit, _, name = line.partition(" ")
        if not is_commit_id(commit):
            raise GitError(f"{plain(bundle.name, 80)} holds a line that is no ref", plain(line, 80))
        heads[name] = commit
    return heads


def create_bundle(repository: Repository, bundle: Path, *, base: str, branch: str) -> bool:
    """Write the commits of a branch after `base` into a file; return False, without a file, when there are none."""
    repository.resolve(base)
    if not repository.list_commits(base, branch_ref(branch)):
        return False
    revisions = (f"^{checked_revision(base)}", branch_ref(branch))
    repository.run("bundle", "create", "--quiet", str(bundle.absolute()), *revisions, timeout=600)
    return True


def fetch_bundle(repository: Repository, bundle: Path, *, branch: str, into: str) -> str:
    """Fetch the expected branch (or a lone HEAD) of a bundle into a full ref name; return its commit.

    No other ref is fetched, and neither a tag nor FETCH_HEAD is written.
    """
    _refuse_filtered(bundle)
    heads = bundle_heads(repository, bundle)
    expected = branch_ref(branch)
    source = expected if expected in heads else "HEAD"
    if source not in heads or (source == "HEAD" and len(heads) > 1):
        names = ", ".join(plain(name, 60) for name in list(heads)[:3]) or "nothing"
        raise UsageError(f"{plain(bundle.name, 80)} does not hold the branch {branch}", f"it holds {names}")
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
    wanted = (str(bundle.absolute()), f"+{source}:{checked_ref(into)}")
    repository.run("-c", "fetch.fsckObjects=true", "fetch", *options, *wanted, timeout=600)
    return heads[source]


def _refuse_filtered(bundle: Path) -> None:
    """Raise GitError for a bundle from which objects are left out: git would believe that they can be had elsewhere."""
    try:
        with bundle.open("rb") as file:
            header = file.read(_HEADER_LIMIT).split(b"\n\n")[0]
    except OSError as error:
        raise GitError(f"{plain(bundle.name, 80)} cannot be read", error.strerror or str(error)) from error
    if any(line.startswith(b"@filter") for line in header.split(b"\n")):
        raise GitError(f"{plain(bundle.name, 80)} is not whole: objects are left out of it by a filter")
