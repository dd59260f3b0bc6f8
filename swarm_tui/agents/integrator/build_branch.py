"""Makes the integrated branch in the object store: one commit of all test and doc fixes, then one for each fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.integrator.branches import AgentCommit
from swarm_tui.agents.integrator.classify import SQUASH_PREFIX, kinds_of, without_marks
from swarm_tui.agents.integrator.duplicates import FoldedFix
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.integrator.ranking import RankedFix
from swarm_tui.model.fixes import FIX_PREFIX
from swarm_tui.model.outcome import ChangeKind
from swarm_tui.model.text import plain, plain_lines

KIND_WORDS: Final = {
    ChangeKind.IMPROVE_TEST: ("better test", "better tests"),
    ChangeKind.FIX_TEST: ("test fix", "test fixes"),
    ChangeKind.FIX_TUTORIAL: ("tutorial fix", "tutorial fixes"),
}
MESSAGE_LIMIT: Final = 20_000
OTHER_WORDS: Final = ("other change", "other changes")
_TRAILERS: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*: [^\n]+\n?)+")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A commit that is not on the branch, and why."""

    commit: AgentCommit
    reason: str


@dataclass(slots=True)
class Tip:
    """The end of the branch so far."""

    commit: str
    tree: str


@dataclass(slots=True)
class Woven:
    """What came of picking the fixes one by one."""

    picked: list[tuple[RankedFix, str]] = field(default_factory=list)
    """Each fix with its commit on the branch, in the order of the branch."""
    left_out: list[tuple[RankedFix, str]] = field(default_factory=list)


class Weaver:
    """Puts commits of agents on top of each other by three-way merges of trees."""

    def __init__(self, space: ObjectSpace, inputs: IntegratorInputs) -> None:
        self._space = space
        self._inputs = inputs
        self._committer = Identity(inputs.committer.name, inputs.committer.email)

    def squash(self, base: Tip, commits: Sequence[AgentCommit]) -> tuple[Tip, list[AgentCommit], list[Rejected]]:
        """Put all test and doc commits into one; those that do not fit with the ones before them are left out."""
        tree, taken, rejected = base.tree, list[AgentCommit](), list[Rejected]()
        for commit in commits:
            merge = self._space.merge(base=commit.parent_tree, ours=tree, theirs=commit.tree)
            if merge.is_clean:
                tree = merge.tree
                taken.append(commit)
            else:
                others = [other for other in taken if set(other.paths) & set(merge.conflict_paths)]
                rejected.append(Rejected(commit, conflict_words(merge.conflict_paths, others)))
        if tree == base.tree:
            return base, taken, rejected
        message = squash_message(taken, self._inputs.sweep)
        authors = {commit.author.email: commit.author for commit in taken}
        lone = next(iter(authors.values())) if len(authors) == 1 else None
        author = Identity(lone.name, lone.email) if lone else self._committer
        made = self._space.commit(tree, [base.commit], message.encode(), author=author)
        return Tip(made, tree), taken, rejected

    def try_alone(self, ground: Tip, fix: FoldedFix) -> Tip | None:
        """Return a commit with this fix alone on the ground, or None when it does not fit there."""
        merge = self._space.merge(base=fix.chosen.parent_tree, ours=ground.tree, theirs=fix.chosen.tree)
        if not merge.is_clean:
            return None
        return Tip(self._space.commit(merge.tree, [ground.commit], b"a fix alone, to be measured\n"), merge.tree)

    def weave(self, ground: Tip, ranked: Sequence[RankedFix]) -> tuple[Tip, Woven]:
        """Pick the fixes in their order; what conflicts is tried again after the others, then left out."""
        tip, woven = ground, Woven()
        waiting = list(ranked)
        while waiting:
            conflicting = []
            for entry in waiting:
                next_tip = self._pick(tip, entry)
                if next_tip is None:
                    conflicting.append(entry)
                    continue
                tip = next_tip
                woven.picked.append((entry, tip.commit))
            if len(conflicting) == len(waiting):
                break
            waiting = conflicting
        for entry in waiting:
            woven.left_out.append((entry, self._why_left_out(ground, tip, entry, woven)))
        return tip, woven

    def _pick(self, tip: Tip, entry: RankedFix) -> Tip | None:
        chosen = entry.fix.chosen
        merge = self._space.merge(base=chosen.parent_tree, ours=tip.tree, theirs=chosen.tree)
        if not merge.is_clean or merge.tree == tip.tree:
            return None
        author = Identity(chosen.author.name, chosen.author.email)
        message = fix_message(entry, self._inputs.sweep).encode()
        made = self._space.commit(merge.tree, [tip.commit], message, author=author, authored=f"@{chosen.author.date}")
        return Tip(made, merge.tree)

    def _why_left_out(self, ground: Tip, tip: Tip, entry: RankedFix, woven: Woven) -> str:
        chosen = entry.fix.chosen
        merge = self._space.merge(base=chosen.parent_tree, ours=tip.tree, theirs=chosen.tree)
        if merge.is_clean:
            return "it brings nothing that is not on the branch already"
        paths = merge.conflict_paths
        opponents = [
            other.fix.chosen
            for other, _ in woven.picked
            if set(other.fix.chosen.paths) & set(paths) and self._do_fight(ground, other.fix, entry.fix)
        ]
        return conflict_words(paths, opponents)

    def _do_fight(self, ground: Tip, first: FoldedFix, second: FoldedFix) -> bool:
        one, other = first.chosen, second.chosen
        alone = self._space.merge(base=one.parent_tree, ours=ground.tree, theirs=one.tree)
        if not alone.is_clean:
            return True
        return not self._space.merge(base=other.parent_tree, ours=alone.tree, theirs=other.tree).is_clean


def conflict_words(paths: Sequence[str], opponents: Sequence[AgentCommit]) -> str:
    """Say with what a commit conflicts, and where."""
    places = ", ".join(plain(path, 100) for path in paths[:3])
    if not opponents:
        return f"conflicts in {places}"
    sides = " and ".join(f"{other.subject!r} of {other.source.agent}" for other in opponents[:3])
    return f"conflicts in {places} with {sides}"


def squash_message(commits: Sequence[AgentCommit], sweep: str) -> str:
    """Compose the message of the one commit of all test and doc fixes."""
    counts: dict[tuple[str, str], int] = {}
    lines = []
    for commit in commits:
        kinds = kinds_of(commit.message)
        words = KIND_WORDS.get(kinds[0], OTHER_WORDS) if len(kinds) == 1 else OTHER_WORDS
        counts[words] = counts.get(words, 0) + 1
        lines.append(f"* {without_marks(commit.subject)}\n  {plain(commit.source.test, 300)}")
    found = ((words, counts[words]) for words in (*KIND_WORDS.values(), OTHER_WORDS) if words in counts)
    title = ", ".join(f"{count} {many if count > 1 else one}" for (one, many), count in found)
    authors = dict.fromkeys(str(commit.author) for commit in commits)
    trailers = [f"Co-authored-by: {author}" for author in authors] if len(authors) > 1 else []
    trailers += [f"Agent: {agent}" for agent in dict.fromkeys(commit.source.agent for commit in commits)]
    body = "\n".join(lines)
    return f"{SQUASH_PREFIX} {title}\n\n{body}\n\n" + "\n".join([*trailers, f"Sweep: {sweep}"]) + "\n"


def fix_message(entry: RankedFix, sweep: str) -> str:
    """Return the message of a fix as its agent wrote it, marked as a fix, with trailers naming its origin."""
    subject, _, body = plain_lines(entry.fix.chosen.message[:MESSAGE_LIMIT]).partition("\n")
    if kinds_of(subject) != (ChangeKind.FIX_IMPL,):
        subject = f"{FIX_PREFIX} {without_marks(subject)}"
    trailers = [f"Agent: {agent}" for agent in entry.fix.agents]
    trailers += [f"Test: {plain(test, 300)}" for test in entry.fix.tests]
    trailers.append(f"Sweep: {sweep}")
    body, said = body.strip(), "\n".join(trailers)
    last = body.rpartition("\n\n")[2]
    if _TRAILERS.fullmatch(last):
        # git knows one block of trailers, the last one.
        body, said = body.removesuffix(last).rstrip(), f"{last.rstrip()}\n{said}"
    return "\n\n".join(part for part in (subject.strip(), body, said) if part) + "\n"
