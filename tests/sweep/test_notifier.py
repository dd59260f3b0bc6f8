"""Somebody who is away is told: grouped, at most once a minute, nothing that was seen; no failure disturbs."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.failures.events import AlertRaised
from swarm_tui.hosts.events import HostLost
from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, Launched, Pulled
from swarm_tui.journal.user_files import LastVisit, write_seen
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.limits.events import AgentStuck, ApiErrorKind, LoginLost
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import AgentOverBudget, BudgetReached, UsageReported
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.notifications import (
    APART,
    GATHERED_FOR,
    NotificationSettings,
    Notifier,
    notification_for,
    read_notify_settings,
)
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import PATIENCE, eventually


class Away:
    """A sweep whose notifier appends its messages to a file, and a clock that a test moves."""

    def __init__(self, root: Path, tests: int = 6, *, limit: float = PATIENCE, **settings: Any) -> None:
        self.context: SweepContext = scripted_sweep(root, tests, QuickMngr(root / "mngr"))
        self.tests = list(self.context.state.records)
        self.told = root / "told.jsonl"
        self.personal = root / "state"
        self.now = 1_000.0
        self.noted: list[str] = []
        ways = NotificationSettings(**({"command": ("tee", "-a", str(self.told))} | settings))
        self.notifier = Notifier(
            self.context.folder,
            self.context.spec,
            self.context.state,
            ways,
            self.personal,
            self.noted.append,
            clock=lambda: self.now,
            send_limit=limit,
        )

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        await self.notifier.work()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.told.read_text().splitlines()] if self.told.exists() else []

    def see(self) -> None:
        write_seen(self.personal, self.context.folder, LastVisit(self.context.state.last_seq, 5.0))

    def ask(self, test: str) -> None:
        self.context.record(AgentStateChanged(test=test, state=State.WAITING, question="May I?"))

    def fail(self, test: str) -> None:
        self.context.record(Pulled(test=test, result=Result.ERROR, reason="no disk"))


async def test_two_hundred_events_are_three_messages_at_most(tmp_path: Path) -> None:
    away = Away(tmp_path, tests=200)
    for number, test in enumerate(away.tests):
        if number % 2:
            away.ask(test)
        else:
            away.fail(test)
        await away.pass_time(0.7)
    away.context.record(EngineEnded(why="finished"))
    await away.pass_time(2 * APART)
    assert len(away.messages) <= 3
    kinds = [message["kinds"] for message in away.messages]
    assert {kind: sum(told.get(kind, 0) for told in kinds) for kind in ("question", "error", "done")} == {
        "question": 100,
        "error": 100,
        "done": 1,
    }


async def test_a_message_says_all_since_the_one_before(tmp_path: Path) -> None:
    away = Away(tmp_path)
    a, b, c, *_ = away.tests
    away.context.record(Launched(test=a))
    away.context.record(UsageReported(test=a, dollars=1.5, tokens=9))
    away.context.record(Pulled(test=b, result=Result.CLEAN))
    await away.pass_time(500.0)
    assert away.messages == []
    away.ask(a)
    await away.pass_time(GATHERED_FOR - 1)
    assert away.messages == []
    await away.pass_time(GATHERED_FOR)
    (first,) = away.messages
    assert first["text"] == "1 done, 1 question, $1.50"
    assert (first["kinds"], first["sweep"], first["dollars"]) == ({"question": 1}, away.context.spec.sweep, 1.5)
    assert first["events"][0] | {"at": 0} == {
        "kind": "question", "at": 0, "test": a, "text": "waits for an answer: May I?"
    }  # fmt: skip
    away.fail(c)
    await away.pass_time(GATHERED_FOR + 1)
    await away.pass_time(1.0)
    assert len(away.messages) == 1
    await away.pass_time(APART)
    assert away.messages[1]["text"] == "1 done (1 error)"


async def test_while_nobody_comes_the_pauses_grow(tmp_path: Path) -> None:
    away = Away(tmp_path, tests=30)
    sent: list[int] = []
    for minute in range(30):
        away.fail(away.tests[minute])
        await away.pass_time(APART)
        if len(away.messages) > len(sent):
            sent.append(minute)
    assert sent == [1, 3, 5, 9, 17, 25]
    away.see()
    await away.pass_time(APART)
    away.fail(away.tests[0])
    await away.pass_time(1.0)
    await away.pass_time(APART)
    assert len(away.messages) == len(sent) + 1


async def test_alert_is_sent_like_other_notifications(tmp_path: Path) -> None:
    away = Away(tmp_path)
    away.context.record(AlertRaised(cause="no port \x1b[31m", tests=tuple(away.tests[:5])))
    for test in away.tests[:5]:
        away.fail(test)
    await away.pass_time(1.0)
    await away.pass_time(APART)
    (message,) = away.messages
    assert message["kinds"] == {"alert": 1, "error": 5}
    assert message["text"].startswith("5 tests with the same cause: no port, 5 done (5 errors)")


async def test_what_a_room_has_shown_is_not_told(tmp_path: Path) -> None:
    away = Away(tmp_path)
    a, b, c, *_ = away.tests
    away.ask(a)
    away.fail(b)
    await away.pass_time(1.0)
    away.see()
    await away.pass_time(500.0)
    assert away.messages == []
    away.fail(c)
    await away.pass_time(1.0)
    await away.pass_time(GATHERED_FOR)
    assert [message["text"] for message in away.messages] == ["1 done (1 error)"]


async def test_a_question_that_was_answered_is_no_news(tmp_path: Path) -> None:
    away = Away(tmp_path)
    away.ask(away.tests[0])
    await away.pass_time(1.0)
    away.context.record(AgentStateChanged(test=away.tests[0], state=State.RUNNING))
    await away.pass_time(500.0)
    assert away.messages == []


async def test_the_end_is_told_too(tmp_path: Path) -> None:
    away = Away(tmp_path)
    away.context.record(EngineEnded(why="failed", reason="no disk"))
    await away.notifier.work()
    away.now += GATHERED_FOR
    await away.notifier.send_last()
    assert [(message["kinds"], message["ended"]) for message in away.messages] == [({"ended": 1}, "failed")]
    await away.notifier.send_last()
    assert len(away.messages) == 1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("swarm-no-such-program",), "notify.command does not work: swarm-no-such-program is not installed"),
        (("false",), "notify.command does not work: it exited with code 1"),
        (("sh", "-c", "echo first; echo '\033[31mno net' >&2; exit 3"), "notify.command does not work: no net"),
        (("sleep", "1000"), "notify.command does not work: `sleep 1000` did not exit within 0.5 s and was stopped"),
    ],
)
async def test_what_does_not_work_is_noted_once(tmp_path: Path, command: tuple[str, ...], told: str) -> None:
    away = Away(tmp_path, command=command, limit=0.5 if command[0] == "sleep" else PATIENCE)
    for test in away.tests[:2]:
        away.fail(test)
        await away.pass_time(1.0)
        await away.pass_time(APART)
    assert away.noted == [told]


async def test_a_message_that_the_end_interrupts_goes_with_the_last_one(tmp_path: Path) -> None:
    begun, free = tmp_path / "begun", tmp_path / "free"
    script = f"if [ -e {free} ]; then cat >> {tmp_path}/told.jsonl; else touch {begun}; sleep 60; fi"
    away = Away(tmp_path, command=("sh", "-c", script))
    away.fail(away.tests[0])
    await away.pass_time(1.0)
    sending = asyncio.ensure_future(away.pass_time(GATHERED_FOR))
    await eventually(begun.exists, "the first message")
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    free.touch()
    away.context.record(EngineEnded(why="finished"))
    away.now += APART
    await away.notifier.send_last()
    assert [message["kinds"] for message in away.messages] == [{"error": 1, "done": 1}]


async def test_no_word_of_an_agent_is_a_command(tmp_path: Path) -> None:
    away = Away(tmp_path)
    test = away.tests[0]
    away.context.record(
        AgentStateChanged(test=test, state=State.WAITING, question="\x1b]0;x\x07$(touch /tmp/x)\n\u202e--help")
    )
    await away.pass_time(1.0)
    await away.pass_time(APART)
    told = away.messages[0]["events"][0]["text"]
    assert told.isprintable()
    assert told.startswith("waits for an answer: $(touch /tmp/x)")


class _Listener(BaseHTTPRequestHandler):
    """Takes what is posted; a server's `code` is its answer."""

    def do_POST(self) -> None:
        server: Any = self.server
        server.posted.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(server.code)
        if server.code == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def listening(code: int = 204) -> Iterator[tuple[str, list[Any]]]:
    server: Any = HTTPServer(("127.0.0.1", 0), _Listener)
    server.posted, server.code = [], code
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", server.posted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def tell(root: Path, webhook: str, limit: float = PATIENCE) -> Away:
    away = Away(root, webhook=webhook, limit=limit)
    away.fail(away.tests[0])
    await away.pass_time(1.0)
    await away.pass_time(APART)
    return away


async def test_a_webhook_gets_it_too(tmp_path: Path) -> None:
    with listening() as (address, posted):
        away = await tell(tmp_path, address)
    assert posted == [("/hook", away.messages[0])]
    assert away.noted == []


@pytest.mark.parametrize("code", [302, 404, 500])
async def test_a_webhook_that_does_not_take_it_is_noted(tmp_path: Path, code: int) -> None:
    with listening(code) as (address, posted):
        away = await tell(tmp_path, address)
    assert away.noted == [f"notify.webhook does not work: it answered {code}"]
    assert (len(posted), len(away.messages)) == (1, 1)


async def test_a_webhook_that_hangs_is_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        away = await tell(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}/secret", limit=1.0)
    assert len(away.messages) == 1
    assert away.noted[0].startswith("notify.webhook does not work")
    assert "secret" not in away.noted[0]


def written(root: Path, text: str) -> dict[str, str]:
    path = root / "swarm-tui" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return {"XDG_CONFIG_HOME": str(root)}


def test_the_config_says_how(tmp_path: Path) -> None:
    assert read_notify_settings({"XDG_CONFIG_HOME": str(tmp_path)}).is_empty
    text = '[notify]\ncommand = ["ntfy", "publish"]\nwebhook = "https://example.org/x?y=1"\ndesktop = true\n'
    ways = NotificationSettings(("ntfy", "publish"), "https://example.org/x?y=1", has_desktop=True)
    assert read_notify_settings(written(tmp_path, text)) == ways
    assert not replace(ways, command=(), webhook="").is_empty


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('command = "ntfy publish"', "notify.command is 'ntfy publish' (write its words"),
        ("command = [1]", "notify.command is"),
        ('command = [""]', "names no program"),
        ('command = ["a\\u0000b"]', "notify.command is"),
        ('webhook = "example.org/secret"', "invalid notify.webhook"),
        ('webhook = "file:///etc/passwd"', "invalid notify.webhook"),
        ('webhook = "https://exa mple.org:x/"', "invalid notify.webhook"),
        ('webhook = "https://example.org/\\nHost: x"', "invalid notify.webhook"),
        ('desktop = "yes"', "notify.desktop is 'yes' (it is true or false"),
        ("sound = true", "[notify] knows no 'sound'"),
        ("", "[notify] in "),
    ],
)
def test_what_cannot_be_a_way_is_refused(tmp_path: Path, line: str, told: str) -> None:
    text = f"[notify]\n{line}\n" if line else "notify = 3\n"
    with pytest.raises(UsageError) as refused:
        read_notify_settings(written(tmp_path, text))
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: AgentStateChanged(test="a", state=State.WAITING), "question"),
        (lambda: AgentStateChanged(test="a", state=State.RUNNING), None),
        (lambda: AgentOutput(test="a", line="x"), None),
        (lambda: Pulled(test="a", result=Result.CLEAN), None),
        (lambda: Pulled(test="a", result=Result.BLOCKED), "blocked"),
        (lambda: AlertRaised(cause="no port", tests=("a", "b")), "alert"),
        (lambda: LoginLost(kind=ApiErrorKind.LOGIN_LOST, test="a", reason="401"), "login-lost"),
        (lambda: HostLost(host="one", reason="no route"), "host-lost"),
        (lambda: AgentStuck(test="a", reason="the same call five times"), "stuck"),
        (lambda: AgentStuck(test="a"), None),
        (lambda: BudgetReached(percent=80, dollars=8, budget=10), "over-budget"),
        (lambda: AgentOverBudget(test="a", dollars=8, budget=10), "over-budget"),
        (lambda: Integrated(branch="b", fixes=3), "fixes"),
        (lambda: Integrated(branch="b", fixes=0), None),
        (lambda: EngineEnded(why="finished"), "done"),
    ],
)
def test_which_events_are_told(make: Callable[[], Any], kind: str | None) -> None:
    notice = notification_for(make())
    assert (notice.kind if notice is not None else None) == kind


def test_a_notice_takes_no_secret_to_another_machine() -> None:
    notice = notification_for(
        AgentStateChanged(seq=1, at=1.0, test="a.py::t", state=State.WAITING, question="is DB_PASSWORD=hunter22 right?")
    )
    assert notice is not None
    assert "hunter22" not in notice.text
    assert "DB_PASSWORD=••••••••" in notice.text
