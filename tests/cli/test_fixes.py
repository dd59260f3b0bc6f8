"""`swarm-tui fixes`, as scripts use it: exact JSON, exit codes, and refusals that touch nothing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.forge import open_pull_request
from swarm_tui.cli.main import run_command_line
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.model import events as happened
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from tests.git_project import GitProject, file_contents
from tests.triage.conftest import number_lines

SWEEP = "20261118-061200"


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
    note = "note: 1 of 5 commits not listed, for want of [FIX_IMPL]; --all makes every commit a fix\n"
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
            "verdict": verdict,
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
    assert "--all makes every commit a fix" in error


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


def test_a_plan_that_does_not_build_has_no_diff(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = fixes(capsys, "--base", "main", "--revert", "1", "--diff")
    assert (code, out) == (1, "")
    assert "the plan does not build: reverting #1 One conflicts with #3 Three" in error


def test_the_diff_is_what_the_plan_does_to_the_base(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = fixes(capsys, "--base", "main", "--revert", "1,3", "--diff")
    assert code == 0
    assert [line for line in out.split("\n") if line.startswith("diff ")] == [
        "diff --git a/other.txt b/other.txt",
        "diff --git a/tests/test_x.py b/tests/test_x.py",
    ]


def test_a_plan_that_does_not_build_is_not_applied(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    before = file_contents(project.root)
    code, out, err = fixes(capsys, "--base", "main", "--revert", "1", "--apply")
    assert (code, out) == (1, "")
    assert "conflicts with #3 Three" in err
    assert file_contents(project.root) == before


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--base", "main", "--revert", "9"], "9 is none of the 3 fixes: `swarm-tui fixes` lists them"),
        (["--base", "main", "--revert", "main"], "none of the 3 fixes"),
        (["--base", "main", "--revert", "HEAD~3"], "--all makes every commit a fix"),
        (["--base", "main", "--revert", "1", "--keep", "#1"], "kept and reverted"),
        (["--base", "main", "--revert=--help"], "--help is none of the 3 fixes"),
        (["--base", "gone"], "there is no commit 'gone'"),
        (["--base", "main", "--drop"], "give --apply too"),
        (["--base", "main", "--apply"], "nothing is reverted"),
        (["--base", "main", "--revert", "2", "--apply=-x"], "no name for a branch"),
        ([], "there is no sweep here"),
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
                happened.Queued(
                    test=f"t.py::{name}", agent=f"agent-{name}", branch=f"swarm/{SWEEP}/{name}", file="t.py"
                )
            )
        journal.append(happened.Integrated(branch=f"swarm/{SWEEP}/integrated", tip=tip, fixes=3))
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
    assert f"swarm/{SWEEP}/lost is ranked, but no commit is named for it" in err


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
    assert "is gone; its last commit is reviewed" in err


def test_a_broken_report_and_a_sweep_without_integration(
    project: GitProject, sweep: SweepFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (sweep.integrator / "integrator_outcome.json").write_text("{nonsense \x1b[31m")
    code, out, err = fixes(capsys)
    assert code == 0
    assert "One" in out.split("\n")[2]
    assert "the integrator's report is left aside" in err
    sweep.events.write_text("")
    code, _, err = fixes(capsys)
    assert code == 2
    assert "has not been integrated yet" in err


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
    assert f"the plan is clean: 1 reverted, 1 part left out, tree {project.git('rev-parse', 'HEAD^{tree}')}" in out
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
    assert "the plan is clean: 0 reverted, 1 hunk of others" in out
    code, out, error = fixes(capsys, *branch, "--revert", "4.7")
    assert (code, "fix 4 has 3 hunks: 4.1 lines.txt:20, 4.2 lines.txt:35, 4.3 other.txt:1" in error) == (2, True)
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


def test_each_fix_gets_a_branch_with_what_it_builds_on(project: GitProject, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = fixes(capsys, "--base", "main", "integrated", "--branches")
    assert code == 0
    one, two, three = (line.split()[0] for line in out.strip().split("\n"))
    assert out.strip().endswith("(with #1, on which it builds)")
    assert project.git("log", "--format=%s", f"main..{one}") == "[FIX_IMPL] One"
    assert project.git("log", "--format=%s", f"main..{two}") == "[FIX_IMPL] Two"
    assert project.git("log", "--format=%s", f"main..{three}").split("\n") == ["[FIX_IMPL] Three", "[FIX_IMPL] One"]
    assert fixes(capsys, "--base", "main", "integrated", "--branches")[:2] == (0, out)


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
    assert out.startswith("2 fixes and 1 better test\n\nMade by agents")
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
    assert said[6].endswith("line\n\n… and more: `swarm-tui fixes --pr` prints all of it.\n")
