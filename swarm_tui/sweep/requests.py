"""Carry out the requests of users, each once, and answer them with events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from msgspec import structs

from swarm_tui.failures.events import QueueHeld, QueueReleased
from swarm_tui.integrator.events import Revision
from swarm_tui.journal.events import RequestAnswered, SlotsChanged
from swarm_tui.journal.requests import Request, RequestFollower, RequestKind
from swarm_tui.limits.events import throttle_text
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import is_possible_budget
from swarm_tui.model.questions import rule_problem
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.events import BudgetChanged
from swarm_tui.questions.events import RuleAdded, RuleRemoved
from swarm_tui.sweep.agent import Stop
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.run import RunningSweep
from swarm_tui.sweep.send_back import COMMENT_LIMIT, revision_error
from swarm_tui.sweep.slots import idle_slots

SLOTS_LIMIT = 1_000
_DETAIL_LIMIT = 500


class RequestHandler:
    """Carries out the requests of one sweep."""

    def __init__(self, context: SweepContext, sweep: RunningSweep) -> None:
        self._context = context
        self._sweep = sweep
        self._follower = RequestFollower(context.folder)
        # An unanswered request to stop an earlier engine must not stop this one.
        self._is_first_read = True

    def carry_out_new(self, group: asyncio.TaskGroup) -> None:
        requests, refused = self._follower.read()
        for reason in refused:
            self._context.note(f"a request cannot be read: {plain(reason, 200)}", level="warning")
        for request in requests:
            if request.id not in self._context.state.answers:
                self._carry_out(request, group)
        self._is_first_read = False

    def _carry_out(self, request: Request, group: asyncio.TaskGroup) -> None:
        by = plain(request.by, 80) or "someone"
        match request.kind:
            case RequestKind.STOP_SWEEP if self._is_first_read and request.at < self._context.begun_at:
                self._answer(request, problem="the engine that was asked to stop has already exited")
            case RequestKind.STOP_SWEEP:
                self._answer(request)
                self._sweep.stop_sweep(f"asked for by {by}")
            case _ if request.tests and not self._known(request.tests):
                # All tests are unknown. In an event, no tests would mean all tests.
                self._answer(request, problem=self._problem_of_unknown(request.tests))
            case RequestKind.STOP | RequestKind.RETRY | RequestKind.MESSAGE | RequestKind.SEND_BACK if (
                not request.tests
            ):
                self._answer(request, problem="no test is named")
            case RequestKind.STOP:
                self._stop(request, by)
            case RequestKind.RETRY:
                self._retry(request, by)
            case RequestKind.SEND_BACK:
                self._revise(request, by)
            case RequestKind.HOLD:
                self._context.record(QueueHeld(tests=self._known(request.tests), reason=f"asked for by {by}"))
                self._answer(request, problem=self._problem_of_unknown(request.tests))
            case RequestKind.RELEASE if not request.tests and self._context.state.access.is_holding(time.time()):
                group.create_task(self._release(request, by))
            case RequestKind.RELEASE:
                self._context.record(QueueReleased(tests=self._known(request.tests)))
                self._answer(
                    request, problem=self._problem_of_unknown(request.tests), detail=self._still_held(request.tests)
                )
            case RequestKind.SLOTS:
                self._change_slots(request)
            case RequestKind.BUDGET | RequestKind.BUDGET_EACH:
                self._change_budget(request, by)
            case RequestKind.MESSAGE:
                group.create_task(self._send(request, by))
            case RequestKind.ANSWER if not request.items:
                self._answer(request, problem="no question is named")
            case RequestKind.ANSWER:
                group.create_task(self._answer_items(request, by))
            case RequestKind.ADD_RULE:
                self._make_rule(request, by)
            case RequestKind.REMOVE_RULE:
                self._end_rule(request, by)
            case RequestKind.INTEGRATE:
                is_wanted = self._context.spec.integrator != "none"
                self._sweep.is_integration_due = True
                self._answer(
                    request,
                    detail="the integration begins when all tests have results",
                    problem="" if is_wanted else "this sweep has no integrator; run `swarm-tui integrate`",
                )

    async def _release(self, request: Request, by: str) -> None:
        problem = await self._sweep.throttled.release(by)
        if not problem:
            self._context.record(QueueReleased())
        self._answer(request, problem=problem)

    def _stop(self, request: Request, by: str) -> None:
        record_of = self._context.state.record_of
        living = [test for test in self._known(request.tests) if not record_of(test).is_finished]
        for test in living:
            self._sweep.stop_test(test, Stop(f"stopped by {by}"))
        over = [test for test in self._known(request.tests) if record_of(test).is_finished]
        problem = f"{plain(over[0], 200)} is finished already" if over else self._problem_of_unknown(request.tests)
        self._answer(request, problem=problem if not living else "", detail=problem)

    def _retry(self, request: Request, by: str) -> None:
        for test in self._known(request.tests):
            note = plain_lines(request.text or "").strip()[:COMMENT_LIMIT]
            self._sweep.stop_test(test, Stop(f"retried by {by}", is_retried=True, note=note))
        self._answer(request, problem=self._problem_of_unknown(request.tests))

    def _revise(self, request: Request, by: str) -> None:
        test = self._known(request.tests)[0]
        comment = plain_lines(request.text or "").strip()[:COMMENT_LIMIT]
        problem = revision_error(self._context, test, request.fix or "", comment)
        if not problem:
            record = self._context.state.record_of(test)
            number = 1 + (record.revision.number if record.revision is not None else 0)
            hunk = plain_lines(request.hunk or "")[:COMMENT_LIMIT]
            tip = record.pulled.tip
            first_tip = record.revision.first_tip if record.revision is not None else ""
            revision = Revision(
                fix=request.fix or "", comment=comment, hunk=hunk, by=by, tip=tip, first_tip=first_tip or tip,
                number=number,
            )  # fmt: skip
            self._sweep.stop_test(test, Stop(f"sent back by {by}", is_retried=True, revision=revision))
        self._answer(request, problem=problem, detail="its agent revises it")

    def _change_slots(self, request: Request) -> None:
        if request.slots is None or not 1 <= request.slots <= SLOTS_LIMIT:
            self._answer(request, problem=f"invalid number of slots: {request.slots} (1 to {SLOTS_LIMIT})")
            return
        self._context.record(SlotsChanged(slots=request.slots))
        state = self._context.state
        details = (
            idle_slots(request.slots, len(state.records)),
            throttle_text(state.access.throttle, state.slots, time.time()),
        )
        self._answer(request, detail="; ".join(filter(None, details)))

    def _change_budget(self, request: Request, by: str) -> None:
        dollars = request.dollars
        if dollars is None or not (dollars == 0 or is_possible_budget(dollars)):
            self._answer(request, problem=f"invalid budget: {dollars} (0.01 to 1,000,000 dollars, or none)")
            return
        is_total = request.kind is RequestKind.BUDGET
        self._context.record(
            BudgetChanged(total=dollars if is_total else None, each=None if is_total else dollars, by=by)
        )
        spent = self._context.state.spending
        is_spent = is_total and 0 < dollars <= spent.dollars
        detail = f"{spent.text} are spent already: nothing further is launched" if is_spent else ""
        self._answer(request, detail=detail)

    async def _send(self, request: Request, by: str) -> None:
        problems = [self._problem_of_unknown(request.tests)] if self._problem_of_unknown(request.tests) else []
        problems += await self._sweep.messages.send(self._known(request.tests), request.text or "", by=by)
        self._answer(request, problem="; ".join(problems))

    def _still_held(self, released: Iterable[str]) -> str:
        held = sum(bool(record.held_for) for record in self._context.state.tests()) if not released else 0
        return f"{counted(held, 'test')} still held by --hold-similar: release them with `--pattern`" if held else ""

    async def _answer_items(self, request: Request, by: str) -> None:
        outcome = await self._sweep.answers.answer(request.items, request.text or "", by=by)
        self._answer(request, problem=outcome.words if outcome.problems else "", detail=outcome.words)

    def _make_rule(self, request: Request, by: str) -> None:
        state = self._context.state
        if request.rule is None:
            self._answer(request, problem="no rule is given")
            return
        rule = structs.replace(request.rule, id=f"r{state.rules_made + 1}", by=by)
        problem = rule_problem(rule, state.rules.values())
        if not problem:
            self._context.record(RuleAdded(rule=rule))
        self._answer(request, problem=problem, detail=f"it is rule {rule.id}")

    def _end_rule(self, request: Request, by: str) -> None:
        if (request.text or "") not in self._context.state.rules:
            self._answer(request, problem="there is no such rule any more")
            return
        self._context.record(RuleRemoved(rule=request.text or "", by=by))
        self._answer(request)

    def _known(self, tests: Iterable[str]) -> tuple[str, ...]:
        return tuple(test for test in tests if self._is_known(test))

    def _is_known(self, test: str) -> bool:
        is_integrator = test == INTEGRATOR_KEY and self._context.state.integrator is not None
        return is_integrator or test in self._context.state.records

    def _problem_of_unknown(self, tests: Iterable[str]) -> str:
        unknown = [test for test in tests if not self._is_known(test)]
        return f"not a test of this sweep: {plain(unknown[0], 200)}" if unknown else ""

    def _answer(self, request: Request, *, problem: str = "", detail: str = "") -> None:
        self._context.record(
            RequestAnswered(request=request.id, is_done=not problem, detail=plain(problem or detail, _DETAIL_LIMIT))
        )
