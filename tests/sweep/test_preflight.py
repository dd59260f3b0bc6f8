"""The preflight reports why tests cannot run in a fresh copy, and how to change that."""

from __future__ import annotations

import shlex
import shutil
import socket
import sys
import textwrap
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.checkouts import fill_commands
from swarm_tui.errors import NothingConcerned, SwarmError, UsageError
from swarm_tui.model.options import RunOptions
from swarm_tui.model.results import Baseline
from swarm_tui.sweep.collect import Found, choose_by_baseline, find_tests
from swarm_tui.sweep.preflight import run_preflight
from tests.git_project import PYTEST_INI, GitProject
from tests.sweep.venv import make_venv, packages_of

pytestmark = pytest.mark.slow

NOT_COMMITTED = "is not committed, so no copy has it"
IGNORED = "is ignored by git, so no copy has it"
COPY_VERSION = """--setup 'cp "$SWARM_CHECKOUT/src/pkg/_version.py" src/pkg/_version.py'"""


@pytest.fixture
def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    project.commit(
        "Begin",
        {
            "pytest.ini": f"{PYTEST_INI}\npythonpath = src\n",
            ".gitignore": "/generated/\n_version.py\n*.bin\n.venv\n",
            "src/pkg/__init__.py": "",
            "tests/test_good.py": "def test_good(): pass\n",
        },
    )
    return project


async def run(
    project: GitProject, *arguments: str, python: str = sys.executable, **options: object
) -> tuple[Found, str]:
    """Return the tests after the preflight, and its output."""
    output: list[str] = []
    repository = Repository.open(project.root)
    fill = fill_commands(repository, repository.head())
    given = RunOptions(pytest_arguments=arguments, python=python, **options)  # type: ignore[arg-type]
    async with run_preflight(repository, repository.head(), given, fill, output.append, lambda _: None) as preflight:
        found = await find_tests(repository, project.root, given, output.append)
        found = await preflight.compare(found)
    return found, "\n".join(output)


def names(found: Found) -> list[str]:
    return [test.rpartition("::")[2] for test, _, _ in found.tests]


async def test_complete_project_is_counted(project: GitProject) -> None:
    found, output = await run(project)
    assert (names(found), found.left_out) == (["test_good"], ())
    assert output.startswith("collecting the tests\npreflight: 1 test (")
    assert not (project.root / ".swarm").exists()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"tests/test_new.py": "def test_x(): pass\n"}, ("tests/test_new.py", NOT_COMMITTED, "commit it")),
        (
            {"tests/test_good.py": "def test_good(): pass\ndef test_x(): pass\n"},
            ("your changes of tests/test_good.py are not committed", "commit it"),
        ),
        (
            {
                "tests/test_x.py": "CASES = open('generated/all/cases.txt').read()\ndef test_x(): pass\n",
                "generated/all/cases.txt": "1\n",
            },
            ("generated/", IGNORED, "$SWARM_CHECKOUT"),
        ),
        (
            {
                "tests/test_x.py": "import pathlib\nHERE = pathlib.Path(__file__).parent\n"
                "CASES = (HERE / 'new.txt').read_text()\ndef test_x(): pass\n",
            },
            ("tests/new.txt", NOT_COMMITTED),
        ),
    ],
)
async def test_missing_files_are_named_and_tests_left_out(
    project: GitProject, files: dict[str, str], words: tuple[str, ...]
) -> None:
    if "tests/test_x.py" in files:
        project.commit("Test", {"tests/test_x.py": files["tests/test_x.py"]})
    project.write(files | ({"tests/new.txt": "new"} if "new.txt" in str(files) else {}))
    found, output = await run(project)
    assert names(found) == ["test_good"]
    (sentence,) = found.left_out
    assert all(word in sentence for word in (*words, "1 test: tests/", "::test_x: "))
    assert f"left out: {sentence}" in output


async def test_no_runnable_test_is_an_error(project: GitProject) -> None:
    project.write({"tests/test_new.py": "def test_x(): pass\ndef test_y(): pass\n"})
    with pytest.raises(SwarmError, match="a fresh copy cannot run any of the 2 tests") as caught:
        await run(project, "tests/test_new.py")
    assert caught.value.exit_code == 1
    assert "  2 tests: tests/test_new.py::test_x, tests/test_new.py::test_y: " in str(caught.value)
    assert f"tests/test_new.py {NOT_COMMITTED} (" in str(caught.value)


async def test_uncommitted_argument_is_left_out(project: GitProject) -> None:
    project.write({"tests/test_new.py": "def test_x(): pass\n"})
    found, _ = await run(project, "tests/test_new.py", str(project.root / "tests/test_good.py"))
    assert names(found) == ["test_good"]


async def test_uncommitted_conftest_is_named(project: GitProject) -> None:
    project.commit("Use", {"tests/test_good.py": "from helper import x\ndef test_good(): pass\n"})
    project.write(
        {"conftest.py": "import sys\nsys.modules['helper'] = type(sys)('helper')\nsys.modules['helper'].x = 1\n"}
    )
    with pytest.raises(SwarmError, match=rf"conftest\.py {NOT_COMMITTED}"):
        await run(project)


FILES_AS_PARAMETERS = """
import glob, os, pytest
@pytest.mark.parametrize("path", sorted(glob.glob(os.path.dirname(__file__) + "/*.txt")))
def test_file(path):
    with open(path) as file:
        assert file.read() == "good"
"""


async def test_checkout_path_in_id_is_found_in_copy(project: GitProject) -> None:
    files = {"tests/test_good.py": FILES_AS_PARAMETERS, "tests/a.txt": "good", "tests/b.txt": "bad"}
    project.commit("Files", files)
    found, _ = await run(project, baseline=1)
    folder = project.root / "tests"
    assert found.baselines == {
        f"tests/test_good.py::test_file[{folder}/a.txt]": Baseline.GREEN,
        f"tests/test_good.py::test_file[{folder}/b.txt]": Baseline.RED,
    }
    assert names(found) == [f"test_file[{folder}/{name}.txt]" for name in "ab"]


async def test_ids_that_change_between_runs_are_reported(project: GitProject) -> None:
    test = "import pytest, uuid\n@pytest.mark.parametrize('x', [uuid.uuid4().hex])\ndef test_x(x): pass\n"
    project.commit("Random", {"tests/test_x.py": test})
    found, _ = await run(project)
    assert names(found) == ["test_good"]
    assert "pytest finds other parameters for them in a copy, such as tests/test_x.py::test_x[" in found.left_out[0]
    assert "keep ids the same in each run" in found.left_out[0]


@pytest.mark.parametrize("settings", ["tests/pytest.ini", "tests/pyproject.toml", "tests/setup.py"])
async def test_single_test_runs_with_settings_of_all(project: GitProject, settings: str) -> None:
    """pytest would find others beside the one test."""
    content = "[pytest]\naddopts = --no-such-option\n" if settings.endswith(".ini") else ""
    project.commit("Nearer", {"pytest.ini": None, settings: content})
    found, _ = await run(project, baseline=1)
    assert found.baselines == {"tests/test_good.py::test_good": Baseline.GREEN}


async def test_submodules_are_copied_and_empty_ones_named(project: GitProject, tmp_path: Path) -> None:
    library = GitProject(tmp_path / "library")
    library.commit("Library", {"lib/__init__.py": "X = 1\n"})
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "vendor")
    test = "import sys\nsys.path.insert(0, 'vendor')\nimport lib\ndef test_lib(): pass\n"
    project.commit("Use", {"tests/test_lib.py": test})
    found, _ = await run(project)
    assert names(found) == ["test_good", "test_lib"]
    shutil.rmtree(project.root / ".git/modules")
    found, _ = await run(project)
    assert names(found) == ["test_good"]
    assert "the submodule vendor is empty in a copy" in found.left_out[0]
    assert "`git submodule update --init vendor`" in found.left_out[0]


async def test_lfs_pointer_in_copy_is_named(project: GitProject) -> None:
    test = "def test_size():\n    assert len(open('cases.dat').read()) < 10, 'cases.dat is not the real one'\n"
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n"
    project.commit("Large", {"tests/test_size.py": test, "cases.dat": pointer})
    project.write({"cases.dat": "real"})
    found, _ = await run(project, baseline=1)
    assert names(found) == ["test_good"]
    assert "cases.dat is only a Git LFS pointer in a copy" in found.left_out[0]
    assert "install git-lfs" in found.left_out[0]


async def test_failed_setup_is_reported_with_code_and_output(project: GitProject) -> None:
    with pytest.raises(SwarmError, match="set-up command failed with code 3 in a fresh copy") as caught:
        await run(project, setup="seq 30; echo 'no compiler' >&2; exit 3")
    assert "  30\n  no compiler" in str(caught.value)
    assert caught.value.exit_code == 1


MODULE = "src/pkg/_version.py"
USE = "def test_x(): pass\n"
OPTIONAL = "try:\n    from ._version import V\nexcept ImportError:\n    V = 0\n"
COPY_FOLDER = """--setup 'mkdir -p src/pkg/proto && cp -R "$SWARM_CHECKOUT/src/pkg/proto"/. src/pkg/proto'"""
COPY_MADE = """--setup 'mkdir -p made && cp -R "$SWARM_CHECKOUT/made"/. made'"""
IMPORTS_OF_IGNORED_MODULES = {
    "by a test": ({"tests/test_x.py": f"from pkg._version import V\n{USE}"}, MODULE, COPY_VERSION),
    "from its package": ({"tests/test_x.py": f"from pkg import _version\n{USE}"}, MODULE, COPY_VERSION),
    "by the conftest": (
        {"src/pkg/__init__.py": "from ._version import V\n", "conftest.py": "import pkg\n", "tests/test_x.py": USE},
        MODULE,
        COPY_VERSION,
    ),
    "in a test function": (
        {"tests/test_x.py": "def test_x():\n    from pkg._version import V\n"},
        MODULE,
        COPY_VERSION,
    ),
    "by a module that a test function imports": (
        {"tests/test_x.py": "def test_x():\n    import pkg.late\n", "src/pkg/late.py": "from ._version import V\n"},
        MODULE,
        COPY_VERSION,
    ),
    "in a function of the program": (
        {"src/pkg/cli.py": "def run():\n    from . import _version\n", "tests/test_x.py": f"import pkg.cli\n{USE}"},
        MODULE,
        COPY_VERSION,
    ),
    "a package": (
        {"tests/test_x.py": f"from pkg.proto import x_pb2\n{USE}", ".gitignore": "proto/\n"},
        "src/pkg/proto/x_pb2.py",
        COPY_FOLDER,
    ),
    "a folder of modules": (
        {
            "tests/test_x.py": f"import made_module\n{USE}",
            "pytest.ini": f"{PYTEST_INI}\npythonpath = made\n",
            ".gitignore": "made\n",
        },
        "made/made_module.py",
        COPY_MADE,
    ),
}


@pytest.mark.parametrize(
    ("committed", "ignored", "copying"), IMPORTS_OF_IGNORED_MODULES.values(), ids=list(IMPORTS_OF_IGNORED_MODULES)
)
async def test_ignored_module_stops_sweep_with_setup_option(
    project: GitProject, committed: dict[str, str], ignored: str, copying: str
) -> None:
    project.commit("Use", committed)
    project.write({ignored: "V = 1\n"})
    with pytest.raises(UsageError, match="ignored by git, so the agents' copies lack it") as caught:
        await run(project)
    assert copying in caught.value.hint
    (setup,) = shlex.split(copying)[1:]
    found, _ = await run(project, setup=setup)
    assert (names(found), found.left_out) == (["test_good", "test_x"], ())


async def test_ignored_module_on_host_needs_other_setup(project: GitProject) -> None:
    project.commit("Use", {"tests/test_x.py": f"from pkg._version import V\n{USE}"})
    project.write({MODULE: "V = 1\n"})
    with pytest.raises(UsageError) as caught:
        await run(project, hosts=("box",))
    assert caught.value.hint == "add --setup CMD, which creates it on each host, or commit it"


async def test_ignored_module_is_found_by_baseline(project: GitProject) -> None:
    test = "import importlib\ndef test_x():\n    importlib.import_module('pkg._version')\n"
    project.commit("Use", {"tests/test_x.py": test})
    project.write({MODULE: "V = 1\n"})
    with pytest.raises(UsageError) as caught:
        await run(project, baseline=1)
    assert COPY_VERSION in caught.value.hint


async def test_ignored_modules_are_copied_after_given_setup(project: GitProject) -> None:
    test = f"from pkg import _version, _date\n{USE}"
    project.commit("Use", {"tests/test_x.py": test, ".gitignore": "_version.py\n_date.py\n"})
    project.write({MODULE: "V = 1\n", "src/pkg/_date.py": ""})
    copying = 'cp "$SWARM_CHECKOUT/src/pkg/_version.py" src/pkg/_version.py'
    with pytest.raises(UsageError) as caught:
        await run(project, setup='echo "it\'s ready"')
    _, option = shlex.split(caught.value.hint.removeprefix("add ").removesuffix(", or commit it"))
    assert option == f'echo "it\'s ready" && {copying}'
    with pytest.raises(UsageError) as caught:
        await run(project, setup=option)
    _, option = shlex.split(caught.value.hint.removeprefix("add ").removesuffix(", or commit it"))
    found, _ = await run(project, setup=option)
    assert names(found) == ["test_good", "test_x"]


@pytest.mark.parametrize(
    "committed",
    [
        {"src/pkg/__init__.py": OPTIONAL},
        {"src/pkg/__init__.py": "def v():\n" + textwrap.indent(OPTIONAL, "    ")},
        {"docs/conf.py": "from pkg._version import V\n"},
        {
            "tests/test_late.py": "def test_late():\n    import pkg.late\n",
            "src/pkg/late.py": "import sys\nif sys.platform == 'other':\n    from ._version import V\n",
        },
        {"src/pkg/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._version import V\n"},
    ],
)
async def test_optional_ignored_module_does_not_stop_sweep(project: GitProject, committed: dict[str, str]) -> None:
    project.commit("Use", committed | {"tests/test_good.py": "import pkg\ndef test_good(): pass\n"})
    project.write({MODULE: "V = 1\n"})
    found, _ = await run(project)
    assert ("test_good" in names(found), found.left_out) == (True, ())


async def test_ignored_module_of_editable_install_stops_sweep(project: GitProject, tmp_path: Path) -> None:
    """black's _black_version.py: a copy would import it from the checkout, and its agents would test that."""
    venv = make_venv(tmp_path / "venv")
    (packages_of(venv) / "project.pth").write_text(str(project.root / "src"))
    files = {"src/pkg/__init__.py": "from _pkg_version import V\n", "tests/test_good.py": f"import pkg\n{USE}"}
    project.commit("Use", files | {"pytest.ini": PYTEST_INI, ".gitignore": "_pkg_version.py\n"})
    project.write({"src/_pkg_version.py": "V = 1\n"})
    with pytest.raises(UsageError) as caught:
        await run(project, python=str(venv / "bin/python"))
    assert """--setup 'cp "$SWARM_CHECKOUT/src/_pkg_version.py" src/_pkg_version.py'""" in caught.value.hint


async def test_files_of_setup_exist_in_copy(project: GitProject) -> None:
    project.commit("Use", {"tests/test_x.py": "from pkg._version import V\ndef test_x(): pass\n"})
    project.write({"src/pkg/_version.py": "V = 1\n"})
    found, _ = await run(project, setup=COPY_VERSION.split("'")[1])
    assert (names(found), found.left_out) == (["test_good", "test_x"], ())


async def test_modules_imported_from_checkout_are_named(project: GitProject) -> None:
    where = str(project.root / "src")
    project.commit(
        "Bind",
        {
            "pytest.ini": PYTEST_INI,
            "tests/conftest.py": f"import sys\nsys.path.insert(0, {where!r})\n",
            "tests/test_good.py": "import pkg\ndef test_good(): pass\n",
        },
    )
    _, output = await run(project)
    assert "tests in a copy import pkg from your checkout" in output


async def test_ignored_files_are_listed(project: GitProject) -> None:
    project.write({"generated/a.txt": "", "x.bin": "", ".venv/pyvenv.cfg": "", "src/__pycache__/a.pyc": ""})
    _, output = await run(project)
    assert "ignored by git and missing in copies: generated/, x.bin (" in output


BASELINE = """\
import os, pathlib, time
COUNT = pathlib.Path(os.environ["SWARM_TEST_COUNT"])

def test_green(): pass
def test_red(): assert 0
def test_skipped():
    import pytest
    pytest.skip("not here")
def test_needs(): open("generated/a.txt")
def test_flaky():
    number = len(list(COUNT.iterdir()))
    (COUNT / str(number)).touch()
    assert number % 2
def test_port():
    import socket
    with socket.socket() as server:
        server.bind(("127.0.0.1", PORT))
        time.sleep(1.0)
"""


async def test_baseline_finds_red_flaky_and_conflicting_tests(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    (tmp_path / "count").mkdir()
    monkeypatch.setenv("SWARM_TEST_COUNT", str(tmp_path / "count"))
    project.commit("Tests", {"tests/test_good.py": BASELINE.replace("PORT)", f"{free_port})")})
    project.write({"generated/a.txt": ""})
    found, output = await run(project, baseline=2)
    assert {test.rpartition("::test_")[2]: baseline.value for test, baseline in found.baselines.items()} == {
        "green": "green", "red": "red", "skipped": "skipped", "needs": "red", "flaky": "flaky", "port": "clash",
    }  # fmt: skip
    assert "test_needs" not in names(found)
    assert f"1 test: tests/test_good.py::test_needs: generated/ {IGNORED} (" in found.left_out[0]
    assert "flaky: tests/test_good.py::test_flaky" in output
    assert "fails with other tests, passes alone; will run separately: tests/test_good.py::test_port" in output
    chosen = {only: names(choose_by_baseline(found, only)) for only in ("red", "flaky", "green")}
    assert chosen == {"red": ["test_red"], "flaky": ["test_flaky", "test_port"], "green": ["test_green"]}


async def test_baseline_of_one_run_shares_tests_between_copies(project: GitProject) -> None:
    found, output = await run(project, str(project.root / "tests"), baseline=1)
    assert set(found.baselines.values()) == {Baseline.GREEN}
    assert "baseline, 1 run: 1 green (" in output
    with pytest.raises(NothingConcerned, match=r"no test is red in a fresh copy \(1 green\)") as caught:
        choose_by_baseline(found, "red")
    assert caught.value.exit_code == 0


LEAVES_STATE = """
import os
def test_first(): os.environ["SWARM_TEST_MODE"] = "broken"; assert 0
def test_second(): assert "SWARM_TEST_MODE" not in os.environ
def test_third(): assert "SWARM_TEST_MODE" not in os.environ
"""


async def test_failure_only_after_red_test_is_not_red(project: GitProject) -> None:
    project.commit("Tests", {"tests/test_good.py": LEAVES_STATE})
    found, _ = await run(project, baseline=1)
    assert list(found.baselines.values()) == [Baseline.RED, Baseline.CLASH, Baseline.CLASH]


async def test_pass_only_after_other_tests_is_not_red(project: GitProject) -> None:
    """It needs a test of the first file; the two files are not in one batch."""
    begins = "import os, pytest\ndef test_begin(): os.environ['SWARM_TEST_MODE'] = 'ready'\n"
    many = "@pytest.mark.parametrize('x', range(80))\ndef test_many(x): pass\n"
    needs = "import os\ndef test_needs(): assert os.environ['SWARM_TEST_MODE'] == 'ready'\ndef test_red(): assert 0\n"
    project.commit("Tests", {"tests/test_a.py": begins + many, "tests/test_b.py": needs})
    found, output = await run(project, baseline=1)
    assert found.baselines["tests/test_b.py::test_needs"] is Baseline.ORDER
    assert found.baselines["tests/test_b.py::test_red"] is Baseline.RED
    assert "passes only after other tests: tests/test_b.py::test_needs" in output
    assert names(choose_by_baseline(found, "flaky")) == ["test_needs"]


async def test_baseline_reports_why_a_result_is_unknown(project: GitProject) -> None:
    project.commit("Exit", {"conftest.py": "import os\ndef pytest_sessionfinish(): os._exit(3)\n"})
    _, output = await run(project, baseline=1)
    reason = "pytest exited with code 0, but its process with code 3"
    assert f"  unknown: 1 test: tests/test_good.py::test_good: {reason}" in output


async def test_tests_of_one_file_run_in_one_process(project: GitProject) -> None:
    """A file of more tests than a batch is not divided, so the last test finds what the first one left."""
    begins = "import os, pytest\ndef test_begin(): os.environ['SWARM_TEST_MODE'] = 'ready'\n"
    many = "@pytest.mark.parametrize('x', range(80))\ndef test_many(x): pass\n"
    needs = "def test_needs(): assert os.environ['SWARM_TEST_MODE'] == 'ready'\n"
    project.commit("Tests", {"tests/test_a.py": begins + many + needs})
    found, _ = await run(project, baseline=1)
    assert found.baselines["tests/test_a.py::test_needs"] is Baseline.GREEN
