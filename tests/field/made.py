"""Projects that were made to be hard in one way each, as projects of other people are."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui.adapters.python_env import make_own_venv
from tests.field.project import FieldProject, KnownBug, ReadyProject, base_python, call
from tests.git_project import PYTEST_INI, GitProject

SUMS: Final = "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n"
BUG_IN_SUMS: Final = ("return a + b", "return a - b")
IGNORED: Final = ".venv/\n__pycache__/\n.pytest_cache/\n.coverage*\n"


def _environment(root: Path, *editable: str) -> str:
    """Make an environment over the one of this suite, in which folders of the project are installed editable."""
    python = make_own_venv(root / ".venv", sys.executable)
    packages = next((root / ".venv").glob("lib/python*/site-packages"))
    # The suite's own packages are not the project's: its e2e fixture stays out.
    (packages / "editable.pth").write_text("".join(f"{root / folder}\n" for folder in editable))
    return str(python)


def _make(files: dict[str, str], editable: tuple[str, ...], root: Path) -> ReadyProject:
    repository = GitProject(root)
    repository.commit("Begin", {".gitignore": IGNORED, **files})
    return ReadyProject(repository, _environment(root, *editable))


def _made(
    name: str,
    habit: str,
    files: dict[str, str],
    results: dict[str, str],
    *,
    editable: tuple[str, ...] = (),
    **more: object,
) -> FieldProject:
    bug = more.pop("bug", None) or KnownBug("sums.py", *BUG_IN_SUMS)
    fields = {"arguments": (), "options": ("--slots", "2"), "is_quick": True} | more
    return FieldProject(name, habit, partial(_make, files, editable), bug, results, **fields)  # type: ignore[arg-type]


MONOREPO: Final = _made(
    "monorepo",
    "a sibling outside of pytest's rootdir, installed editable; the bug is in the sibling",
    {
        "libs/core/src/core/__init__.py": SUMS,
        "libs/space/one/shared/first.py": "from core import add\n",
        "libs/space/two/shared/second.py": "from core import twice\n",
        "apps/web/web.py": "from core import add, twice\nfrom shared.first import add as first\n",
        "apps/web/pytest.ini": PYTEST_INI,
        "apps/web/tests/test_web.py": (
            "import web\nfrom shared import second\n\n\n"
            "def test_add():\n    assert web.add(2, 3) == 5\n\n\n"
            "def test_nothing():\n    assert web.twice(0) == second.twice(0) == 0\n"
        ),
    },
    {"tests/test_web.py::test_add": "impl_fix", "tests/test_web.py::test_nothing": "clean"},
    editable=("libs/core/src", "libs/space/one", "libs/space/two", "apps/web"),
    bug=KnownBug("libs/core/src/core/__init__.py", *BUG_IN_SUMS),
    folder="apps/web",
)

EVIL_IDS: Final = [
    *(
        "$(touch pwned)",
        "`id`",
        "[/red]",
        "<b>{x}%s",
        "a b/c",
        "a::b",
        "-x",
        "..",
        "a\\nb",
        "'\"",
        "*?~!#&;|",
        "ü\U0001f600",
    ),
    "x" * 300,
]
EVIL: Final = _made(
    "evil-ids",
    "names that a shell, a path or a terminal would take for its own",
    {
        "pytest.ini": f"{PYTEST_INI}\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n",
        "sums.py": SUMS,
        "tests/-odd folder/test_é $x.py": (
            "import glob\nimport os\nimport pytest\nimport sums\n\n\n"
            "@pytest.mark.parametrize('path', glob.glob(os.path.dirname(os.path.abspath(__file__)) + '/*.py'))\n"
            "def test_path(path):\n    assert os.path.samefile(path, __file__)\n\n\n"
            f"@pytest.mark.parametrize('name', {EVIL_IDS!r}, ids=str)\n"
            "def test_name(name):\n    assert sums.twice(0) == 0\n\n\n"
            "def test_add():\n    assert sums.add(1, 1) == 2\n"
        ),
    },
    {"tests/-odd folder/test_é $x.py::test_add": "impl_fix"},
    options=("--slots", "4"),
)

OUTCOMES: Final = """import os
import unittest

import pytest
import sums


def test_add():
    assert sums.add(2, 2) == 4


@pytest.mark.skip(reason="no such device")
def test_skipped():
    pass


@pytest.mark.xfail(strict=True, reason="a known bug")
def test_expected():
    assert sums.twice(1) == 3


@pytest.mark.xfail(strict=True)
def test_unexpected():
    pass


def test_leaves():
    os._exit(0)


class TestParts(unittest.TestCase):
    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 0)


def test_good():
    assert sums.twice(0) == 0
"""
TEST: Final = "tests/test_it.py"


REPORTS: Final = "--cov-report=html --cov-report=xml --junitxml=report.xml"


def _make_thresholds(root: Path) -> ReadyProject:
    repository = GitProject(root)
    addopts = "-n auto --cov=sums --cov-fail-under=100 --ff -x --reruns 1 --strict-markers -p no:doctest"
    plugins = "pytest-cov pytest-xdist pytest-rerunfailures"
    settings = f"[pytest]\naddopts = {addopts} {REPORTS}\nlog_file = run.log\nrequired_plugins = {plugins}\n"
    more = "def never():\n    return 'covered'\n"
    repository.commit(
        "Begin",
        {".gitignore": IGNORED, "pytest.ini": settings, "sums.py": f"{SUMS}\n\n{more}", TEST: OUTCOMES},
    )
    call(base_python(), "-m", "venv", root / ".venv")
    python = root / ".venv/bin/python"
    wanted = (
        "pytest==8.4.2",
        "pytest-cov==7.0.0",
        "pytest-xdist==3.8.0",
        "pytest-rerunfailures==16.1",
        "pytest-benchmark==5.2.3",
    )
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    return ReadyProject(repository, str(python))


THRESHOLDS: Final = FieldProject(
    "thresholds",
    "-n auto, a threshold of coverage, --ff, -x, reruns, required plugins, reports; every kind of result",
    _make_thresholds,
    KnownBug("sums.py", *BUG_IN_SUMS),
    {
        f"{TEST}::test_add": "impl_fix",
        f"{TEST}::test_skipped": "skipped",
        f"{TEST}::test_expected": "clean",
        f"{TEST}::test_unexpected": "unresolved",
        f"{TEST}::test_leaves": "unresolved",
        f"{TEST}::TestParts::test_parts": "unresolved",
        f"{TEST}::test_good": "clean",
    },
    (),
    ("--slots", "2"),
    is_quick=True,
)

CLASHES: Final = """import os
import socket

import pytest
import sums


def claim():
    port = int(os.environ.get("SWARM_FIRST_PORT", "47613"))
    with socket.create_server(("127.0.0.1", port)), open(os.path.join(os.environ["TMPDIR"], "claimed"), "x"):
        os.unlink(os.path.join(os.environ["TMPDIR"], "claimed"))


def test_add():
    claim()
    assert sums.add(1, 2) == 3


@pytest.mark.parametrize("number", range(5))
def test_beside_others(number):
    claim()
"""
SIDE_BY_SIDE: Final = _made(
    "side-by-side",
    "tests that claim a port and a file, while others do the same",
    {"pytest.ini": PYTEST_INI, "sums.py": SUMS, TEST: CLASHES},
    {f"{TEST}::test_add": "impl_fix"},
    options=("--slots", "4"),
)


def _make_with_submodule(root: Path) -> ReadyProject:
    library = GitProject(root.with_name("library"))
    library.commit("Begin", {"words.py": "def greet():\n    return 'hello'\n"})
    repository = GitProject(root)
    repository.commit(
        "Begin",
        {
            ".gitignore": IGNORED,
            "pytest.ini": PYTEST_INI,
            "sums.py": SUMS,
            "data/large.txt": "1 2 3\n",
            TEST: (
                "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'vendored'))\n"
                "import sums, words\n\n\ndef test_add():\n    assert sums.add(1, 2) == 3\n\n\n"
                "def test_greeting():\n    assert words.greet() == 'hello'\n"
            ),
        },
    )
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "vendored")
    repository.commit("Take the library in")
    return ReadyProject(repository, _environment(root))


SUBMODULES: Final = FieldProject(
    "submodules",
    "a library that is another repository",
    _make_with_submodule,
    KnownBug("sums.py", *BUG_IN_SUMS),
    {f"{TEST}::test_add": "impl_fix", f"{TEST}::test_greeting": "clean"},
    (),
    ("--slots", "2"),
    is_quick=True,
)


def _make_with_own_python(root: Path) -> ReadyProject:
    repository = GitProject(root)
    repository.commit(
        "Begin",
        {
            ".gitignore": IGNORED,
            "pytest.ini": PYTEST_INI,
            "src/sums.py": SUMS,
            "make-environment": "#!/bin/sh\nset -e\n"
            f"{sys.executable} -c 'from swarm_tui.adapters.python_env import make_own_venv; from pathlib import Path; "
            f'make_own_venv(Path(".venv").absolute(), "{sys.executable}")\'\n'
            'echo "$PWD/src" > "$(echo .venv/lib/python*/site-packages)/editable.pth"\n',
            TEST: "import sys\nimport sums\n\n\ndef test_add():\n    assert sums.add(1, 2) == 3\n\n\n"
            "def test_python():\n    import pathlib\n"
            "    assert pathlib.Path(sys.prefix).parent == pathlib.Path(__file__).parents[1]\n",
        },
    )
    call("sh", "make-environment", folder=root)
    return ReadyProject(repository, str(root / ".venv/bin/python"))


OWN_PYTHON: Final = FieldProject(
    "own-python",
    "--python .venv/bin/python: each copy makes an environment of its own",
    _make_with_own_python,
    KnownBug("src/sums.py", *BUG_IN_SUMS),
    {f"{TEST}::test_add": "impl_fix", f"{TEST}::test_python": "clean"},
    (),
    ("--slots", "2", "--python", ".venv/bin/python", "--setup", "sh make-environment"),
    is_quick=True,
)

MADE: Final = (MONOREPO, EVIL, THRESHOLDS, SIDE_BY_SIDE, SUBMODULES, OWN_PYTHON)
