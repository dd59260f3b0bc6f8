"""Checks the options of a sweep, and turns them into its spec. Nothing is written before all checks succeed."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import posixpath
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.checkouts import fill_commands
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import CreateRequest, is_plain_value
from swarm_tui.adapters.mngr_settings import (
    AgentTypes,
    check_address,
    current_settings,
    find_host,
    mngr_environment,
    read_hosts,
)
from swarm_tui.adapters.processes.confinement import check_confinement
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.agents.login import check_arguments, check_home, check_login, check_program
from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.prices import read_prices
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, check_template, render_prompt
from swarm_tui.agents.types import AgentType, Login, agent_type_of
from swarm_tui.errors import JournalError, ProgramMissing, UsageError
from swarm_tui.hosts.creation import NewHosts, check_provider, check_provider_options, default_dockerfile
from swarm_tui.hosts.preparation import AgentPaths
from swarm_tui.hosts.registry import open_hosts
from swarm_tui.journal.folder import SweepFolder, runs_folder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import OPTIONS, RunOptions, check_options
from swarm_tui.model.results import Baseline
from swarm_tui.model.spec import LOCAL_HOST, HostSettings, MngrSettings, SweepSpec, SweptTest, derive_tests
from swarm_tui.sweep.agent_context import agent_address
from swarm_tui.sweep.collect import Found, Progress, choose_by_baseline, find_tests, report_withheld
from swarm_tui.sweep.copies import new_temporary_folder, task_for
from swarm_tui.sweep.launch import environment_for
from swarm_tui.sweep.notifications import read_notify_settings
from swarm_tui.sweep.preflight import Live, run_preflight
from swarm_tui.sweep.start import new_sweep_name, time_stamp, write_sweep

SLOTS_HERE: Final = 4
_NEEDED_PROGRAMS: Final = ("git", "tmux", "ps")
_UNCHECKED: Final = MngrSettings(path="")


@dataclass(frozen=True, slots=True)
class CheckedOrder:
    """Checked options, and what the checks found: first the project, then mngr, the hosts and the agents."""

    options: RunOptions
    project: Repository
    base: str
    base_name: str
    identity: tuple[str, str]
    """The name and address of the user, for commits."""
    fill: tuple[str, ...]
    mngr: MngrSettings = _UNCHECKED
    mngr_warning: str = ""
    access: tuple[HostSettings, ...] = ()
    new_host_dir: str = ""
    new_host_backend: str = ""
    dockerfile: str = ""
    parent_type: str = ""
    is_cost_imputed: bool = False
    needed_environment: tuple[str, ...] = ()
    unapproved_servers: tuple[str, ...] = ()
    outside_imports: tuple[str, ...] = ()


async def check_order(options: RunOptions, folder: Path, mngr: str | MngrSettings | None) -> CheckedOrder:
    """Check options for a project; `mngr` is a program or complete settings, or None to find mngr."""
    return await _check_mngr(await _check_project(options, folder), mngr)


async def _check_project(options: RunOptions, folder: Path) -> CheckedOrder:
    """Run the quick checks."""
    check_machine(options)
    if options.confinement is not None:
        await check_confinement(options.confinement)
    check_provider_options(options)
    _check_hosts(options)
    repository = await asyncio.to_thread(Repository.open, folder)
    _check_folder_name(repository.root)
    base = await asyncio.to_thread(repository.head)
    await asyncio.to_thread(_check_repository, repository, options)
    identity = await asyncio.to_thread(repository.identity)
    _check_paths(options)
    fill = await asyncio.to_thread(fill_commands, repository, base) if options.provider == LOCAL_HOST else ()
    base_name = await asyncio.to_thread(repository.current_branch) or ""
    return CheckedOrder(options, repository, base, base_name, (identity.name, identity.email), fill)


async def _check_mngr(order: CheckedOrder, given: str | MngrSettings | None) -> CheckedOrder:
    """Check mngr, the hosts and the agents' login."""
    options, repository = order.options, order.project
    warning = ""
    if isinstance(given, MngrSettings):
        settings = given
    else:
        program = await find_mngr(given)
        settings, warning = current_settings(program.path), program.warning
    host_dir = Path(settings.host_dir or "~/.mngr").expanduser()
    access = tuple(_access(options, host_dir, repository.root))
    new_hosts = NewHosts("", "", False)
    if options.provider != LOCAL_HOST:
        # The provider may need variables.
        environment = mngr_environment(settings, passed_variables(options.passed_environment))
        mngr = Mngr(settings.path, environment, repository.root)
        new_hosts = await check_provider(mngr, options.provider, host_dir, repository.root)
    parents = AgentTypes(host_dir, repository.root).parents()
    agent_type = agent_type_of(options.agent_type, parents.get(options.agent_type, ""))
    needed = agent_type.needed_variables(os.environ)
    is_elsewhere = bool(options.hosts) or options.provider != LOCAL_HOST
    if is_elsewhere and not agent_type.is_ours and shutil.which("rsync") is None:
        raise ProgramMissing(
            "rsync is not installed, but mngr copies the files of agents on hosts with it", how_to_get("rsync")
        )
    has_default_image = new_hosts.backend == "docker" and not new_hosts.has_image and not options.build_arguments
    login = await _check_agent_type(order, agent_type, frozenset(parents), settings, needed)
    read = partial(repository.read_file, order.base)
    if problem := await asyncio.to_thread(agent_type.project_problem, read):
        raise UsageError(problem, "fix and commit this: agents use the committed files")
    return replace(
        order,
        mngr=settings,
        mngr_warning=warning,
        access=access,
        new_host_dir=new_hosts.host_dir,
        new_host_backend=new_hosts.backend,
        dockerfile=default_dockerfile(agent_type) if has_default_image else "",
        parent_type=parents.get(options.agent_type, ""),
        is_cost_imputed=login.is_subscription,
        needed_environment=needed,
        unapproved_servers=await asyncio.to_thread(agent_type.unapproved_servers, read),
        outside_imports=await asyncio.to_thread(agent_type.outside_imports, read),
    )


async def prepare_sweep(
    options: RunOptions,
    folder: Path,
    progress: Progress,
    live: Live = lambda _: None,
    count: Live = lambda _: None,
    *,
    mngr: str | MngrSettings | None = None,
) -> tuple[SweepSpec, list[SweptTest]]:
    """Check options, run the preflight, and return the spec and the tests. The name in the spec is not final.

    `live` is called with the current activity, and `count` with the number of tests found so far.
    """
    order = await _check_project(options, folder)
    async with AsyncExitStack() as stack:
        preflight = None
        if not options.is_preflight_skipped:
            started = run_preflight(order.project, order.base, options, order.fill, progress, live)
            preflight = await stack.enter_async_context(started)
        # mngr needs a second to answer, during which the tests are collected.
        finding = asyncio.create_task(find_tests(order.project, folder, options, progress, count))
        try:
            order = await _check_mngr(order, mngr)
            found = await finding
        finally:
            finding.cancel()
            await asyncio.wait([finding])
        if preflight is not None:
            found = choose_by_baseline(await preflight.compare(found), options.only)
    await report_order(order, progress)
    passed = (*options.passed_environment, *order.needed_environment)
    for sentence in await asyncio.to_thread(report_withheld, order.project, order.base, passed):
        progress(sentence)
    spec = compose_spec(order, found)
    tests = [with_findings(test, found) for test in derive_tests(spec.sweep, list(found.tests))]
    _check_launch(spec, tests[0])
    return spec, tests


def with_findings(test: SweptTest, found: Found) -> SweptTest:
    """Return a test with its traits, baseline and group; tests that conflict with others are in one group."""
    baseline = found.baselines.get(test.test, Baseline.UNKNOWN)
    group = found.groups.get(test.test, "") or (baseline.value if baseline is Baseline.CLASH else "")
    return structs.replace(test, traits=found.traits.get(test.test, ()), group=group, baseline=baseline)


async def report_order(order: CheckedOrder, progress: Progress) -> None:
    """Report mngr's warning, and that agents do not get uncommitted changes."""
    if order.mngr_warning:
        progress(f"warning: {order.mngr_warning}")
    if order.dockerfile:
        progress("new hosts are built from this Dockerfile; to use another, name its folder with --build-arg=FOLDER")
        for line in order.dockerfile.splitlines():
            progress(f"    {line}")
    dirty = await asyncio.to_thread(order.project.dirty_paths)
    if dirty:
        changes = counted(len(dirty), "uncommitted change")
        progress(f"agents start at commit {order.base[:10]}, without {changes} of your checkout")


def begin_sweep(spec: SweepSpec, tests: list[SweptTest]) -> SweepFolder:
    """Choose the final name of a sweep and write its folder; the engine may start afterwards."""
    repository = Path(spec.repository)
    name = new_sweep_name(repository)
    named = [(test.test, test.file, test.line) for test in tests]
    folder = SweepFolder(runs_folder(repository) / name)
    # Agents and branches have the name of the sweep in their names.
    derived = [
        structs.replace(test, agent=new.agent, branch=new.branch)
        for new, test in zip(derive_tests(name, named), tests, strict=True)
    ]
    try:
        named_spec = dataclasses.replace(spec, sweep=name, temporary=new_temporary_folder(spec))
        write_sweep(folder, named_spec, derived)
    except JournalError:
        # A partly written sweep would be listed with the others.
        shutil.rmtree(folder.root, ignore_errors=True)
        raise
    return folder


def check_machine(options: RunOptions) -> None:
    """Raise an error for options or missing programs that prevent a sweep in any project."""
    check_options(options)
    read_notify_settings()
    read_prices()
    passed = {"--pass-env": options.passed_environment, "--integrator-env": options.integrator_environment}
    for flag, names in passed.items():
        unset = [name for name in names if name not in os.environ]
        if unset:
            raise UsageError(f"{flag}: {', '.join(unset)} is not set", "export it, or omit the option")
    if options.integrator_prompt is not None:
        check_template(Path(options.integrator_prompt))
    for program in _NEEDED_PROGRAMS:
        if shutil.which(program) is None:
            raise ProgramMissing(f"{program} is not installed", how_to_get(program))


def _check_folder_name(folder: Path) -> None:
    if not is_plain_value(str(folder)):
        raise UsageError(
            f"the path {str(folder)!r} has characters that a shell would interpret",
            "rename the folder, or clone it into a path of letters, digits, spaces and . / : , @ % + = _ -",
        )


def _check_repository(repository: Repository, options: RunOptions) -> None:
    if repository.object_format == "sha256":
        raise UsageError("mngr cannot copy a repository with SHA-256 ids", "use a clone with SHA-1 ids")
    if repository.ref("refs/heads/swarm") is not None:
        raise UsageError(
            "a branch is named swarm, so git cannot create the branches swarm/... of a sweep",
            "rename it: `git branch --move swarm NAME`",
        )
    if options.provider != LOCAL_HOST and repository.is_shallow:
        raise UsageError(
            "this clone is shallow, and git cannot push a shallow history to a host", "run `git fetch --unshallow`"
        )


def _check_hosts(options: RunOptions) -> None:
    if not options.hosts:
        if options.provider == LOCAL_HOST and options.per_host != RunOptions().per_host:
            raise UsageError("--per-host requires --host or --provider", "add one of them, or use --slots")
        return
    if options.transfer != "mirror":
        raise UsageError("--transfer worktree conflicts with --host", "omit --transfer: hosts get full copies")
    repeated = [name for name, count in Counter(options.hosts).items() if count > 1]
    if repeated:
        raise UsageError(f"--host {repeated[0]} is given twice", "--per-host sets the number of its agents")


def _access(options: RunOptions, host_dir: Path, repository: Path) -> Iterator[HostSettings]:
    """Yield the connection to each host; raise UsageError for unknown hosts."""
    known = read_hosts(host_dir, repository) if options.hosts else []
    for name in options.hosts:
        host = find_host(known, name)
        if not posixpath.isabs(host.host_dir):
            raise UsageError(
                f"the provider {host.provider} has the host_dir {host.host_dir!r}", "mngr needs an absolute path there"
            )
        check_address(host.target.address)
        yield host.access


def _check_paths(options: RunOptions) -> None:
    for option in OPTIONS:
        name, path = option.flag.name, getattr(options, option.field)
        if path is None or option.flag.path not in ("file", "folder"):
            continue
        if not Path(path).exists():
            raise UsageError(f"{name} {path} does not exist")
        if option.flag.path == "folder" and not Path(path).is_dir():
            raise UsageError(f"{name} {path} is not a folder", f"use the folder of the {option.field}")


async def _check_agent_type(
    order: CheckedOrder,
    agent_type: AgentType,
    derived_types: frozenset[str],
    settings: MngrSettings,
    needed_variables: tuple[str, ...],
) -> Login:
    if agent_type.is_ours:
        return Login(None)
    problem, hint = agent_type.argument_problem(order.options.agent_arguments)
    if problem:
        raise UsageError(problem, hint)
    if agent_type.needs_full_copy and order.options.transfer == "worktree":
        raise UsageError(
            f"--transfer worktree conflicts with --agent {agent_type.name}: its sandbox does not allow commits there",
            "omit --transfer: agents get full copies",
        )
    passed = passed_variables((*needed_variables, *order.options.passed_environment))
    environment = mngr_environment(settings, passed)
    if agent_type.program:
        await check_program(agent_type, environment)
    check_home(agent_type, environment)
    given = order.options.agent_arguments
    login = await check_login(agent_type, environment, given)
    permission = agent_type.permission(order.options.permissions, given)
    await check_arguments(agent_type, environment, (*permission.words, *given))
    mngr = Mngr(settings.path, mngr_environment(settings), order.project.root)
    names = {plugin.name for plugin in await mngr.plugins() if plugin.is_enabled}
    known = names | {name.replace("_", "-") for name in names} | derived_types
    if agent_type.name not in known:
        raise UsageError(
            f"unknown agent type: {agent_type.name}",
            "`mngr plugin list` lists the types of mngr; `--agent offline` is built in",
        )
    return login


def compose_spec(order: CheckedOrder, found: Found) -> SweepSpec:
    """Return the spec of a sweep with a provisional name."""
    options = order.options
    content: dict[str, Any] = {option.name: getattr(options, option.name) for option in fields(RunOptions)}
    paths = {option.field for option in OPTIONS if option.flag.path is not None}
    content |= {name: str(Path(content[name]).absolute()) for name in paths if content[name] is not None}
    kept = {each.name for each in fields(SweepSpec)} - {"tests"}
    for source in (order, found):
        content |= {each.name: getattr(source, each.name) for each in fields(source) if each.name in kept}
    now, agent_type = time.time(), agent_type_of(options.agent_type, order.parent_type)
    content |= {
        "sweep": time_stamp(now),
        "created_at": now,
        "repository": str(order.project.root.resolve()),
        "slots": options.slots or (options.per_host * len(options.hosts) if options.hosts else SLOTS_HERE),
        "integrator": options.integrator or ("agent" if agent_type.has_model else "builtin"),
    }
    return SweepSpec(**content)


def _check_launch(spec: SweepSpec, test: SweptTest) -> None:
    """Raise UsageError for problems that would make every launch fail: in the prompt, or in paths for agents."""
    record = TestRecord(test=test.test, agent=test.agent, branch=test.branch, file=test.file)
    template = Path(spec.mapper_prompt) if spec.mapper_prompt else MAPPER_TEMPLATE
    render_prompt(template, task_for(spec, record))
    check_request(spec, test)


def check_request(spec: SweepSpec, test: SweptTest) -> None:
    """Raise UsageError for names, labels and paths of a sweep that an agent cannot get."""
    agent_folder = SweepFolder(runs_folder(Path(spec.repository)) / spec.sweep).agent(test.agent).absolute()
    around = AgentPaths(local_package_dir(agent_folder.parent), str(agent_folder), is_root=False)
    address = agent_address(spec, open_hosts(spec).local.host_dir, test.agent, 1)
    environment = environment_for(spec, address, around, has_task=True)
    CreateRequest(
        name=test.agent,
        source=Path(spec.repository),
        labels=spec.labels,
        environment=environment,
        passed_environment=spec.agent_environment,
    )
