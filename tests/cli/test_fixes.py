"""`swarm-tui fixes`, as scripts use it: exact JSON, exit codes, and refusals that touch nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.cli.main import run_command_line
from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.review.hand_over import open_pull_request
from tests.git_project import GitProject, file_contents
from tests.review.conftest import number_lines

SWEEP = "20261118-061200"
SOURCE = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    made = GitProject(tmp_path / "project")
    made.commit("base", {"lines.txt": number_lines({}), "other.txt": "other\n"})
    made.git("switch", "--quiet", "--create", "integrated")
    made.commit("[TEST/DOC] tests", {"tests/test_x.py": "def test_x(): pass\n"})
    made.commit("[FIX_IMPL] One", {"lines.txt": number_lines({5: "one"})})
    made.commit("[FIX_IMPL] Two", {"other.txt": "two\n"})
    made.commit("[FIX_IMPL] Three", {"lines.txt": number_lines({5: "three"})})
    monkeypatch.chdir(made.root)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return made


def fixes(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run_command_line(["fixes", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def plan_of(out: str) -> dict[str, Any]:
    told = json.loads(out)
    assert list(told) == ["base", "tip", "squashed", "fixes", "parts", "plan"]
    assert list(told["plan"]) == ["clean", "tree", "reverted", "left_out", "hunks", "conflicts"]
    plan = told["plan"]
    assert isinstance(plan, dict)
    return plan


def commits_of(project: GitProject) -> list[str]:
    return project.git("rev-list", "--reverse", "main..integrated").split("\n")


def test_commits_that_are_not_listed_are_said(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--base", "main", "integrated", "--list")
    assert "not listed" not in fixes(capsys, *words)[2]
    project.commit("Tidy up", {"notes.txt": "tidy\n"})
    note = "note: 1 of 5 commits not listed, they are not marked [FIX_IMPL]; to list all, add --all\n"
    assert fixes(capsys, *words)[2] == note
    assert "not listed" not in fixes(capsys, *words, "--all")[2]


def test_the_json_tells_the_fixes_and_the_plan(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    squashed, one, two, three = commits_of(project)
    code, out, _ = fixes(capsys, "--base", "main", "integrated", "--revert", f"3,{one[:8]}", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["base"] == project.git("rev-parse", "main")
    assert (told["tip"], told["squashed"]) == (three, squashed)
    assert told["fixes"] == [
        {
            "rank": rank,
            "commit": commit,
            "title": title,
            "branch": "",
            "agents": [],
            "by_integrator": "",
            "verdict": verdict,
            "effect": None,
            "weaker": [],
            "hunks": [{"number": f"{rank}.1", "title": place, "added": 1, "removed": 1, "verdict": verdict}],
        }
        for rank, commit, title, verdict, place in (
            (1, one, "One", "revert", "lines.txt:5"),
            (2, two, "Two", None, "other.txt:1"),
            (3, three, "Three", "revert", "lines.txt:5"),
        )
    ]
    plan = plan_of(out)
    assert (plan["clean"], plan["reverted"], plan["conflicts"]) == (True, [three, one], [])
    assert project.git("cat-file", "-t", plan["tree"], codes=None) == ""


def test_a_plan_that_does_not_build_is_exit_code_1(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    _, one, _, three = commits_of(project)
    code, out, _ = fixes(capsys, "--base", "main", "--revert", "1", "--json")
    assert code == 1
    plan = plan_of(out)
    assert (plan["clean"], plan["tree"]) == (False, None)
    assert plan["conflicts"] == [{"commit": one, "with": [three], "paths": ["lines.txt"]}]
    code, out, _ = fixes(capsys, "--base", "main", "--revert", "1")
    assert code == 1
    assert "reverting #1 One conflicts with #3 Three in lines.txt" in out


def test_looking_and_asking_what_if_write_nothing(
    project: GitProject, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = file_contents(project.root)
    fixes(capsys, "--base", "main", "--revert", "2", "--keep", "1")
    assert file_contents(project.root) == before
    assert not (tmp_path / "state").exists()


def test_apply_makes_the_branch_and_remembers_the_verdicts(
    project: GitProject, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = fixes(
        capsys, "--base", "main", "--revert", "2", "--keep", "1", "--why", "too early", "--apply", "mine"
    )
    assert code == 0
    assert "mine is " in err
    assert "git switch mine" in err
    assert out.split("\n")[-2] == "reviewed 2 of 3, 1 reverted, 1 open"
    assert "Why: too early" in project.git("log", "-1", "--format=%b", "mine")
    assert project.git("show", "mine:other.txt") == "other"
    _, out, _ = fixes(capsys, "--base", "main")
    assert [line.split()[1] for line in out.split("\n")[2:5]] == ["keep", "revert", "·"]
    code, out, _ = fixes(capsys, "--base", "main", "--json", "--drop", "--apply")
    assert code == 0
    applied = json.loads(out)["applied"]
    assert applied["branch"] == f"swarm/{commits_of(project)[-1][:12]}/reviewed"
    assert project.git("rev-parse", applied["branch"]) == applied["commit"]


def test_a_branch_without_fixes_says_how_to_see_its_commits(
    project: GitProject, capsys: pytest.CaptureFixture[str]
) -> None:
    squashed = commits_of(project)[0]
    code, out, error = fixes(capsys, "--base", "main", squashed, "--list")
    assert (code, out.split("\n")[2:]) == (0, ["reviewed 0 of 0, 0 reverted, 0 open", ""])
    assert "to review all commits, add --all" in error


def test_a_diff_that_goes_into_a_file_can_be_applied(
    project: GitProject, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    odd: dict[str, str | bytes | None] = {
        "Makefile": "all:\n\techo \x1b[31m\r\n",
        "latin.txt": b"\xe4\n",
        "x.bin": bytes(range(256)),
        "end": "no newline",
    }
    project.commit("[FIX_IMPL] Four", odd)
    assert run_command_line(["fixes", "--base", "main", "--revert", "2", "--diff"]) == 0
    diff = capfdbinary.readouterr().out
    wanted = run_command_line(["fixes", "--base", "main", "--revert", "2", "--json"])
    tree = plan_of(capfdbinary.readouterr().out.decode())["tree"]
    assert wanted == 0
    project.git("switch", "--quiet", "main")
    project.git("apply", "--index", "-", stdin=diff)
    assert project.git("write-tree") == tree


@pytest.mark.parametrize(("content", "code"), [("echo \x1b[31m\n", 1), ("shown\rhidden\n", 1), ("plain\r\n", 0)])
def test_diff_with_control_characters_is_not_piped(project: GitProject, content: str, code: int) -> None:
    project.commit("[FIX_IMPL] Four", {"file": content})
    words = [sys.executable, "-m", "swarm_tui", "fixes", "--base", "main", "--diff"]
    done = subprocess.run(words, cwd=project.root, capture_output=True, env=os.environ | {"PYTHONPATH": str(SOURCE)})
    assert done.returncode == code, done.stderr
    assert bool(done.stdout) == (code == 0)
    assert (b"swarm-tui fixes --diff > plan.diff" in done.stderr) == (code == 1)


def test_unreadable_gitmodules_do_not_stop_a_review(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    commit = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    project.git("commit", "--quiet", "-m", "[FIX_IMPL] Four")
    project.write({".gitmodules": b'[submodule "x\nbroken\n'})
    code, out, error = fixes(capsys, "--base", "main", "--list")
    assert (code, "Four" in out) == (0, True), error
    code, out, error = fixes(capsys, "--base", "main", "--diff")
    assert (code, f"Subproject commit {commit}" in out) == (0, True), error


def test_a_plan_that_does_not_build_has_no_diff(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = fixes(capsys, "--base", "main", "--revert", "1", "--diff")
    assert (code, out) == (1, "")
    assert "the plan has conflicts: reverting #1 One conflicts with #3 Three" in error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--base", "main", "--revert", "9"], "unknown fix: 9\nhint: run `swarm-tui fixes --list`"),
        (["--base", "main", "--revert", "main"], "unknown fix: main"),
        (["--base", "main", "--revert", "HEAD~3"], "not marked [FIX_IMPL]: add --all"),
        (["--base", "main", "--revert", "1", "--keep", "#1"], "in both --keep and --revert"),
        (["--base", "main", "--revert=--help"], "unknown fix: --help"),
        (["--base", "gone"], "unknown commit in "),
        (["--base", "main", "--drop"], "--drop requires --apply"),
        (["--base", "main", "--apply"], "nothing is reverted"),
        (["--base", "main", "--revert", "2", "--apply=-x"], "invalid branch name"),
        ([], "no sweeps in this repository"),
        (["nosuch"], "no sweep"),
    ],
)
def test_misuse_is_exit_code_2_with_a_sentence(
    project: GitProject, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    before = file_contents(project.root)
    code, out, err = fixes(capsys, *words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert file_contents(project.root) == before


def test_outside_a_repository_it_says_where_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = fixes(capsys, "--base", "main")
    assert code == 2
    assert "not in a git repository" in err


# On a sweep


@pytest.fixture
def sweep(project: GitProject) -> SweepFolder:
    """A sweep whose integrator ranked Three before Two, and said nothing of One."""
    _, _, two, three = commits_of(project)
    tip = project.git("rev-parse", "integrated")
    project.git("branch", f"swarm/{SWEEP}/integrated", tip)
    folder = SweepFolder(create_runs_folder(project.root) / SWEEP)
    folder.write_spec(
        SweepSpec(
            sweep=SWEEP,
            repository=str(project.root),
            base=project.git("rev-parse", "main"),
            created_at=0,
            mngr=MngrSettings(path="mngr"),
        )
    )
    with JournalWriter(folder.events) as journal:
        for name in ("two", "three", "third"):
            journal.append(
                Queued(test=f"t.py::{name}", agent=f"agent-{name}", branch=f"swarm/{SWEEP}/{name}", file="t.py")
            )
        journal.append(Integrated(branch=f"swarm/{SWEEP}/integrated", tip=tip, fixes=3))
    folder.integrator.mkdir()
    branch = f"swarm/{SWEEP}"
    outcome = {
        "impl_priority": [f"{branch}/three", f"{branch}/third", f"{branch}/two", f"{branch}/lost"],
        "impl_commit_hashes": {f"{branch}/three": three, f"{branch}/third": three, f"{branch}/two": two[:10]},
        "failed": [{"branch": f"{branch}/hard", "reason": "conflicts"}],
    }
    (folder.integrator / "integrator_outcome.json").write_text(json.dumps(outcome))
    return folder


def test_a_sweep_tells_rank_branch_and_agents_from_the_integrators_report(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = fixes(capsys, SWEEP[:8], "--json")
    assert code == 0
    told = json.loads(out)["fixes"]
    assert [(fix["rank"], fix["title"]) for fix in told] == [(1, "Three"), (2, "Two"), (3, "One")]
    assert told[0]["branch"] == f"swarm/{SWEEP}/three"
    assert told[0]["agents"] == ["agent-three", "agent-third"]
    assert told[2]["agents"] == []
    assert f"swarm/{SWEEP}/lost is ranked, but the report names no commit for it" in err


def test_list_and_json_have_the_effect_of_each_fix_on_the_tests(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    _, one, two, three = commits_of(project)
    report = sweep.integrator / "integrator_outcome.json"
    ranking = [
        {"commit": three, "turned_green": ["t.py::two", "t.py::three"], "broken": ["t.py::x"], "is_measured": True},
        {"commit": two, "turned_green": ["t.py::two"], "is_measured": False, "why": "too few seconds"},
        {"commit": one, "is_measured": True},
    ]
    report.write_text(json.dumps(json.loads(report.read_text()) | {"ranking": ranking}))
    _, out, _ = fixes(capsys, SWEEP, "--list")
    rows = [row for row in out.splitlines() if row.lstrip().startswith(("1 ", "2 ", "3 "))]
    assert [row.rpartition("  ")[2] for row in rows] == [
        "Three · turns 2 tests green, breaks 1 test (measured)",
        "Two · turns 1 test green (as its agents report)",
        "One · changes no test result (measured)",
    ]
    _, out, _ = fixes(capsys, SWEEP, "--json")
    first, second, _ = (fix["effect"] for fix in json.loads(out)["fixes"])
    assert first == {
        "is_measured": True,
        "turned_green": ["t.py::two", "t.py::three"],
        "broken": ["t.py::x"],
        "why": "",
    }
    assert (second["is_measured"], second["why"]) == (False, "too few seconds")


def test_verdicts_on_a_sweep_lie_in_its_folder(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = fixes(capsys, "--revert", "2", "--apply")
    assert code == 0
    assert sweep.verdicts.is_file()
    assert project.git("rev-parse", "--verify", f"swarm/{SWEEP}/reviewed")
    assert project.git("status", "--porcelain") == ""
    _, out, _ = fixes(capsys, "--pr")
    assert f"`swarm/{SWEEP}/hard`: `conflicts`" in out


def test_a_branch_that_is_gone_is_reviewed_by_its_last_commit(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    project.git("branch", "-D", f"swarm/{SWEEP}/integrated")
    code, _, err = fixes(capsys)
    assert code == 0
    assert "is missing; this is a review of its last commit" in err


def test_a_broken_report_and_a_sweep_without_integration(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (sweep.integrator / "integrator_outcome.json").write_text("{nonsense \x1b[31m")
    code, out, err = fixes(capsys)
    assert code == 0
    assert "One" in out.split("\n")[2]
    assert "invalid report of the integrator" in err
    sweep.events.write_text("")
    code, _, err = fixes(capsys)
    assert code == 2
    assert "is not integrated yet" in err


def test_parts_of_row_0_are_named_by_numbers(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = fixes(capsys, "--base", "main", "integrated", "--revert", "0.1,2", "--list")
    rows = out.split("\n")
    assert code == 0
    assert [row.split()[:2] for row in rows[:5]] == [
        ["0", project.git("rev-parse", "integrated~3")[:9]],
        ["0.1", "revert"],
        ["1", "·"],
        ["2", "revert"],
        ["3", "·"],
    ]
    project.git("switch", "--quiet", "--detach", "main")
    project.git("cherry-pick", "integrated~2", "integrated")
    assert (
        f"the plan is clean: 1 reverted, 1 test change left out, tree {project.git('rev-parse', 'HEAD^{tree}')}" in out
    )
    assert plan_of(fixes(capsys, "--base", "main", "integrated", "--revert", "0", "--json")[1])["left_out"] != []


def test_hunks_of_a_fix_are_named_by_numbers(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    text = number_lines({5: "three", 20: "four", 35: "four"})
    project.commit("[FIX_IMPL] Four", {"lines.txt": text, "other.txt": "four\n"})
    branch = ("--base", "main", "integrated")
    code, out, _ = fixes(capsys, *branch, "--revert", "4.2", "--list")
    assert code == 0
    assert [line.split(maxsplit=2)[:2] for line in out.splitlines()[4:9]] == [
        ["3", "·"],
        ["4", "·"],
        ["4.1", "·"],
        ["4.2", "revert"],
        ["4.3", "·"],
    ]
    assert "the plan is clean: 0 reverted, 1 hunk of other fixes" in out
    code, out, error = fixes(capsys, *branch, "--revert", "4.7")
    hint = "use 4 for the whole fix, or one of 4.1 lines.txt:20, 4.2 lines.txt:35, 4.3 other.txt:1"
    assert (code, f"fix 4 has 3 hunks, not 7\nhint: {hint}\n" in error) == (2, True)
    code, out, _ = fixes(capsys, *branch, "--revert", "4", "--keep", "4.3", "--why", "too much", "--apply", "--json")
    told = json.loads(out)
    assert [fix["verdict"] for fix in told["fixes"]] == [None, None, None, "partly"]
    assert [hunk["verdict"] for hunk in told["fixes"][3]["hunks"]] == ["revert", "revert", "keep"]
    assert len(told["plan"]["hunks"]) == 2
    applied = told["applied"]["branch"]
    assert project.git("rev-parse", f"{applied}^{{tree}}") == told["plan"]["tree"]
    assert project.git("diff", "--name-only", f"{applied}~", applied) == "lines.txt"
    assert project.git("log", "-1", "--format=%s", applied) == 'Revert 2 of 3 hunks of "[FIX_IMPL] Four"'
    # What was applied was kept as verdicts.
    _, out, _ = fixes(capsys, *branch, "--list")
    assert "reviewed 1 of 4, 0 reverted, 1 partly, 3 open" in out
    _, out, _ = fixes(capsys, *branch, "--pr")
    assert "without 2 of its 3 hunks" in out


def test_patches_give_the_previewed_tree(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    project.git("config", "diff.noprefix", "true")
    project.git("config", "format.signOff", "true")
    folder = project.root.parent / "patches"
    plan = ("--base", "main", "integrated", "--revert", "2")
    tree = plan_of(fixes(capsys, *plan, "--json")[1])["tree"]
    code, out, err = fixes(capsys, *plan, "--patches", str(folder))
    assert (code, "3 patches" in err) == (0, True)
    names = [Path(line).name for line in out.split()]
    assert names == ["0001-TEST-DOC-tests.patch", "0002-FIX_IMPL-One.patch", "0003-FIX_IMPL-Three.patch"]
    assert "Signed-off-by" not in (folder / names[0]).read_text()
    project.git("switch", "--quiet", "--detach", "main")
    project.git("am", "--quiet", *(str(folder / name) for name in names))
    assert project.git("rev-parse", "HEAD^{tree}") == tree
    assert fixes(capsys, *plan, "--patches", str(folder))[0] == 2


GLAB = """#!/bin/sh
printf '%s\\0' "$@" > {folder}/said
printf 'Creating merge request\n\n !7 Title\n https://gitlab.example/ada/project/-/merge_requests/7\n'
"""
GH = """#!/bin/sh
printf '%s\\n' "$@" > "{folder}/said"
while [ $# -gt 0 ]; do [ "$1" = --body-file ] && cp "$2" "{folder}/body"; shift; done
echo "Creating pull request"; echo "https://github.example/pull/7"
"""


def test_a_pull_request_is_pushed_and_opened_only_where_that_is_asked(
    project: GitProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.root.parent / "forge"
    remote = GitProject(folder / "remote", "--bare")
    (folder / "gh").write_text(GH.format(folder=folder))
    (folder / "gh").chmod(0o755)
    project.git("remote", "add", "origin", str(remote.root))
    plan = ("--base", "main", "integrated", "--revert", "2", "--pr")
    _, out, _ = fixes(capsys, *plan)
    assert out.startswith("2 fixes and 1 better test\n\nCreated by agents")
    assert remote.git("for-each-ref") == ""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    code, out, _ = fixes(capsys, *plan, "--push")
    assert (code, out) == (0, "https://github.example/pull/7\n")
    branch = f"swarm/{project.git('rev-parse', 'integrated')[:12]}/reviewed"
    assert remote.git("rev-parse", branch) == project.git("rev-parse", branch)
    said = (folder / "said").read_text().split("\n")
    assert said[:4] == ["pr", "create", "--title", "2 fixes and 1 better test"]
    assert said[-5:-1] == ["--head", branch, "--base", "main"]
    assert "## Reverted" in (folder / "body").read_text()
    assert fixes(capsys, *plan, "--push", "nowhere")[0] == 2
    assert fixes(capsys, "--base", "main", "--push")[0] == 2


def test_a_merge_request_is_opened_with_glab_where_the_remote_is_a_gitlab(
    project: GitProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project.root.parent / "forge"
    remote = GitProject(folder / "gitlab", "--bare")
    for name, text in (("glab", GLAB), ("gh", "#!/bin/sh\nexit 1\n")):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    project.git("remote", "add", "origin", str(remote.root))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    code, out, _ = fixes(capsys, "--base", "main", "integrated", "--revert", "2", "--pr", "--push", "--onto", "main")
    assert (code, out) == (0, "https://gitlab.example/ada/project/-/merge_requests/7\n")
    branch = f"swarm/{project.git('rev-parse', 'integrated')[:12]}/reviewed"
    assert remote.git("rev-parse", branch) == project.git("rev-parse", branch)
    said = (folder / "said").read_text().split("\0")[:-1]
    # The options are those of `glab mr create --help`.
    assert said[:5] == ["mr", "create", "--yes", "--title", "2 fixes and 1 better test"]
    assert said[5] == "--description"
    assert "## Reverted" in said[6]
    assert said[7:] == ["--source-branch", branch, "--target-branch", "main"]
    # No program takes more in one argument, and no forge that much.
    asking = open_pull_request(
        "glab", folder, title="T", body="line\n" * 50_000, branch="b", base="main", scratch=folder
    )
    asyncio.run(asking)
    said = (folder / "said").read_text().split("\0")
    assert said[6].endswith("line\n\n… truncated; for the rest run `swarm-tui fixes --pr`.\n")
