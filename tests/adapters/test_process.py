"""The runner of outside programs, with real processes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process, start_detached
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout
from swarm_tui.model.masking import is_secret_name
from tests.waiting import PATIENCE, eventually


def is_running(process_id: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def test_it_gives_code_and_both_outputs() -> None:
    finished = await run_process(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (finished.code, finished.text, finished.error_text) == (3, "out\n", "err\n")
    assert not finished.is_truncated
    assert finished.seconds > 0


async def test_standard_input_is_empty_unless_given() -> None:
    assert (await run_process(["cat"])).stdout == b""
    assert (await run_process(["cat"], stdin=b"a\x00b" * 100_000)).stdout == b"a\x00b" * 100_000


async def test_unread_input_is_not_an_error() -> None:
    assert (await run_process(["true"], stdin=b"x" * 1_000_000)).code == 0


async def test_output_is_limited() -> None:
    finished = await run_process(["sh", "-c", "head -c 3000000 /dev/zero; echo kept >&2"], output_limit=1000)
    assert (len(finished.stdout), finished.error_text, finished.is_truncated) == (1000, "kept\n", True)


async def test_nothing_is_evaluated_by_a_shell(tmp_path: Path) -> None:
    hostile = f"$(touch {tmp_path}/pwned); `touch {tmp_path}/pwned`"
    assert (await run_process(["printf", "%s", hostile])).text == hostile
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("handler", ["", "trap '' TERM;"], ids=["ends on TERM", "ignores TERM"])
async def test_timeout_stops_process_group(tmp_path: Path, handler: str) -> None:
    note = tmp_path / "child"
    script = f"{handler} sh -c '{handler} echo $$ > {note}; while :; do sleep 0.1; done' & wait; sleep 1000"
    with pytest.raises(ProgramTimeout, match=r"sh -c .* did not exit within 0.5 s"):
        await run_process(["sh", "-c", script], timeout=0.5)
    # On a busy machine the child was perhaps not begun yet.
    await eventually(lambda: not (told := note.exists() and note.read_text()) or not is_running(int(told)), "its end")


async def test_cancelling_ends_the_program(tmp_path: Path) -> None:
    note = tmp_path / "child"
    task = asyncio.create_task(run_process(["sh", "-c", f"echo $$ > {note}.new; mv {note}.new {note}; sleep 60"]))
    await eventually(note.exists, "the child to begin")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not is_running(int(note.read_text())), "the child to end")


async def test_grandchild_with_open_pipe_does_not_block(tmp_path: Path) -> None:
    finished = await run_process(["sh", "-c", f"sleep 1000 & echo $! > {tmp_path}/child; echo done"], timeout=PATIENCE)
    assert finished.text == "done\n"
    grandchild = int((tmp_path / "child").read_text())
    assert is_running(grandchild), "it was not waited for"
    os.kill(grandchild, 9)


async def test_missing_program_has_hint() -> None:
    with pytest.raises(ProgramMissing, match="no-such-program is not installed"):
        await run_process(["no-such-program"])
    with pytest.raises(ProgramMissing, match=r"tmux is not installed .*install tmux"):
        await run_process(["tmux"], environment={"PATH": "/nowhere"})


async def test_file_that_is_not_executable_is_missing(tmp_path: Path) -> None:
    (tmp_path / "mngr").write_text("no program")
    with pytest.raises(ProgramMissing, match="is not executable"):
        await run_process([str(tmp_path / "mngr")])


async def test_missing_folder_is_not_missing_program(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="the folder does not exist any more") as caught:
        await run_process(["true"], cwd=tmp_path / "gone")
    assert not isinstance(caught.value, ProgramMissing)


async def test_argument_with_nul_byte_is_rejected() -> None:
    with pytest.raises(AdapterError, match="NUL byte"):
        await run_process(["echo", "a\x00b"])


def test_scrubbed_environment_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = ["TMUX", "TMUX_PANE", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "GIT_DIR", "ANTHROPIC_API_KEY"]
    dropped += ["MODAL_TOKEN_ID", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD"]
    kept = ["MNGR_HOST_DIR", "PYTHONPATH", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD", "LANG"]
    for name in dropped + kept:
        monkeypatch.setenv(name, "x")
    environment = scrubbed_environment({"MODAL_TOKEN_SECRET": "on purpose"})
    assert not set(dropped) & set(environment)
    assert set(kept) <= set(environment)
    assert environment["MODAL_TOKEN_SECRET"] == "on purpose"


def test_names_similar_to_secrets_are_kept() -> None:
    assert is_secret_name("openai_api_key")
    assert not is_secret_name("MONKEY")
    assert not is_secret_name("TOKENIZERS_PARALLELISM")


async def test_default_environment_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/elsewhere,1,0")
    assert "TMUX=" not in (await run_process(["env"])).text


async def test_detached_program_outlives_its_parent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        "import os; from pathlib import Path; from swarm_tui.adapters.processes.run import start_detached\n"
        f"print(start_detached(['sh', '-c', 'echo up; read x; sleep 60'], cwd=Path('/'), environment=dict(os.environ),"
        f" log=Path({str(log)!r})))"
    )
    finished = await run_process([sys.executable, "-c", script])
    process_id = int(finished.text)
    await eventually(lambda: log.exists() and log.read_text() == "up\n", "its words")
    try:
        assert is_running(process_id)
        assert os.getsid(process_id) == process_id
    finally:
        os.kill(process_id, 9)


async def test_exited_detached_program_leaves_no_zombie(tmp_path: Path) -> None:
    process_id = start_detached(["true"], cwd=tmp_path, environment=scrubbed_environment(), log=tmp_path / "log")
    await eventually(lambda: not Path(f"/proc/{process_id}").exists(), "its end")


def test_missing_detached_program_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing):
        start_detached(["no-such-program"], cwd=tmp_path, environment={"PATH": "/bin"}, log=tmp_path / "log")


async def test_fork_runs_one_function_without_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom swarm_tui.adapters.processes.run import fork_detached\n"
        "def run():\n    print('up', os.getsid(0) == os.getpid(), sys.stdin.read() == '', flush=True)\n    1 / 0\n"
        f"copy = fork_detached(run, log=Path({str(log)!r}))\n"
        "while Path(f'/proc/{copy}').exists(): time.sleep(0.01)\n"
        "print('after', flush=True)\n"
    )
    finished = await run_process([sys.executable, "-c", script], stdin=b"typed")
    assert (finished.text, finished.error_text) == ("after\n", "")
    said = log.read_text().splitlines()
    assert (said[0], said[-1]) == ("up True True", "ZeroDivisionError: division by zero")


async def test_closing_loop_does_not_wait_for_starts() -> None:
    script = (
        "import asyncio\nfrom swarm_tui.adapters.processes.run import run_process\n"
        "async def main():\n    tasks = [asyncio.create_task(run_process(['sleep', '60'])) for _ in range(5)]\n"
        "    for turns in range(3): await asyncio.sleep(0)\n    print('leaving', len(tasks), flush=True)\n"
        "asyncio.run(main())\n"
    )
    finished = await run_process([sys.executable, "-c", script.replace("60", "1000")], timeout=PATIENCE)
    assert (finished.code, finished.text) == (0, "leaving 5\n")


async def test_concurrent_programs_keep_their_outputs() -> None:
    finished = await asyncio.gather(*(run_process(["echo", str(n)], stdin=b"x") for n in range(50)))
    assert [one.text for one in finished] == [f"{n}\n" for n in range(50)]
