"""Brings the commits of a run of `mngr tmr` under refs of our own, from its bundles, else from its branches."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import own_environment
from swarm_tui.adapters.git import GitError, Repository, fetch_bundle
from swarm_tui.adapters.git.bundles import bundle_heads
from swarm_tui.adapters.process import run_process_blocking
from swarm_tui.engine.commits import FetchedCommits, summarize_commits
from swarm_tui.errors import SwarmError
from swarm_tui.journal.pulled_files import read_start
from swarm_tui.model.text import plain
from swarm_tui.tmr.run_folder import TmrAgent, TmrRun

_HEADER_LIMIT: Final = 65_536
_TIPS_LIMIT: Final = 100
_PREREQUISITE: Final = re.compile(rb"^-([0-9a-f]{40}|[0-9a-f]{64})\b", re.MULTILINE)
_NOT_IN_REF: Final = re.compile(r"[^0-9A-Za-z_-]+")


@dataclass
class RunCommits:
    """What could be had of the commits of a run."""

    repository: Repository
    sweep: str
    base: str
    """The commit that the run began with; empty where nothing tells it."""
    problems: list[str] = field(default_factory=list)
    branches: Mapping[str, str] = field(default_factory=dict)
    """The branches of the repository by name, those of the remote where it has none of that name itself."""

    def fetch(self, agent: TmrAgent) -> tuple[str, FetchedCommits]:
        """Return the branch of an agent and its commits; `problem` says why those that it made cannot be had."""
        branch = agent.branch
        if agent.bundle is not None:
            try:
                branch = _branch_in(self.repository, agent.bundle) or branch
                tip = fetch_bundle(self.repository, agent.bundle, branch=branch or "HEAD", into=self._ref_of(agent))
                return branch, self._commits_to(tip)
            except SwarmError as error:
                return branch, FetchedCommits(problem=plain(str(error), 300))
        for name in filter(None, (branch, *branch_names(agent.name))):
            found = self._find_branch(name)
            if found is not None:
                self.repository.update_ref(self._ref_of(agent), found, old=self.repository.ref(self._ref_of(agent)))
                return name, self._commits_to(found)
        return branch, FetchedCommits()

    def full_id(self, commit: str) -> str:
        """Return the full id of a commit that a report may shorten; the same text when it is not here."""
        is_id = re.fullmatch(r"[0-9a-f]{4,64}", commit) is not None
        return (self.repository.find(commit) if is_id else None) or commit

    def is_branch(self, name: str, tip: str) -> bool:
        """Return whether the repository has a branch of that name, and it ends there."""
        return bool(name and tip) and self.repository.ref(f"refs/heads/{name}") == tip

    def _commits_to(self, tip: str) -> FetchedCommits:
        if not self.base:
            return FetchedCommits(tip, problem="the commit that the run began with is not known")
        return summarize_commits(self.repository, self.base, tip)

    def _find_branch(self, name: str) -> str | None:
        found = self.branches.get(name)
        return found if found != self.base else None

    def _ref_of(self, agent: TmrAgent) -> str:
        return f"refs/swarm/{self.sweep}/{_NOT_IN_REF.sub('-', agent.name).strip('-')}"


def open_commits(run: TmrRun, sweep: str, named: Path | None, scratch: Path) -> RunCommits:
    """Open the repository that the commits go into: the named one, the one the run stands in, or a scratch one.

    The base is the commit that most bundles build on.
    """
    problems: list[str] = []
    try:
        repository = source = Repository.open(named or run.root)
        objects = _objects_above(source.root)
        # Only now git says whether it trusts the repository, which may be another user's.
        branches = _all_branches(source)
    except SwarmError as error:
        if named is not None:
            raise
        repository = source = _open_scratch(scratch)
        branches, objects = {}, None
        if run.has_bundles:
            why = plain(str(error), 400) if _objects_above(run.root) is not None else "the run stands in no repository"
            problems.append(f"{why}; commits are shown with --repository PATH")
    if objects is not None and not os.access(objects, os.W_OK):
        # Nothing can be put into it: a repository of ours has all of its objects, and those of the run.
        repository = _open_scratch(scratch, beside=objects)
    bases = _bases(run)
    known = [base for base in bases if repository.find(base) is not None]
    if bases and not known and named is not None:
        problems.append(f"{plain(str(named), 200)} has none of the commits that the run builds on")
    base = known[0] if known else _base_of_branches(source, run, branches)
    return RunCommits(repository, sweep, base, problems, branches)


def branch_names(agent: str) -> Iterable[str]:
    """Yield the names that the branch of an agent may have had in any generation, when no page tells it."""
    dated = re.fullmatch(r"(.+?)-(\d{14}|\d{4}_\d{6})-(.+)", agent)
    if dated is not None:
        name, run, rest = dated.groups()
        yield f"{name}/{run}/{rest}"
        yield f"mngr-tmr/{run}/{'integrated' if rest == 'integrator' else rest}"
    if agent.startswith("tmr-"):
        rest = agent.removeprefix("tmr-")
        yield f"mngr-tmr/{rest.replace('integrator-', 'integrated-', 1) if rest.startswith('integrator-') else rest}"


def _branch_in(repository: Repository, bundle: Path) -> str:
    """Return the one branch that a bundle holds, or nothing."""
    heads = [name for name in bundle_heads(repository, bundle) if name.startswith("refs/heads/")]
    return heads[0].removeprefix("refs/heads/") if len(heads) == 1 else ""


def _bases(run: TmrRun) -> list[str]:
    """Return the commits that bundles build on, that of the most bundles first."""
    found: Counter[str] = Counter()
    for agent in (*run.agents, *([run.integrator] if run.integrator else [])):
        content = read_start(agent.bundle, _HEADER_LIMIT) if agent.bundle is not None else None
        if content is not None:
            found.update({commit.decode() for commit in _PREREQUISITE.findall(content.raw.split(b"\n\n")[0])})
    return [commit for commit, _ in found.most_common()]


def _all_branches(repository: Repository) -> dict[str, str]:
    remote = {
        name.removeprefix("refs/remotes/origin/"): tip for name, tip in repository.refs("refs/remotes/origin").items()
    }
    return remote | repository.branches()


def _base_of_branches(repository: Repository, run: TmrRun, branches: Mapping[str, str]) -> str:
    """Return where the branches of older generations, which left no bundles, began."""
    names = ([agent.branch, *branch_names(agent.name)] for agent in run.agents)
    found = (next((branches[name] for name in each if name in branches), None) for each in names)
    tips = list(islice(filter(None, found), _TIPS_LIMIT))
    head = repository.find("HEAD")
    if not tips or head is None:
        return head or ""
    try:
        return repository.run("merge-base", "--octopus", head, *tips).text.split("\n")[0]
    except GitError:
        return head


def _objects_above(folder: Path) -> Path | None:
    """Return the folder of the objects of the repository that a folder stands in, where that has its usual form."""
    for each in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            if (each / ".git" / "objects").is_dir():
                return each / ".git" / "objects"
            if (each / ".git").exists():
                return None
    return None


def _open_scratch(folder: Path, beside: Path | None = None) -> Repository:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "HEAD").exists():
        words = ["git", "init", "--quiet", "--bare", "--template=", "--", str(folder.absolute())]
        run_process_blocking(words, environment=own_environment())
    if beside is not None:
        (folder / "objects" / "info" / "alternates").write_text(f"{beside}\n")
    return Repository.open(folder)
