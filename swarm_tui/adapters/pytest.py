"""The adapter to pytest: collects and runs the tests of a project in the project's own interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui.adapters.confinement import UNCONFINED, BoundedRunner
from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.growing_number import Tell, told_while_it_grows
from swarm_tui.adapters.process import Finished
from swarm_tui.errors import AdapterError, ProgramMissing, UsageError
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.regular_file import read_regular

PLUGIN_FOLDER: Final = Path(__file__).resolve().parents[1] / "agents" / "live"
COLLECT_TIMEOUT: Final = 900.0
NAMED_IN_VARIABLE: Final = "SWARM_NAMED_IN"
"""Names the checkout to our plugin: a path of it that stands in a node id is another one in a copy."""
COPY_VARIABLE: Final = "SWARM_COPY"
"""Names the copy to our plugin, where it is not an agent's."""

_CONFTEST: Final = re.compile(r"^ImportError while loading conftest '(.+)'", re.MULTILINE)
_INTERNAL_ERROR: Final = 3
_USAGE: Final = 4
_COLLECTED: Final = frozenset({0, 1, 5})
"""All was collected: nothing went wrong, a test failed, or there was none."""


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """One test as pytest names it."""

    test: str
    line: int
    traits: tuple[str, ...] = ()
    """Its fixtures, markers and parameters, as words."""
    group: str = ""
    """The group of its mark `xdist_group`."""


class CollectionError(NamedTuple):
    """What pytest says of a file or folder that it could not collect."""

    test: str
    """Its node id; empty when all of pytest failed."""
    text: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What pytest found, and its output."""

    root: Path
    """pytest's rootdir: node ids begin there."""
    tests: tuple[CollectedTest, ...]
    errors: tuple[CollectionError, ...]
    """What pytest says of each file that could not be collected."""
    single_run: tuple[str, ...]
    """The words by which the project's plugins leave out what a run of one test has no use for."""
    positional: tuple[str, ...]
    """Those of the arguments that pytest read as files and node ids."""
    outside: tuple[str, ...]
    """Files of tests outside of the root: pytest names those as if they were in it."""
    startup_path: tuple[str, ...]
    """Where the interpreter looks for modules before pytest adds anything."""
    path: tuple[str, ...]
    loaded: Mapping[str, str]
    """Modules inside the repository, each with the folder in which its name begins."""
    compiled: Mapping[str, str]
    """Compiled modules inside the repository, each with its file."""
    installed: frozenset[str]
    """Top-level modules that were loaded from where packages are installed."""
    installed_compiled: frozenset[str]
    """Those of them that have compiled modules."""
    prefix: str
    python_version: str
    text: str
    """pytest's output."""


def reporting_environment(
    scratch: Path, import_roots: Sequence[Path], given: Mapping[str, str], **files: Path
) -> dict[str, str]:
    """Return the environment in which our plugin writes what pytest says, and what else a run writes goes to `scratch`.

    `files` are the plugin's variables, `given` further ones. The import roots come first on PYTHONPATH: a venv into
    which the project was installed editable would otherwise import the user's checkout.
    """
    inherited = os.environ.get("PYTHONPATH")
    path = [*map(str, import_roots), str(PLUGIN_FOLDER), *([inherited] if inherited else [])]
    variables = {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Plugins ask git for the version: it must not refresh the user's index.
        "GIT_OPTIONAL_LOCKS": "0",
        "COVERAGE_FILE": str(scratch / ".coverage"),
        "GCOV_PREFIX": str(scratch),
        "TESTMON_DATAFILE": str(scratch / "testmon"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
    }
    variables |= {f"SWARM_{name.upper()}": str(path) for name, path in files.items()}
    return scrubbed_environment(variables | dict(given))


def cache_words(scratch: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words that keep pytest's cache out of the project, where there is a cache."""
    # Without its plugin pytest refuses --lf, --ff and --sw, which a project may have set for all its runs.
    return () if "no:cacheprovider" in options else ("-o", f"cache_dir={scratch / 'cache'}")


class RunReport(NamedTuple):
    """What our plugin wrote during a run."""

    outcomes: dict[str, str]
    unfinished: frozenset[str]
    """The tests that it was in when it ended."""
    failures: dict[str, str]
    """A line on each test that failed."""


def read_results(path: Path) -> RunReport:
    """Return what a run has reported.

    A test that failed as it was expected to, or passed although it was not, has passed for pytest.
    """
    outcomes: dict[str, str] = {}
    begun: set[str] = set()
    failures: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in read_regular(path).splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                fields = json.loads(line)
                test = str(fields["test"])
                if fields["kind"] == "start":
                    begun.add(test)
                else:
                    begun.discard(test)
                    outcome = str(fields["outcome"])
                    outcomes[test] = "passed" if outcome in ("xfailed", "xpassed") else outcome
                    if outcome == "failed":
                        failures[test] = plain(str(fields.get("text", "")), 400)
    finished = {test: outcome for test, outcome in outcomes.items() if test not in begun}
    return RunReport(finished, frozenset(begun), failures)


def pytest_argument(test: str, file: str, folder: str) -> str:
    """Return the command-line word that names a test to a pytest that is run in `folder`; it is never an option.

    Node ids begin at pytest's rootdir, while the command line is read from the folder pytest is run in. `file` and
    `folder` are paths from the top of the repository; when the file is not known, the node id has to do.
    """
    in_id, separator, rest = test.partition("::")
    path = os.path.relpath(file, folder or ".") if file else in_id
    return ("./" if path.startswith("-") else "") + path + separator + rest


class PytestAdapter:
    """The pytest of one interpreter, called in one folder; our plugin reports its results, not its terminal text."""

    def __init__(
        self,
        python: str,
        folder: Path,
        import_roots: Sequence[Path] = (),
        top: Path | None = None,
        variables: Mapping[str, str] | None = None,
        runner: BoundedRunner = UNCONFINED,
    ) -> None:
        """`import_roots` come first on PYTHONPATH: in a copy, the copy's own code is what is collected."""
        self.python = python
        self.folder = folder
        self._import_roots = tuple(import_roots)
        self._top = top
        self._variables = variables or {}
        self._runner = runner

    async def collect(self, arguments: Sequence[str], tell: Tell | None = None) -> Collected:
        """Collect without running; errors in test files are part of what is returned.

        `tell` gets how many tests were found, again and again.
        """
        with tempfile.TemporaryDirectory(prefix="swarm-collect-") as folder:
            scratch = Path(folder)
            files = {"collect": scratch / "collected.json"} | ({"top": self._top} if self._top is not None else {})
            # The plugin is named, because a project may have switched off those that are found by themselves.
            words = [self.python, "-m", "pytest", "-p", "swarm_live", *cache_words(scratch, arguments), *arguments]
            words.append("--collect-only")
            environment = reporting_environment(scratch, self._import_roots, self._variables, **files)
            count = scratch / "collected.json.count"
            async with told_while_it_grows(lambda: int(read_regular(count, 100) or b"0"), tell):
                finished = await self._runner.run(
                    words, cwd=self.folder, environment=environment, timeout=COLLECT_TIMEOUT, scratch=scratch
                )
            try:
                content = json.loads(read_regular(files["collect"]))
            except (OSError, ValueError):
                raise _explain(self.python, finished) from None
        if finished.code == _USAGE:
            raise _explain(self.python, finished)
        if finished.code == _INTERNAL_ERROR:
            raise AdapterError(f"pytest broke down: {_last_line(content['errors'])}", "a plugin or conftest.py did it")
        if not content["errors"] and finished.code not in _COLLECTED:
            raise _explain(self.python, finished)
        return _read(content, finished)


def _read(content: Mapping[str, Any], finished: Finished) -> Collected:
    return Collected(
        root=Path(content["root"]),
        tests=tuple(
            CollectedTest(
                item["id"],
                item["line"],
                tuple(plain(trait, 80) for trait in item.get("traits", ())),
                plain(item.get("group", ""), 200),
            )
            for item in content["items"]
        ),
        errors=tuple(CollectionError(error["id"], error["text"]) for error in content["errors"]),
        single_run=tuple(content.get("single_run", ())),
        positional=tuple(content.get("positional", ())),
        outside=tuple(content.get("outside", ())),
        startup_path=tuple(content.get("startup_path", ())),
        path=tuple(content.get("path", ())),
        loaded=content.get("loaded", {}),
        compiled=content.get("compiled", {}),
        installed=frozenset(content.get("installed", ())),
        installed_compiled=frozenset(content.get("installed_compiled", ())),
        prefix=content.get("prefix", ""),
        python_version=content.get("python", ""),
        text=finished.text,
    )


def _last_line(errors: Sequence[Mapping[str, str]]) -> str:
    lines = plain_lines(errors[-1]["text"]).strip().splitlines() if errors else []
    return plain(lines[-1], 300) if lines else "it says no more"


def _explain(python: str, finished: Finished) -> AdapterError | UsageError:
    output = plain_lines(finished.error_text).strip() or plain_lines(finished.text).strip()
    last = plain(output.splitlines()[-1], 300) if output else f"it ended with code {finished.code}"
    if "No module named pytest" in output:
        return ProgramMissing(
            f"{python} has no pytest", f"`{python} -m pip install pytest`, or name another one with --python"
        )
    conftest = _CONFTEST.search(output)
    if conftest:
        reasons = [line[1:].strip() for line in output.splitlines() if line.startswith("E ")]
        why = plain(reasons[-1] if reasons else last, 300)
        return AdapterError(
            f"{plain(conftest.group(1), 300)} cannot be imported: {why}", "pytest needs it for any test"
        )
    if finished.code == _USAGE:
        errors = [line for line in output.splitlines() if "error" in line.lower()]
        return UsageError(f"pytest refuses this: {plain(errors[-1] if errors else last, 400)}", "see `pytest --help`")
    return AdapterError(f"pytest could not collect: {last}", f"try `{python} -m pytest --collect-only` yourself")
