"""Call mngr: one process for each call, with a time limit and JSON output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import ValidationError

from swarm_tui.adapters.mngr_messages import (
    ActionReport,
    AgentDetails,
    AgentFailure,
    AgentListing,
    Created,
    CreateRequest,
    ListProblem,
    MessageReport,
    Plugin,
    checked_address,
    checked_host,
)
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.adapters.pytest import read_failure
from swarm_tui.errors import AdapterError, AgentExists, ImageBuildFailed
from swarm_tui.model.text import plain, plain_lines

CREATE_TIMEOUT: Final = 600.0
CALL_TIMEOUT: Final = 120.0

_OK, _ERROR, _TIMEOUT_OR_USAGE, _PROVIDER_INACCESSIBLE, _BLOCKED = 0, 1, 2, 6, 7
_UNKNOWN_AGENTS: Final = re.compile(r"Agent lookup failed for (.+?); discovery returned")
_HOST_STAYS: Final = "does not support destroying hosts"
_EXISTS: Final = re.compile(r"An agent named .* already exists")
_ERROR_LINE: Final = re.compile(r"^Error: (.*)$", re.MULTILINE)
# The last line of a traceback. In a group of exceptions, it is framed and followed by a line of dashes.
_EXCEPTION_LINE: Final = re.compile(
    r"^[ |]*(?:\w+\.)+\w*(?:Error|Exception|Exists|Failed): (.*(?:\n ! .*)*)$", re.MULTILINE
)
_BUILTIN_EXCEPTION_LINE: Final = re.compile(r"^[ |]*(\w+Error: .*)$", re.MULTILINE)
# The output of a failed build of an image follows the command.
_BUILD_OUTPUT: Final = re.compile(r"command=`(?:docker|depot) build .*?`\noutput:\n(.*)", re.DOTALL)
_NO_REASON: Final = re.compile(
    r"DEPRECATED|Install the buildx|https://docs\.docker\.com/go/buildx|-+$|\s*--->|Step \d|Sending build context"
)
_REMEDY: Final = re.compile(r"\s*\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]\s*$")


class MngrAdapter(Protocol):
    """The commands of mngr that swarm-tui uses."""

    async def plugins(self) -> tuple[Plugin, ...]: ...

    async def create(self, request: CreateRequest, timeout: float = CREATE_TIMEOUT) -> Created:
        """Create an agent; raise AgentExists if its name is already used."""

    async def list_agents(self, provider: str | None = "local") -> AgentListing:
        """Return the agents of a provider; with None, those of all providers."""

    async def stop(self, names: Sequence[str]) -> ActionReport: ...

    async def start(self, names: Sequence[str]) -> ActionReport: ...

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport: ...

    async def destroy_host(self, name: str, provider: str) -> None:
        """Destroy a host with everything on it. Do nothing if there is no such host."""

    async def message(self, names: Sequence[str], text: str) -> MessageReport: ...

    async def set_config(self, key: str, value: str) -> None:
        """Write a value into the user's settings of mngr."""

    def connect_command(self, name: str) -> list[str]:
        """Return a command that attaches this terminal to the agent's."""


class Mngr:
    """The real mngr at a path. All calls have the same environment."""

    def __init__(self, path: str, environment: Mapping[str, str], cwd: Path | None = None) -> None:
        self.path = path
        self.environment = dict(environment) | {"MNGR_HEADLESS": "1"}
        self._cwd = cwd

    async def plugins(self) -> tuple[Plugin, ...]:
        answer = _parse_answer(_checked(await self._call(["plugin", "list", "--format", "json"])))
        return tuple(Plugin.model_validate(plugin) for plugin in answer.get("plugins", ()))

    async def create(self, request: CreateRequest, timeout: float = CREATE_TIMEOUT) -> Created:
        given = passed_variables(request.passed_environment)
        words = ["create", *request.arguments()]
        finished = await self._call(words, cwd=request.source, timeout=timeout, more=given)
        if finished.code != _OK and _EXISTS.search(finished.error_text):
            raise AgentExists(f"an agent named {request.name} exists already", "adopt it or destroy it")
        if finished.code != _OK and (built := _BUILD_OUTPUT.search(plain_lines(finished.error_text))) is not None:
            lines = [line.strip() for line in built.group(1).splitlines() if line.strip()]
            reason = " | ".join([line for line in lines if not _NO_REASON.match(line)][-3:])
            raise ImageBuildFailed(
                f"the image of the hosts cannot be built: {plain(reason, 500)}", "correct the Dockerfile or --build-arg"
            )
        if finished.code != _OK and (failure := read_failure(finished.error_text)) is not None:
            raise failure
        return _parse_created(_checked(finished))

    async def list_agents(
        self, provider: str | None = "local", include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> AgentListing:
        """Return the agents of a provider. `include` and `exclude` are conditions in CEL."""
        words = ["list", "--format", "json"]
        words += ["--provider", provider] if provider is not None else []
        words += [f"--include={condition}" for condition in include]
        words += [f"--exclude={condition}" for condition in exclude]
        finished = await self._call(words)
        return _parse_listing(_parse_answer(_checked(finished, allowed=(_OK, _PROVIDER_INACCESSIBLE))))

    async def stop(self, names: Sequence[str]) -> ActionReport:
        return await self._change_agents(["stop"], names, "stopped_agents")

    async def start(self, names: Sequence[str]) -> ActionReport:
        return await self._change_agents(["start"], names, "started_agents")

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport:
        words = ["destroy", "--force", *(["--remove-created-branch"] if is_branch_deleted else [])]
        try:
            return await self._change_agents(words, names, "destroyed_agents")
        except AdapterError as error:
            if _HOST_STAYS not in error.message:
                raise
        # mngr then cleans up all providers, which fails for an ssh host that has been empty for a while.
        report = await self._change_agents([*words, "--no-gc"], names, "destroyed_agents")
        _checked(await self._call(["gc", "--provider", "local"]))
        return report

    async def destroy_host(self, name: str, provider: str) -> None:
        words = ["destroy", "--force", checked_host(name, provider), "--format", "json"]
        finished = _checked(await self._call(words, timeout=CREATE_TIMEOUT))
        failed = _failures(_parse_answer(finished).get("failures", ()))
        if failed:
            raise AdapterError(f"mngr cannot destroy the host {name}: {failed[0].error}")

    async def message(self, names: Sequence[str], text: str) -> MessageReport:
        # By default, depending on the user's settings, mngr restarts a stopped agent.
        finished, answer, missing = await self._call_for_agents(["message", "--no-start"], names, stdin=text.encode())
        _checked(finished, allowed=(_OK, _BLOCKED) if not answer else (_OK, _ERROR, _BLOCKED))
        return MessageReport(
            sent=tuple(answer.get("successful_agents", ())),
            failed=_failures(answer.get("failed_agents", ())),
            blocked=_failures(answer.get("blocked_agents", ())),
            missing=missing,
        )

    async def set_config(self, key: str, value: str) -> None:
        _checked(await self._call(["config", "set", "--scope", "user", key, value]))

    def connect_command(self, name: str) -> list[str]:
        return [self.path, "connect", checked_address(name)]

    async def _change_agents(self, words: list[str], names: Sequence[str], done_key: str) -> ActionReport:
        """Run a command that changes agents. Every name is in the report."""
        finished, answer, missing = await self._call_for_agents(words, names)
        if not answer:
            _checked(finished)
        done = tuple(answer.get(done_key, ()))
        failed = {failure.agent: failure for failure in _failures(answer.get("failures", ()))}
        for name in names:
            if name.partition("@")[0] not in done and name not in failed and name not in missing:
                failed[name] = AgentFailure(agent=name, error="mngr reported nothing about it")
        return ActionReport(done=done, failed=tuple(failed.values()), missing=missing)

    async def _call_for_agents(
        self, words: list[str], names: Sequence[str], *, stdin: bytes | None = None
    ) -> tuple[Finished, dict[str, Any], tuple[str, ...]]:
        """Call mngr for agents; return the call, its answer and the unknown names.

        If one name is unknown, mngr does nothing for the others, so call it again without the unknown names.
        """
        known = [checked_address(name) for name in dict.fromkeys(names)]
        missing: list[str] = []
        while known:
            finished = await self._call([*words, *known, "--format", "json"], stdin=stdin)
            named = {name for found in _UNKNOWN_AGENTS.findall(finished.error_text) for name in found.split(", ")}
            unknown = [name for name in known if name.partition("@")[0] in named]
            if not unknown:
                return finished, _parse_answer(finished), tuple(missing)
            missing += unknown
            known = [name for name in known if name not in unknown]
        return Finished(tuple(words), _OK, b"", b"", 0.0, False), {}, tuple(missing)

    async def _call(
        self,
        words: list[str],
        *,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        timeout: float = CALL_TIMEOUT,
        more: Mapping[str, str] | None = None,
    ) -> Finished:
        environment = self.environment | dict(more or {})
        return await run_process(
            [self.path, *words], cwd=cwd or self._cwd, environment=environment, stdin=stdin, timeout=timeout
        )


def _checked(finished: Finished, allowed: Sequence[int] = (_OK,)) -> Finished:
    """Return a call with an allowed exit code; otherwise raise the error message of mngr."""
    if finished.code in allowed:
        return finished
    errors = _ERROR_LINE.findall(plain_lines(finished.error_text))
    lines = plain_lines(finished.error_text).strip().splitlines()
    text = "\n".join(lines)
    exceptions = _EXCEPTION_LINE.findall(text) or _BUILTIN_EXCEPTION_LINE.findall(text)
    found = errors or exceptions or lines or [f"exit code {finished.code}"]
    remedy = _REMEDY.search(found[-1])
    message = _REMEDY.sub("", found[-1])
    verb = finished.arguments[1] if len(finished.arguments) > 1 else ""
    raise AdapterError(f"mngr {verb} failed: {plain(message, 600)}", plain(remedy.group(1), 300) if remedy else "")


def _parse_answer(finished: Finished) -> dict[str, Any]:
    """Return the last JSON object of the output; {} if there is none."""
    for line in reversed(finished.text.splitlines()):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict):
                return answer
    return {}


def _parse_created(finished: Finished) -> Created:
    try:
        return Created.model_validate(_parse_answer(finished))
    except ValidationError as error:
        said = plain(finished.text, 300)
        raise AdapterError(f"unexpected answer of mngr create: {said!r}") from error


def _parse_listing(answer: dict[str, Any]) -> AgentListing:
    """Parse a listing agent by agent. Each unreadable agent becomes a problem of the listing."""
    agents, problems = [], []
    for agent in answer.get("agents", ()):
        try:
            agents.append(AgentDetails.model_validate(agent))
        except ValidationError as error:
            name = agent.get("name") if isinstance(agent, dict) else agent
            problems.append(ListProblem(message=f"the agent {name!r} is unreadable: {error.errors()[0]['msg']}"))
    for problem in answer.get("errors", ()):
        known = {"message": "unknown problem"} | (problem if isinstance(problem, dict) else {"message": str(problem)})
        problems.append(ListProblem.model_validate(known))
    return AgentListing(agents=tuple(agents), errors=tuple(problems))


def _failures(found: Sequence[dict[str, Any]]) -> tuple[AgentFailure, ...]:
    """Parse failures. Depending on the command, their keys are agent and error, or agent_name and message."""
    return tuple(
        AgentFailure(
            agent=str(failure.get("agent") or failure.get("agent_name") or "?"),
            error=plain(str(failure.get("error") or failure.get("message") or failure.get("reason") or failure)),
        )
        for failure in found
    )
