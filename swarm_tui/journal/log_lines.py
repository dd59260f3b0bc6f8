"""Log lines of events."""

from __future__ import annotations

from typing import Final

from swarm_tui.journal.budget_events import budget_line
from swarm_tui.journal.pattern_events import alert_text
from swarm_tui.journal.record import LogLine
from swarm_tui.model import events as happened
from swarm_tui.model.api_error_events import access_line
from swarm_tui.model.questions import BY_TYPING
from swarm_tui.model.results import MARKS, Result, State
from swarm_tui.model.spec import INTEGRATOR_KEY

# Frequent events. They are checked first because the `match` below takes as long as the fold itself.
_NOT_LOGGED: Final = frozenset(
    {
        happened.Launching,
        happened.TryStarted,
        happened.TryFinished,
        happened.Said,
        happened.Spent,
        happened.Harvesting,
        happened.Committed,
        happened.Edited,
        happened.AgentsStopped,
        happened.HostSeen,
        happened.Asked,
    }
)


def log_line_of(event: happened.Event) -> LogLine | None:
    """Return the log line of an event, or None for an event that is not logged."""
    if type(event) in _NOT_LOGGED:
        if isinstance(event, happened.Said) and event.test == INTEGRATOR_KEY and event.line:
            return LogLine(event.at, "info", f"the integrator: {event.line}", "")
        return None
    level, text, test = "info", "", ""
    match event:
        case happened.EngineStarted():
            text = f"engine {'resumed' if event.is_resumed else 'started'}, {event.slots} slots"
        case happened.EngineEnded():
            level = "info" if event.why == "finished" else "warning"
            text = f"engine {event.why}" + (f": {event.reason}" if event.reason else "")
        case happened.Queued() if event.reason:
            text, test = f"queued again: {event.reason}", event.test
        case happened.Launched():
            text, test = ("resumed" if event.is_adopted else "launched"), event.test
        case happened.LaunchFailed():
            level, test = ("error" if event.is_final else "warning"), event.test
            text = f"launch {event.attempt} failed: {event.reason}"
        case happened.Seen() if event.state is State.WAITING:
            level, text, test = "warning", _waiting_text(event), event.test
        case happened.ProbeFailed():
            level, text = "warning", f"states are stale: {event.reason}"
        case happened.ProbeRecovered():
            text = "states are up to date again"
        case happened.CheckoutChanged():
            level, text = "warning", f"your repository has changed: {'; '.join(event.changes)}"
        case happened.HostLost() | happened.HostBack() | happened.HostGone():
            level, text = _known_host_line(event)
        case happened.HostMaking() | happened.HostMade() | happened.HostEnded():
            level, text = _made_host_line(event)
        case happened.ForeignImports():
            level, test = "warning", event.test
            text = f"imported modules from your checkout instead of its copy: {', '.join(event.modules[:3])}"
        case happened.Harvested(result=Result.CLAIMED):
            # The result of the check follows in a separate line.
            return None
        case happened.Harvested() | happened.ClaimChecked():
            level = "error" if event.result is Result.FAILED else "info"
            text, test = MARKS[event.result].word, event.test
            text += f": {event.reason}" if event.reason else ""
        case happened.Stopped():
            level, text, test = "warning", f"stopped: {event.reason or 'on request'}", event.test
        case happened.SlotsChanged():
            text = f"{event.slots} slots"
        case happened.BudgetChanged() | happened.BudgetSpent() | happened.BudgetBlind() | happened.OverBudget():
            level, text, test = budget_line(event)
        case happened.Stuck() if event.reason:
            level, text, test = "warning", f"stuck: {event.reason}", event.test
        case happened.DialTurned() | happened.LoginLost() | happened.LoginRestored():
            level, text, test = access_line(event)
        case happened.PatternRaised():
            level, text = "warning", alert_text(event)
        case happened.QueueHeld() | happened.QueueReleased():
            level, text = _queue_line(event)
        case happened.MessageSent():
            level, test = ("error" if event.error else "info"), event.test
            text = f"message not sent: {event.error}" if event.error else f"{event.by or 'a user'} wrote: {event.text}"
        case happened.AskAnswered() | happened.AskClosed() | happened.RuleMade() | happened.RuleEnded():
            if not (text := _inbox_text(event)):
                return None
            test = getattr(event, "test", "")
            level = "warning" if getattr(event, "why", "") == BY_TYPING else "info"
        case happened.RequestAnswered() if not event.is_done:
            level, text = "error", f"request failed: {event.detail}"
        case happened.IntegratorSaid() if not event.line:
            return None
        case happened.Integrating() | happened.IntegratorSaid() | happened.Integrated() | happened.IntegrationFailed():
            level, text = _integration_line(event)
        case happened.Noted():
            level, text, test = event.level, event.text, event.test
        case _:
            return None
    if test == INTEGRATOR_KEY:
        test, text = "", f"the integrator: {text}"
    return LogLine(event.at, level, text, test)


def _waiting_text(event: happened.Seen) -> str:
    if event.test == INTEGRATOR_KEY:
        return f"waits for an answer (use `swarm-tui attach integrator`): {event.question}"
    return f"waits for an answer: {event.question or '(unknown question)'}"


def _known_host_line(event: happened.HostLost | happened.HostBack | happened.HostGone) -> tuple[str, str]:
    match event:
        case happened.HostLost():
            return "warning", f"{event.host} does not answer: {event.reason}"
        case happened.HostBack():
            return "info", f"{event.host} answers again after {event.seconds:.0f} s"
        case happened.HostGone():
            return "error", f"{event.host} was given up: {event.reason}"


def _made_host_line(event: happened.HostMaking | happened.HostMade | happened.HostEnded) -> tuple[str, str]:
    match event:
        case happened.HostMaking():
            return "info", f"creating {event.host}"
        case happened.HostMade():
            return "info", f"{event.host} was created"
        case happened.HostEnded():
            text = f"{event.host} {'could not be created' if event.is_failed else 'was destroyed'}"
            return ("warning" if event.is_failed else "info"), text + (f": {event.reason}" if event.reason else "")


def _queue_line(event: happened.QueueHeld | happened.QueueReleased) -> tuple[str, str]:
    match event:
        case happened.QueueHeld():
            text = f"{_tests_are(event.tests)} held" + (f": {event.reason}" if event.reason else "")
            return ("warning", f"{text} · {event.cause}") if event.cause else ("info", text)
        case happened.QueueReleased():
            return "info", f"{_tests_are(event.tests)} released"


def _integration_line(
    event: happened.Integrating | happened.IntegratorSaid | happened.Integrated | happened.IntegrationFailed,
) -> tuple[str, str]:
    match event:
        case happened.Integrating():
            return "info", f"integrating {event.branches} branches ({event.by})"
        case happened.IntegratorSaid():
            return "info", f"the integrator: {event.line}"
        case happened.Integrated():
            text = f"integrated{f' on {event.branch}' if event.branch else ''}: {event.fixes} fixes"
            text = text if event.branch or event.tip else "nothing to integrate"
            text += f", {event.left_out} left out" if event.left_out else ""
            return "error" if event.problems else "info", "; ".join((text, *event.problems))
        case happened.IntegrationFailed():
            return "error", f"integration failed: {event.reason}"


def _inbox_text(event: happened.AskAnswered | happened.AskClosed | happened.RuleMade | happened.RuleEnded) -> str:
    match event:
        case happened.AskAnswered():
            return f"{event.by or 'a user'} answered{f' by rule {event.rule}' if event.rule else ''}: {event.text}"
        case happened.AskClosed():
            why = event.why or "its hook exited"
            return "" if event.why == "answered" else f"question closed without an answer from swarm-tui: {why}"
        case happened.RuleMade():
            rule = event.rule
            return f"{rule.by or 'a user'} added rule {rule.id}, {rule.answer} to: {rule.words}"
        case happened.RuleEnded():
            return f"{event.by or 'a user'} removed rule {event.rule}"


def _tests_are(tests: tuple[str, ...]) -> str:
    if not tests:
        return "the queue is"
    return "1 test is" if len(tests) == 1 else f"{len(tests)} tests are"
