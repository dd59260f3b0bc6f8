"""The command line as a whole: quick to answer, consistent, and clear when it is misused."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import cast

import pexpect
import pytest

from swarm_tui import __version__
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.cli.main import (
    COMMAND_BY_NAME,
    COMMANDS,
    CommandModule,
    as_called,
    build_parser,
    run_command_line,
    subcommands,
)
from swarm_tui.journal.folder import runs_folder
from swarm_tui.room.splash import ENTER
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import PATIENCE

HEAVIEST = {"textual", "rich", "git", "pexpect", "jinja2", "pytest", "pydantic"}
HEAVY = sorted(HEAVIEST | {"asyncio"})
NAMES = [command.name for command in COMMANDS]


async def modules_after(words: list[str]) -> set[str]:
    """Return the heavy modules that a command line imports, in a Python of its own."""
    script = (
        "import io, json, sys\nfrom contextlib import redirect_stdout\n"
        "from swarm_tui.cli.main import run_command_line\n"
        "with redirect_stdout(io.StringIO()):\n    code = run_command_line(json.loads(sys.argv[1]))\n"
        "print(json.dumps([code, [name for name in json.loads(sys.argv[2]) if name in sys.modules]]))"
    )
    finished = await run_process([sys.executable, "-c", script, json.dumps(words), json.dumps(HEAVY)])
    assert finished.code == 0, finished.error_text
    code, heavy = json.loads(finished.text)
    assert code == 0
    return set(heavy)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["-h"], ["help"], ["-V"]], ids=" ".join)
async def test_version_and_help_import_nothing_heavy(words: list[str]) -> None:
    assert await modules_after(words) == set()


async def test_the_first_frame_of_a_room_waits_for_nothing_that_is_of_use_later() -> None:
    script = (
        "import sys, swarm_tui.room.entry, swarm_tui.room.grid.screen\n"
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    late = ["git", "tarfile", *(f"swarm_tui.{name}" for name in ("adapters.git", "adapters.mngr", "review", "sweep"))]
    finished = await run_process([sys.executable, "-c", script, *late])
    assert finished.text == "[]\n", finished.error_text


def test_a_plugin_of_mngr_calls_itself_as_it_was_called() -> None:
    said = "swarm-tui: `swarm-tui doctor --fix` and `swarm-tui`; swarm-tui is under swarm-tui/runs, swarm-tui runs"
    assert as_called(said, "mngr swarm") == (
        "mngr swarm: `mngr swarm doctor --fix` and `mngr swarm`; swarm-tui is under swarm-tui/runs, swarm-tui runs"
    )
    assert as_called(said) == said


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: swarm-tui {name}")
    assert f"swarm-tui {name}" in text.partition("examples:")[2], "an example calls the command"


def test_every_command_of_a_command_has_examples_too(capsys: pytest.CaptureFixture[str]) -> None:
    for name in NAMES:
        module = cast(CommandModule, importlib.import_module(COMMAND_BY_NAME[name].module))
        for verb in subcommands(build_parser(name, module)):
            assert run_command_line([name, verb, "--help"]) == 0
            assert f"  swarm-tui {name} {verb}" in capsys.readouterr().out.partition("examples:")[2]


async def test_the_help_of_no_command_imports_what_only_its_work_needs() -> None:
    imported = [await modules_after([name, "--help"]) & HEAVIEST for name in NAMES]
    assert dict(zip(NAMES, imported, strict=True)) == {name: set() for name in NAMES}


@pytest.mark.parametrize("words", ["open", "open 2026", "fixes", "fixes --base main", "watch", "simulate"])
def test_the_first_frame_of_the_room_waits_for_nothing_heavy(words: str, tmp_path: Path) -> None:
    if words != "open":
        sweep = runs_folder(tmp_path) / "20261118-061200"
        sweep.mkdir(parents=True)
        (sweep / "sweep.json").touch()
    command = ["-X", "importtime", "-m", "swarm_tui", *words.split()]
    room = pexpect.spawn(sys.executable, command, cwd=str(tmp_path), encoding="utf-8", timeout=PATIENCE)
    room.expect_exact(ENTER)
    imported = set(re.findall(r"\| +([\w.]+)\r\n", room.before or ""))
    room.kill(signal.SIGTERM)
    room.expect(pexpect.EOF)
    room.wait()
    assert "swarm_tui.room.splash" in imported
    assert imported & set(HEAVY) == set()


def test_overview_names_commands_of_users(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert (f"  {command.name} " in text) == bool(command.group)
        assert (command.summary in text) == bool(command.group)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out == f"swarm-tui {__version__}\n"


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (["docter"], "unknown command: 'docter'", "did you mean `swarm-tui doctor`?"),
        (["doctor", "--nonsense"], "unrecognized arguments: --nonsense", "run `swarm-tui doctor --help`"),
        (
            ["run", "-k", "share"],
            "unrecognized arguments: -k",
            "run `swarm-tui run --help`; give options of pytest after --",
        ),
        (["run", "--slots", "many"], "argument --slots: invalid int value: 'many'", "run `swarm-tui run --help`"),
        (["run", "--timeout", "soon"], "argument --timeout: invalid duration: 'soon'", "use 90s, 30m or 2h"),
        (
            ["tutorial", "blocks"],
            "the following arguments are required: FILE",
            "run `swarm-tui tutorial blocks --help`",
        ),
        (["completion"], "the following arguments are required: shell", "run `swarm-tui completion --help`"),
        (["run", "--breaker", "8"], "--breaker was renamed", "use --hold-similar"),
        (["run", "--breaker=8"], "--breaker was renamed", "use --hold-similar"),
        (["run", "--alone", "a*", "--slots", "2"], "--alone was renamed", "use --serial"),
        (["run", "--no-teeth"], "--no-teeth was renamed", "use --no-strength"),
        (["run", "--no-trial", "--", "-q"], "--no-trial was renamed", "use --no-preflight"),
        (["fixes", "--teeth"], "--teeth was renamed", "use --strength"),
        (["tutorial", "fill", "a.sh", "--own-home"], "--own-home was renamed", "use --empty-home"),
        (["request", "release", "--alike", "db"], "--alike was renamed", "use --pattern"),
        (["status", "--alike"], "unrecognized arguments: --alike", "run `swarm-tui status --help`"),
        (
            ["request", "retry"],
            "`retry` requires at least one test",
            "for example `swarm-tui request retry test_login`",
        ),
        (["20261118"], "unknown command: '20261118'", "to open this sweep, run `swarm-tui open 20261118`"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_usage_error_prints_problem_and_hint(
    words: list[str], problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"swarm-tui: {problem}\nhint: {hint}\n"


def test_failure_prints_problem_and_hint_without_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SWARM_MNGR", str(tmp_path / "no-mngr"))
    assert run_command_line(["doctor", "--fix"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"swarm-tui: SWARM_MNGR is not a program: {tmp_path}/no-mngr\nhint: ")
    assert "Traceback" not in captured.err


async def test_a_reader_that_leaves_early_is_no_traceback() -> None:
    script = f"{sys.executable} -m swarm_tui --help | true; exit ${{PIPESTATUS[0]}}"
    finished = await run_process(["bash", "-c", script], environment=dict(os.environ))
    assert "Traceback" not in finished.error_text


@pytest.mark.parametrize("words", [["list"], ["--help"], ["doctor", "--nonsense"]], ids=" ".join)
async def test_what_cannot_be_written_is_one_sentence(words: list[str], tmp_path: Path) -> None:
    script = f"{sys.executable} -m swarm_tui {' '.join(words)} > /dev/full 2> {tmp_path}/told"
    finished = await run_process(["bash", "-c", script], environment=dict(os.environ), cwd=tmp_path)
    is_misuse = "--nonsense" in words
    assert finished.code == (2 if is_misuse else 1)
    told = (tmp_path / "told").read_text()
    assert told.startswith("swarm-tui: ")
    assert [line for line in told.splitlines()[1:] if not line.startswith("hint: ")] == []
    assert is_misuse or "No space left on device" in told


async def test_too_few_open_files_are_said_with_the_way_out(tmp_path: Path) -> None:
    """Git was said not to be installed."""
    words = f"ulimit -n 8; exec {sys.executable} -m swarm_tui fixes --base HEAD --list"
    finished = await run_process(["sh", "-c", words], cwd=tmp_path)
    assert finished.code == 1
    assert "open files" in finished.error_text
    assert "ulimit -n 1024" in finished.error_text
    assert "not installed" not in finished.error_text


async def test_a_folder_that_is_gone_is_said_with_the_way_out(tmp_path: Path) -> None:
    words = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -P -m swarm_tui status"
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = await run_process(["sh", "-c", words], cwd=tmp_path, environment=environment)
    assert finished.code == 1
    assert finished.error_text == "swarm-tui: the current folder no longer exists\nhint: `cd` to another folder\n"


async def test_without_utf_8_the_signs_are_those_of_ascii_and_differ(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "from swarm_tui.cli.main import run_command_line as r; r(['list']); print('✓✗◐…ß')"]
    environment = dict(os.environ) | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2])}
    assert (await run_process(words, cwd=tmp_path, environment=environment)).text.splitlines()[-1] == "vxo...?"


async def test_a_disk_without_locks_is_said_with_the_way_out(tmp_path: Path) -> None:
    """What the kernel says there, said by an audit hook at the same place."""
    scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr")).folder.lock.touch()
    refusing = (
        "import errno, os, sys\n"
        "def refuse(event, words):\n"
        "    if event == 'fcntl.flock': raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))\n"
        "sys.addaudithook(refuse)\n"
        "from swarm_tui.cli.main import run_command_line\n"
        "sys.exit(run_command_line(sys.argv[1:]))\n"
    )
    message = (
        "cannot be locked: No locks available\nhint: some network file systems do not support locks; use a local disk"
    )
    for command, code in (("status", 0), ("stop", 0), ("integrate", 1)):
        finished = await run_process([sys.executable, "-c", refusing, command], cwd=tmp_path / "project")
        assert (finished.code, "Traceback" in finished.error_text) == (code, False)
        assert (f"engine.lock {message}" in finished.error_text) == bool(code)


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\S+)\]", changelog, re.MULTILINE)[0] == __version__
