"""Prompts contain everything that an agent needs, and user templates replace the packaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.agents.contract import ARCHIVE_PATH, Task
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, render_prompt, render_revision
from swarm_tui.errors import UsageError
from swarm_tui.integrator.events import Revision
from swarm_tui.model.results import Baseline

TASK = Task(
    sweep="20261118-061200",
    test="tests/test_a.py::test_b[x y]",
    agent="swarm-1-test-b",
    branch="swarm/1/test-b",
    base="a" * 40,
    repository="/repository",
    file="tests/test_a.py",
    rest="test_b[x y]",
    folder="",
    pytest=("/python", "-m", "pytest", "tests/test_a.py::test_b[x y]"),
    outcome=".test_output/testing_agent_outcome.json",
)


def test_prompt_has_command_commit_rules_and_submission() -> None:
    text = render_prompt(MAPPER_TEMPLATE, TASK, block="larder add milk")
    assert "/python -m pytest 'tests/test_a.py::test_b[x y]'" in text
    assert "larder add milk" in text
    for word in ("[FIX_IMPL]", TASK.branch, TASK.outcome, ARCHIVE_PATH, f"{TASK.base}..{TASK.branch}"):
        assert word in text


def test_prompt_without_block_omits_tutorial() -> None:
    assert "tutorial block:" not in render_prompt(MAPPER_TEMPLATE, TASK)


def test_user_template_may_include_contract(tmp_path: Path) -> None:
    own = tmp_path / "mine.md"
    own.write_text('Be quick with {{ test }}.\n{% include "contract.md.jinja" %}')
    text = render_prompt(own, TASK)
    assert text.startswith("Be quick with tests/test_a.py::test_b[x y].")
    assert ARCHIVE_PATH in text


@pytest.mark.parametrize("content", ["{{ tset }}", "{% if %}", '{% include "no" %}'])
def test_invalid_template_is_usage_error(tmp_path: Path, content: str) -> None:
    own = tmp_path / "mine.md"
    own.write_text(content)
    with pytest.raises(UsageError, match="invalid prompt template"):
        render_prompt(own, TASK)


def test_test_name_is_not_rendered_as_template(tmp_path: Path) -> None:
    own = tmp_path / "mine.md"
    own.write_text("{{ test }}")
    task = Task(**{name: getattr(TASK, name) for name in TASK.__slots__} | {"test": "{{ 7 * 7 }}$(touch x)"})
    assert render_prompt(own, task) == "{{ 7 * 7 }}$(touch x)"


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        (Baseline.GREEN, "It passed in a fresh copy of this commit"),
        (Baseline.RED, "It failed in a fresh copy of this commit"),
        (Baseline.FLAKY, "A single run proves nothing"),
        (Baseline.CLASH, "do not change the program because of it"),
        (Baseline.SKIPPED, "pytest skipped it"),
    ],
)
def test_prompt_describes_the_baseline(baseline: Baseline, words: str) -> None:
    text = render_prompt(MAPPER_TEMPLATE, TASK, baseline=baseline)
    assert words in text or words.replace("\n", " ") in text.replace("\n", " ")
    assert "fresh copy" not in render_prompt(MAPPER_TEMPLATE, TASK)


def test_revision_prompt_quotes_the_commented_hunk() -> None:
    revision = Revision(fix="1" * 40, comment="Five,\nplease.", tip="2" * 40)
    whole = render_revision(TASK, revision, "Fix it")
    assert "> Five,\n> please." in whole
    assert "these lines" not in whole
    hunk = "lib.py\n@@ -1,2 +1,2 @@\n-    return 1\n+    return 2"
    text = render_revision(TASK, structs.replace(revision, hunk=hunk), "Fix it")
    assert "The comment is about these lines only:\n\n    lib.py\n    @@ -1,2 +1,2 @@\n    -    return 1\n" in text
