"""Call git: plumbing commands and GitPython's `Repo`, typed, with errors that have hints.

    repository = Repository.open(Path("."))
    repository.head(), repository.resolve("main~2"), repository.branches(), repository.identity()
    repository.update_ref("refs/heads/x", new, old=None)          # compare-and-swap; raises RefMoved
    repository.run("log", "-z", ...)                              # any other command; check names with `names` first

All calls wait a few ms for git. In an event loop, use `await asyncio.to_thread(repository.head)`.
Nothing here writes to the user's checkout or index, and no hooks run.
"""

from swarm_tui.adapters.git.checkouts import clone_into, create_bundle, fetch_bundle, init_repository
from swarm_tui.adapters.git.command import GitError, GitResult
from swarm_tui.adapters.git.names import branch_ref, checked_branch, checked_ref, checked_revision, is_commit_id
from swarm_tui.adapters.git.repository import Identity, RefMoved, Repository

__all__ = [
    "GitError",
    "GitResult",
    "Identity",
    "RefMoved",
    "Repository",
    "branch_ref",
    "checked_branch",
    "checked_ref",
    "checked_revision",
    "clone_into",
    "create_bundle",
    "fetch_bundle",
    "init_repository",
    "is_commit_id",
]
