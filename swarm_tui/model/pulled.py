"""The pulled work of an agent, as stored in the journal: the parts of its report, truncated and safe to print."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, Literal

from swarm_tui.model.event import Value
from swarm_tui.model.formatting import counted

OUTCOME_FILE: Final = "testing_agent_outcome.json"
INTEGRATOR_OUTCOME_FILE: Final = "integrator_outcome.json"


class ChangeKind(StrEnum):
    """The kind of a change, which is the prefix of its commit message in brackets."""

    IMPROVE_TEST = "IMPROVE_TEST"
    FIX_TEST = "FIX_TEST"
    FIX_TUTORIAL = "FIX_TUTORIAL"
    FIX_IMPL = "FIX_IMPL"


class ChangeStatus(StrEnum):
    """The status of a change. Only older pipelines write BLOCKED."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"


_MARKS: Final = re.compile(r"\s*((?:\[[A-Za-z_/ ]+\]\s*)+)")
_MARK: Final = re.compile(r"\[([A-Za-z_/ ]+)\]")


def kinds_of(message: str) -> tuple[ChangeKind, ...]:
    """Return the kinds of change in the prefixes of a commit message."""
    marks = _MARKS.match(message)
    words = [word.strip().upper() for word in _MARK.findall(marks[1])] if marks else []
    return tuple(ChangeKind(word) for word in dict.fromkeys(words) if word in ChangeKind.__members__)


def without_marks(subject: str) -> str:
    marks = _MARKS.match(subject)
    return (subject[marks.end() :] if marks else subject).strip()


class EscalationKind(StrEnum):
    """The kinds of escalation that agents are asked to use. Other kinds are shown unchanged."""

    UNCAUGHT_BUG = "UNCAUGHT_BUG"
    """The program has a bug that no test detects."""
    FIX_DIRECTION_AMBIGUOUS = "FIX_DIRECTION_AMBIGUOUS"
    """Test and program disagree, and it is unclear which one is right."""
    HARNESS_DEFECT = "HARNESS_DEFECT"
    """Shared test code or infrastructure is broken or missing."""
    SUITE_DUPLICATION = "SUITE_DUPLICATION"
    """Several tests need the same change in shared code."""
    HARD_TO_USE = "HARD_TO_USE"
    """A block of the tutorial could not be written or tested because of the program's interface."""
    UNFINISHED_BLOCK = "UNFINISHED_BLOCK"
    """A block of the tutorial was not finished, and the agent gave no reason. Only swarm-tui reports this kind."""
    BLOCKER = "BLOCKER"
    """Older kind: the agent cannot continue."""
    SHARED_PATTERN = "SHARED_PATTERN"
    """Older name of SUITE_DUPLICATION."""


BLOCKING_KINDS: Final = frozenset({EscalationKind.HARNESS_DEFECT, EscalationKind.BLOCKER})
"""Kinds that give a test the result blocked."""


class Location(Value, frozen=True, kw_only=True):
    """A file and line in the repository that an escalation refers to."""

    path: str = ""
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Escalation(Value, frozen=True, kw_only=True):
    """A problem that the agent could not or should not solve within its test."""

    kind: str = EscalationKind.BLOCKER.value
    title: str = ""
    detail_markdown: str = ""
    locations: tuple[Location, ...] = ()

    @property
    def kind_in_words(self) -> str:
        """The kind in lower case with spaces, such as "uncaught bug"."""
        return self.kind.replace("_", " ").lower()


class PulledChange(Value, frozen=True, kw_only=True):
    """One change of an agent's report, as stored in the journal."""

    kind: str
    status: str
    summary: str = ""
    commit: str = ""


class CommitsElsewhere(Value, frozen=True, kw_only=True):
    """Commits in an agent's copy that are not on its branch."""

    where: str
    """Such as "the branch elsewhere", "a detached HEAD" or "a stash"."""
    tip: str = ""
    ref: str = ""
    """The ref in the user's repository that points to them until `swarm-tui clean`."""
    commits: int = 0
    problem: str = ""
    """Why they could not be fetched."""

    @property
    def words(self) -> str:
        """Return a sentence on where the commits are now."""
        if self.problem:
            return f"the agent left commits on {self.where} that cannot be fetched: {self.problem}"
        return f"the agent left {counted(self.commits, 'commit')} on {self.where}, kept as {self.ref}"


class ClaimCheck(Value, frozen=True, kw_only=True):
    """The result that an agent claims, and the verdict of swarm-tui's own runs of the test."""

    claim: str
    """The claimed result."""
    verdict: Literal["pending", "confirmed", "flaky", "refuted", "impossible", "unmeasured"] = "pending"
    """impossible: the test could not be run; `resume` tries again. unmeasured: a run proves nothing, such as after a
    change of conftest.py."""
    claim_reason: str = ""
    """A note on the test that is shown if the claim is confirmed."""
    runs: tuple[str, ...] = ()
    """The outcomes of our runs on the submitted commit: passed, failed, skipped, or missing."""

    @property
    def words(self) -> str:
        """Return the outcomes of the runs and the verdict, such as "failed, passed (flaky)"."""
        if self.is_open:
            return "not run yet" if self.verdict == "pending" else "could not be run"
        return f"{', '.join(self.runs)} ({self.verdict})"

    @property
    def is_open(self) -> bool:
        """Whether the test still has to be run, now or by `resume`."""
        return self.verdict in ("pending", "impossible")


class PulledWork(Value, frozen=True, kw_only=True):
    """The agent's report, truncated and safe to print, with the state of its copy."""

    end: str = "archive"
    """How the agent finished: with an archive of its work, or otherwise (timeout, crash, gone, ...)."""
    summary: str = ""
    passing_before: bool | None = None
    passing_after: bool | None = None
    errored: bool = False
    changes: tuple[PulledChange, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    tip: str = ""
    """The agent's last commit, fetched to refs/swarm/<sweep>/<last part of the branch>; empty without commits."""
    has_uncommitted: bool = False
    weaker: str = ""
    """How the agent's test became weaker, according to its source."""
    used_branch: str = ""
    """Another branch that was pulled because the agent's branch had no commits."""
    elsewhere: tuple[CommitsElsewhere, ...] = ()
    copy_problem: str = ""
    """Why commits of the agent may be lost, such as a deleted `.git`."""
    check: ClaimCheck | None = None
    """None if the result does not say that the test passes, and with `--no-verify`."""


NOT_PULLED: Final = PulledWork(end="")
"""The value in the record of a test whose agent's work has not been pulled."""
