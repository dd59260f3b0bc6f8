"""The task of the integrator, a coding agent or the built-in one: a branch out of all that the agents have made."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.git import clone_into
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.process import Finished, run_process
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.agents.integrator.inputs import INPUTS_FILE, IntegratorInputs
from swarm_tui.agents.judging import End
from swarm_tui.agents.kinds import AgentKind, kind_of, kind_of_sweep
from swarm_tui.agents.prompting import render_integrator_prompt
from swarm_tui.agents.shipped import INTEGRATOR_NAME, shelf_here, write_integrator_program
from swarm_tui.engine.agent_python import make_agent_python
from swarm_tui.engine.agent_task import AgentTask, harvest
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.integrate import (
    IntegratorFailed,
    accept_branch,
    compose_inputs,
    count_fixes,
    record_branch,
    record_no_branch,
)
from swarm_tui.engine.launch import (
    agent_start,
    environment_for,
    place_words,
    prompt_path,
    remove_earlier_agents,
    write_prompt,
)
from swarm_tui.engine.names import LABEL_ROLE, LABEL_SWEEP, integrator_of, session_of
from swarm_tui.engine.pull import Pulled, read_output
from swarm_tui.engine.schedule import LAUNCH_ATTEMPTS
from swarm_tui.engine.surroundings import Surroundings
from swarm_tui.engine.tutorial_integrate import integrate_blocks
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import make_own_folder
from swarm_tui.model.events import Integrating, IntegrationFailed
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import INTEGRATOR_KEY, SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import AgentAddress
from swarm_tui.regular_file import read_regular

Integrators = Literal["agent", "builtin"]

ROLE_INTEGRATOR: Final = "integrator"
STOPPED: Final = "stopped; `swarm-tui resume` repeats it"
# Besides measuring, of which the inputs say how long it may take: reading, merging, a copy, the last run.
BUILTIN_EXTRA: Final = 900.0
_WITHOUT_OUTPUT: Final = {
    End.NO_ANSWER: "it waited for an answer, and nobody gave one",
    End.TIMEOUT: "it had not handed in its work in time",
}


@dataclass(slots=True)
class IntegratorTask:
    """Put the agents' branches together."""

    spec: SweepSpec
    inputs: IntegratorInputs
    by: Integrators
    _process: asyncio.Task[Finished] | None = field(default=None, init=False)

    @property
    def key(self) -> str:
        return INTEGRATOR_KEY

    @property
    def kind(self) -> AgentKind:
        return kind_of("command") if self.by == "builtin" else kind_of_sweep(self.spec)

    @property
    def timeout(self) -> float:
        return self.inputs.measure_seconds + BUILTIN_EXTRA if self.by == "builtin" else self.spec.timeout

    @property
    def launch_attempts(self) -> int:
        # The built-in integrator can do without mngr.
        return 1 if self.by == "builtin" else LAUNCH_ATTEMPTS

    def folder(self, context: EngineContext) -> Path:
        return make_own_folder(context.folder.integrator)

    def commits_ref(self, context: EngineContext) -> str:
        # Not under refs/swarm/: a name there makes the branch of the same name ambiguous for git.
        return f"refs/swarm-fetched/{self.spec.sweep}"

    def create_request(
        self, context: EngineContext, record: TestRecord, address: AgentAddress, around: Surroundings
    ) -> CreateRequest:
        spec, root, folder = self.spec, context.folder.root.absolute(), self.folder(context).absolute()
        command: tuple[str, ...] = (write_integrator_program(around.shelf), str(folder / INPUTS_FILE))
        message, environment, words = None, {}, place_words(spec, address)
        # The built-in integrator runs the project's tests, which are not to see what agents log in with.
        passed: tuple[str, ...] = ()
        if self.by == "agent":
            template = Path(spec.integrator_prompt) if spec.integrator_prompt else None
            write_prompt(Path(around.folder), render_integrator_prompt(template, self.inputs, root))
            command = self.kind.prepare_command(agent_start(spec, around.shelf, address, None))
            message = self.kind.message(prompt_path(address))
            python = make_agent_python(spec, context.folder, folder, address.host)
            environment = environment_for(spec, address, around, has_task=False) | python.variables
            passed = (*spec.agent_environment, *spec.integrator_environment)
            words += around.prompt_words(address.work_dir) if message is not None else ()
        return CreateRequest(
            name=record.agent,
            agent_type=self.kind.mngr_type,
            command=command,
            source=Path(spec.repository),
            # Always a clone of its own: what it makes reaches the user's repository only after it was checked.
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

    async def finish(self, context: EngineContext, pulled: Pulled, end: End) -> AgentTask | None:
        try:
            raw = self._outcome(context, pulled, end)
            outcome = await asyncio.to_thread(accept_branch, context, self.inputs, raw, pulled.fetched)
            fixes = await asyncio.to_thread(count_fixes, context, pulled.fetched.tip)
        except (SwarmError, OSError) as error:
            return self._fail(context, error)
        finally:
            self._forget_commits(context)
        record_branch(context, outcome, pulled.fetched.tip, fixes)
        return None

    def _outcome(self, context: EngineContext, pulled: Pulled, end: End) -> bytes:
        if pulled.problem:
            raise IntegratorFailed(pulled.problem)
        raw = read_output(self.folder(context), INTEGRATOR_OUTCOME_FILE) if pulled.has_output else None
        if raw is not None:
            return raw
        if pulled.has_output:
            raise IntegratorFailed("it handed in no outcome")
        last_line = context.state.record_of(self.key).last_line
        reason = _WITHOUT_OUTPUT.get(end, "its process ended before it handed in its work")
        raise IntegratorFailed(reason, f"it said {last_line!r}" if last_line else "")

    async def give_up(self, context: EngineContext, attempt: int, reason: str) -> AgentTask | None:
        if self.by == "agent":
            return self._fail(context, IntegratorFailed(f"it could not be launched: {plain(reason, 300)}"))
        context.note(f"the integrator works without mngr, which refused to create it: {reason}", level="warning")
        try:
            await self._run_without_mngr(context)
        except asyncio.CancelledError:
            if self._process is None or not self._process.cancelled():
                raise
            self.record_stop(context, STOPPED)
        except (SwarmError, OSError) as error:
            self._fail(context, error)
        return None

    def record_stop(self, context: EngineContext, reason: str) -> None:
        self._forget_commits(context)
        context.record(IntegrationFailed(reason=STOPPED))

    def cancel(self) -> None:
        """End the built-in integrator where it runs without mngr."""
        if self._process is not None:
            self._process.cancel()

    def _fail(self, context: EngineContext, error: Exception) -> AgentTask | None:
        """Record a failure; return the built-in integrator's task after that of a coding agent."""
        if self.by == "builtin":
            context.record(IntegrationFailed(reason=plain(str(error), 500)))
            return None
        context.note(f"the coding agent's integration is not used: {error}", level="warning")
        return IntegratorTask(self.spec, self.inputs, "builtin")

    def _forget_commits(self, context: EngineContext) -> None:
        held = context.repository.ref(self.commits_ref(context))
        if held is not None:
            context.repository.delete_ref(self.commits_ref(context), old=held)

    async def _run_without_mngr(self, context: EngineContext) -> None:
        """Run the built-in integrator as a plain process in a clone of its own on this machine, and harvest it."""
        program = write_integrator_program(shelf_here(context.folder.root.absolute()))
        with tempfile.TemporaryDirectory(prefix="swarm-integrate-") as root:
            work, state = Path(root) / "work", Path(root) / "state"
            state.mkdir()
            inputs = self.inputs
            await asyncio.to_thread(clone_into, context.repository, work, commit=inputs.base, branch=inputs.branch)
            own = {"MNGR_AGENT_STATE_DIR": str(state), "MNGR_AGENT_WORK_DIR": str(work), "MNGR_HOST_DIR": root}
            words = [program, str(context.folder.integrator.absolute() / INPUTS_FILE)]
            environment = scrubbed_environment(own)
            self._process = asyncio.ensure_future(
                run_process(words, cwd=work, environment=environment, timeout=self.timeout)
            )
            finished = await self._process
            if not (state / ARCHIVE_PATH).exists():
                last = (finished.text + finished.error_text).strip().splitlines() or ["it said nothing"]
                raise IntegratorFailed(f"{INTEGRATOR_NAME} ended with code {finished.code}: {plain(last[-1], 300)}")
            agent = integrator_of(self.spec)
            address = AgentAddress(agent, "", session_of(self.spec, agent), str(state), str(work))
            here = LocalPlace(self.spec.mngr)
            await harvest(context, self, address, End.ARCHIVE, here)


async def prepare_integration(context: EngineContext) -> IntegratorTask | None:
    """Integrate what needs no agent for it; else return the task of the agent that does. Failures are recorded."""
    try:
        if context.spec.kind != "tests":
            await integrate_blocks(context)
            return None
        inputs = await asyncio.to_thread(compose_inputs, context)
        if inputs.branches:
            return IntegratorTask(context.spec, inputs, "agent" if context.spec.integrator == "agent" else "builtin")
        record_no_branch(context, inputs)
    except (SwarmError, OSError) as error:
        context.record(IntegrationFailed(reason=plain(str(error), 500)))
    return None


async def begin_integrator(context: EngineContext, task: IntegratorTask) -> None:
    """Record that an integrator begins; an agent of an earlier integration goes, for this one gets its name."""
    agent = integrator_of(context.spec)
    try:
        attempts = await remove_earlier_agents(context, agent, context.state.record_of(INTEGRATOR_KEY).attempt)
    except SwarmError as error:
        context.note(f"the integrator of before could not be removed: {error}", level="warning")
        attempts = 0
    context.record(
        Integrating(
            by=task.by, branches=len(task.inputs.branches), agent=agent, branch=task.inputs.branch, attempt=attempts
        )
    )


def continued_integration(context: EngineContext) -> IntegratorTask | None:
    """Return the task of an integrator that an engine before this one has launched; None when it cannot be known."""
    by = context.state.integration.detail
    with contextlib.suppress(OSError, ValueError):
        inputs = IntegratorInputs.model_validate_json(read_regular(context.folder.integrator / INPUTS_FILE))
        return IntegratorTask(context.spec, inputs, "agent" if by == "agent" else "builtin")
    return None
