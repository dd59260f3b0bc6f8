"""One sweep over a project of the field, and what is right about it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.processes.ends import marked_processes
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from tests.checkout_state import changes_between, state_of
from tests.field.project import FieldProject, ReadyProject, ids_by_pytest, write_record
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.sweep.sweeping import Program
from tests.waiting import PATIENCE

SWEEP_TIMEOUT: Final = 1500.0
YES: Final = "yes"


@dataclass(frozen=True)
class Row:
    """What a sweep came to: each cell is "yes", or what is wrong."""

    collected: str
    interpreter: str
    results: str
    fix: str
    unchanged: str
    nothing_left: str
    seconds: float = 0.0

    @classmethod
    def of_nothing(cls, reason: str) -> Row:
        """Return the row of a project over which no sweep went."""
        return cls(reason, reason, reason, reason, reason, reason)

    @property
    def faults(self) -> dict[str, str]:
        return {name: cell for name, cell in self.cells if cell != YES}

    @property
    def cells(self) -> list[tuple[str, str]]:
        return [(entry.name, getattr(self, entry.name)) for entry in fields(self) if entry.name != "seconds"]


def sweep_over(project: FieldProject, mngr_path: str, root: Path) -> Row:
    """Make a project below `root`, put its bug into it, sweep over it, and look at what has become of everything."""
    ready = project.make(root / "project")
    put_bug(project, ready)
    red = next(test for test, result in project.results.items() if result in ("impl_fix", "claimed"))
    write_record(root / "records", project.bug, red)
    folder = ready.repository.root / project.folder
    expected = ids_by_pytest(ready.python, folder, project.arguments, root)
    before = [state_of(place) for place in (ready.repository.root, *ready.watched)]
    refs = _refs_of(ready)
    began = time.monotonic()
    with isolate_mngr(mngr_path) as mngr:
        program = Program(folder, {**mngr.environment, "SWARM_MNGR": mngr.settings.path})
        # A busy machine must neither hold agents back nor end them.
        words = ["--agent", "offline", "--records", str(root / "records"), "--speed", "50"]
        words += ["--timeout", "1h", "--ignore-load"]
        done = program.call(
            "run", "--headless", *words, *project.options, "--", *project.arguments, timeout=SWEEP_TIMEOUT
        )
        try:
            opened = Program(ready.repository.root, program.environment).opened()
        except IndexError:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            return Row.of_nothing(f"no sweep: {said[:300]}")
        after = [state_of(place) for place in (ready.repository.root, *ready.watched)]
        changes = [change for old, new in zip(before, after, strict=True) for change in changes_between(old, new)]
        if (now := _refs_of(ready)) != refs:
            changes.append(f"refs {sorted(refs.items() ^ now.items())}")
        return Row(
            collected=_sets(set(expected), {record.test for record in opened.state.tests()}),
            interpreter=_interpreter(project, ready, opened),
            results=_results(project, opened),
            fix=_fix(project, red, opened),
            unchanged="; ".join(changes[:8]) or YES,
            nothing_left="; ".join(_left_behind(program, mngr, ready, opened)) or YES,
            seconds=time.monotonic() - began,
        )


def put_bug(project: FieldProject, ready: ReadyProject) -> None:
    """Commit the bug, so that every copy has it."""
    path = ready.repository.root / project.bug.file
    text = path.read_text(encoding="utf-8")
    assert text.count(project.bug.right) == 1, f"{project.bug.file} has {project.bug.right!r} not once"
    path.write_text(text.replace(project.bug.right, project.bug.wrong), encoding="utf-8")
    ready.repository.commit("A change")


def _refs_of(ready: ReadyProject) -> dict[str, str]:
    """Return the refs that are not the sweep's, and the files of git that say more than refs do."""
    lines = ready.repository.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(line.split(" ", 1) for line in lines)
    return {name: value for name, value in refs.items() if not name.startswith(("refs/swarm", "refs/heads/swarm/"))}


def _sets(expected: set[str], found: set[str]) -> str:
    if expected == found:
        return YES
    return f"missing {sorted(expected - found)[:3]}, unexpected {sorted(found - expected)[:3]}"


def _interpreter(project: FieldProject, ready: ReadyProject, opened: OpenedSweep) -> str:
    wanted = ready.python
    if "--python" in project.options:
        given = project.options[project.options.index("--python") + 1]
        wanted = wanted if given.startswith("/") else given
    foreign = {module for record in opened.state.tests() for module in record.foreign_imports}
    if foreign:
        return f"from the checkout: {sorted(foreign)[:4]}"
    return YES if opened.spec.python == wanted else f"{opened.spec.python} instead of {wanted}"


def _results(project: FieldProject, opened: OpenedSweep) -> str:
    found = {record.test: (record.mark, record.reason) for record in opened.state.tests()}
    wrong = [
        f"{test}: {' '.join(found.get(test, ('not there', '')))} instead of {result}"
        for test, result in project.results.items()
        if found.get(test, ("", ""))[0] != result
    ]
    wrong += [f"{test}: {mark}" for test, (mark, _) in found.items() if test not in project.results and mark != "clean"]
    return "; ".join(wrong[:4]) or YES


def _fix(project: FieldProject, red: str, opened: OpenedSweep) -> str:
    integration = opened.state.integration
    if integration.state != "done" or integration.fixes != 1:
        return f"{integration.state}, {integration.fixes} fixes: {integration.detail}"
    found = list(opened.folder.integrator.rglob(INTEGRATOR_OUTCOME_FILE))
    if not found:
        return "there is no outcome of the integrator"
    outcome: dict[str, Any] = json.loads(found[0].read_text())
    effects = outcome.get("ranking") or []
    if project.is_part_of_pytest:
        reasons = [effect["why"] for effect in effects]
        return YES if ["loaded before the tests" in why for why in reasons] == [True] else f"measured: {effects}"
    measured = [effect for effect in effects if effect.get("is_measured")]
    if not measured:
        return f"not measured: {effects}"
    if red not in measured[0]["turned_green"] or measured[0].get("broken"):
        return f"turned green {measured[0]['turned_green']}, broken {measured[0].get('broken')}"
    return YES


def _left_behind(program: Program, mngr: IsolatedMngr, ready: ReadyProject, opened: OpenedSweep) -> Iterator[str]:
    """Yield what is still there after `clean`."""
    cleaned = Program(ready.repository.root, program.environment).call("clean", "--yes", "--folder")
    if cleaned.returncode:
        yield f"clean: {cleaned.stderr.strip()[-200:]}"
    refs = ready.repository.git("for-each-ref", "--format=%(refname)", *"refs/swarm*/**")
    if refs:
        yield f"refs {refs.split()}"
    if opened.folder.root.exists():
        yield f"folder {opened.folder.root}"
    agents = [path.name for path in (mngr.host_dir / "agents").glob("*")]
    if agents:
        yield f"agents {agents}"
    temporary = Path(opened.spec.temporary) if opened.spec.temporary else None
    if temporary is not None and temporary.exists():
        yield f"temporary folder {temporary}"
    # A watcher of mngr sees within seconds that its agent is gone.
    deadline = time.monotonic() + PATIENCE
    while (others := _programs_of(mngr)) and time.monotonic() < deadline:
        time.sleep(0.2)
    if others:
        yield f"processes {others[:3]}"


def _programs_of(mngr: IsolatedMngr) -> list[str]:
    running = marked_processes("MNGR_HOST_DIR", str(mngr.host_dir))
    return [command for command in running.values() if "tmux" not in command]
