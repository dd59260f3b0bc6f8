"""The specification of a sweep: the content of sweep.json, written once at its start."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from swarm_tui.model.baseline import Baseline
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.node_ids import name_of_test
from swarm_tui.model.options import RunOptions

FORMAT_VERSION: Final = 2
TMR_SOURCE: Final = "tmr"
WATCH_SOURCE: Final = "watch"
"""The source of what is no sweep, but agents of mngr that are watched."""
INTEGRATOR_SLUG: Final = "integrator"
INTEGRATOR_KEY: Final = "(integrator)"
"""The value of `test` in events of the agent that integrates; no test has this name."""
BASE_SLUG: Final = "base"
RESERVED_SLUGS: Final = frozenset({"integrated", INTEGRATOR_SLUG, "reviewed", BASE_SLUG})
_NOT_IN_SLUG: Final = re.compile(r"[^a-z0-9]+")


class MngrSettings(BaseModel):
    """The settings of all calls of mngr, so that each finds the same agents and tmux server."""

    model_config = ConfigDict(frozen=True, extra="allow")

    path: str
    host_dir: str | None = None
    tmux_tmpdir: str | None = None
    prefix: str = "mngr-"
    home: str | None = None


class SweptTest(BaseModel):
    """One test of a sweep, and the names of its agent and its branch."""

    model_config = ConfigDict(frozen=True)

    test: str
    agent: str
    branch: str
    file: str = ""
    line: int = 0
    block: str = ""
    traits: tuple[str, ...] = ()
    group: str = ""
    """Of tests in the same group, only one has an agent at work."""
    baseline: Baseline = Baseline.UNKNOWN
    is_guessed: bool = False
    """Whether the test's name is all that is known of its id."""


class SweepSpec(BaseModel, RunOptions, frozen=True, extra="allow"):
    """The options of a sweep, and what was found before it began: the tests' commit, interpreter and folders."""

    version: int = FORMAT_VERSION
    sweep: str
    repository: str
    base: str
    tests: tuple[SweptTest, ...] = ()
    """What is swept, with its agents and branches, so that no line of the journal is needed to know them; empty in
    older sweeps."""
    base_name: str = ""
    created_at: float
    slots: int = 4
    access: tuple[HostAccess, ...] = ()
    """The hosts of `--host`, and how each is reached; without any the agents run on this machine."""
    new_host_dir: str = ""
    """mngr's folder on the hosts that its provider makes for the sweep."""
    integrator: Literal["builtin", "agent", "none"] = "builtin"
    measures_teeth: bool = False
    python: str = ""
    run_options: tuple[str, ...] = ()
    """Those of pytest's arguments that every run of a single test gets too."""
    folder: str = ""
    """Where pytest is run, from the top of the repository."""
    root: str = ""
    """Where node ids begin, from the top of the repository."""
    import_roots: tuple[str, ...] = ()
    """Folders of the repository that the project's interpreter imports from; in a copy, the copy's own come first."""
    fill: tuple[str, ...] = ()
    """Shell commands that bring into a copy on this machine what git leaves out: submodules, large files."""
    left_out: tuple[str, ...] = ()
    """Sentences on the tests that were collected and have no agent: what they lack, and what mends it."""
    temporary: str = ""
    """The folder below which each agent has a temporary one of its own; empty in older sweeps."""
    identity: tuple[str, str] = ("", "")
    kind: Literal["tests", "fill", "sync"] = "tests"
    """What an agent gets: one test, or a batch of a tutorial's blocks, to be filled with commands or to get tests."""
    tests_folder: str = ""
    """Where the tests of the tutorial lie, from the top of the repository."""
    material: tuple[str, ...] = ()
    """What the agents of a tutorial are to read about the program, beside its help."""
    mngr: MngrSettings
    needed_environment: tuple[str, ...] = ()
    """Names of variables that the agents get besides those of `--pass-env`, since they could not work without."""
    unapproved_servers: tuple[str, ...] = ()
    """The project's tool servers (MCP) that nobody has approved: the agents do without them."""
    outside_imports: tuple[str, ...] = ()
    """Files outside of the project that its instructions for agents import: the agents do without them."""
    parent_type: str = ""
    """The type of agent that mngr's settings derive `agent_type` from; empty for one that is not derived."""
    is_cost_imputed: bool = False
    """The agents' work is paid by a subscription: dollars are what it would cost without one."""
    estimated_cost: tuple[float, float, float] | None = None
    """What it was expected to cost before it began, in dollars, and from where to where; None when that was unknown."""
    labels: dict[str, str] = Field(default_factory=dict)
    source: str = "swarm"
    """Who made it: "swarm", TMR_SOURCE for a run of `mngr tmr`, WATCH_SOURCE for agents that no sweep made."""

    @property
    def is_newer_format(self) -> bool:
        """Whether a newer swarm-tui wrote this sweep: it can be shown, but not continued."""
        return self.version > FORMAT_VERSION

    @property
    def is_watch(self) -> bool:
        """Whether it is no sweep, but agents of mngr that are watched: each is a test by its own name."""
        return self.source == WATCH_SOURCE

    @property
    def why_not_continued(self) -> str:
        """Why no engine can ever work on it; empty for a sweep."""
        return (
            "it is a run of `mngr tmr`, which can be looked at and reviewed only" if self.source == TMR_SOURCE else ""
        )

    @property
    def has_budget(self) -> bool:
        return self.budget is not None or self.budget_each is not None

    @property
    def agent_environment(self) -> tuple[str, ...]:
        """The names of all variables that the agents get from the engine's environment."""
        return tuple(dict.fromkeys((*self.passed_environment, *self.needed_environment)))

    @property
    def engine_environment(self) -> tuple[str, ...]:
        """The names of all variables that the engine keeps for agents, with those for the integrator alone."""
        return tuple(dict.fromkeys((*self.agent_environment, *self.integrator_environment)))


def slug_of(test: str) -> str:
    """Return the part of a node id that names and branches may hold: lower case letters, digits and single dashes."""
    return _NOT_IN_SLUG.sub("-", name_of_test(test).lower()).strip("-")[:40].rstrip("-") or "test"


def derive_tests(sweep: str, collected: list[tuple[str, str, int]]) -> list[SweptTest]:
    """Derive agent and branch names for the collected (node id, file, line), unique and always the same."""
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
