"""A sweep of the demo's sample project for the Fixes screen: real commits with reproducible ids."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import swarm_tui.demo
from swarm_tui.adapters.git import Repository
from swarm_tui.agents.offline.records import Record, RecordedStep, parse_record
from swarm_tui.integrator.branches import AgentCommit, read_branches
from swarm_tui.integrator.build import works_of
from swarm_tui.integrator.events import Integrated, IntegrationStarted
from swarm_tui.integrator.inputs import BranchInput, IntegratorInputs, PersonInput
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Launched, Launching, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.commit_messages import squash_message
from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE, PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec, SweptTest, derive_tests
from swarm_tui.review.open import review_sweep
from swarm_tui.review.verdicts import Verdict
from swarm_tui.strength.signs import why_weaker
from tests.git_project import GitProject, quiet_environment

SWEEP: Final = "20261118-061200"
BEGUN: Final = 1_795_000_000.0
ENDED: Final = BEGUN + 400.0
DEMO: Final = Path(swarm_tui.demo.__file__).parent
RESULTS: Final = {"IMPROVE_TEST": Result.BETTER, "FIX_TEST": Result.TEST_FIX, "FIX_TUTORIAL": Result.TUTORIAL_FIX}

SUMS: Final = "cook_takes_the_ingredients"
HIDING: Final = "import_a_delivery"

# For each fix: its record, its index among the fixes of that record, and other records with the same fix.
FIXES: Final[tuple[tuple[str, int, tuple[str, ...]], ...]] = (
    ("soon_includes_today", 0, ("soon_includes_the_last_day", "list_marks_what_spoils")),
    (SUMS, 0, ()),
    ("add_reads_a_decimal_comma", 0, ()),
    ("use_more_than_there_is", 0, ()),
    ("shop_goes_aisle_by_aisle", 0, ()),
    (SUMS, 1, ()),
    (SUMS, 2, ()),
    (HIDING, 0, ()),
)
# Effects of each fix: other tests that turn green, tests that break, and fixes it depends on.
ALSO_GREEN: Final = {(SUMS, 0): "adding_more_adds_up"}
BREAKS: Final = {(HIDING, 0): "tests/e2e/test_fill.py::test_add_with_a_date"}
LEFT_OUT: Final = "adding_more_adds_up"


class DatedProject(GitProject):
    """A repository with fixed commit times, so that commit ids are reproducible."""

    now = BEGUN

    def run(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        date = f"{int(self.now)} +0000"
        environment = quiet_environment() | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return subprocess.run(["git", *arguments], cwd=self.root, env=environment, input=stdin, capture_output=True)


@dataclass(frozen=True)
class RecordedCommit:
    """A commit of a record, with its edits."""

    kind: str
    title: str
    summary: str
    edits: tuple[RecordedStep, ...]


@dataclass
class LarderSweep:
    """The sweep, from its first test to its integrated branch."""

    project: DatedProject
    base: str
    folder: SweepFolder
    records: dict[str, Record]
    tests: dict[str, SweptTest]
    now: float = BEGUN
    written: int = 0
    tips: dict[str, str] = field(default_factory=dict)
    """The last commits of agents' branches that are not on the integrated branch."""
    weaker: dict[str, str] = field(default_factory=dict)

    def work(self, names: list[str] | None = None) -> None:
        """Let the agents of these tests, or of all tests, do their work."""
        for name in self.records if names is None else names:
            self.now += 10.0
            self.append(*self._events(name))
        self.project.git("switch", "--quiet", "main")

    def _events(self, name: str) -> list[TestEvent]:
        record, test = self.records[name], self.tests[name].test
        runs = [step for step in record.steps if step.name == "run"]
        tries: list[TestEvent] = [
            TryFinished(test=test, number=number, passed=number == len(runs), seconds=1.25)
            for number in range(1, len(runs) + 1)
        ]
        done = self._commits_of(name)
        kind = done[-1].kind if done else ""
        change = PulledChange(kind=kind, status="SUCCEEDED", summary=done[-1].summary if done else "")
        result = Result.IMPL_FIX if kind == "FIX_IMPL" else RESULTS.get(kind, Result.CLEAN)
        tip = self._branch(name) if name == LEFT_OUT or (done and result is not Result.IMPL_FIX) else ""
        weaker = ""
        if kind == "IMPROVE_TEST":
            weaker = self.weaker[name] = why_weaker(self.repository, self.base, tip, self.tests[name].file, test)
        report = PulledWork(
            summary=record.summary, changes=(change,) if kind else (), passing_after=True, tip=tip, weaker=weaker
        )
        if weaker:
            result = Result.TEST_FIX
        reason = f"its test became weaker: {weaker}" if weaker else ""
        return [
            Launching(test=test),
            Launched(test=test, host="localhost"),
            *tries,
            Pulled(test=test, result=result, reason=reason, pulled=report),
        ]

    def _branch(self, name: str) -> str:
        """Create the commits of an agent on a separate branch. Return the last one."""
        self.project.git("switch", "--quiet", "--detach", self.base)
        for done in self._commits_of(name):
            self.project.now += 1.0
            message = f"[{done.kind}] {done.title}\n\n{done.summary}\n"
            self.tips[name] = self.project.commit(message, self._edited(done))
        return self.tips[name]

    def _commits_of(self, name: str) -> list[RecordedCommit]:
        found, edits = [], list[RecordedStep]()
        for step in self.records[name].steps:
            if step.name == "edit":
                edits.append(step)
            elif step.name == "commit":
                text = step.more
                found.append(RecordedCommit(step.value, text["message"], text.get("summary", ""), tuple(edits)))
                edits = []
        return found

    def _edited(self, done: RecordedCommit) -> dict[str, str | bytes | None]:
        """Return the files after the edits of a commit. Each edit must match exactly once."""
        texts: dict[str, str] = {}
        for step in done.edits:
            text = texts.get(step.value) or (self.project.root / step.value).read_text()
            assert text.count(step.more["old"]) == 1, (done.title, step.value)
            texts[step.value] = text.replace(step.more["old"], step.more["new"])
        return dict(texts)

    def begin_integrating(self) -> None:
        """Write the event that integration has started."""
        self.now = ENDED
        self.append(IntegrationStarted(branches=len(FIXES)))

    def integrate(self) -> None:
        """Create the integrated branch as the demo's integrator does, and write its events."""
        self.project.git("switch", "--quiet", "--create", self.branch)
        squashed, commits = self._squash()
        ranking = [self._fix(name, number, others) for name, number, others in FIXES]
        hashes: dict[str, str] = {}
        for entry in ranking:
            for branch in entry["branches"]:
                hashes.setdefault(branch, entry["commit"])
        left = self.tests[LEFT_OUT]
        reason = f"conflicts in larder/amounts.py with '[FIX_IMPL] {ranking[1]['title']}' of {self.tests[SUMS].agent}"
        self.project.git("switch", "--quiet", "main")
        self.folder.integrator.mkdir(parents=True, exist_ok=True)
        outcome = {
            "squashed_branches": list(dict.fromkeys(commit.source.branch for commit in commits)),
            "squashed_commit_hash": squashed,
            "squashed_commits": [{"branch": commit.source.branch, "commit": commit.id} for commit in commits],
            "impl_priority": list(hashes),
            "impl_commit_hashes": hashes,
            "failed": [{"branch": left.branch, "commit": self.tips[LEFT_OUT], "reason": reason}],
            "ranking": ranking,
        }
        (self.folder.integrator / INTEGRATOR_OUTCOME_FILE).write_text(json.dumps(outcome))
        tip = self.project.git("rev-parse", self.branch)
        self.append(Integrated(branch=self.branch, tip=tip, fixes=len(FIXES)), EngineEnded())

    def _squash(self) -> tuple[str, list[AgentCommit]]:
        """Combine all test and doc changes in one commit. Return the commit and its entries."""
        branches = tuple(
            BranchInput(
                agent=test.agent,
                test=test.test,
                branch=test.branch,
                tip=self.tips[name],
                weaker=self.weaker.get(name, ""),
            )
            for name, test in self.tests.items()
            if name in self.tips and name != LEFT_OUT
        )
        person = PersonInput(name="Ada Lovelace", email="ada@example.org")
        inputs = IntegratorInputs(
            sweep=SWEEP,
            repository=str(self.project.root),
            base=self.base,
            branch=self.branch,
            committer=person,
            branches=branches,
        )
        commits, _ = read_branches(self.repository, inputs)
        self.project.git("cherry-pick", "--no-commit", *(commit.id for commit in commits))
        self.project.now += 60.0
        return self.project.commit(squash_message(works_of(commits), SWEEP)), commits

    def _fix(self, name: str, number: int, others: tuple[str, ...]) -> dict[str, Any]:
        """Commit one fix to the branch. Return its entry in the integrator's ranking."""
        done = [commit for commit in self._commits_of(name) if commit.kind == "FIX_IMPL"]
        authors = [self.tests[author] for author in (name, *others)]
        trailers = "\n".join([*(f"Agent: {test.agent}" for test in authors), f"Sweep: {SWEEP}"])
        self.project.now += 60.0
        title, summary = done[number].title, done[number].summary
        commit = self.project.commit(f"[FIX_IMPL] {title}\n\n{summary}\n\n{trailers}\n", self._edited(done[number]))
        green = [] if number else [test.test for test in authors]
        if (name, number) in ALSO_GREEN:
            green.append(self.tests[ALSO_GREEN[name, number]].test)
        broken = [BREAKS[name, number]] if (name, number) in BREAKS else []
        parts = [f"turns {len(green)} test{'' if len(green) == 1 else 's'} green"]
        parts += ["breaks 1"] if broken else [f"{len(authors)} agents submitted it"] if others else []
        parts += [f"builds on {done[number - 1].title!r}"] if number else []
        return {
            "commit": commit,
            "title": title,
            "turned_green": green,
            "broken": broken,
            "is_measured": True,
            "why": ", ".join(parts),
            "branches": [test.branch for test in authors],
        }

    def decide(self, verdicts: dict[int, Verdict]) -> None:
        """Give verdicts to fixes by rank."""
        with review_sweep(self.folder, by="ada") as review:
            for rank, verdict in verdicts.items():
                review.set_verdict(review.fixes[rank - 1], verdict)

    @property
    def branch(self) -> str:
        return f"swarm/{SWEEP}/integrated"

    @cached_property
    def repository(self) -> Repository:
        return Repository.open(self.project.root)

    def append(self, *events: Event) -> None:
        """Append events to the journal."""
        with JournalWriter(self.folder.events, last_seq=self.written, clock=lambda: self.now) as journal:
            for event in events:
                journal.append(event)
        self.written += len(events)


def begin_larder(root: Path) -> LarderSweep:
    """Create the sample's repository, and a sweep with all tests queued."""
    project = DatedProject(root)
    litter = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache", ".test_output")
    shutil.copytree(DEMO / "sample", root, ignore=litter, dirs_exist_ok=True)
    (root / "dot-gitignore").rename(root / ".gitignore")
    base = project.commit("larder 0.4.0")
    records = {path.stem: parse_record(path.read_text()) for path in sorted((DEMO / "records").glob("*.toml"))}
    swept = derive_tests(SWEEP, [(record.test, record.test.partition("::")[0], 1) for record in records.values()])
    folder = SweepFolder(create_runs_folder(root) / SWEEP)
    folder.write_spec(
        SweepSpec(
            sweep=SWEEP,
            repository=str(root),
            base=base,
            base_name="main",
            created_at=BEGUN,
            agent_type="offline",
            slots=6,
            verifies=True,
            mngr=MngrSettings(path=""),
        )
    )
    sweep = LarderSweep(project, base, folder, records, dict(zip(records, swept, strict=True)))
    sweep.append(
        EngineStarted(pid=1, slots=6),
        *(Queued(test=test.test, agent=test.agent, branch=test.branch, file=test.file) for test in swept),
    )
    return sweep
