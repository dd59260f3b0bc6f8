"""What a sweep has seen of its tests chooses those of the next one, with a real engine, real agents and real git."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.git_project import PYTEST_INI, GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, offline

pytestmark = pytest.mark.slow

SHOP = "def price():\n    return 3\n\n\ndef name():\n    return 'x'\n"
TESTS = (
    "import subprocess\nimport shop\n\n\ndef test_price(): assert shop.price() > 0\n\n\n"
    "def test_name(): assert shop.name()\n\n\ndef test_program(): assert subprocess.run(['true']).returncode == 0\n"
)


def test_affected_by_selects_tests_that_use_changed_code(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    project = GitProject(tmp_path / "shop")
    project.commit("Begin", {"pytest.ini": PYTEST_INI, "shop.py": SHOP, "test_shop.py": TESTS})
    (tmp_path / "records").mkdir()
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})

    def reasons(*words: str) -> dict[str, str]:
        done = program.call("run", "--python", sys.executable, "--explain", "--affected-by", *words)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stdout.splitlines() if line.startswith(("run ", "pass"))]
        return {line.split("::")[1].partition(":")[0]: line.rpartition("::")[2].partition(": ")[2] for line in lines}

    project.commit("Change", {"shop.py": SHOP.replace("3", "4")})
    assert set(reasons("HEAD~1").values()) == {"the code that it uses is unknown"}
    swept = program.call("run", "--headless", "--record-use", *offline(str(tmp_path / "records")))
    assert swept.returncode == 0, swept.stderr
    project.commit("Change it again", {"shop.py": SHOP.replace("3", "5")})
    assert reasons("HEAD~1") == {
        "test_price": "it runs price of shop.py, which has changed",
        "test_name": "",
        "test_program": "it starts other programs, whose code is not recorded",
    }
    project.commit("Say more", {"README.md": "more\n"})
    assert reasons("HEAD~1")["test_price"].startswith("it runs price of shop.py, which has changed since its code")
    none = program.call("run", "--python", sys.executable, "--affected-by", "HEAD", "-k", "name")
    assert none.returncode == 2, "pytest's arguments come after --"
    none = _run_none(program)
    assert (none.returncode, "no test is affected" in none.stderr) == (0, True), none.stderr


def _run_none(program: Program) -> subprocess.CompletedProcess[str]:
    words = ("--affected-by", "HEAD", "--headless", *offline("records"))
    (program.folder / "records").mkdir()
    return program.call("run", *words, "--", "-k", "test_name")
