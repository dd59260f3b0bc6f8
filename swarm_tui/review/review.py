"""One review: branch, changes, verdicts, previews."""

from __future__ import annotations

import posixpath
import re
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, Self

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import DiffReader, read_commits
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.requests import user_name
from swarm_tui.model.commits import FIX_PREFIX, Commit, Diff, FileChange
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain
from swarm_tui.review.changes import AgentBranch, Change, Conflict, IntegratedBranch, Kind, Preview, TestChanges
from swarm_tui.review.hunks import HUNK_PREFIX, CommitHunks, content_of, hunks_as_rows, is_of
from swarm_tui.review.ranking import branch_with_fixes
from swarm_tui.review.stack import Stack
from swarm_tui.review.test_changes import read_left_out, read_test_changes
from swarm_tui.review.verdicts import (
    OBJECTS_FOLDER,
    PART_PREFIX,
    History,
    ReviewFolder,
    Verdict,
    VerdictFold,
    VerdictLine,
    VerdictStore,
    closing_line,
    fold_verdicts,
    read_resolutions,
    review_without_sweep,
    verdict_of_hunks,
)
from swarm_tui.testing.measuring_files import ChangedFiles, why_not_measured

LINK_MODE: Final = "120000"
_SUBMODULE_MODE: Final = "160000"
_LINKS_READ: Final = 200
_CLOCK_SKEW: Final = 86_400.0
"""The allowed clock difference of another host, in seconds."""
_KINDS: Final = (
    ("git reads it automatically", r"(?:.*/)?\.(?:gitattributes|gitmodules|mailmap|gitconfig|lfsconfig)"),
    (
        "CI runs it",
        r"\.(?:github/(?:workflows|actions)|gitlab|circleci|buildkite|woodpecker|ci|drone)/.*"
        r"|\.(?:gitlab-ci|travis|drone|appveyor|woodpecker)\.ya?ml"
        r"|(?:azure-pipelines|bitbucket-pipelines|appveyor|cloudbuild)\.ya?ml|(?:.*/)?jenkinsfile",
    ),
    (
        "a git hook manager runs it",
        r"\.(?:husky|githooks|lefthook)/.*|\.pre-commit-(?:config|hooks)\.ya?ml|\.?lefthook(?:-local)?\.(?:ya?ml|toml)"
        r"|\.overcommit\.yml|\.?simple-git-hooks\..*",
    ),
    (
        "an editor, a shell or a coding agent reads it automatically",
        r"(?:.*/)?\.(?:vscode|devcontainer|idea|claude|cursor)/.*|(?:.*/)?\.(?:mcp\.json|envrc|cursorrules)",
    ),
    ("every Python process imports it", r"(?:.*/)?(?:sitecustomize|usercustomize)\.py|.*\.pth"),
)
_PATTERNS: Final = tuple((why, re.compile(pattern, re.IGNORECASE)) for why, pattern in _KINDS)


def read_risks(repository: Repository, commits: Sequence[Commit]) -> dict[str, tuple[str, ...]]:
    """Return sentences about risky files of each commit, without commits that have none."""
    changed = [change for commit in commits for change in commit.changes]
    links = [change.new_id for change in changed if change.new_mode == LINK_MODE][:_LINKS_READ]
    targets = {link: repository.run("cat-file", "blob", link).text for link in dict.fromkeys(links)}
    found = {}
    for commit in commits:
        risks = tuple(risk for change in commit.changes if (risk := risk_of(change, targets.get(change.new_id, "/"))))
        if risks:
            found[commit.id] = risks
    return found


@dataclass(frozen=True, slots=True)
class ExpectedOrigin:
    """The expected author and dates of commits of a sweep. An agent can write any name and date into a commit."""

    name: str
    email: str
    since: float

    def doubts_of(self, commit: Commit, now: float) -> tuple[str, ...]:
        """Return sentences about an unexpected author or date of a commit."""
        doubts = []
        if self.email and commit.author_email != self.email:
            author = plain(f"{commit.author_name} <{commit.author_email}>", 100)
            doubts.append(f"the agent set its author to {author}, not {plain(f'{self.name} <{self.email}>', 100)}")
        seconds = commit.authored.partition(" ")[0]
        if not (seconds.isdigit() and self.since - _CLOCK_SKEW <= int(seconds) <= now + _CLOCK_SKEW):
            doubts.append(f"the agent dated it {_day_of(seconds)}, which is outside of the sweep")
        return tuple(doubts)


def _day_of(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return plain(f"@{seconds}", 40)


def read_doubts(repository: Repository, commits: Sequence[Commit]) -> dict[str, tuple[str, ...]]:
    """Return how commits may tamper with test results, without commits that do not."""
    changed = [ChangedFiles(commit.changes, commit.subject.lstrip().startswith(FIX_PREFIX)) for commit in commits]
    found = zip(commits, why_not_measured(repository, changed), strict=True)
    return {commit.id: doubts for commit, doubts in found if doubts}


def risk_of(change: FileChange, target: str = "") -> str:
    """Return the risk of a changed file, or ""; `target` is the target of a symbolic link."""
    path = plain(change.path, 100)
    if change.status == "D":
        return ""
    if change.new_mode == LINK_MODE and leads_out(change.path, target):
        return f"{path} is a symbolic link to {plain(target, 100)}, outside of the repository"
    if change.new_mode == _SUBMODULE_MODE:
        return f"{path} is a submodule: its code comes from another repository"
    return next((f"{path}: {why}" for why, pattern in _PATTERNS if pattern.fullmatch(change.path)), "")


def leads_out(path: str, target: str) -> bool:
    """Return whether a symbolic link in the tree leads outside of it or into `.git`."""
    if target.startswith(("/", "~")) or "\0" in target or not target:
        return True
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)).lower()
    return place == ".." or place.startswith("../") or place.split("/")[0] == ".git"


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
        outcome: IntegratorReport,
        by: str,
        sources: Sequence[AgentBranch] = (),
    ) -> None:
        self.repository = repository
        self.branch = branch
        self.store = store
        self.outcome = outcome
        """The integrator's report: commits that failed to integrate with reasons, normalizations, escalations."""
        self.by = by
        self.tip_name = tip_name
        resolved = (root / OBJECTS_FOLDER for root in store.folder.roots)
        self.space = ObjectSpace(repository, borrowed=[path for path in resolved if path.is_dir()])
        self._diffs = DiffReader(self.space)
        self.stack = Stack(self.space, branch, read_resolutions(store.folder))
        self._sources = sources
        self.parts: TestChanges | None = None
        """The test changes in the commit of all test and doc fixes; None before `load_parts` is called."""
        self._hunks: dict[str, tuple[Change, ...]] = {}
        self._left_out: tuple[Change, ...] | None = None
        self._contents: dict[str, str] = {}
        self._folded = VerdictFold({})
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
        outcome: IntegratorReport | None = None,
        doubts: Iterable[str] = (),
        is_all: bool = False,
        by: str | None = None,
        sources: Sequence[AgentBranch] = (),
        origin: ExpectedOrigin | None = None,
    ) -> Review:
        """Open the review of base..tip. Without a folder, it is stored in the user's state folder.

        `is_all` treats every commit as a fix. `doubts` are more warnings about the branch. `sources` are the agents'
        branches. Commits with an unexpected `origin` are marked as risky.
        """
        base_commit, tip_commit = repository.resolve(base), repository.resolve(tip)
        if base_commit == tip_commit:
            raise UsageError(f"no commits between {plain(base, 80)} and {plain(tip, 80)}", "name another branch")
        commits = read_commits(repository, base_commit, tip_commit)
        base_tree = repository.tree_of(base_commit)
        agents = {source.branch: source.agent for source in sources}
        branch = branch_with_fixes(
            commits, base=base_commit, base_tree=base_tree, outcome=outcome, agents=agents, is_all=is_all
        )
        risks, not_measured = read_risks(repository, commits), read_doubts(repository, commits)
        if origin is not None:
            found = {commit.id: origin.doubts_of(commit, time.time()) for commit in commits}
            risks |= {name: (*doubts, *risks.get(name, ())) for name, doubts in found.items() if doubts}
        branch = replace(branch, doubts=(*doubts, *branch.doubts), risks=risks, not_measured=not_measured)
        store = VerdictStore(folder or review_without_sweep(base_commit, tip_commit))
        report = outcome or IntegratorReport()
        return cls(repository, branch, store, tip_name=tip, outcome=report, by=by or user_name(), sources=sources)

    def close(self) -> None:
        """Stop the processes of the review and remove its temporary objects."""
        self._diffs.close()
        self.space.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Fixes and verdicts

    @property
    def fixes(self) -> tuple[Change, ...]:
        return self.branch.fixes

    def verdict(self, fix: Change) -> Verdict | None:
        """Return the verdict on a fix, or None."""
        if any(hunk.id in self._verdicts for hunk in self.known_hunks(fix)):
            return verdict_of_hunks([self.verdict(hunk) for hunk in self.known_hunks(fix)])
        line = self.verdict_line(fix)
        return line.verdict if line else None

    def verdict_line(self, fix: Change) -> VerdictLine | None:
        """Return the verdict on a fix with author, time and reason, or None.

        A test change without a verdict inherits that of row 0, and a hunk that of its fix.
        """
        own = self._verdicts.get(fix.id)
        whole = (self.branch.squashed or "") if fix.kind is Kind.TEST_CHANGE else fix.hunk_of
        return self._verdicts.get(whole) if own is None else own

    @property
    def reverted(self) -> frozenset[str]:
        """The reverted commits and hunks, left-out test changes and included left-out fixes of the plan."""
        stay = (*(fix for fix in self.fixes if self.verdict(fix) is not Verdict.REVERT), *self.taken)
        hunks = (hunk for fix in stay for hunk in self.known_hunks(fix))
        out = (fix.id for fix in (*self.fixes, *hunks, *self.known_parts) if self.verdict(fix) is Verdict.REVERT)
        return frozenset((*out, *(fix.id for fix in self.taken)))

    @property
    def taken(self) -> tuple[Change, ...]:
        """The fixes that the integrator left out and the plan includes, completely or partly."""
        return tuple(fix for fix in self.left_out if self.verdict(fix) in (Verdict.KEEP, Verdict.PARTLY))

    @property
    def left_out(self) -> tuple[Change, ...]:
        """The fixes that the integrator left out; empty before `load_left_out` is called."""
        return self._left_out or ()

    def load_left_out(self) -> tuple[Change, ...]:
        """Find the fixes that the integrator left out, once. This takes a few ms for each."""
        with self._parts_lock:
            if self._left_out is None:
                sources = {source.branch: source for source in self._sources}
                found = read_left_out(self.repository, self.branch, self.outcome, sources)
                with self._lock:
                    self._left_out = found
                    self.stack.use_left_out(found)
                    self._fold()
            return self._left_out

    @property
    def known_parts(self) -> tuple[Change, ...]:
        """The test changes of row 0 that were loaded."""
        return self.parts.parts if self.parts is not None else ()

    @property
    def open_parts(self) -> tuple[Change, ...]:
        """The test changes that are neither kept nor left out."""
        return tuple(part for part in self.known_parts if self.verdict(part) not in (Verdict.KEEP, Verdict.REVERT))

    def load_parts(self) -> TestChanges:
        """Split row 0 into test changes, once. This takes a few ms for each."""
        # Uses a separate lock, so that diffs can be read at the same time.
        with self._parts_lock:
            if self.parts is None:
                parts = read_test_changes(self.space, self._diffs, self.branch, self.outcome, self._sources)
                self.space.retain()
                with self._lock:
                    self.parts = parts
                    self.stack.use_parts(parts)
                    self._fold()
            return self.parts

    def known_hunks(self, fix: Change) -> tuple[Change, ...]:
        """Return the hunks of a fix that were loaded."""
        return self._hunks.get(fix.id, ())

    def load_hunks(self, fix: Change) -> tuple[Change, ...]:
        """Split a fix into hunks, once. This takes about 1 ms for each hunk."""
        with self._parts_lock:
            if fix.id not in self._hunks:
                hunks = CommitHunks.read(self.space, self._diffs, fix.commit)
                self.space.retain()
                rows = hunks_as_rows(self.space, fix, hunks)
                with self._lock:
                    self._hunks[fix.id] = rows
                    self.stack.use_hunks(hunks)
                    self._fold()
            return self._hunks[fix.id]

    def load_judged_hunks(self) -> None:
        """Split the fixes that have verdicts on hunks; all fixes if such a verdict is from another branch."""
        judged = {line.commit for line in self.store.lines if line.commit.startswith(HUNK_PREFIX)}
        fixes = (*self.fixes, *self.left_out)
        here = [fix for fix in fixes if any(is_of(hunk, fix.id) for hunk in judged)]
        is_all_here = all(any(is_of(hunk, fix.id) for fix in here) for hunk in judged)
        for fix in here if is_all_here else fixes:
            self.load_hunks(fix)

    def find(self, commit: str) -> Change | None:
        """Return the fix, hunk, test change or row 0 with this id; None if there is none."""
        row = self.branch.tests
        if row is not None and commit == row.id:
            return row
        hunks = (hunk for rows in self._hunks.values() for hunk in rows)
        found = self.branch.find(commit) or next((fix for fix in (*self.left_out, *hunks) if fix.id == commit), None)
        return found or (self.parts.find(commit) if self.parts is not None else None)

    @property
    def open_fixes(self) -> tuple[Change, ...]:
        """The fixes without a verdict on the fix or on its hunks."""
        return tuple(fix for fix in self.fixes if self.verdict(fix) in (None, Verdict.LATER))

    def closing_line(self) -> str:
        """Return the line for scripts: "reviewed 9 of 11, 2 reverted, 2 open"."""
        verdicts = {fix.id: verdict.value for fix in self.fixes if (verdict := self.verdict(fix)) is not None}
        return closing_line(verdicts, [fix.id for fix in self.fixes])

    def set_verdict(self, fix: Change, verdict: Verdict, why: str = "") -> None:
        """Record a verdict on disk. Clearing a fix without a verdict records nothing."""
        self.set_verdicts([(fix, verdict)], why)

    def set_verdicts(self, verdicts: Iterable[tuple[Change, Verdict]], why: str = "") -> None:
        """Record verdicts as one action, which is undone as a whole."""
        lines = [
            self._line(fix.id, self.content(fix), verdict, why)
            for fix, verdict in verdicts
            if verdict is not Verdict.CLEAR or self.verdict(fix) is not None
        ]
        action = uuid.uuid4().hex if len(lines) > 1 else ""
        self._append([line.model_copy(update={"action": action}) for line in lines])

    def undo(self) -> tuple[Change, ...]:
        """Undo the user's last action and return its fixes; empty if there is nothing to undo."""
        changes = self._history().step_back()
        return self._step([self._line(each.commit, each.content, each.before, step="undo") for each in changes])

    def redo(self) -> tuple[Change, ...]:
        """Redo the last undone action and return its fixes; empty if there is nothing to redo."""
        changes = self._history().step_forward()
        return self._step(
            [self._line(each.commit, each.content, each.after, each.why, step="redo") for each in changes]
        )

    def refresh(self) -> bool:
        """Read verdicts from other processes; return whether something changed."""
        with self._lock:
            if not self.store.refresh():
                return False
            before = self._verdicts
            self._fold()
            return before != self._verdicts

    def content(self, fix: Change) -> str:
        """Return a key of the changes of a fix, which stays the same if the fix is moved."""
        with self._lock:
            key = self._contents.get(fix.id)
            if key is None and fix.kind is Kind.TEST_CHANGE:
                # The id of a test change already identifies its content.
                key = self._contents[fix.id] = fix.id
            if key is None and fix.kind is Kind.HUNK:
                key = self._contents[fix.id] = content_of(fix.id)
            if key is None:
                key = self._diffs.content_key(fix.commit.parent_tree, fix.commit.tree)
                self._contents[fix.id] = key
            return key

    def _history(self) -> History:
        self.refresh()
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

    def _step(self, lines: Sequence[VerdictLine]) -> tuple[Change, ...]:
        self._append(lines)
        return tuple(fix for line in lines if (fix := self.find(line.commit)) is not None)

    def _append(self, lines: Sequence[VerdictLine]) -> None:
        if lines:
            with self._lock:
                for line in self.store.append(lines):
                    self._folded.add(line.commit, line)
                self._verdicts = self._folded.lines()

    def _fold(self) -> None:
        lines = self.store.lines
        rows = self._all_rows
        commits = frozenset(fix.id for fix in rows)
        # The id of a test change or hunk already identifies its content.
        whole = [line for line in lines if not line.commit.startswith((PART_PREFIX, HUNK_PREFIX))]
        is_elsewhere = any(line.commit not in commits for line in whole)
        for fix in rows:
            if is_elsewhere or fix.kind in (Kind.HUNK, Kind.TEST_CHANGE):
                self.content(fix)
        self._folded = fold_verdicts(lines, commits, self._contents, self._fix_of)
        self._verdicts = self._folded.lines()

    @property
    def _all_rows(self) -> tuple[Change, ...]:
        row = self.branch.tests
        hunks = (hunk for rows in self._hunks.values() for hunk in rows)
        return (*((row,) if row is not None else ()), *self.known_parts, *self.fixes, *hunks, *self.left_out)

    # Previews and diffs

    def warm_up(self) -> None:
        """Start the git processes and read the first diff. Call it once while the first frame is drawn."""
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
        """Return the preview of reverting these commits and hunks and leaving out these test changes."""
        if self.branch.tests is not None and self.branch.tests.id in reverted:
            self.load_parts()
        return self.stack.preview(reverted)

    def conflict_when_reverted_alone(self, fix: Change) -> Conflict | None:
        """Return the conflict of reverting only this fix, or None."""
        return next(iter(self.preview_of({fix.id}).conflicts), None)

    def diff(self, fix: Change) -> Diff:
        return self.diff_of(fix.commit.parent_tree, fix.commit.tree)

    def known_diff(self, fix: Change) -> Diff | None:
        """Return the diff of a fix without waiting, or None if it was not read yet."""
        return self._kept_diffs.get((fix.commit.parent_tree, fix.commit.tree))

    def net_diff(self, preview: Preview | None = None) -> Diff:
        """Return the diff between the base and the plan; empty if the plan has conflicts."""
        shown = preview or self.preview()
        return self.diff_of(self.branch.base_tree, shown.tree) if shown.tree else Diff((), ())

    def diff_of(self, old: str, new: str) -> Diff:
        """Return the diff between two trees."""
        with self._lock:
            diff = self._kept_diffs.get((old, new))
            if diff is None:
                diff = self._kept_diffs[old, new] = self._diffs.diff(old, new)
                if len(self._kept_diffs) > _DIFFS_KEPT:
                    self._kept_diffs.popitem(last=False)
            else:
                self._kept_diffs.move_to_end((old, new))
            return diff

    def raw_diff_of(self, old: str, new: str) -> bytes:
        """Return the diff between two trees in git's format."""
        raw, is_truncated = self._diffs.raw_diff(old, new)
        if is_truncated:
            raise SwarmError("the diff is too large to print", "apply the plan, then use `git diff`")
        return raw

    def is_rewritten(self) -> bool:
        """Return whether the branch has another tip than the one under review."""
        return self.repository.find(self.tip_name) != self.branch.tip
