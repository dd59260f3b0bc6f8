"""Content of sweep.json, swept tests, pytest node ids."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from swarm_tui.model.event import Value
from swarm_tui.model.options import RunOptions
from swarm_tui.model.results import Baseline

LOCAL_HOST: Final = "local"
"""The name of this machine in lists of hosts."""


class HostSettings(Value, frozen=True, kw_only=True):
    """The connection to one host, from the settings of mngr."""

    name: str
    """The displayed name, also used by `--host`: HOST if the provider has the same name, otherwise HOST.PROVIDER."""
    provider: str
    address: str
    host_dir: str
    """The absolute path of mngr's folder on the host."""
    port: int = 22
    user: str = "root"
    key_file: str = ""
    known_hosts_file: str = ""


def mngr_address(agent: str, host: str) -> str:
    """Return the name of an agent for mngr: NAME on this machine, otherwise NAME@HOST.PROVIDER."""
    if host in ("", LOCAL_HOST):
        return agent
    return f"{agent}@{host}" if "." in host else f"{agent}@{host}.{host}"


def split_node_id(test: str) -> tuple[str, str]:
    """Return the parent of a test, and its name with parameters. Parameters may contain :: and brackets.

    The names of folders may contain brackets too, so the text before the first bracket is split only if it contains ::.
    """
    head, bracket, parameters = test.partition("[")
    if bracket and "::" in head:
        place, _, name = head.rpartition("::")
        return place, f"{name}[{parameters}"
    place, _, name = test.rpartition("::")
    return place, name


def name_of_test(test: str) -> str:
    return split_node_id(test)[1]


FORMAT_VERSION: Final = 3
WATCH_SOURCE: Final = "watch"
"""The source of a journal of `swarm-tui watch`, with agents that no sweep started."""
INTEGRATOR_SLUG: Final = "integrator"
BASE_SLUG: Final = "base"
RESERVED_SLUGS: Final = frozenset({"integrated", INTEGRATOR_SLUG, "reviewed", BASE_SLUG})
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")


class SpecVersion(Value, frozen=True):
    """The part of sweep.json that every version can read."""

    version: int = FORMAT_VERSION


class MngrSettings(Value, frozen=True, kw_only=True):
    """The settings of all calls of mngr, so that all use the same agents and tmux server."""

    path: str
    host_dir: str | None = None
    tmux_tmpdir: str | None = None
    prefix: str = "mngr-"
    home: str | None = None


class SweptTest(Value, frozen=True, kw_only=True):
    """One test of a sweep, and the names of its agent and its branch."""

    test: str
    agent: str
    branch: str
    file: str = ""
    line: int = 0
    block: str = ""
    traits: tuple[str, ...] = ()
    group: str = ""
    """Only one test of a group has a running agent at any time."""
    baseline: Baseline = Baseline.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class SweepSpec(RunOptions):
    """The options of a sweep, with the commit, interpreter and folders that were determined before launch."""

    version: int = FORMAT_VERSION
    sweep: str
    repository: str
    base: str
    tests: tuple[SweptTest, ...] = ()
    """The tests with their agents and branches, so that they are known even if the journal is damaged."""
    base_name: str = ""
    created_at: float
    slots: int = 4
    access: tuple[HostSettings, ...] = ()
    """The connections to the hosts of `--host`; empty if agents run on this machine."""
    new_host_dir: str = ""
    """mngr's folder on the hosts that are created for the sweep."""
    new_host_backend: str = ""
    """The backend of their provider in mngr's settings, such as docker."""
    dockerfile: str = ""
    """The Dockerfile of their image; empty if the user or mngr chooses the image."""
    integrator: Literal["builtin", "agent", "none"] = "builtin"
    measures_strength: bool = False
    verifies: bool = False
    python: str = ""
    run_options: tuple[str, ...] = ()
    """The arguments of pytest that also apply to runs of a single test."""
    folder: str = ""
    """The working directory of pytest, relative to the top of the repository."""
    root: str = ""
    """The root of node ids, relative to the top of the repository."""
    import_roots: tuple[str, ...] = ()
    """Folders of the repository on the interpreter's import path. In a copy, the copy's own folders come first."""
    fill: tuple[str, ...] = ()
    """Shell commands that add to a copy on this machine what git leaves out: submodules and large files."""
    left_out: tuple[str, ...] = ()
    """Sentences on collected tests without an agent: what is missing, and how to fix it."""
    temporary: str = ""
    """The parent of the temporary folders of all agents."""
    identity: tuple[str, str] = ("", "")
    kind: Literal["tests", "fill", "sync"] = "tests"
    """The work of an agent: one test, or a batch of tutorial blocks to fill with commands or to write tests for."""
    tests_folder: str = ""
    """The folder of the tutorial's tests, relative to the top of the repository."""
    material: tuple[str, ...] = ()
    """Files about the program that the agents of a tutorial should read, in addition to its help."""
    mngr: MngrSettings
    needed_environment: tuple[str, ...] = ()
    """Names of variables that the agents require, in addition to those of `--pass-env`."""
    unapproved_servers: tuple[str, ...] = ()
    """The project's tool servers (MCP) that the user has not approved. Agents run without them."""
    outside_imports: tuple[str, ...] = ()
    """Files outside the project that its instructions for agents import. Agents run without them."""
    parent_type: str = ""
    """The agent type that `agent_type` is derived from in mngr's settings; empty if it is not derived."""
    is_cost_imputed: bool = False
    """Whether a subscription pays; dollars are then the price without a subscription."""
    estimated_cost: tuple[float, float, float] | None = None
    """The estimate in dollars before the sweep: expected value, lower bound, upper bound; None if unknown."""
    labels: dict[str, str] = field(default_factory=dict)
    source: str = "swarm"
    """The origin: "swarm", or WATCH_SOURCE for agents that no sweep started."""

    @property
    def is_newer_format(self) -> bool:
        """Whether a newer swarm-tui wrote this sweep. It can be shown, but not continued."""
        return self.version > FORMAT_VERSION

    @property
    def is_watch(self) -> bool:
        """Whether this is the journal of `swarm-tui watch`. Each agent is then recorded as a test with its name."""
        return self.source == WATCH_SOURCE

    @property
    def why_not_verified(self) -> str:
        """Why the results are only what agents report; empty if swarm-tui runs the tests itself."""
        is_reported = self.kind == "tests" and not self.is_watch and not self.verifies
        return "results are not verified: they are what the agents report" if is_reported else ""

    @property
    def has_budget(self) -> bool:
        return self.budget is not None or self.budget_each is not None

    @property
    def agent_environment(self) -> tuple[str, ...]:
        """Names of the variables that agents get from the engine's environment."""
        return tuple(dict.fromkeys((*self.passed_environment, *self.needed_environment)))

    @property
    def engine_environment(self) -> tuple[str, ...]:
        """Names of the variables that the engine keeps for agents and for the integrator."""
        return tuple(dict.fromkeys((*self.agent_environment, *self.integrator_environment)))


def slug_of(test: str) -> str:
    """Return the name of a test for use in agent names and branches: lower case letters, digits and single dashes."""
    return _NOT_IN_SLUG.sub("-", name_of_test(test).lower()).strip("-")[:40].rstrip("-") or "test"


def derive_tests(sweep: str, collected: list[tuple[str, str, int]]) -> list[SweptTest]:
    """Return tests for a list of (node id, file, line), with unique and reproducible names of agents and branches."""
    seen: dict[str, int] = {}
    taken = set(RESERVED_SLUGS)
    tests = []
    for test, file, line in collected:
        base = slug = slug_of(test)
        while slug in taken:
            seen[base] = seen.get(base, 1) + 1
            slug = f"{base}-{seen[base]}"
        taken.add(slug)
        tests.append(
            SweptTest(test=test, agent=f"swarm-{sweep}-{slug}", branch=f"swarm/{sweep}/{slug}", file=file, line=line)
        )
    return tests


def integrator_of(spec: SweepSpec) -> str:
    """Return the name of the integrating agent of a sweep."""
    return f"swarm-{spec.sweep}-{INTEGRATOR_SLUG}"
