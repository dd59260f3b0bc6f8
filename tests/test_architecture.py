"""The rules of the source: which modules may start processes, do I/O, and import which others."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent.parent / "swarm_tui"
# What is copied elsewhere and run there: the demo's sample project is a user's project, no part of the house.
COPIED: Final = (PACKAGE / "demo" / "sample",)

_DATA: Final = frozenset({"errors", "files", "model", "events"})
_CORE: Final = _DATA | {"adapters", "journal"}
_SUBJECTS: Final = _CORE | {"failures", "money", "limits", "questions", "hosts", "agents", "review", "strength"}
MAY_IMPORT: Final[dict[str, frozenset[str]]] = {
    "errors": frozenset(),
    "files": frozenset({"errors"}),
    "model": frozenset({"errors"}),
    "events": frozenset({"errors", "model"}),
    "adapters": _DATA,
    "journal": _DATA,
    "transcripts": _DATA | {"journal"},
    "testing": _CORE,
    "tutorial": _DATA | {"adapters"},
    "failures": _DATA | {"journal"},
    "money": _DATA | {"journal"},
    "questions": _DATA | {"journal", "failures"},
    "limits": _CORE,
    "agents": _CORE | {"transcripts", "money"},
    "hosts": _CORE | {"agents"},
    "review": _CORE | {"testing"},
    "strength": _CORE | {"testing", "review"},
    "integrator": _CORE | {"testing", "agents", "review"},
    "report": _SUBJECTS | {"transcripts"},
    "simulate": _DATA | {"journal", "money", "questions"},
    "doctor": _CORE | {"agents", "hosts"},
    "e2e": _CORE | {"tutorial"},
    "sweep": _SUBJECTS | {"testing", "tutorial", "transcripts", "integrator"},
    "watch": _SUBJECTS | {"sweep"},
    "demo": _CORE | {"sweep"},
    "room": _SUBJECTS | {"testing", "transcripts"},
    "cli": _SUBJECTS | {"testing", "tutorial", "report", "simulate", "doctor", "e2e", "sweep", "watch", "demo", "room"},
    "__main__": frozenset({"cli", "adapters"}),
    "mngr_plugin": frozenset({"cli", "adapters"}),
}

WITH_EVENTS: Final = frozenset({"failures", "hosts", "integrator", "limits", "money", "questions"})
"""Subjects with a module `events`, which imports nothing but `model`."""

STARTERS: Final = frozenset(
    {"subprocess", "pexpect", "ptyprocess", "pty", "multiprocessing", "socket", "socketserver", "http", "ssl"}
    | {"urllib.request", "ftplib", "smtplib", "webbrowser", "git", "gitdb", "requests", "httpx"}
)
STARTING_CALLS: Final = frozenset(
    {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "open_connection"}
    | {"start_server", "create_connection", "open_unix_connection", "forkpty"}
)
STARTING_OS_CALLS: Final = frozenset(
    {"os.system", "os.popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp"}
    | {
        f"os.{verb}{ending}"
        for verb in ("exec", "spawn")
        for ending in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    }
)
PURE: Final = (
    "model/", "failures/", "money/", "limits/stuck.py", "questions/groups.py", "questions/inbox.py", "hosts/lines.py",
    "hosts/events.py", "integrator/events.py", "limits/events.py", "questions/events.py", "journal/events.py",
    "journal/work_events.py", "journal/record.py", "journal/state.py", "journal/decode.py", "journal/since.py",
    "room/draw/", "room/grid/draw", "room/agent/draw", "room/fixes/draw", "room/inbox/draw",
)  # fmt: skip
IMPURE_MODULES: Final = frozenset({"os", "io", "shutil", "tempfile", "fcntl", "mmap", "asyncio", "threading", "signal"})
IMPURE_CALLS: Final = frozenset(
    {"open", "print", "input", "read_text", "read_bytes", "write_text", "write_bytes", "exists", "is_file", "is_dir"}
    | {"iterdir", "glob", "rglob", "stat", "lstat", "mkdir", "unlink", "rmdir", "touch", "rename", "symlink_to"}
    | {"resolve", "absolute", "expanduser", "cwd", "home", "sleep", "urlopen"}
)

READS_ITS_OWN: Final = (
    "agents/live/", "agents/offline/play.py", "report/page.py", "hosts/link.py", "hosts/ssh.py",
    "adapters/machine.py", "adapters/processes/ends.py", "adapters/driven_terminal.py", "cli/tutorial.py",
    "agents/prompting.py", "adapters/file_notices.py",
)  # fmt: skip
"""Modules that read parts of our package, of the kernel, or of folders that nobody else knows."""


def sources() -> list[Path]:
    """Return all modules of the package."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not any(path.is_relative_to(copied) for copied in COPIED)]


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@functools.cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes that several rules look at, wherever they are in a tree."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call | ast.If))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Return the full name of every module that is imported, wherever in the file."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def calls_in(tree: ast.AST) -> Iterator[str]:
    """Return everything that is called, as written: `open`, `os.fork`, `path.exists`, or `.exists` of a result."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            holder = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            yield f"{holder}.{node.func.attr}"


def is_within(module: str, packages: frozenset[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def starts_something(tree: ast.AST) -> set[str]:
    """Return what in a module starts a process or opens a socket."""
    found = {module for module in imports_of(tree) if is_within(module, STARTERS | STARTING_OS_CALLS)}
    calls = set(calls_in(tree))
    return found | (calls & STARTING_OS_CALLS) | {call for call in calls if call.rpartition(".")[2] in STARTING_CALLS}


def does_io(tree: ast.AST) -> set[str]:
    """Return the imports and calls of a module that do I/O."""
    found = {
        module for module in imports_of(tree) if is_within(module, IMPURE_MODULES | STARTERS | {"swarm_tui.adapters"})
    }
    return found | {call for call in calls_in(tree) if call.rpartition(".")[2] in IMPURE_CALLS}


def part_named(parts: Sequence[str]) -> str:
    """Return the package of a module, or `events` for the events of a subject, which the journal folds."""
    return "events" if list(parts[1:2]) == ["events"] and parts[0] in WITH_EVENTS else parts[0]


def imported_parts(tree: ast.AST) -> set[str]:
    """Return the packages of swarm-tui that a module imports, but not those that it needs for types alone."""
    for_types = {
        module
        for node in nodes_of(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for module in imports_of(node)
    }
    modules = [module for module in imports_of(tree) if module.startswith("swarm_tui.") and module not in for_types]
    return {part_named(module.split(".")[1:]) for module in modules} - {"__version__"}


def part_of(path: Path) -> str:
    return part_named(list(path.relative_to(PACKAGE).with_suffix("").parts))


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def violations(rule: Callable[[Path, ast.Module], Iterable[str]], paths: Iterable[Path]) -> dict[str, list[str]]:
    """Return the modules that break a rule, each with what breaks it."""
    found = {shown(path): sorted(rule(path, parsed(path))) for path in paths}
    return {name: broken for name, broken in found.items() if broken}


def test_only_adapters_and_hosts_start_processes_or_open_sockets() -> None:
    others = [path for path in sources() if part_of(path) not in ("adapters", "hosts")]
    assert violations(lambda _, tree: starts_something(tree), others) == {}


def test_what_is_pure_does_no_io() -> None:
    pure = [path for path in sources() if shown(path).startswith(PURE)]
    assert violations(lambda _, tree: does_io(tree), pure) == {}


def test_a_package_imports_only_those_it_may() -> None:
    def unknown_to(path: Path, tree: ast.Module) -> set[str]:
        return imported_parts(tree) - {part_of(path)} - MAY_IMPORT[part_of(path)]

    assert violations(unknown_to, (path for path in sources() if part_of(path) != "__init__")) == {}


def test_nothing_waits_for_a_pipe_in_the_place_of_a_file() -> None:
    """Files are read through swarm_tui/files.py, but for those that are our own code."""

    def reads(path: Path, tree: ast.Module) -> set[str]:
        found = {
            call for call in calls_in(tree) if call.rpartition(".")[1:] in ((".", "read_text"), (".", "read_bytes"))
        }
        return found if not shown(path).startswith(READS_ITS_OWN) else set()

    assert violations(reads, sources()) == {}


def test_only_the_room_knows_textual() -> None:
    def textual_in(_: Path, tree: ast.Module) -> set[str]:
        return {module for module in imports_of(tree) if is_within(module, frozenset({"textual"}))}

    assert violations(textual_in, (path for path in sources() if part_of(path) != "room")) == {}


def test_a_widget_keeps_no_state_of_the_sweep() -> None:
    widgets = (PACKAGE / "room" / "widgets").glob("*.py")
    truths = {"journal", "review", "sweep"}
    assert violations(lambda _, tree: imported_parts(tree) & truths, widgets) == {}


def test_every_module_says_in_its_first_line_what_it_is_for() -> None:
    assert [shown(path) for path in sources() if not ast.get_docstring(parsed(path))] == []


def test_no_docstring_gives_or_tells() -> None:
    """A function returns or raises, a command does: a docstring names which."""

    def vague_docstrings(_: Path, tree: ast.Module) -> list[str]:
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
        return [text for text in texts if re.match(r"(Gives?(?! up)|Tells?)\b", text)]

    assert violations(vague_docstrings, sources()) == {}


def test_imports_name_their_module_in_full() -> None:
    # The live plugin runs in other people's interpreters, where there is no swarm_tui.
    relative = {shown(path) for path in sources() if any(name.startswith(".") for name in imports_of(parsed(path)))}
    assert all(path.startswith("agents/live/swarm_live/") for path in relative), relative


def imported_at_start(tree: ast.Module) -> Iterator[str]:
    """Return the modules that importing this one imports: not those in functions, or for types alone."""
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from imports_of(
            ast.Module([part for part in parts if isinstance(part, ast.Import | ast.ImportFrom)], type_ignores=[])
        )


def all_imported_with(*modules: str) -> set[str]:
    """Return every module that is imported with these, by whatever way."""
    found, coming = set(), list(modules)
    while coming:
        name = coming.pop()
        path = PACKAGE.parent / Path(*name.split("."))
        file = next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
        if name not in found:
            found.add(name)
            coming += imported_at_start(parsed(file)) if file is not None else ()
    return found


def test_the_room_starts_without_what_only_its_other_screens_need() -> None:
    at_start = all_imported_with("swarm_tui.room.entry", "swarm_tui.room.grid.screen", "swarm_tui.agents.types.claude")
    assert "swarm_tui.journal.events" in at_start
    late = {f"swarm_tui.{part}" for part in ("review", "strength", "testing", "adapters.git", "agents.packaged")}
    late |= {"git", "pexpect", "pyte", "pygments", "tarfile", "http", "urllib.request", "multiprocessing", "jinja2"}
    late |= {"pydantic"}
    assert {name for name in at_start if is_within(name, frozenset(late))} == set()


def test_the_merge_view_starts_without_what_only_its_keys_need() -> None:
    at_start = all_imported_with("swarm_tui.room.entry", "swarm_tui.room.fixes.screen")
    assert "swarm_tui.review.review" in at_start
    late = {"git", "pexpect", "pyte", "pygments", "http", "urllib.request", "swarm_tui.agents.packaged"}
    assert {name for name in at_start if is_within(name, frozenset(late))} == set()


def test_the_rules_can_be_broken() -> None:
    assert starts_something(ast.parse("def f():\n    import subprocess")) == {"subprocess"}
    assert starts_something(ast.parse("from urllib import request")) == {"urllib.request"}
    assert starts_something(ast.parse("import os\nos.execvp('a', ['a'])")) == {"os.execvp"}
    assert starts_something(ast.parse("import platform\nplatform.system()")) == set()
    assert starts_something(ast.parse("await asyncio.create_subprocess_exec('a')")) == {
        "asyncio.create_subprocess_exec"
    }
    assert does_io(ast.parse("from pathlib import Path\nPath('a').read_text()")) == {".read_text"}
    assert does_io(ast.parse("from swarm_tui.adapters import tmux")) >= {"swarm_tui.adapters"}
    assert imported_parts(ast.parse("from swarm_tui import room\nimport swarm_tui.cli.main")) == {"room", "cli"}


def test_the_guide_names_modules_that_exist() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", (PACKAGE / "README.md").read_text())
    roots = (PACKAGE, PACKAGE.parent, PACKAGE / "room")
    assert [
        path for path in named if not path.startswith("refs/") and not any((r / path).exists() for r in roots)
    ] == []


def test_every_part_has_its_place() -> None:
    parts = {part_of(path) for path in sources()} - {"__init__"}
    assert parts == set(MAY_IMPORT), "a new part gets its place in MAY_IMPORT, an old one leaves it"
