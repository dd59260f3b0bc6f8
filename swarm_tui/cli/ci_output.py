"""What `run` writes for a CI system: JUnit XML, and the summary, outputs and annotations of GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.cli.progress import is_open
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import appending_descriptor, replacing
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import MARKS
from swarm_tui.model.text import plain
from swarm_tui.testing.reports import junit_text

if TYPE_CHECKING:
    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.journal.record import TestRecord
    from swarm_tui.review.ranking import TipResults

_SUMMARY, _OUTPUT = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"
_MOST_ANNOTATIONS: Final = 10
"""GitHub shows no more errors of one step."""
_MOST_ROWS: Final = 200
_MARKDOWN: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>|#!~@"})


@dataclass(frozen=True, slots=True)
class CiOutput:
    """The files that a command writes when its sweep has finished."""

    junit: Path | None = None
    is_github: bool = False

    def check(self, environment: Mapping[str, str] = os.environ) -> None:
        """Raise UsageError before launch if a file cannot be written."""
        if self.is_github and not all(environment.get(name) for name in (_SUMMARY, _OUTPUT)):
            raise UsageError(f"--github requires the variables {_SUMMARY} and {_OUTPUT}", "run it in GitHub Actions")
        files = [Path(environment[name]) for name in (_SUMMARY, _OUTPUT)] if self.is_github else []
        for path in [*files, *([self.junit] if self.junit else [])]:
            folder = path.absolute().parent
            target = path if path.exists() else folder
            if path.is_dir() or not os.access(target, os.W_OK):
                raise UsageError(f"cannot write {plain(str(path), 300)}", "create its folder, or name another file")

    def write(self, opened: OpenedSweep, environment: Mapping[str, str] = os.environ) -> None:
        """Write the files; raise SwarmError if that fails."""
        try:
            if self.junit is not None:
                with replacing(self.junit, 0o644) as file:
                    file.write(_junit(opened))
            if self.is_github:
                _append(environment[_SUMMARY], summary_of(opened))
                _append(environment[_OUTPUT], outputs_of(opened))
        except OSError as error:
            raise SwarmError(f"cannot write {plain(str(error.filename), 300)}: {error.strerror}") from error
        if self.is_github:
            print("".join(f"{line}\n" for line in annotations_of(opened)), end="")


NO_CI_OUTPUT: Final = CiOutput()


def _append(path: str, text: str) -> None:
    with os.fdopen(appending_descriptor(path), "wb") as file:
        file.write(text.encode(errors="replace"))


def _tip_results(opened: OpenedSweep) -> TipResults | None:
    from swarm_tui.review.open import read_integrator_outcome
    from swarm_tui.review.ranking import read_tip_results

    if opened.state.integration.state != "done":
        return None
    return read_tip_results(read_integrator_outcome(opened.folder)[0])


def _junit(opened: OpenedSweep) -> bytes:
    return junit_text(opened.state.integration.branch or opened.folder.name, _results(opened))


def _results(opened: OpenedSweep) -> Iterator[tuple[str, str, str]]:
    """Yield the result of each test at the tip of the integrated branch; skipped if it was not run."""
    tip = _tip_results(opened)
    for record in opened.state.tests():
        test = record.test
        if tip is None:
            yield test, "skipped", "the tests have not run on an integrated branch"
        elif test in tip.failed:
            yield test, "failed", _reason(record) or "failed on the integrated branch"
        elif test in tip.missing:
            yield test, "failed", "not found on the integrated branch"
        elif test in tip.not_run:
            yield test, "skipped", tip.complaint or "not run on the integrated branch"
        else:
            yield test, "skipped" if test in tip.skipped else "passed", ""


def _reason(record: TestRecord) -> str:
    return plain(record.reason, 500) if is_open(record) else ""


def _open_records(opened: OpenedSweep) -> list[TestRecord]:
    return [record for record in opened.state.tests() if is_open(record)]


def summary_of(opened: OpenedSweep) -> str:
    """Return the step summary as Markdown. Markup in agents' texts has no effect."""
    state = opened.state
    rows = _open_records(opened)
    lines = [f"### swarm-tui: {_safe(opened.folder.name)}", "", *_count_lines(opened), ""]
    if state.integration.state == "done":
        lines += [
            f"Integrated branch: `{state.integration.branch}`, {counted(state.integration.fixes, 'fix', 'fixes')}"
        ]
        lines += [f"* {_safe(problem)}" for problem in state.integration.problems]
    if rows:
        lines += ["", "| test | result | reason |", "| --- | --- | --- |"]
        lines += [
            f"| {_safe(record.test)} | {MARKS[record.mark].word} | {_safe(record.reason)} |"
            for record in rows[:_MOST_ROWS]
        ]
    if len(rows) > _MOST_ROWS:
        lines += ["", f"and {len(rows) - _MOST_ROWS} more"]
    return "\n".join(lines) + "\n"


def _count_lines(opened: OpenedSweep) -> Iterable[str]:
    counts = ((MARKS[mark].word, count) for mark, count in opened.state.counts.items() if count)
    return [", ".join(f"{count} {word}" for word, count in counts)]


def _safe(text: str) -> str:
    return plain(text, 300).translate(_MARKDOWN)


def outputs_of(opened: OpenedSweep) -> str:
    """Return the outputs of the step; none of them can contain a line break."""
    integration = opened.state.integration
    branch = integration.branch if integration.state == "done" else ""
    values = {"sweep": opened.folder.name, "branch": branch or "", "fixes": integration.fixes}
    return "".join(f"{name}={plain(str(value), 300)}\n" for name, value in values.items())


def annotations_of(opened: OpenedSweep) -> Iterator[str]:
    """Yield one workflow command for each of the first open tests."""
    for record in _open_records(opened)[:_MOST_ANNOTATIONS]:
        place = f" file={_property(record.file)},line={record.line}" if record.file else ""
        yield f"::error{place}::{_data(f'{record.test}: {MARKS[record.mark].word}: {plain(record.reason, 500)}')}"


def _data(text: str) -> str:
    return plain(text, 900).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
