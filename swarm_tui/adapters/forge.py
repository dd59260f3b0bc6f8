"""Push a branch and open a pull request with gh (GitHub) or glab (GitLab)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.text import plain

_TIMEOUT: Final = 300.0
_BODY_LIMIT: Final = 60_000
"""Characters. GitHub accepts 65,536, and the system 128 KiB in one argument."""
_LOGIN_VARIABLES: Final = ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GLAB_TOKEN", "GH_HOST", "GITLAB_HOST")


def find_forge(repository: Repository, remote: str) -> str:
    """Return the program for a remote, gh or glab; raise UsageError if neither fits."""
    url = repository.setting(f"remote.{remote}.url")
    if url is None:
        raise UsageError(f"unknown remote: {plain(remote, 60)}", "list the remotes with `git remote`: --push REMOTE")
    signs = ("gitlab", os.environ.get("GITLAB_HOST", "").lower().rpartition("/")[2])
    wanted = ("glab", "gh") if any(sign and sign in url.lower() for sign in signs) else ("gh", "glab")
    found = next((program for program in wanted if shutil.which(program) is not None), None)
    if found is None:
        raise UsageError(
            f"pull requests on {plain(url, 100)} need gh or glab, which are not installed",
            "print title and text with --pr alone, and push with `git push`",
        )
    return found


async def push_branch(repository: Repository, remote: str, branch: str) -> None:
    """Push a branch without force."""
    # Use plain git, with the login helpers of the user.
    words = ["git", "push", "--", remote, f"refs/heads/{branch}:refs/heads/{branch}"]
    finished = await _run(words, repository.root)
    if finished.code:
        raise SwarmError(f"cannot push {plain(branch, 100)}: {_last_words(finished)}")


async def open_pull_request(
    forge: str, folder: Path, *, title: str, body: str, branch: str, base: str, scratch: Path
) -> str:
    """Open a pull request and return the output of the program, which is the address."""
    if len(body) > _BODY_LIMIT:
        body = f"{body[:_BODY_LIMIT].rpartition(chr(10))[0]}\n\n… truncated; for the rest run `swarm-tui fixes --pr`.\n"
    text = scratch / "body.md"
    text.write_text(body, encoding="utf-8")
    if forge == "gh":
        words = ["gh", "pr", "create", "--title", title, "--body-file", str(text), "--head", branch, "--base", base]
    else:
        words = ["glab", "mr", "create", "--yes", "--title", title, "--description", body]
        words += ["--source-branch", branch, "--target-branch", base]
    finished = await _run(words, folder)
    if finished.code:
        raise SwarmError(f"branch pushed, but {forge} cannot open the pull request: {_last_words(finished)}")
    return plain(finished.text.strip().split("\n")[-1], 300).strip()


async def _run(words: list[str], folder: Path) -> Finished:
    login = {name: os.environ[name] for name in _LOGIN_VARIABLES if name in os.environ}
    return await run_process(words, cwd=folder, environment=scrubbed_environment(login), timeout=_TIMEOUT)


def _last_words(finished: Finished) -> str:
    lines = (finished.text + finished.error_text).strip().split("\n")
    return plain(" ".join(lines[-3:]), 300)
