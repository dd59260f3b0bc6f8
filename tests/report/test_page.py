"""The page of a sweep: what is in it, what never is, and the folders it is not written to."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.integrator.events import IntegrationFailed
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import LogMessage, Pulled, Queued
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.pulled import OUTCOME_FILE, Escalation, PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.report.page import MARKER, content_security_policy, json_for_html, render_page, write_report
from tests.git_project import file_contents
from tests.report.sweeps import HOSTILE, RESULTS, SECRET, START, MadeSweep, cast_of, make_sweep, pull


def summary_of(page: Path) -> dict[str, Any]:
    """Read the data that is inside the page."""
    found = re.search(r'<script type="application/json" id="summary">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    told: dict[str, Any] = json.loads(found.group(1))
    return told


def beside(page: Path, name: str) -> Any:
    """Read data that lies beside the page."""
    text = (page.parent / "data" / f"{name}.js").read_text()
    _, _, value = text.removesuffix(");\n").partition(",")
    return json.loads(value)


def write(made: MadeSweep, folder: Path) -> Path:
    return write_report(folder, made.open(), START).page


def test_everything_of_a_sweep_is_on_its_page(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 48)
    before = file_contents(made.folder.root)
    page = write(made, tmp_path / "page")
    told = summary_of(page)
    assert file_contents(made.folder.root) == before
    assert len(told["tests"]) == 48
    assert told["counts"]["impl_fix"] == 4
    assert told["problems"] == []
    assert told["lanes"]["count"] == 12
    assert told["integrating"][1] - told["integrating"][0] == 60
    assert {need["kind"] for need in told["needs"]} == {"blocker", "error", "unresolved", "shared_pattern"}
    blocker = next(need for need in told["needs"] if need["kind"] == "blocker")
    assert blocker["tests"] == [number for number in range(48) if RESULTS[number % 24] == "blocked"]
    assert [fix["verdict"] for fix in told["integration"]["fixes"]] == ["keep", "revert", "keep", ""]
    assert told["integration"]["plan"].startswith("reviewed 3 of 4, 1 reverted, 1 open")
    assert told["integration"]["left_out"][0]["reason"].startswith("conflicts with")


def test_a_test_opens_with_its_tries_changes_transcripts_and_recordings(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 48)
    page = write(made, tmp_path / "page")
    index = RESULTS.index("impl_fix")
    found = beside(page, f"test-{index}")
    assert [made["word"] for made in found["tries"]][-1] == "passed"
    assert f"+    return run({index})" in found["changes"][0]["diff"].split("\n")
    assert found["texts"][0]["is_cli"]
    assert "$ mytool copy a b" in found["texts"][0]["text"]
    assert {entry["role"] for entry in found["transcript"]} == {"system", "user", "agent", "call", "result"}
    assert beside(page, "test-3")["casts"][0]["columns"] == 60
    assert "from the recording" in beside(page, "cast-3-0")
    fix = summary_of(page)["integration"]["fixes"][0]
    assert "diff --git" in beside(page, f"commit-{fix['commit']}")["text"]


@pytest.mark.slow
def test_recordings_without_end_do_not_fill_the_page(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 1)
    recordings = made.folder.recordings(made.tests[0].agent)
    recordings.mkdir()
    for number in range(7):
        (recordings / f"{number}.cast").write_text(cast_of(["x" * 1_000_000] * 8))
    casts = beside(write(made, tmp_path / "page"), "test-0")["casts"]
    assert [cast.get("problem", "") for cast in casts] == [""] * 4 + [
        "left out: the earlier recordings use all the space"
    ] * 3


def test_work_that_was_never_committed_is_shown(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 1)
    patch = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+{SECRET}\n"
    (made.folder.agent(made.tests[0].agent) / "uncommitted.patch").write_text(patch)
    shown = beside(write(made, tmp_path / "page"), "test-0")["uncommitted"]
    assert "-a␛[2J" in shown.split("\n")
    assert SECRET not in shown


def test_a_sweep_without_integration_says_so(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 6, is_integrated=False)
    told = summary_of(write(made, tmp_path / "page"))
    assert told["integration"]["headline"] == "This sweep has not been integrated."
    assert told["integration"]["fixes"] == []


def test_a_sweep_from_another_machine_has_its_page_without_diffs(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 24)
    moved = tmp_path / "elsewhere" / made.folder.name
    moved.parent.mkdir()
    made.folder.root.rename(moved)
    (tmp_path / "project").rename(tmp_path / "gone")
    told = write_report(tmp_path / "page", type(made)(made.project, type(made.folder)(moved), made.tests).open(), START)
    summary = summary_of(told.page)
    assert any("no diffs" in problem for problem in summary["problems"])
    assert beside(told.page, f"test-{RESULTS.index('impl_fix')}")["changes"][0]["diff_note"]


def test_missing_and_broken_artifacts_are_told(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 24)
    for number in range(4):
        folder = made.folder.agent(made.tests[number].agent)
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
    agent = made.folder.agent(made.tests[5].agent)
    (agent / "test_output" / OUTCOME_FILE).write_text("{ not json")
    (agent / "broken.cast").write_text('{"version": 7}\n')
    with made.folder.events.open("ab") as journal:
        journal.write(b"no event\n")
    page = write(made, tmp_path / "page")
    problems = summary_of(page)["problems"]
    assert "ignored 1 invalid line in the journal" in problems
    assert "no pulled files of 4 finished tests in the folder of the sweep" in problems
    found = beside(page, "test-5")
    assert "invalid report" in found["note"]
    assert ": 7 (use asciicast version 2 or 3" in found["casts"][0]["problem"]


def make_hostile(root: Path) -> MadeSweep:
    """Write a sweep in which whatever an agent can write is a script, an escape sequence, or a secret."""
    made = make_sweep(root, 6)
    test = f"e2e/test_x.py::test_{HOSTILE}"
    bad = f"{HOSTILE} {SECRET}"
    agent = made.folder.agent("swarm-hostile")
    pull(agent, 3, Result.BLOCKED)
    (agent / "test_output" / OUTCOME_FILE).write_text(json.dumps({"summary_markdown": bad + "\n```\n</script>\n```"}))
    (agent / "transcript.jsonl").write_text(json.dumps({"type": "step", "source": "agent", "message": bad}) + "\n")
    (agent / "screen.txt").write_text(bad)
    run = next(path.parent for path in agent.rglob("transcript.txt"))
    (run / "transcript.txt").write_text(f"$ echo {bad}\n</script></pre>")
    (run / f"{HOSTILE.replace('/', '')}.txt").write_text(bad)
    (run / "session.cast").write_text(
        json.dumps({"version": 2, "width": 60, "height": 10, "title": bad}) + "\n" + json.dumps([0, "o", bad]) + "\n"
    )
    with JournalWriter(made.folder.events, last_seq=9_999, last_at=START + 900) as journal:
        journal.append(Queued(test=test, agent="swarm-hostile", branch=f"swarm/{HOSTILE}", block=bad))
        journal.append(TryFinished(test=test, number=1, passed=False, failure=bad))
        journal.append(LogMessage(text=bad, level="error", test=test))
        journal.append(
            Pulled(
                test=test,
                result=Result.BLOCKED,
                reason=bad,
                pulled=PulledWork(
                    summary=bad,
                    changes=(PulledChange(kind=HOSTILE, status=HOSTILE, summary=bad, commit=HOSTILE),),
                    escalations=(Escalation(title=bad, detail_markdown=bad),),
                    tip=HOSTILE,
                ),
            )
        )
        journal.append(IntegrationFailed(reason=bad))
    return made


def test_what_agents_write_is_neither_markup_nor_escape_nor_secret_anywhere(tmp_path: Path) -> None:
    made = make_hostile(tmp_path / "project")
    page = write(made, tmp_path / "page")
    for file in page.parent.rglob("*"):
        if file.is_file() and file.parent.name != "player":
            text = file.read_text()
            assert SECRET not in text, file
            assert "<script>document" not in text, file
            assert "<img" not in text, file
            if not file.name.startswith("cast-"):
                assert "\\u001b" not in text, file
    html = page.read_text()
    assert html.count("<script") == 2
    assert html.count("</script>") == 2


@given(st.recursive(st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_text_ends_its_script_element(value: object) -> None:
    told = json_for_html(value)
    assert not re.search("[<>&\u2028\u2029]", told)
    assert json.loads(told) == value


def test_the_policy_allows_the_page_its_own_script_and_no_network() -> None:
    policy = content_security_policy()
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy
    assert "connect-src" not in policy
    page = render_page({"title": '</title><script>"&', "sweep": "x"})
    assert "<title>&lt;/title&gt;&lt;script&gt;&quot;&amp;</title>" in page
    body = page.replace(policy, "")
    assert not re.search(
        r"""\son[a-z]+=|\sstyle=["']|javascript:|https?://(?!www\.w3\.org)""", body.partition("<style>")[0]
    )


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    made = make_sweep(tmp_path / "project", 2)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    before = file_contents(folder)
    with pytest.raises(UsageError, match="contains other files than a report of swarm-tui"):
        write(made, folder)
    assert file_contents(folder) == before
    with pytest.raises(UsageError, match="not a folder"):
        write(made, folder / "index.html")
    with pytest.raises(SwarmError, match="cannot write"):
        write(made, Path("/proc/nothing/here"))


def test_a_report_is_replaced_by_a_newer_one_and_what_lies_beside_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    write(make_sweep(tmp_path / "large", 12), folder)
    (folder / "note.txt").write_text("keep me")
    page = write(make_sweep(tmp_path / "small", 2), folder)
    assert len(summary_of(page)["tests"]) == 2
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [MARKER, "data", "index.html", "note.txt", "player"]
    )
    assert not (folder / "data" / "test-5.js").exists()
