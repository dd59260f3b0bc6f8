"""Writes a run of `mngr tmr` down as a sweep: its specification, its agents' files, and a journal."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.agents.judging import REASON_LIMIT, CommitSummary, End, Evidence, judge
from swarm_tui.errors import JournalError
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.pulled_files import PulledFile, list_files
from swarm_tui.journal.snapshot import write_snapshot
from swarm_tui.model.events import (
    EngineEnded,
    EngineStarted,
    Event,
    Harvested,
    Integrated,
    Launched,
    Launching,
    Noted,
    Queued,
    Seen,
    TryFinished,
    TryStarted,
)
from swarm_tui.model.harvest import report_of
from swarm_tui.model.outcome import (
    INTEGRATOR_OUTCOME_FILE,
    OUTCOME_FILE,
    BrokenReport,
    ChangeKind,
    ChangeStatus,
    IntegratorOutcome,
    Outcome,
    parse_integrator_outcome,
    parse_outcome,
)
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State
from swarm_tui.model.sweep import TMR_SOURCE, MngrSettings, SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.tmr.agent_folder import ARTIFACTS_FOLDER, OUTPUT_FOLDER, AgentsFile
from swarm_tui.tmr.run_commits import RunCommits
from swarm_tui.tmr.run_folder import PAGE_FILE, TmrAgent, TmrRun, read_report
from swarm_tui.tmr.sections import is_at_odds, outcome_of_row, section_in_words, section_of

QUIET_AFTER: Final = 600.0
"""A run in whose folder nothing has changed for so many seconds is not under way any more."""
COPY_LIMIT: Final = 64_000_000
"""The bytes that are copied of one agent's files: a hundred times what most agents hand in."""
_TRIES_LIMIT: Final = 50
_SNAPSHOT_AFTER: Final = 500
_FLAT_FILES: Final = frozenset({OUTCOME_FILE, INTEGRATOR_OUTCOME_FILE})
_STATES: Final[Mapping[str, Literal[State.RUNNING, State.WAITING]]] = {
    "RUNNING": State.RUNNING,
    "WAITING": State.WAITING,
}

TimedEvent = tuple[float, Event]


@dataclass
class RunWriter:
    """Writes one run into the folder of one sweep, again and again while the run goes on."""

    run: TmrRun
    folder: SweepFolder
    commits: RunCommits
    live: Mapping[str, AgentDetails]
    """The agents that mngr still knows, by their names."""
    is_whole: bool = True
    """Whether all commits that are spoken of could be had."""

    def write(self, *, is_followed: bool = False) -> bool:
        """Append to the journal what is new; return whether the run is over."""
        began, last = _began_at(self.run), _last_change(self.run)
        self.folder.write_spec(self._spec(began))
        state = self._written_so_far()
        is_over = self.run.integrator is not None or (time.time() - last > QUIET_AFTER and not self.live)
        events = sorted(self._events(state, began, last, is_over=is_over), key=lambda timed: timed[0])
        is_begun = state.started_at is not None
        if not is_begun or (events and state.ended_why is not None) or (is_followed and not is_over):
            started = EngineStarted(pid=os.getpid(), slots=len(self.run.agents), is_resumed=is_begun)
            events.insert(0, (began, started))
        if is_over and events:
            events.append((last, EngineEnded(why="finished")))
        elif events and not is_followed:
            events.append((last, EngineEnded(why="stopped", reason="this is what was there when it was opened")))
        times = iter([at for at, _ in events])
        last_seq, last_at = state.last_seq, state.last_at
        with JournalWriter(self.folder.events, last_seq=last_seq, last_at=last_at, clock=lambda: next(times)) as log:
            for _, event in events:
                state.apply(log.append(event))
            if len(events) > _SNAPSHOT_AFTER:
                write_snapshot(self.folder.snapshot, self.folder.events, log.size, state)
        return is_over

    def _written_so_far(self) -> SweepState:
        state = open_sweep(self.folder).state if self.folder.events.exists() else SweepState()
        tests = {agent.name: agent.test for agent in self.run.agents}
        if all(record.test == tests.get(record.agent, record.test) for record in state.tests()):
            return state
        # Now it is known what a test is that was guessed before: all is written anew.
        self.folder.events.unlink()
        self.folder.snapshot.unlink(missing_ok=True)
        return SweepState()

    def _spec(self, began: float) -> SweepSpec:
        return SweepSpec(
            sweep=self.folder.name,
            repository=str(self.commits.repository.root),
            base=self.commits.base,
            created_at=began,
            slots=max(1, len(self.run.agents)),
            title=f"mngr tmr: {plain(self.run.name, 80)}",
            integrator="none",
            source=TMR_SOURCE,
            mngr=MngrSettings(path="mngr"),
        )

    def _events(self, state: SweepState, began: float, last: float, *, is_over: bool) -> Iterator[TimedEvent]:
        """Yield what is not in the journal yet, each event with its time."""
        known = {record.agent: record for record in state.tests()}
        said = {line.text for line in state.log}
        for sentence in (*self.run.problems, *self.commits.problems):
            if sentence not in said:
                yield began, Noted(level="warning", text=plain(sentence, 500))
        for agent in self.run.agents:
            record = known.get(agent.name)
            if record is None:
                record = TestRecord(agent.test, agent.name, agent.branch)
                yield (
                    began,
                    Queued(
                        test=agent.test,
                        agent=agent.name,
                        branch=agent.branch,
                        file="" if agent.is_guessed else agent.test.partition("::")[0],
                        is_guessed=agent.is_guessed,
                    ),
                )
            yield from self._agent_events(agent, record, began, last, is_over=is_over)
        yield from self._integration(state, last)

    def _agent_events(
        self, agent: TmrAgent, record: TestRecord, began: float, last: float, *, is_over: bool
    ) -> Iterator[TimedEvent]:
        self._copy_files(agent)
        raw = read_report(agent.outcome)
        handed_in = _time_of(agent.outcome) or last
        said = outcome_of_row(agent.row) if raw is None else None
        if raw is not None or said is not None:
            harvested, outcome, branch = self._harvested(agent, record.test, raw, said)
            kept = (record.result, record.reason, record.harvest)
            if (harvested.result, harvested.reason, harvested.harvest) == kept:
                return
            if record.state is State.DONE or branch != record.branch:
                yield handed_in, Queued(test=record.test, branch=branch, is_guessed=agent.is_guessed)
            yield from ((handed_in, event) for event in _tries(record.test, outcome))
            yield handed_in, harvested
            return
        details = self.live.get(agent.name)
        seen = _STATES.get(details.state.upper()) if details is not None else None
        if seen is not None and details is not None:
            if record.agent_id != details.id:
                yield began, Launching(test=record.test)
                yield began, Launched(test=record.test, agent_id=details.id, work_dir=details.work_dir)
            if record.state is not seen:
                yield time.time(), Seen(test=record.test, state=seen, source="mngr list")
        elif is_over and record.state is not State.DONE:
            report = report_of(Outcome(errored=True), {}, end=End.GONE.value, tip="", has_uncommitted=False)
            yield (
                last,
                Harvested(test=record.test, result=Result.FAILED, reason=_without_outcome(agent), harvest=report),
            )
        elif not is_over and record.state is State.QUEUED:
            # The page lists it, and only what an agent hands in ever comes into the folder.
            yield began, Launching(test=record.test)
            yield began, Launched(test=record.test)
            yield began, Seen(test=record.test, state=State.RUNNING, source="its page")

    def _harvested(
        self, agent: TmrAgent, test: str, raw: bytes | None, said: Outcome | None
    ) -> tuple[Harvested, Outcome | None, str]:
        """Return the judgement on what an agent handed in, its report, and the branch that its commits are on.

        Where it handed in nothing, `said` is what the page says of it.
        """
        outcome, problem = said, ""
        try:
            outcome = parse_outcome(raw) if raw is not None else said
        except BrokenReport as error:
            outcome, problem = None, str(error)
        branch, fetched = self.commits.fetch(agent)
        self.is_whole = self.is_whole and not fetched.problem
        is_unchecked = not fetched.tip and not fetched.problem and not self.run.has_bundles
        commits = _claimed(outcome) if is_unchecked and outcome is not None else fetched.commits
        judgement = judge(
            Evidence(
                end=End.ARCHIVE,
                outcome=outcome,
                problem=problem,
                commits=commits,
                commits_problem=fetched.problem,
            )
        )
        reasons = [judgement.reason] if judgement.result is not Result.CLEAN else []
        if raw is None:
            reasons.append(_without_outcome(agent))
        if is_unchecked and commits:
            self.is_whole = False
            reasons.append("its commits are not here: this is its own word")
        section = agent.section or (section_of(outcome) if outcome is not None else "")
        if is_at_odds(section, judgement.result):
            reasons.append(f"its page has it under {section_in_words(section)}")
        report = report_of(
            outcome or Outcome(errored=True),
            {commit.kind: commit.commit for commit in fetched.commits},
            end=End.ARCHIVE.value,
            tip=fetched.tip,
            has_uncommitted=False,
        )
        reason = plain("; ".join(filter(None, reasons)), REASON_LIMIT)
        return Harvested(test=test, result=judgement.result, reason=reason, harvest=report), outcome, branch

    def _copy_files(self, agent: TmrAgent) -> None:
        """Copy what an agent handed in to where a sweep has it; flat folders of older runs get the present form."""
        if agent.folder is None:
            return
        left = COPY_LIMIT
        target = self.folder.agent(agent.name)
        for file in list_files(agent.folder.path):
            left -= file.size
            if left < 0:
                break
            name = file.name if file.name not in _FLAT_FILES else f"{OUTPUT_FOLDER}/{file.name}"
            name = f"{OUTPUT_FOLDER}/{name}" if name.startswith(f"{ARTIFACTS_FOLDER}/") else name
            _copy(file, target / name)

    def _integration(self, state: SweepState, last: float) -> Iterator[TimedEvent]:
        integrator = self.run.integrator
        raw = read_report(integrator.integrator_outcome) if integrator is not None else None
        if integrator is None:
            return
        outcome, problem = IntegratorOutcome(), "it left none that can be read"
        if raw is not None:
            try:
                outcome, problem = parse_integrator_outcome(raw), ""
            except BrokenReport as error:
                problem = str(error)
        sentence = plain(f"the integrator's report is left aside: {problem}", 400)
        if problem and all(line.text != sentence for line in state.log):
            yield last, Noted(level="warning", text=sentence)
        branch, fetched = self.commits.fetch(integrator)
        outcome = _with_full_ids(outcome, self.commits)
        self.folder.integrator.mkdir(parents=True, exist_ok=True)
        write_beside(self.folder.integrator / INTEGRATOR_OUTCOME_FILE, outcome.model_dump_json(indent=1).encode())
        detail = plain(fetched.problem, 300) or ("" if fetched.tip else "its branch is not here")
        event = Integrated(
            branch=branch if self.commits.is_branch(branch, fetched.tip) else None,
            tip=fetched.tip,
            fixes=sum(commit.kind is ChangeKind.FIX_IMPL for commit in fetched.commits)
            or len(set(outcome.impl_commit_hashes.values())),
            left_out=len(outcome.failed),
            detail=detail,
        )
        before = state.integration
        if (before.state, before.tip, before.fixes, before.detail) != ("done", event.tip, event.fixes, event.detail):
            yield _time_of(integrator.integrator_outcome) or last, event


def _without_outcome(agent: TmrAgent) -> str:
    section = f"; the page has it under {section_in_words(agent.section)}" if agent.section else ""
    return plain(f"it left no outcome that can be read{section}", REASON_LIMIT)


def _claimed(outcome: Outcome) -> tuple[CommitSummary, ...]:
    """Return the commits that an agent says it made, where none can be had to compare."""
    done = [kind for kind, change in outcome.changes.items() if change.status is ChangeStatus.SUCCEEDED]
    return tuple(CommitSummary("", f"[{kind.value}]") for kind in done)


def _tries(test: str, outcome: Outcome | None) -> Iterable[Event]:
    """Yield the runs that the agent describes; of the first and the last it says whether the test passed."""
    if outcome is None:
        return
    count = min(len(outcome.test_runs), _TRIES_LIMIT)
    for number in range(1, count + 1):
        passed = {count: outcome.tests_passing_after, 1: outcome.tests_passing_before}.get(number)
        if count == 1:
            passed = outcome.tests_passing_after
        if passed is not None:
            yield TryFinished(test=test, number=number, passed=passed)
        else:
            yield TryStarted(test=test, number=number)


def _with_full_ids(outcome: IntegratorOutcome, commits: RunCommits) -> IntegratorOutcome:
    squashed = outcome.squashed_commit_hash
    return outcome.model_copy(
        update={
            "squashed_commit_hash": commits.full_id(squashed) if squashed else None,
            "impl_commit_hashes": {
                branch: commits.full_id(commit) for branch, commit in outcome.impl_commit_hashes.items()
            },
        }
    )


def _copy(file: PulledFile, target: Path) -> None:
    """Copy a file unless the same one is there."""
    with suppress(OSError):
        there = target.stat()
        if (there.st_size, there.st_mtime_ns) == (file.size, file.path.stat().st_mtime_ns):
            return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file.path, target, follow_symlinks=False)
    except OSError as error:
        if error.filename == str(target):
            raise JournalError(f"{target} cannot be written", error.strerror or str(error)) from error


def _began_at(run: TmrRun) -> float:
    """Return when a run began, as far as its files tell."""
    return min(filter(None, [*(_time_of(agent.outcome) for agent in run.agents), _last_change(run)]), default=0.0)


def _last_change(run: TmrRun) -> float:
    times = [_path_time(run.root / PAGE_FILE), *(_time_of(agent.outcome) for agent in run.agents)]
    if run.integrator is not None:
        times.append(_time_of(run.integrator.integrator_outcome))
    return max(times) or _path_time(run.root)


def _time_of(file: AgentsFile | None) -> float:
    return file.changed_at if file is not None else 0.0


def _path_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
