"""How to install an outside program: by apt, by brew, or in a way of its own."""

from __future__ import annotations

import os
from typing import Final

_APT: Final = {
    "git": "git", "tmux": "tmux", "ps": "procps", "rsync": "rsync", "ssh": "openssh-client", "bwrap": "bubblewrap",
}  # fmt: skip
_BREW: Final = {"git": "git", "tmux": "tmux", "rsync": "rsync"}
_OTHER: Final = {
    "mngr": "`swarm-tui doctor --fix` puts it into an environment of its own",
    "claude": "npm install -g @anthropic-ai/claude-code, then run `claude` once to log in",
    "uv": "https://docs.astral.sh/uv/",
}


def how_to_get(program: str) -> str:
    """Return how to install a program on this machine, as a hint for a message."""
    name = os.path.basename(program)
    if name in _OTHER:
        return _OTHER[name]
    import shutil

    ways = []
    has_apt, has_brew = shutil.which("apt-get") is not None, shutil.which("brew") is not None
    if name in _APT and (has_apt or not has_brew):
        ways.append(f"apt-get install {_APT[name]}")
    if name in _BREW and (has_brew or not has_apt):
        ways.append(f"brew install {_BREW[name]}")
    return " or ".join(ways) if ways else f"install {name} and put it on PATH"
