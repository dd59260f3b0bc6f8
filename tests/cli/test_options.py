"""Every option that is given on the command line stands in the sweep's sweep.json, and no other one changes with it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.cli.sweep_options import add_options, order_of
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.options import OPTIONS, Option, parse_confinement, parse_duration
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.collect import Found
from swarm_tui.sweep.order import Preconditions, compose_spec
from tests.git_project import GitProject

FOUND = Found((), "/found/python", "inner", "root", ("-q",), ("src",))


@pytest.fixture(scope="module")
def preconditions(tmp_path_factory: pytest.TempPathFactory) -> Preconditions:
    project = GitProject(tmp_path_factory.mktemp("options") / "project")
    base = project.commit("Begin", {"a.txt": "a"})
    return Preconditions(Repository.open(project.root), base, ("Ada", "ada@example.org"), MngrSettings(path="mngr"))


def words_and_value(option: Option) -> tuple[list[str], Any]:
    """Return words that give the option something that is not its default, and what they mean."""
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
        return [flag.name, "network,/data"], {"has_network": True, "readable": ("/data",)}
    is_number = {int, float} & {kind, *get_args(kind)}
    return [flag.name, "7"], 7 if is_number else "7"


def spec_of(preconditions: Preconditions, command: str, words: list[str]) -> SweepSpec:
    parser = argparse.ArgumentParser()
    add_options(parser, command)
    return compose_spec(order_of(parser.parse_args(words)), FOUND, preconditions)


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for option in OPTIONS for command in option.flag.commands],
    ids=lambda given: given if isinstance(given, str) else given.field,
)
def test_what_is_given_stands_in_the_spec(
    preconditions: Preconditions, tmp_path: Path, command: str, option: Option
) -> None:
    words, value = words_and_value(option)
    folder = SweepFolder(tmp_path / "sweep")
    folder.write_spec(spec_of(preconditions, command, words))
    given, usual = folder.read_spec(), spec_of(preconditions, command, [])
    # What was found is written down, whatever was asked.
    expected = {} if option.field == "python" else {option.field: value}
    if option.field == "hosts":
        expected["slots"] = 2 * usual.per_host
    names = set(SweepSpec.model_fields) - {"sweep", "created_at"}
    assert given.model_dump(include=names) == usual.model_dump(include=names) | expected


def test_the_integrator_is_found_by_the_kind_of_agent(preconditions: Preconditions) -> None:
    def integrator(*words: str) -> str:
        return spec_of(preconditions, "run", list(words)).integrator

    assert integrator() == integrator("--agent", "codex") == "agent"
    assert integrator("--agent", "offline") == integrator("--agent", "command") == "builtin"
    assert integrator("--agent", "offline", "--integrator", "none") == "none"


def test_what_was_found_is_in_the_spec(preconditions: Preconditions) -> None:
    spec = spec_of(preconditions, "run", [])
    assert (spec.base, spec.base_name, spec.identity) == (preconditions.base, "main", ("Ada", "ada@example.org"))
    assert (spec.python, spec.folder, spec.root) == ("/found/python", "inner", "root")
    assert (spec.run_options, spec.import_roots, spec.mngr) == (("-q",), ("src",), preconditions.settings)


def test_a_spec_that_an_older_version_wrote_is_read(tmp_path: Path) -> None:
    old = {
        "version": 1, "sweep": "20261118-061200", "repository": "/r", "base": "0" * 40, "base_name": "main",
        "created_at": 1794982000.0, "title": "t", "agent_type": "codex", "agent_arguments": ["--fast"],
        "provider": "local", "transfer": "worktree", "integrator": "none", "slots": 12, "timeout": 60.0,
        "wait_timeout": 30.0, "speed": 2.0, "answers_itself": True, "keep_agents": True, "is_recorded": True,
        "python": "/p", "pytest_arguments": ["-k", "a"], "run_options": ["-q"], "folder": "f", "root": "r",
        "import_roots": ["src"], "identity": ["Ada", "ada@example.org"], "passed_environment": ["TOKEN"],
        "records": "/records", "mapper_prompt": "/m", "integrator_prompt": "/i", "setup": "make", "tutorial": "/t.sh",
        "kind": "sync", "tests_folder": "tests", "material": ["/doc"], "is_private": True,
        "mngr": {"path": "mngr", "host_dir": "/h", "tmux_tmpdir": "/t", "prefix": "mngr-", "home": "/home"},
        "labels": {"a": "b"}, "mood": "good",
    }  # fmt: skip
    folder = SweepFolder(tmp_path)
    folder.spec.write_text(json.dumps(old))
    read = json.loads(folder.read_spec().model_dump_json())
    # An option that came later has its default.
    assert {name: read[name] for name in old} == old
