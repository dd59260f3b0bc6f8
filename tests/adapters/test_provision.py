"""Which mngr is taken, and how one is put in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.provision import find_mngr, install_mngr, is_supported, private_folder
from swarm_tui.errors import AdapterError, ProgramMissing
from tests.programs import make_path, make_program


def make_mngr(path: Path, version: str = "0.3.0") -> Path:
    return make_program(path, f"echo mngr {version}")


def surroundings(folder: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": str(folder / "bin"), **more}


def private_mngr(folder: Path) -> Path:
    return folder / ".local" / "share" / "swarm-tui" / "mngr" / "bin" / "mngr"


async def test_named_mngr_comes_before_path_and_private(tmp_path: Path) -> None:
    own = make_mngr(private_mngr(tmp_path), "0.3.1")
    assert (await find_mngr(None, surroundings(tmp_path))).path == str(own)
    on_path = make_mngr(tmp_path / "bin" / "mngr", "0.3.2")
    assert (await find_mngr(None, surroundings(tmp_path))).path == str(on_path)
    by_variable = make_mngr(tmp_path / "variable" / "mngr", "0.3.3")
    given = surroundings(tmp_path, SWARM_MNGR=str(by_variable))
    assert (await find_mngr(None, given)).origin == "SWARM_MNGR"
    named = make_mngr(tmp_path / "named" / "mngr", "0.3.4")
    found = await find_mngr(str(named), given)
    assert (found.path, found.version, found.origin) == (str(named), "0.3.4", "--mngr")


async def test_old_mngr_on_path_is_replaced_by_private(tmp_path: Path) -> None:
    make_mngr(tmp_path / "bin" / "mngr", "0.2.2")
    with pytest.raises(ProgramMissing, match=r"mngr 0.2.2 is at .*; 0.3 is needed .*doctor --fix"):
        await find_mngr(None, surroundings(tmp_path))
    make_mngr(private_mngr(tmp_path))
    assert (await find_mngr(None, surroundings(tmp_path))).origin == "private"


async def test_named_mngr_that_fails_is_an_error(tmp_path: Path) -> None:
    make_mngr(private_mngr(tmp_path))
    old = make_mngr(tmp_path / "old", "0.2.2")
    broken = make_program(tmp_path / "broken", "echo Traceback >&2; exit 1")
    for named, words in (
        ("/nowhere/mngr", "is not a program"),
        (str(old), "mngr 0.2.2"),
        (str(broken), "an unknown version"),
    ):
        with pytest.raises(ProgramMissing, match=words):
            await find_mngr(named, surroundings(tmp_path))
        with pytest.raises(ProgramMissing, match="SWARM_MNGR is"):
            await find_mngr(None, surroundings(tmp_path, SWARM_MNGR=named))


async def test_version_is_independent_of_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The real mngr fails in a repository that git refuses, because it belongs to another user.
    named = tmp_path / "mngr"
    named.write_text('#!/bin/sh\n[ "$PWD" = / ] || exit 1\necho "mngr 0.3.0"\n')
    named.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert (await find_mngr(str(named), surroundings(tmp_path))).version == "0.3.0"


async def test_version_of_installed_mngr_is_read_without_starting_it(tmp_path: Path) -> None:
    bin_folder = tmp_path / "tool" / "bin"
    python, script = make_program(bin_folder / "python", "exit 9"), bin_folder / "mngr"
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    named = tmp_path / "mngr"
    named.symlink_to(script)
    packages = tmp_path / "tool" / "lib" / "python3.13" / "site-packages"
    (packages / "imbue_mngr_claude-0.5.0.dist-info").mkdir(parents=True)
    with pytest.raises(ProgramMissing, match="an unknown version"):
        await find_mngr(str(named), surroundings(tmp_path))
    (packages / "imbue_mngr-0.3.7.dist-info").mkdir()
    assert (await find_mngr(str(named), surroundings(tmp_path))).version == "0.3.7"
    (packages / "imbue_mngr-0.3.7.dist-info").rename(packages / "imbue_mngr-0.2.9.dist-info")
    with pytest.raises(ProgramMissing, match=r"mngr 0\.2\.9"):
        await find_mngr(str(named), surroundings(tmp_path))
    (packages / "imbue_mngr-0.3.7.dist-info").mkdir()
    with pytest.raises(ProgramMissing, match="an unknown version"):
        await find_mngr(str(named), surroundings(tmp_path))
    python.unlink()
    (packages / "imbue_mngr-0.2.9.dist-info").rmdir()
    with pytest.raises(ProgramMissing, match="an unknown version"):
        await find_mngr(str(named), surroundings(tmp_path))


async def test_missing_mngr_has_hint(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing) as caught:
        await find_mngr(None, surroundings(tmp_path))
    assert str(caught.value) == (
        "mngr is not installed (install it into a private environment with `swarm-tui doctor --fix`)"
    )


def test_versions_before_0_3_are_unsupported() -> None:
    assert [is_supported(version) for version in ("0.3.0", "0.3.17", "0.2.9", "0.30.0", "0.4.0", "")] == [
        True, True, False, True, True, False,
    ]  # fmt: skip


async def test_untested_version_is_used_with_a_warning(tmp_path: Path) -> None:
    newer = make_mngr(tmp_path / "bin" / "mngr", "0.4.1")
    for named in (None, str(newer)):
        found = await find_mngr(named, surroundings(tmp_path))
        assert (found.path, found.version) == (str(newer), "0.4.1")
        assert found.warning == "mngr 0.4.1 is untested: swarm-tui was tested with 0.3"
    make_mngr(private_mngr(tmp_path))
    tested = await find_mngr(None, surroundings(tmp_path))
    assert (tested.origin, tested.warning) == ("private", "")


def test_private_environment_is_in_data_folder(tmp_path: Path) -> None:
    assert private_folder({"HOME": "/h"}) == Path("/h/.local/share/swarm-tui/mngr")
    assert private_folder({"HOME": "/h", "XDG_DATA_HOME": "/d"}) == Path("/d/swarm-tui/mngr")
    assert private_folder({"HOME": "/h", "XDG_DATA_HOME": "relative"}) == Path("/h/.local/share/swarm-tui/mngr")


def make_python(folder: Path, *, pip: str) -> None:
    """Make a stand-in Python 3.12 whose `-m venv DIR` makes an environment with that pip."""
    inner = (
        f'case "$1 $2" in "-m pip") echo "$@" >> {folder}/pip-words; {pip} ;; '
        f'-c*) test -e "$(dirname "$0")/pip-works" ;; esac'
    )
    make_program(folder / "inner", inner)
    make_program(
        folder / "bin" / "python3.12",
        f'case "$1" in -c) echo 3 12 0 {folder}/bin/python3.12 ;; -m) echo venv >> {folder}/venvs; mkdir -p "$3/bin"; '
        f'cp {folder}/inner "$3/bin/python"; : > "$3/bin/pip-works" ;; esac',
    )


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a machine with nothing but a stand-in Python and what its scripts use."""
    make_path(tmp_path / "bin", "mkdir", "cp", "dirname", "cat", "chmod", "test", "echo")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


MAKES_MNGR = 'printf "#!/bin/sh\\necho mngr 0.3.0\\n" > "$(dirname "$0")/mngr"; chmod +x "$(dirname "$0")/mngr"'


async def test_mngr_is_installed_into_private_environment(tools: Path) -> None:
    make_python(tools, pip=MAKES_MNGR)
    said: list[str] = []
    found = await install_mngr(said.append, environment=surroundings(tools))
    assert (found.path, found.version, found.origin) == (str(private_mngr(tools)), "0.3.0", "private")
    assert "Python 3.12.0" in said[0]
    assert said[-1] == f"mngr 0.3.0 is ready at {private_mngr(tools)}"
    words = (tools / "pip-words").read_text()
    assert "imbue-mngr==0.3.* imbue-mngr-claude==0.3.*" in words
    assert "modal" not in words


async def test_only_broken_environment_is_created_again(tools: Path) -> None:
    make_python(tools, pip=MAKES_MNGR)
    await install_mngr(lambda _: None, environment=surroundings(tools))
    await install_mngr(lambda _: None, plugins=("claude", "modal"), environment=surroundings(tools))
    assert (tools / "venvs").read_text() == "venv\n"
    assert "imbue-mngr-modal==0.3.*" in (tools / "pip-words").read_text()
    (private_mngr(tools).parent / "pip-works").unlink()
    await install_mngr(lambda _: None, environment=surroundings(tools))
    assert (tools / "venvs").read_text() == "venv\nvenv\n"


async def test_pip_failure_has_last_line(tools: Path) -> None:
    make_python(tools, pip="echo 'ERROR: No matching distribution found' >&2; exit 1")
    with pytest.raises(AdapterError, match=r"No matching distribution found.*package index"):
        await install_mngr(lambda _: None, environment=surroundings(tools))


async def test_installed_mngr_that_does_not_start_is_an_error(tools: Path) -> None:
    make_python(tools, pip=":")
    with pytest.raises(AdapterError, match="does not start"):
        await install_mngr(lambda _: None, environment=surroundings(tools))


def make_own_python(folder: Path, *, pip: str) -> Path:
    """Make a stand-in Python 3.11 whose environments have that pip."""
    inner = make_program(folder / "old" / "inner", f'case "$1 $2" in "-m pip") {pip} ;; esac')
    return make_program(
        folder / "old" / "python3.11",
        f'case "$1" in -c) echo 3 11 2 {folder}/old/python3.11 ;; '
        f'-m) mkdir -p "$3/bin"; cp {inner} "$3/bin/python" ;; esac',
    )


async def test_uv_downloads_python_if_all_are_too_old(tools: Path) -> None:
    make_python(tools, pip=MAKES_MNGR)
    script = (tools / "bin" / "python3.12").read_text()
    (tools / "bin" / "python3.12").unlink()
    fetched = make_program(
        tools / "fetched-python", script.replace(f"{tools}/bin/python3.12", f"{tools}/fetched-python")
    )
    uv = make_program(
        tools / "uv",
        f'case "$2" in find) test -e {tools}/is-fetched && echo {fetched} ;; install) : > {tools}/is-fetched ;; esac',
    )
    own = make_own_python(tools, pip=f'cp {uv} "$(dirname "$0")/uv"')
    said: list[str] = []
    found = await install_mngr(said.append, environment=surroundings(tools), own_python=str(own))
    assert (found.path, found.version) == (str(private_mngr(tools)), "0.3.0")
    folder = private_mngr(tools).parents[1]
    assert said[:3] == [
        f"no Python 3.12 found: installing uv into {folder.parent}/uv to download one",
        f"downloading Python 3.12 into {folder.parent}/python",
        f"creating {folder} with Python 3.12.0 ({fetched})",
    ]


async def test_missing_python_has_hint(tools: Path) -> None:
    own = make_own_python(tools, pip="exit 1")
    with pytest.raises(ProgramMissing, match=r"mngr needs Python 3\.12 or newer, and none was found"):
        await install_mngr(lambda _: None, environment=surroundings(tools), own_python=str(own))
