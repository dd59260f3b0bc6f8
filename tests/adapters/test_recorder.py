"""Recordings of terminals: by our own recorder over a real pty, by asciinema when it is there, and of a tmux pane."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from swarm_tui.adapters import recorder
from swarm_tui.adapters.cast_writer import CastWriter
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.errors import AdapterError, ProgramMissing, SwarmError
from swarm_tui.report.details import read_recording
from tests.waiting import PATIENCE, eventually

RECORD = """
import os, sys
from pathlib import Path
from swarm_tui.adapters import recorder
sys.exit(getattr(recorder, sys.argv[1])(sys.argv[3:], Path(sys.argv[2]), environment=dict(os.environ), title="a title"))
"""


def start(how: str, cast: Path, *words: str, environment: dict[str, str] | None = None) -> pexpect.spawn[str]:
    """Start recording a program in a terminal of 70x12."""
    child = pexpect.spawn(
        sys.executable,
        ["-c", RECORD, how, str(cast), *words],
        dimensions=(12, 70),
        encoding="utf-8",
        timeout=PATIENCE,
        env=scrubbed_environment(environment or {}),
    )
    child.delaybeforesend = None
    return child


def ended(child: pexpect.spawn[str]) -> int:
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None
    return child.exitstatus


def events_of(cast: Path, kind: str = "o") -> list[str]:
    return [event[2] for event in map(json.loads, cast.read_text().splitlines()[1:]) if event[1] == kind]


def header_of(cast: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(cast.read_text().splitlines()[0])
    return header


def test_recording_keeps_output_and_exit_code(tmp_path: Path) -> None:
    cast = tmp_path / "new" / "a.cast"
    child = start("record_on_pty", cast, "sh", "-c", "printf 'h\\303\\251llo\\n'; stty size; exit 7")
    child.expect("héllo")
    assert ended(child) == 7
    header = header_of(cast)
    assert (header["version"], header["width"], header["height"], header["title"]) == (2, 70, 12, "a title")
    assert "".join(events_of(cast)) == "héllo\r\n12 70\r\n"
    assert read_recording(cast).note == ""


def test_program_gets_keys_and_interrupts(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    child = start(
        "record_on_pty", cast, "sh", "-c", "trap 'echo caught' INT; echo ready; read word; read word; echo $word"
    )
    child.expect("ready")
    child.send("\x03")
    child.expect("caught")
    child.send("again\r")
    child.expect("again")
    assert ended(child) == 0
    assert "caught" in "".join(events_of(cast))


def test_resize_is_recorded(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    code = "trap 'stty size' WINCH; echo ready; until [ -e done ]; do sleep 0.05; done"
    child = start("record_on_pty", cast, "sh", "-c", f"cd '{tmp_path}'; {code}")
    child.expect("ready")
    child.setwinsize(33, 99)
    child.expect("33 99")
    (tmp_path / "done").touch()
    assert ended(child) == 0
    assert events_of(cast, "r") == ["99x33"]


def test_killed_recorder_leaves_playable_recording(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    child = start("record_on_pty", cast, "sh", "-c", "echo begun; cat")
    child.expect("begun")
    child.kill(9)
    child.close()
    assert "begun" in read_recording(cast).text


def test_split_character_is_recorded_whole(tmp_path: Path) -> None:
    writer = CastWriter.begin(tmp_path / "a.cast", 80, 24)
    for byte in "é漢".encode():
        writer.output(bytes([byte]))
    writer.close()
    assert events_of(tmp_path / "a.cast") == ["é", "漢"]


def fake_asciinema(folder: Path, version: str) -> Path:
    """Write a program that behaves as asciinema of that version does, as far as we call it."""
    folder.mkdir()
    program = folder / "asciinema"
    program.write_text(
        f"""#!{sys.executable}
import json, subprocess, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("asciinema {version}"))
words = sys.argv[1:]
assert words[0] == "rec"
assert ("--output-format" in words) == ({version!r}[0] == "3")
command, cast = words[words.index("--command") + 1], words[-1]
done = subprocess.run(["sh", "-c", command])
with open(cast, "w") as file:
    file.write(json.dumps({{"version": 2, "width": 70, "height": 12}}) + "\\n" + json.dumps([0, "o", "seen"]) + "\\n")
"""
    )
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["2.2.0", "3.0.1"])
def test_asciinema_keeps_exit_code_of_program(version: str, tmp_path: Path) -> None:
    path = f"{fake_asciinema(tmp_path / 'bin', version)}{os.pathsep}{os.environ['PATH']}"
    cast = tmp_path / "a b.cast"
    child = start("record_program", cast, "sh", "-c", "echo 'it'\"'\"'s here'; exit 3", environment={"PATH": path})
    child.expect("it's here")
    assert ended(child) == 3
    assert events_of(cast) == ["seen"]


def test_recorder_works_without_terminal(tmp_path: Path) -> None:
    cast = tmp_path / "a.cast"
    code = asyncio.run(
        run_process([sys.executable, "-c", RECORD, "record_program", str(cast), "sh", "-c", "stty size; exit 5"])
    ).code
    assert code == 5
    assert events_of(cast) == ["24 80\r\n"]


def test_failed_recording_has_reason(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="no-such-program is not installed"):
        recorder.record_program(["no-such-program"], tmp_path / "a.cast")
    (tmp_path / "there.cast").write_text("mine")
    with pytest.raises(SwarmError, match="exists already"):
        recorder.record_program(["true"], tmp_path / "there.cast")
    with pytest.raises(AdapterError, match="cannot record"):
        recorder.record_program(["true"], tmp_path / "there.cast" / "b.cast")
    assert (tmp_path / "there.cast").read_text() == "mine"


@pytest.fixture
async def tmux() -> AsyncIterator[Tmux]:
    folder = Path(tempfile.mkdtemp(prefix="sw"))
    adapter = Tmux(scrubbed_environment({"TMUX_TMPDIR": str(folder), "LANG": "C.UTF-8"}))
    yield adapter
    await adapter.kill_server()
    shutil.rmtree(folder, ignore_errors=True)


async def test_pane_is_recorded_until_it_closes(tmux: Tmux, tmp_path: Path) -> None:
    words = ["new-session", "-d", "-s", "mngr-a", "-n", "agent", "-x", "66", "-y", "9", "echo before; exec cat"]
    assert (await run_process(["tmux", "-f", "/dev/null", *words], environment=tmux.environment)).code == 0
    cast = tmp_path / "it's #1 100%" / "a.cast"

    async def has_begun() -> bool:
        return "before" in str((await tmux.capture(["mngr-a"]))["mngr-a"])

    await eventually(has_begun, "its first words")
    await recorder.record_pane(tmux, "mngr-a", cast)
    keys = ["tmux", "send-keys", "-t", "=mngr-a:agent", "later", "Enter"]
    assert (await run_process(keys, environment=tmux.environment)).code == 0
    await eventually(lambda: "later" in cast.read_text(), "the word in the recording")
    header = header_of(cast)
    assert (header["width"], header["height"]) == (66, 9)
    assert events_of(cast)[0].startswith("before")
    assert read_recording(cast).note == ""


async def test_agent_without_pane_is_not_recorded(tmux: Tmux, tmp_path: Path) -> None:
    words = ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "mngr-b", "-n", "other", "cat"]
    assert (await run_process(words, environment=tmux.environment)).code == 0
    with pytest.raises(AdapterError, match="no pane to record: mngr-b"):
        await recorder.record_pane(tmux, "mngr-b", tmp_path / "a.cast")
    assert not (tmp_path / "a.cast").exists()
