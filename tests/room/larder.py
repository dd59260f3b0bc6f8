"""A sweep of the demo's sample for the merge view: real commits, with the same ids every time."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import swarm_tui.demo
from swarm_tui.agents.offline.records import Record, parse_record
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.model import events as happened
from swarm_tui.model.harvest import HarvestedChange, HarvestReport
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.states import Result
from swarm_tui.model.sweep import MngrSettings, SweepSpec, SweptTest, derive_tests
from swarm_tui.model.verdicts import Verdict
from swarm_tui.triage.sweep_review import review_sweep
from tests.git_project import GitProject, quiet_environment

SWEEP: Final = "20261118-061200"
BEGUN: Final = 1_795_000_000.0
ENDED: Final = BEGUN + 400.0
DEMO: Final = Path(swarm_tui.demo.__file__).parent
RESULTS: Final = {"IMPROVE_TEST": Result.BETTER, "FIX_TEST": Result.TEST_FIX, "FIX_TUTORIAL": Result.TUTORIAL_FIX}

# Each fix: the record whose work was taken, further ones that found the same, and a test that it breaks.
FIXES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    ("soon_includes_today", ("soon_includes_the_last_day", "list_marks_what_spoils"), ""),
    ("cook_takes_the_ingredients", ("adding_more_adds_up",), ""),
    ("add_reads_a_decimal_comma", (), ""),
    ("use_more_than_there_is", (), ""),
    ("shop_goes_aisle_by_aisle", (), ""),
    ("import_a_delivery", (), "test_fill.py::test_add_with_a_date"),
)
# What one more agent has built on the sums of the second fix: reverting that one conflicts.
BUILT_ON: Final = (
    "Refuse to add what has no common unit",
    "    total = first.value * FACTORS[first.unit] + second.value * FACTORS[second.unit]\n",
    "    if BASES[first.unit] != BASES[second.unit]:\n"
    '        raise ValueError(f"{show_amount(first)} and {show_amount(second)} cannot be added up")\n'
    "    total = first.value * FACTORS[first.unit] + second.value * FACTORS[second.unit]\n",
)


class DatedProject(GitProject):
    """A repository whose commits are made at a time that is set, so that their ids are the same every time."""

    now = BEGUN

    def run(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        date = f"{int(self.now)} +0000"
        environment = quiet_environment() | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return subprocess.run(["git", *arguments], cwd=self.root, env=environment, input=stdin, capture_output=True)


@dataclass
class LarderSweep:
    """The sweep, from its first test to its integrated branch."""

    project: DatedProject
    folder: SweepFolder
    records: dict[str, Record]
    tests: dict[str, SweptTest]
    now: float = BEGUN
    written: int = 0

    def work(self, names: list[str] | None = None) -> None:
        """Let the agents of these tests, or of all, do their work."""
        for name in self.records if names is None else names:
            self.now += 10.0
            self.append(*self._events(name))

    def _events(self, name: str) -> list[happened.TestEvent]:
        record, test = self.records[name], self.tests[name].test
        runs = [step for step in record.steps if step.name == "run"]
        tries: list[happened.TestEvent] = [
            happened.TryFinished(test=test, number=number, passed=number == len(runs), seconds=1.25)
            for number in range(1, len(runs) + 1)
        ]
        done = [step for step in record.steps if step.name == "commit"]
        kind = done[-1].value if done else ""
        change = HarvestedChange(
            kind=kind, status="SUCCEEDED", summary=done[-1].more.get("summary", "") if done else ""
        )
        result = Result.IMPL_FIX if kind == "FIX_IMPL" else RESULTS.get(kind, Result.CLEAN)
        return [
            happened.Launching(test=test),
            happened.Launched(test=test, host="localhost"),
            *tries,
            happened.Harvested(
                test=test,
                result=result,
                harvest=HarvestReport(summary=record.summary, changes=(change,) if kind else (), passing_after=True),
            ),
        ]

    def begin_integrating(self) -> None:
        """Write that all work is being put together."""
        self.now = ENDED
        self.append(happened.Integrating(branches=len(FIXES)))

    def integrate(self) -> None:
        """Make the integrated branch, and say so."""
        self.project.git("switch", "--quiet", "--create", self.branch)
        ranking = []
        commits: dict[str, str] = {}
        for name, others, broken in FIXES:
            made = [self.tests[known] for known in (name, *others)]
            commit = self._commit(name, made)
            commits |= {test.branch: commit for test in made}
            turned = [test.test for test in made]
            ranking.append(
                {
                    "commit": commit,
                    "turned_green": turned,
                    "broken": [f"tests/e2e/{broken}"] if broken else [],
                    "is_measured": True,
                    "why": f"turns {len(turned)} test{'s' * (len(turned) > 1)} green"
                    + (", breaks 1" if broken else f", {len(made)} agents made it" if others else ""),
                    "branches": [test.branch for test in made],
                }
            )
        tip = self._commit_built_on()
        self.project.git("switch", "--quiet", "main")
        self.folder.integrator.mkdir(parents=True, exist_ok=True)
        outcome = {"impl_priority": list(commits), "impl_commit_hashes": commits, "ranking": ranking}
        (self.folder.integrator / INTEGRATOR_OUTCOME_FILE).write_text(json.dumps(outcome))
        self.append(happened.Integrated(branch=self.branch, tip=tip, fixes=len(FIXES) + 1), happened.EngineEnded())

    def decide(self, verdicts: dict[int, Verdict]) -> None:
        """Return verdicts to fixes, by their rank."""
        with review_sweep(self.folder, by="ada") as review:
            for rank, verdict in verdicts.items():
                review.set_verdict(review.fixes[rank - 1], verdict)

    @property
    def branch(self) -> str:
        return f"swarm/{SWEEP}/integrated"

    def _commit(self, name: str, made: list[SweptTest]) -> str:
        record = self.records[name]
        done = next(step for step in record.steps if step.name == "commit")
        files: dict[str, str | bytes | None] = {}
        for step in record.steps:
            if step.name == "edit":
                text = (self.project.root / step.value).read_text()
                assert text.count(step.more["old"]) == 1, (name, step.value)
                files[step.value] = text.replace(step.more["old"], step.more["new"])
        trailers = "\n".join([*(f"Agent: {test.agent}" for test in made), f"Sweep: {SWEEP}"])
        self.project.now += 60.0
        message = f"[FIX_IMPL] {done.more['message']}\n\n{done.more['summary']}\n\n{trailers}\n"
        return self.project.commit(message, files)

    def _commit_built_on(self) -> str:
        title, old, new = BUILT_ON
        text = (self.project.root / "larder/amounts.py").read_text()
        assert text.count(old) == 1
        self.project.now += 60.0
        return self.project.commit(f"[FIX_IMPL] {title}", {"larder/amounts.py": text.replace(old, new)})

    def append(self, *events: happened.EventBase) -> None:
        """Write events into the journal."""
        with JournalWriter(self.folder.events, last_seq=self.written, clock=lambda: self.now) as journal:
            for event in events:
                journal.append(event)
        self.written += len(events)


def begin_larder(root: Path) -> LarderSweep:
    """Make the sample's repository, and a sweep of it in which every test waits for a slot."""
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
            mngr=MngrSettings(path=""),
        )
    )
    sweep = LarderSweep(project, folder, records, dict(zip(records, swept, strict=True)))
    sweep.append(
        happened.EngineStarted(pid=1, slots=6),
        *(happened.Queued(test=test.test, agent=test.agent, branch=test.branch, file=test.file) for test in swept),
    )
    return sweep
