"""A coding agent as the integrator, on the real mngr: it follows our prompt word by word, or is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.hosts.registry import open_hosts
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.state import SweepState
from swarm_tui.model.pulled import PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import SweepSpec
from swarm_tui.review.open import read_integrator_outcome
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import integrate_sweep
from tests.integrator.integrator_project import CODE, TEST_FILE, SweptProject, changed
from tests.isolation import IsolatedMngr
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

# Does what a prompt for integrators says, with the commands that the prompt itself gives.
FOLLOWER = r"""#!/bin/bash
read -r _ prompt _
touch "$MNGR_AGENT_STATE_DIR/active"
set -e
transcript="$MNGR_AGENT_STATE_DIR/events/follower/common_transcript"
mkdir -p "$transcript"
echo '{"type": "step", "source": "agent", "message": "I read the prompt."}' > "$transcript/events.jsonl"
eval "$(grep '^    git fetch' "$prompt")"
mkdir -p .test_output
rows=""
while read -r branch range; do
  git cherry-pick "$range"
  rows="$rows${rows:+,}\"$branch\": \"@LIE@$(git rev-parse HEAD)\""
done < <(sed -n 's/^| `\(swarm[^`]*\)` | `git log \([0-9a-f.]*\)`.*/\1 \2/p' "$prompt")
echo "{\"impl_commit_hashes\": {$rows}}" > .test_output/integrator_outcome.json
eval "$(awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$prompt")"
"""


class SweptByAgents:
    """A sweep on the real mngr whose one agent is done."""

    def __init__(self, root: Path, mngr: IsolatedMngr, program: Path) -> None:
        self.project = SweptProject(root / "project")
        self.spec = SweepSpec(
            sweep=f"20261118-{abs(hash(str(root))) % 10**6:06}",
            repository=str(self.project.git.root),
            base=self.project.base,
            created_at=1.0,
            agent_type="command",
            agent_arguments=(str(program),),
            integrator="agent",
            timeout=PATIENCE,
            identity=("Ada Lovelace", "ada@example.org"),
            mngr=mngr.settings,
        )
        folder = SweepFolder(self.project.git.root / ".swarm" / "runs" / self.spec.sweep)
        folder.write_spec(self.spec)
        self.writer = JournalWriter(folder.events)
        self.state = SweepState()
        self.context = SweepContext(
            folder, self.spec, self.writer, self.state, mngr.adapter, open_hosts(self.spec), self.project.repository
        )
        fixed = changed(CODE, "first - second", "first + second")
        source = self.project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": fixed})])
        self.project.git.git("update-ref", f"refs/swarm/{self.spec.sweep}/test-add", source.tip)
        branch = f"swarm/{self.spec.sweep}/test-add"
        self.context.record(Queued(test=source.test, agent=source.agent, branch=branch, file=TEST_FILE))
        change = PulledChange(kind="FIX_IMPL", status="SUCCEEDED")
        self.context.record(
            Pulled(
                test=source.test,
                result=Result.IMPL_FIX,
                pulled=PulledWork(tip=source.tip, changes=(change,), passing_after=True),
            )
        )

    @property
    def subjects(self) -> str:
        return self.project.git.git(
            "log", "--format=%s", f"{self.spec.base}..refs/heads/{self.state.integration.branch}"
        )


def program(folder: Path, *, lie: str = "") -> Path:
    path = folder / "follower"
    path.write_text(FOLLOWER.replace("@LIE@", lie))
    path.chmod(0o755)
    return path


@pytest.fixture
def writers() -> Iterator[list[JournalWriter]]:
    opened: list[JournalWriter] = []
    yield opened
    for writer in opened:
        writer.close()


async def test_an_agent_that_follows_the_prompt_makes_the_branch(
    isolated_mngr: IsolatedMngr, tmp_path: Path, writers: list[JournalWriter]
) -> None:
    swept = SweptByAgents(tmp_path, isolated_mngr, program(tmp_path))
    writers.append(swept.writer)
    await integrate_sweep(swept.context)
    integration = swept.state.integration
    assert (integration.state, integration.fixes) == ("done", 1), integration
    assert swept.subjects == "[FIX_IMPL] Add"
    told = [line.text for line in swept.state.log]
    assert "the integrator: I read the prompt." in told
    assert not [text for text in told if "is not used" in text]


async def test_agent_that_names_wrong_commits_gets_the_commits_that_are_there(
    isolated_mngr: IsolatedMngr, tmp_path: Path, writers: list[JournalWriter]
) -> None:
    swept = SweptByAgents(tmp_path, isolated_mngr, program(tmp_path, lie="beef"))
    writers.append(swept.writer)
    await integrate_sweep(swept.context)
    integration = swept.state.integration
    assert (integration.state, integration.by, swept.subjects) == ("done", "agent", "[FIX_IMPL] Add")
    outcome, doubts = read_integrator_outcome(swept.context.folder)
    assert outcome is not None
    assert (list(outcome.impl_commit_hashes.values()), doubts) == ([integration.tip], [])


async def test_branch_of_an_agent_without_a_report_stays_under_its_own_name(
    isolated_mngr: IsolatedMngr, tmp_path: Path, writers: list[JournalWriter]
) -> None:
    path = program(tmp_path)
    path.write_text(
        path.read_text().replace('eval "$(awk', 'rm .test_output/*.json\ngit commit --allow-empty -m Mine\neval "$(awk')
    )
    swept = SweptByAgents(tmp_path, isolated_mngr, path)
    writers.append(swept.writer)
    await integrate_sweep(swept.context)
    integration = swept.state.integration
    assert (integration.state, integration.by, swept.subjects) == ("done", "builtin", "[FIX_IMPL] Add")
    assert integration.refused == "it submitted no report"
    kept = swept.project.git.git("log", "--format=%s", f"{swept.spec.base}..swarm/{swept.spec.sweep}/integrator")
    assert kept == "Mine\n[FIX_IMPL] Add"


async def test_an_agent_that_dies_is_replaced_too(
    isolated_mngr: IsolatedMngr, tmp_path: Path, writers: list[JournalWriter]
) -> None:
    dead = tmp_path / "dead"
    said_last = '{"type": "step", "source": "agent", "message": "Nobody told me the base."}'
    transcript = "$MNGR_AGENT_STATE_DIR/events/dead/common_transcript"
    dead.write_text(f"#!/bin/bash\nmkdir -p {transcript}\necho '{said_last}' > {transcript}/events.jsonl\nexit 1\n")
    dead.chmod(0o755)
    swept = SweptByAgents(tmp_path, isolated_mngr, dead)
    writers.append(swept.writer)
    await integrate_sweep(swept.context)
    assert swept.state.integration.state == "done", swept.state.integration
    (said,) = [line.text for line in swept.state.log if "is not used" in line.text]
    assert "exited before it submitted its work (its last line: 'Nobody told me the base.')" in said
    assert (swept.state.integration.by, swept.state.integration.refused) == (
        "builtin",
        said.removeprefix("the coding agent's branch is not used: "),
    )
