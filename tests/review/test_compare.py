"""The comparison of two sweeps: tests, kept fixes and costs."""

from msgspec import structs

from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.compare import ComparedTest, KeptFix, compare_sweeps, comparison_lines, found_kind
from swarm_tui.journal.events import EngineEnded, EngineStarted, Pulled, Queued
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Baseline, Result
from swarm_tui.money.events import UsageReported


def sweep(began: float, *events: Event) -> SweepState:
    made = [EngineStarted(pid=1, slots=2), *events]
    return SweepState().apply_all(structs.replace(event, at=began + n) for n, event in enumerate(made))


def queued(test: str, baseline: Baseline = Baseline.UNKNOWN) -> Queued:
    return Queued(test=test, baseline=baseline)


def tried(test: str, number: int, passed: bool) -> TryFinished:
    return TryFinished(test=test, number=number, passed=passed, outcome="passed" if passed else "failed")


EARLIER = sweep(
    100.0,
    queued("steady", Baseline.GREEN),
    queued("breaks", Baseline.GREEN),
    queued("fixed", Baseline.RED),
    queued("shaky", Baseline.GREEN),
    queued("removed", Baseline.RED),
    queued("silent"),
    tried("fixed", 1, False),
    tried("fixed", 2, True),
    Pulled(test="fixed", result=Result.IMPL_FIX),
    Pulled(test="steady", result=Result.CLEAN),
    UsageReported(test="fixed", dollars=1.5, tokens=900),
    Integrated(branch="b", fixes=2),
    EngineEnded(),
)
LATER = sweep(
    900.0,
    queued("steady"),
    queued("breaks"),
    queued("fixed", Baseline.GREEN),
    queued("shaky", Baseline.FLAKY),
    queued("silent"),
    queued("added", Baseline.CLASH),
    tried("steady", 2, False),
    tried("steady", 1, True),
    Pulled(test="breaks", result=Result.ERROR, pulled=PulledWork(passing_before=False)),
    UsageReported(test="breaks", tokens=50),
    EngineEnded(),
)
KEPT = (
    KeptFix("a" * 40, "Repair the door", ("breaks", "fixed"), is_applied=True),
    KeptFix("b" * 40, "Repair the window", ("fixed", "removed"), is_applied=True),
)


def test_found_kind_uses_baseline_then_try_then_report() -> None:
    assert {test: found_kind(record) for test, record in EARLIER.records.items()} == {
        "steady": "green", "breaks": "green", "fixed": "red", "shaky": "green", "removed": "red", "silent": "",
    }  # fmt: skip
    assert {test: found_kind(record) for test, record in LATER.records.items()} == {
        "steady": "green", "breaks": "red", "fixed": "green", "shaky": "flaky", "silent": "", "added": "clash",
    }  # fmt: skip


def test_compare_sweeps_returns_differences() -> None:
    comparison = compare_sweeps(("one", EARLIER), ("two", LATER), KEPT, 3)
    assert comparison.changed == {
        "red": (ComparedTest("breaks", "green", "red"),),
        "flaky": (ComparedTest("shaky", "green", "flaky"),),
        "green": (ComparedTest("fixed", "red", "green"),),
    }
    assert comparison.new == (ComparedTest("added", "", "clash"),)
    assert comparison.gone == (ComparedTest("removed", "red", ""),)
    assert comparison.regressed == ((KEPT[0], (ComparedTest("breaks", "green", "red"),)),)
    assert comparison.unknown == 1
    before, after = comparison.before, comparison.after
    assert (before.began, before.seconds, after.began, after.seconds) == (100.0, 13.0, 900.0, 11.0)
    assert (before.dollars, before.tokens, after.dollars, after.tokens) == (1.5, 900, None, 50)
    assert (before.fixes, before.kept, after.fixes, after.kept) == (2, 2, 0, 3)
    assert before.results == {"clean": 1, "impl_fix": 1, "queued": 4}


def test_comparison_lines() -> None:
    lines = comparison_lines(compare_sweeps(("one", EARLIER), ("two", LATER), KEPT))
    assert [line.text for line in lines] == [
        "                      one                   two",
        "tests                 6                     6",
        "start: red            2                     1",
        "start: flaky          0                     1",
        "start: in conflict    0                     1",
        "start: green          3                     2",
        "start: unknown        1                     1",
        "clean                 1                     0",
        "error                 0                     1",
        "impl fix              1                     0",
        "queued                4                     5",
        "fixes                 2, 2 kept             0",
        "time                  13s                   11s",
        "cost                  $1.50                 ?",
        "tokens                900                   50",
        "kept fixes whose tests fail again: 1",
        "  Repair the door (aaaaaaaaa, applied)",
        "    breaks is red",
        "now red: 1",
        "  breaks (was green)",
        "now flaky: 1",
        "  shaky (was green)",
        "now green: 1",
        "  fixed (was red)",
        "new: 1",
        "  added (in conflict)",
        "removed: 1",
        "  removed (was red)",
        "not compared: 1 test with unknown status in one of the sweeps",
    ]
    assert {line.test for line in lines if line.test} == {"breaks", "shaky", "fixed", "added", "removed"}


def test_comparison_without_differences_and_hostile_names() -> None:
    lines = comparison_lines(compare_sweeps(("one", EARLIER), ("two", EARLIER), ()))
    assert "no differences between tests" in [line.text for line in lines]
    evil = sweep(1.0, queued("\x1b[31mred\x1b[0m\n", Baseline.RED))
    assert not any("\x1b" in line.text for line in comparison_lines(compare_sweeps(("a", EARLIER), ("b", evil), ())))
