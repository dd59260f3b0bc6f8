"""Writes folders as the generations of `mngr tmr` did, with a real repository behind them.

From the last one back: newest (bundles, present words), july (older words), may (integrated in the repository), april
(flat, no bundles), march (artifacts only), page (one HTML file).
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.git_project import GitProject

SHOP: Final = "def total(prices):\n    return prices[0]\n\n\ndef name(word):\n    return word\n"

SUMMARY: Final = "<h2>What I did</h2><p>Nothing, see <code>shop.py</code></p><hr>"
"""What an agent says, as the page has it: with headings of its own."""


@dataclass(frozen=True)
class MadeAgent:
    """What the agent of one test did."""

    test: str
    outcome: dict[str, Any] | None
    section: str
    commits: tuple[tuple[str, str, str], ...] = ()
    """Each with its kind, a file, and the file's content."""


@dataclass
class MadeRun:
    """A folder of a run, and what is to be found in it."""

    root: Path
    project: GitProject
    base: str
    agents: dict[str, MadeAgent] = field(default_factory=dict)
    integrated: str = ""


def change(status: str, words: str = "w") -> dict[str, str]:
    return {"status": status, "summary_markdown": words}


def outcome(before: bool | None, after: bool | None, **more: Any) -> dict[str, Any]:
    runs = [{"run_name": f"try_{number}", "description_markdown": "ran"} for number in (1, 2)]
    return {"changes": {}, "tests_passing_before": before, "tests_passing_after": after, "test_runs": runs, **more}


FIXED: Final = SHOP.replace("prices[0]", "sum(prices)")
AGENTS: Final = (
    MadeAgent("tests/test_shop.py::test_clean", outcome(True, True), "CLEAN_PASS"),
    MadeAgent(
        "tests/test_shop.py::TestTotal::test_sum[a::b-<i>]",
        outcome(False, True, changes={"FIX_IMPL": change("SUCCEEDED", "It took the first.")}),
        "IMPL_FIXES",
        (("FIX_IMPL", "shop.py", FIXED),),
    ),
    MadeAgent(
        "tests/test_shop.py::test_name",
        outcome(True, True, changes={"IMPROVE_TEST": change("SUCCEEDED")}),
        "NON_IMPL_FIXES",
        (("IMPROVE_TEST", "tests/test_name.py", "def test_name(): assert 'a'\n"),),
    ),
    MadeAgent(
        "tests/test_shop.py::test_hard", outcome(False, False, changes={"FIX_IMPL": change("FAILED")}), "UNRESOLVED"
    ),
    MadeAgent(
        "tests/test_shop.py::test_errored", outcome(None, None, errored=True, summary_markdown="timed out"), "FAILED"
    ),
    MadeAgent(
        "tests/test_shop.py::test_claims",
        outcome(False, True, changes={"FIX_TEST": change("SUCCEEDED", "Said, not done.")}),
        "NON_IMPL_FIXES",
    ),
)


def make_project(root: Path) -> GitProject:
    project = GitProject(root)
    tests = "\n".join(f"def {name}(): pass" for name in ("test_clean", "test_name", "test_hard", "test_errored"))
    project.commit("the shop", {"shop.py": SHOP, "tests/test_shop.py": tests, ".gitignore": "tmr*\n"})
    return project


def make_run(project: GitProject, generation: str, *, agents: Sequence[MadeAgent] = AGENTS) -> MadeRun:
    """Write the folder of a run in a repository, as that generation did."""
    base = project.git("rev-parse", "main")
    stamp = {"april": "2026-05-01_10-00-00", "march": "2026-03-25_10-00-00", "may": "0515_104500"}.get(
        generation, "20260514184215"
    )
    made = MadeRun(project.root / f"tmr_{stamp}", project, base)
    made.root.mkdir()
    rows = []
    for number, agent in enumerate(agents):
        slug = "".join(
            sign if sign.isalnum() else "-" for sign in agent.test.partition("::")[2].split("::")[-1].lower()
        )
        slug = "-".join(part for part in slug.split("-") if part)[:40]
        ending = f"{slug}-{number:06x}" if generation in ("april", "march") else slug
        name = f"tmr-{ending}" if generation in ("april", "march") else f"tmr-{stamp}-{slug}"
        branch = {"may": f"mngr-tmr/{stamp}/{slug}", "april": f"mngr-tmr/{ending}", "march": f"mngr-tmr/{ending}"}.get(
            generation, f"tmr/{stamp}/{slug}"
        )
        made.agents[name] = agent
        _commit(project, branch, base, agent.commits)
        if generation != "page":
            _write_agent(made, generation, name, branch, agent)
        if agent.commits and generation in ("newest", "july", "page"):
            project.git("branch", "-D", branch)
        rows.append((agent, name, branch))
    (made.root / "index.html").write_text(page(rows))
    if generation not in ("march", "page"):
        _integrate(made, generation, stamp)
    return made


def page(rows: Iterable[tuple[MadeAgent, str, str]]) -> str:
    """Return the page of a run."""
    found: dict[str, list[str]] = {}
    for agent, name, branch in rows:
        test = html.escape(agent.test).replace("::", "::<wbr>")
        cells = [test, f"<code>{name}</code>"]
        if agent.section not in ("RUNNING", "CLEAN_PASS"):
            cells.insert(1, _changes(agent))
        if agent.section != "RUNNING":
            cells.append(f"<code>{branch if agent.commits else '-'}</code>")
        if agent.section not in ("RUNNING", "CLEAN_PASS"):
            cells.append("merged")
        row = "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        if agent.section != "RUNNING":
            row += f'<tr class="summary-row"><td colspan="5" class="md summary-cell">{SUMMARY}</td></tr>'
        found.setdefault(agent.section, []).append(row)
    sections = "".join(
        f'<h2 id="sec-{section}">{section}</h2><table><tr><th>Test</th></tr>{"".join(lines)}</table>'
        for section, lines in found.items()
    )
    return f"<html><body><h1>Test map-reduce report</h1>{sections}</body></html>"


def _changes(agent: MadeAgent) -> str:
    signs = {"SUCCEEDED": "&#10003;", "FAILED": "&#10007;", "BLOCKED": "&#9644;"}
    changes = agent.outcome["changes"] if agent.outcome else {}
    return ", ".join(f"{kind} {signs[change['status']]}" for kind, change in changes.items()) or "-"


def _commit(project: GitProject, branch: str, base: str, commits: Iterable[tuple[str, str, str]]) -> None:
    for number, (kind, path, content) in enumerate(commits):
        project.git("checkout", "--quiet", *(["-b", branch, base] if not number else [branch]))
        project.commit(f"[{kind}] {path}", {path: content})
    project.git("checkout", "--quiet", "main")


def _write_agent(made: MadeRun, generation: str, name: str, branch: str, agent: MadeAgent) -> None:
    folder = made.root / name
    is_flat = generation in ("april", "march")
    output = folder if is_flat else folder / "test_output"
    stamp = made.root.name.removeprefix("tmr_")
    artifacts = output / "e2e" / (f"{stamp}_tmr_try_1" if is_flat else f"tmr_{stamp}_try_1") / "test_x"
    artifacts.mkdir(parents=True)
    (artifacts / "transcript.txt").write_text("$ shop\n1\n")
    if agent.outcome is not None and generation != "march":
        report = dict(agent.outcome)
        if generation == "newest":
            report["escalations"] = [{"kind": "UNCAUGHT_BUG", "description_markdown": "Names are not trimmed\n\nSee."}]
        (output / "testing_agent_outcome.json").write_text(json.dumps(report))
    if agent.commits and not is_flat:
        made.project.git("bundle", "create", "--quiet", str(folder / "branch.bundle"), f"{made.base}..{branch}")


def _integrate(made: MadeRun, generation: str, stamp: str) -> None:
    project = made.project
    branch, name = {
        "may": (f"mngr-tmr/{stamp}/integrated", f"tmr-{stamp}-integrator"),
        "april": ("mngr-tmr/integrated-00ffee", "tmr-integrator-00ffee"),
    }.get(generation, (f"tmr/{stamp}/reducer", f"tmr-{stamp}-reducer"))
    _commit(project, branch, made.base, [("TEST/DOC", "tests/test_name.py", "def test_name(): assert 'a'\n")])
    _commit_on(project, branch, "[FIX_IMPL] Add all prices", {"shop.py": FIXED})
    made.integrated = project.git("rev-parse", branch)
    squashed = project.git("rev-parse", f"{branch}~1")
    fixing = f"{branch.rpartition('/')[0]}/x"
    report = {
        "squashed_branches": ["b"],
        "squashed_commit_hash": squashed[:10],
        "impl_priority": [fixing],
        "impl_commit_hashes": {fixing: made.integrated[:12]},
        "failed": [],
    }
    folder = made.root / name
    output = folder if generation in ("may", "april") else folder / "test_output"
    output.mkdir(parents=True)
    (output / "integrator_outcome.json").write_text(json.dumps(report))
    if generation in ("newest", "july"):
        project.git("bundle", "create", "--quiet", str(folder / "branch.bundle"), f"{made.base}..{branch}")
        project.git("branch", "-D", branch)


def _commit_on(project: GitProject, branch: str, message: str, files: Mapping[str, str]) -> None:
    project.git("checkout", "--quiet", branch)
    project.commit(message, files)
    project.git("checkout", "--quiet", "main")
