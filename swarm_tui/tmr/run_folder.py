"""Reads the folder that a run of `mngr tmr` left behind, of any of its generations, without changing anything in it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.journal.pulled_files import read_start
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import OUTCOME_SIZE_LIMIT
from swarm_tui.model.text import plain
from swarm_tui.tmr.agent_folder import AgentFolder, AgentsFile, look_into
from swarm_tui.tmr.page import PageRow, read_page

PAGE_FILE: Final = "index.html"
PAGE_LIMIT: Final = 64_000_000
FOLDERS_LIMIT: Final = 20_000
# The name of an agent becomes that of a folder of ours and a word of messages.
_AGENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_INTEGRATOR: Final = re.compile(r"(?:reducer|integrator)(?:-|$)")
_SLUG_LENGTH: Final = 40
_HEX_ENDING: Final = re.compile(r"-[0-9a-f]{6}$")
_DATE: Final = re.compile(r"\d{14}|\d{4}_\d{6}|\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}")


@dataclass(frozen=True)
class TmrAgent:
    """One agent of a run, and where its work lies."""

    name: str
    test: str
    is_guessed: bool
    """Whether the test is known only by what the agent's name keeps of it."""
    folder: AgentFolder | None
    """None for an agent of which only the page knows."""
    branch: str
    row: PageRow | None = None
    """What the page says of it."""

    @property
    def section(self) -> str:
        return self.row.section if self.row is not None else ""

    @property
    def outcome(self) -> AgentsFile | None:
        return self.folder.outcome if self.folder is not None else None

    @property
    def integrator_outcome(self) -> AgentsFile | None:
        return self.folder.integrator_outcome if self.folder is not None else None

    @property
    def bundle(self) -> Path | None:
        return self.folder.bundle.path if self.folder is not None and self.folder.bundle is not None else None


@dataclass(frozen=True)
class TmrRun:
    """A whole run as its folder tells it."""

    root: Path
    agents: tuple[TmrAgent, ...]
    integrator: TmrAgent | None
    """The newest agent that integrated."""
    problems: tuple[str, ...]
    """What is damaged or cannot be told, in sentences."""
    has_bundles: bool

    @property
    def name(self) -> str:
        return self.root.name


def is_run_folder(folder: Path) -> bool:
    """Return whether a folder looks like what a run of `mngr tmr` leaves."""
    looked = (look_into(child) for child in _children(folder)[0])
    return any(each.is_agents and each.is_readable for each in looked) or bool(_read_rows(folder)[0])


def read_run(root: Path) -> TmrRun:
    """Return what is in the folder of a run."""
    rows, problem = _read_rows(root)
    children, problems = _children(root)
    problems = [*([problem] if problem else []), *problems]
    folders = {child.name: look for child in children if (look := look_into(child)).is_agents}
    prefix = run_prefix(root.name, [*folders, *(row.agent for row in rows)])
    on_page = {row.agent for row in rows}
    integrators = {
        name: folder for name, folder in folders.items() if name not in on_page and _is_integrator(folder, prefix)
    }
    workers = {name: folder for name, folder in folders.items() if name not in integrators}
    if rows:
        earlier = {name for name in workers if name not in on_page and not name.startswith(prefix)}
        workers = {name: folder for name, folder in workers.items() if name not in earlier}
        if earlier:
            problems.append(f"{len(earlier)} folders are of earlier runs: they have no row on the page")
    agents = list(_from_page(rows, workers, integrators, prefix, problems))
    named = {agent.name for agent in agents}
    agents += [_from_folder(folder, prefix) for name, folder in sorted(workers.items()) if name not in named]
    integrator = max(integrators.values(), key=_integrated_at, default=None)
    if integrator is not None and len(integrators) > 1:
        problems.append(f"{len(integrators)} agents integrated: shown is {integrator.path.name}, the last one")
    return TmrRun(
        root=root,
        agents=tuple(_told_apart(agents)),
        integrator=_from_folder(integrator, prefix) if integrator is not None else None,
        problems=(*problems, *_problems_of(agents, folders.values())),
        has_bundles=any(folder.bundle for folder in folders.values()),
    )


def _problems_of(agents: Iterable[TmrAgent], folders: Iterable[AgentFolder]) -> Iterable[str]:
    guessed = sum(agent.is_guessed for agent in agents)
    if guessed:
        yield f"{counted(guessed, 'test')} guessed by the names of agents: no page tells the ids"
    closed = [folder.path.name for folder in folders if not folder.is_readable]
    if closed:
        yield f"{counted(len(closed), 'folder')} cannot be read, such as {plain(closed[0], 100)}"


def run_signature(root: Path) -> str:
    """Return what is another text when anything in a run has changed."""
    digest = hashlib.sha256()
    with contextlib.suppress(OSError):
        page = os.lstat(root / PAGE_FILE)
        digest.update(f"{page.st_size} {page.st_mtime_ns}".encode())
    for child in _children(root)[0]:
        digest.update(repr(look_into(child)).encode(errors="replace"))
    return digest.hexdigest()


def run_prefix(folder: str, agents: Iterable[str]) -> str:
    """Return what the names of all agents of a run begin with, such as "tmr-20260514184215-".

    The folder is `<name>_<run>`, and both parts may hold underscores: the way to cut it that most agents fit counts.
    """
    name = folder.removesuffix("_reintegrate")
    cuts = [f"{name[:place]}-{name[place + 1 :]}-" for place, sign in enumerate(name) if sign == "_"]
    fitting = Counter(cut for cut in cuts for agent in agents if agent.startswith(cut))
    if fitting:
        return fitting.most_common(1)[0][0]
    found = re.match(r"(.+?)_(?:\d|$)", name)
    return f"{found[1] if found else 'tmr'}-"


def slug_of_agent(agent: str, prefix: str) -> str:
    """Return what the name of an agent keeps of its test's."""
    rest = agent.removeprefix(prefix)
    dated = re.match(rf"(?:.*-)?(?:{_DATE.pattern})-(.+)", rest)
    if dated is not None:
        return dated[1]
    return _HEX_ENDING.sub("", rest) or agent


def is_named_after(slug: str, test: str) -> bool:
    """Return whether what an agent's name keeps of its test's may come from this test."""
    kept = re.sub(r"[^a-z0-9]+", "-", test.rpartition("::")[2].lower()).strip("-")[:_SLUG_LENGTH].strip("-")
    return bool(kept) and re.fullmatch(rf"{re.escape(kept)}(?:-\d+)?", slug) is not None


def _read_rows(root: Path) -> tuple[list[PageRow], str]:
    path = root / PAGE_FILE
    content = read_start(path, PAGE_LIMIT)
    if content is None:
        return [], f"{PAGE_FILE} cannot be read" if path.exists() or path.is_symlink() else ""
    rows = read_page(content.raw.decode(errors="replace"))
    if content.is_cut:
        return rows, f"{PAGE_FILE} is larger than {PAGE_LIMIT // 1_000_000} MB: its beginning is read"
    return rows, "" if rows else f"{PAGE_FILE} lists no agents"


def _children(root: Path) -> tuple[list[Path], list[str]]:
    """Return the folders in a folder that may be those of agents, and what is wrong."""
    try:
        found = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError as error:
        return [], [f"{plain(root.name, 100)} cannot be listed: {error.strerror or error}"]
    problems = []
    odd = [path.name for path in found if _AGENT.fullmatch(path.name) is None]
    if odd:
        problems.append(f"{len(odd)} folders have names that no agent has, such as {plain(odd[0], 60)!r}")
    if len(found) > FOLDERS_LIMIT:
        problems.append(f"only the first {FOLDERS_LIMIT:,} of {len(found):,} folders are read")
    return [path for path in found[:FOLDERS_LIMIT] if path.name not in odd], problems


def _is_integrator(folder: AgentFolder, prefix: str) -> bool:
    if folder.integrator_outcome is not None:
        return True
    # One that left no report is known by its name.
    return folder.outcome is None and _INTEGRATOR.match(slug_of_agent(folder.path.name, prefix)) is not None


def _from_page(
    rows: Iterable[PageRow],
    workers: Mapping[str, AgentFolder],
    integrators: Mapping[str, AgentFolder],
    prefix: str,
    problems: list[str],
) -> Iterable[TmrAgent]:
    """Yield an agent for each that has rows, in their order; those that integrate have no test."""
    of_agents: dict[str, list[PageRow]] = {}
    odd = doubtful = 0
    for row in rows:
        if _AGENT.fullmatch(row.agent) is None:
            odd += 1
        elif row.agent not in integrators and not _is_no_worker(row, workers):
            of_agents.setdefault(row.agent, []).append(row)
    for name, own in of_agents.items():
        # What agents write stands on the page as it is, and may look like rows of it.
        own = [row for row in own if not row.is_in_prose] or own
        fitting = [row for row in own if is_named_after(slug_of_agent(name, prefix), row.test)]
        tests = {each.test for each in fitting or own}
        row = (fitting or own)[0]
        is_doubtful = len(tests) > 1
        doubtful += is_doubtful
        # When a run was integrated again, its page names agents in place of tests.
        is_name = row.test == name or (row.is_in_prose and not fitting)
        test = slug_of_agent(name, prefix) if is_name else row.test
        yield TmrAgent(name, test, is_name or is_doubtful, workers.get(name), row.branch, row)
    if odd:
        problems.append(f"{odd} rows of the page name agents as no agent is named")
    if doubtful:
        problems.append(f"of {doubtful} agents the page names several tests: the first one counts")


def _is_no_worker(row: PageRow, workers: Mapping[str, AgentFolder]) -> bool:
    """Return whether a row is that of the agent that only made a snapshot for the others, or written by an agent."""
    is_snapshotter = row.test == row.agent and row.agent.endswith("-snapshotter")
    return is_snapshotter or (row.is_in_prose and row.agent not in workers)


def _from_folder(folder: AgentFolder, prefix: str) -> TmrAgent:
    return TmrAgent(folder.path.name, slug_of_agent(folder.path.name, prefix), True, folder, "")


def _told_apart(agents: Iterable[TmrAgent]) -> Iterable[TmrAgent]:
    """Yield the agents with tests that no two of them share: the agent's name is added to what was said before."""
    seen: set[str] = set()
    for agent in agents:
        found = agent
        if found.test in seen:
            found = replace(agent, test=f"{agent.test} ({agent.name})", is_guessed=True)
        seen.add(found.test)
        yield found


def _integrated_at(folder: AgentFolder) -> float:
    return folder.integrator_outcome.changed_at if folder.integrator_outcome is not None else 0.0


def read_report(file: AgentsFile | None) -> bytes | None:
    """Return what an agent reported, at most one byte more than a report may have; None without a readable file."""
    content = read_start(file.path, OUTCOME_SIZE_LIMIT + 1) if file is not None else None
    return content.raw if content is not None else None
