"""The outside programs of the tests, which package has each, and stand-ins for them.

`python3 tests/programs.py` prints the packages that this machine lacks, one to a line: "apt NAME" or "npm NAME".
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

ROOT_FOLDERS: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders with servers, which are often not on PATH."""


@dataclass(frozen=True)
class OutsideProgram:
    """A program that tests start, and the package that brings it."""

    commands: tuple[str, ...]
    """Its names; the first one found is used."""
    apt: str = ""
    npm: str = ""
    is_required: bool = False
    """Whether swarm-tui itself needs it, so that no test is skipped without it."""
    is_extra: bool = False
    """Whether only the extra suites need it, which are run by name."""

    def find(self) -> str | None:
        path = os.pathsep.join([os.environ.get("PATH", os.defpath), *ROOT_FOLDERS])
        return next((found for command in self.commands if (found := shutil.which(command, path=path))), None)


# A test that needs one more program gets a line here, and the marker `needs("its name")`.
PROGRAMS: Final[Mapping[str, OutsideProgram]] = {
    "git": OutsideProgram(("git",), apt="git", is_required=True),
    "tmux": OutsideProgram(("tmux",), apt="tmux", is_required=True),
    "ps": OutsideProgram(("ps",), apt="procps", is_required=True),
    "rsync": OutsideProgram(("rsync",), apt="rsync"),
    "ssh": OutsideProgram(("ssh",), apt="openssh-client"),
    "sshd": OutsideProgram(("sshd",), apt="openssh-server"),
    "ssh-keygen": OutsideProgram(("ssh-keygen",), apt="openssh-client"),
    "npm": OutsideProgram(("npm",), apt="npm"),
    "zsh": OutsideProgram(("zsh",), apt="zsh"),
    "fish": OutsideProgram(("fish",), apt="fish"),
    "bwrap": OutsideProgram(("bwrap",), apt="bubblewrap"),
    "jq": OutsideProgram(("jq",), apt="jq"),
    "docker": OutsideProgram(("docker",), apt="docker.io", is_extra=True),
    "dockerd": OutsideProgram(("dockerd",), apt="docker.io", is_extra=True),
    "debootstrap": OutsideProgram(("debootstrap",), apt="debootstrap", is_extra=True),
    "iptables": OutsideProgram(("iptables",), apt="iptables", is_extra=True),
    "ip": OutsideProgram(("ip",), apt="iproute2", is_extra=True),
    "Chromium": OutsideProgram(
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"), apt="chromium"
    ),
}

_SET_PARENT_DEATH_SIGNAL: Final = 1
_NOT_TRIED: Final = "not tried here for want of "
_MISSING: Final = re.compile(re.escape(_NOT_TRIED) + r"([^\s:]+)")


def require_program(name: str, programs: Mapping[str, OutsideProgram] = PROGRAMS) -> str:
    """Return the path of a program; without it the test is skipped, and under CI it fails."""
    found = programs[name].find()
    if found is None:
        skip_without_program(name, f"{' or '.join(programs[name].commands)} is not on PATH")
    return found


def skip_without_program(name: str, why: str) -> NoReturn:
    """Skip the running test because a program is missing; fail it under CI."""
    import pytest  # not needed to print the packages

    reason = f"{_NOT_TRIED}{name}: {why}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and CI skips nothing", pytrace=False)
    pytest.skip(reason)


def summary_of_skips(reasons: Iterable[str]) -> str:
    """Return which programs were missing, and for how many tests: "sshd (3 tests), rsync (1 test)"."""
    missing = Counter(found.group(1) for reason in reasons if (found := _MISSING.search(reason)))
    return ", ".join(f"{name} ({count} test{'s' * (count > 1)})" for name, count in missing.most_common())


def end_with_parent() -> None:
    """Let a child end when the process that started it does, however that ends: a `preexec_fn` of `subprocess`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


@contextlib.contextmanager
def cleaned_up(*commands: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run commands at the end of the block, also when the process that runs it is killed."""
    script = "; ".join(shlex.join(command) for command in commands)
    # The pipe on its input closes with us.
    watcher = subprocess.Popen(
        ["sh", "-c", f"read -r _; {script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.communicate()


def make_program(path: Path, script: str) -> Path:
    """Make an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def make_path(folder: Path, *programs: str) -> Path:
    """Return a folder that, as PATH, has exactly these programs of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        real = shutil.which(program)
        assert real is not None, f"this test needs {program}"
        (folder / program).symlink_to(real)
    return folder


def missing_packages(programs: Mapping[str, OutsideProgram] = PROGRAMS) -> list[str]:
    """Return what has to be installed before every test can run here, as "apt NAME" or "npm NAME"."""
    missing = [program for program in programs.values() if not (program.is_extra or program.find())]
    return [f"apt {program.apt}" if program.apt else f"npm {program.npm}" for program in missing]


if __name__ == "__main__":
    print("\n".join(missing_packages()))
