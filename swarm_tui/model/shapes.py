"""Types of the `--json` output of all commands; `docs/schemas` contains them as JSON Schema.

Within one `SHAPES_VERSION` keys are only added, so readers must ignore unknown keys. Times are seconds since 1970.
None means unknown or missing.
"""

from __future__ import annotations

from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

SHAPES_VERSION: Final = 2


class TokensJson(TypedDict):
    """The tokens of one model."""

    model: str
    input: int
    output: int
    cache_read: int
    cache_written: int


class CostJson(TypedDict):
    """The usage of all agents of a sweep, including the integrator."""

    dollars: float | None
    tokens: int | None
    models: list[TokensJson]
    unpriced_agents: int
    """The number of agents that used a model with an unknown price."""
    estimated_dollars: list[float | None] | None
    """The estimate before the sweep: expected value, lower bound, upper bound."""
    kept_fixes: int
    dollars_per_kept_fix: float | None
    is_cost_imputed: bool
    """Whether a subscription paid; the dollars are then the price without a subscription."""
    budget: float | None
    budget_each: float | None
    is_budget_spent: bool


class ThrottleJson(TypedDict):
    """The throttle: a limit on running agents below the configured slots."""

    slots: int | None
    cause: str
    detail: str
    until: float | None
    halved_at: float
    changed_at: float
    too_many: int | None


class TryJson(TypedDict):
    """One pytest run of an agent's test."""

    passed: bool | None
    """None while it runs."""
    outcome: str
    seconds: float
    at: float
    failure: str


class ChangeJson(TypedDict):
    """One kind of change in an agent's report."""

    status: str
    summary: str
    commit: str


class ApiErrorJson(TypedDict):
    """An API error of an agent."""

    kind: str
    until: float | None
    has_given_up: bool


class TestJson(TypedDict):
    """One test of a sweep, with its agent."""

    test: str
    agent: str
    host: str | None
    state: str
    result: str | None
    tries: list[TryJson]
    changes: dict[str, ChangeJson]
    """By kind, such as FIX_IMPL."""
    baseline: str | None
    group: str | None
    reason: str
    claim: str | None
    """The result that the agent claims; None if no run can confirm it."""
    check: str | None
    """The verdict of swarm-tui's own runs: pending, confirmed, flaky, refuted, impossible or unmeasured."""
    check_runs: list[str]
    """The outcomes of swarm-tui's own runs."""
    since: float
    dollars: float | None
    tokens: int | None
    models: list[TokensJson]
    is_over_budget: bool
    options: list[str]
    """The options of its question."""
    status_detail: str
    stuck: str
    commits: int
    api_error: ApiErrorJson | None
    question: str
    branch: str
    tip: str
    end: str
    has_uncommitted: bool
    foreign_imports: list[str]
    held_for: str
    is_stale: bool


class PatternJson(TypedDict):
    """Tests that fail for the same cause."""

    cause: str
    kind: str
    tests: list[str]
    shared: list[str]
    """What these tests have in common, and the other tests do not."""
    dollars: float | None


class AlertJson(TypedDict):
    """An alert: the number of tests with the same cause has reached the threshold."""

    cause: str
    at: float
    tests: list[str]
    shared: str
    held: list[str]
    why_held: str
    is_released: bool


class HostJson(TypedDict):
    """A machine that agents of a sweep run on."""

    host: str
    state: str
    reason: str
    slots: int | None
    running: int
    waiting: int
    finished: int
    unsolved: int
    load: float | None
    processors: int | None
    last_poll: float | None
    silent_since: float | None


class UsabilityReportJson(TypedDict):
    """An escalation of an agent about the tutorial or the program's interface."""

    test: str
    title: str
    detail: str


class IntegrationJson(TypedDict):
    """The integrated branch of a sweep."""

    state: str
    """none, integrating, done or failed."""
    by: str
    """Who created the branch: builtin or agent; empty if unknown."""
    fixes: int
    left_out: int
    refused: str
    """Why the branch of the integrating agent is not used."""
    problems: list[str]
    """Problems of the branch: conflict markers, and tests that passed before and fail on it."""


class SweepJson(CostJson):
    """A sweep: `status`, `run`, `resume`, `demo`."""

    sweep: str
    state: str
    source: str
    """`swarm`, or `watch` for agents that were not started by a sweep."""
    repository: str
    base: str
    integrated: str | None
    integration: IntegrationJson
    applied: str | None
    """The branch created by `apply`; None if a verdict changed afterwards."""
    title: str
    agent: str
    slots: int
    open_slots: int
    throttle: ThrottleJson
    login_lost: str | None
    started: float | None
    ended: float | None
    reason: str
    counts: dict[str, int]
    """By result for finished tests, otherwise by state."""
    alerts: list[AlertJson]
    patterns: list[PatternJson]
    usability_reports: list[UsabilityReportJson]
    unfinished_blocks: list[UsabilityReportJson]
    """Blocks of a tutorial that agents did not finish without giving a reason."""
    hosts: list[HostJson]
    left_out: list[str]
    integrity_warnings: list[str]
    checkout_changes: list[str]
    """Changes in the user's repository since launch."""
    is_verified: bool
    """False with `--no-verify`: results are the reports of the agents."""
    tests: list[TestJson]


class ListedSweepJson(TypedDict):
    """One sweep of `list`. A sweep that cannot be read has only a reason."""

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
    integrity_warnings: NotRequired[list[str]]
    cost: NotRequired[str]
    dollars: NotRequired[float | None]
    tokens: NotRequired[int | None]
    models: NotRequired[list[TokensJson]]
    unpriced_agents: NotRequired[int]
    estimated_dollars: NotRequired[list[float | None] | None]
    kept_fixes: NotRequired[int]
    dollars_per_kept_fix: NotRequired[float | None]
    is_cost_imputed: NotRequired[bool]
    budget: NotRequired[float | None]
    budget_each: NotRequired[float | None]
    is_budget_spent: NotRequired[bool]


class ComparedTestJson(TypedDict):
    """A test with its baseline in two sweeps: green, red, flaky, clash, order, skipped, or None if unknown."""

    test: str
    before: str | None
    after: str | None


class TotalsJson(TypedDict):
    """The totals of one of two sweeps."""

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


class RegressionJson(TypedDict):
    """A fix that was kept in the earlier sweep, with its tests that fail again in the later sweep."""

    commit: str
    title: str
    is_applied: bool
    tests: list[ComparedTestJson]


class ComparisonJson(TypedDict):
    """The differences between an earlier and a later sweep."""

    before: TotalsJson
    after: TotalsJson
    changed: dict[str, list[ComparedTestJson]]
    new: list[ComparedTestJson]
    gone: list[ComparedTestJson]
    regressed: list[RegressionJson]
    not_compared: int


class QuestionPartJson(TypedDict):
    """One of several questions that an agent asks together, or one field of a form."""

    key: str
    """The key of the answer that is returned to the agent."""
    text: str
    options: list[str]
    descriptions: list[str]
    """The agent's descriptions of the options; empty if there are none."""
    is_many: bool
    """Whether the user may choose several options."""
    field: str
    """The type of a form field: text, integer, number or boolean; empty for a question, which accepts any text."""
    is_needed: bool
    format: str
    least: float | None
    most: float | None
    """The range of a number, of the length of a text, or of the number of options to choose."""
    hint: str
    """How to answer, as text."""


class ItemJson(TypedDict):
    """One item of the inbox."""

    id: str
    """The id for `swarm-tui answer`."""
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
    parts: list[QuestionPartJson]


class GroupJson(TypedDict):
    """Similar items of the inbox, shown as one."""

    group: str
    kind: str
    title: str
    is_deferred: bool
    items: list[ItemJson]


class InboxJson(TypedDict):
    """The inbox of a sweep: `pending`."""

    sweep: str
    has_engine: bool
    groups: list[GroupJson]
    rules: list[dict[str, Any]]


class HunkJson(TypedDict):
    """A hunk of a fix."""

    number: str
    title: str
    added: int
    removed: int
    verdict: str | None


class EffectJson(TypedDict):
    """The effect of a fix on the tests of the sweep. If it was not measured, it is what the agents report."""

    is_measured: bool
    turned_green: list[str]
    broken: list[str]
    why: str


class FixJson(TypedDict):
    """A fix of an integrated branch. With the verdict `partly`, see the verdicts of its hunks."""

    rank: int
    commit: str
    title: str
    branch: str
    agents: list[str]
    by_integrator: str
    """How an integrating agent changed or added the commit; empty for an unchanged commit of an agent."""
    verdict: str | None
    effect: EffectJson | None
    weaker: list[str]
    """Tests that the fix weakens, removes or renames, each with the reason."""
    hunks: list[HunkJson]


class TestChangeJson(TypedDict):
    """A test change: one part of the commit of all test and doc fixes."""

    number: str
    id: str
    title: str
    tests: list[str]
    agents: list[str]
    verdict: str | None


# In functional syntax because `with` is a keyword.
ConflictJson = TypedDict("ConflictJson", {"commit": str, "with": list[str], "paths": list[str]})


class PlanJson(TypedDict):
    """The plan that follows from the verdicts."""

    clean: bool
    tree: str | None
    reverted: list[str]
    left_out: list[str]
    hunks: list[str]
    conflicts: list[ConflictJson]


class AppliedJson(TypedDict):
    """The branch created by `apply`."""

    branch: str
    commit: str
    commits: int


class ReviewJson(TypedDict):
    """The fixes of a branch with their verdicts: `fixes`. Some options of `fixes` add keys."""

    base: str
    tip: str
    squashed: str | None
    fixes: list[FixJson]
    parts: list[TestChangeJson]
    plan: PlanJson
    applied: NotRequired[AppliedJson]


class CheckJson(TypedDict):
    """One check of `doctor`."""

    name: str
    ok: bool
    found: str
    needed: str
    fix: str


class ChecksJson(TypedDict):
    """All checks of this machine: `doctor`."""

    ok: bool
    checks: list[CheckJson]


class PageJson(TypedDict):
    """The page of a sweep: `report`."""

    sweep: str
    page: str
    tests: int
    files: int
    bytes: int
    seconds: float


class MngrHostJson(TypedDict):
    """A host in the settings of mngr; `hosts list` prints a list."""

    name: str
    provider: str
    user: str
    address: str
    port: int
    key_file: str | None
    known_hosts_file: str | None
    host_dir: str
    settings: str


class NotificationEventJson(TypedDict):
    """One event of a notification."""

    kind: str
    at: float
    test: str
    text: str


class NotificationJson(TypedDict):
    """A notification, as passed to the command and the webhook of `[notify]`."""

    sweep: str
    title: str
    repository: str
    text: str
    kinds: dict[str, int]
    events: list[NotificationEventJson]
    counts: dict[str, int]
    dollars: float | None
    ended: str | None
