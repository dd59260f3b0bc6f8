"""What the doctor finds on machines that have or lack something."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line
from swarm_tui.doctor.checks import Machine, Requirements, install_missing, run_checks
from swarm_tui.doctor.host_checks import Check
from swarm_tui.errors import UsageError
from tests.programs import make_path, make_program

PLUGINS = [{"name": "claude", "version": "0.3.0", "enabled": "true"}, {"name": "local", "enabled": "true"}]
MODAL = {"name": "modal", "version": "0.3.0", "enabled": "true"}


def make_mngr(path: Path, plugins: list[dict[str, str]], errors: list[dict[str, str]] | None = None) -> Path:
    listing = json.dumps({"agents": [], "errors": errors or []})
    return make_program(
        path,
        f"""case "$1" in
--version) echo mngr 0.3.0 ;;
plugin) cat <<'END'
{json.dumps({"plugins": plugins})}
END
;;
list) cat <<'END'
{listing}
END
exit {6 if errors else 0} ;;
esac""",
    )


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """Return a folder with a PATH on which all is there, mngr included."""
    make_path(tmp_path / "bin", "git", "tmux", "ps", "cat", "env", "sh", "uname")
    make_mngr(tmp_path / "bin" / "mngr", PLUGINS)
    return tmp_path


def surroundings(folder: Path, screen: tuple[int, int] | None = (120, 40), **more: str) -> Machine:
    given = {"HOME": str(folder), "PATH": str(folder / "bin"), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    return Machine(given | {"TMUX_TMPDIR": str(folder)} | more, screen)


async def consult(folder: Path, wishes: Requirements = Requirements(), **more: str) -> dict[str, Check]:  # noqa: B008
    return {check.name: check for check in await run_checks(wishes, surroundings(folder, (120, 40), **more))}


async def test_healthy_machine_passes_all_checks(healthy: Path) -> None:
    checks = await consult(healthy)
    assert [check for check in checks.values() if not check.ok] == []
    assert checks["mngr"].found == f"0.3.0 at {healthy}/bin/mngr (PATH)"
    assert list(checks)[:6] == ["python", "git", "git identity", "tmux", "ps", "mngr"]


@pytest.mark.parametrize(("program", "package"), [("git", "git"), ("tmux", "tmux"), ("ps", "procps")])
async def test_missing_program_has_install_hint(healthy: Path, program: str, package: str) -> None:
    (healthy / "bin" / program).unlink()
    check = (await consult(healthy))[program]
    assert not check.ok
    assert check.found in ("not installed", f"{program} is not installed")
    assert package in check.fix or "brew" in check.fix


@pytest.mark.parametrize(
    ("program", "says"), [("git", "git version 2.30.1"), ("tmux", "tmux 2.9a"), ("tmux", "tmux odd"), ("ps", "1 0 S x")]
)
async def test_old_program_fails(healthy: Path, program: str, says: str) -> None:
    (healthy / "bin" / program).unlink()
    make_program(healthy / "bin" / program, f"echo '{says}'")
    check = (await consult(healthy))[program]
    assert not check.ok
    assert check.fix


async def test_versions_of_other_builds_are_parsed(healthy: Path) -> None:
    for program, says in (("git", "git version 2.39.3 (Apple Git-146)"), ("tmux", "tmux next-3.5")):
        (healthy / "bin" / program).unlink()
        make_program(healthy / "bin" / program, f"echo '{says}'")
    checks = await consult(healthy)
    assert checks["git"].ok
    assert checks["tmux"].ok


async def test_missing_mngr_check_names_python(healthy: Path) -> None:
    (healthy / "bin" / "mngr").unlink()
    check = (await consult(healthy))["mngr"]
    assert (check.ok, check.needed) == (False, "0.3")
    assert "uv python install 3.12" in check.fix
    make_program(healthy / "bin" / "python3.12", f"echo 3 12 1 {healthy}/bin/python3.12")
    check = (await consult(healthy))["mngr"]
    assert check.fix == "to install it privately with Python 3.12.1, run `swarm-tui doctor --fix`"


async def test_newer_claude_is_reported(healthy: Path) -> None:
    make_program(healthy / "bin" / "claude", "echo 2.1.73")
    assert (await consult(healthy, Requirements(agent="claude")))["claude"].fix == ""
    make_program(healthy / "bin" / "claude", "echo 9.9.9")
    check = (await consult(healthy, Requirements(agent="claude")))["claude"]
    assert check.ok
    assert "newer than 2.1.293" in check.fix


async def test_claude_is_required_only_for_its_agents(healthy: Path) -> None:
    make_mngr(healthy / "bin" / "mngr", [])
    assert (await consult(healthy))["mngr plugin claude"].ok
    checks = await consult(healthy, Requirements(agent="claude"))
    assert not checks["mngr plugin claude"].ok
    assert "imbue-mngr-claude" in checks["mngr plugin claude"].fix
    assert not checks["claude"].ok
    make_program(healthy / "bin" / "claude", "echo 2.1.73")
    assert (await consult(healthy, Requirements(agent="claude")))["claude"].found == "2.1.73, login unknown"
    make_program(healthy / "bin" / "claude", """echo '{"loggedIn": false}'""")
    login = (await consult(healthy, Requirements(agent="claude")))["claude"]
    assert login.found == "Claude is not logged in on this machine"
    make_program(healthy / "bin" / "claude", "exit 1")
    assert not (await consult(healthy, Requirements(agent="claude")))["claude"].ok


async def test_missing_modal_token_fails_only_if_required(healthy: Path) -> None:
    make_mngr(healthy / "bin" / "mngr", [*PLUGINS, MODAL], [{"message": "no token", "provider_name": "modal"}])
    check = (await consult(healthy))["mngr plugin modal"]
    assert check.ok
    assert "providers.modal.is_enabled false" in check.fix
    check = (await consult(healthy, Requirements(provider="modal")))["mngr plugin modal"]
    assert not check.ok
    assert "modal token new" in check.fix
    make_mngr(healthy / "bin" / "mngr", [*PLUGINS, MODAL])
    assert (await consult(healthy, Requirements(provider="modal")))["mngr plugin modal"].ok


async def test_docker_requires_plugin_and_daemon(healthy: Path) -> None:
    docker = Requirements(provider="docker")
    check = (await consult(healthy, docker))["mngr plugin docker"]
    assert (check.ok, "imbue-mngr-docker==0.1.*" in check.fix) == (False, True)
    plugins = [*PLUGINS, {"name": "docker", "version": "0.1.0", "enabled": "true"}]
    problem = {"message": "no daemon", "provider_name": "docker", "help_text": "start its daemon"}
    make_mngr(healthy / "bin" / "mngr", plugins, [problem])
    check = (await consult(healthy, docker))["provider docker"]
    assert (check.ok, check.found, check.fix) == (False, "no daemon", "start its daemon")
    make_mngr(healthy / "bin" / "mngr", plugins)
    assert (await consult(healthy, docker))["provider docker"].ok


async def test_rsync_is_required_only_for_hosts(healthy: Path) -> None:
    assert (await consult(healthy))["rsync"].ok
    assert not (await consult(healthy, Requirements(provider="pool")))["rsync"].ok


async def test_unknown_agent_type_is_reported(healthy: Path) -> None:
    checks = await consult(healthy, Requirements(agent="martian", provider="pool"))
    assert not checks["provider pool"].ok
    assert "plugin list" in checks["provider pool"].fix
    assert checks["agent martian"].found == "not a plugin; possibly defined in the settings of mngr"
    assert "agent offline" not in await consult(healthy, Requirements(agent="offline"))


async def test_failing_mngr_reports_its_error(healthy: Path) -> None:
    script = 'case "$1" in --version) echo mngr 0.3.0 ;; *) echo "Error: bad \033[31mconfig\033[0m" >&2; exit 1 ;; esac'
    make_program(healthy / "bin" / "mngr", script)
    check = (await consult(healthy))["mngr"]
    assert (check.ok, check.found) == (False, "mngr plugin failed: bad config")


async def test_terminal_check_has_advice(healthy: Path) -> None:
    async def terminal(screen: tuple[int, int] | None, **more: str) -> Check:
        return next(
            c for c in await run_checks(Requirements(), surroundings(healthy, screen, **more)) if c.name == "terminal"
        )

    assert (await terminal(None)).found == "not a terminal"
    assert (await terminal((120, 40))).fix == ""
    small = await terminal((70, 20), LANG="C")
    assert small.ok
    assert "larger window" in small.fix
    assert "--ascii" in small.fix
    assert not (await terminal((80, 24), TERM="dumb")).ok


async def test_named_mngr_is_not_replaced_by_fix(healthy: Path) -> None:
    with pytest.raises(UsageError, match="/nowhere/mngr"):
        await install_missing(Requirements(mngr="/nowhere/mngr"), surroundings(healthy), print)


async def test_other_mngr_is_never_changed(healthy: Path) -> None:
    make_mngr(healthy / "bin" / "mngr", [])
    said: list[str] = []
    await install_missing(Requirements(agent="claude", provider="modal"), surroundings(healthy), said.append)
    assert said == []
    assert not (healthy / ".local").exists()


def test_doctor_json_and_exit_code_agree(
    healthy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in surroundings(healthy).environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SWARM_MNGR", raising=False)
    assert run_command_line(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is True
    assert {tuple(check) for check in answer["checks"]} == {("name", "ok", "found", "needed", "fix")}
    (healthy / "bin" / "tmux").unlink()
    assert run_command_line(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if line.startswith("✗")).split()[:2] == ["✗", "tmux"]
    assert lines[-1] == "something is missing: see the lines with ✗"
    assert run_command_line(["doctor", "--mngr", "/nowhere/mngr", "--fix"]) == 2
    assert os.environ["PATH"] == str(healthy / "bin")
