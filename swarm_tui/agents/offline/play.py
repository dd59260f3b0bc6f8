"""Replays the steps of one record in the agent's copy of the repository."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.agents.contract import OUTPUT_FOLDER, TRIES_PATH, Task
from swarm_tui.agents.offline.records import Record, RecordedStep
from swarm_tui.agents.submit import Presence

RUN_TIMEOUT: Final = 900.0
_SECONDS_A_LINE: Final = 0.8
_SECONDS_AN_EDIT: Final = 1.2
_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")


class MisfitError(Exception):
    """A recorded edit does not match the tree; the message names the edit."""


@dataclass(slots=True)
class RecordPlayer:
    """Replays steps and collects their results."""

    task: Task
    copy: Path
    presence: Presence
    changes: dict[str, dict[str, str]] = field(default_factory=dict)
    escalations: list[dict[str, str]] = field(default_factory=list)
    runs: list[dict[str, str]] = field(default_factory=list)
    verdicts: list[bool | None] = field(default_factory=list)
    """Whether the test passed, one value for each run; None if unknown."""
    claims: dict[str, Any] = field(default_factory=dict)
    edited: list[str] = field(default_factory=list)
    breakage: str = ""

    async def play_step(self, step: RecordedStep) -> None:
        match step.name:
            case "say":
                await self._pause(_SECONDS_A_LINE)
                self.presence.write_message(step.value)
            case "run":
                await self.run_test(step.value)
            case "edit":
                await self._edit(step.value, step.more.get("old", ""), step.more.get("new", ""))
            case "write" | "uncommitted":
                await self._write(step.value, step.more.get("text", ""), is_kept=step.name == "write")
            case "commit":
                await self._commit(step.value, step.more)
            case "fail":
                self.changes[step.value] = _change("FAILED", step.more.get("summary", ""))
            case "ask":
                await self._ask(step.value)
            case "escalate":
                title, detail = step.more.get("title", ""), step.more.get("detail", "")
                self.escalations.append({"kind": step.value, "title": title, "detail_markdown": detail})
            case "sleep":
                await self._pause(step.value)
            case "claim":
                self.claims |= step.value
            case "crash":
                sys.stdout.flush()
                os._exit(step.value & 0xFF)
            case "hang":
                await asyncio.Event().wait()
            case "break":
                self.breakage = step.value

    def report_misfit(self, reason: str, following: tuple[RecordedStep, ...]) -> None:
        """Write that the record does not match the tree, and report the next change as failed."""
        self.presence.write_message(f"The record does not match this tree: {reason}. I stop here.")
        kind = next((step.value for step in following if step.name == "commit"), None)
        if kind is not None and kind not in self.changes:
            self.changes[kind] = _change("FAILED", f"The recorded work does not match this tree: {reason}.")

    async def run_test(self, description: str) -> None:
        words = list(self.task.pytest)
        tries = TriesFile(self.presence.state_folder / TRIES_PATH)
        call = self.presence.write_tool_call("Bash", {"command": " ".join(words)}, f"$ pytest {words[-1]}")
        finished = await run_process(
            words, cwd=self.copy / self.task.folder, environment=dict(os.environ), timeout=RUN_TIMEOUT
        )
        output = finished.text + finished.error_text
        self.presence.write_tool_result(call, output, is_shown=True)
        name = f"try_{len(self.runs) + 1}"
        folder = self.copy / OUTPUT_FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pytest.txt").write_text(_ANSI.sub("", output), encoding="utf-8")
        self.runs.append({"run_name": name, "description_markdown": description})
        is_pytest = ("-m", "pytest") in itertools.pairwise(words)
        # Coverage, plugins and a crash also change the exit code of pytest.
        self.verdicts.append(tries.last_verdict() if is_pytest else finished.code == 0)

    async def _edit(self, file: str, old: str, new: str) -> None:
        path = self._inside(file)
        await self._pause(_SECONDS_AN_EDIT)
        if not path.is_file():
            raise MisfitError(f"{file} does not exist")
        text = path.read_text(encoding="utf-8")
        if not old or text.count(old) != 1:
            count = text.count(old) if old else 0
            raise MisfitError(f"{file} contains the text to replace {count} times instead of once")
        call = self.presence.write_tool_call(
            "Edit", {"file_path": file, "old_string": old, "new_string": new}, f"edit {file}"
        )
        path.write_text(text.replace(old, new), encoding="utf-8")
        self.edited.append(file)
        self.presence.write_tool_result(call, "done")

    async def _write(self, file: str, text: str, *, is_kept: bool) -> None:
        path = self._inside(file)
        await self._pause(_SECONDS_AN_EDIT)
        call = self.presence.write_tool_call("Write", {"file_path": file, "content": text}, f"write {file}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if is_kept:
            self.edited.append(file)
        self.presence.write_tool_result(call, "done")

    def _inside(self, file: str) -> Path:
        path = (self.copy / file).resolve()
        if not path.is_relative_to(self.copy.resolve()):
            raise MisfitError(f"{file} is outside of the checkout")
        return path

    async def _commit(self, kind: str, more: Mapping[str, str]) -> None:
        message = f"[{kind}] {more.get('message') or more.get('summary') or self.task.rest}"
        await self.git("add", "--", *self.edited)
        finished = await self.git("commit", "--quiet", "--no-verify", "--message", message, codes=(0, 1))
        self.edited.clear()
        if finished.code == 0:
            self.presence.write_message(f"Committed: {message}")
            earlier = self.changes.get(kind, {}).get("summary_markdown", "")
            self.changes[kind] = _change("SUCCEEDED", f"{earlier} {more.get('summary', '')}".strip())
        else:
            self.presence.write_message("There was nothing to commit.")
            self.changes[kind] = _change("FAILED", "No file had changed, so there was nothing to commit.")

    async def _ask(self, question: str) -> None:
        self.presence.write_message(question)
        self.presence.set_working(False)
        answer = await asyncio.to_thread(sys.stdin.readline)
        self.presence.set_working(True)
        self.presence.write_answer(answer.strip())
        self.presence.write_message(f"Understood: {answer.strip()}")

    async def git(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> Finished:
        """Run git in the copy as the user who started the sweep."""
        name, address = self.task.identity
        identity = ["-c", f"user.name={name}", "-c", f"user.email={address}"] if name else []
        finished = await run_process(
            ["git", *identity, "-c", "commit.gpgSign=false", *arguments],
            cwd=self.copy,
            environment=dict(os.environ) | {"GIT_LITERAL_PATHSPECS": "1"},
        )
        if finished.code not in codes:
            raise MisfitError(f"git {arguments[0]} failed: {finished.error_text.strip()}")
        return finished

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.task.speed)


class TriesFile:
    """New lines that the live plugin writes about the agent's test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = path.stat().st_size if path.is_file() else 0

    def last_verdict(self) -> bool | None:
        """Return whether the test passed the last time; None if pytest did not report a result."""
        if not self._path.is_file():
            return None
        verdict: bool | None = None
        for line in self._path.read_bytes()[self._read :].splitlines():
            fields = json.loads(line)
            if fields.get("kind") in ("start", "finish"):
                verdict = fields.get("passed")
        return verdict


def compose_report(player: RecordPlayer, record: Record | None) -> dict[str, Any]:
    """Return the report: the real results, with the record's claims on top."""
    before, after = player.verdicts[0], player.verdicts[-1]
    found = {True: "The test passes", False: "The test does not pass", None: "The result of the test is unknown"}
    summary = record.summary if record and record.summary else f"{found[after]}. Nothing was changed."
    return {
        "changes": player.changes,
        "errored": False,
        "tests_passing_before": before,
        "tests_passing_after": after,
        "summary_markdown": summary,
        "test_runs": player.runs,
        "escalations": player.escalations,
    } | player.claims


def _change(status: str, summary: str) -> dict[str, str]:
    return {"status": status, "summary_markdown": summary}
