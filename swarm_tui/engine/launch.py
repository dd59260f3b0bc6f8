"""Launches one agent: its task, its prompt, its environment, and the one call of mngr that creates it."""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import re
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.set_up import SetUpFailed
from swarm_tui.agents.contract import OUTPUT_FOLDER, PROMPT_FILE, TASK_VARIABLE
from swarm_tui.agents.kinds import AgentKind, AgentStart, kind_of_sweep
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, render_prompt
from swarm_tui.agents.shipped import live_folder, write_command
from swarm_tui.agents.task import Task
from swarm_tui.engine.agent_python import make_agent_python
from swarm_tui.engine.agent_task import AgentTask
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.copy_preparation import preparation_words
from swarm_tui.engine.names import LABEL_ROLE, LABEL_SWEEP, LABEL_TEST, ROLE_MAPPER
from swarm_tui.engine.recording import record_agent
from swarm_tui.engine.task_file import task_for
from swarm_tui.engine.tutorial_task import tutorial_prompt
from swarm_tui.errors import AdapterError, AgentExists, UsageError
from swarm_tui.model.events import Launched, Launching
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.limits import free_number, own_variables
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import LIVING_STATES
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.places.place import AgentAddress, AgentFile, Place, ReadRequest

# A record of mngr has some kilobytes.
RECORD_LIMIT: Final = 1 << 20
_PLAIN_WORDS: Final = re.compile(r"[\w.@+ -]+")


async def launch(context: EngineContext, task: AgentTask, attempt: int, host: str = LOCAL_HOST) -> None:
    """Create the agent of a task and record it; AdapterError when it could not be created."""
    spec, state = context.spec, context.state
    number = free_number(record.number for record in state.tests() if record.state in LIVING_STATES)
    context.record(Launching(test=task.key, attempt=attempt, number=number, host=host))
    record = state.record_of(task.key)
    address = context.address_of(record.agent, attempt, host)
    # The prompt for a tutorial's blocks reads all its tests out of git.
    request = await asyncio.to_thread(task.create_request, context, record, address)
    is_adopted = False
    try:
        async with context.copy_source.held(request.transfer) as source:
            await context.mngr.create(request.model_copy(update={"source": source}))
    except SetUpFailed as error:
        context.note_once("\n".join([error.message, *error.lines]), level="error")
        raise
    except AgentExists:
        # The create of an engine that died may have gone on without it.
        if await recorded_name(context.place, address) is not None:
            is_adopted = True
        elif await _earlier_agents(context, record.agent, attempt):
            raise AdapterError(f"the agent of an earlier attempt is still there: {record.agent}") from None
        else:
            raise UsageError(
                f"mngr has another agent named {record.agent}, which this sweep did not make", "rename or destroy it"
            ) from None
    await protect(context, address)
    if spec.is_recorded:
        await record_agent(context, address, attempt)
    context.record(
        Launched(
            test=task.key,
            agent_id=address.agent_id,
            host=address.host,
            work_dir=address.work_dir,
            state_dir=address.state_dir,
            is_adopted=is_adopted,
        )
    )


async def protect(context: EngineContext, agent: AgentAddress) -> None:
    """Disable mngr's destructive keys in the agent's session, and keep its login from the sessions of others."""
    try:
        await context.place.protect_session(agent)
        await context.place.forget_variables(agent, context.spec.agent_environment)
    except AdapterError as error:
        context.note(f"{agent.name} could not be kept from mngr's ctrl+q and ctrl+t: {error}", level="warning")


async def clear_debris(context: EngineContext, agent: str, attempt: int) -> None:
    """Remove what failed creates of ours have left; never another agent of the same name."""
    for address in await _earlier_agents(context, agent, attempt + 1):
        await destroy_agent(context, address)


async def remove_earlier_agents(context: EngineContext, agent: str, attempts: int) -> int:
    """Remove the agents of at least so many attempts; return the number of attempts that there have been.

    An older journal does not tell of all of them.
    """
    number = 0
    while number < attempts or await recorded_name(context.place, context.address_of(agent, number + 1)) == agent:
        number += 1
        await destroy_agent(context, context.address_of(agent, number))
    return number


async def _earlier_agents(context: EngineContext, agent: str, attempt: int) -> list[AgentAddress]:
    """Return the agents of attempts before this one that are still there."""
    addresses = [context.address_of(agent, number) for number in range(1, attempt)]
    return [address for address in addresses if await recorded_name(context.place, address) == agent]


async def recorded_name(place: Place, address: AgentAddress) -> str | None:
    """Return the name in mngr's record of an agent; None when there is no such agent."""
    (piece,) = await place.read_files([ReadRequest(AgentFile(address, "data.json"), limit=RECORD_LIMIT)])
    try:
        name = json.loads(piece.content).get("name") if piece is not None else None
    except (ValueError, AttributeError, RecursionError):
        return None
    return name if isinstance(name, str) else None


async def destroy_agent(context: EngineContext, address: AgentAddress) -> None:
    """Destroy an agent of ours with its copy, and the branch that it has in the user's repository."""
    if await recorded_name(context.place, address) != address.name:
        return
    report = await context.mngr.destroy([address.name], is_branch_deleted=context.spec.transfer == "worktree")
    if report.failed:
        raise AdapterError(f"mngr could not destroy {address.name}", report.failed[0].error)


def create_request(context: EngineContext, record: TestRecord, address: AgentAddress) -> CreateRequest:
    """Return what mngr is asked for; the task and the prompt are written beside."""
    spec = context.spec
    folder = context.agent_folder(record.agent).absolute()
    python = make_agent_python(spec, context.folder, folder, address.host)
    task, asked = _asked_of(context, record, python.path)
    task_file, prompt = folder / "task.json", folder / "prompt.md"
    task.write(task_file)
    prompt.write_text(asked, encoding="utf-8", errors="replace")
    kind = kind_of_sweep(spec)
    return CreateRequest(
        name=record.agent,
        agent_type=kind.mngr_type,
        command=kind.prepare_command(agent_start(context, address, task_file)),
        source=Path(spec.repository),
        transfer="git-worktree" if spec.transfer == "worktree" else "git-mirror",
        base=spec.base,
        branch=record.branch,
        labels=spec.labels | {LABEL_SWEEP: spec.sweep, LABEL_TEST: plain(record.test, 500), LABEL_ROLE: ROLE_MAPPER},
        message=kind.message(prompt_path(address)),
        environment=environment_for(spec, address, task_file, record.number) | python.variables,
        passed_environment=spec.agent_environment,
        provider=spec.provider,
        is_approved=True,
        extra_arguments=(
            *place_words(spec, address),
            *prompt_words(kind, address, prompt),
            *preparation_words(spec, record.number, address.host),
        ),
    )


def place_words(spec: SweepSpec, address: AgentAddress) -> tuple[str, ...]:
    """Return the words by which mngr gives an agent the id and the copy that we derived, and time to be ready."""
    ready = f"agent_ready_timeout={spec.ready_timeout:g}"
    return ("--id", address.agent_id, "--target-path", address.work_dir, "-S", ready)


def prompt_path(address: AgentAddress) -> str:
    """Return where the prompt lies in an agent's copy."""
    return posixpath.join(address.work_dir, OUTPUT_FOLDER, PROMPT_FILE)


def prompt_words(kind: AgentKind, address: AgentAddress, prompt: Path) -> tuple[str, ...]:
    """Return the words by which mngr puts the prompt into the copy, where git overlooks it."""
    if kind.message("") is None:
        return ()
    ignored = prompt.with_name(".gitignore")
    ignored.write_text("*\n", encoding="utf-8")
    in_copy = prompt_path(address)
    uploads = ((prompt, in_copy), (ignored, posixpath.join(posixpath.dirname(in_copy), ".gitignore")))
    return tuple(word for source, target in uploads for word in ("--upload-file", f"{source}:{target}"))


def agent_start(context: EngineContext, address: AgentAddress, task_file: Path | None) -> AgentStart:
    """Return what a kind needs to know of an agent that is about to be created."""
    words, folder = agent_words(context.spec), context.folder.root.absolute()
    return AgentStart(words, folder, address.state_dir, task_file)


def _asked_of(context: EngineContext, record: TestRecord, python: str) -> tuple[Task, str]:
    """Return the task and the prompt of one agent, which runs its test with `python`."""
    spec = context.spec
    if spec.kind != "tests":
        command = write_command(context.folder.root.absolute())
        return tutorial_prompt(spec, context.repository, record, command)
    task = task_for(spec, record, python)
    template = Path(spec.mapper_prompt) if spec.mapper_prompt else MAPPER_TEMPLATE
    return task, render_prompt(template, task, block=record.block, baseline=record.baseline)


def environment_for(spec: SweepSpec, address: AgentAddress, task_file: Path | None, number: int = 0) -> dict[str, str]:
    """Return the variables of an agent: its kind's, who commits, and a PYTHONPATH with its copy before the checkout.

    With a task file its tries of a test are recorded; with a number it has ports and folders of its own.
    """
    own = [posixpath.normpath(posixpath.join(address.work_dir, root)) for root in spec.import_roots]
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    behind = [_moved(entry, spec.repository, address.work_dir) for entry in given]
    environment = kind_of_sweep(spec).variables(agent_words(spec), is_root=os.geteuid() == 0) | {
        "PYTHONPATH": os.pathsep.join([*([str(live_folder())] if task_file else []), *own, *behind])
    }
    if task_file is not None:
        environment[TASK_VARIABLE] = str(task_file)
    is_apart = bool(number and spec.temporary)
    environment |= own_variables(number, spec.temporary, spec.run_limits) if is_apart else spec.run_limits.variables
    name, email = spec.identity
    if _PLAIN_WORDS.fullmatch(name) and _PLAIN_WORDS.fullmatch(email):
        # An identity that only the user's repository knows is not in the copy's configuration.
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email}
    return environment


def agent_words(spec: SweepSpec) -> tuple[str, ...]:
    """Return the words of the agents' command line: for what they may do, and those that a person gave."""
    permission = kind_of_sweep(spec).permission(spec.permissions, spec.agent_arguments)
    return (*permission.words, *spec.agent_arguments)


def _moved(entry: str, repository: str, copy: str) -> str:
    """Return the copy's folder for one inside the user's checkout; others stay."""
    path = Path(entry)
    is_inside = path.is_absolute() and path.is_relative_to(repository)
    return posixpath.normpath(posixpath.join(copy, path.relative_to(repository))) if is_inside else entry
