"""Which files of a commit act by themselves where it is checked out or pushed, so that a person looks at them first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.model.fixes import Commit, FileChange
from swarm_tui.model.text import plain

LINK_MODE: Final = "120000"
_SUBMODULE_MODE: Final = "160000"
_LINKS_READ: Final = 200
_KINDS: Final = (
    ("git acts on it", r"(?:.*/)?\.(?:gitattributes|gitmodules|mailmap|gitconfig|lfsconfig)"),
    (
        "CI runs it",
        r"\.(?:github/(?:workflows|actions)|gitlab|circleci|buildkite|woodpecker|ci|drone)/.*"
        r"|\.(?:gitlab-ci|travis|drone|appveyor|woodpecker)\.ya?ml"
        r"|(?:azure-pipelines|bitbucket-pipelines|appveyor|cloudbuild)\.ya?ml|(?:.*/)?jenkinsfile",
    ),
    (
        "a manager of git hooks runs it",
        r"\.(?:husky|githooks|lefthook)/.*|\.pre-commit-(?:config|hooks)\.ya?ml|\.?lefthook(?:-local)?\.(?:ya?ml|toml)"
        r"|\.overcommit\.yml|\.?simple-git-hooks\..*",
    ),
    (
        "an editor, a shell or a coding agent acts on it",
        r"(?:.*/)?\.(?:vscode|devcontainer|idea|claude|cursor)/.*|(?:.*/)?\.(?:mcp\.json|envrc|cursorrules)",
    ),
    ("every Python that is started imports it", r"(?:.*/)?(?:sitecustomize|usercustomize)\.py|.*\.pth"),
)
_PATTERNS: Final = tuple((why, re.compile(pattern, re.IGNORECASE)) for why, pattern in _KINDS)


def read_risks(repository: Repository, commits: Sequence[Commit]) -> dict[str, tuple[str, ...]]:
    """Return what is risky about the files of each commit, in sentences; commits without any are left out."""
    changed = [change for commit in commits for change in commit.changes]
    links = [change.new_id for change in changed if change.new_mode == LINK_MODE][:_LINKS_READ]
    targets = {link: repository.run("cat-file", "blob", link).text for link in dict.fromkeys(links)}
    found = {}
    for commit in commits:
        risks = tuple(risk for change in commit.changes if (risk := risk_of(change, targets.get(change.new_id, "/"))))
        if risks:
            found[commit.id] = risks
    return found


def risk_of(change: FileChange, target: str = "") -> str:
    """Return what a person should know about a change of a file, or ""; `target` is where a link leads."""
    path = plain(change.path, 100)
    if change.status == "D":
        return ""
    if change.new_mode == LINK_MODE and leads_out(change.path, target):
        return f"{path} is a link that leads out of the tree, to {plain(target, 100)}"
    if change.new_mode == _SUBMODULE_MODE:
        return f"{path} is a submodule: its code comes from elsewhere"
    return next((f"{path}: {why}" for why, pattern in _PATTERNS if pattern.fullmatch(change.path)), "")


def leads_out(path: str, target: str) -> bool:
    """Return whether a link at a path of the tree leads out of it, or to what git keeps beside it."""
    if target.startswith(("/", "~")) or "\0" in target or not target:
        return True
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).lower()
    return place == ".." or place.startswith("../") or place.split("/")[0] == ".git"
