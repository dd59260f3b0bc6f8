"""How the tests go on without a program: skipped by name, counted at the end, and red under CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import PROGRAMS, OutsideProgram, make_program, missing_packages, require_program, summary_of_skips

NOWHERE = OutsideProgram(("no-such-program", "nor-this-one"), apt="nowhere")
WITH_NOWHERE = {**PROGRAMS, "nowhere": NOWHERE}


def test_a_missing_program_skips_a_test_and_fails_it_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        require_program("nowhere", WITH_NOWHERE)
    assert summary_of_skips([str(skipped.value)] * 3 + ["another reason"]) == "nowhere (3 tests)"
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program or nor-this-one is not on PATH, and CI"):
        require_program("nowhere", WITH_NOWHERE)


def test_what_is_missing_is_named_by_its_package() -> None:
    assert "apt nowhere" in missing_packages(WITH_NOWHERE)
    assert not {"apt git", "apt tmux"} & set(missing_packages())


def test_the_program_with_the_most_tests_comes_first() -> None:
    reasons = [f"not tried here for want of {name}: why" for name in ("rsync", "sshd", "sshd")]
    assert summary_of_skips(reasons) == "sshd (2 tests), rsync (1 test)"
    assert summary_of_skips([]) == ""


def test_a_program_is_found_under_any_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_program(tmp_path / "nor-this-one", "exit 0")
    assert NOWHERE.find() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert NOWHERE.find() == str(made)


def test_every_program_can_be_installed() -> None:
    assert [name for name, program in PROGRAMS.items() if not program.apt and not program.npm] == []
    assert [name for name in PROGRAMS if any(character in name for character in " :")] == []
