"""`mngr swarm`, in an environment that has a real mngr and this checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from tests.isolation import IsolatedMngr

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROGRAM = "#!{python}\nfrom imbue.mngr.main import cli\ncli()\n"


@pytest.fixture(scope="module")
def mngr(mngr_path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mngr like the installed one, with this checkout of swarm-tui in the same environment."""
    folder = tmp_path_factory.mktemp("both")
    python = Path(mngr_path).resolve().with_name("python")
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    theirs, own = (
        subprocess.run([each, "-c", find], check=True, capture_output=True, text=True).stdout.strip()
        for each in (python, folder / "bin" / "python")
    )
    # Dependencies of swarm-tui alone come from its own environment, except for one that is compiled for each Python.
    (Path(own) / "both.pth").write_text("\n".join([theirs, str(ROOT), sysconfig.get_path("purelib")]))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    version = Path(own).parent.name.removeprefix("python")
    compiled = f"msgspec=={metadata.version('msgspec')}"
    subprocess.run([*install, f"--python-version={version}", f"--target={own}", compiled], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    described = Path(own) / "swarm_tui-0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: swarm-tui\nVersion: 0\n")
    points = "\n".join(f"{name} = {place}" for name, place in project["entry-points"]["mngr"].items())
    (described / "entry_points.txt").write_text(f"[mngr]\n{points}\n")
    program = folder / "bin" / "mngr"
    program.write_text(PROGRAM.format(python=folder / "bin" / "python"))
    program.chmod(0o755)
    return program


def run(mngr: Path, isolated: IsolatedMngr, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(mngr), "swarm", *words],
        env=isolated.environment | variables,
        cwd=isolated.repository,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def test_mngr_has_our_commands(mngr: Path, isolated_mngr: IsolatedMngr) -> None:
    helped = run(mngr, isolated_mngr, "--help")
    assert helped.returncode == 0, helped.stderr
    assert "review the fixes of a sweep" in helped.stdout
    # Options are swarm-tui's own.
    helped = run(mngr, isolated_mngr, "run", "--help")
    assert "--headless" in helped.stdout
    assert helped.stdout.startswith("usage: mngr swarm run ")
    assert "swarm-tui run" not in helped.stdout
    shown = run(mngr, isolated_mngr, "watch", "--plain")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Agents of mngr")


def test_settings_are_where_those_of_mngrs_plugins_are(mngr: Path, isolated_mngr: IsolatedMngr) -> None:
    refused = run(mngr, isolated_mngr, "status", MNGR__PLUGINS__SWARM__OPTIONS__STATUS=json.dumps(["--nonsense"]))
    assert refused.returncode == 2
    assert "--nonsense" in refused.stderr
