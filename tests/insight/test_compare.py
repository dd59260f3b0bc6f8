"""Two sweeps beside each other: what each found, what became of kept fixes, what they cost."""

from swarm_tui.insight.compare import compare_sweeps, comparison_lines, found_kind
from swarm_tui.journal.fold import SweepState
from swarm_tui.model import events as happened
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.comparison import FoundTest, KeptFix
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.states import Result


def sweep(began: float, *events: happened.Event) -> SweepState:
    made = [happened.EngineStarted(pid=1, slots=2), *events]
    return SweepState().apply_all(event.model_copy(update={"at": began + n}) for n, event in enumerate(made))


def queued(test: str, baseline: Baseline = Baseline.UNKNOWN) -> happened.Queued:
    return happened.Queued(test=test, baseline=baseline)


def tried(test: str, number: int, passed: bool) -> happened.TryFinished:
    return happened.TryFinished(test=test, number=number, passed=passed, outcome="passed" if passed else "failed")


EARLIER = sweep(
    100.0,
    queued("steady", Baseline.GREEN),
    queued("breaks", Baseline.GREEN),
    queued("mended", Baseline.RED),
    queued("shaky", Baseline.GREEN),
    queued("removed", Baseline.RED),
    queued("silent"),
    tried("mended", 1, False),
    tried("mended", 2, True),
    happened.Harvested(test="mended", result=Result.IMPL_FIX),
    happened.Harvested(test="steady", result=Result.CLEAN),
    happened.Spent(test="mended", dollars=1.5, tokens=900),
    happened.Integrated(branch="b", fixes=2),
    happened.EngineEnded(),
)
LATER = sweep(
    900.0,
    queued("steady"),
    queued("breaks"),
    queued("mended", Baseline.GREEN),
    queued("shaky", Baseline.FLAKY),
    queued("silent"),
    queued("added", Baseline.CLASH),
    tried("steady", 2, False),
    tried("steady", 1, True),
    happened.Harvested(test="breaks", result=Result.FAILED, harvest=HarvestReport(passing_before=False)),
    happened.Spent(test="breaks", tokens=50),
    happened.EngineEnded(),
)
KEPT = (
    KeptFix("a" * 40, "Mend the door", ("breaks", "mended"), is_applied=True),
    KeptFix("b" * 40, "Mend the window", ("mended", "removed"), is_applied=True),
)


def test_how_a_sweep_found_a_test_is_known_from_runs_before_agents_then_from_tries_then_from_their_word() -> None:
    assert {test: found_kind(record) for test, record in EARLIER.records.items()} == {
        "steady": "green", "breaks": "green", "mended": "red", "shaky": "green", "removed": "red", "silent": "",
    }  # fmt: skip
    assert {test: found_kind(record) for test, record in LATER.records.items()} == {
        "steady": "green", "breaks": "red", "mended": "green", "shaky": "flaky", "silent": "", "added": "clash",
    }  # fmt: skip


def test_what_is_different_is_exactly_this() -> None:
    comparison = compare_sweeps(("one", EARLIER), ("two", LATER), KEPT, 3)
    assert comparison.became == {
        "red": (FoundTest("breaks", "green", "red"),),
        "flaky": (FoundTest("shaky", "green", "flaky"),),
        "green": (FoundTest("mended", "red", "green"),),
    }
    assert comparison.new == (FoundTest("added", "", "clash"),)
    assert comparison.gone == (FoundTest("removed", "red", ""),)
    assert comparison.broken_again == ((KEPT[0], (FoundTest("breaks", "green", "red"),)),)
    assert comparison.unknown == 1
    before, after = comparison.before, comparison.after
    assert (before.began, before.seconds, after.began, after.seconds) == (100.0, 13.0, 900.0, 11.0)
    assert (before.dollars, before.tokens, after.dollars, after.tokens) == (1.5, 900, None, 50)
    assert (before.fixes, before.kept, after.fixes, after.kept) == (2, 2, 0, 3)
    assert before.results == {"clean": 1, "impl_fix": 1, "queued": 4}


def test_people_read_it_line_by_line() -> None:
    lines = comparison_lines(compare_sweeps(("one", EARLIER), ("two", LATER), KEPT))
    assert [line.text for line in lines] == [
        "                      one                   two",
        "tests                 6                     6",
        "found red             2                     1",
        "found flaky           0                     1",
        "found clashing        0                     1",
        "found green           3                     2",
        "found not known       1                     1",
        "clean                 1                     0",
        "failed                0                     1",
        "impl fix              1                     0",
        "queued                4                     5",
        "fixes                 2, 2 kept             0",
        "time                  13s                   11s",
        "cost                  $1.50                 ?",
        "tokens                900                   50",
        "kept fixes that are broken again: 1",
        "  Mend the door (aaaaaaaaa, applied)",
        "    breaks is red",
        "became red: 1",
        "  breaks (was green)",
        "became flaky: 1",
        "  shaky (was green)",
        "became green: 1",
        "  mended (was red)",
        "new: 1",
        "  added (clashing)",
        "gone: 1",
        "  removed (was red)",
        "not compared: 1 test that nothing is known of in one of them",
    ]
    assert {line.test for line in lines if line.test} == {"breaks", "shaky", "mended", "added", "removed"}


def test_a_sweep_that_differs_in_nothing_says_so_and_hostile_names_do_not_act() -> None:
    lines = comparison_lines(compare_sweeps(("one", EARLIER), ("two", EARLIER), ()))
    assert "no test is different" in [line.text for line in lines]
    evil = sweep(1.0, queued("\x1b[31mred\x1b[0m\n", Baseline.RED))
    assert not any("\x1b" in line.text for line in comparison_lines(compare_sweeps(("a", EARLIER), ("b", evil), ())))
