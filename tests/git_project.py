"""A real git repository for a test, with a user of its own and without the config of the machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

# What a developer has set for all repositories must not reach a test; the program under test reads it too.
CONFIG = """
[user]
    name = Ada Lovelace
    email = ada@example.org
[commit]
    gpgsign = false
[core]
    autocrlf = false
    excludesFile = /dev/null
    attributesFile = /dev/null
[merge]
    conflictStyle = merge
    renames = true
    directoryRenames = conflict
"""

# For projects that do not care. Hypothesis' plugin adds half a second to each run of pytest, for its summary.
PYTEST_INI = "[pytest]\naddopts = -p no:hypothesispytest"


class GitProject:
    """A repository in a folder of its own; `git` is run for real, by name."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        if arguments or (root / ".git").exists():
            self.git("init", "--quiet", "--initial-branch=main", *arguments)
            config = Path(self.git("rev-parse", "--absolute-git-dir")) / "config"
            with config.open("a") as file:
                file.write(CONFIG)
        else:
            _write_empty_repository(root / ".git")

    def git(self, *arguments: str, stdin: bytes | None = None, codes: tuple[int, ...] | None = (0,)) -> str:
        """Run git here and return what it prints; a code that is not expected fails the test."""
        done = self.run(*arguments, stdin=stdin)
        assert codes is None or done.returncode in codes, (arguments, done.returncode, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def run(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git here and return the result with any exit code."""
        return subprocess.run(
            ["git", *arguments], cwd=self.root, env=quiet_environment(), input=stdin, capture_output=True
        )

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files into the work tree; None removes one."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Mapping[str, str | bytes | None] | None = None) -> str:
        """Write files, commit everything, and return the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--no-verify", "-F", "-", stdin=message.encode())
        head = self.root / ".git" / "HEAD"
        branch = head.parent / head.read_text().partition(" ")[2].strip() if head.is_file() else head
        return branch.read_text().strip() if branch.is_file() else self.git("rev-parse", "HEAD")


def _write_empty_repository(folder: Path) -> None:
    """Write what `git init` writes without a template, which is faster than starting git."""
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    core = (
        "[core]\n    repositoryformatversion = 0\n    filemode = true\n    bare = false\n    logallrefupdates = true\n"
    )
    (folder / "config").write_text(core + CONFIG)


def quiet_environment() -> dict[str, str]:
    """Return an environment in which git knows only the config of the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}


def file_contents(root: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder, also of `.git`, to compare two moments."""
    photo = {}
    for path in sorted(root.rglob("*")):
        name = os.fsdecode(os.path.relpath(path, root))
        if path.is_symlink():
            photo[name] = b"-> " + os.fsencode(os.readlink(path))
        elif path.is_file():
            photo[name] = oct(path.stat().st_mode).encode() + b" " + path.read_bytes()
        else:
            photo[name] = b"folder"
    return photo
