"""What an observer records of agents with files and a separate tmux server, without calls of mngr."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.results import State
from swarm_tui.model.spec import WATCH_SOURCE, MngrSettings, SweepSpec
from swarm_tui.watch.agents import Conditions
from swarm_tui.watch.observer import look_once
from tests.programs import cleaned_up

ASK = {"type": "tool_use", "id": "1", "name": "AskUserQuestion", "input": {"questions": [{"question": "Which?"}]}}


class Home:
    """A mngr home, with the tmux server of its agents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = MngrSettings(
            path=str(root / "no-mngr"), host_dir=str(root / "m"), tmux_tmpdir=str(root), home=str(root)
        )
        self.environment = mngr_environment(self.settings)

    def add(self, name: str, **record: object) -> Path:
        """Add an agent that runs this program in its terminal. Return its folder."""
        folder = self.root / "m" / "agents" / f"agent-{name}"
        folder.mkdir(parents=True)
        program = self.root / str(record.get("type", "quiet"))
        shutil.copy(shutil.which("sleep") or "", program)
        known = {"id": folder.name, "name": name, "command": str(program), "labels": {}, "type": "command"}
        (folder / "data.json").write_text(json.dumps(known | record))
        words = ["tmux", "new-session", "-d", "-s", f"mngr-{name}", "-n", "agent", f"{program} 600; true"]
        subprocess.run(words, env=self.environment, check=True)
        return folder

    async def look(self) -> SweepFolder:
        """Poll all agents once. Return the journal."""
        folder = SweepFolder(Path(tempfile.mkdtemp(dir=self.root)) / "watch")
        spec = SweepSpec(sweep="watch", repository="", base="", created_at=1.0, source=WATCH_SOURCE, mngr=self.settings)
        folder.write_spec(spec)
        await look_once(folder, Conditions())
        return folder


@pytest.fixture
def home() -> Iterator[Home]:
    # A tmux socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="sw") as root:
        made = Home(Path(root))
        with cleaned_up(["tmux", "kill-server"], environment=made.environment):
            yield made


async def test_one_poll_shows_waiting_agents_with_questions(home: Home) -> None:
    claude = home.add("asks", type="claude") / "plugin" / "claude" / "anthropic"
    for name in ("sessions", "projects/shop"):
        (claude / name).mkdir(parents=True)
    (claude / "sessions" / "7.json").write_text('{"status": "waiting", "waitingFor": "input needed"}')
    asked = {"type": "assistant", "message": {"content": [ASK]}}
    (claude / "projects" / "shop" / "s.jsonl").write_text(json.dumps(asked) + "\n")
    state = open_sweep(await home.look()).state
    record = state.records["asks"]
    assert (record.state, record.question) == (State.WAITING, "a question is open in its terminal: Which?")
    assert record.needs_terminal


async def test_invalid_agent_file_hides_no_other_agent(home: Home) -> None:
    home.add("whole", type="codex", labels={f"key-{number}": "x" * 500 for number in range(2_000)} | {"project": "z"})
    for name, content in (("cut", '{"id": "agent-cut", "na'), ("list", "[1]"), ("empty", ""), ("nameless", "{}")):
        (folder := home.root / "m" / "agents" / name).mkdir()
        (folder / "data.json").write_text(content)
    records = open_sweep(await home.look()).state.records
    assert list(records) == ["whole"]
    assert records["whole"].traits[:2] == ("type codex", "project z")
    assert len(records["whole"].traits) <= 50
