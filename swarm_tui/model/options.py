"""The options of `swarm-tui run`, each declared once: its type and default, its flag on the command line with help and
rule, and by its name the field of sweep.json.

No pydantic here: `swarm-tui run --help` answers before it could be imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

from swarm_tui.errors import UsageError
from swarm_tui.model.alarm import is_possible_threshold, parse_alike
from swarm_tui.model.budget import is_possible_budget, parse_dollars
from swarm_tui.model.limits import PROCESS_LIMIT, Confinement, RunLimits

Value = TypeVar("Value")

AGENTS: Final = "the agents"
TESTS: Final = "how tests are run"
THEN: Final = "then"
OFFLINE_AGENT: Final = "the offline agent"

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)i?[bB]?")
_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Rule(NamedTuple):
    """Which values of a number make sense, and what is said of others."""

    is_kept_by: Callable[[float], bool]
    problem: str
    hint: str


_ALL: Final = ("run", "tutorial")
_RUN: Final = ("run",)


@dataclass(frozen=True, slots=True)
class Flag:
    """How an option is given on the command line."""

    name: str
    help: str
    metavar: str | None = None
    group: str = AGENTS
    """The heading below which the help lists it."""
    commands: tuple[str, ...] = _ALL
    parse: Callable[[str], Any] | None = None
    """Reads the word that was given; None where the option's type says how."""
    bare: Any = None
    """The value when the option is given without one; None where it has to have one."""
    rule: Rule | None = None
    path: Literal["file", "folder", "template"] | None = None
    """What the path that is given has to lead to; a template is read, and complained of, by who renders it."""


def _option(default: Value, name: str, help: str, metavar: str | None = None, **more: Any) -> Value:
    return field(default=default, metadata={"flag": Flag(name, help, metavar, **more)})


def parse_duration(text: str) -> float:
    """Return 90, 90s, 30m or 2h as seconds; raise ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time: 90s, 30m and 2h are")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def parse_size(text: str) -> int:
    """Return 512M, 2G or 1048576 as bytes; raise ValueError for anything else."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size: 512M and 2G are")
    return int(float(match.group(1)) * _BYTES[match.group(2).upper()])


def parse_confinement(text: str) -> Confinement:
    """Return what "network,/a/folder,~/another" allows; raise ValueError for other words."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if word != "network" and not word.startswith(("/", "~/")):
            raise ValueError(f"{word!r} is neither `network` nor a path that begins with / or ~/")
    return Confinement("network" in words, tuple(word for word in words if word != "network"))


def parse_label(text: str) -> tuple[str, str]:
    """Return the key and the value of a label."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"--label {text} is no label", "give KEY=VALUE")
    return key, value


_SLOTS: Final = Rule(lambda slots: slots >= 1, "would let no agent work", "give 1 or more")
_TIME: Final = Rule(lambda seconds: seconds > 0, "is no time to work in", "give a time above 0, such as 30m")
_RUNS: Final = Rule(lambda runs: 1 <= runs <= 100, "is no number of runs", "give 1 to 100; 3 tells flaky tests too")
_PROCESSORS: Final = Rule(lambda count: count >= 1, "is no number of processors", "give 1 or more")
_PROCESSES: Final = Rule(lambda count: count >= 10, "is too few for a pytest", "give 10 or more")
_MEMORY: Final = Rule(lambda size: size >= 1 << 26, "is too little for a Python", "give 64M or more, such as 2G")
_SPEED: Final = Rule(lambda speed: 0 < speed <= 1e6, "is no speed", "give a number above 0; 10 is ten times as fast")
_DOLLARS: Final = Rule(is_possible_budget, "is no budget", "give dollars, from 0.01 to 1,000,000")
_ALIKE: Final = Rule(
    is_possible_threshold, "is no number of tests", "give 2 or more, a share such as 10%, or 0 for never"
)
_CONFINE: Final = Flag(
    "--confine",
    "our own test runs see no home, no network and no files but the copy and the system (by bwrap, on Linux); ALLOWED: "
    "`network`, paths that may be read, split by commas",
    "ALLOWED",
    group=TESTS,
    parse=parse_confinement,
    bare=Confinement(),
)
_LABEL: Final = Flag("--label", "a label for all agents", "KEY=VALUE", commands=_RUN, parse=parse_label)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a sweep is to be run; in the order of the help."""

    agent_type: str = _option("claude", "--agent", "claude, offline, or any agent type of mngr", "TYPE")
    agent_arguments: tuple[str, ...] = _option((), "--agent-argument", "a word for the agent's command line", "WORD")
    permissions: Literal["allow", "ask", "skip"] = _option(
        "allow",
        "--permissions",
        "allow: agents read, edit and run in their copies (default); ask: each time; skip: their own dangerous flag",
    )
    slots: int | None = _option(
        None,
        "--slots",
        "so many agents work at once (default 4; with --host as many as fit on the hosts)",
        "N",
        rule=_SLOTS,
    )
    hosts: tuple[str, ...] = _option(
        (), "--host", "a machine that mngr knows; the agents run there", "HOST", commands=_RUN
    )
    """Each the name of a provider of mngr's with one host of the same name, or HOST.PROVIDER."""
    per_host: int = _option(
        4,
        "--per-host",
        "so many agents work at once on each host (default %(default)s)",
        "N",
        rule=_SLOTS,
        commands=_RUN,
    )
    host_timeout: float = _option(
        900.0,
        "--host-timeout",
        "after which a host that does not answer is given up (default 15m)",
        "TIME",
        parse=parse_duration,
        rule=_TIME,
        commands=_RUN,
    )
    timeout: float = _option(
        3600.0, "--timeout", "for one agent (default 1h)", "TIME", parse=parse_duration, rule=_TIME
    )
    wait_timeout: float = _option(
        1800.0, "--wait-timeout", "to wait for your answer (default 30m)", "TIME", parse=parse_duration, rule=_TIME
    )
    ready_timeout: float = _option(
        90.0, "--ready-timeout", "for an agent to be ready (default 90s)", "TIME", parse=parse_duration, rule=_TIME
    )
    budget: float | None = _option(
        None,
        "--budget",
        "dollars for the sweep: a warning at 80 %%, nothing further is launched at 100 %%",
        "DOLLARS",
        parse=parse_dollars,
        rule=_DOLLARS,
    )
    budget_each: float | None = _option(
        None,
        "--budget-each",
        "dollars for one test's agent: then it is asked to hand in, and stopped",
        "DOLLARS",
        parse=parse_dollars,
        rule=_DOLLARS,
    )
    is_load_ignored: bool = _option(
        False, "--ignore-load", "launch no fewer agents when this machine has little memory or much to do"
    )
    is_nudging: bool = _option(False, "--nudge", "write once to an agent that is stuck; then it is left to you")
    keep_agents: bool = _option(False, "--keep-agents", "do not stop agents whose work is harvested")
    alert: float = _option(
        5.0,
        "--alert",
        "so many tests that meet the same are one alarm (default 5; 10%%; 0: never)",
        "N",
        parse=parse_alike,
        rule=_ALIKE,
    )
    breaker: float = _option(
        0.0,
        "--breaker",
        "at so many, hold queued tests that would meet it too (default: never)",
        "N",
        parse=parse_alike,
        rule=_ALIKE,
    )
    is_recorded: bool = _option(False, "--record", "record the terminal of every agent")
    passed_environment: tuple[str, ...] = _option((), "--pass-env", "a variable the agents get", "NAME")
    """Names of variables that the agents get from the engine's environment."""
    integrator_environment: tuple[str, ...] = _option(
        (), "--integrator-env", "a variable that only the integrator gets", "NAME", commands=_RUN
    )
    setup: str | None = _option(
        None, "--setup", "run in every copy before it is used to test (uv sync, make ...)", "CMD"
    )
    is_use_recorded: bool = _option(
        False, "--record-use", "see what each test uses, for --affected-by, also before Python 3.12", commands=_RUN
    )
    python: str | None = _option(
        None, "--python", "the project's interpreter (default: its venv, else python3)", "PATH"
    )
    is_trial_skipped: bool = _option(
        False, "--no-trial", "do not try the tests in a fresh copy before the launch", group=TESTS, commands=_RUN
    )
    baseline: int | None = _option(
        None,
        "--baseline",
        "run each test once (or N times) in fresh copies before the launch, and tell its agent what came of it",
        "N",
        group=TESTS,
        commands=_RUN,
        bare=1,
        rule=_RUNS,
    )
    test_timeout: float | None = _option(
        None, "--test-timeout", "for one test", "TIME", group=TESTS, parse=parse_duration, rule=_TIME
    )
    memory_limit: int | None = _option(
        None,
        "--memory-limit",
        "for each process of a test run (512M, 2G)",
        "SIZE",
        group=TESTS,
        parse=parse_size,
        rule=_MEMORY,
    )
    cpu_limit: int | None = _option(
        None, "--cpu-limit", "processors for a test run (on Linux)", "N", group=TESTS, parse=int, rule=_PROCESSORS
    )
    process_limit: int = _option(
        PROCESS_LIMIT,
        "--process-limit",
        "processes of a test run of ours, which is ended beyond (default %(default)s; on Linux)",
        "N",
        group=TESTS,
        rule=_PROCESSES,
    )
    confinement: Confinement | None = field(default=None, metadata={"flag": _CONFINE})
    has_own_home: bool = _option(False, "--own-home", "tests see an empty HOME instead of yours", group=TESTS)
    alone: tuple[str, ...] = _option(
        (), "--alone", "agents on tests that fit are never at work side by side", "GLOB", group=TESTS, commands=_RUN
    )
    transfer: Literal["mirror", "worktree"] = _option("mirror", "--transfer", "how copies are made", commands=_RUN)
    provider: str = _option(
        "local",
        "--provider",
        "a provider of mngr (docker, modal ...): new hosts are made as they are needed, --per-host agents on each",
        "NAME",
        commands=_RUN,
    )
    build_arguments: tuple[str, ...] = _option(
        (), "--build-arg", "for the provider that makes the hosts, such as cpu=2", "WORD", commands=_RUN
    )
    start_arguments: tuple[str, ...] = _option(
        (), "--start-arg", "the same for their start, such as --cpus=2", "WORD", commands=_RUN
    )
    labels: Mapping[str, str] = field(default_factory=dict, metadata={"flag": _LABEL})
    mapper_prompt: str | None = _option(
        None, "--mapper-prompt", "instead of our prompt (jinja2)", "FILE", commands=_RUN, path="template"
    )
    integrator_prompt: str | None = _option(
        None, "--integrator-prompt", "the same for the integrator", "FILE", commands=_RUN, path="template"
    )
    integrator: Literal["builtin", "agent", "none"] | None = _option(
        None,
        "--integrator",
        "who makes one branch of all (default: one of the agents; if that fails, ours)",
        group=THEN,
        commands=_RUN,
    )
    """None: a coding agent integrates what coding agents have made, and the built-in one what scripts have."""
    measures_teeth: bool = _option(
        True,
        "--teeth",
        "when the branch stands, measure in the background whether tests that agents changed notice less (default)",
        group=THEN,
    )
    tutorial: str | None = _option(
        None, "--tutorial", "the tutorial whose blocks the tests cite", "FILE", group=THEN, commands=_RUN, path="file"
    )
    title: str = _option("", "--title", "a few words to know the sweep by", group=THEN)
    records: str | None = _option(
        None, "--records", "the recorded work that it plays", "FOLDER", group=OFFLINE_AGENT, path="folder"
    )
    speed: float = _option(1.0, "--speed", "so many times as fast", "X", group=OFFLINE_AGENT, rule=_SPEED)
    answers_itself: bool = _option(
        False, "--answers-itself", "questions get the answers that are recorded", group=OFFLINE_AGENT, commands=_RUN
    )
    """Without a person: a waiting agent gets the answer that its record holds."""
    pytest_arguments: tuple[str, ...] = ()
    """As they were given, selection and all."""
    is_private: bool = False
    """The mngr home and tmux server were made for this sweep alone, so `clean` removes them whole."""

    @property
    def run_limits(self) -> RunLimits:
        """What one run of tests may use."""
        return RunLimits(**{limit.name: getattr(self, limit.name) for limit in fields(RunLimits)})


class Option(NamedTuple):
    """One option that has a flag."""

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
    """Raise UsageError for the first number that is out of range."""
    for option in OPTIONS:
        rule, value = option.flag.rule, getattr(options, option.field)
        if rule is not None and value is not None and not rule.is_kept_by(value):
            raise UsageError(f"{option.flag.name} {value:g} {rule.problem}", rule.hint)
