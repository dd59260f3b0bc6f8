"""Launch an agent: prompt, environment, recording, one call of `mngr create`; pull and destroy agents."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.cast_writer import SIZE_LIMIT
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.processes.environment import NO_BYTECODE, scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.pytest import NAMED_IN_VARIABLE, SetUpFailed
from swarm_tui.agents.contract import OUTPUT_FOLDER, PROMPT_FILE, TASK_VARIABLE, USED_VARIABLE, Task
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.agents.packaged import PackageDir, write_command
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, note_section, render_prompt, render_revision
from swarm_tui.agents.types import AgentStart, agent_type_of_sweep
from swarm_tui.errors import AdapterError, AgentExists, UsageError
from swarm_tui.files import replacing
from swarm_tui.hosts.preparation import TASK_FILE, AgentPaths, local_paths, paths_on
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, ReadRequest
from swarm_tui.hosts.registry import Hosts
from swarm_tui.hosts.ssh import RECORDING
from swarm_tui.journal.events import Launching, Pulling
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.results import LIVING_STATES, State
from swarm_tui.model.run_limits import free_number, own_variables
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec, mngr_address
from swarm_tui.model.text import parse_object, plain
from swarm_tui.sweep.agent_context import (
    LABEL_ROLE,
    LABEL_SWEEP,
    LABEL_TEST,
    ROLE_MAPPER,
    held_refs,
    launched_event,
    pulled_ref,
    recorded_address,
    slug_of,
)
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.copies import preparation_words, task_for
from swarm_tui.sweep.pull import PulledOutput, pull_work
from swarm_tui.sweep.stop import destroy_agents
from swarm_tui.sweep.tutorial_work import tutorial_prompt
from swarm_tui.sweep.watch import AgentFollower, KeptTranscript, find_dialog
from swarm_tui.testing.python import make_agent_python
from swarm_tui.transcripts.locate import PULLED_TRANSCRIPT

if TYPE_CHECKING:
    from swarm_tui.sweep.job import Job


async def bring_recording(context: SweepContext, agent: AgentAddress, launch_number: int) -> None:
    """Fetch the recording of an agent from another host."""
    cast = context.folder.recordings(agent.name) / f"agent-{launch_number}.cast"
    if context.spec.is_recorded and agent.host != LOCAL_HOST:
        cast.parent.mkdir(parents=True, exist_ok=True)
        await context.hosts[agent.host].fetch_file(AgentFile(agent, RECORDING).full_path, cast, limit=SIZE_LIMIT)


async def record_agent(context: SweepContext, agent: AgentAddress, launch_number: int) -> None:
    """Start recording an agent's terminal. If that fails, the agent runs without a recording."""
    cast = context.folder.recordings(agent.name) / f"agent-{launch_number}.cast"
    if cast.exists():
        # A resumed engine has adopted the agent: the recorder lives as long as the pane.
        return
    try:
        await context.hosts[agent.host].record_terminal(agent, cast)
    except AdapterError as error:
        context.note(f"{agent.name} is not recorded: {error}", level="warning")


def commits_ref(context: SweepContext, key: str) -> str:
    """Return the ref under which an agent's commits are fetched into the user's repository."""
    if key == INTEGRATOR_KEY:
        # Not below refs/swarm/: a name there makes the branch of the same name ambiguous for git.
        return f"refs/swarm-fetched/{context.spec.sweep}"
    return pulled_ref(context.spec, context.state.record_of(key).branch)


def follow_agent(context: SweepContext, job: Job, record: TestRecord, *, is_adopted: bool) -> AgentFollower:
    """Return the follower of an agent that was launched, or adopted from an earlier engine."""
    spec, now = context.spec, time.monotonic()
    # The wall clock may have jumped, so it counts for at most half of the time limit.
    elapsed = time.time() - record.launched_at if is_adopted and record.launched_at else 0.0
    watch = AgentFollower(
        task=job,
        address=recorded_address(spec, record),
        started=now - min(max(elapsed, 0.0), job.timeout / 2),
        timeout=job.timeout,
        wait_timeout=spec.wait_timeout,
    )
    if record.host not in ("", LOCAL_HOST) or job.kind.transcript_sources.has_subagents:
        watch.kept_transcript = KeptTranscript(context.folder.agent(record.agent) / PULLED_TRANSCRIPT)
    # Its first message was typed before the launch was over.
    watch.note_typing(record.launched_at or 0.0)
    if is_adopted:
        watch.continue_from(record)
        if record.state is State.WAITING:
            watch.state, watch.waiting_since = State.WAITING, now
    return watch


async def pull_to_finish(
    context: SweepContext, job: Job, agent: AgentAddress, end: AgentEnd
) -> tuple[PulledOutput, AgentEnd]:
    """Pull the work of an agent, and return it with the end that counts."""
    context.record(Pulling(test=job.key, source=end.value))
    pulled = await pull_for(context, job, agent)
    for note in pulled.notes:
        context.note(note, level="warning", test=job.key)
    # An agent that is gone may have submitted its work to an engine that was then killed.
    return pulled, AgentEnd.ARCHIVE if pulled.has_output else end


async def pull_for(context: SweepContext, job: Job, agent: AgentAddress) -> PulledOutput:
    """Pull the work of an agent."""
    await bring_recording(context, agent, context.state.record_of(job.key).launch)
    branch = context.state.record_of(job.key).branch
    return await pull_work(
        context.hosts[agent.host],
        agent,
        context.work_folder(job.key),
        repository=context.repository,
        base=context.spec.base,
        branch=branch,
        ref=commits_ref(context, job.key),
        held=f"{held_refs(context.spec)}/{slug_of(branch)}",
        sources=job.kind.transcript_sources,
    )


# A record of mngr has a few kilobytes.
RECORD_LIMIT: Final = 1 << 20
_PLAIN_WORDS: Final = re.compile(r"[\w.@+ -]+")


async def launch(context: SweepContext, job: Job, launch_number: int, host: str = LOCAL_HOST) -> None:
    """Create the agent of a job and record it. Raise AdapterError if that fails."""
    spec, state = context.spec, context.state
    number = free_number(record.number for record in state.tests() if record.state in LIVING_STATES)
    context.record(Launching(test=job.key, launch=launch_number, number=number, host=host))
    record = state.record_of(job.key)
    address = context.address_of(record.agent, launch_number, host)
    own = context.work_folder(job.key)
    around = await surroundings_of(context, address, own)
    # The prompt for a tutorial's blocks reads all its tests from git.
    request = await asyncio.to_thread(job.create_request, context, record, address, around)
    await around.deliver(own, address)
    is_adopted = False
    try:
        async with context.copy_source.held(request.transfer, request.base or "") as source:
            await context.mngr.create(request.model_copy(update={"source": source}))
    except SetUpFailed as error:
        context.note_once(" | ".join([error.problem, *error.lines]), level="error")
        raise
    except AgentExists:
        # The `mngr create` of a killed engine may have continued.
        if await recorded_name(context.hosts, address) is not None:
            is_adopted = True
        elif await _earlier_agents(context, record.agent, launch_number, host):
            raise AdapterError(f"the agent of an earlier launch is still there: {record.agent}") from None
        else:
            raise UsageError(
                f"mngr has another agent named {record.agent}, which this sweep did not create", "rename or destroy it"
            ) from None
    except AdapterError:
        dialog = await _dialog_at_start(context, address)
        if not dialog:
            raise
        await clear_debris(context, record.agent, launch_number, host)
        hint = agent_type_of_sweep(spec).start_dialog_hint
        raise UsageError(f"a dialog blocks the start of its program: {dialog}", hint) from None
    await protect(context, address)
    if spec.is_recorded:
        await record_agent(context, address, launch_number)
    context.record(launched_event(job.key, address, is_adopted=is_adopted, agent_dir=around.folder))


async def surroundings_of(context: SweepContext, address: AgentAddress, own: Path) -> AgentPaths:
    """Return the paths on an agent's host, which is prepared first. Raise HostSetupFailed if it is unfit."""
    host = context.hosts[address.host]
    if host.settings is not None:
        return paths_on(await context.preparation.prepared(host), address.name)
    return local_paths(context.folder, own)


async def protect(context: SweepContext, agent: AgentAddress) -> None:
    """Disable mngr's destructive keys in the agent's session, and remove its login from new sessions."""
    try:
        tmux = context.hosts[agent.host].tmux
        await tmux.protect_session(agent.session)
        given = (*context.spec.agent_environment, *context.spec.integrator_environment)
        await tmux.forget_variables(given)
    except AdapterError as error:
        context.note(f"{agent.name} could not be kept from mngr's ctrl+q and ctrl+t: {error}", level="warning")


async def _dialog_at_start(context: SweepContext, address: AgentAddress) -> str:
    """Return the text of a dialog that blocks the start of an agent; "" without one."""
    try:
        screens = await context.hosts.capture_screens([address])
    except AdapterError:
        return ""
    return find_dialog(screens.get(address.session) or "", agent_type_of_sweep(context.spec).dialog_signs)


async def clear_debris(context: SweepContext, agent: str, launch_number: int, host: str = LOCAL_HOST) -> None:
    """Remove the remains of this sweep's failed launches from a host, but no other agent of the same name."""
    for address in await _earlier_agents(context, agent, launch_number + 1, host):
        await destroy_agent(context, address)


async def remove_earlier_agents(context: SweepContext, agent: str, launches: int) -> int:
    """Remove the agents of the first `launches` launches and all that follow; return the number of launches.

    An older journal does not contain all of them.
    """
    number = 0
    while number < launches or await recorded_name(context.hosts, context.address_of(agent, number + 1)) == agent:
        number += 1
        await destroy_agent(context, context.address_of(agent, number))
    return number


async def _earlier_agents(context: SweepContext, agent: str, launch_number: int, host: str) -> list[AgentAddress]:
    """Return the agents of earlier launches that are still on a host."""
    addresses = [context.address_of(agent, number, host) for number in range(1, launch_number)]
    return [address for address in addresses if await recorded_name(context.hosts, address) == agent]


async def recorded_name(hosts: Hosts, address: AgentAddress) -> str | None:
    """Return the name in mngr's record of an agent, or None if there is no such agent."""
    (piece,) = await hosts.read_files([ReadRequest(AgentFile(address, "data.json"), limit=RECORD_LIMIT)])
    name = parse_object(piece.content).get("name") if piece is not None else None
    return name if isinstance(name, str) else None


async def destroy_agent(context: SweepContext, address: AgentAddress) -> None:
    """Destroy an agent with its copy and its branch in the user's repository."""
    if await recorded_name(context.hosts, address) != address.name:
        return
    is_branch_ours = context.spec.transfer == "worktree"
    failed = await destroy_agents(context.mngr, context.hosts, [address], is_branch_deleted=is_branch_ours)
    if failed:
        raise AdapterError(f"mngr could not destroy {address.name}: {failed[0].error}")


def create_request(
    context: SweepContext, record: TestRecord, address: AgentAddress, around: AgentPaths | None = None
) -> CreateRequest:
    """Return the request to mngr. The task and the prompt are written into the agent's folder of the sweep."""
    spec = context.spec
    folder = context.work_folder(record.test).absolute()
    around = around or local_paths(context.folder, folder)
    python = make_agent_python(spec, context.folder, folder, address.host)
    task, asked = _asked_of(context, record, around, python.path)
    task.write(folder / TASK_FILE)
    write_prompt(folder, asked + note_section(record.note))
    kind = agent_type_of_sweep(spec)
    start = agent_start(spec, around.package_dir, address, around.task_file)
    prompt_words = around.prompt_words() if kind.message("") is not None else ()
    request = CreateRequest(
        name=record.agent,
        agent_type=kind.mngr_type,
        command=kind.prepare_command(start),
        source=Path(spec.repository),
        transfer="git-worktree" if spec.transfer == "worktree" else "git-mirror",
        base=record.revision.tip if record.revision is not None else spec.base,
        branch=record.branch,
        labels=spec.labels | {LABEL_SWEEP: spec.sweep, LABEL_TEST: plain(record.test, 500), LABEL_ROLE: ROLE_MAPPER},
        message=kind.message(prompt_path(address)),
        environment=environment_for(spec, address, around, has_task=True, number=record.number) | python.variables,
        passed_environment=spec.agent_environment,
        is_approved=True,
        extra_arguments=(
            *place_words(spec, address),
            *kind.create_arguments(start, spec.permissions),
            *prompt_words,
            *preparation_words(spec, record.number, around.host_setup),
        ),
    )
    return around.placed(request)


def place_words(spec: SweepSpec, address: AgentAddress) -> tuple[str, ...]:
    """Return the arguments of `mngr create` for the derived id and copy of an agent, and its time to become ready."""
    ready = f"agent_ready_timeout={spec.ready_timeout:g}"
    return ("--id", address.agent_id, "--target-path", address.work_dir, "-S", ready)


def prompt_path(address: AgentAddress) -> str:
    """Return the path of the prompt in an agent's copy."""
    return posixpath.join(address.work_dir, OUTPUT_FOLDER, PROMPT_FILE)


def write_prompt(folder: Path, prompt: str) -> None:
    """Write a prompt, and a file that makes git ignore it in the agent's copy."""
    with replacing(folder / PROMPT_FILE, is_synced=False) as draft:
        draft.write(prompt.encode(errors="replace"))
    with replacing(folder / ".gitignore", is_synced=False) as draft:
        draft.write(b"*\n")


def agent_start(spec: SweepSpec, package_dir: PackageDir, address: AgentAddress, task_file: str | None) -> AgentStart:
    """Return what an agent type needs to start an agent."""
    left_out = spec.unapproved_servers, spec.outside_imports
    return AgentStart(agent_words(spec), package_dir, address.state_dir, task_file, *left_out)


def _asked_of(context: SweepContext, record: TestRecord, around: AgentPaths, python: str) -> tuple[Task, str]:
    """Return the task and the prompt of one agent, which runs its test with `python`."""
    spec = context.spec
    if spec.kind != "tests":
        return tutorial_prompt(spec, context.repository, record, write_command(around.package_dir))
    task = around.task(task_for(spec, record, python))
    if record.revision is not None:
        title = context.repository.run("log", "-1", "--format=%s", record.revision.fix, "--").text
        return task, render_revision(task, record.revision, plain(title, 200))
    template = Path(spec.mapper_prompt) if spec.mapper_prompt else MAPPER_TEMPLATE
    return task, render_prompt(template, task, block=record.block, baseline=record.baseline)


def environment_for(
    spec: SweepSpec, address: AgentAddress, around: AgentPaths, *, has_task: bool, number: int = 0
) -> dict[str, str]:
    """Return an agent's variables: its type's, its identity, and a PYTHONPATH with its copy before the checkout.

    With a task, its tries of a test are recorded. With a number, it has its own ports and folders.
    """
    own = [posixpath.normpath(posixpath.join(address.work_dir, root)) for root in spec.import_roots]
    # The entries of this machine do not exist on other hosts.
    inherited = os.environ.get("PYTHONPATH", "") if around.prepared is None else ""
    given = [entry for entry in inherited.split(os.pathsep) if entry]
    behind = [_moved(entry, spec.repository, address.work_dir) for entry in given]
    environment = agent_type_of_sweep(spec).variables(agent_words(spec), is_root=around.is_root) | {
        "PYTHONPATH": os.pathsep.join([*([around.package_dir.live] if has_task else []), *own, *behind]),
        **NO_BYTECODE,
    }
    if has_task:
        environment |= {TASK_VARIABLE: around.task_file, NAMED_IN_VARIABLE: spec.repository}
    if spec.is_use_recorded:
        environment[USED_VARIABLE] = "1"
    is_apart = bool(number and spec.temporary)
    environment |= own_variables(number, spec.temporary, spec.run_limits) if is_apart else spec.run_limits.variables
    name, email = spec.identity
    if _PLAIN_WORDS.fullmatch(name) and _PLAIN_WORDS.fullmatch(email):
        # An identity that is only configured in the user's repository is missing in the copy.
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": email}
    return environment


def agent_words(spec: SweepSpec) -> tuple[str, ...]:
    """Return the arguments of the agents' command line: permissions, and those of the user."""
    permission = agent_type_of_sweep(spec).permission(spec.permissions, spec.agent_arguments)
    return (*permission.words, *spec.agent_arguments)


def _moved(entry: str, repository: str, copy: str) -> str:
    """Return the path in the copy for a path in the user's checkout; other paths stay."""
    path = Path(entry)
    is_inside = path.is_absolute() and path.is_relative_to(repository)
    return posixpath.normpath(posixpath.join(copy, path.relative_to(repository))) if is_inside else entry


CREATE_DEADLINE: Final = 120.0


async def wait_for_creates(records: Iterable[TestRecord]) -> None:
    """Wait until no agent of these records is being created, up to a limit."""
    names = {mngr_address(record.agent, record.host) for record in records if record.state is State.LAUNCHING}
    deadline = time.monotonic() + CREATE_DEADLINE
    while names and time.monotonic() < deadline:
        listed = await run_process(["ps", "-e", "-ww", "-o", "args="], environment=scrubbed_environment())
        words = (line.split() for line in listed.text.splitlines() if " create " in line)
        if not any(names.intersection(line) for line in words):
            return
        await asyncio.sleep(0.2)
