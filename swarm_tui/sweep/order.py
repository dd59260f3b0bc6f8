"""From what a person orders to a sweep that is about to begin: everything is checked before anything is written."""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.checkouts import fill_commands
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import is_plain_value
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
from swarm_tui.agents.login import check_home, check_login, check_program
from swarm_tui.agents.packaged import local_package_dir
from swarm_tui.agents.prompting import MAPPER_TEMPLATE, check_template, render_prompt
from swarm_tui.agents.types import AgentType, Login, agent_type_of
from swarm_tui.errors import JournalError, ProgramMissing, UsageError
from swarm_tui.hosts.creation import check_provider, check_provider_options
from swarm_tui.hosts.preparation import AgentPaths
from swarm_tui.hosts.registry import open_hosts
from swarm_tui.journal.folder import SweepFolder, runs_folder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.hosts import LOCAL_HOST, HostSettings
from swarm_tui.model.options import OPTIONS, RunOptions, check_options
from swarm_tui.model.results import Baseline
from swarm_tui.model.spec import MngrSettings, SweepSpec, SweptTest, derive_tests
from swarm_tui.sweep.agent_context import agent_address
from swarm_tui.sweep.collect import Found, Progress, Selection, choose_by_baseline, find_tests
from swarm_tui.sweep.copies import new_temporary_folder, task_for
from swarm_tui.sweep.launch import environment_for
from swarm_tui.sweep.notifications import read_notify_settings
from swarm_tui.sweep.preflight import Live, PreflightOptions, run_preflight
from swarm_tui.sweep.start import new_sweep_name, time_stamp, write_sweep
from swarm_tui.sweep.withheld_variables import report_withheld

SLOTS_HERE: Final = 4
_NEEDED_PROGRAMS: Final = ("git", "tmux", "ps")


@dataclass(frozen=True, kw_only=True)
class Order(RunOptions):
    """What a person asks for."""

    folder: Path
    selection: Selection = field(default_factory=Selection)
    mngr: str | None = None
    mngr_settings: MngrSettings | None = None
    """For a sweep with a mngr home of its own; else those of the person's environment."""


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What was found before a sweep: the repository, its commit, the identity for commits, and a mngr."""

    repository: Repository
    base: str
    identity: tuple[str, str]
    settings: MngrSettings
    parent_type: str = ""
    is_cost_imputed: bool = False
    needed_environment: tuple[str, ...] = ()
    fill: tuple[str, ...] = ()
    """Shell commands that bring into a copy on this machine what git leaves out."""
    access: tuple[HostSettings, ...] = ()
    unapproved_servers: tuple[str, ...] = ()
    outside_imports: tuple[str, ...] = ()
    new_host_dir: str = ""
    mngr_warning: str = ""


@dataclass(frozen=True, slots=True)
class _Project:
    """The repository that a sweep is ordered in, its commit, and who commits."""

    repository: Repository
    base: str
    person: tuple[str, str]
    fill: tuple[str, ...]


async def check_preconditions(order: Order) -> Preconditions:
    return await _check_mngr(order, await _open_project(order))


async def _open_project(order: Order) -> _Project:
    """Check all of an order that takes no time."""
    check_order(order)
    if order.confinement is not None:
        await check_confinement(order.confinement)
    check_provider_options(order)
    _check_hosts(order)
    repository = await asyncio.to_thread(Repository.open, order.folder)
    _check_name_of(repository.root)
    base = await asyncio.to_thread(repository.head)
    await asyncio.to_thread(_check_copies_of, repository)
    if order.provider != "local" and await asyncio.to_thread(lambda: repository.is_shallow):
        raise UsageError(
            "this clone is shallow, and git pushes no shallow history to another machine",
            "`git fetch --unshallow` first",
        )
    identity = await asyncio.to_thread(repository.identity)
    _check_paths(order)
    fill = await asyncio.to_thread(fill_commands, repository, base) if order.provider == "local" else ()
    return _Project(repository, base, (identity.name, identity.email), fill)


async def _check_mngr(order: Order, project: _Project) -> Preconditions:
    """Check mngr, the hosts and the agents' login."""
    repository, base = project.repository, project.base
    settings, warning = await _settings(order)
    host_dir = Path(settings.host_dir or "~/.mngr").expanduser()
    access = tuple(_access(order, host_dir, repository.root))
    # The provider of the hosts may need variables.
    mngr = Mngr(settings.path, mngr_environment(settings, passed_variables(order.passed_environment)), repository.root)
    new_host_dir = ""
    if order.provider != LOCAL_HOST:
        new_host_dir = await check_provider(mngr, order.provider, host_dir, repository.root)
    parents = AgentTypes(host_dir, repository.root).parents()
    kind = agent_type_of(order.agent_type, parents.get(order.agent_type, ""))
    needed = kind.needed_variables(os.environ)
    passed = passed_variables((*needed, *order.passed_environment))
    login = await _check_agent_type(order, kind, parents, settings, repository.root, passed)
    parent_type = parents.get(order.agent_type, "")
    read = partial(repository.read_file, base)
    if problem := await asyncio.to_thread(kind.project_problem, read):
        raise UsageError(problem, "mend it and commit that: agents have what is committed")
    servers = await asyncio.to_thread(kind.unapproved_servers, read)
    imports = await asyncio.to_thread(kind.outside_imports, read)
    imputed, person = login.is_subscription, project.person
    found = (parent_type, imputed, needed, project.fill, access, servers, imports, new_host_dir)
    return Preconditions(repository, base, person, settings, *found, mngr_warning=warning)


async def prepare_sweep(
    order: Order, progress: Progress, live: Live = lambda _: None, count: Live = lambda _: None
) -> tuple[SweepSpec, list[SweptTest]]:
    """Check an order, try its tests in a fresh copy, and return what the sweep is to be; its name is not taken yet.

    `live` gets what is being done at the moment, again and again, and `count` how many tests were found so far.
    """
    project = await _open_project(order)
    options = _preflight_options(order, project.fill)
    async with AsyncExitStack() as stack:
        preflight = None
        if options is not None:
            started = run_preflight(project.repository, project.base, options, progress, live)
            preflight = await stack.enter_async_context(started)
        # mngr takes a second to answer; the tests are collected meanwhile.
        finding = asyncio.create_task(_find(order, project.repository, progress, count))
        try:
            preconditions = await _check_mngr(order, project)
            found = await finding
        finally:
            finding.cancel()
            await asyncio.wait([finding])
        if preflight is not None:
            found = choose_by_baseline(await preflight.compare(found), order.selection)
    if preconditions.mngr_warning:
        progress(f"warning: {preconditions.mngr_warning}")
    await report_uncommitted(preconditions, progress)
    passed = (*order.passed_environment, *preconditions.needed_environment)
    for sentence in await asyncio.to_thread(report_withheld, project.repository, project.base, passed):
        progress(sentence)
    spec = compose_spec(order, found, preconditions)
    tests = [with_findings(test, found) for test in derive_tests(spec.sweep, list(found.tests))]
    _check_launch(spec, tests[0])
    return spec, tests


def with_findings(test: SweptTest, found: Found) -> SweptTest:
    """Return a test with what is known of it; those that clash with others are never at work side by side."""
    baseline = found.baselines.get(test.test, Baseline.UNKNOWN)
    group = found.groups.get(test.test, "") or (baseline.value if baseline is Baseline.CLASH else "")
    return test.model_copy(update={"traits": found.traits.get(test.test, ()), "group": group, "baseline": baseline})


def _preflight_options(order: Order, fill: tuple[str, ...]) -> PreflightOptions | None:
    """Return the options of the preflight, or None for no preflight."""
    runs = order.baseline or {None: None, "flaky": 3}.get(order.selection.only, 1)
    if order.is_trial_skipped and runs:
        raise UsageError("--no-preflight leaves no baseline", "leave it out, or --only and --baseline")
    if order.is_trial_skipped:
        return None
    known = (order.records,) if order.records is not None else ()
    return PreflightOptions(
        order.pytest_arguments,
        order.setup or "",
        fill,
        order.run_limits,
        runs,
        has_checkout=order.provider == LOCAL_HOST and not order.hosts,
        not_needed=known,
    )


async def _find(order: Order, repository: Repository, progress: Progress, count: Live) -> Found:
    return await find_tests(
        repository,
        order.folder,
        python=order.python,
        arguments=order.pytest_arguments,
        selection=order.selection,
        setup=order.setup,
        progress=progress,
        count=count,
        alone=order.alone,
        passed=order.passed_environment,
    )


async def report_uncommitted(preconditions: Preconditions, progress: Progress) -> None:
    """Say that what is not committed stays with the person."""
    dirty = await asyncio.to_thread(preconditions.repository.dirty_paths)
    if dirty:
        stays = "1 uncommitted change stays" if len(dirty) == 1 else f"{len(dirty)} uncommitted changes stay"
        progress(f"{stays} with you: the agents begin at commit {preconditions.base[:10]}")


def begin_sweep(spec: SweepSpec, tests: list[SweptTest]) -> SweepFolder:
    """Take a name for the sweep and write it down; the engine may begin."""
    repository = Path(spec.repository)
    name = new_sweep_name(repository)
    named = [(test.test, test.file, test.line) for test in tests]
    folder = SweepFolder(runs_folder(repository) / name)
    # The names are derived anew; what a test is about stays.
    derived = [
        test.model_copy(update={"agent": new.agent, "branch": new.branch})
        for new, test in zip(derive_tests(name, named), tests, strict=True)
    ]
    try:
        named_spec = spec.model_copy(update={"sweep": name, "temporary": new_temporary_folder(spec)})
        write_sweep(folder, named_spec, derived)
    except JournalError:
        # A sweep that could not be written down is none; half of it would be in the way.
        shutil.rmtree(folder.root, ignore_errors=True)
        raise
    return folder


def check_order(order: Order) -> None:
    """Refuse what no project could change: numbers that make no sense, programs that are missing."""
    check_options(order)
    read_notify_settings()
    for flag, names in (("--pass-env", order.passed_environment), ("--integrator-env", order.integrator_environment)):
        unset = [name for name in names if name not in os.environ]
        if unset:
            raise UsageError(f"{flag} names {', '.join(unset)}, which is not set here", "export it, or leave it out")
    if order.integrator_prompt is not None:
        check_template(Path(order.integrator_prompt))
    for program in _NEEDED_PROGRAMS:
        if shutil.which(program) is None:
            raise ProgramMissing(f"{program} is not installed", how_to_get(program))


def _check_name_of(folder: Path) -> None:
    if not is_plain_value(str(folder)):
        raise UsageError(
            f"agents cannot be told of the folder {str(folder)!r}: a shell would act on signs in its name",
            "rename it, or clone it into one of letters, digits, spaces and . / : , @ % + = _ -",
        )


def _check_copies_of(repository: Repository) -> None:
    if repository.object_format == "sha256":
        raise UsageError("mngr makes no copies of a repository with SHA-256 ids", "use a clone that has SHA-1 ids")
    if repository.ref("refs/heads/swarm") is not None:
        raise UsageError(
            "a branch is named swarm: git keeps no branches of a sweep, swarm/..., beside it",
            "give it another name: `git branch --move swarm NAME`",
        )


def _check_hosts(order: Order) -> None:
    if not order.hosts:
        if order.provider == LOCAL_HOST and order.per_host != RunOptions().per_host:
            raise UsageError("--per-host is for hosts, and none is given", "give --host or --provider, or use --slots")
        return
    if order.transfer != "mirror":
        raise UsageError("--transfer worktree needs the repository itself", "leave it out: hosts get copies")
    repeated = [name for name, count in Counter(order.hosts).items() if count > 1]
    if repeated:
        raise UsageError(f"--host {repeated[0]} is given twice", "--per-host says how many agents it gets")


def _access(order: Order, host_dir: Path, repository: Path) -> Iterator[HostSettings]:
    """Return how each host is reached; UsageError for one that mngr does not know."""
    known = read_hosts(host_dir, repository) if order.hosts else []
    for name in order.hosts:
        host = find_host(known, name)
        if not posixpath.isabs(host.host_dir):
            raise UsageError(
                f"the provider {host.provider} has the host_dir {host.host_dir!r}", "mngr needs an absolute path there"
            )
        check_address(host.target.address)
        yield host.access


def _check_paths(order: Order) -> None:
    for option in OPTIONS:
        name, path = option.flag.name, getattr(order, option.field)
        if path is None or option.flag.path not in ("file", "folder"):
            continue
        if not Path(path).exists():
            raise UsageError(f"{name} names {path}, which does not exist")
        if option.flag.path == "folder" and not Path(path).is_dir():
            raise UsageError(
                f"{name} names {path}, which is no folder", f"give the folder that holds the {option.field}"
            )


async def _settings(order: Order) -> tuple[MngrSettings, str]:
    """Return mngr's settings, and a warning about its version."""
    if order.mngr_settings is not None:
        return order.mngr_settings, ""
    found = await find_mngr(order.mngr)
    return current_settings(found.path), found.warning


async def _check_agent_type(
    order: Order,
    kind: AgentType,
    parents: Mapping[str, str],
    settings: MngrSettings,
    repository: Path,
    passed: Mapping[str, str],
) -> Login:
    if kind.is_ours:
        return Login(None)
    problem, hint = kind.argument_problem(order.agent_arguments)
    if problem:
        raise UsageError(problem, hint)
    environment = mngr_environment(settings, passed)
    if kind.program:
        await check_program(kind, environment)
    check_home(kind, environment)
    login = await check_login(kind, environment)
    mngr = Mngr(settings.path, mngr_environment(settings), repository)
    names = {plugin.name for plugin in await mngr.plugins() if plugin.is_enabled}
    known = names | {name.replace("_", "-") for name in names} | set(parents)
    if order.agent_type not in known:
        raise UsageError(
            f"mngr knows no agent type {order.agent_type!r}", "`mngr plugin list` shows them; `--agent offline` is ours"
        )
    return login


def compose_spec(order: Order, found: Found, preconditions: Preconditions) -> SweepSpec:
    """Return what is written down of a sweep; its name may turn out to be taken."""
    options: dict[str, Any] = {option.name: getattr(order, option.name) for option in fields(RunOptions)}
    paths = {option.field for option in OPTIONS if option.flag.path is not None}
    options |= {name: str(Path(options[name]).absolute()) for name in paths if options[name] is not None}
    kind = agent_type_of(order.agent_type, preconditions.parent_type)
    now = time.time()
    found_out = {
        "sweep": time_stamp(now),
        "repository": str(preconditions.repository.root.resolve()),
        "base": preconditions.base,
        "base_name": preconditions.repository.current_branch() or "",
        "created_at": now,
        "slots": order.slots or (order.per_host * len(order.hosts) if order.hosts else SLOTS_HERE),
        "integrator": order.integrator or ("agent" if kind.has_model else "builtin"),
        "python": found.python,
        "run_options": found.run_options,
        "folder": found.folder,
        "root": found.root,
        "import_roots": found.import_roots,
        "left_out": found.left_out,
        "identity": preconditions.identity,
        "mngr": preconditions.settings,
        "parent_type": preconditions.parent_type,
        "is_cost_imputed": preconditions.is_cost_imputed,
        "needed_environment": preconditions.needed_environment,
        "unapproved_servers": preconditions.unapproved_servers,
        "outside_imports": preconditions.outside_imports,
        "fill": preconditions.fill,
        "access": preconditions.access,
        "new_host_dir": preconditions.new_host_dir,
    }
    return SweepSpec.model_validate(options | found_out)


def _check_launch(spec: SweepSpec, test: SweptTest) -> None:
    """Find out now what would make every launch fail: the prompt, and paths that cannot be given to an agent."""
    record = TestRecord(test=test.test, agent=test.agent, branch=test.branch, file=test.file)
    template = Path(spec.mapper_prompt) if spec.mapper_prompt else MAPPER_TEMPLATE
    render_prompt(template, task_for(spec, record))
    check_request(spec, test)


def check_request(spec: SweepSpec, test: SweptTest) -> None:
    """Raise UsageError for names, labels and paths of a sweep that cannot be given to an agent."""
    from swarm_tui.adapters.mngr_messages import CreateRequest

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
