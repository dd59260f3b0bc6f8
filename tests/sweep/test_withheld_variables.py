"""A project that needs a variable which it does not get is told so, with the option that passes it."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError
from swarm_tui.model.run_limits import RunLimits
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.collect import collect_tests, missed_variable, report_withheld
from swarm_tui.sweep.context import agents_environment
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings
from tests.git_project import PYTEST_INI, GitProject

SECRETS = {"DATABASE_URL": "postgres://ada:lovelace@db/shop", "MYAPP_CREDS": "ada", "XDG_NOTE": "ghp_" + "a1" * 18}
WRITES_ENVIRONMENT = """import json, os


def test_writes_environment():
    with open({path!r}, "w") as file:
        json.dump(dict(os.environ), file)
"""


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = GitProject(tmp_path / "project")
    made.commit("Begin", {"pytest.ini": PYTEST_INI, "shop.py": "import os\n\nDB = os.environ.get('DATABASE_URL')\n"})
    return made


@pytest.mark.parametrize(
    ("passed", "seen"), [((), set()), (("DATABASE_URL", "XDG_NOTE"), {"DATABASE_URL", "XDG_NOTE"})]
)
async def test_test_run_gets_only_what_is_passed(
    project: GitProject, tmp_path: Path, passed: tuple[str, ...], seen: set[str]
) -> None:
    target = tmp_path / "environment.json"
    base = project.commit("Test", {"test_it.py": WRITES_ENVIRONMENT.format(path=str(target))})
    settings = TestSettings(sys.executable, limits=RunLimits(passed_environment=passed))
    repository = Repository.open(project.root)
    with ObjectSpace(repository) as space:
        async with TestCopies(space, settings, base=base) as copies:
            run = await copies.run(repository.tree_of(base), ["test_it.py::test_writes_environment"])
    assert run.is_green("test_it.py::test_writes_environment"), run
    environment = json.loads(target.read_text())
    assert SECRETS.keys() & environment.keys() == seen
    assert environment["PATH"] == os.environ["PATH"]


def test_agents_get_only_what_is_passed(project: GitProject) -> None:
    fields = {"sweep": "1", "repository": str(project.root), "base": "a", "created_at": 1.0}
    spec = SweepSpec(**fields, mngr=MngrSettings(path="mngr", home=os.environ["HOME"]))  # type: ignore[arg-type]
    repository = Repository.open(project.root)
    assert not SECRETS.keys() & agents_environment(spec, repository).keys()
    passing = dataclasses.replace(spec, passed_environment=("MYAPP_CREDS",))
    assert SECRETS.keys() & agents_environment(passing, repository).keys() == {"MYAPP_CREDS"}


def test_variables_that_the_project_reads_are_reported(project: GitProject) -> None:
    repository = Repository.open(project.root)
    sentences = report_withheld(repository, repository.head(), ())
    assert sentences == [
        "XDG_NOTE contains a secret, so that agents and test runs do not get it: --pass-env XDG_NOTE passes it",
        "the project reads DATABASE_URL, but agents and test runs do not get that: --pass-env DATABASE_URL",
    ]
    assert report_withheld(repository, repository.head(), SECRETS) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("E   KeyError: 'DATABASE_URL'", "DATABASE_URL"),
        ("    db = os.environ['DATABASE_URL']", "DATABASE_URL"),
        ("RuntimeError: the environment variable MYAPP_CREDS is missing", "MYAPP_CREDS"),
        ("ImproperlyConfigured: Set the DATABASE_URL environment variable", "DATABASE_URL"),
        ("MYAPP_CREDS must be set", "MYAPP_CREDS"),
        ("assert DATABASE_URL == 'x'", ""),
        ("KeyError: 'OTHER_DATABASE_URL'", ""),
        ("KeyError: 'NOT_SET_HERE'", ""),
    ],
)
def test_missed_variable_is_found_in_a_message(text: str, name: str) -> None:
    assert missed_variable(text, ()) == name
    assert missed_variable(text, SECRETS) == ""


async def test_collection_that_misses_a_variable_names_the_option(project: GitProject) -> None:
    project.write({"conftest.py": "import os\n\nos.environ['DATABASE_URL']\n", "test_it.py": "def test_it(): pass\n"})
    repository = Repository.open(project.root)
    with pytest.raises(SwarmError, match="--pass-env DATABASE_URL"):
        await collect_tests(repository, project.root, sys.executable, [])
    _, collected = await collect_tests(repository, project.root, sys.executable, [], passed=["DATABASE_URL"])
    assert [found.test for found in collected.tests] == ["test_it.py::test_it"]
