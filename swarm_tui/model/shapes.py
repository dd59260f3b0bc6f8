"""What the commands print with --json, as types; `docs/schemas` has them as JSON Schema.

Within one `SHAPES_VERSION` keys are only added: a program that reads them passes over those that it does not know.
Times are seconds since 1970; None is "not known" or "not there".
"""

from __future__ import annotations

from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

SHAPES_VERSION: Final = 1


class ShownTokens(TypedDict):
    """The tokens of one model."""

    model: str
    input: int
    output: int
    cache_read: int
    cache_written: int


class ShownCost(TypedDict):
    """What all agents of a sweep have used, the integrator included."""

    dollars: float | None
    tokens: int | None
    models: list[ShownTokens]
    unpriced_agents: int
    """So many agents used a model whose price is not known."""
    estimated_dollars: list[float | None] | None
    """What was expected before it began: in the middle, from, to."""
    kept_fixes: int
    dollars_per_kept_fix: float | None
    is_cost_imputed: bool
    """It was paid by a subscription: dollars are what it would cost without one."""
    budget: float | None
    budget_each: float | None
    is_budget_spent: bool


class ShownDial(TypedDict):
    """How many agents are to be at work at most, below what the person has set."""

    slots: int | None
    cause: str
    detail: str
    until: float | None
    halved_at: float
    changed_at: float
    too_many: int | None


class ShownTry(TypedDict):
    """One pytest run of an agent's test."""

    passed: bool | None
    """None while it runs."""
    outcome: str
    seconds: float
    at: float
    failure: str


class ShownChange(TypedDict):
    """What became of one kind of change."""

    status: str
    summary: str
    commit: str


class ShownTrouble(TypedDict):
    """Why an agent's model does not answer."""

    kind: str
    until: float | None
    has_given_up: bool


class ShownTest(TypedDict):
    """One test of a sweep, and the agent on it."""

    test: str
    agent: str
    host: str | None
    state: str
    result: str | None
    tries: list[ShownTry]
    changes: dict[str, ShownChange]
    """By their kind, such as FIX_IMPL."""
    baseline: str | None
    group: str | None
    reason: str
    since: float
    dollars: float | None
    tokens: int | None
    models: list[ShownTokens]
    is_over_budget: bool
    options: list[str]
    """What may be answered to its question."""
    condition: str
    stuck: str
    commits: int
    trouble: ShownTrouble | None
    question: str
    branch: str
    tip: str
    end: str
    has_uncommitted: bool
    foreign_imports: list[str]
    held_for: str
    is_stale: bool
    is_guessed: bool
    """The id of the test is made of its name, which is all that is known of it."""


class ShownPattern(TypedDict):
    """Tests that fail for one reason."""

    cause: str
    kind: str
    tests: list[str]
    shared: list[str]
    """What sets them apart from the others."""
    dollars: float | None


class ShownAlarm(TypedDict):
    """A pattern that was told of because so many tests have it."""

    cause: str
    at: float
    tests: list[str]
    shared: str
    held: list[str]
    why_held: str
    is_released: bool


class ShownHost(TypedDict):
    """A machine that agents of a sweep run on."""

    host: str
    state: str
    reason: str
    slots: int | None
    at_work: int
    waiting: int
    finished: int
    unsolved: int
    load: float | None
    processors: int | None
    heard: float | None
    silent_since: float | None


class ShownHardship(TypedDict):
    """What an agent found hard to use."""

    test: str
    title: str
    detail: str


class ShownSweep(ShownCost):
    """A sweep: `status`, `run`, `resume`, `demo`."""

    sweep: str
    state: str
    source: str
    """`swarm`, or `tmr` for a run of `mngr tmr`."""
    repository: str
    base: str
    integrated: str | None
    title: str
    agent: str
    slots: int
    open_slots: int
    dial: ShownDial
    login_lost: str | None
    started: float | None
    ended: float | None
    reason: str
    counts: dict[str, int]
    """By result, else by state."""
    alarms: list[ShownAlarm]
    patterns: list[ShownPattern]
    hard_to_use: list[ShownHardship]
    hosts: list[ShownHost]
    left_out: list[str]
    doubts: list[str]
    tests: list[ShownTest]


class ListedSweep(TypedDict):
    """One sweep of `list`; one that cannot be read has no more than a reason."""

    sweep: str
    folder: str
    title: str
    created: float | None
    counts: dict[str, int]
    state: str
    reason: str
    base: NotRequired[str]
    integrated: NotRequired[str | None]
    hosts: NotRequired[list[str]]
    doubts: NotRequired[list[str]]
    cost: NotRequired[str]
    dollars: NotRequired[float | None]
    tokens: NotRequired[int | None]
    models: NotRequired[list[ShownTokens]]
    unpriced_agents: NotRequired[int]
    estimated_dollars: NotRequired[list[float | None] | None]
    kept_fixes: NotRequired[int]
    dollars_per_kept_fix: NotRequired[float | None]
    is_cost_imputed: NotRequired[bool]
    budget: NotRequired[float | None]
    budget_each: NotRequired[float | None]
    is_budget_spent: NotRequired[bool]


class ShownFound(TypedDict):
    """A test, and how each of two sweeps found it: green, red, flaky, clash, skipped; None where that is not known."""

    test: str
    before: str | None
    after: str | None


class ShownTotals(TypedDict):
    """One of two sweeps in numbers."""

    sweep: str
    began: float | None
    seconds: float | None
    tests: int
    found: dict[str, int]
    counts: dict[str, int]
    dollars: float | None
    has_unknown_price: bool
    tokens: int | None
    fixes: int
    kept_fixes: int


class ShownBroken(TypedDict):
    """A fix that was kept in the earlier sweep, and of which tests fail again in the later one."""

    commit: str
    title: str
    is_applied: bool
    tests: list[ShownFound]


class ShownComparison(TypedDict):
    """What is different in the later of two sweeps."""

    before: ShownTotals
    after: ShownTotals
    became: dict[str, list[ShownFound]]
    new: list[ShownFound]
    gone: list[ShownFound]
    broken_again: list[ShownBroken]
    not_compared: int


class ShownQuestion(TypedDict):
    """One of the questions that an agent asks at once, or one field that is to be filled in."""

    key: str
    """The name by which the agent gets the answer."""
    text: str
    options: list[str]
    is_many: bool
    """Whether several of the options may be chosen."""


class ShownItem(TypedDict):
    """One thing in the inbox."""

    id: str
    """What `answer` takes."""
    test: str
    agent: str
    since: float
    title: str
    text: str
    is_answerable: bool
    problem: str
    tool: str
    subject: str
    options: list[str]
    questions: list[ShownQuestion]


class ShownGroup(TypedDict):
    """What is asked alike."""

    group: str
    kind: str
    title: str
    is_later: bool
    items: list[ShownItem]


class ShownInbox(TypedDict):
    """Everything in a sweep that needs a person: `pending`."""

    sweep: str
    has_engine: bool
    groups: list[ShownGroup]
    rules: list[dict[str, Any]]


class ShownHunk(TypedDict):
    """A hunk of a fix."""

    number: str
    title: str
    added: int
    removed: int
    verdict: str | None


class ShownFix(TypedDict):
    """A fix of an integrated branch; of its verdict `partly` the hunks tell more."""

    rank: int
    commit: str
    title: str
    branch: str
    agents: list[str]
    verdict: str | None
    hunks: list[ShownHunk]


class ShownPart(TypedDict):
    """A part of the commit of all test and doc fixes."""

    number: str
    id: str
    title: str
    tests: list[str]
    agents: list[str]
    verdict: str | None


# Functional, as `with` is a word of Python.
ShownConflict = TypedDict("ShownConflict", {"commit": str, "with": list[str], "paths": list[str]})


class ShownPlan(TypedDict):
    """What the verdicts lead to."""

    clean: bool
    tree: str | None
    reverted: list[str]
    left_out: list[str]
    hunks: list[str]
    conflicts: list[ShownConflict]


class ShownApplied(TypedDict):
    """The branch that was made."""

    branch: str
    commit: str
    commits: int


class ShownReview(TypedDict):
    """The fixes of a branch with their verdicts: `fixes`. Further keys tell what its options did."""

    base: str
    tip: str
    squashed: str | None
    fixes: list[ShownFix]
    parts: list[ShownPart]
    plan: ShownPlan
    applied: NotRequired[ShownApplied]


class ShownCheck(TypedDict):
    """What was found of one thing that is needed."""

    name: str
    ok: bool
    found: str
    needed: str
    fix: str


class ShownChecks(TypedDict):
    """What this machine has: `doctor`."""

    ok: bool
    checks: list[ShownCheck]


class ShownPage(TypedDict):
    """Where the page of a sweep is: `report`."""

    sweep: str
    page: str
    tests: int
    files: int
    bytes: int
    seconds: float


class ShownMachine(TypedDict):
    """A machine that mngr knows: `hosts list` prints a list of them."""

    name: str
    provider: str
    user: str
    address: str
    port: int
    key_file: str | None
    known_hosts_file: str | None
    host_dir: str
    settings: str


class ShownEvent(TypedDict):
    """One thing that a message tells of."""

    kind: str
    at: float
    test: str
    text: str


class ShownNotice(TypedDict):
    """A message to a person who is away, as the command and the webhook of `[notify]` get it."""

    sweep: str
    title: str
    repository: str
    text: str
    kinds: dict[str, int]
    events: list[ShownEvent]
    counts: dict[str, int]
    dollars: float | None
    ended: str | None
