"""Reads the folder that a run of `mngr tmr` left behind, of any of its generations, without changing anything in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.journal.pulled_files import read_start
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE, OUTCOME_FILE, OUTCOME_SIZE_LIMIT
from swarm_tui.model.text import plain
from swarm_tui.tmr.page import PageRow, read_page

PAGE_FILE: Final = "index.html"
BUNDLE_FILE: Final = "branch.bundle"
OUTPUT_FOLDER: Final = "test_output"
PAGE_LIMIT: Final = 64_000_000
FOLDERS_LIMIT: Final = 20_000
# The name of an agent becomes that of a folder of ours and a word of messages.
_AGENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_HEX_ENDING: Final = re.compile(r"-[0-9a-f]{6}$")
_DATE: Final = re.compile(r"\d{14}|\d{4}_\d{6}|\d{4}-\d{2}-\d{2}_\d{2}-\d{2}-\d{2}")


@dataclass(frozen=True)
class TmrAgent:
    """One agent of a run, and where its work lies."""

    name: str
    test: str
    is_guessed: bool
    """Whether the test is known only by what the agent's name keeps of it."""
    folder: Path | None
    """None for an agent of which only the page knows."""
    branch: str
    section: str
    """What the page says of it; empty where it says nothing."""

    def output(self, name: str) -> Path | None:
        """Return the path of a file that it handed in: newer generations keep them in a folder of their own."""
        if self.folder is None:
            return None
        return next((path for path in _places_of(self.folder, name) if path.is_file()), None)

    @property
    def bundle(self) -> Path | None:
        path = self.folder / BUNDLE_FILE if self.folder is not None else None
        return path if path is not None and path.is_file() else None


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
    if _read_rows(folder)[0]:
        return True
    return any(_is_agent_folder(child) for child in _children(folder)[0])


def read_run(root: Path) -> TmrRun:
    """Return what is in the folder of a run."""
    rows, problem = _read_rows(root)
    children, problems = _children(root)
    problems = [*([problem] if problem else []), *problems]
    folders = {child.name: child for child in children if _is_agent_folder(child)}
    integrators = {name: folder for name, folder in folders.items() if _path(folder, INTEGRATOR_OUTCOME_FILE)}
    workers = {name: folder for name, folder in folders.items() if name not in integrators}
    prefix = run_prefix(root.name, [*workers, *(row.agent for row in rows)])
    if rows:
        known = {row.agent for row in rows}
        earlier = [name for name in workers if name not in known and not name.startswith(prefix)]
        workers = {name: folder for name, folder in workers.items() if name not in earlier}
        if earlier:
            problems.append(f"{len(earlier)} folders are of earlier runs: they have no row on the page")
    agents = list(_from_page(rows, workers, integrators, problems))
    named = {agent.name for agent in agents}
    agents += [_from_folder(folder, prefix) for name, folder in sorted(workers.items()) if name not in named]
    integrator = max(integrators.values(), key=_time_of, default=None)
    return TmrRun(
        root=root,
        agents=tuple(_told_apart(agents)),
        integrator=_from_folder(integrator, prefix) if integrator is not None else None,
        problems=tuple(problems),
        has_bundles=any(agent.bundle for agent in agents) or bool(integrator and (integrator / BUNDLE_FILE).is_file()),
    )


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


def _is_agent_folder(folder: Path) -> bool:
    return any(_path(folder, name) is not None for name in (OUTCOME_FILE, INTEGRATOR_OUTCOME_FILE)) or any(
        (folder / name).exists() for name in (BUNDLE_FILE, OUTPUT_FOLDER, "e2e")
    )


def _places_of(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / OUTPUT_FOLDER / name, folder / name


def _path(folder: Path, name: str) -> Path | None:
    return next((path for path in _places_of(folder, name) if path.is_file()), None)


def _from_page(
    rows: Iterable[PageRow], workers: Mapping[str, Path], integrators: Mapping[str, Path], problems: list[str]
) -> Iterable[TmrAgent]:
    """Yield an agent for each row; an agent of two rows counts once, and those that integrate have no test."""
    seen: set[str] = set()
    odd = 0
    for row in rows:
        if _AGENT.fullmatch(row.agent) is None:
            odd += 1
            continue
        if row.agent in seen or row.agent in integrators:
            continue
        seen.add(row.agent)
        # When a run was integrated again, its page names agents in place of tests.
        is_guessed = row.test == row.agent
        test = slug_of_agent(row.agent, "") if is_guessed else row.test
        yield TmrAgent(row.agent, test, is_guessed, workers.get(row.agent), row.branch, row.section)
    if odd:
        problems.append(f"{odd} rows of the page name agents as no agent is named")


def _from_folder(folder: Path, prefix: str) -> TmrAgent:
    return TmrAgent(folder.name, slug_of_agent(folder.name, prefix), True, folder, "", "")


def _told_apart(agents: Iterable[TmrAgent]) -> Iterable[TmrAgent]:
    """Yield the agents with tests that no two of them share: the agent's name is added to what was said before."""
    seen: set[str] = set()
    for agent in agents:
        found = agent
        if found.test in seen:
            found = replace(agent, test=f"{agent.test} ({agent.name})", is_guessed=True)
        seen.add(found.test)
        yield found


def _time_of(folder: Path) -> float:
    path = _path(folder, INTEGRATOR_OUTCOME_FILE)
    return path.stat().st_mtime if path is not None else 0.0


def read_outcome_of(agent: TmrAgent, name: str) -> bytes | None:
    """Return what an agent reported, at most one byte more than a report may have; None without a readable file."""
    path = agent.output(name)
    content = read_start(path, OUTCOME_SIZE_LIMIT + 1) if path is not None else None
    return content.raw if content is not None else None
