"""Opens the review of a sweep: its integrated branch, the integrator's report, and who made which branch."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import UsageError
from swarm_tui.journal.doubts import doubts_of
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.model.outcome import (
    INTEGRATOR_OUTCOME_FILE,
    OUTCOME_SIZE_LIMIT,
    BrokenReport,
    IntegratorOutcome,
    parse_integrator_outcome,
)
from swarm_tui.model.text import plain
from swarm_tui.regular_file import open_regular
from swarm_tui.triage.parts import PartSource
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import review_of_sweep


def review_sweep(folder: SweepFolder, *, is_all: bool = False, by: str | None = None) -> Review:
    """Open the review of a sweep's integrated branch; of a tutorial's sweep each block's commit is a fix."""
    opened = open_sweep(folder)
    integration = opened.state.integration
    if not (integration.branch or integration.tip):
        raise _not_integrated(opened)
    repository = _repository_of(folder, Path(opened.spec.repository))
    outcome, doubts = read_integrator_outcome(folder)
    doubts.extend(doubts_of(opened.state))
    tip = integration.branch or integration.tip
    found = repository.find(tip)
    if found is None:
        if repository.find(integration.tip or tip) is None:
            raise UsageError(
                f"the integrated branch {plain(tip, 80)} is gone from {repository.root}",
                f"`swarm-tui integrate {folder.name}` makes it again",
            )
        doubts.append(f"the branch {plain(tip, 80)} is gone; its last commit is reviewed")
        tip = integration.tip
    elif integration.tip and found != integration.tip:
        doubts.append(f"the branch {plain(tip, 80)} has moved since it was integrated")
    return Review.open(
        repository,
        opened.spec.base,
        tip,
        folder=review_of_sweep(folder.root),
        outcome=outcome,
        agents={record.branch: record.agent for record in opened.state.records.values() if record.branch},
        doubts=doubts,
        is_all=is_all or opened.spec.kind != "tests",
        by=by,
        sources=[
            PartSource(record.branch, record.agent, record.test, record.harvest.tip)
            for record in opened.state.records.values()
            if record.branch
        ],
    )


def _not_integrated(opened: OpenedSweep) -> UsageError:
    """Return why there is nothing to review, and what can be done about it."""
    name, integration = opened.folder.name, opened.state.integration
    again = f"`swarm-tui integrate {name}` does it"
    match integration.state:
        case "done":
            return UsageError(
                f"sweep {name} has no fixes: no agent made a change that may be taken",
                f"`swarm-tui status {name}` says how each test ended",
            )
        case "integrating" if opened.has_running_engine:
            return UsageError(f"sweep {name} is being integrated", f"`swarm-tui open {name}` shows when it is done")
        case "failed":
            return UsageError(f"sweep {name} could not be integrated", plain(integration.detail) or again)
        case _:
            return UsageError(f"sweep {name} has not been integrated yet", again)


def read_integrator_outcome(folder: SweepFolder) -> tuple[IntegratorOutcome | None, list[str]]:
    """Return the integrator's report, or None and why; a branch can be reviewed without it."""
    path = folder.integrator / INTEGRATOR_OUTCOME_FILE
    try:
        with open_regular(path) as file:
            return parse_integrator_outcome(file.read(OUTCOME_SIZE_LIMIT + 1)), []
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"{path.name} cannot be read: {error.strerror or error}"]
    except BrokenReport as error:
        return None, [f"the integrator's report is left aside: {plain(str(error), 300)}"]


def _repository_of(folder: SweepFolder, recorded: Path) -> Repository:
    """Open the repository a sweep was made in; one that came from another machine is looked for around its folder."""
    for place in (recorded, folder.root, Path.cwd()):
        if place.is_dir():
            try:
                return Repository.open(place)
            except UsageError:
                continue
    raise UsageError(f"the repository of sweep {folder.name} is not here", f"it was {plain(str(recorded), 200)}")
