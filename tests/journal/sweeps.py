"""Generated sweeps for tests of the journal."""

from hypothesis import strategies as st

from swarm_tui.model import events as happened
from swarm_tui.model.api_errors import ApiError, ApiErrorKind
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.failures import FailureDetail, RaisedError
from swarm_tui.model.pulled import Escalation, PulledChange, PulledWork
from swarm_tui.model.questions import AnswerRule, Question
from swarm_tui.model.results import Result, State

TESTS = [f"tests/test_{name}.py::test_it" for name in "abcde"]

ASKS = [Question(id="1", at=3.0, tool="Bash", subject="ls", text="may I?"), Question(id="2", at=4.0, text="which?")]

test_ids = st.sampled_from(TESTS)
traits = st.lists(st.sampled_from(["fixture db", "marker slow", "parameter size=3"]), unique=True).map(tuple)


def event_of() -> st.SearchStrategy[happened.Event]:
    """Any event of a small sweep. A fold must accept any order of events."""
    return st.one_of(
        st.builds(happened.EngineStarted, pid=st.integers(1, 9), slots=st.integers(1, 9)),
        st.builds(happened.EngineEnded, why=st.sampled_from(["finished", "stopped", "failed"])),
        st.builds(happened.Queued, test=test_ids, agent=st.just("agent"), branch=st.just("branch"), traits=traits),
        st.builds(happened.Launching, test=test_ids, attempt=st.integers(1, 3)),
        st.builds(happened.Launched, test=test_ids, is_adopted=st.booleans()),
        st.builds(happened.LaunchFailed, test=test_ids, reason=st.text(max_size=5)),
        st.builds(happened.Seen, test=test_ids, state=st.sampled_from([State.RUNNING, State.WAITING])),
        st.builds(
            happened.Seen,
            test=test_ids,
            state=st.just(State.RUNNING),
            trouble=st.builds(ApiError, kind=st.sampled_from(ApiErrorKind), until=st.sampled_from([None, 5.0])),
        ),
        st.builds(happened.Asked, test=test_ids, ask=st.sampled_from(ASKS)),
        st.builds(happened.AskAnswered, test=test_ids, ask=st.sampled_from("12"), rule=st.sampled_from(["", "r1"])),
        st.builds(happened.AskClosed, test=test_ids, ask=st.sampled_from("12"), why=st.just("answered")),
        st.builds(happened.RuleMade, rule=st.just(AnswerRule(id="r1", tool="Bash", pattern="ls"))),
        st.builds(happened.RuleEnded, rule=st.just("r1")),
        st.builds(happened.DialTurned, slots=st.sampled_from([None, 1, 3]), is_halved=st.booleans()),
        st.builds(happened.LoginLost, test=test_ids, reason=st.text(max_size=5)),
        st.builds(happened.LoginRestored),
        st.builds(happened.Stuck, test=test_ids, reason=st.text(max_size=5), is_nudged=st.booleans()),
        st.builds(happened.Committed, test=test_ids, commits=st.integers(1, 9)),
        st.builds(happened.ProbeFailed, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(happened.ProbeRecovered),
        st.builds(happened.TryStarted, test=test_ids, number=st.integers(1, 3)),
        st.builds(
            happened.TryFinished,
            test=test_ids,
            number=st.integers(1, 3),
            passed=st.booleans(),
            failure=st.sampled_from(["a.py:3: KeyError: 'a'", "b.py:4: OSError: full"]),
            detail=st.sampled_from([None, FailureDetail(errors=(RaisedError(type="KeyError", message="'b'"),))]),
        ),
        st.builds(happened.Harvesting, test=test_ids),
        st.builds(
            happened.Harvested,
            test=test_ids,
            result=st.sampled_from(Result),
            harvest=st.just(
                PulledWork(
                    changes=(PulledChange(kind="FIX_IMPL", status="SUCCEEDED"),),
                    escalations=(Escalation(title="no network"),),
                )
            ),
        ),
        st.builds(happened.Stopped, test=test_ids),
        st.builds(
            happened.Spent,
            test=test_ids,
            dollars=st.none() | st.sampled_from([0.0, 0.25, 1.5]),
            tokens=st.none() | st.integers(0, 9),
        ),
        st.builds(happened.BudgetChanged, total=st.none() | st.sampled_from([0.0, 4.0]), each=st.sampled_from([1.0])),
        st.builds(happened.BudgetSpent, percent=st.sampled_from([80, 100]), dollars=st.just(4.0), budget=st.just(4.0)),
        st.builds(happened.OverBudget, test=test_ids, dollars=st.just(1.5), budget=st.just(1.0)),
        st.builds(happened.SlotsChanged, slots=st.integers(1, 9)),
        st.builds(
            happened.Edited,
            test=test_ids,
            edits=st.lists(st.builds(FileEdit, st.sampled_from(["a", "b"]), st.just(1), st.integers(1, 3))).map(tuple),
        ),
        st.builds(happened.PatternRaised, cause=st.sampled_from("ab"), tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(
            happened.QueueHeld,
            tests=st.lists(test_ids, min_size=1, max_size=2).map(tuple),
            cause=st.sampled_from("ab"),
        ),
        st.builds(happened.QueueHeld, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(happened.QueueReleased, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(happened.Integrated, branch=st.just("swarm/x/integrated"), fixes=st.integers(0, 5)),
        st.builds(happened.Noted, text=st.text(max_size=5), level=st.sampled_from(["info", "error"])),
    )


events = st.lists(event_of(), max_size=30)
