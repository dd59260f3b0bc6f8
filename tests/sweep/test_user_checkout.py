"""What changes in the user's repository during a sweep is reported, with the agent whose transcript names it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.cli.status import describe_sweep
from swarm_tui.journal.open import open_sweep
from swarm_tui.questions.inbox import ItemKind, find_groups
from swarm_tui.transcripts.locate import PULLED_TRANSCRIPT
from tests.git_project import GitProject
from tests.sweep.scripted_sweep import QuickMngr, run_engine_on, scripted_sweep


class Meddler(QuickMngr):
    """Creates an agent that works in the user's checkout instead of its copy."""

    def __init__(self, root: Path, project: Path) -> None:
        super().__init__(root, self.meddle)
        self.project = project

    def meddle(self, request: CreateRequest) -> None:
        project = GitProject(self.project)
        project.write({"mine.txt": "the agent's\n", "README.md": "changed\n", "new.txt": "new\n", "kept.txt": None})
        project.git("branch", "elsewhere")
        project.git("branch", "swarm/20261118-061200/test-9")
        project.git("stash", "push", "--quiet", "other.txt")
        project.git("tag", "--delete", "v1")
        project.git("checkout", "--quiet", "-b", "feature")


def test_changes_in_the_checkout_are_reported(tmp_path: Path) -> None:
    mngr = Meddler(tmp_path / "mngr", tmp_path / "project")
    context = scripted_sweep(tmp_path, 1, mngr)
    project = GitProject(tmp_path / "project")
    base = project.commit("More", {"other.txt": "1\n", "kept.txt": "1\n", "same.txt": "1\n"})
    project.git("tag", "v1")
    project.write({"mine.txt": "mine\n", "other.txt": "uncommitted\n", "same.txt": "mine too\n"})
    (record,) = context.state.tests()
    folder = context.work_folder(record.test)
    call = {"command": f"cd {project.root} && git checkout -b feature", "file_path": f"{project.root}/README.md"}
    (folder / PULLED_TRANSCRIPT).write_text(json.dumps({"input": call}) + "\n")
    assert run_engine_on(context) == 0
    opened = open_sweep(context.folder)
    in_folder = f"likely by the agent of {record.test}, whose transcript names the checkout"
    by_name = f"likely by the agent of {record.test}, whose transcript names it"
    stash = project.git("rev-parse", "refs/stash")
    assert opened.state.checkout_changes == (
        f"HEAD was at main, and is at feature ({in_folder})",
        f"the branch elsewhere is new, at {base[:10]} ({in_folder})",
        f"the branch feature is new, at {base[:10]} ({in_folder})",
        f"refs/stash is new, at {stash[:10]} ({in_folder})",
        f"the tag v1 was at {base[:10]}, and is deleted ({in_folder})",
        f"README.md is changed ({by_name})",
        f"kept.txt is deleted ({in_folder})",
        f"mine.txt was changed again ({in_folder})",
        f"new.txt is new ({in_folder})",
        f"other.txt had uncommitted changes, and has none ({in_folder})",
    )
    (group,) = [group for group in find_groups(opened.state, time.time()) if group.kind is ItemKind.CHECKOUT]
    assert all(change in group.items[0].text for change in opened.state.checkout_changes)
    assert describe_sweep(opened)["checkout_changes"] == list(opened.state.checkout_changes)


def test_change_that_no_transcript_names_may_be_the_users(tmp_path: Path) -> None:
    project = tmp_path / "project"
    mngr = QuickMngr(tmp_path / "mngr", lambda _: (project / "new.txt").write_text("mine"))  # type: ignore[arg-type]
    context = scripted_sweep(tmp_path, 1, mngr)
    assert run_engine_on(context) == 0
    assert open_sweep(context.folder).state.checkout_changes == ("new.txt is new (no agent's transcript names it)",)


def test_untouched_checkout_reports_nothing(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    project = GitProject(tmp_path / "project")
    project.write({"mine.txt": "uncommitted\n"})
    assert run_engine_on(context) == 0
    assert open_sweep(context.folder).state.checkout_changes == ()
    assert not (context.folder.root / "checkout.json").exists()
