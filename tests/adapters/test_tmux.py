"""The tmux adapter, on a private server with real sessions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.errors import AdapterError, NoTmuxServer, UsageError
from tests.waiting import eventually


@pytest.fixture
async def tmux() -> AsyncIterator[Tmux]:
    # A socket's path must stay under 107 bytes: pytest's own folders are too long.
    folder = Path(tempfile.mkdtemp(prefix="sw"))
    adapter = Tmux(scrubbed_environment({"TMUX_TMPDIR": str(folder), "LANG": "C.UTF-8"}))
    yield adapter
    await adapter.kill_server()
    shutil.rmtree(folder, ignore_errors=True)


async def new_session(tmux: Tmux, name: str, command: str = "cat", window: str = "agent") -> None:
    words = ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", name, "-n", window, "-x", "90", "-y", "5", command]
    assert (await run_process(words, environment=tmux.environment)).code == 0


async def keys(tmux: Tmux, session: str, *names: str) -> None:
    words = ["tmux", "send-keys", "-t", f"={session}:agent", *names]
    assert (await run_process(words, environment=tmux.environment)).code == 0


async def test_missing_tmux_server_is_an_error(tmux: Tmux) -> None:
    with pytest.raises(NoTmuxServer, match=tmux.environment["TMUX_TMPDIR"]):
        await tmux.list_panes()
    with pytest.raises(NoTmuxServer):
        await tmux.capture(["mngr-a"])


async def test_missing_tmux_folder_selects_no_other_server(tmux: Tmux) -> None:
    gone = Tmux(tmux.environment | {"TMUX_TMPDIR": tmux.environment["TMUX_TMPDIR"] + "-gone"})
    with pytest.raises(NoTmuxServer, match="does not exist any more"):
        await gone.list_panes()


async def test_tmux_of_caller_is_ignored(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    inside = Tmux(tmux.environment | {"TMUX": "/elsewhere,1,0", "TMUX_PANE": "%7"})
    assert [pane.session for pane in await inside.list_panes()] == ["mngr-a"]


async def test_one_call_lists_all_panes(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    await new_session(tmux, "mngr-b", window="ä:b:0")

    async def has_begun() -> bool:
        # Until the shell has become `cat`, it is the shell that is seen.
        return all(pane.command == "cat" for pane in await tmux.list_panes())

    await eventually(has_begun, "the program to begin")
    panes = {pane.session: pane for pane in await tmux.list_panes()}
    first, second = panes["mngr-a"], panes["mngr-b"]
    assert (first.window, first.width, first.height, first.is_dead) == ("agent", 90, 5, False)
    assert (second.window, second.command) == ("ä:b:0", "cat")
    assert first.is_agent_pane
    assert not second.is_agent_pane
    assert first.process_id != second.process_id


async def test_dead_pane_is_listed(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    words = ["tmux", "set-option", "-t", "=mngr-a:", "remain-on-exit", "on"]
    await run_process(words, environment=tmux.environment)
    await keys(tmux, "mngr-a", "C-d")

    async def is_dead() -> bool:
        return (await tmux.list_panes())[0].is_dead

    await eventually(is_dead, "the program to end")


async def test_missing_screen_hides_no_others(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a", "printf '\\033[31mred\\033[0m'; cat")
    await new_session(tmux, "mngr-a-1", "echo longer name; cat")

    async def is_drawn() -> bool:
        screens = await tmux.capture(["mngr-a", "mngr-a-1"])
        return all(screen is not None and screen.strip() for screen in screens.values())

    await eventually(is_drawn, "the screen to be drawn")
    screens = await tmux.capture(["mngr-gone", "mngr-a", "mngr-a-1", "mngr"])
    assert screens["mngr-gone"] is None
    assert screens["mngr"] is None, "a target must not match by prefix"
    assert "\x1b[31mred" in (screens["mngr-a"] or "")
    assert "longer name" in (screens["mngr-a-1"] or "")
    assert await tmux.capture([]) == {}


async def test_variables_are_removed_from_new_terminals(tmux: Tmux) -> None:
    first = Tmux(tmux.environment | {"A_KEY": "secret", "B_KEY": "secret", "KEPT": "yes"})
    await new_session(first, "mngr-a")
    await tmux.forget_variables(["A_KEY", "B_KEY", "NEVER_SET"])
    await new_session(tmux, "mngr-b", "env; cat")

    async def shown() -> str:
        return (await tmux.capture(["mngr-b"], history=200)).get("mngr-b") or ""

    await eventually(lambda: _contains(shown, "KEPT=yes"), "the environment on the screen")
    assert "A_KEY" not in await shown()
    assert "B_KEY" not in await shown()


async def _contains(shown: Callable[[], Awaitable[str]], text: str) -> bool:
    return text in await shown()


async def test_hostile_session_name_is_rejected(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    for name in ("a' ; kill-server '", "-t", "a:b", "a.b", "", "a\nkill-server", "#(touch x)"):
        with pytest.raises(UsageError):
            await tmux.capture([name])
    assert [pane.session for pane in await tmux.list_panes()] == ["mngr-a"]


async def test_protected_session_keeps_other_keys(tmux: Tmux, tmp_path: Path) -> None:
    await new_session(tmux, "mngr-a", "cat -v")
    await new_session(tmux, "mngr-b", "cat -v")
    configuration = tmp_path / "tmux.conf"
    configuration.write_text(
        f"bind -n C-q run-shell 'touch {tmp_path}/destroyed'\nbind -n C-t run-shell 'touch {tmp_path}/stopped'\n"
        f"bind -n F5 run-shell 'touch {tmp_path}/kept'\n"
    )
    source = ["tmux", "source-file", str(configuration)]
    await run_process(source, environment=tmux.environment)
    await tmux.protect_session("mngr-a")
    await run_process(source, environment=tmux.environment)
    assert await tmux.is_protected("mngr-a")
    assert not await tmux.is_protected("mngr-b")

    # Keys go through a key table only when they come from a client: one attached in another tmux window.
    attach = "env -u TMUX tmux attach -t =mngr-a"
    outer = ["tmux", "-f", "/dev/null", "-L", "o", "new-session", "-d", "-s", "o", "-x", "80", "-y", "10", attach]
    await run_process(outer, environment=tmux.environment)

    async def press(*names: str) -> None:
        # One call each: keys that come within a millisecond are a paste for tmux, and pass by all key tables.
        for name in names:
            await run_process(["tmux", "-L", "o", "send-keys", "-t", "=o:", name], environment=tmux.environment)

    async def is_attached() -> bool:
        words = ["tmux", "list-clients", "-t", "=mngr-a"]
        return bool((await run_process(words, environment=tmux.environment)).stdout)

    async def has_pressed() -> bool:
        return (tmp_path / "kept").exists()

    async def has_shown() -> bool:
        return "^Q^T" in ((await tmux.capture(["mngr-a"]))["mngr-a"] or "")

    try:
        await eventually(is_attached, "a client")
        # The tty takes one key alone as its own "start output"; quoted by ^V it shows.
        await press("C-q", "C-v", "C-q", "C-v", "C-t", "Enter", "F5")
        await eventually(has_pressed, "the key to act")
        assert {path.name for path in tmp_path.iterdir()} == {"tmux.conf", "kept"}
        await eventually(has_shown, "the keys in the pane")
        await tmux.unprotect_session("mngr-a")
        assert not await tmux.is_protected("mngr-a")
    finally:
        await run_process(["tmux", "-L", "o", "kill-server"], environment=tmux.environment)


async def test_attach_popups_are_removed(tmux: Tmux) -> None:
    for name in ("mngr-a", "mngr-b"):
        await new_session(tmux, name)
        # mngr sets both: its welcome to a new user, and the window's size.
        for slot, command in ((99, 'display-popup -E "read"'), (98, "run-shell true")):
            await tmux._run("set-hook", "-t", f"={name}:agent", f"client-attached[{slot}]", command)
    await tmux.remove_attach_popups("mngr-a")
    hooks = {name: (await tmux._run("show-hooks", "-t", f"={name}:agent")).text for name in ("mngr-a", "mngr-b")}
    assert hooks["mngr-a"].split() == ["client-attached[98]", "run-shell", "true"]
    assert "client-attached[99] display-popup" in hooks["mngr-b"]


@pytest.mark.parametrize("own", [{}, {"status": "off", "status-left": "it's #[bold]mine "}])
async def test_status_line_is_restored(tmux: Tmux, own: dict[str, str]) -> None:
    await new_session(tmux, "mngr-one")
    for option, value in own.items():
        await tmux._run("set-option", "-t", "=mngr-one:", option, value)
    shown = (await tmux._run("show-options", "-t", "=mngr-one:")).text
    before = await tmux.show_in_status_line("mngr-one", "C-b d: back #here")
    line = (await tmux._run("display-message", "-p", "-t", "=mngr-one:", "#{T:status-left}")).text
    assert line.strip("\n") == " C-b d: back #here  [mngr-one] "
    assert await tmux.show_in_status_line("mngr-one", "C-b d: back #here") == (), "another room's is left to it"
    await tmux.restore_options("mngr-one", before)
    assert (await tmux._run("show-options", "-t", "=mngr-one:")).text == shown


async def test_prefix_key_is_returned(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    assert await tmux.prefix_key() == "C-b"
    await run_process(["tmux", "set-option", "-g", "prefix", "C-a"], environment=tmux.environment)
    assert await tmux.prefix_key() == "C-a"


async def test_error_of_tmux_is_reported(tmux: Tmux) -> None:
    await new_session(tmux, "mngr-a")
    with pytest.raises(AdapterError, match="session: "):
        await tmux.protect_session("mngr-gone")


async def test_user_tmux_server_is_not_stopped() -> None:
    environment = {name: value for name, value in scrubbed_environment().items() if name != "TMUX_TMPDIR"}
    with pytest.raises(UsageError):
        await Tmux(environment).kill_server()
