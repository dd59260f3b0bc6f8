"""Turns events into lines of the log."""

from __future__ import annotations

from typing import Final

from swarm_tui.journal.budget_events import budget_line
from swarm_tui.journal.pattern_events import alarm_text
from swarm_tui.model import events as happened
from swarm_tui.model.ask_events import BY_TYPING
from swarm_tui.model.model_access import access_line
from swarm_tui.model.state import LogLine
from swarm_tui.model.states import MARKS, Result, State
from swarm_tui.model.sweep import INTEGRATOR_KEY

# Frequent events. They are looked up first, because a match of twenty cases costs as much as the fold itself.
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
        if isinstance(event, happened.Said) and event.test == INTEGRATOR_KEY:
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
            text, test = ("taken up again" if event.is_adopted else "launched"), event.test
        case happened.LaunchFailed():
            level, test = ("error" if event.is_final else "warning"), event.test
            text = f"launch {event.attempt} failed: {event.reason}"
        case happened.Seen() if event.state is State.WAITING:
            level, text, test = "warning", _waiting_text(event), event.test
        case happened.ProbeFailed():
            level, text = "warning", f"states are stale: {event.reason}"
        case happened.ProbeRecovered():
            text = "states are fresh again"
        case happened.HostLost() | happened.HostBack() | happened.HostGone():
            level, text = _known_host_line(event)
        case happened.HostMaking() | happened.HostMade() | happened.HostEnded():
            level, text = _made_host_line(event)
        case happened.ForeignImports():
            level, test = "warning", event.test
            text = f"ran against your checkout, not its copy: {', '.join(event.modules[:3])}"
        case happened.Harvested():
            level = "error" if event.result is Result.FAILED else "info"
            text, test = MARKS[event.result].word, event.test
            text += f": {event.reason}" if event.reason else ""
        case happened.Stopped():
            level, text, test = "warning", f"stopped: {event.reason or 'asked for'}", event.test
        case happened.SlotsChanged():
            text = f"{event.slots} slots"
        case happened.BudgetChanged() | happened.BudgetSpent() | happened.BudgetBlind() | happened.OverBudget():
            level, text, test = budget_line(event)
        case happened.Stuck() if event.reason:
            level, text, test = "warning", f"stuck: {event.reason}", event.test
        case happened.DialTurned() | happened.LoginLost() | happened.LoginRestored():
            level, text, test = access_line(event)
        case happened.PatternRaised():
            level, text = "warning", alarm_text(event)
        case happened.QueueHeld() | happened.QueueReleased():
            level, text = _queue_line(event)
        case happened.MessageSent():
            level, test = ("error" if event.error else "info"), event.test
            text = f"message not sent: {event.error}" if event.error else f"{event.by or 'someone'} wrote: {event.text}"
        case happened.AskAnswered() | happened.AskClosed() | happened.RuleMade() | happened.RuleEnded():
            if not (text := _inbox_text(event)):
                return None
            test = getattr(event, "test", "")
            level = "warning" if getattr(event, "why", "") == BY_TYPING else "info"
        case happened.RequestAnswered() if not event.is_done:
            level, text = "error", f"could not do that: {event.detail}"
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
        return f"waits for an answer (`swarm-tui attach integrator` leads to it): {event.question}"
    return f"waits for an answer: {event.question or '(no question seen)'}"


def _known_host_line(event: happened.HostLost | happened.HostBack | happened.HostGone) -> tuple[str, str]:
    match event:
        case happened.HostLost():
            return "warning", f"{event.host} does not answer: {event.reason}"
        case happened.HostBack():
            return "info", f"{event.host} is back after {event.seconds:.0f} s"
        case happened.HostGone():
            return "error", f"{event.host} is given up: {event.reason}"


def _made_host_line(event: happened.HostMaking | happened.HostMade | happened.HostEnded) -> tuple[str, str]:
    match event:
        case happened.HostMaking():
            return "info", f"{event.host} is being made"
        case happened.HostMade():
            return "info", f"{event.host} is there"
        case happened.HostEnded():
            text = f"{event.host} {'could not be made' if event.is_failed else 'was given back'}"
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
            return "info", text + (f", {event.left_out} left out" if event.left_out else "")
        case happened.IntegrationFailed():
            return "error", f"integration failed: {event.reason}"


def _inbox_text(event: happened.AskAnswered | happened.AskClosed | happened.RuleMade | happened.RuleEnded) -> str:
    match event:
        case happened.AskAnswered():
            return f"{event.by or 'someone'} answered{f' by rule {event.rule}' if event.rule else ''}: {event.text}"
        case happened.AskClosed():
            why = event.why or "its hook has ended"
            return "" if event.why == "answered" else f"what it asked is over without an answer from here: {why}"
        case happened.RuleMade():
            rule = event.rule
            return f"{rule.by or 'someone'} made rule {rule.id}, {rule.answer} to: {rule.words}"
        case happened.RuleEnded():
            return f"{event.by or 'someone'} took back rule {event.rule}"


def _tests_are(tests: tuple[str, ...]) -> str:
    if not tests:
        return "the queue is"
    return "1 test is" if len(tests) == 1 else f"{len(tests)} tests are"
