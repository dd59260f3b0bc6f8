"""Integrated branches from generated work of agents, and cherry-picks of their commits with real git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.git_project import GitProject
from tests.review.histories import Edit, Files, apply_change, first_files, import_of, without_clashes


@dataclass(frozen=True)
class Picked:
    """An integrated branch of generated work, on `main` of the project."""

    project: GitProject
    base: str
    parts: tuple[str, ...]
    """The agents' commits in the squashed commit, in order."""
    squashed: str
    fixes: tuple[str, ...]


def write_integrated(folder: Path, parts: list[list[Edit]], fixes: list[list[Edit]], renames: str) -> Picked:
    """Commit each agent's work on the base, squash the test commits, and cherry-pick the fixes on top."""
    project = GitProject(folder / "project")
    project.git("config", "merge.directoryRenames", renames)
    base, *made = _write_work(project, [*parts, *fixes])
    project.git("reset", "--quiet", "--hard", base)
    taken = [commit for commit in made[: len(parts)] if pick_for_real(project, commit)]
    project.git("reset", "--quiet", "--soft", base)
    project.git("commit", "--quiet", "--allow-empty", "-m", "[TEST/DOC] all of them")
    squashed = project.git("rev-parse", "HEAD")
    done = []
    for commit in made[len(parts) :]:
        if pick_for_real(project, commit):
            project.git("commit", "--quiet", "--amend", "--allow-empty", "-m", f"[FIX_IMPL] {commit}")
            done.append(project.git("rev-parse", "HEAD"))
    return Picked(project, base, tuple(taken), squashed, tuple(done))


def _write_work(project: GitProject, work: list[list[Edit]]) -> list[str]:
    """Commit the base and the work of each agent on it; return the commits, starting with the base."""
    stream = bytearray()
    base = first_files()
    states = [base, *(_changed(base, changes) for changes in work)]
    for number, files in enumerate(states):
        stream += f"commit refs/heads/{'main' if number == 0 else f'agents/{number}'}\nmark :{number + 1}\n".encode()
        stream += f"committer Ada Lovelace <ada@example.org> {1_700_000_000 + number} +0000\n".encode()
        stream += b"data 4\nwork" + (b"\nfrom :1" if number else b"") + b"\n" + import_of(files)
    project.git("fast-import", "--quiet", "--date-format=raw", stdin=bytes(stream))
    names = ["main", *(f"agents/{number}" for number in range(1, len(states)))]
    return project.git("rev-parse", *names).split("\n")


def _changed(files: Files, changes: list[Edit]) -> Files:
    for change in changes:
        files = without_clashes(apply_change([files], files, change))
    return files


def pick_for_real(project: GitProject, commit: str) -> bool:
    """Cherry-pick a commit in the work tree. If git stops, restore the work tree and return False."""
    if project.run("cherry-pick", "--allow-empty", "--keep-redundant-commits", commit).returncode == 0:
        return True
    project.git("cherry-pick", "--abort", codes=None)
    project.git("reset", "--quiet", "--hard")
    project.git("clean", "--quiet", "-fdx")
    return False


def pick_rest_for_real(scratch: Path, picked: Picked, left_out: set[str], renames: str) -> tuple[str, set[str]]:
    """Cherry-pick all but some commits in a clone of the base; return the tree and the conflicting commits."""
    picked.project.git("clone", "--quiet", "--shared", ".", str(scratch))
    clone = GitProject(scratch)
    clone.git("config", "merge.directoryRenames", renames)
    clone.git("reset", "--quiet", "--hard", picked.base)
    rest = [commit for commit in (*picked.parts, *picked.fixes) if commit not in left_out]
    stopped = {commit for commit in rest if not pick_for_real(clone, commit)}
    return clone.git("rev-parse", "HEAD^{tree}"), stopped
