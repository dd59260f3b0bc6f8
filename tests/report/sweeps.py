"""Finished sweeps for the tests of the page: a real repository with agents' commits, a journal, and pulled folders."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm_tui.integrator.events import Integrated, IntegrationStarted
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Launched, Launching, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.event import TestEvent
from swarm_tui.model.pulled import OUTCOME_FILE, Escalation, EscalationKind, PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec, SweptTest, derive_tests
from swarm_tui.money.events import UsageReported
from tests.git_project import GitProject

START = 1_794_982_320.0
SWEEP = "20261118-061200"
RESULTS = ["clean"] * 12 + ["better"] * 3 + ["test_fix", "tutorial_fix", "impl_fix", "impl_fix"]
RESULTS += ["unresolved", "blocked", "error", "clean", "better"]
KIND_OF_RESULT = {
    "better": "IMPROVE_TEST",
    "test_fix": "FIX_TEST",
    "tutorial_fix": "FIX_TUTORIAL",
    "impl_fix": "FIX_IMPL",
}
AREAS = ("create", "create_remote", "list", "snapshot", "copy", "connect", "destroy", "config")
HOSTILE = '<script>document.title="owned"</script><img src=x onerror="document.title=1">\x1b]0;owned\x07\u202e'
SECRET = "ghp_" + "A1b2C3d4E5f6" * 3


@dataclass
class MadeSweep:
    """A sweep that was written for a test."""

    project: GitProject
    folder: SweepFolder
    tests: list[SweptTest]
    integrated: str = ""

    def open(self) -> OpenedSweep:
        return open_sweep(self.folder)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def make_sweep(root: Path, count: int = 48, *, is_integrated: bool = True, seed: int = 7) -> MadeSweep:
    """Write a finished sweep of `count` tests with every result, two recordings, and an integrated branch."""
    chance = random.Random(seed)
    project = GitProject(root)
    base = project.commit("Begin", {"src/copy.py": "def copy():\n    run()\n", ".gitignore": ".swarm\n"})
    tests = derive_tests(SWEEP, [(_node(number), _node(number).partition("::")[0], 1) for number in range(count)])
    results = [Result(RESULTS[number % len(RESULTS)]) for number in range(count)]
    tips = _commit_by_agents(project, base, tests, results)
    folder = SweepFolder(create_runs_folder(root) / SWEEP)
    folder.write_spec(
        SweepSpec(
            sweep=SWEEP,
            repository=str(root),
            base=base,
            base_name="main",
            created_at=START,
            title="e2e tutorial",
            agent_type="claude",
            slots=12,
            verifies=True,
            mngr=MngrSettings(path="mngr"),
        )
    )
    made = MadeSweep(project, folder, tests)
    for number, test in enumerate(tests):
        pull(folder.agent(test.agent), number, results[number])
    clock = Clock()
    with JournalWriter(folder.events, clock=clock) as journal:
        _play(journal, clock, tests, results, tips, chance)
        if is_integrated:
            journal.append(IntegrationStarted(branches=3))
            clock.now += 60
            made.integrated = _integrate(made, base, results, tips)
            fixes = sum(result is Result.IMPL_FIX for result in results)
            journal.append(Integrated(branch=f"swarm/{SWEEP}/integrated", tip=made.integrated, fixes=fixes, left_out=1))
        journal.append(EngineEnded())
    return made


def _node(number: int) -> str:
    area = AREAS[(number // 5) % len(AREAS)]
    return f"e2e/test_{area}.py::test_{area}_keeps_its_word_{number}[a-b]"


def _commit_by_agents(project: GitProject, base: str, tests: list[SweptTest], results: list[Result]) -> dict[str, str]:
    """Make one commit for each agent that changed something, all in one call of git."""
    stream = []
    for number, (test, result) in enumerate(zip(tests, results, strict=True)):
        kind = KIND_OF_RESULT.get(result.value)
        if kind is None:
            continue
        message = f"[{kind}] Keep the exit code {number}\n"
        content = "".join(f"def copy_{place}():\n    return run({number})\n" for place in range(12))
        stream.append(
            f"commit refs/swarm/{SWEEP}/{test.branch}\ncommitter Agent <a@example.org> {int(START)} +0000\n"
            f"data {len(message)}\n{message}from {base}\nM 100644 inline src/fix_{number}.py\n"
            f"data {len(content)}\n{content}\n"
        )
    project.git("fast-import", "--quiet", stdin="".join(stream).encode())
    refs = project.git("for-each-ref", "--format=%(refname) %(objectname)", f"refs/swarm/{SWEEP}").split("\n")
    tips = dict(line.split(" ") for line in refs if line)
    return {name.removeprefix(f"refs/swarm/{SWEEP}/"): commit for name, commit in tips.items()}


def pull(folder: Path, number: int, result: Result) -> None:
    """Write what is pulled from an agent."""
    run = folder / "test_output" / "e2e" / f"run_try_{number % 3 + 1}"
    run.mkdir(parents=True)
    outcome = {"summary_markdown": f"Looked at **{result.value}**.\n\n- first `copy()`\n- then the rest\n"}
    (folder / "test_output" / OUTCOME_FILE).write_text(json.dumps(outcome))
    (run / "transcript.txt").write_text(
        f"# copy an agent to another\n$ mytool copy a b\n  copied {number}\n! warning: slow host\n? 0\n" * 8
    )
    (folder / "transcript.jsonl").write_text("".join(json.dumps(record) + "\n" for record in _transcript(number)))
    (folder / "screen.txt").write_text("$ pytest -q\n1 passed in 0.1s\n")
    if number % 24 == 3:
        (run / "session.cast").write_text(cast_of(["hello ", "from the recording\r\n"]))


def cast_of(words: list[str]) -> str:
    """Write an asciicast v2 that says the words, a tenth of a second apart."""
    header = {"version": 2, "width": 60, "height": 10, "timestamp": int(START)}
    lines = [json.dumps(header), *(json.dumps([place / 10, "o", word]) for place, word in enumerate(words))]
    return "\n".join(lines) + "\n"


def _transcript(number: int) -> list[dict[str, Any]]:
    at = "2026-11-18T06:20:00Z"
    call = {"tool_call_id": "t1", "function_name": "Bash", "arguments": {"command": f"pytest -q -k {number}"}}
    result = {"source_call_id": "t1", "content": "\n".join(f"line {line} of the output" for line in range(30))}
    return [
        {"type": "header", "schema_version": "ATIF-v1.7"},
        {"type": "step", "timestamp": at, "source": "user", "message": "Make the test pass, and better."},
        {"type": "step", "timestamp": at, "source": "agent", "message": "I **run** it.", "tool_calls": [call]},
        {"type": "observation", "timestamp": at, "results": [result]},
    ] * 3


def _play(
    journal: JournalWriter,
    clock: Clock,
    tests: list[SweptTest],
    results: list[Result],
    tips: dict[str, str],
    chance: random.Random,
) -> None:
    journal.append(EngineStarted(pid=1, slots=12))
    for test in tests:
        block = f"copy an agent to another\nmytool copy {test.branch}"
        journal.append(Queued(test=test.test, agent=test.agent, branch=test.branch, file=test.file, block=block))
    timed: list[tuple[float, TestEvent]] = []
    free = [0.0] * 12
    for test, result in zip(tests, results, strict=True):
        lane = min(range(12), key=lambda place: free[place])
        start, length = free[lane] + chance.uniform(0.5, 3), chance.uniform(40, 400)
        free[lane] = start + length
        timed += _happenings(test, result, start, length, tips.get(test.branch, ""), chance)
    for at, event in sorted(timed, key=lambda item: item[0]):
        clock.now = START + at
        journal.append(event)


def _happenings(
    test: SweptTest, result: Result, start: float, length: float, tip: str, chance: random.Random
) -> list[tuple[float, TestEvent]]:
    name = test.test
    is_good = result not in (Result.UNRESOLVED, Result.BLOCKED, Result.ERROR)
    tries = [True] if result is Result.CLEAN else [False] * chance.randint(1, 3) + [is_good]
    found: list[tuple[float, TestEvent]] = [
        (start, Launching(test=name)),
        (start + 0.4, Launched(test=name, host="localhost")),
    ]
    for number, passed in enumerate(tries, start=1):
        at = start + length * number / (len(tries) + 1)
        failure = "" if passed else "E   AssertionError: assert 1 == 0\nE   fixture 'host' not found"
        found.append((at, TryFinished(test=name, number=number, passed=passed, seconds=1.25, failure=failure)))
    kind = KIND_OF_RESULT.get(result.value)
    change = PulledChange(kind=kind or "", status="SUCCEEDED", summary="Kept the exit code.", commit=tip)
    reason = {
        Result.UNRESOLVED: "tried, could not make it pass",
        Result.ERROR: "mngr create failed twice: the host did not answer",
    }.get(result, "")
    shared = Escalation(kind=EscalationKind.BLOCKER, title="No account for the remote host", detail_markdown="Ask ops.")
    found.append((start + length, UsageReported(test=name, dollars=chance.uniform(0.02, 0.4), tokens=12_000)))
    found.append(
        (
            start + length,
            Pulled(
                test=name,
                result=result,
                reason=reason,
                pulled=PulledWork(
                    summary="Looked at the test.",
                    passing_before=result is Result.CLEAN,
                    passing_after=is_good,
                    changes=(change,) if kind else (),
                    escalations=(shared,) if result is Result.BLOCKED else (),
                    tip=tip,
                ),
            ),
        )
    )
    return found


def _integrate(made: MadeSweep, base: str, results: list[Result], tips: dict[str, str]) -> str:
    """Make the integrated branch: one commit of test fixes, then each fix of the implementation."""
    git = made.project.git
    tip = base
    hashes: dict[str, str] = {}
    squashed = ""
    chosen = [(test.branch, result) for test, result in zip(made.tests, results, strict=True) if test.branch in tips]
    fixes = [branch for branch, result in chosen if result is Result.IMPL_FIX][:20]
    others = [branch for branch, result in chosen if result is not Result.IMPL_FIX][:1]
    for branch in (*others, *fixes):
        tree = git("merge-tree", "--write-tree", tip, tips[branch]).split("\n")[0]
        word = "[FIX_IMPL] Keep the exit code on copy" if branch in fixes else "[TEST/DOC] Steadier tests"
        tip = git("commit-tree", tree, "-p", tip, "-m", f"{word}\n\nAgent: {branch}")
        if branch in fixes:
            hashes[branch] = tip
        else:
            squashed = tip
    git("update-ref", f"refs/heads/swarm/{SWEEP}/integrated", tip)
    report = {
        "squashed_branches": others,
        "squashed_commit_hash": squashed,
        "impl_priority": fixes,
        "impl_commit_hashes": hashes,
        "failed": [{"branch": "swarm/x/late", "reason": "conflicts with swarm/x/early in src/copy.py"}],
        "escalations": [{"kind": "SHARED_PATTERN", "title": "Seven tests sleep", "detail_markdown": "Wait instead."}],
    }
    made.folder.integrator.mkdir()
    (made.folder.integrator / "integrator_outcome.json").write_text(json.dumps(report))
    lines = [
        {"at": START, "by": "ada", "commit": commit, "verdict": verdict, "why": "because"}
        for commit, verdict in zip(hashes.values(), ("keep", "revert", "keep"), strict=False)
    ]
    made.folder.verdicts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tip
