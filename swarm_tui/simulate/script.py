"""Scripts of simulated agents and their names, texts and failures."""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from swarm_tui.model.questions import Question, QuestionKind, QuestionPart

AREAS: Final = (
    "create", "list", "connect", "snapshot", "copy", "logs", "destroy", "message", "pull", "push",
    "config", "provision", "limits", "schedule", "rename", "clone", "events", "stop", "start", "exec",
)  # fmt: skip
TOPICS: Final = ("basic", "remote", "errors", "flags", "json", "labels", "names", "hosts", "git", "tmux", "env", "race")
VERBS: Final = (
    "creates", "rejects", "keeps", "lists", "prints", "restores", "retries", "copies", "follows", "waits_for",
    "ignores", "reports", "removes", "renames", "streams", "resolves",
)  # fmt: skip
THINGS: Final = (
    "an_empty_name", "the_exit_code", "two_agents_at_once", "a_missing_host", "unicode_in_labels", "a_stopped_agent",
    "the_default_branch", "a_dirty_work_tree", "json_output", "a_long_path", "the_last_line", "a_slow_start",
    "nested_folders", "an_unknown_flag", "the_config_file", "an_interrupted_copy", "a_full_disk", "the_same_name_twice",
    "relative_paths", "a_detached_head",
)  # fmt: skip
PARAMETERS: Final = ("local", "docker", "modal", "ssh", "a-b", "b-a", "json", "jsonl", "human", "utf8", "latin1")

SAYINGS: Final = (
    "Reading {file} to see what the test asserts",
    "The tutorial block says the command prints one line per agent; the test checks only the first",
    "$ pytest {file} -k {name} -x",
    "Edit {file} (+6 -2)",
    "The failure is in the fixture, not in the command: looking at conftest.py",
    "Found it: the exit code of the child is dropped in run_copy()",
    "Running the test again, five times, to see whether it is flaky",
    "The assertion compares a set with a list; sorting both",
    "Edit src/transfer.py (+9 -4)",
    "1 passed in 3.41s",
    "Writing the report and the bundle",
)
_WHICH: Final = "The tutorial and the test disagree about the exit code. Which is right?"
_WHERE: Final = "From where may I fetch the sample archive? There is no network here."
QUESTIONS: Final = (
    Question(id="", kind=QuestionKind.PERMISSION, tool="Bash", subject="git fetch --tags origin",
        text="it wants to use Bash: git fetch --tags origin"),
    Question(id="", kind=QuestionKind.QUESTION, text=_WHICH,
        parts=(QuestionPart(key="code", text=_WHICH, options=("the test", "the tutorial"),
                                 descriptions=("exit code 2", "exit code 1")),)),
    Question(id="", kind=QuestionKind.PERMISSION, tool="Bash", subject="rm -rf build/cache",
        text="it wants to use Bash: rm -rf build/cache", detail="description: begin with an empty cache"),
    Question(id="", kind=QuestionKind.QUESTION, text=_WHERE, parts=(QuestionPart(key="where", text=_WHERE),)),
)  # fmt: skip
"""Questions of agents: permissions, a choice, and free text."""


class Mishap(NamedTuple):
    """A failure. Several tests have the same one, so that the room finds patterns."""

    failure: str
    reason: str
    title: str
    area: str


TROUBLES: Final = (
    Mishap("fixture 'modal_host' not found", "needs the fixture modal_host, which no conftest defines",
            "fixture 'modal_host' is missing", "remote"),
    Mishap("TimeoutError: agent did not start within {n} s", "the agent under test never starts here",
            "agents do not start within the limit", "hosts"),
    Mishap("RuntimeError: no server running on /tmp/tmux-1000/swarm-{n}", "tmux server is gone during the test",
            "tmux server ends while tests run", "tmux"),
    Mishap("PermissionError: [Errno 13] Permission denied: '/var/lib/agents/{n}'",
            "needs a folder that only root may write", "/var/lib/agents is not writable", "config"),
    Mishap("AssertionError: assert {n} == 0", "exit code differs from what the tutorial promises",
            "exit codes differ", ""),
    Mishap("docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.')",
            "needs a docker daemon", "no docker daemon on this host", "docker"),
)  # fmt: skip

SUMMARIES: Final = {
    "IMPROVE_TEST": ("Check every printed line, not only the first", "Wait for the state instead of sleeping 2 s",
                     "Name what is expected in the assertion", "Cover the empty case too"),
    "FIX_TEST": ("Compare sorted lists", "Use tmp_path instead of a fixed folder",
                 "Close the agent before reading its log"),
    "FIX_TUTORIAL": ("Show the flag that the command really has", "Correct the exit code in the text"),
    "FIX_IMPL": ("Keep the exit code on copy", "Reject an empty name", "Retry on EAGAIN", "Flush the last line on stop",
                 "Do not lose labels on rename", "Quote paths with spaces"),
}  # fmt: skip


class SimulatedTest(NamedTuple):
    """One test of a simulated sweep."""

    test: str
    file: str
    name: str
    line: int
    block: str
    topic: str


def make_tests(count: int, generator: random.Random) -> list[SimulatedTest]:
    """Return `count` tests in files of different sizes, named as in a project with command line tests."""
    combinations = [(area, topic) for topic in TOPICS for area in AREAS]
    generator.shuffle(combinations)
    tests: list[SimulatedTest] = []
    round_number = 0
    while len(tests) < count:
        for area, topic in combinations:
            folder = "e2e" if topic in ("basic", "remote", "hosts", "tmux") else f"unit/{area}"
            number = f"_{round_number + 1}" if round_number else ""
            file = f"tests/{folder}/test_{area}_{topic}{number}.py"
            size = min(generator.choice((3, 5, 8, 12, 17, 23, 34)), count - len(tests))
            tests += _tests_of_file(file, area, topic, size, generator)
            if len(tests) >= count:
                break
        round_number += 1
    return sorted(tests, key=lambda test: (test.file, test.line))


def _tests_of_file(file: str, area: str, topic: str, size: int, generator: random.Random) -> list[SimulatedTest]:
    tests: list[SimulatedTest] = []
    seen: set[str] = set()
    line = 12
    while len(tests) < size:
        name = f"test_{area}_{generator.choice(VERBS)}_{generator.choice(THINGS)}"
        if name in seen and generator.random() < 0.9:
            continue
        if generator.random() < 0.25 or name in seen:
            name += f"[{'-'.join(generator.sample(PARAMETERS, generator.choice((1, 2))))}]"
        if name in seen:
            name = f"{name[:-1]}-{len(tests)}]"
        seen.add(name)
        block = f"{area}: {name.removeprefix('test_').split('[')[0].replace('_', ' ')}" if "e2e" in file else ""
        tests.append(SimulatedTest(f"{file}::{name}", file, name, line, block, topic))
        line += generator.randrange(9, 40)
    return tests


Fields = dict[str, Any]


class ScriptedEvent(NamedTuple):
    """An event of a script, and the seconds before it."""

    wait: float
    type: str
    fields: Fields


RESULTS: Final = {
    "clean": 52, "better": 16, "test_fix": 7, "tutorial_fix": 3, "impl_fix": 8, "unresolved": 5, "blocked": 6,
    "error": 3,
}  # fmt: skip
KIND_OF_RESULT: Final = {
    "better": "IMPROVE_TEST", "test_fix": "FIX_TEST", "tutorial_fix": "FIX_TUTORIAL", "impl_fix": "FIX_IMPL",
}  # fmt: skip
CLAIMS: Final = frozenset({"clean", *KIND_OF_RESULT})
"""Results that a run of the test confirms."""


def write_script(test: SimulatedTest, launch_number: int, generator: random.Random) -> list[ScriptedEvent]:
    """Return the events of one agent, from its launch until its work is pulled."""
    result = generator.choices(tuple(RESULTS), tuple(RESULTS.values()))[0]
    steps: list[ScriptedEvent] = []

    def add(wait: float, type: str, **fields: Any) -> None:
        steps.append(ScriptedEvent(wait, type, fields))

    add(0.0, "launching", launch=launch_number)
    if result == "error" and generator.random() < 0.5:
        reason = "mngr create: no free port for sshd on this host"
        add(generator.uniform(2, 9), "launch_failed", reason=reason, launch=launch_number, is_final=True)
        add(0.1, "pulled", result="error", reason=reason, pulled={"errored": True})
        return steps
    host = generator.choice(("localhost", "localhost", "modal-1", "modal-2", "modal-3"))
    add(generator.uniform(1, 6), "launched", agent_id=f"agent-{generator.getrandbits(64):016x}", host=host)
    trouble = _trouble(test, generator)
    tries = _tries(result, generator)
    dollars = 0.0
    for number, passed in enumerate(tries, 1):
        for _ in range(generator.randrange(2, 7)):
            line = generator.choice(SAYINGS).format(file=test.file, name=test.name.split("[")[0])
            add(generator.expovariate(1 / 9), "agent_output", line=line)
        if generator.random() < 0.04 and number > 1:
            question = structs.replace(generator.choice(QUESTIONS), id=f"{launch_number}-{number}")
            add(4.0, "question_asked", question=msgspec.to_builtins(question))
            add(
                0.0,
                "agent_state_changed",
                state="waiting",
                source="hook",
                question=question.text,
                options=question.options,
            )
            add(generator.expovariate(1 / 900), "question_closed", question=question.id, why="on the screen")
            add(0.0, "agent_state_changed", state="running", source="process")
        add(generator.uniform(1, 8), "try_started", number=number)
        seconds = round(generator.uniform(0.4, 12), 2)
        failure = "" if passed else trouble.failure.format(n=generator.randrange(2, 90))
        add(seconds, "try_finished", number=number, passed=passed, seconds=seconds, failure=failure)
        dollars += generator.uniform(0.01, 0.07)
        add(0.2, "usage_reported", dollars=round(dollars, 4), tokens=int(dollars * 190_000))
    add(generator.uniform(3, 20), "pulling", source="archive")
    wait = generator.uniform(0.5, 3)
    pulled = _pulled_fields(result, tries, trouble.reason, trouble.title, generator)
    if result not in CLAIMS:
        add(wait, "pulled", **pulled)
        return steps
    words = result.replace("_", " ")
    claimed = {"result": "claimed", "reason": f"{words}; swarm-tui has not run the test yet"}
    pulled["pulled"]["check"] = {"claim": result}
    add(wait / 2, "pulled", **pulled | claimed)
    check = {"claim": result, "verdict": "confirmed", "runs": ["passed"]}
    add(wait / 2, "claim_checked", result=result, check=check)
    return steps


def _trouble(test: SimulatedTest, generator: random.Random) -> Any:
    matches = [
        trouble for trouble in TROUBLES if trouble.area and (trouble.area == test.topic or trouble.area in test.name)
    ]
    return generator.choice(matches) if matches and generator.random() < 0.85 else generator.choice(TROUBLES)


def _tries(result: str, generator: random.Random) -> list[bool]:
    match result:
        case "clean":
            return [True] * generator.choice((1, 1, 2))
        case "better":
            return [True, True]
        case "test_fix" | "tutorial_fix" | "impl_fix":
            return [False] * generator.choice((1, 1, 2, 3)) + [True]
        case _:
            return [False] * generator.choice((1, 2, 3, 5))


def _pulled_fields(result: str, tries: list[bool], reason: str, title: str, generator: random.Random) -> Fields:
    report: Fields = {"passing_before": tries[0], "passing_after": tries[-1]}
    fields: Fields = {"result": result, "pulled": report}
    kind = KIND_OF_RESULT.get(result)
    if kind:
        summary = generator.choice(SUMMARIES[kind])
        commit = f"{generator.getrandbits(160):040x}"
        report |= {
            "summary": summary,
            "changes": [{"kind": kind, "status": "SUCCEEDED", "summary": summary, "commit": commit}],
            "tip": commit,
        }
    elif result == "clean":
        report["summary"] = "The test passes and is clear; nothing to change."
    elif result == "unresolved":
        fields["reason"] = f"could not fix it: {reason}"
        report |= {"summary": reason, "changes": [{"kind": "FIX_TEST", "status": "FAILED", "summary": reason}]}
    elif result == "blocked":
        fields["reason"] = reason
        report |= {
            "summary": reason,
            "escalations": [{"kind": "BLOCKER", "title": title, "detail_markdown": f"This test {reason}."}],
        }
    elif result == "error":
        fields["reason"] = generator.choice(("no report within 3600 s", "the agent exited without a report",
                             "invalid report: Field required (in changes.FIX_IMPL.status)"))  # fmt: skip
        report["errored"] = True
    return fields
