"""What the mngr adapter asks and how it reads the answers, with a stand-in program that says what a test wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.mngr_settings import current_settings, mngr_environment
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.errors import AdapterError, ImageBuildFailed, ProgramMissing, UsageError
from swarm_tui.model.spec import MngrSettings


def stand_in(folder: Path, *, stdout: str = "", stderr: str = "", code: int = 0) -> Mngr:
    """Return a adapter to a program that notes how it was called, and answers as told."""
    program = folder / "mngr"
    (folder / "stdout").write_text(stdout)
    (folder / "stderr").write_text(stderr)
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/words\ncat > {folder}/stdin\nenv > {folder}/environment\n'
        f"cat {folder}/stderr >&2\ncat {folder}/stdout\nexit {code}\n"
    )
    program.chmod(0o755)
    return Mngr(str(program), scrubbed_environment(), cwd=folder)


def words_of(folder: Path) -> list[str]:
    return (folder / "words").read_text().splitlines()


async def test_call_is_headless_without_input(tmp_path: Path) -> None:
    await stand_in(tmp_path).plugins()
    assert "MNGR_HEADLESS=1" in (tmp_path / "environment").read_text().splitlines()
    assert (tmp_path / "stdin").read_bytes() == b""


async def test_missing_mngr_has_hint() -> None:
    with pytest.raises(ProgramMissing, match="doctor --fix"):
        await Mngr("/nowhere/mngr", {}).plugins()


async def test_unreachable_provider_is_a_problem_of_the_list(tmp_path: Path) -> None:
    agent = {"id": "agent-1", "name": "a", "state": "RUNNING", "new_key": [1]}
    problem = {"message": "Modal token missing", "provider_name": "modal", "traceback_text": "..."}
    answer = json.dumps({"agents": [agent], "errors": [problem]})
    listing = await stand_in(tmp_path, stdout=answer, stderr="Errors: ...", code=6).list_agents(provider=None)
    assert listing.agents[0].model_extra == {"new_key": [1]}
    assert [(error.provider_name, error.message) for error in listing.errors] == [("modal", "Modal token missing")]
    assert "--provider" not in words_of(tmp_path)


async def test_unreadable_agent_hides_no_others(tmp_path: Path) -> None:
    agents: list[Any] = [{"id": "agent-1", "name": "a"}, {"name": "broken"}, "nonsense", {"id": 5, "name": []}]
    listing = await stand_in(tmp_path, stdout=json.dumps({"agents": agents, "errors": ["odd"]})).list_agents()
    assert [agent.name for agent in listing.agents] == ["a"]
    assert len(listing.errors) == 4
    assert listing.agents[0].state == "UNKNOWN"


async def test_failed_list_has_message_and_hint_of_mngr(tmp_path: Path) -> None:
    stderr = "WARNING: x\nError: \x1b[31mbad\x1b[0m filter  [Fix it with 'mngr help' [or so].]\n"
    with pytest.raises(AdapterError) as caught:
        await stand_in(tmp_path, stderr=stderr, code=1).list_agents()
    assert caught.value.message == "mngr list failed: bad filter"
    assert caught.value.hint == "Fix it with 'mngr help' [or so]."


async def test_traceback_without_error_line_has_exit_code(tmp_path: Path) -> None:
    stderr = "Traceback (most recent call last):\n  ...\nFileNotFoundError: [Errno 2] No such file: 'git'\n"
    with pytest.raises(AdapterError, match="No such file: 'git'"):
        await stand_in(tmp_path, stderr=stderr, code=1).list_agents()
    with pytest.raises(AdapterError, match="exit code 9"):
        await stand_in(tmp_path, code=9).list_agents()


LEGACY_BUILD: Final = """\
imbue.concurrency_group.errors.ProcessError: Command failed with non-zero exit code 3. command=`docker build -t x /f`
output:
Sending build context to Docker daemon  2.048kB
Step 1/2 : FROM debian:bookworm-slim
 ---> 9156427afe33
Step 2/2 : RUN make
 ---> Running in 9e4be980e651
\x1b[91mmake: not found
\x1b[0m
DEPRECATED: The legacy builder is deprecated and will be removed in a future release.
            Install the buildx component to build images with BuildKit:
            https://docs.docker.com/go/buildx/

The command '/bin/sh -c make' returned a non-zero code: 3
"""


async def test_failed_build_of_image_has_reason_of_docker(tmp_path: Path) -> None:
    request = CreateRequest(name="a", source=tmp_path, command=("true",))
    with pytest.raises(ImageBuildFailed) as caught:
        await stand_in(tmp_path, stderr=LEGACY_BUILD, code=1).create(request)
    reason = "make: not found | The command '/bin/sh -c make' returned a non-zero code: 3"
    assert caught.value.message == f"the image of the hosts cannot be built: {reason}"


async def test_message_behind_dialog_is_blocked(tmp_path: Path) -> None:
    blocked = [{"agent": "b", "error": "a dialog is open"}]
    answer = json.dumps({"successful_agents": ["a"], "failed_agents": [], "blocked_agents": blocked})
    report = await stand_in(tmp_path, stdout=answer, code=7).message(["a", "b"], "-m $(text)\nmore")
    assert (report.sent, [failure.agent for failure in report.blocked]) == (("a",), ["b"])
    assert (tmp_path / "stdin").read_text() == "-m $(text)\nmore", "a message is never on the command line"
    assert words_of(tmp_path)[:2] == ["message", "--no-start"], "whatever a person's settings say"


async def test_failed_cleanup_is_reported_for_its_agent(tmp_path: Path) -> None:
    failure = {"category": "PROCESSES_REMAIN", "message": "still there", "agent_name": "b", "host_id": None}
    answer = json.dumps({"stopped_agents": ["a"], "failures": [failure], "exit_code": 3})
    report = await stand_in(tmp_path, stdout=answer, code=3).stop(["a", "b", "c"])
    assert report.done == ("a",)
    assert {failure.agent: failure.error for failure in report.failed} == {
        "b": "still there",
        "c": "mngr reported nothing about it",
    }


async def test_unknown_names_need_no_second_call(tmp_path: Path) -> None:
    stderr = "WARNING: Agent lookup failed for a; discovery returned: nothing\nError: Agent not found\n"
    assert (await stand_in(tmp_path, stderr=stderr, code=1).stop(["a", "a"])).missing == ("a",)
    (tmp_path / "words").unlink()
    assert (await stand_in(tmp_path).stop([])).done == ()
    assert not (tmp_path / "words").exists()


async def test_several_unknown_names_are_missing(tmp_path: Path) -> None:
    stderr = "WARNING: Agent lookup failed for a, b; discovery returned: nothing\nError: Agent not found\n"
    assert (await stand_in(tmp_path, stderr=stderr, code=1).stop(["b", "a"])).missing == ("b", "a")


async def test_failure_for_all_is_raised(tmp_path: Path) -> None:
    for call in ("stop", "start", "destroy"):
        with pytest.raises(AdapterError, match="host is locked"):
            await getattr(stand_in(tmp_path, stderr="Error: host is locked\n", code=1), call)(["a"])
    with pytest.raises(AdapterError, match="host is locked"):
        await stand_in(tmp_path, stderr="Error: host is locked\n", code=1).message(["a"], "x")


async def test_answer_without_json_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="unexpected answer of mngr create"):
        await stand_in(tmp_path, stdout="{broken\n[]\nhello").create(CreateRequest(name="a", source=tmp_path))


async def test_create_passes_whole_request_as_arguments(tmp_path: Path) -> None:
    request = CreateRequest(
        name="swarm-1-a",
        source=tmp_path,
        command=("/bin/agent", "--flag", "$(x)"),
        base="1234abc",
        branch="swarm/1/a",
        labels={"test": "--evil $(x)\nline"},
        message="--evil",
        environment={"SWARM_DIR": "/a b/ä", "EMPTY": ""},
        passed_environment=("ANTHROPIC_API_KEY",),
        is_approved=True,
    )
    await stand_in(tmp_path, stdout='{"agent_id": "agent-1"}').create(request)
    words = words_of(tmp_path)
    assert words[:6] == ["create", "swarm-1-a", "--type", "command", "--no-connect", "--format"]
    assert words[words.index("--branch") + 1] == "1234abc:swarm/1/a"
    assert words[words.index("--label") + 1] == "test=--evil $(x)"
    assert "--message=--evil" in words
    assert words[words.index("--pass-env") + 1] == "ANTHROPIC_API_KEY"
    assert words[-4:] == ["--", "/bin/agent", "--flag", "$(x)"]
    assert "--yes" in words
    assert "--env" in words


def test_remote_agent_has_host_and_provider_in_address(tmp_path: Path) -> None:
    assert CreateRequest(name="a", source=tmp_path, provider="modal").address == "a@.modal"
    assert CreateRequest(name="a", source=tmp_path, provider="pool", host="box").address == "a@box.pool"
    with pytest.raises(UsageError):
        _ = CreateRequest(name="a", source=tmp_path, provider="modal --yes").address


@given(st.text(min_size=1).filter(lambda text: any(c in text for c in "$`\\\"'\n;&|<>(){}[]*?!#~\0")))
def test_variable_with_special_character_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="a shell would evaluate the value"):
        CreateRequest(name="a", source=Path("/"), environment={"NAME": value})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "-f"},
        {"name": "a.b"},
        {"labels": {"-k": "v"}},
        {"labels": {"a=b": "v"}},
        {"environment": {"A B": "v"}},
        {"environment": {"LD_PRELOAD=x": "v"}},
        {"passed_environment": ("$(x)",)},
        {"branch": "-b"},
        {"branch": "a:b"},
        {"base": "a b"},
    ],
)
def test_request_with_hostile_word_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        CreateRequest.model_validate({"name": "a", "source": tmp_path} | changes)


def test_settings_keep_folders_for_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = current_settings("/bin/mngr", {"HOME": "/h", "MNGR_ROOT_NAME": "lab"})
    assert (settings.host_dir, settings.prefix, settings.tmux_tmpdir) == ("/h/.lab", "lab-", None)
    for name in ("TMUX_TMPDIR", "MNGR_HOST_DIR", "MNGR_PREFIX", "MNGR_ROOT_NAME", "TMUX"):
        monkeypatch.setenv(name, "elsewhere")
    environment = mngr_environment(settings, {"EXTRA": "1"})
    assert environment["MNGR_HOST_DIR"] == "/h/.lab"
    assert environment["MNGR_PREFIX"] == "lab-"
    assert environment["HOME"] == "/h"
    assert environment["EXTRA"] == "1"
    assert not {"TMUX_TMPDIR", "MNGR_ROOT_NAME", "TMUX"} & set(environment)
    assert mngr_environment(MngrSettings(path="m", tmux_tmpdir="/t"))["TMUX_TMPDIR"] == "/t"


async def test_python_exception_is_reported_by_name(tmp_path: Path) -> None:
    stderr = (
        "  + Exception Group Traceback (most recent call last):\n"
        "  | ExceptionGroup: Errors (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | PermissionError: [Errno 13] Permission denied: '/home/ann/.claude.json.lock'\n"
        "    +------------------------------------\n"
    )
    with pytest.raises(AdapterError, match=r"list failed: PermissionError: .*'/home/ann/.claude.json.lock'"):
        await stand_in(tmp_path, stderr=stderr, code=1).list_agents()


async def test_group_of_exceptions_reports_the_innermost(tmp_path: Path) -> None:
    stderr = (
        "  + Exception Group Traceback (most recent call last):\n"
        "  |     raise ConcurrencyExceptionGroup(\n"
        "  | imbue.groups.ConcurrencyExceptionGroup: Failed to push (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        "    |     raise MngrError(f'Failed to push: {output}')\n"
        "    | imbue.mngr.errors.MngrError: Failed to push git repo on same host: To /copies/a/.git\n"
        " ! [remote rejected] master -> master (shallow update not allowed)\n"
        "error: failed to push some refs to '/copies/a/.git'\n"
        "    +------------------------------------\n"
    )
    with pytest.raises(AdapterError, match=r"list failed: Failed to push git repo .*shallow update not allowed"):
        await stand_in(tmp_path, stderr=stderr, code=1).list_agents()
