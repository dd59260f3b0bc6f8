"""GitPython's `Repo` with our way to run commands. Import it late, because that takes 60 ms."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import git

from swarm_tui.adapters.git.command import GitResult, error_of, finish_git, start_git


class Git(git.Git):
    """Runs commands in separate process groups, with our options, and never in another repository.

    GitPython itself leaves commands running when we are interrupted, passes all variables of git hooks, and reads input
    from files only.
    """

    def __init__(self, working_dir: str | os.PathLike[str] | None = None) -> None:
        # GitPython expands `$NAME` in strings.
        super().__init__(Path(working_dir) if working_dir is not None else None)

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdin: int | IO[bytes] = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        folder = Path(self.working_dir) if self.working_dir is not None else None
        return start_git(self.GIT_PYTHON_GIT_EXECUTABLE or "git", arguments, folder, environment, stdin)

    def run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdin: bytes | IO[bytes] | None,
        timeout: float,
    ) -> GitResult:
        if isinstance(stdin, bytes):
            return finish_git(self.start(arguments, environment), stdin, timeout, arguments)
        source = subprocess.DEVNULL if stdin is None else stdin
        return finish_git(self.start(arguments, environment, source), None, timeout, arguments)

    def execute(self, command: Any, *_: Any, **options: Any) -> Any:
        """Run a command for a method of GitPython, such as `version_info` or `Repo.init`; return its output."""
        result = self.run(command[1:], {}, None, options.get("kill_after_timeout") or 60.0)
        if result.code:
            raise error_of(result, command[1:], Path(self.working_dir or "."))
        return result.text


class Repo(git.Repo):
    """A repository of GitPython that runs commands with `Git`."""

    GitCommandWrapperType = Git
    git: Git
