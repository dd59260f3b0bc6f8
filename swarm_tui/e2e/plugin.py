"""The pytest plugin with the fixture `e2e`. pytest loads it in every run, so it imports the rest on first use."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from time import gmtime, strftime
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from swarm_tui.e2e.record import E2eTestRecord
    from swarm_tui.e2e.session import E2eSession

_WHEN = ("always", "on-failure", "never")
_RECORD: pytest.StashKey[E2eTestRecord] = pytest.StashKey()
_RUN_NAME = pytest.StashKey[str]()
_KEPT = "swarm_e2e_environment"
_WORKER_INPUT = "swarm_e2e_run_name"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the fixture."""
    group = parser.getgroup("swarm-e2e", "end-to-end tests of command line programs (swarm-tui)")
    group.addoption(
        "--swarm-e2e-artifacts",
        choices=_WHEN,
        default="always",
        help="keep the transcript of each test in .test_output/e2e (default: always)",
    )
    group.addoption(
        "--swarm-e2e-keep-env",
        choices=_WHEN,
        default="never",
        help="keep the home, folder and processes of a test for debugging (default: never)",
    )
    group.addoption(
        "--swarm-e2e-run-name",
        metavar="NAME",
        default=None,
        help="set the name of the folder in .test_output/e2e (default: date and time)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Raise UsageError for a run name that is not a valid folder name."""
    name = config.getoption("--swarm-e2e-run-name")
    if name is not None and (not name.strip() or name.startswith(".") or "/" in name or not name.isprintable()):
        raise pytest.UsageError(f"invalid --swarm-e2e-run-name: {name!r} is not a valid folder name")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Pass the run name to the workers of a parallel run."""
    node.workerinput[_WORKER_INPUT] = _run_name(node.config)  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the transcript of a failed test with its failure."""
    report = yield
    if report.failed and _RECORD in item.stash:
        report.sections += item.stash[_RECORD].note_failure(call.excinfo.value if call.excinfo else None)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the paths of kept environments."""
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    kept = sorted(
        (report.nodeid, value)
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, value in report.user_properties
        if name == _KEPT
    )
    if kept:
        terminalreporter.section("e2e environments kept")
    for test, folder in kept:
        terminalreporter.write_line(f"{test}: enter with `. {folder}/enter.sh`, remove with `sh {folder}/remove.sh`")


@pytest.fixture
def e2e(request: pytest.FixtureRequest) -> Iterator[E2eSession]:
    """Run commands in an isolated home, folder and tmux server, and keep a transcript."""
    from swarm_tui.e2e.record import E2eTestRecord

    config = request.config
    record = E2eTestRecord(
        root=config.rootpath,
        run_name=_run_name(config),
        node_id=request.node.nodeid,
        docstring=getattr(request.function, "__doc__", None) or "",
        artifacts=config.getoption("--swarm-e2e-artifacts"),
        keep_environment=config.getoption("--swarm-e2e-keep-env"),
    )
    request.node.stash[_RECORD] = record
    yield record.session
    kept = record.close()
    if kept is not None:
        # A property is also passed from a parallel worker to the terminal summary.
        request.node.user_properties.append((_KEPT, str(kept)))


def _run_name(config: pytest.Config) -> str:
    if _RUN_NAME not in config.stash:
        given = config.getoption("--swarm-e2e-run-name")
        from_controller = getattr(config, "workerinput", {}).get(_WORKER_INPUT)
        config.stash[_RUN_NAME] = given or from_controller or strftime("%Y%m%d-%H%M%S", gmtime())
    return config.stash[_RUN_NAME]
