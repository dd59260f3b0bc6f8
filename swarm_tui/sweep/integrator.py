"""The job of the integrator, a coding agent or the built-in one: one branch with the work of all agents."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal

from swarm_tui.adapters.git import clone_into, fetch_bundle
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.processes.environment import passed_variables, project_environment
from swarm_tui.adapters.processes.run import Finished, finish_in_thread, run_process
from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.agents.packaged import INTEGRATOR_NAME, local_package_dir, write_integrator_program
from swarm_tui.agents.prompting import render_integrator_prompt
from swarm_tui.agents.types import AgentType, agent_type_of, agent_type_of_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_regular
from swarm_tui.hosts.preparation import AgentPaths
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.integrator.events import IntegrationFailed, IntegrationStarted
from swarm_tui.integrator.inputs import INPUTS_FILE, IntegratorInputs, Submission
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.report import (
    INTEGRATOR_OUTCOME_SIZE_LIMIT,
    IntegratorReport,
    parse_agents_integration,
    parse_integrator_report,
)
from swarm_tui.model.spec import SweepSpec, integrator_of
from swarm_tui.model.text import plain
from swarm_tui.sweep.agent_context import LABEL_ROLE, LABEL_SWEEP
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.integrate import (
    IntegratorFailed,
    accept_branch,
    compose_inputs,
    count_fixes,
    keep_submitted,
    record_branch,
    record_no_branch,
)
from swarm_tui.sweep.launch import (
    agent_start,
    commits_ref,
    environment_for,
    place_words,
    prompt_path,
    remove_earlier_agents,
    write_prompt,
)
from swarm_tui.sweep.pull import PulledOutput, read_output
from swarm_tui.sweep.slots import MAX_LAUNCHES
from swarm_tui.sweep.tutorial_integrate import integrate_blocks
from swarm_tui.testing.python import make_agent_python

Integrators = Literal["agent", "builtin"]

ROLE_INTEGRATOR: Final = "integrator"
STOPPED: Final = "stopped; `swarm-tui resume` repeats it"
RUN_INPUTS_FILE: Final = "run-inputs.json"
# Seconds for everything except measuring: reading, merging, setting up copies.
BUILTIN_EXTRA: Final = 900.0
_WITHOUT_OUTPUT: Final = {
    AgentEnd.NO_ANSWER: "it waited for an answer that did not come",
    AgentEnd.TIMEOUT: "it did not submit its work in time",
}


@dataclass(frozen=True, slots=True)
class _Made:
    """The result of the built-in integrator."""

    report: bytes
    tip: str
    is_submitted: bool
    """Whether it is the branch that a coding agent submitted."""


@dataclass(slots=True)
class IntegratorJob:
    """Integrate the agents' branches."""

    spec: SweepSpec
    inputs: IntegratorInputs
    by: Integrators
    _process: asyncio.Task[Finished] | None = field(default=None, init=False)
    _is_cancelled: bool = field(default=False, init=False)

    @property
    def key(self) -> str:
        return INTEGRATOR_KEY

    @property
    def kind(self) -> AgentType:
        return agent_type_of("command") if self.by == "builtin" else agent_type_of_sweep(self.spec)

    @property
    def timeout(self) -> float:
        return _builtin_timeout(self.inputs) if self.by == "builtin" else self.spec.timeout

    @property
    def max_launches(self) -> int:
        # The built-in integrator does not need mngr.
        return 1 if self.by == "builtin" else MAX_LAUNCHES

    def create_request(
        self, context: SweepContext, record: TestRecord, address: AgentAddress, around: AgentPaths
    ) -> CreateRequest:
        spec, root, folder = self.spec, context.folder.root.absolute(), context.work_folder(self.key).absolute()
        command: tuple[str, ...] = (write_integrator_program(around.package_dir), str(folder / INPUTS_FILE))
        message, environment, words = None, {}, place_words(spec, address)
        # The built-in integrator runs the project's tests, which must not get the agents' credentials.
        passed = spec.passed_environment
        if self.by == "agent":
            template = Path(spec.integrator_prompt) if spec.integrator_prompt else None
            write_prompt(Path(around.folder), render_integrator_prompt(template, self.inputs, root))
            start = agent_start(spec, around.package_dir, address, None)
            command = self.kind.prepare_command(start)
            words += self.kind.create_arguments(start, spec.permissions)
            message = self.kind.message(prompt_path(address))
            python = make_agent_python(spec, context.folder, folder, address.host)
            environment = environment_for(spec, address, around, has_task=False) | python.variables
            passed = (*spec.agent_environment, *spec.integrator_environment)
            words += around.prompt_words() if message is not None else ()
        return CreateRequest(
            name=record.agent,
            agent_type=self.kind.mngr_type,
            command=command,
            source=Path(spec.repository),
            # Always a separate clone: the result reaches the user's repository only after it was checked.
            transfer="git-mirror",
            base=spec.base,
            branch=record.branch,
            labels=spec.labels | {LABEL_SWEEP: spec.sweep, LABEL_ROLE: ROLE_INTEGRATOR},
            message=message,
            environment=environment,
            passed_environment=passed,
            is_approved=True,
            extra_arguments=words,
        )

    async def finish(self, context: SweepContext, pulled: PulledOutput, end: AgentEnd) -> None:
        if self.by == "agent":
            await self.measure(context, self._submission(context, pulled, end))
            return
        try:
            raw, tip = self._outcome(context, pulled, end), pulled.fetched.tip
            if pulled.fetched.problem:
                raise IntegratorFailed(plain(pulled.fetched.problem, 300))
            await self._accept(context, raw, tip)
        except (SwarmError, OSError) as error:
            self._fail(context, error)
        finally:
            self._forget_commits(context)

    async def give_up(self, context: SweepContext, reason: str, end: AgentEnd = AgentEnd.NOT_LAUNCHED) -> None:
        if self.by == "agent":
            await self.measure(context, Submission(problem=plain(reason, 300)))
        elif end is AgentEnd.NOT_LAUNCHED:
            context.note(f"mngr did not create the integrator, so it runs without mngr: {reason}", level="warning")
            await self.measure(context, None)
        else:
            self._forget_commits(context)
            self._fail(context, IntegratorFailed(plain(reason, 300)))

    def _outcome(self, context: SweepContext, pulled: PulledOutput, end: AgentEnd) -> bytes:
        """Return the submitted report. Raise IntegratorFailed if there is none."""
        if pulled.problem:
            raise IntegratorFailed(pulled.problem)
        limit = INTEGRATOR_OUTCOME_SIZE_LIMIT
        raw = read_output(context.work_folder(self.key), INTEGRATOR_OUTCOME_FILE, limit) if pulled.has_output else None
        if raw is not None:
            return raw
        if pulled.has_output:
            raise IntegratorFailed("it submitted no report")
        last_line = context.state.record_of(self.key).last_line
        reason = _WITHOUT_OUTPUT.get(end, "its process exited before it submitted its work")
        raise IntegratorFailed(reason + (f" (its last line: {last_line!r})" if last_line else ""))

    def _submission(self, context: SweepContext, pulled: PulledOutput, end: AgentEnd) -> Submission:
        """Return the coding agent's submission, with the reason if it is unusable."""
        fetched, report, problem = pulled.fetched, IntegratorReport(), ""
        try:
            report = parse_agents_integration(self._outcome(context, pulled, end))
            problem = fetched.problem
        except (IntegratorFailed, ValueError) as error:
            problem = str(error)
        return Submission(
            tip=fetched.tip, ref=commits_ref(context, self.key), problem=plain(problem, 300), report=report
        )

    async def measure(self, context: SweepContext, submission: Submission | None) -> None:
        """Run the built-in integrator here. It measures what an agent submitted, and takes over if that is worse."""
        if submission is not None and submission.problem:
            _note_refusal(context, submission.problem)
        is_used = False
        try:
            made = await self._run_measured(context, submission)
            await self._accept(context, made.report, made.tip)
            is_used = made.is_submitted
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            context.record(IntegrationFailed(reason=STOPPED))
        except (SwarmError, OSError) as error:
            self._fail(context, error)
        finally:
            if submission is not None and submission.tip and not is_used:
                keep_submitted(context, submission.tip)
            self._forget_commits(context)

    async def _run_measured(self, context: SweepContext, submission: Submission | None) -> _Made:
        """Run the built-in integrator. If it fails with a submitted branch, run it again without that branch."""
        try:
            return await self._run_here(context, submission)
        except (SwarmError, OSError, ValueError) as error:
            if submission is None or submission.problem:
                raise
            problem = plain(f"its branch could not be measured: {error}", 300)
            _note_refusal(context, problem)
            return await self._run_here(context, submission.model_copy(update={"problem": problem}))

    def record_stop(self, context: SweepContext, reason: str) -> None:
        self._forget_commits(context)
        context.record(IntegrationFailed(reason=STOPPED))

    def cancel(self) -> None:
        """Stop the built-in integrator if it runs without mngr."""
        self._is_cancelled = True
        if self._process is not None:
            self._process.cancel()

    def _fail(self, context: SweepContext, error: Exception) -> None:
        context.record(IntegrationFailed(reason=plain(str(error), 500)))

    async def _accept(self, context: SweepContext, raw: bytes, tip: str) -> None:
        outcome = await asyncio.to_thread(accept_branch, context, raw, tip)
        fixes = await asyncio.to_thread(count_fixes, context, outcome, tip)
        record_branch(context, outcome, tip, fixes)

    def _forget_commits(self, context: SweepContext) -> None:
        held = context.repository.ref(commits_ref(context, self.key))
        if held is not None:
            context.repository.delete_ref(commits_ref(context, self.key), old=held)

    async def _run_here(self, context: SweepContext, submission: Submission | None) -> _Made:
        """Run the built-in integrator as a process in a temporary clone."""
        program = write_integrator_program(local_package_dir(context.folder.root.absolute()))
        inputs = self.inputs.model_copy(update={"submission": submission})
        inputs_file = context.work_folder(self.key).absolute() / RUN_INPUTS_FILE
        write_beside(inputs_file, inputs.model_dump_json(indent=1).encode())
        # After it is stopped, programs that the integrator has started may still write there.
        with tempfile.TemporaryDirectory(prefix="swarm-integrate-", ignore_cleanup_errors=True) as root:
            work, state = Path(root) / "work", Path(root) / "state"
            state.mkdir()
            clone = partial(clone_into, context.repository, work, commit=inputs.base, branch=inputs.branch)
            await finish_in_thread(clone)
            own = {"MNGR_AGENT_STATE_DIR": str(state), "MNGR_AGENT_WORK_DIR": str(work), "MNGR_HOST_DIR": root}
            environment = project_environment(passed_variables(self.spec.passed_environment) | own)
            words = [program, str(inputs_file)]
            timeout = _builtin_timeout(inputs)
            if self._is_cancelled:
                raise asyncio.CancelledError
            self._process = asyncio.ensure_future(
                run_process(words, cwd=work, environment=environment, timeout=timeout)
            )
            finished = await self._process
            if finished.code:
                last = (finished.text + finished.error_text).strip().splitlines() or ["it printed nothing"]
                raise IntegratorFailed(f"{INTEGRATOR_NAME} exited with code {finished.code}: {plain(last[-1], 300)}")
            raw = read_regular(work / OUTPUT_FOLDER / INTEGRATOR_OUTCOME_FILE)
            fields = parse_integrator_report(raw).model_extra or {}
            is_submitted = fields.get("by") == "agent"
            if submission is not None and not submission.problem and not is_submitted:
                _note_refusal(context, str(fields.get("refused")))
            tip, bundle, ref = "", state / BUNDLE_FILE, commits_ref(context, self.key)
            if bundle.exists():
                fetch = partial(fetch_bundle, context.repository, bundle, branch=inputs.branch, into=ref)
                tip = await finish_in_thread(fetch)
            return _Made(raw, tip, is_submitted)


def _note_refusal(context: SweepContext, reason: str) -> None:
    context.note(f"the coding agent's branch is not used: {plain(reason, 500)}", level="warning")


def _builtin_timeout(inputs: IntegratorInputs) -> float:
    """Return the time limit of the built-in integrator. It measures the fixes and all tests of one branch or two."""
    return (2 if inputs.submission is None else 4) * inputs.measure_seconds + BUILTIN_EXTRA


async def prepare_integration(context: SweepContext) -> IntegratorJob | None:
    """Integrate if that needs no agent, else return the job of the agent. Failures are recorded."""
    try:
        if context.spec.kind != "tests":
            await integrate_blocks(context)
            return None
        inputs = await asyncio.to_thread(compose_inputs, context)
        if inputs.branches:
            return IntegratorJob(context.spec, inputs, "agent" if context.spec.integrator == "agent" else "builtin")
        record_no_branch(context, inputs)
    except (SwarmError, OSError) as error:
        context.record(IntegrationFailed(reason=plain(str(error), 500)))
    return None


async def begin_integrator(context: SweepContext, job: IntegratorJob) -> None:
    """Record that an integrator begins. An agent of an earlier integration is removed, because the names are equal."""
    agent = integrator_of(context.spec)
    try:
        launches = await remove_earlier_agents(context, agent, context.state.record_of(INTEGRATOR_KEY).launch)
    except SwarmError as error:
        context.note(f"the earlier integrator could not be removed: {error}", level="warning")
        launches = 0
    context.record(
        IntegrationStarted(
            by=job.by, branches=len(job.inputs.branches), agent=agent, branch=job.inputs.branch, launch=launches
        )
    )


def continued_integration(context: SweepContext) -> IntegratorJob | None:
    """Return the job of an integrator that an earlier engine has launched, or None if it is unknown."""
    by = context.state.integration.detail
    with contextlib.suppress(OSError, ValueError):
        inputs = IntegratorInputs.model_validate_json(read_regular(context.folder.integrator / INPUTS_FILE))
        return IntegratorJob(context.spec, inputs, "agent" if by == "agent" else "builtin")
    return None
