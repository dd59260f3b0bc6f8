"""A real mngr with a home, a tmux server and a repository of its own, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.scratch import short_folder
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.model.spec import MngrSettings
from tests.programs import cleaned_up

PROFILE = "0123456789abcdef0123456789abcdef"
SCRIPTED_AGENT = """#!/bin/bash
# An honest scripted agent: what a line on its input says, it does.
while IFS= read -r line; do
  case "$line" in
    work) touch "$MNGR_AGENT_STATE_DIR/active" ;;
    rest) rm -f "$MNGR_AGENT_STATE_DIR/active" ;;
    quit) exit 0 ;;
    become*) exec ${line#become } ;;
    *) echo "heard: $line" ;;
  esac
done
"""


@dataclass(frozen=True)
class IsolatedMngr:
    """A real mngr that sees nothing of the user's: own home, own tmux server, own repository."""

    root: Path
    settings: MngrSettings
    environment: dict[str, str]
    adapter: Mngr
    tmux: Tmux
    repository: Path
    """A git repository with one commit on the branch main."""
    agent: Path
    """A program for `command` agents that does what it is told: work, rest, quit, become PROGRAM."""

    @property
    def host_dir(self) -> Path:
        """Return the folder where mngr keeps its agents."""
        return self.root / "home" / ".mngr"


@contextlib.contextmanager
def isolate_mngr(path: str) -> Iterator[IsolatedMngr]:
    """Return a real mngr in a home of its own; its tmux server and its files are gone afterwards."""
    # A tmux socket's path must stay under 107 bytes: pytest's own folders are too long.
    root = Path(tempfile.mkdtemp(dir=short_folder(), prefix="sw"))
    for name in ("home", "t", "tmp", "repo", "bin"):
        (root / name).mkdir()
    settings = MngrSettings(
        path=path, host_dir=str(root / "home" / ".mngr"), tmux_tmpdir=str(root / "t"), home=str(root / "home")
    )
    environment = mngr_environment(settings, {"SHELL": "/bin/bash", "LANG": "C.UTF-8", "TMPDIR": str(root / "tmp")})
    agent = root / "bin" / "scripted"
    agent.write_text(SCRIPTED_AGENT)
    agent.chmod(0o755)
    _make_repository(root / "repo", environment)
    adapter, tmux = Mngr(path, environment), Tmux(environment)
    _write_settings(root / "home" / ".mngr")
    with cleaned_up(["tmux", "kill-server"], ["rm", "-rf", str(root)], environment=environment):
        yield IsolatedMngr(root, settings, environment, adapter, tmux, root / "repo", agent)


def _write_settings(host_dir: Path) -> None:
    """Write the settings of a first run, which takes mngr a second. Without a token, the plugin modal fails."""
    profile = host_dir / "profiles" / PROFILE
    profile.mkdir(parents=True)
    (host_dir / "config.toml").write_text(f'profile = "{PROFILE}"\n')
    (profile / "settings.toml").write_text("[providers.modal]\nis_enabled = false\n")


def _make_repository(folder: Path, environment: dict[str, str]) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)

    git("config", "--global", "user.name", "A Tester")
    git("config", "--global", "user.email", "tester@example.invalid")
    git("config", "--global", "init.defaultBranch", "main")
    git("init", "--quiet", "--initial-branch=main")
    (folder / "README.md").write_text("a repository\n")
    git("add", "--all")
    git("commit", "--quiet", "--message=Begin")
