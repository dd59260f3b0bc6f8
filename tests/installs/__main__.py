"""Builds the package and installs it as people do: `python -m tests.installs`.

The wheel is built from the source distribution, and put in place by pip, pipx and uv on every supported Python. One
that this machine lacks is fetched by uv; one that cannot be had is said at the end and is no failure, but the one that
runs this is always tried. Then `doctor --fix` is tried where no Python is new enough for mngr.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui import __version__
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.python_env import python_of_uv
from swarm_tui.errors import AdapterError

ROOT: Final = Path(__file__).parents[2]
PYTHONS: Final = ("3.11", "3.12", "3.13")
OWN_PROGRAM: Final = Path(sys.executable).parent / "swarm-tui"
_TIMEOUT: Final = 300.0


class InstallFailed(Exception):
    """A way of installing that did not work, with the last words of what was run."""


@dataclass(frozen=True)
class Tools:
    """The programs that install, in an environment of their own, and the folder for what they make."""

    programs: Path
    uv_settings: Mapping[str, str]

    @property
    def place(self) -> Path:
        return self.programs.parents[1]

    def environment(self, name: str) -> dict[str, str]:
        """Return an environment in which the programs keep what they make in a folder of that name."""
        folder = self.place / name
        given = {
            "PATH": f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PIPX_HOME": str(folder / "pipx"),
            "PIPX_BIN_DIR": str(folder / "bin"),
            "PIPX_MAN_DIR": str(folder / "man"),
            "UV_TOOL_DIR": str(folder / "uv"),
            "UV_TOOL_BIN_DIR": str(folder / "bin"),
            **self.uv_settings,
        }
        return scrubbed_environment(given)


def run(words: Sequence[str | Path], environment: Mapping[str, str], cwd: Path = ROOT) -> str:
    """Return what a command prints; raise InstallFailed with its last words when it does not succeed."""
    shown = [str(word) for word in words]
    done = subprocess.run(
        shown,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise InstallFailed(f"`{' '.join(shown)}` exits with {done.returncode}:\n{last}")
    return done.stdout


def with_pip(tools: Tools, python: str, wheel: Path, folder: Path) -> Path:
    environment = tools.environment(folder.name)
    run([python, "-m", "venv", folder], environment)
    run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], environment)
    return folder / "bin"


def with_pipx(tools: Tools, python: str, wheel: Path, folder: Path) -> Path:
    run([tools.programs / "pipx", "install", "--quiet", "--python", python, wheel], tools.environment(folder.name))
    return folder / "bin"


def with_uv(tools: Tools, python: str, wheel: Path, folder: Path) -> Path:
    words = ("tool", "install", "--quiet", "--python", python)
    run([tools.programs / "uv", *words, wheel], tools.environment(folder.name))
    return folder / "bin"


WAYS: Final[Mapping[str, Callable[[Tools, str, Path, Path], Path]]] = {
    "pip": with_pip,
    "pipx": with_pipx,
    "uv tool": with_uv,
}


def try_it(tools: Tools, way: str, version: str, python: str, wheel: Path) -> str:
    """Install the wheel in one way on one Python, and use it; return a line about it."""
    started = time.monotonic()
    folder = tools.place / f"{way.replace(' ', '-')}-{version}"
    try:
        programs = WAYS[way](tools, python, wheel, folder)
        use(programs / "swarm-tui", folder, version)
    except (InstallFailed, subprocess.TimeoutExpired) as error:
        raise InstallFailed(f"{way} on Python {version}: {error}") from error
    return f"{way:8} on Python {version}: well ({time.monotonic() - started:.1f} s)"


def use(program: Path, folder: Path, version: str) -> None:
    """Use an installed swarm-tui: its version, its help, a simulated sweep, its page, and as a module."""
    environment = scrubbed_environment({"HOME": str(folder), "PATH": os.environ.get("PATH", os.defpath)})
    told = run([program, "--version"], environment, folder)
    if told != f"swarm-tui {__version__}\n":
        raise InstallFailed(f"its version is {told!r}")
    if "# swarm-tui" not in run([program, "--skill"], environment, folder):
        raise InstallFailed("the page of --skill is missing")
    sweep = folder / "sweep"
    run(
        [program, "simulate", "--headless", "--tests", "12", "--ahead", "1", "--seconds", "0", sweep],
        environment,
        folder,
    )
    run([program, "report", sweep, "-o", folder / "page"], environment, folder)
    interpreter = program.resolve().parent / "python"
    if version not in run([interpreter, "-c", "import sys; print(sys.version)"], environment, folder):
        raise InstallFailed("it is installed on another Python")
    run([interpreter, "-c", "import swarm_tui.room.app"], environment, folder)
    if run([interpreter, "-m", "swarm_tui", "--version"], environment, folder) != told:
        raise InstallFailed("`python -m swarm_tui` is another program")


def settings_of_pip(pip: Path) -> dict[str, str]:
    """Return, as variables of uv, from where pip installs on this machine: uv does not read pip's settings."""
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    found: dict[str, str] = {}
    for line in run([pip, "config", "list"], scrubbed_environment()).splitlines():
        key, _, value = line.partition("=")
        name = names.get(key.rpartition(".")[2])
        if name is not None and name not in os.environ:
            found[name] = value.strip("'")
    return found


def build(tools: Tools) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it; return both."""
    folder = tools.place / "dist"
    run([tools.programs / "uv", "build", "--quiet", "--out-dir", folder, ROOT], tools.environment("build"))
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))


def missing_files(source: Path, wheel: Path) -> list[str]:
    """Return the tracked files that the source distribution lacks, and those of the package that the wheel lacks."""
    tracked = run(["git", "ls-files", "-z"], scrubbed_environment()).rstrip("\0").split("\0")
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as installed:
        in_wheel = set(installed.namelist())
    return [
        *(f"{path} is not in {source.name}" for path in tracked if path not in in_source),
        *(
            f"{path} is not in {wheel.name}"
            for path in tracked
            if path.startswith("swarm_tui/") and path not in in_wheel
        ),
    ]


def find_python(tools: Tools, version: str) -> str:
    """Return the path of a Python of that version, fetched by uv if need be; raise InstallFailed if there is none."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    environment = tools.environment("python")
    for path in [*_of_this_machine(version)]:
        done = subprocess.run([path, "-c", "import venv, ensurepip"], env=environment, capture_output=True, check=False)
        if done.returncode == 0:
            return str(path)
    uv = tools.programs / "uv"
    run([uv, "python", "install", "--quiet", version], {**environment, "UV_HTTP_RETRIES": "1"})
    return run([uv, "python", "find", "--managed-python", version], environment).strip()


def _of_this_machine(version: str) -> Iterator[Path]:
    """Yield the Pythons of that version on PATH and of pyenv, which may not work."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.access(path := Path(folder) / f"python{version}", os.X_OK):
            yield path
    roots = {Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"), Path.home() / ".pyenv"}
    for root in sorted(roots):
        yield from root.glob(f"versions/{version}.*/bin/python{version}")


def fetch_a_python(tools: Tools) -> str:
    """Let the real uv fetch a Python as `doctor --fix` does, from a list of our own; return a line about it."""
    mirror, folder = tools.place / "mirror", tools.place / "fetched"
    os.environ["UV_PYTHON_DOWNLOADS_JSON_URL"] = str(write_mirror(mirror))
    found = asyncio.run(python_of_uv(str(tools.programs / "uv"), sys.version_info[:2], folder=folder))
    if not any(folder.glob("cpython-*")):
        raise InstallFailed(f"uv has put no Python into {folder}, but says {found.path}")
    return f"uv fetches a Python into our own folder: well ({found.shown_version})"


def write_mirror(folder: Path) -> Path:
    """Write an archive with a Python that hands on to ours; return the list of downloads that names it."""
    major, minor, micro = sys.version_info[:3]
    folder.mkdir()
    script = f'#!/bin/sh\nexec {shlex.quote(os.path.realpath(sys.executable))} "$@"\n'.encode()
    program = tarfile.TarInfo(f"python/bin/python{major}.{minor}")
    program.size, program.mode = len(script), 0o755
    settings = b"# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n"
    library = tarfile.TarInfo(f"python/lib/python{major}.{minor}/_sysconfigdata_.py")
    library.size = len(settings)
    with tarfile.open(folder / "python.tar.gz", "w:gz") as archive:
        archive.addfile(program, io.BytesIO(script))
        archive.addfile(library, io.BytesIO(settings))
    system = platform.system().lower()
    download = {
        "name": "cpython",
        "arch": {"family": {"arm64": "aarch64"}.get(platform.machine(), platform.machine()), "variant": None},
        "os": system,
        "libc": "gnu" if system == "linux" else "none",
        "major": major,
        "minor": minor,
        "patch": micro,
        "prerelease": "",
        "url": (folder / "python.tar.gz").as_uri(),
        "sha256": None,
        "variant": None,
        "build": "20260101",
    }
    (folder / "downloads.json").write_text(json.dumps({"cpython-of-the-test": download}))
    return folder / "downloads.json"


def without_any_python(tools: Tools, program: Path) -> str:
    """Try `doctor --fix` where no Python is new enough and none can be fetched; return a line about its sentence."""
    home, path = tools.place / "nobody", tools.place / "few-programs"
    home.mkdir()
    path.mkdir()
    for name in ("git", "tmux", "ps", "sh"):
        (path / name).symlink_to(shutil.which(name) or "/nowhere")
    environment = scrubbed_environment(
        {"HOME": str(home), "PATH": str(path), "UV_PYTHON_INSTALL_MIRROR": "file:///nowhere", "PYENV_ROOT": str(home)}
    )
    for name in ("SWARM_MNGR", "XDG_DATA_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [program, "doctor", "--fix"], env=environment, cwd=home, capture_output=True, text=True, timeout=_TIMEOUT
    )
    problem = next((line for line in done.stderr.splitlines() if line.startswith("swarm-tui: ")), "")
    if done.returncode != 2 or "none was found; uv cannot download one: " not in problem:
        raise InstallFailed(f"`doctor --fix` without a Python exits with {done.returncode}:\n{done.stderr[-2000:]}")
    return f"where none can be fetched: well ({problem[:80]} ...)"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="swarm-installs-") as place:
        programs = Path(place) / "tools" / "bin"
        run([sys.executable, "-m", "venv", programs.parent], scrubbed_environment())
        run([programs / "pip", "install", "--quiet", "uv", "pipx", "twine"], scrubbed_environment())
        tools = Tools(programs, settings_of_pip(programs / "pip"))
        source, wheel = build(tools)
        run([programs / "twine", "check", "--strict", source, wheel], scrubbed_environment())
        print(f"built {source.name} and, from it, {wheel.name}; twine accepts both", flush=True)
        failures, untried, pythons = missing_files(source, wheel), [], {}
        for version in PYTHONS:
            try:
                pythons[version] = find_python(tools, version)
            except InstallFailed as error:
                untried.append(f"NOT TRIED: Python {version}, which is not on this machine: {error}")
        work: list[Callable[[], str]] = [
            partial(try_it, tools, way, version, python, wheel) for version, python in pythons.items() for way in WAYS
        ]
        work += [partial(fetch_a_python, tools), partial(without_any_python, tools, OWN_PROGRAM)]
        with ThreadPoolExecutor(2) as pool:
            for one in [pool.submit(one) for one in work]:
                try:
                    print(one.result(), flush=True)
                except (InstallFailed, AdapterError) as error:
                    failures.append(str(error))
    print("\n".join([*failures, *untried]), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
