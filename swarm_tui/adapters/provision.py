"""Find a mngr that is new enough, or install one into a private environment."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.python_env import Interpreter, find_interpreter, python_of_uv
from swarm_tui.errors import AdapterError, ProgramMissing
from swarm_tui.files import open_regular
from swarm_tui.model.text import plain

NEEDED_MNGR: Final = "0.3"
NEEDED_PYTHON: Final = (3, 12)
PLUGIN_PACKAGES: Final[Mapping[str, str]] = {
    "claude": "imbue-mngr-claude==0.3.*",
    "codex": "imbue-mngr-codex==0.2.*",
    "opencode": "imbue-mngr-opencode==0.3.*",
    "modal": "imbue-mngr-modal==0.3.*",
    "docker": "imbue-mngr-docker==0.1.*",
}

_MNGR_PACKAGE: Final = "imbue-mngr==0.3.*"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_INSTALL_TIMEOUT: Final = 600.0
_LONGEST_FIRST_LINE: Final = 4096
_INSTALL: Final = "install it into a private environment with `swarm-tui doctor --fix`"


@dataclass(frozen=True, slots=True)
class FoundMngr:
    """A usable mngr. `origin` is --mngr, SWARM_MNGR, PATH or private."""

    path: str
    version: str
    origin: str

    @property
    def warning(self) -> str:
        """Return a warning about an untested version; "" for a tested one."""
        is_tested = self.version.startswith(f"{NEEDED_MNGR}.")
        return "" if is_tested else f"mngr {self.version} is untested: swarm-tui was tested with {NEEDED_MNGR}"


def private_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the private environment of `doctor --fix`."""
    variables = os.environ if environment is None else environment
    home = variables.get("HOME") or str(Path.home())
    data = variables.get("XDG_DATA_HOME") or ""
    return Path(data if os.path.isabs(data) else f"{home}/.local/share") / "swarm-tui" / "mngr"


def mngr_at_hand(environment: Mapping[str, str] | None = None) -> str:
    """Return the path that `find_mngr` tries first, without starting mngr, which takes most of a second."""
    variables = dict(os.environ if environment is None else environment)
    named = variables.get("SWARM_MNGR")
    private = str(private_folder(variables) / "bin" / "mngr")
    for candidate in (os.path.expanduser(named),) if named else ("mngr", private):
        path = shutil.which(candidate, path=variables.get("PATH"))
        if path is not None:
            return os.path.abspath(path)
    if named:
        raise ProgramMissing(f"SWARM_MNGR is not a program: {named}", _INSTALL)
    raise ProgramMissing("mngr is not installed", _INSTALL)


async def find_mngr(override: str | None = None, environment: Mapping[str, str] | None = None) -> FoundMngr:
    """Return the first mngr that works; prefer tested versions.

    Raise ProgramMissing if there is none, or if a named one does not work.
    """
    variables = dict(os.environ if environment is None else environment)
    for origin, named in (("--mngr", override), ("SWARM_MNGR", variables.get("SWARM_MNGR"))):
        if named:
            path = shutil.which(os.path.expanduser(named), path=variables.get("PATH"))
            if path is None:
                raise ProgramMissing(f"{origin} is not a program: {named}", _INSTALL)
            version = await _mngr_version(path)
            if not is_supported(version):
                raise ProgramMissing(f"{origin} is mngr {version or 'of an unknown version'}; 0.3 is needed", _INSTALL)
            return FoundMngr(os.path.abspath(path), version, origin)
    on_path = shutil.which("mngr", path=variables.get("PATH"))
    too_old, untested = "", None
    for origin, candidate in (("PATH", on_path), ("private", str(private_folder(variables) / "bin" / "mngr"))):
        if candidate is None or not os.access(candidate, os.X_OK):
            continue
        version = await _mngr_version(candidate)
        if is_supported(version):
            found = FoundMngr(os.path.abspath(candidate), version, origin)
            if not found.warning:
                return found
            untested = untested or found
            continue
        too_old = f"mngr {version or 'that does not start'} is at {candidate}; 0.3 is needed"
    if untested is not None:
        return untested
    raise ProgramMissing(too_old or "mngr is not installed", _INSTALL)


def is_supported(version: str) -> bool:
    """Return whether a version of mngr is new enough. 0.2 had other commands."""
    numbers = _VERSION.fullmatch(version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (0, 3)


async def install_mngr(
    progress: Callable[[str], None],
    *,
    plugins: tuple[str, ...] = ("claude",),
    environment: Mapping[str, str] | None = None,
    own_python: str = sys.executable,
) -> FoundMngr:
    """Install mngr and plugins into the private environment, with any Python >= 3.12 of this machine.

    If there is none, `own_python` installs uv next to that environment, and uv downloads a Python.
    """
    variables = dict(os.environ if environment is None else environment)
    folder = private_folder(variables)
    python = folder / "bin" / "python"
    if not await _is_working_environment(python):
        await _make_environment(folder, variables, progress, own_python)
    packages = [_MNGR_PACKAGE, *(PLUGIN_PACKAGES[plugin] for plugin in plugins)]
    progress(f"installing {', '.join(packages)} into {folder}")
    await _checked_run(_pip_install(python, *packages), "pip cannot install mngr")
    path = str(folder / "bin" / "mngr")
    version = await _mngr_version(path)
    if not is_supported(version):
        raise AdapterError(f"mngr was installed at {path} but does not start", f"try `{path} --version`")
    progress(f"mngr {version} is ready at {path}")
    return FoundMngr(path, version, "private")


async def _make_environment(
    folder: Path, variables: Mapping[str, str], progress: Callable[[str], None], own_python: str
) -> None:
    try:
        interpreter = await find_interpreter(NEEDED_PYTHON, variables, progress)
    except ProgramMissing as missing:
        if shutil.which("uv", path=variables.get("PATH")) is not None:
            raise
        interpreter = await _fetch_interpreter(folder.parent, progress, own_python, missing)
    progress(f"creating {folder} with Python {interpreter.shown_version} ({interpreter.path})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # An existing environment there is ours, and broken.
    shutil.rmtree(folder, ignore_errors=True)
    await _checked_run([interpreter.path, "-m", "venv", str(folder)], "cannot create the environment for mngr")


async def _fetch_interpreter(
    data: Path, progress: Callable[[str], None], own_python: str, missing: ProgramMissing
) -> Interpreter:
    """Return a Python that our own uv downloads into our own folder; raise `missing` with the reason if that fails."""
    try:
        uv = await _install_uv(data / "uv", progress, own_python)
        progress(f"downloading Python {'.'.join(map(str, NEEDED_PYTHON))} into {data / 'python'}")
        return await python_of_uv(str(uv), NEEDED_PYTHON, folder=data / "python")
    except AdapterError as error:
        raise ProgramMissing(f"{missing.message}; {error.message}", missing.hint) from None


async def _install_uv(folder: Path, progress: Callable[[str], None], python: str) -> Path:
    """Install uv into a private environment and return its path."""
    progress(f"no Python {'.'.join(map(str, NEEDED_PYTHON))} found: installing uv into {folder} to download one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    await _checked_run([python, "-m", "venv", str(folder)], "cannot create the environment for uv")
    await _checked_run(_pip_install(folder / "bin" / "python", "uv"), "pip cannot install uv")
    return folder / "bin" / "uv"


def _pip_install(python: Path, *packages: str) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *packages]


async def _is_working_environment(python: Path) -> bool:
    if not os.access(python, os.X_OK):
        return False
    check = f"import sys, pip; sys.exit(sys.version_info < {NEEDED_PYTHON})"
    return (await run_process([str(python), "-c", check])).code == 0


async def _checked_run(words: list[str], failure: str) -> None:
    finished = await run_process(words, environment=_pip_environment(), timeout=_INSTALL_TIMEOUT)
    if finished.code != 0:
        lines = [line for line in finished.error_text.strip().splitlines() if line.strip()] or [finished.text]
        raise AdapterError(f"{failure}: {plain(lines[-1], 400)}", "check the connection to the package index")


def _pip_environment() -> dict[str, str]:
    """Return the environment without variables that change where pip installs."""
    dropped = {"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PYTHONHOME", "PYTHONPATH"}
    return {name: value for name, value in scrubbed_environment().items() if name not in dropped}


async def _mngr_version(path: str) -> str:
    """Return the version of mngr at a path; "" if it does not work."""
    if installed := _installed_version(path):
        return installed
    try:
        # mngr asks git about the current folder even for its version, which fails in a repository of another user.
        finished = await run_process([path, "--version"], cwd=Path("/"), timeout=30)
    except AdapterError:
        return ""
    version = _VERSION.search(finished.text)
    return version.group(0) if finished.code == 0 and version else ""


def _installed_version(path: str) -> str:
    """Return the version in the package metadata next to mngr, because starting mngr takes a second.

    Return "" if this is not the script that pip or uv has installed into an environment with a working Python.
    """
    script = Path(path).resolve()
    try:
        with open_regular(script) as file:
            python = Path(os.fsdecode(file.readline(_LONGEST_FIRST_LINE)).removeprefix("#!").strip())
    except OSError:
        return ""
    if python.parent != script.parent or not os.access(python, os.X_OK):
        return ""
    found = list(script.parent.parent.glob("lib/python3*/site-packages/imbue_mngr-*.dist-info"))
    version = _VERSION.search(found[0].name) if len(found) == 1 else None
    return version.group(0) if version is not None else ""
