"""The field's quick projects: a sweep over each is right in every respect. `python -m tests.field` has all of them."""

from __future__ import annotations

import tempfile
import urllib.error
from pathlib import Path

import pytest

from swarm_tui.adapters.scratch import short_folder
from tests.checkout_state import changes_between, state_of
from tests.field.made import MADE
from tests.field.project import FieldProject
from tests.field.public import PUBLIC
from tests.field.sweep import sweep_over
from tests.git_project import GitProject
from tests.programs import skip_without_program

QUICK = [project for project in (*PUBLIC, *MADE) if project.is_quick]


@pytest.mark.slow
@pytest.mark.parametrize("project", QUICK, ids=lambda project: project.name)
def test_a_sweep_is_right_in_every_respect(project: FieldProject, mngr_path: str) -> None:
    # A path of more than 100 characters is no name of a parameter for pytest: the folder has a short one.
    with tempfile.TemporaryDirectory(prefix="field-", dir=short_folder()) as folder:
        try:
            row = sweep_over(project, mngr_path, Path(folder))
        except urllib.error.URLError as error:
            skip_without_program("PyPI", str(error))
    assert row.faults == {}


def test_the_field_has_the_breadth_that_it_promises() -> None:
    assert len(PUBLIC) >= 12
    assert sum(project.is_quick for project in PUBLIC) == 3
    assert all(project.is_quick for project in MADE)
    names = [project.name for project in (*PUBLIC, *MADE)]
    assert len(set(names)) == len(names)


def test_every_change_of_a_checkout_is_seen_but_what_is_announced(tmp_path: Path) -> None:
    project = GitProject(tmp_path)
    project.commit("Begin", {"a.txt": "a", "b/c.txt": "c", "d.txt": "d"})
    before = state_of(tmp_path)
    assert changes_between(before, state_of(tmp_path)) == []
    project.write({".swarm/runs/1/sweep.json": "{}"})
    project.git("update-ref", "refs/swarm/1/x", "HEAD")
    project.git("branch", "swarm/1/integrated")
    assert changes_between(before, state_of(tmp_path)) == []
    (tmp_path / "a.txt").touch()
    (tmp_path / "b/c.txt").write_text("other")
    (tmp_path / "d.txt").chmod(0o600)
    project.write({".coverage": ""})
    project.git("config", "user.name", "Somebody")
    assert changes_between(before, state_of(tmp_path)) == [
        "made .coverage",
        "changed .git/config",
        "touched a.txt",
        "changed b/c.txt",
        "changed d.txt",
    ]
