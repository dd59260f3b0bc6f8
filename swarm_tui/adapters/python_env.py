"""Find a Python, and create an environment on top of another one."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.environment import project_environment, scrubbed_environment
from swarm_tui.adapters.processes.run import run_process, run_process_blocking
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.model.text import plain

_CHECK: Final = "import sys, venv, ensurepip; print(*sys.version_info[:3], sys.executable)"
_FETCH_TIMEOUT: Final = 300.0
_NAME: Final = re.compile(r"python3(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can create virtual environments."""

    path: str
    version: tuple[int, int, int]

    @property
    def shown_version(self) -> str:
        return ".".join(map(str, self.version))


async def find_interpreter(
    needed: tuple[int, int],
    environment: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
    *,
    may_install: bool = True,
) -> Interpreter:
    """Return a working Python that is new enough, from PATH, pyenv's folders or uv; raise ProgramMissing if none."""
    for path in _candidates(needed, environment):
        interpreter = await _run_candidate(path)
        if interpreter is not None and interpreter.version[:2] >= needed:
            return interpreter
    shown, why = ".".join(map(str, needed)), ""
    uv = shutil.which("uv", path=environment.get("PATH"))
    if uv is not None:
        progress(f"asking uv for Python {shown}")
        try:
            return await python_of_uv(uv, needed, may_install=may_install)
        except AdapterError as error:
            why = f" ({error.message})" if may_install else ""
    raise ProgramMissing(
        f"mngr needs Python {shown} or newer, and none was found{why}",
        f"get one with `uv python install {shown}`, `pyenv install {shown}`, `apt-get install python{shown}-venv` "
        f"or `brew install python@{shown}`, then run `swarm-tui doctor --fix` again",
    )


def _candidates(needed: tuple[int, int], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of possible Pythons once, those on PATH first."""
    seen = set()
    for path in [*_on_path(needed, environment), *_of_pyenv(environment)]:
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield str(path)


def _on_path(needed: tuple[int, int], environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the Pythons on PATH, except those with the name of an old version."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        for path in sorted(Path(folder).glob("python3*"), key=lambda path: len(path.name)):
            name = _NAME.fullmatch(path.name)
            is_too_old = name is not None and name.group(1) is not None and (3, int(name.group(1))) < needed
            if name is not None and not is_too_old and os.access(path, os.X_OK):
                yield path


def _of_pyenv(environment: Mapping[str, str]) -> list[Path]:
    """Return the Pythons of pyenv, newest first. Its shims on PATH may not work."""
    home = environment.get("HOME") or str(Path.home())
    roots = dict.fromkeys([environment.get("PYENV_ROOT") or f"{home}/.pyenv", f"{home}/.pyenv"])
    found = [path for root in roots for path in Path(root).glob("versions/*/bin/python3") if os.access(path, os.X_OK)]
    return sorted(found, key=lambda path: _version_key(path.parts[-3]), reverse=True)


def _version_key(name: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", name)[:3])


async def _run_candidate(path: str) -> Interpreter | None:
    """Run a candidate and return its version; None if it does not work or cannot create environments."""
    try:
        finished = await run_process([path, "-c", _CHECK], timeout=20)
    except AdapterError:
        return None
    words = finished.text.split(maxsplit=3)
    if finished.code != 0 or len(words) != 4 or not all(word.isdigit() for word in words[:3]):
        return None
    major, minor, micro = (int(word) for word in words[:3])
    # Use the program behind a shim, because the shim's target can change.
    return Interpreter(words[3].strip() or path, (major, minor, micro))


async def python_of_uv(
    uv: str, needed: tuple[int, int], *, may_install: bool = True, folder: Path | None = None
) -> Interpreter:
    """Return a Python of uv that is new enough; download it if that is allowed. Raise AdapterError if there is none.

    A download goes to uv's own folder or, if it is given, to `folder` only.
    """
    shown = ".".join(map(str, needed))
    own = {}
    if folder is not None:
        own = {"UV_PYTHON_INSTALL_DIR": str(folder), "UV_PYTHON_INSTALL_BIN": "0"}
        own |= {"UV_MANAGED_PYTHON": "1", "UV_NO_CACHE": "1"}
    find, install = ["python", "find", f">={shown}"], ["python", "install", shown]
    last_words = ""
    for words in [find, install, find] if may_install else [find]:
        finished = await run_process([uv, *words], environment=scrubbed_environment(own), timeout=_FETCH_TIMEOUT)
        interpreter = await _run_candidate(finished.text.strip()) if finished.code == 0 and words is find else None
        if interpreter is not None:
            return interpreter
        if words is install and finished.code != 0:
            last_words = _last_cause(finished.error_text)
            break
    raise AdapterError(f"uv cannot download one{last_words and ': '}{last_words}")


def _last_cause(text: str) -> str:
    """Return the last line of an error of uv, which is its first cause."""
    lines = [line.strip().removeprefix("cause: ").removeprefix("Caused by: ") for line in text.splitlines()]
    return plain(next((line for line in reversed(lines) if line), ""), 200)


_QUESTION: Final = """
import json, os, site, sys
venv = sys.prefix != sys.base_prefix
print(json.dumps({
    "base": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": list(sys.version_info[:3]),
    "bin": os.path.dirname(sys.executable) if venv else "",
    "packages": site.getsitepackages() if venv else [],
}))
"""
_ASK_TIMEOUT: Final = 60.0
# These programs would run, change or leave the environment below.
_NOT_LINKED: Final = ("python", "pip", "activate", "Activate", "deactivate", "easy_install", "pydoc", "wheel")
_PIP: Final = """#!/bin/sh
exec "$(dirname "$0")/python" -m pip "$@"
"""


@dataclass(frozen=True, slots=True)
class _Below:
    """The Python below."""

    base: str
    version: tuple[int, int, int]
    programs: str
    packages: tuple[str, ...]


def make_own_venv(folder: Path, python: str) -> Path:
    """Create the environment in a folder if it is missing; return its interpreter."""
    below = _ask(python, Path(python).stat().st_mtime_ns)
    name = f"python{below.version[0]}.{below.version[1]}"
    packages = folder / "lib" / name / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    settings = {
        "home": os.path.dirname(below.base),
        "include-system-site-packages": "false" if below.packages else "true",
        "version": ".".join(map(str, below.version)),
    }
    (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    # addsitedir also reads the .pth files there, which editable installs use.
    lines = [f"import site; site.addsitedir({path!r})\n" for path in below.packages]
    (packages / "below.pth").write_text("".join(lines), encoding="utf-8")
    for link in ("python", "python3", name):
        _link(programs / link, below.base)
    for pip in ("pip", "pip3"):
        (programs / pip).write_text(_PIP)
        (programs / pip).chmod(0o755)
    if below.programs:
        for program in os.scandir(below.programs):
            if not program.name.startswith(_NOT_LINKED):
                _link(programs / program.name, program.path)
    return programs / "python"


def activation(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which programs find an environment in a folder."""
    path = environment.get("PATH") or os.defpath
    return {
        "VIRTUAL_ENV": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{path}",
        # Another Python's pip must not install elsewhere.
        "PIP_REQUIRE_VIRTUALENV": "1",
    }


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@functools.lru_cache(maxsize=32)
def _ask(python: str, _modified: int) -> _Below:
    finished = run_process_blocking([python, "-c", _QUESTION], environment=project_environment(), timeout=_ASK_TIMEOUT)
    try:
        answer = json.loads(finished.stdout)
        major, minor, micro = answer["version"]
        return _Below(answer["base"], (major, minor, micro), answer["bin"], tuple(answer["packages"]))
    except (ValueError, KeyError, TypeError) as error:
        raise AdapterError(f"{python} does not run", f"try `{python} -c 'import site'`") from error
