"""Records are validated strictly, and errors name the invalid step."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.agents.offline.records import BadRecord, RecordedStep, find_record, parse_record
from tests.sweep.endings import STEPS


def test_record_has_test_and_steps() -> None:
    text = 'test = "a::b"\nsummary = "s"\n[[step]]\nedit = "src/x.py"\nold = "a"\nnew = "b"\n[[step]]\nsleep = 1.5\n'
    record = parse_record(text)
    assert record.test == "a::b"
    assert record.steps == (RecordedStep("edit", "src/x.py", {"old": "a", "new": "b"}), RecordedStep("sleep", 1.5))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("test = ", "invalid TOML"),
        ('summary = "x"', "`test` is missing"),
        ('test = "a"\nstpe = 1', "unknown keys: stpe"),
        ('test = "a"\n[[step]]\nshout = "x"', "step 1 must have exactly one of"),
        ('test = "a"\n[[step]]\nsay = "x"\nrun = "y"', "step 1 must have exactly one of"),
        ('test = "a"\n[[step]]\nsay = "x"\n[[step]]\ncommit = "FIX"', "step 2: `commit` must be one of IMPROVE_TEST"),
        ('test = "a"\n[[step]]\nedit = "../x"', "is outside of the checkout"),
        ('test = "a"\n[[step]]\nwrite = "/etc/x"', "is outside of the checkout"),
        ('test = "a"\n[[step]]\nsleep = "long"', "invalid value for `sleep`"),
        ('test = "a"\n[[step]]\nsay = "x"\nloud = "y"', "other keys of `say` must be"),
    ],
)
def test_invalid_record_error_names_the_problem(text: str, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason.replace("[", r"\[")):
        parse_record(text)


def test_record_is_found_in_any_subfolder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.toml").write_text('test = "a::b"\n')
    (tmp_path / "other.toml").write_text("not = = TOML")
    found = find_record(tmp_path, "a::b")
    assert found is not None
    assert find_record(tmp_path, "a::c") is None


def test_invalid_record_of_own_test_is_error(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('test = "a::b"\n[[step]]\nshout = "x"\n')
    with pytest.raises(BadRecord, match=r"one\.toml: step 1"):
        find_record(tmp_path, "a::b")
    assert find_record(tmp_path, "z::z") is None


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_records_of_other_tests_are_valid(steps: str) -> None:
    assert parse_record(f'test = "a"\n{steps}').steps


def test_record_may_have_steps_for_revisions() -> None:
    record = parse_record(
        'test = "t"\n[[step]]\nsay = "a"\n[[revise]]\n[[revise.step]]\nsay = "b"\n[[revise]]\nstep = []\n'
    )
    assert [[step.value for step in steps] for steps in record.revisions] == [["b"], []]
    for wrong in ('revise = "x"', "[revise]", "[[revise]]\nsteps = []", "[[revise]]\n[[revise.step]]\nsay = 3"):
        with pytest.raises(BadRecord):
            parse_record(f'test = "t"\n{wrong}\n')
