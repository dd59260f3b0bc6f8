"""The options of `swarm-tui run`.

Each is declared once: type, default, command-line flag with its help and valid range. The field's name is also its name
in sweep.json. This module does not import pydantic, so that `swarm-tui run --help` is fast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

from swarm_tui.errors import UsageError
from swarm_tui.model.run_limits import PROCESS_LIMIT, Confinement, RunLimits

Value = TypeVar("Value")

SELECTION: Final = "selection of tests"
AGENTS: Final = "agents"
TESTS: Final = "test runs"
THEN: Final = "after the agents"
OFFLINE_AGENT: Final = "offline agent"

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)i?[bB]?")
_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Rule(NamedTuple):
    """The valid values of a number."""

    accepts: Callable[[float], bool]
    hint: str


_ALL: Final = ("run", "tutorial")
_RUN: Final = ("run",)


@dataclass(frozen=True, slots=True)
class Flag:
    """The command-line flag of an option."""

    name: str
    help: str
    metavar: str | None = None
    group: str = AGENTS
    """The heading in the help."""
    commands: tuple[str, ...] = _ALL
    parse: Callable[[str], Any] | None = None
    """Parses the argument; None to parse it by the option's type."""
    bare: Any = None
    """The value when the flag is given without an argument; None if an argument is required."""
    rule: Rule | None = None
    path: Literal["file", "folder", "template"] | None = None
    """What must exist at the path; templates are checked when they are rendered."""


def _option(default: Value, name: str, help: str, metavar: str | None = None, **more: Any) -> Value:
    return field(default=default, metadata={"flag": Flag(name, help, metavar, **more)})


def parse_duration(text: str) -> float:
    """Return 90, 90s, 30m or 2h as seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid duration: {text!r}", "use 90s, 30m or 2h")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def parse_size(text: str) -> int:
    """Return 512M, 2G or 1048576 as bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid size: {text!r}", "use 512M or 2G")
    return int(float(match.group(1)) * _BYTES[match.group(2).upper()])


def parse_confinement(text: str) -> Confinement:
    """Return the exceptions to --confine in "network,/a/folder,~/another"."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word != "network" and not word.startswith(("/", "~/")):
            raise UsageError(f"invalid exception: {word!r}", "use `network` or a path that begins with / or ~/")
    return Confinement("network" in words, tuple(word for word in words if word != "network"))


def parse_label(text: str) -> tuple[str, str]:
    """Return the key and the value of a label."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"invalid label: {text!r}", "use KEY=VALUE")
    return key, value


_SLOTS: Final = Rule(lambda slots: slots >= 1, "use 1 or more")
_TIME: Final = Rule(lambda seconds: seconds > 0, "use a time above 0, such as 30m")
_RUNS: Final = Rule(lambda runs: 1 <= runs <= 100, "use 1 to 100; 3 or more also find flaky tests")
_PROCESSORS: Final = Rule(lambda count: count >= 1, "use 1 or more")
_PROCESSES: Final = Rule(lambda count: count >= 10, "use 10 or more: pytest itself needs some processes")
_MEMORY: Final = Rule(lambda size: size >= 1 << 26, "use 64M or more, such as 2G")
_SPEED: Final = Rule(lambda speed: 0 < speed <= 1e6, "use a number above 0; 10 is ten times as fast")
FEWEST_ALIKE: Final = 2


def parse_dollars(text: str) -> float:
    """Return "20", "$20" or "2.50" as a number. Raise ValueError for other text."""
    try:
        return float(text.strip().removeprefix("$"))
    except ValueError:
        raise ValueError(f"invalid amount: {text!r} (use dollars, such as 20 or 2.50)") from None


def is_possible_budget(dollars: float) -> bool:
    """Return whether an amount is a valid budget: from $0.01 to $1,000,000."""
    return 0.01 <= dollars <= 1e6


def parse_alike(text: str) -> float:
    """Return "5" as 5.0 and "10%" as 0.1. Raise ValueError for other text."""
    number = float(text.removesuffix("%"))
    return number / 100 if text.endswith("%") else number


def is_possible_threshold(value: float) -> bool:
    """Return whether a value is a valid threshold: a number of tests, a share below 1, or 0 for never."""
    return value == 0 or 0 < value < 1 or (FEWEST_ALIKE <= value < math.inf and value == math.floor(value))


def alike_needed(threshold: float, total: int) -> int | None:
    """Return the threshold as a number of tests in a sweep of `total` tests, or None for never."""
    if not threshold:
        return None
    return max(FEWEST_ALIKE, math.ceil(threshold * total) if threshold < 1 else int(threshold))


_DOLLARS: Final = Rule(is_possible_budget, "use dollars, from 0.01 to 1,000,000")
_SIMILAR: Final = Rule(is_possible_threshold, "use 2 or more, a share such as 10%, or 0 for never")
_CONFINE: Final = Flag(
    "--confine",
    "run tests without home, network and other files than the copy and the system, except by agents (Linux, bwrap); "
    "ALLOWED: exceptions, separated by commas: `network`, paths to read",
    "ALLOWED",
    group=TESTS,
    parse=parse_confinement,
    bare=Confinement(),
)
_LABEL: Final = Flag("--label", "add a label to all agents", "KEY=VALUE", commands=_RUN, parse=parse_label)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a sweep, in the order of the help."""

    only: Literal["red", "flaky", "green"] | None = _option(
        None,
        "--only",
        "run the tests in fresh copies first (--baseline), and select those that fail, are flaky, or pass",
        group=SELECTION,
        commands=_RUN,
    )
    changed_since: str | None = _option(
        None,
        "--changed-since",
        "select tests whose file, or a conftest.py above it, changed since REV",
        "REV",
        group=SELECTION,
        commands=_RUN,
    )
    affected_by: str | None = _option(
        None,
        "--affected-by",
        "select tests that use code changed since REV (per earlier sweeps) and tests without recorded data",
        "REV",
        group=SELECTION,
        commands=_RUN,
    )
    only_failed_of: str | None = _option(
        None,
        "--only-failed-of",
        "select tests that an earlier sweep did not solve, or that failed in a test report (JUnit XML or CTRF)",
        "SWEEP|FILE",
        group=SELECTION,
        commands=_RUN,
    )
    agent_type: str = _option(
        "claude", "--agent", "use this agent type: claude (default), offline, or any agent type of mngr", "TYPE"
    )
    agent_arguments: tuple[str, ...] = _option(
        (), "--agent-argument", "add an argument to the agent's command line", "ARG"
    )
    permissions: Literal["allow", "ask", "skip"] = _option(
        "allow",
        "--permissions",
        "allow: agents may read, edit and run in their copies (default); ask: agents ask each time; skip: turn off "
        "the agent's permission checks",
    )
    slots: int | None = _option(
        None,
        "--slots",
        "run up to N agents at the same time (default: 4; with --host: --per-host times the number of hosts)",
        "N",
        rule=_SLOTS,
    )
    hosts: tuple[str, ...] = _option(
        (), "--host", "run agents on this host (`swarm-tui hosts list`); repeatable", "HOST", commands=_RUN
    )
    """Names of mngr providers with one host of the same name, or HOST.PROVIDER."""
    per_host: int = _option(
        4,
        "--per-host",
        "run up to N agents at the same time on each host (default: %(default)s)",
        "N",
        rule=_SLOTS,
        commands=_RUN,
    )
    host_timeout: float = _option(
        900.0,
        "--host-timeout",
        "give up a host that does not answer for this time (default: 15m)",
        "TIME",
        parse=parse_duration,
        rule=_TIME,
        commands=_RUN,
    )
    timeout: float = _option(
        3600.0, "--timeout", "stop an agent after this time (default: 1h)", "TIME", parse=parse_duration, rule=_TIME
    )
    wait_timeout: float = _option(
        1800.0,
        "--wait-timeout",
        "wait for your answer to a question up to this time (default: 30m)",
        "TIME",
        parse=parse_duration,
        rule=_TIME,
    )
    ready_timeout: float = _option(
        90.0,
        "--ready-timeout",
        "wait for an agent to start up to this time (default: 90s)",
        "TIME",
        parse=parse_duration,
        rule=_TIME,
    )
    budget: float | None = _option(
        None,
        "--budget",
        "limit the cost of the sweep, in dollars: warn at 80%%, launch no more agents at 100%%",
        "DOLLARS",
        parse=parse_dollars,
        rule=_DOLLARS,
    )
    budget_each: float | None = _option(
        None,
        "--budget-each",
        "limit the cost of each agent, in dollars: then ask it to submit, and stop it",
        "DOLLARS",
        parse=parse_dollars,
        rule=_DOLLARS,
    )
    is_load_ignored: bool = _option(
        False, "--ignore-load", "do not reduce the number of agents when this machine is low on memory or under load"
    )
    is_nudging: bool = _option(False, "--nudge", "send one message to each agent that is stuck")
    keep_agents: bool = _option(False, "--keep-agents", "keep agents running after their work is pulled")
    alert: float = _option(
        5.0,
        "--alert",
        "raise an alert when N tests fail with the same cause: a number or a share such as 10%% (default: 5; 0: never)",
        "N",
        parse=parse_alike,
        rule=_SIMILAR,
    )
    hold_similar: float = _option(
        0.0,
        "--hold-similar",
        "when N tests fail with the same cause, hold queued tests likely to fail with it too (default: never)",
        "N",
        parse=parse_alike,
        rule=_SIMILAR,
    )
    is_recorded: bool = _option(False, "--record", "record the terminal of each agent")
    passed_environment: tuple[str, ...] = _option(
        (), "--pass-env", "pass this environment variable to agents and test runs", "NAME"
    )
    integrator_environment: tuple[str, ...] = _option(
        (), "--integrator-env", "pass this environment variable only to the integrator", "NAME", commands=_RUN
    )
    setup: str | None = _option(
        None, "--setup", "run this command in each copy before its first test (uv sync, make ...)", "CMD"
    )
    is_use_recorded: bool = _option(
        False,
        "--record-use",
        "record the code that each test uses, for --affected-by, even before Python 3.12",
        commands=_RUN,
    )
    python: str | None = _option(
        None, "--python", "run tests with this Python (default: the project's venv, or python3)", "PATH"
    )
    is_preflight_skipped: bool = _option(
        False, "--no-preflight", "do not run the tests in a fresh copy before launch", group=TESTS, commands=_RUN
    )
    verifies: bool = _option(
        True,
        "--verify",
        "run each test on the commit that its agent submitted, before its result counts (default)",
        group=TESTS,
        commands=_RUN,
    )
    baseline: int | None = _option(
        None,
        "--baseline",
        "run each test N times (1 to 100, default: 1) in fresh copies before launch, and give its agent the results",
        "N",
        group=TESTS,
        commands=_RUN,
        bare=1,
        rule=_RUNS,
    )
    test_timeout: float | None = _option(
        None, "--test-timeout", "stop a test after this time", "TIME", group=TESTS, parse=parse_duration, rule=_TIME
    )
    memory_limit: int | None = _option(
        None,
        "--memory-limit",
        "limit the memory of each process of a test run: 64M or more (512M, 2G)",
        "SIZE",
        group=TESTS,
        parse=parse_size,
        rule=_MEMORY,
    )
    cpu_limit: int | None = _option(
        None, "--cpu-limit", "limit a test run to N processors (Linux)", "N", group=TESTS, parse=int, rule=_PROCESSORS
    )
    process_limit: int = _option(
        PROCESS_LIMIT,
        "--process-limit",
        "stop a test run, except by agents, that starts more than N processes (default: %(default)s; Linux)",
        "N",
        group=TESTS,
        rule=_PROCESSES,
    )
    confinement: Confinement | None = field(default=None, metadata={"flag": _CONFINE})
    has_own_home: bool = _option(False, "--empty-home", "run tests with an empty HOME", group=TESTS)
    alone: tuple[str, ...] = _option(
        (),
        "--serial",
        "run agents of tests that match this pattern one at a time; repeatable",
        "GLOB",
        group=TESTS,
        commands=_RUN,
    )
    transfer: Literal["mirror", "worktree"] = _option(
        "mirror",
        "--transfer",
        "create the agents' copies as full copies (mirror, default) or git worktrees",
        commands=_RUN,
    )
    provider: str = _option(
        "local",
        "--provider",
        "create hosts as needed with this mngr provider (docker, modal ...), with --per-host agents on each",
        "NAME",
        commands=_RUN,
    )
    build_arguments: tuple[str, ...] = _option(
        (),
        "--build-arg",
        "pass this argument to the provider that builds hosts: a folder with a Dockerfile, or cpu=2 for Modal",
        "ARG",
        commands=_RUN,
    )
    start_arguments: tuple[str, ...] = _option(
        (),
        "--start-arg",
        "pass this argument to the provider that starts hosts, such as --cpus=2 or --memory=4g for docker",
        "ARG",
        commands=_RUN,
    )
    labels: Mapping[str, str] = field(default_factory=dict, metadata={"flag": _LABEL})
    mapper_prompt: str | None = _option(
        None,
        "--mapper-prompt",
        "use this prompt template for the agents (jinja2)",
        "FILE",
        commands=_RUN,
        path="template",
    )
    integrator_prompt: str | None = _option(
        None,
        "--integrator-prompt",
        "use this prompt template for the integrator (jinja2)",
        "FILE",
        commands=_RUN,
        path="template",
    )
    integrator: Literal["builtin", "agent", "none"] | None = _option(
        None,
        "--integrator",
        "create the integrated branch with a coding agent (default; if its branch is worse, that of the built-in "
        "integrator is used), with the built-in integrator, or not at all",
        group=THEN,
        commands=_RUN,
    )
    """None: a coding agent for the work of coding agents, the built-in integrator for that of scripts."""
    measures_strength: bool = _option(
        True,
        "--strength",
        "after integration, check in the background whether agents weakened tests (default)",
        group=THEN,
    )
    tutorial: str | None = _option(
        None,
        "--tutorial",
        "show this tutorial, whose blocks the tests cite, in the room",
        "FILE",
        group=THEN,
        commands=_RUN,
        path="file",
    )
    title: str = _option("", "--title", "set a title for the sweep", group=THEN)
    records: str | None = _option(
        None, "--records", "play the recorded work in this folder", "FOLDER", group=OFFLINE_AGENT, path="folder"
    )
    speed: float = _option(
        1.0, "--speed", "play records X times as fast (default: 1)", "X", group=OFFLINE_AGENT, rule=_SPEED
    )
    answers_itself: bool = _option(
        False, "--answers-itself", "answer questions with the recorded answers", group=OFFLINE_AGENT, commands=_RUN
    )
    pytest_arguments: tuple[str, ...] = ()
    """The arguments after --, including the selection of tests."""
    is_private: bool = False
    """Whether the mngr home and the tmux server belong to this sweep only, so that `clean` removes them."""

    @property
    def baseline_runs(self) -> int:
        """How often to run each test before launch."""
        return self.baseline or {None: 0, "flaky": 3}.get(self.only, 1)

    @property
    def is_local(self) -> bool:
        """Whether all agents run on this machine."""
        return self.provider == "local" and not self.hosts

    @property
    def run_limits(self) -> RunLimits:
        """The limits of a test run."""
        return RunLimits(**{limit.name: getattr(self, limit.name) for limit in fields(RunLimits)})


class Option(NamedTuple):
    """An option with a flag."""

    field: str
    type: Any
    default: Any
    flag: Flag


def _options() -> tuple[Option, ...]:
    types = get_type_hints(RunOptions)
    return tuple(
        Option(declared.name, types[declared.name], declared.default, declared.metadata["flag"])
        for declared in fields(RunOptions)
        if "flag" in declared.metadata
    )


OPTIONS: Final = _options()


def check_options(options: RunOptions) -> None:
    """Raise UsageError for the first number that is out of range, and for options that exclude each other."""
    for option in OPTIONS:
        rule, value = option.flag.rule, getattr(options, option.field)
        if rule is not None and value is not None and not rule.accepts(value):
            raise UsageError(f"invalid value for {option.flag.name}: {value:g}", rule.hint)
    if options.is_preflight_skipped and options.baseline_runs:
        raise UsageError("--no-preflight conflicts with --baseline and --only", "omit one of them")
