"""Brings an agent's commits into the user's repository under a ref below refs/swarm/."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import NoSpaceForGit, Repository, fetch_bundle
from swarm_tui.agents.judging import CommitSummary
from swarm_tui.errors import SwarmError
from swarm_tui.places.place import AgentAddress, Place, PlaceUnreachable

COMMIT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class FetchedCommits:
    """The commits of one agent, now in the user's repository."""

    tip: str = ""
    commits: tuple[CommitSummary, ...] = ()
    problem: str = ""


async def fetch_agent_commits(
    repository: Repository, place: Place, agent: AgentAddress, *, base: str, branch: str, ref: str, bundle: Path | None
) -> FetchedCommits:
    """Fetch an agent's commits from its bundle, else from its copy; `problem` says what is wrong with the bundle.

    NoSpaceForGit says nothing about the agent: the fetch is to be repeated.
    """
    problem = ""
    if bundle is not None:
        try:
            tip = await asyncio.to_thread(fetch_bundle, repository, bundle, branch=branch, into=ref)
            return await asyncio.to_thread(summarize_commits, repository, base, tip)
        except NoSpaceForGit:
            raise
        except SwarmError as error:
            problem = str(error)
    try:
        tip = await place.fetch_commits(agent, repository, base=base, branch=branch, ref=ref)
        fetched = await asyncio.to_thread(summarize_commits, repository, base, tip) if tip else FetchedCommits()
    except (NoSpaceForGit, PlaceUnreachable):
        raise
    except SwarmError as error:
        return FetchedCommits(problem=problem or str(error))
    return FetchedCommits(fetched.tip, fetched.commits, problem)


def summarize_commits(repository: Repository, base: str, tip: str) -> FetchedCommits:
    """Return the commits after the base, the first first."""
    limit = f"--max-count={COMMIT_LIMIT}"
    rows = repository.run("log", "-z", "--reverse", limit, "--format=%H %s", tip, f"^{base}", "--").fields
    commits = tuple(CommitSummary(commit, subject) for commit, _, subject in (row.partition(" ") for row in rows))
    return FetchedCommits(tip, commits)
