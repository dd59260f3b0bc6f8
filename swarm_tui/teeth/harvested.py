"""What an agent's own commits say of its test: whether it became weaker, by its source alone."""

from __future__ import annotations

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import SwarmError
from swarm_tui.model.teeth import CERTAIN, LIKELY
from swarm_tui.teeth.signs import signs_of
from swarm_tui.teeth.sources import changed_tests
from swarm_tui.testing.traced import without_case


def why_weaker(repository: Repository, base: str, tip: str, file: str, test: str) -> str:
    """Return in words how a test became weaker between two commits, or "" when its source does not tell."""
    try:
        before, after = (repository.read_file(commit, file) for commit in (base, tip))
    except SwarmError:
        return ""
    name = without_case(test).partition("::")[2]
    for changed in changed_tests({file: before}, {file: after}):
        if changed.before is not None and changed.before.name == name:
            kinds = dict.fromkeys(sign.kind for sign in signs_of(changed) if sign.kind in CERTAIN | LIKELY)
            return ", ".join(kind.value for kind in kinds)
    return ""
