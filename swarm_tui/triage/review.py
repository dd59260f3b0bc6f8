"""One review: a branch, its fixes, the verdicts on them, and the previews of plans.

    review = triage.sweep_review.review_sweep(sweep_folder)          or, without a sweep:
    review = Review.open(repository, base, tip)
    review.warm_up()                             once, from a thread, so that the first preview is quick
    review.fixes                                 rank 1 first; `fix.commit` has author, message, changed paths and sizes
    review.verdict(fix)                          Verdict or None; see also `open_fixes`, `reverted`, `closing_line()`
    review.set_verdict(fix, Verdict.REVERT)      on disk when it returns; `undo()` and `redo()` return what they changed
    review.set_verdicts([(fix, Verdict.KEEP), ...])       several that one `undo()` takes back
    review.refresh()                             reads what other rooms decided; True when something changed
    review.preview()                             what the verdicts lead to (cached; a few ms for each new revert)
    review.preview_of(commits)                   the same for any set of reverts
    review.conflict_when_reverted_alone(fix)     the conflict of reverting just this one, or None
    review.diff(fix), review.net_diff()          lines harmless to show, with their files and hunks (cached)
    review.is_rewritten()                        the branch has another tip than the one under review
    review.branch.tests, review.load_parts()     row 0, the commit of all test and doc fixes, and what it was made of
    review.load_hunks(fix)                       the hunks of a fix, each of which takes a verdict as a fix does

Every call is synchronous and safe from any thread: from an event loop use `await asyncio.to_thread(review.preview)`.
Conflicts are resolved with `triage.resolve`, tests run with `triage.verify`, the plan is applied by `triage.apply`.
Close a review when done: it holds a throw-away object directory and two git processes.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Self

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import DiffReader, read_commits
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.requests import person
from swarm_tui.model.diff import Diff
from swarm_tui.model.fixes import CommitParts, Conflict, Fix, IntegratedBranch, Preview
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import (
    History,
    Verdict,
    VerdictLine,
    fold_verdicts,
    names_other_commits,
    verdict_of_hunks,
)
from swarm_tui.triage import plan
from swarm_tui.triage.hunks import HUNK_PREFIX, CommitHunks, content_of, hunks_as_rows, is_of
from swarm_tui.triage.left_out import read_left_out
from swarm_tui.triage.parts import PART_PREFIX, PartSource, read_parts
from swarm_tui.triage.preview import Previewer
from swarm_tui.triage.ranking import rank_fixes
from swarm_tui.triage.risky_files import read_risks
from swarm_tui.triage.store import OBJECTS_FOLDER, ReviewFolder, VerdictStore, read_resolutions, review_without_sweep

_DIFFS_KEPT: Final = 64


class Review:
    """A branch under review."""

    def __init__(
        self,
        repository: Repository,
        branch: IntegratedBranch,
        store: VerdictStore,
        *,
        tip_name: str,
        outcome: IntegratorOutcome,
        by: str,
        sources: Sequence[PartSource] = (),
    ) -> None:
        self.repository = repository
        self.branch = branch
        self.store = store
        self.outcome = outcome
        """What the integrator reported: what failed to integrate and why, normalisations, escalations."""
        self.by = by
        self.tip_name = tip_name
        resolved = (root / OBJECTS_FOLDER for root in store.folder.roots)
        self.space = ObjectSpace(repository, borrowed=[path for path in resolved if path.is_dir()])
        self._diffs = DiffReader(self.space)
        self.previewer = Previewer(self.space, branch, read_resolutions(store.folder))
        self._sources = sources
        self.parts: CommitParts | None = None
        """What the commit of all test and doc fixes was made of; None until `load_parts` was called."""
        self._hunks: dict[str, tuple[Fix, ...]] = {}
        self._left_out: tuple[Fix, ...] | None = None
        self._contents: dict[str, str] = {}
        self._verdicts: dict[str, VerdictLine] = {}
        self._kept_diffs: OrderedDict[tuple[str, str], Diff] = OrderedDict()
        self._lock = threading.RLock()
        self._parts_lock = threading.Lock()
        self._fold()

    @classmethod
    def open(
        cls,
        repository: Repository,
        base: str,
        tip: str,
        *,
        folder: ReviewFolder | None = None,
        outcome: IntegratorOutcome | None = None,
        agents: Mapping[str, str] | None = None,
        doubts: Iterable[str] = (),
        is_all: bool = False,
        by: str | None = None,
        sources: Sequence[PartSource] = (),
    ) -> Review:
        """Open the review of base..tip. Without a folder it is kept in the user's state folder.

        `agents` maps each branch to the agent that made it; `is_all` makes every commit a fix; `doubts` is what else
        the person should know about the branch.
        """
        base_commit, tip_commit = repository.resolve(base), repository.resolve(tip)
        if base_commit == tip_commit:
            raise UsageError(f"there is no commit between {plain(base, 80)} and {plain(tip, 80)}", "nothing to review")
        commits = read_commits(repository, base_commit, tip_commit)
        base_tree = repository.tree_of(base_commit)
        branch = rank_fixes(
            commits, base=base_commit, base_tree=base_tree, outcome=outcome, agents=agents, is_all=is_all
        )
        branch = replace(branch, doubts=(*doubts, *branch.doubts), risks=read_risks(repository, commits))
        store = VerdictStore(folder or review_without_sweep(base_commit, tip_commit))
        report = outcome or IntegratorOutcome()
        return cls(repository, branch, store, tip_name=tip, outcome=report, by=by or person(), sources=sources)

    def close(self) -> None:
        """End the processes of the review and remove its throw-away objects."""
        self._diffs.close()
        self.space.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Fixes and verdicts

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return self.branch.fixes

    def verdict(self, fix: Fix) -> Verdict | None:
        """Return what was decided about a fix, or None."""
        if any(hunk.id in self._verdicts for hunk in self.known_hunks(fix)):
            return verdict_of_hunks([self.verdict(hunk) for hunk in self.known_hunks(fix)])
        line = self.verdict_line(fix)
        return line.verdict if line else None

    def verdict_line(self, fix: Fix) -> VerdictLine | None:
        """Return who decided when, and why, about a fix, or None.

        A part without a verdict has that of row 0, a hunk that of its fix.
        """
        own = self._verdicts.get(fix.id)
        whole = (self.branch.squashed or "") if fix.id.startswith(PART_PREFIX) else fix.hunk_of
        return self._verdicts.get(whole) if own is None else own

    @property
    def reverted(self) -> frozenset[str]:
        """The commits and hunks that the plan reverts, the parts that it leaves out, the left-out fixes in it."""
        stay = (*(fix for fix in self.fixes if self.verdict(fix) is not Verdict.REVERT), *self.taken)
        hunks = (hunk for fix in stay for hunk in self.known_hunks(fix))
        out = (fix.id for fix in (*self.fixes, *hunks, *self.known_parts) if self.verdict(fix) is Verdict.REVERT)
        return frozenset((*out, *(fix.id for fix in self.taken)))

    @property
    def taken(self) -> tuple[Fix, ...]:
        """The fixes that the integrator left out and the plan takes in, as a whole or in part."""
        return tuple(fix for fix in self.left_out if self.verdict(fix) in (Verdict.KEEP, Verdict.PARTLY))

    @property
    def left_out(self) -> tuple[Fix, ...]:
        """The fixes that the integrator left out; empty until `load_left_out` was called."""
        return self._left_out or ()

    def load_left_out(self) -> tuple[Fix, ...]:
        """Look for the fixes that the integrator left out, once; this takes some ms for each."""
        with self._parts_lock:
            if self._left_out is None:
                tips = {source.branch: (source.tip, source.test) for source in self._sources}
                found = read_left_out(self.repository, self.branch, self.outcome, tips)
                with self._lock:
                    self._left_out = found
                    self.previewer.use_left_out(found)
                    self._fold()
            return self._left_out

    @property
    def known_parts(self) -> tuple[Fix, ...]:
        """The parts of row 0, as far as they were loaded."""
        return self.parts.parts if self.parts is not None else ()

    @property
    def open_parts(self) -> tuple[Fix, ...]:
        """The parts that are neither kept nor left out."""
        return tuple(part for part in self.known_parts if self.verdict(part) not in (Verdict.KEEP, Verdict.REVERT))

    def load_parts(self) -> CommitParts:
        """Take row 0 apart, once; this takes some ms for each part."""
        # Under a lock of its own: diffs are read meanwhile.
        with self._parts_lock:
            if self.parts is None:
                parts = read_parts(self.space, self._diffs, self.branch, self.outcome, self._sources)
                self.space.retain()
                with self._lock:
                    self.parts = parts
                    self.previewer.use_parts(parts)
                    self._fold()
            return self.parts

    def known_hunks(self, fix: Fix) -> tuple[Fix, ...]:
        """Return the hunks of a fix, as far as they were loaded."""
        return self._hunks.get(fix.id, ())

    def load_hunks(self, fix: Fix) -> tuple[Fix, ...]:
        """Take a fix apart, once; this takes about a ms for each hunk."""
        with self._parts_lock:
            if fix.id not in self._hunks:
                hunks = CommitHunks.read(self.space, self._diffs, fix.commit)
                self.space.retain()
                rows = hunks_as_rows(self.space, fix, hunks)
                with self._lock:
                    self._hunks[fix.id] = rows
                    self.previewer.use_hunks(hunks)
                    self._fold()
            return self._hunks[fix.id]

    def load_judged_hunks(self) -> None:
        """Take those fixes apart that have verdicts on their hunks; all of them when some are on another branch."""
        judged = {line.commit for line in self.store.lines if line.commit.startswith(HUNK_PREFIX)}
        fixes = (*self.fixes, *self.left_out)
        here = [fix for fix in fixes if any(is_of(hunk, fix.id) for hunk in judged)]
        is_all_here = all(any(is_of(hunk, fix.id) for fix in here) for hunk in judged)
        for fix in here if is_all_here else fixes:
            self.load_hunks(fix)

    def find(self, commit: str) -> Fix | None:
        """Return the fix, the hunk, the part or row 0 of that id; None for any other."""
        row = self.branch.tests
        if row is not None and commit == row.id:
            return row
        hunks = (hunk for rows in self._hunks.values() for hunk in rows)
        found = self.branch.find(commit) or next((fix for fix in (*self.left_out, *hunks) if fix.id == commit), None)
        return found or (self.parts.find(commit) if self.parts is not None else None)

    @property
    def open_fixes(self) -> tuple[Fix, ...]:
        """The fixes that are neither kept nor reverted, nor kept in part."""
        return tuple(fix for fix in self.fixes if self.verdict(fix) in (None, Verdict.LATER))

    def closing_line(self) -> str:
        """Return the line for scripts: "reviewed 9 of 11, 2 reverted, 2 open"."""
        verdicts = {fix.id: verdict.value for fix in self.fixes if (verdict := self.verdict(fix)) is not None}
        return plan.closing_line(verdicts, [fix.id for fix in self.fixes])

    def set_verdict(self, fix: Fix, verdict: Verdict, why: str = "") -> None:
        """Record a verdict; it is on disk when this returns. Clearing a fix that has none records nothing."""
        self.set_verdicts([(fix, verdict)], why)

    def set_verdicts(self, verdicts: Iterable[tuple[Fix, Verdict]], why: str = "") -> None:
        """Record verdicts as one action, which is undone as a whole."""
        given = [
            self._line(fix.id, self.content(fix), verdict, why)
            for fix, verdict in verdicts
            if verdict is not Verdict.CLEAR or self.verdict(fix) is not None
        ]
        action = uuid.uuid4().hex if len(given) > 1 else ""
        self._append([line.model_copy(update={"action": action}) for line in given])

    def undo(self) -> tuple[Fix, ...]:
        """Undo this person's last action and return the fixes whose verdicts are back; none when there is none."""
        changes = self._history().step_back()
        return self._step([self._line(each.commit, each.content, each.before, step="undo") for each in changes])

    def redo(self) -> tuple[Fix, ...]:
        """Record again the verdicts that were undone last and return their fixes; none when there is none."""
        changes = self._history().step_forward()
        return self._step(
            [self._line(each.commit, each.content, each.after, each.why, step="redo") for each in changes]
        )

    def refresh(self) -> bool:
        """Read the verdicts that were given elsewhere; return whether something changed."""
        with self._lock:
            if not self.store.refresh():
                return False
            before = self._verdicts
            self._fold()
            return before != self._verdicts

    def content(self, fix: Fix) -> str:
        """Return a key of what a fix changes, which stays the same when the fix is moved."""
        with self._lock:
            known = self._contents.get(fix.id)
            if known is None and fix.id.startswith(PART_PREFIX):
                # The id of a part says what it changes.
                known = self._contents[fix.id] = fix.id
            if known is None and fix.hunk_of:
                known = self._contents[fix.id] = content_of(fix.id)
            if known is None:
                known = self._diffs.content_key(fix.commit.parent_tree, fix.commit.tree)
                self._contents[fix.id] = known
            return known

    def _history(self) -> History:
        with self._lock:
            commits = [fix.id for fix in self._all_rows]
            inherited = self.store.inherited
            return History(
                self.store.lines, commits, self._contents, by=self.by, inherited=inherited, fix_of=self._fix_of
            )

    @property
    def _fix_of(self) -> dict[str, str]:
        return {hunk.id: fix for fix, hunks in self._hunks.items() for hunk in hunks}

    def _line(
        self, commit: str, content: str, verdict: Verdict, why: str = "", step: Literal["give", "undo", "redo"] = "give"
    ) -> VerdictLine:
        return VerdictLine(at=0, by=self.by, commit=commit, content=content, verdict=verdict, why=why, step=step)

    def _step(self, lines: Sequence[VerdictLine]) -> tuple[Fix, ...]:
        self._append(lines)
        return tuple(fix for line in lines if (fix := self.find(line.commit)) is not None)

    def _append(self, lines: Sequence[VerdictLine]) -> None:
        if lines:
            with self._lock:
                self.store.append(lines)
                self._fold()

    def _fold(self) -> None:
        lines = self.store.lines
        rows = self._all_rows
        commits = frozenset(fix.id for fix in rows)
        # A part or hunk says in its id what it changes.
        whole = [line for line in lines if not line.commit.startswith((PART_PREFIX, HUNK_PREFIX))]
        is_elsewhere = names_other_commits(whole, commits)
        for fix in rows:
            if is_elsewhere or fix.hunk_of or fix.id.startswith(PART_PREFIX):
                self.content(fix)
        self._verdicts = fold_verdicts(lines, commits, self._contents, self._fix_of)

    @property
    def _all_rows(self) -> tuple[Fix, ...]:
        row = self.branch.tests
        hunks = (hunk for rows in self._hunks.values() for hunk in rows)
        return (*((row,) if row is not None else ()), *self.known_parts, *self.fixes, *hunks, *self.left_out)

    # Previews and diffs

    def warm_up(self) -> None:
        """Start the processes of git and read the first diff; to be called once, while the first frame is drawn."""
        self.space.merger.warm_up(self.branch.tip_tree)
        self.load_left_out()
        if self.fixes:
            self.diff(self.fixes[0])

    def preview(self) -> Preview:
        self.load_left_out()
        self.load_judged_hunks()
        if self._has_verdicts_on_parts():
            self.load_parts()
        return self.preview_of(self.reverted)

    def _has_verdicts_on_parts(self) -> bool:
        row = self.branch.tests
        return row is not None and (
            self.verdict(row) is Verdict.REVERT or any(line.commit.startswith(PART_PREFIX) for line in self.store.lines)
        )

    def preview_of(self, reverted: Collection[str]) -> Preview:
        """Return the preview of reverting exactly these commits and hunks, and of leaving out these parts."""
        if self.branch.tests is not None and self.branch.tests.id in reverted:
            self.load_parts()
        return self.previewer.preview(reverted)

    def conflict_when_reverted_alone(self, fix: Fix) -> Conflict | None:
        """Return the conflict of reverting just this fix, or None when it can be reverted alone."""
        return next(iter(self.preview_of({fix.id}).conflicts), None)

    def diff(self, fix: Fix) -> Diff:
        return self.diff_of(fix.commit.parent_tree, fix.commit.tree)

    def known_diff(self, fix: Fix) -> Diff | None:
        """Return the diff of a fix at once, or None when it has not been read yet."""
        return self._kept_diffs.get((fix.commit.parent_tree, fix.commit.tree))

    def net_diff(self, preview: Preview | None = None) -> Diff:
        """Return what the plan as a whole does to the base; of a plan that does not build, an empty diff."""
        shown = preview or self.preview()
        return self.diff_of(self.branch.base_tree, shown.tree) if shown.tree else Diff((), ())

    def diff_of(self, old: str, new: str) -> Diff:
        """Return the diff between two trees."""
        with self._lock:
            known = self._kept_diffs.get((old, new))
            if known is None:
                known = self._kept_diffs[old, new] = self._diffs.diff(old, new)
                if len(self._kept_diffs) > _DIFFS_KEPT:
                    self._kept_diffs.popitem(last=False)
            else:
                self._kept_diffs.move_to_end((old, new))
            return known

    def raw_diff_of(self, old: str, new: str) -> bytes:
        """Return the diff between two trees as git writes it."""
        raw, is_truncated = self._diffs.raw_diff(old, new)
        if is_truncated:
            raise SwarmError("the diff is too large to be printed", "apply the plan, then `git diff` prints it")
        return raw

    def is_rewritten(self) -> bool:
        """Return whether the branch has another tip than the one under review."""
        return self.repository.find(self.tip_name) != self.branch.tip
