"""Each option on the command line is written to sweep.json and changes no other option."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.cli.sweep_options import add_options, read_options
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.options import OPTIONS, Option, RunOptions, parse_confinement, parse_duration
from swarm_tui.model.run_limits import Confinement
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.collect import Found
from swarm_tui.sweep.order import CheckedOrder, compose_spec
from tests.git_project import GitProject

FOUND = Found((), "/found/python", "inner", "root", ("-q",), ("src",))


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> CheckedOrder:
    project = GitProject(tmp_path_factory.mktemp("options") / "project")
    base = project.commit("Begin", {"a.txt": "a"})
    identity, mngr = ("Ada", "ada@example.org"), MngrSettings(path="mngr")
    return CheckedOrder(RunOptions(), Repository.open(project.root), base, "main", identity, (), mngr)


def words_and_value(option: Option) -> tuple[list[str], Any]:
    """Return arguments that set an option to another value than its default, and the value."""
    flag, kind = option.flag, option.type
    choices = [get_args(part) for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
    if kind is bool:
        return [flag.name], True
    if choices:
        return [flag.name, choices[0][-1]], choices[0][-1]
    if get_origin(kind) is tuple:
        return [flag.name, "PATH", f"{flag.name}=HOME"], ("PATH", "HOME")
    if get_origin(kind) is Mapping:
        return [flag.name, "a=1", flag.name, "b=2"], {"a": "1", "b": "2"}
    if flag.path is not None:
        return [flag.name, "some/file"], str(Path.cwd() / "some/file")
    if flag.parse is parse_duration:
        return [flag.name, "90m"], 5400.0
    if flag.parse is parse_confinement:
        return [flag.name, "network,/data"], Confinement(has_network=True, readable=("/data",))
    is_number = {int, float} & {kind, *get_args(kind)}
    return [flag.name, "7"], 7 if is_number else "7"


def spec_of(order: CheckedOrder, command: str, words: list[str]) -> SweepSpec:
    parser = argparse.ArgumentParser()
    add_options(parser, command)
    return compose_spec(replace(order, options=read_options(parser.parse_args(words))), FOUND)


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for option in OPTIONS for command in option.flag.commands],
    ids=lambda given: given if isinstance(given, str) else given.field,
)
def test_option_is_written_to_spec(order: CheckedOrder, tmp_path: Path, command: str, option: Option) -> None:
    words, value = words_and_value(option)
    folder = SweepFolder(tmp_path / "sweep")
    folder.write_spec(spec_of(order, command, words))
    given, usual = folder.read_spec(), spec_of(order, command, [])
    # The interpreter in the spec is the one that was found.
    expected = {} if option.field == "python" else {option.field: value}
    if option.field == "hosts":
        expected["slots"] = 2 * usual.per_host
    names: dict[str, Any] = {"sweep": "", "created_at": 0.0}
    assert dataclasses.replace(given, **names) == dataclasses.replace(usual, **names | expected)


def test_default_integrator_depends_on_agent_type(order: CheckedOrder) -> None:
    def integrator(*words: str) -> str:
        return spec_of(order, "run", list(words)).integrator

    assert integrator() == integrator("--agent", "codex") == "agent"
    assert integrator("--agent", "offline") == integrator("--agent", "command") == "builtin"
    assert integrator("--agent", "offline", "--integrator", "none") == "none"


def test_checked_values_are_written_to_spec(order: CheckedOrder) -> None:
    spec = spec_of(order, "run", [])
    assert (spec.base, spec.base_name, spec.identity) == (order.base, "main", ("Ada", "ada@example.org"))
    assert (spec.python, spec.folder, spec.root) == ("/found/python", "inner", "root")
    assert (spec.run_options, spec.import_roots, spec.mngr) == (("-q",), ("src",), order.mngr)
