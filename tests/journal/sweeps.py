"""Generated sweeps for tests of the journal."""

from hypothesis import strategies as st

from swarm_tui.failures.events import AlertRaised, FailureDetail, QueueHeld, QueueReleased, RaisedError
from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.events import (
    AgentStateChanged,
    EngineEnded,
    EngineStarted,
    Launched,
    LaunchFailed,
    Launching,
    LogMessage,
    PollFailed,
    PollRecovered,
    Pulled,
    Pulling,
    Queued,
    SlotsChanged,
    Stopped,
)
from swarm_tui.journal.work_events import CommitsCounted, FileEdit, FilesEdited, TryFinished, TryStarted
from swarm_tui.limits.events import AgentStuck, ApiError, ApiErrorKind, LoginLost, LoginRestored, ThrottleChanged
from swarm_tui.model.event import Event
from swarm_tui.model.pulled import ClaimCheck, CommitsElsewhere, Escalation, PulledChange, PulledWork
from swarm_tui.model.questions import AnswerRule, Question
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import AgentOverBudget, BudgetChanged, BudgetReached, UsageReported
from swarm_tui.questions.events import QuestionAnswered, QuestionAsked, QuestionClosed, RuleAdded, RuleRemoved

TESTS = [f"tests/test_{name}.py::test_it" for name in "abcde"]

ASKS = [Question(id="1", at=3.0, tool="Bash", subject="ls", text="may I?"), Question(id="2", at=4.0, text="which?")]

PULLED_WORK = [
    PulledWork(
        changes=(PulledChange(kind="FIX_IMPL", status="SUCCEEDED"),), escalations=(Escalation(title="no network"),)
    ),
    PulledWork(elsewhere=(CommitsElsewhere(where="a stash", commits=2),)),
    PulledWork(copy_problem="the repository of its copy is damaged"),
    PulledWork(check=ClaimCheck(claim=Result.IMPL_FIX, verdict="impossible")),
]

test_ids = st.sampled_from(TESTS)
traits = st.lists(st.sampled_from(["fixture db", "marker slow", "parameter size=3"]), unique=True).map(tuple)


def event_of() -> st.SearchStrategy[Event]:
    """Any event of a small sweep. A fold must accept any order of events."""
    return st.one_of(
        st.builds(EngineStarted, pid=st.integers(1, 9), slots=st.integers(1, 9)),
        st.builds(EngineEnded, why=st.sampled_from(["finished", "stopped", "failed"])),
        st.builds(Queued, test=test_ids, agent=st.just("agent"), branch=st.just("branch"), traits=traits),
        st.builds(Launching, test=test_ids, launch=st.integers(1, 3)),
        st.builds(Launched, test=test_ids, is_adopted=st.booleans()),
        st.builds(LaunchFailed, test=test_ids, reason=st.text(max_size=5)),
        st.builds(AgentStateChanged, test=test_ids, state=st.sampled_from([State.RUNNING, State.WAITING])),
        st.builds(
            AgentStateChanged,
            test=test_ids,
            state=st.just(State.RUNNING),
            api_error=st.builds(ApiError, kind=st.sampled_from(ApiErrorKind), until=st.sampled_from([None, 5.0])),
        ),
        st.builds(QuestionAsked, test=test_ids, question=st.sampled_from(ASKS)),
        st.builds(QuestionAnswered, test=test_ids, question=st.sampled_from("12"), rule=st.sampled_from(["", "r1"])),
        st.builds(QuestionClosed, test=test_ids, question=st.sampled_from("12"), why=st.just("answered")),
        st.builds(RuleAdded, rule=st.just(AnswerRule(id="r1", tool="Bash", pattern="ls"))),
        st.builds(RuleRemoved, rule=st.just("r1")),
        st.builds(ThrottleChanged, slots=st.sampled_from([None, 1, 3]), is_halved=st.booleans()),
        st.builds(LoginLost, test=test_ids, reason=st.text(max_size=5)),
        st.builds(LoginRestored),
        st.builds(AgentStuck, test=test_ids, reason=st.text(max_size=5), is_nudged=st.booleans()),
        st.builds(CommitsCounted, test=test_ids, commits=st.integers(1, 9)),
        st.builds(PollFailed, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(PollRecovered),
        st.builds(TryStarted, test=test_ids, number=st.integers(1, 3)),
        st.builds(
            TryFinished,
            test=test_ids,
            number=st.integers(1, 3),
            passed=st.booleans(),
            failure=st.sampled_from(["a.py:3: KeyError: 'a'", "b.py:4: OSError: full"]),
            detail=st.sampled_from([None, FailureDetail(errors=(RaisedError(type="KeyError", message="'b'"),))]),
        ),
        st.builds(Pulling, test=test_ids),
        st.builds(
            Pulled,
            test=test_ids,
            result=st.sampled_from(Result),
            pulled=st.sampled_from(PULLED_WORK),
        ),
        st.builds(Stopped, test=test_ids),
        st.builds(
            UsageReported,
            test=test_ids,
            dollars=st.none() | st.sampled_from([0.0, 0.25, 1.5]),
            tokens=st.none() | st.integers(0, 9),
        ),
        st.builds(BudgetChanged, total=st.none() | st.sampled_from([0.0, 4.0]), each=st.sampled_from([1.0])),
        st.builds(BudgetReached, percent=st.sampled_from([80, 100]), dollars=st.just(4.0), budget=st.just(4.0)),
        st.builds(AgentOverBudget, test=test_ids, dollars=st.just(1.5), budget=st.just(1.0)),
        st.builds(SlotsChanged, slots=st.integers(1, 9)),
        st.builds(
            FilesEdited,
            test=test_ids,
            edits=st.lists(st.builds(FileEdit, st.sampled_from(["a", "b"]), st.just(1), st.integers(1, 3))).map(tuple),
        ),
        st.builds(AlertRaised, cause=st.sampled_from("ab"), tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(
            QueueHeld,
            tests=st.lists(test_ids, min_size=1, max_size=2).map(tuple),
            cause=st.sampled_from("ab"),
        ),
        st.builds(QueueHeld, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(QueueReleased, tests=st.lists(test_ids, max_size=2).map(tuple)),
        st.builds(Integrated, branch=st.just("swarm/x/integrated"), fixes=st.integers(0, 5)),
        st.builds(LogMessage, text=st.text(max_size=5), level=st.sampled_from(["info", "error"])),
    )


events = st.lists(event_of(), max_size=30)
