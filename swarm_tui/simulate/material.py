"""The material of simulated sweeps: test files and names, and what agents print, ask and fail on."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

from swarm_tui.model.asks import Ask, AskedQuestion, AskKind

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
    "Writing the outcome and the bundle",
)
QUESTIONS: Final = (
    Ask(id="", kind=AskKind.PERMISSION, tool="Bash", subject="git fetch --tags origin",
        text="it wants to use Bash: git fetch --tags origin"),
    Ask(id="", kind=AskKind.QUESTION, text="The tutorial and the test disagree about the exit code. Which is right?",
        questions=(AskedQuestion(key="code", text="Which?", options=("the test", "the tutorial")),)),
    Ask(id="", kind=AskKind.PERMISSION, tool="Bash", subject="rm -rf build/cache",
        text="it wants to use Bash: rm -rf build/cache", detail="description: begin with an empty cache"),
    Ask(id="", kind=AskKind.QUESTION, text="From where may I fetch the sample archive? There is no network here.",
        questions=(AskedQuestion(key="where", text="From where?"),)),
)  # fmt: skip
"""What agents ask through their hooks: permissions, a choice, and words."""


class Mishap(NamedTuple):
    """A way in which tests fail; several tests share one, so that the room finds patterns."""

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
    """Return `count` tests in files of uneven size, named as in a project with command line tests."""
    places = [(area, topic) for topic in TOPICS for area in AREAS]
    generator.shuffle(places)
    made: list[SimulatedTest] = []
    round_number = 0
    while len(made) < count:
        for area, topic in places:
            folder = "e2e" if topic in ("basic", "remote", "hosts", "tmux") else f"unit/{area}"
            number = f"_{round_number + 1}" if round_number else ""
            file = f"tests/{folder}/test_{area}_{topic}{number}.py"
            size = min(generator.choice((3, 5, 8, 12, 17, 23, 34)), count - len(made))
            made += _tests_of_file(file, area, topic, size, generator)
            if len(made) >= count:
                break
        round_number += 1
    return sorted(made, key=lambda test: (test.file, test.line))


def _tests_of_file(file: str, area: str, topic: str, size: int, generator: random.Random) -> list[SimulatedTest]:
    made: list[SimulatedTest] = []
    seen: set[str] = set()
    line = 12
    while len(made) < size:
        name = f"test_{area}_{generator.choice(VERBS)}_{generator.choice(THINGS)}"
        if name in seen and generator.random() < 0.9:
            continue
        if generator.random() < 0.25 or name in seen:
            name += f"[{'-'.join(generator.sample(PARAMETERS, generator.choice((1, 2))))}]"
        if name in seen:
            name = f"{name[:-1]}-{len(made)}]"
        seen.add(name)
        block = f"{area}: {name.removeprefix('test_').split('[')[0].replace('_', ' ')}" if "e2e" in file else ""
        made.append(SimulatedTest(f"{file}::{name}", file, name, line, block, topic))
        line += generator.randrange(9, 40)
    return made
