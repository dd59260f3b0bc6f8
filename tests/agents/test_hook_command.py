"""The command line with which an agent's program runs our hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from swarm_tui.agents import hook


def test_hook_command_records_an_event(tmp_path: Path) -> None:
    command = hook.hook_settings(sys.executable, str(hook.__file__))["hooks"]["Stop"][0]["hooks"][0]["command"]
    event = json.dumps({"hook_event_name": "Stop", "last_assistant_message": "Done."})
    variables = {**os.environ, "MNGR_AGENT_STATE_DIR": str(tmp_path)}
    done = subprocess.run(["sh", "-c", command], input=event, env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = (tmp_path / hook.EVENTS_PATH).read_text().splitlines()
    assert json.loads(line)["last_assistant_message"] == "Done."
