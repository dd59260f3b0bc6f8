"""Writes the script of a simulated agent: the events of its test, with the seconds before each."""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

from swarm_tui.simulate.material import QUESTIONS, SAYINGS, SUMMARIES, TROUBLES, SimulatedTest

Fields = dict[str, Any]


class ScriptedEvent(NamedTuple):
    """An event of a script and the seconds that pass before it."""

    wait: float
    type: str
    fields: Fields


RESULTS: Final = {
    "clean": 52, "better": 16, "test_fix": 7, "tutorial_fix": 3, "impl_fix": 8, "unresolved": 5, "blocked": 6,
    "failed": 3,
}  # fmt: skip
KIND_OF_RESULT: Final = {
    "better": "IMPROVE_TEST", "test_fix": "FIX_TEST", "tutorial_fix": "FIX_TUTORIAL", "impl_fix": "FIX_IMPL",
}  # fmt: skip


def write_script(test: SimulatedTest, attempt: int, generator: random.Random) -> list[ScriptedEvent]:
    """Return the events of one agent, from its launch to its harvest."""
    result = generator.choices(tuple(RESULTS), tuple(RESULTS.values()))[0]
    steps: list[ScriptedEvent] = []

    def add(wait: float, type: str, **fields: Any) -> None:
        steps.append(ScriptedEvent(wait, type, fields))

    add(0.0, "launching", attempt=attempt)
    if result == "failed" and generator.random() < 0.5:
        reason = "mngr create: no free port for sshd on this host"
        add(generator.uniform(2, 9), "launch_failed", reason=reason, attempt=attempt, is_final=True)
        add(0.1, "harvested", result="failed", reason=reason, harvest={"errored": True})
        return steps
    host = generator.choice(("localhost", "localhost", "modal-1", "modal-2", "modal-3"))
    add(generator.uniform(1, 6), "launched", agent_id=f"agent-{generator.getrandbits(64):016x}", host=host)
    trouble = _trouble(test, generator)
    tries = _tries(result, generator)
    dollars = 0.0
    for number, passed in enumerate(tries, 1):
        for _ in range(generator.randrange(2, 7)):
            line = generator.choice(SAYINGS).format(file=test.file, name=test.name.split("[")[0])
            add(generator.expovariate(1 / 9), "said", line=line)
        if generator.random() < 0.04 and number > 1:
            ask = generator.choice(QUESTIONS).model_copy(update={"id": f"{attempt}-{number}"})
            add(4.0, "asked", ask=ask.model_dump(mode="json"))
            add(0.0, "seen", state="waiting", source="hook", question=ask.text, options=ask.options)
            add(generator.expovariate(1 / 900), "ask_closed", ask=ask.id, why="on the screen")
            add(0.0, "seen", state="running", source="process")
        add(generator.uniform(1, 8), "try_started", number=number)
        seconds = round(generator.uniform(0.4, 12), 2)
        failure = "" if passed else trouble.failure.format(n=generator.randrange(2, 90))
        add(seconds, "try_finished", number=number, passed=passed, seconds=seconds, failure=failure)
        dollars += generator.uniform(0.01, 0.07)
        add(0.2, "spent", dollars=round(dollars, 4), tokens=int(dollars * 190_000))
    add(generator.uniform(3, 20), "harvesting", source="archive")
    add(generator.uniform(0.5, 3), "harvested", **_harvest(result, tries, trouble.reason, trouble.title, generator))
    return steps


def _trouble(test: SimulatedTest, generator: random.Random) -> Any:
    fitting = [
        trouble for trouble in TROUBLES if trouble.area and (trouble.area == test.topic or trouble.area in test.name)
    ]
    return generator.choice(fitting) if fitting and generator.random() < 0.85 else generator.choice(TROUBLES)


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


def _harvest(result: str, tries: list[bool], reason: str, title: str, generator: random.Random) -> Fields:
    report: Fields = {"passing_before": tries[0], "passing_after": tries[-1]}
    fields: Fields = {"result": result, "harvest": report}
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
        report["summary"] = "Passes, and says what it checks; nothing to change."
    elif result == "unresolved":
        fields["reason"] = f"tried, could not: {reason}"
        report |= {"summary": reason, "changes": [{"kind": "FIX_TEST", "status": "FAILED", "summary": reason}]}
    elif result == "blocked":
        fields["reason"] = reason
        report |= {
            "summary": reason,
            "escalations": [{"kind": "BLOCKER", "title": title, "detail_markdown": f"This test {reason}."}],
        }
    elif result == "failed":
        fields["reason"] = generator.choice(("no outcome within 3600 s", "the agent's process ended without an outcome",
                             "the outcome file is broken: changes.FIX_IMPL.status: Field required"))  # fmt: skip
        report["errored"] = True
    return fields
