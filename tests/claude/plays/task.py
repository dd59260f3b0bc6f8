"""The parsed prompt of an agent, from the output of its Read tool, and the turns that most plays share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.claude.scripted_model import Call, Turn, bash

# The Read tool adds line numbers.
LINE_NUMBER = re.compile(r"(?m)^\s*\d+[\t→]")


@dataclass(frozen=True)
class Task:
    """One prompt, and the folder of its agent."""

    prompt: str
    top: str

    def line_after(self, words: str) -> str:
        """Return the indented line after the paragraph with these words."""
        found = re.search(re.escape(words) + r"[^\n]*\n\n {4}([^\n]+)", self.prompt)
        return found[1].strip() if found else ""

    @property
    def test(self) -> str:
        return self.line_after("The test:")

    @property
    def play(self) -> str:
        """The name of the play: by the prompt's kind, or by the last word of the test's name."""
        if "commands for a tutorial" in self.prompt:
            return "tutorial"
        if "tests for a tutorial" in self.prompt:
            return "tutorial_tests"
        return self.test.partition("[")[0].rpartition("_")[2] if self.test else "integrate"

    @property
    def outcome(self) -> str:
        """The path of the report, relative to the copy."""
        found = re.search(r"Write `([^`]+)`\. Write a draft", self.prompt)
        return found[1] if found else ""

    def run_test(self, text: str = "I run the test.") -> Turn:
        return Turn(text, [bash(self.line_after("Run it like this"), "run the test")])

    def edit(self, file: str, old: str, new: str, text: str = "The program is wrong.") -> Turn:
        return Turn(text, [Call("Edit", {"file_path": f"{self.top}/{file}", "old_string": old, "new_string": new})])

    def read(self, file: str) -> Turn:
        return Turn("I look at the program.", [Call("Read", {"file_path": f"{self.top}/{file}"})])

    def commit(self, kind: str, title: str) -> Turn:
        return Turn("Now I commit.", [bash(f'git commit -qam "[{kind}] {title}" && git log --oneline -1', "commit")])

    def hand_in(self, outcome: dict[str, object]) -> list[Turn]:
        """Return the turns that write a report and do the last step of the prompt."""
        draft = f"{self.outcome}.draft"
        folder = self.outcome.rpartition("/")[0]
        content = json.dumps(outcome, indent=2)
        last_step = self.prompt.rpartition("```sh\n")[2].partition("```")[0]
        return [
            Turn("I write the outcome.", [bash(f"mkdir -p {folder}")]),
            Turn(calls=[Call("Write", {"file_path": f"{self.top}/{draft}", "content": content})]),
            Turn(calls=[bash(f"mv {draft} {self.outcome}", "put the outcome in place")]),
            Turn("The last step.", [bash(last_step, "submit")]),
            Turn("The work is submitted."),
        ]


FIXES = {
    "discount": ("price * percent // 10", "price * percent // 100", "Take percents, not tenths"),
    "receipt": ('f"{name} {price}"', 'f"{name}  {price / 100:.2f}"', "Show prices of a receipt in euros"),
    "stock": ("return count - taken", "return max(0, count - taken)", "Never let stock fall below nothing"),
    "currency": ('f"{amount / 100} EUR"', 'f"{amount / 100:.2f} EUR"', "Show two places of an amount"),
    "vat": ("1.16", "1.19", "Take today's VAT"),
}


def fix(task: Task, before_edit: Sequence[Turn] = ()) -> list[Turn]:
    """Return the turns of a complete fix, from the failing test to the submission."""
    old, new, title = FIXES[task.test.partition("::test_")[2].partition("_")[0]]
    return [
        task.run_test(),
        task.read("shop.py"),
        *before_edit,
        task.edit("shop.py", old, new),
        task.run_test("I run it again."),
        task.commit("FIX_IMPL", title),
        *task.hand_in(outcome("FIX_IMPL", title)),
    ]


def outcome(kind: str = "", summary: str = "The test is good as it is.", **more: object) -> dict[str, object]:
    """Return a report with one successful change, or with none."""
    changes = {kind: {"status": "SUCCEEDED", "summary_markdown": summary}} if kind else {}
    reported: dict[str, object] = {
        "changes": changes,
        "errored": False,
        "tests_passing_before": not kind,
        "tests_passing_after": True,
        "summary_markdown": summary,
        "test_runs": [{"run_name": "try_1", "description_markdown": "as it was"}],
        "escalations": [],
    }
    return reported | more


def find_task(tool_results: Sequence[str]) -> Task | None:
    """Return the task after both its prompt and the working folder were read."""
    prompt = next((result for result in tool_results if "# Your task" in result), None)
    top = next((result.strip() for result in tool_results if re.fullmatch(r"/\S+", result.strip())), None)
    return Task(LINE_NUMBER.sub("", prompt), top) if prompt and top else None
