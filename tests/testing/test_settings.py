"""Settings for running a project's tests, with and without a sweep."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.testing.settings import TestSettings, guess_settings
from tests.testing.sums import IMPORT_ROOTS, make_sums


def test_environment_of_project_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository.open(make_sums(tmp_path / "sums").root)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    python = repository.root / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    settings = guess_settings(repository)
    assert (settings.python, settings.import_roots) == (str(python), IMPORT_ROOTS)


def test_key_depends_on_every_setting() -> None:
    settings = [
        TestSettings("python"),
        TestSettings("python3"),
        TestSettings("python", folder="a"),
        TestSettings("python", import_roots=("a",)),
        TestSettings("python", options=("a",)),
        TestSettings("python", setup="a"),
    ]
    assert len({each.key for each in settings}) == len(settings)
    assert TestSettings("python", timeout=1.0).key == TestSettings("python", timeout=2.0).key
