"""An agent that only asks a model, again when it is refused, and hands in: `python asking_agent.py URL REQUESTS`.

Standard library only: it is run as a `command` agent, and reports a refusal as any agent may.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

STATE = Path(os.environ.get("MNGR_AGENT_STATE_DIR", "."))
CONDITION = STATE / "plugin/swarm/condition.json"
ARCHIVE = STATE / "plugin/swarm/outputs.tar.gz"
AGAIN_AFTER = 3.0


def ask(url: str, number: int) -> None:
    """Ask until there is an answer; as long as there is none, report why."""
    message = {"role": "user", "content": f"{os.getpid()}: question {number}"}
    body = json.dumps({"messages": [message], "tools": [{"name": "none"}]}).encode()
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/v1/messages", body), timeout=600).read()
        except urllib.error.HTTPError as error:
            trouble = "login_lost" if error.code in (401, 403) else "limited"
            report({"trouble": trouble, "words": f"{error.code}, question {number}"})
            time.sleep(AGAIN_AFTER)
        else:
            report({})
            return


def report(condition: dict[str, str]) -> None:
    if condition or CONDITION.exists():
        CONDITION.write_text(json.dumps(condition))


def hand_in() -> None:
    content = json.dumps({"tests_passing_before": True, "tests_passing_after": True}).encode()
    draft = ARCHIVE.with_suffix(".draft")
    with tarfile.open(draft, "w:gz") as packed:
        entry = tarfile.TarInfo("test_output/testing_agent_outcome.json")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    draft.replace(ARCHIVE)


def main() -> None:
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    (STATE / "active").touch()
    for number in range(int(sys.argv[2])):
        ask(sys.argv[1], number)
    hand_in()
    sys.stdin.read()


if __name__ == "__main__":
    main()
