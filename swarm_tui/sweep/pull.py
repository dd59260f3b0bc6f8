"""Pull an agent's work: bounded, unpacked safely, commits under refs/swarm/."""

from __future__ import annotations

import asyncio
import gzip
import heapq
import io
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository, fetch_bundle
from swarm_tui.adapters.git.names import branch_ref, is_commit_id
from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, OUTPUT_FOLDER, PACKED_OUTPUT_FOLDER, USED_PATH
from swarm_tui.agents.judging import CommitSummary
from swarm_tui.errors import (
    AdapterError,
    ProgramTimeout,
    ResourceShortage,
    SwarmError,
    raise_shortage,
    resource_shortage,
)
from swarm_tui.files import new_file, open_regular, read_regular
from swarm_tui.hosts.copies import fetch_commits, patch_without_git, uncommitted_patch
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, Host, HostUnreachable, ReadRequest
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.pulled_files import USED_FILE, USED_LIMIT
from swarm_tui.model.pulled import CommitsElsewhere
from swarm_tui.model.report import OUTCOME_SIZE_LIMIT, AgentReport
from swarm_tui.model.text import plain
from swarm_tui.transcripts.entries import record_time
from swarm_tui.transcripts.locate import (
    PULLED_TRANSCRIPT,
    SCREEN_NAME,
    TranscriptSources,
    choose_transcript,
    subagent_logs,
)

SIZE_LIMIT: Final = 64_000_000
COUNT_LIMIT: Final = 5_000
_NAME_LIMIT: Final = 240
_CHUNK: Final = 1 << 18


class BadArchive(ValueError):
    """An archive that cannot be unpacked. The message is the reason for the user."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What came out of an archive."""

    files: tuple[str, ...]
    refused: tuple[str, ...]
    """Ignored members: links, devices, sparse files, and paths outside the folder."""


def unpack_archive(archive: Path, target: Path) -> Unpacked:
    """Unpack an agent's archive into an empty folder; raise BadArchive, or ResourceShortage if the disk is full.

    `extractall` is not used: its filters are missing from some of the supported Python versions.
    """
    files: list[str] = []
    refused: list[str] = []
    left = SIZE_LIMIT
    try:
        # As a stream: no member is read twice, and no index of a hostile archive is built.
        with gzip.open(archive, "rb") as unzipped, tarfile.open(fileobj=_Bounded(unzipped), mode="r|") as packed:
            for member in packed:
                if len(files) + len(refused) >= COUNT_LIMIT:
                    raise BadArchive(f"its archive holds more than {COUNT_LIMIT:,} files")
                path = _target_of(member)
                if path is None:
                    refused.append(member.name)
                elif member.isfile():
                    left -= _write_member(packed, member, target / path, left)
                    files.append(str(path))
    except BadArchive:
        raise
    # tarfile and gzip raise many kinds of errors for hostile headers, even IndexError.
    except Exception as error:
        shortage = resource_shortage(error)
        if shortage is not None:
            raise shortage from error
        raise BadArchive(f"its archive is broken: {error}") from error
    return Unpacked(tuple(files), tuple(refused))


class _Bounded(io.RawIOBase):
    """The content of a stream. Raises BadArchive if it exceeds the limit."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = SIZE_LIMIT

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        wanted = _CHUNK if size < 0 else size
        content = self._stream.read(min(wanted, self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise _too_large()
        return content


def _target_of(member: tarfile.TarInfo) -> PurePosixPath | None:
    """Return where a member may be written below the target, or None for what is refused."""
    path = PurePosixPath(member.name)
    parts = [part for part in path.parts if part != "."]
    if not (member.isfile() or member.isdir()) or path.is_absolute() or ".." in parts or "\0" in member.name:
        return None
    if member.issparse():
        # A few bytes can declare a sparse file of any size, and its holes would be written as zeros.
        return None
    if any(len(part.encode(errors="replace")) > _NAME_LIMIT for part in parts):
        return None
    is_ours = parts[:1] == [PACKED_OUTPUT_FOLDER] or parts == [BUNDLE_FILE]
    return PurePosixPath(*parts) if is_ours or (member.isdir() and not parts) else None


def _write_member(packed: tarfile.TarFile, member: tarfile.TarInfo, path: Path, limit: int) -> int:
    """Write a file and return its size; raise BadArchive if it is larger than the limit."""
    source = packed.extractfile(member)
    if source is None:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with source, new_file(path) as file:
        while content := source.read(_CHUNK):
            written += len(content)
            if written > limit:
                raise _too_large()
            file.write(content)
    return written


def _too_large() -> BadArchive:
    return BadArchive(f"its archive unpacks to more than {SIZE_LIMIT // 1_000_000} MB")


COMMIT_LIMIT: Final = 200
_TIPS_LIMIT: Final = 20
"""How many branches and stashes of one copy are fetched."""
_BRANCHES: Final = "refs/heads/"
_STASH: Final = "refs/stash"
DETACHED_HEAD: Final = "a detached HEAD"
NO_BRANCH: Final = "no branch, only in the reflog"

# No command here reads an object: in a partial clone, git would fetch it by a command from the copy's settings.
_READ_COPY: Final = rf"""
export LC_ALL=C GIT_NO_LAZY_FETCH=1
[ -e .git ] || {{ [ -z "$(ls -A | grep -vxF {OUTPUT_FOLDER} | head -n 1)" ] || echo deleted; exit 0; }}
{{ read -r top; read -r own; read -r common; }} <<END
$(git rev-parse --show-toplevel --absolute-git-dir --git-common-dir)
END
[ "$top" = "$(pwd -P)" ] || {{ echo broken; exit 0; }}
[ "$own" -ef "$common" ] && echo clone || echo worktree
[ -f "$own/HEAD" ] && printf 'HEAD %s\n' "$(head -c 1000 "$own/HEAD")"
git for-each-ref --count=5000 --format='ref %(objectname) %(refname)' {_BRANCHES} {_STASH}
[ -f "$own/logs/HEAD" ] && tail -n 100 "$own/logs/HEAD" | cut -c 1-400 | sed 's/^/log /'
[ -f "$common/logs/{_STASH}" ] && tail -n {_TIPS_LIMIT} "$common/logs/{_STASH}" | cut -c 1-400 | sed 's/^/stash /'
exit 0
"""
_PROBLEMS: Final = {
    "deleted": "its copy has no .git directory any more",
    "broken": "its copy is not a git repository any more",
}


@dataclass(frozen=True, slots=True)
class CopyTips:
    """The last commits in the copy of an agent; empty for a deleted copy."""

    problem: str = ""
    """Why its commits are lost, such as a `.git` that was deleted."""
    is_worktree: bool = False
    """Its branches and stashes are those of the user's repository."""
    branches: Mapping[str, str] = field(default_factory=dict)
    """By full ref name."""
    head: str = ""
    head_branch: str = ""
    """The full name of the branch that is checked out; "" on a detached HEAD."""
    stashes: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    """Commits that were once HEAD and were not amended later, newest first."""

    def elsewhere(self, own: str = "") -> list[tuple[str, str]]:
        """Return the last commits of all branches but one (a full ref name), each after a description of its place."""
        found: dict[str, str] = {}
        if not self.is_worktree:
            found |= {tip: _branch_words(name) for name, tip in self.branches.items() if name != own}
        if self.head and self.head_branch != own:
            found.setdefault(self.head, _branch_words(self.head_branch) if self.head_branch else DETACHED_HEAD)
        if not self.is_worktree:
            for tip in self.stashes:
                found.setdefault(tip, "a stash")
        return [(where, tip) for tip, where in found.items()]


@dataclass(frozen=True, slots=True)
class FetchedCommits:
    """The commits of one agent, now in the user's repository."""

    tip: str = ""
    commits: tuple[CommitSummary, ...] = ()
    problem: str = ""
    used_branch: str = ""
    """The branch that was used instead of the agent's own, which had no commit."""
    elsewhere: tuple[CommitsElsewhere, ...] = ()
    copy_problem: str = ""
    """Why commits of the agent may be lost."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for the user about these commits."""
        used = (f"it committed on {self.used_branch}, not on the expected branch",) if self.used_branch else ()
        left = (found.words for found in self.elsewhere if found.where != NO_BRANCH)
        return tuple(filter(None, (*used, *left, self.copy_problem)))


async def fetch_agent_commits(
    repository: Repository,
    host: Host,
    agent: AgentAddress,
    *,
    base: str,
    branch: str,
    ref: str,
    held: str,
    bundle: Path | None,
) -> FetchedCommits:
    """Fetch an agent's commits as `ref` from its bundle, else from its copy; those elsewhere in the copy below `held`.

    If its branch has no commit, and exactly one other branch continues the base, that one is used. `problem` says
    what is wrong with the bundle. ResourceShortage is not the agent's fault: repeat the fetch later.
    """
    copy, problem = await read_copy(host, agent), ""
    own, fetched = copy.branches.get(branch_ref(branch), ""), FetchedCommits()
    if bundle is not None:
        try:
            tip = await asyncio.to_thread(fetch_bundle, repository, bundle, branch=branch, into=ref)
            fetched = await asyncio.to_thread(summarize_commits, repository, base, tip)
        except ResourceShortage:
            raise
        except SwarmError as error:
            problem = str(error)
    if not fetched.tip and own:
        try:
            tip = await fetch_commits(host, agent.work_dir, repository, base=base, tip=own, ref=ref)
            fetched = await asyncio.to_thread(summarize_commits, repository, base, tip) if tip else fetched
        except (ResourceShortage, HostUnreachable):
            raise
        except SwarmError as error:
            problem = problem or str(error)
    if copy.problem:
        lost = f"{copy.problem}; its files are in {agent.work_dir}"
        return replace(fetched, problem=problem or ("" if fetched.tip else lost), copy_problem=lost)
    tips = await asyncio.to_thread(_tips_elsewhere, repository, copy, branch_ref(branch), fetched.tip, (ref, held))
    found = await _fetch_tips(repository, host, agent, tips, held, [base, *([fetched.tip] if fetched.tip else [])])
    fetched = replace(fetched, problem=problem, elsewhere=found)
    return fetched if fetched.tip else await asyncio.to_thread(_use_only_branch, repository, fetched, base, ref)


async def unfetched_commits(repository: Repository, host: Host, agent: AgentAddress) -> list[str]:
    """Return sentences about the commits that exist only in the copy of an agent, or were lost with its `.git`."""
    copy = await read_copy(host, agent)
    if copy.problem:
        return [f"{agent.name}: {copy.problem}, and its files are in {agent.work_dir}"]
    tips = await asyncio.to_thread(_missing_tips, repository, copy.elsewhere())
    return [f"{agent.name} has commits on {where} that were never fetched, up to {tip[:12]}" for where, tip in tips]


async def read_copy(host: Host, agent: AgentAddress) -> CopyTips:
    """Return what the copy of an agent holds; HostUnreachable when its host does not answer."""
    if not agent.work_dir:
        return CopyTips()
    try:
        finished = await host.run(["sh", "-c", _READ_COPY], cwd=agent.work_dir)
    except HostUnreachable:
        raise
    except ProgramTimeout:
        return CopyTips("git does not answer in its copy")
    except (SwarmError, OSError) as error:
        raise_shortage(error)
        # The copy is deleted, or its replacement is unreadable.
        return CopyTips()
    kind, *lines = finished.stdout.decode("utf-8", "surrogateescape").split("\n")
    if kind in _PROBLEMS:
        return CopyTips(_PROBLEMS[kind])
    words = [line.split(" ", 2) for line in lines if line.count(" ") >= 1]
    branches = {row[2]: row[1] for row in words if row[0] == "ref" and len(row) == 3 and is_commit_id(row[1])}
    head = next((line.removeprefix("HEAD ").strip() for line in lines if line.startswith("HEAD ")), "")
    head_branch = head.removeprefix("ref: ") if head.startswith(f"ref: {_BRANCHES}") else ""
    stashes = {branches.pop(_STASH, ""), *(new for _, new, _ in _log_entries(lines, "stash "))}
    return CopyTips(
        is_worktree=kind == "worktree",
        branches=branches,
        head=branches.get(head_branch, "") if head_branch else head if is_commit_id(head) else "",
        head_branch=head_branch,
        stashes=tuple(sorted(stashes - {""})),
        logged=_commits_made(_log_entries(lines, "log ")),
    )


def _log_entries(lines: Iterable[str], prefix: str) -> list[tuple[str, str, str]]:
    """Return the entries of a reflog, each with the commit before it, the commit after it, and the reason."""
    rows = (line.removeprefix(prefix) for line in lines if line.startswith(prefix))
    parts = ((row.partition("\t")[0].split(" ", 2), row.partition("\t")[2]) for row in rows)
    return [(ids[0], ids[1], reason) for ids, reason in parts if len(ids) == 3 and is_commit_id(ids[1])]


def _commits_made(log: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    amended = {old for old, _, reason in log if reason.startswith("commit (amend)")}
    made = (new for _, new, reason in reversed(log) if reason.startswith("commit"))
    return tuple(dict.fromkeys(commit for commit in made if commit not in amended))


def _branch_words(name: str) -> str:
    return f"the branch {plain(name.removeprefix(_BRANCHES), 100)}"


def _tips_elsewhere(
    repository: Repository, copy: CopyTips, branch: str, fetched: str, refs: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the tips of a copy that are on no branch, and missing in the user's repository except under these refs."""
    if copy.is_worktree:
        return copy.elsewhere(branch)
    kept = set(repository.refs(*refs).values()) - {fetched}

    def unknown(tips: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        missing = _missing_tips(repository, tips)
        return [(where, tip) for where, tip in tips if tip in kept or (where, tip) in missing]

    tips = unknown(copy.elsewhere(branch))
    return tips if tips or fetched else unknown([(NO_BRANCH, commit) for commit in copy.logged])


async def _fetch_tips(
    repository: Repository,
    host: Host,
    agent: AgentAddress,
    tips: Sequence[tuple[str, str]],
    held: str,
    excluded: Sequence[str],
) -> tuple[CommitsElsewhere, ...]:
    """Fetch commits of a copy, and keep each tip under a ref; `excluded` are the commits that are already kept."""
    found, known = [], list(excluded)
    for where, tip in tips[:_TIPS_LIMIT]:
        ref = f"{held}/{tip[:12]}"
        try:
            await fetch_commits(host, agent.work_dir, repository, base=known[0], tip=tip, ref=ref)
        except (ResourceShortage, HostUnreachable):
            raise
        except SwarmError as error:
            found.append(CommitsElsewhere(where=where, problem=plain(str(error), 200)))
            continue
        number = await asyncio.to_thread(_number_of_commits, repository, ref, known)
        if number:
            found.append(CommitsElsewhere(where=where, tip=tip, ref=ref, commits=number))
            known.append(tip)
    if len(tips) > _TIPS_LIMIT:
        problem = f"only {_TIPS_LIMIT} of {len(tips)} branches and stashes are fetched"
        found.append(CommitsElsewhere(where="further branches", problem=problem))
    return tuple(found)


def _missing_tips(repository: Repository, tips: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the tips that the user's repository lacks."""
    if not tips:
        return []
    asked = "".join(f"{tip}\n" for _, tip in tips).encode()
    offline = {"GIT_NO_LAZY_FETCH": "1"}
    answers = repository.run("cat-file", "--batch-check", stdin=asked, environment=offline).text.split("\n")
    missing = {line.partition(" ")[0] for line in answers if line.endswith(" missing")}
    return [(where, tip) for where, tip in tips if tip in missing]


def _number_of_commits(repository: Repository, ref: str, excluded: Sequence[str]) -> int:
    """Return how many commits a ref adds, without git's own commits below a stash; 0 removes the ref."""
    if repository.ref(ref) is None:
        return 0
    words = ("--count", "--first-parent", ref, *(f"^{commit}" for commit in excluded), "--")
    number = int(repository.run("rev-list", *words).text or 0)
    if not number:
        repository.run("update-ref", "--no-deref", "-d", ref)
    return number


def _use_only_branch(repository: Repository, fetched: FetchedCommits, base: str, ref: str) -> FetchedCommits:
    """Use the commits of the only other branch as the agent's, if that branch continues the base."""
    on_branches = [found for found in fetched.elsewhere if found.tip and found.where.startswith("the branch ")]
    if len(on_branches) != 1 or not repository.is_ancestor(base, on_branches[0].tip):
        return fetched
    (only,) = on_branches
    repository.run("update-ref", "--no-deref", "-m", f"swarm-tui: {only.where}", ref, only.tip)
    repository.delete_ref(only.ref, old=only.tip)
    rest = tuple(found for found in fetched.elsewhere if found is not only)
    made = summarize_commits(repository, base, only.tip)
    return replace(made, problem=fetched.problem, used_branch=only.where, elsewhere=rest)


def summarize_commits(repository: Repository, base: str, tip: str) -> FetchedCommits:
    """Return the commits after the base, oldest first."""
    limit = f"--max-count={COMMIT_LIMIT}"
    rows = repository.run("log", "-z", "--reverse", limit, "--format=%H %s", tip, f"^{base}", "--").fields
    commits = tuple(CommitSummary(commit, subject) for commit, _, subject in (row.partition(" ") for row in rows))
    return FetchedCommits(tip, commits)


PACKED_LIMIT: Final = 64_000_000
PATCH_LIMIT: Final = 32_000_000
TRANSCRIPT_LIMIT: Final = 500_000_000
SUBAGENTS_LIMIT: Final = 200
# Larger logs are not merged: the transcript is then only the agent's own.
MERGED_LIMIT: Final = 100_000_000
SCREEN_HISTORY: Final = 2_000
# Has the id of the agent whose output is unpacked, because the output of an earlier launch does not count.
_SOURCE_FILE: Final = ".pulled-from"
UNPACKED_FOLDER: Final = ".pulling"
HANDED_IN: Final = (PACKED_OUTPUT_FOLDER, BUNDLE_FILE)


@dataclass(frozen=True, slots=True)
class PulledOutput:
    """The pulled work of an agent."""

    has_output: bool = False
    """Whether the agent has submitted something that could be unpacked."""
    problem: str = ""
    """Why the submitted work is unusable."""
    outcome: AgentReport | None = None
    """The report of a test's agent, after it was read."""
    fetched: FetchedCommits = field(default_factory=FetchedCommits)
    has_uncommitted: bool = False
    notes: tuple[str, ...] = ()


async def pull_work(
    host: Host,
    agent: AgentAddress,
    folder: Path,
    *,
    repository: Repository,
    base: str,
    branch: str,
    ref: str,
    held: str,
    sources: TranscriptSources,
) -> PulledOutput:
    """Pull output, commits, transcript, screen and uncommitted work of one agent into a folder of the sweep.

    Neither ResourceShortage nor HostUnreachable is the agent's fault: its work can be pulled again.
    """
    notes: list[str] = []
    try:
        _, problem = await asyncio.gather(_keep_screen(host, agent, folder), _pull_archive(host, agent, folder, notes))
        await pull_transcript(host, agent, folder, sources)
        # Later sweeps choose tests by the code that each used.
        await host.fetch_file(AgentFile(agent, USED_PATH).full_path, folder / USED_FILE, limit=USED_LIMIT)
        bundle = folder / BUNDLE_FILE
        fetched = await fetch_agent_commits(
            repository,
            host,
            agent,
            base=base,
            branch=branch,
            ref=ref,
            held=held,
            bundle=bundle if problem == "" and bundle.is_file() else None,
        )
        notes += fetched.remarks
        has_uncommitted = await _pull_uncommitted(host, agent, folder, notes, fetched, repository, base)
    except OSError as error:
        problem = f"cannot write {error.filename or folder}: {error.strerror or error}"
        raise resource_shortage(error) or SwarmError(problem) from error
    return PulledOutput(problem == "", problem or "", None, fetched, has_uncommitted, tuple(notes))


def was_pulled(folder: Path, agent_id: str) -> bool:
    """Return whether a folder has the output of exactly this agent."""
    for source_folder in (folder / UNPACKED_FOLDER, folder):
        try:
            source = read_regular(source_folder / _SOURCE_FILE).decode(errors="replace").partition("\n")[0]
        except OSError as error:
            raise_shortage(error)
        else:
            return bool(agent_id) and source.strip() == agent_id
    return False


def read_output(folder: Path, name: str, limit: int = OUTCOME_SIZE_LIMIT) -> bytes | None:
    """Return the beginning of a file that an agent submitted, at most one byte more than the limit."""
    try:
        with open_regular(folder / PACKED_OUTPUT_FOLDER / name) as file:
            return file.read(limit + 1)
    except OSError as error:
        raise_shortage(error)
        return None


async def _pull_archive(host: Host, agent: AgentAddress, folder: Path, notes: list[str]) -> str | None:
    """Copy and unpack the archive. Return the problem ("" without one), or None if there is no archive.

    Only a complete new output replaces earlier output. Earlier output of the same agent counts if the agent is gone,
    for example because an engine was killed while it pulled.
    """
    archive = AgentFile(agent, ARCHIVE_PATH)
    await asyncio.to_thread(_take_over, folder)
    (found,) = await host.read_files([ReadRequest(archive)])
    if found is None:
        return "" if was_pulled(folder, agent.agent_id) else None
    if found.size > PACKED_LIMIT:
        return f"its archive has {found.size // 1_000_000} MB; at most {PACKED_LIMIT // 1_000_000} MB are taken"
    packed, unpacked = folder / ".pulling.tar.gz", folder / UNPACKED_FOLDER
    _remove(unpacked)
    unpacked.mkdir()
    try:
        if not await host.fetch_file(archive.full_path, packed, limit=PACKED_LIMIT):
            return None
        content = await asyncio.to_thread(unpack_archive, packed, unpacked)
    except BadArchive as error:
        return plain(str(error), 300)
    else:
        if content.refused:
            listed = ", ".join(plain(name, 60) for name in content.refused[:3])
            notes.append(f"{len(content.refused)} members of its archive were not unpacked: {listed}")
        names = [name for name in HANDED_IN if (unpacked / name).exists()]
        write_beside(unpacked / _SOURCE_FILE, "\n".join([agent.agent_id, *names]).encode())
        await asyncio.to_thread(_take_over, folder)
        return ""
    finally:
        packed.unlink(missing_ok=True)
        if not (unpacked / _SOURCE_FILE).exists():
            _remove(unpacked)


def _take_over(folder: Path) -> None:
    """Move the unpacked output to its place. After a kill, the next call completes the move."""
    unpacked = folder / UNPACKED_FOLDER
    try:
        agent_id, *names = read_regular(unpacked / _SOURCE_FILE).decode(errors="replace").split("\n")
    except OSError as error:
        raise_shortage(error)
        return
    (folder / _SOURCE_FILE).unlink(missing_ok=True)
    for name in HANDED_IN:
        if name not in names:
            _remove(folder / name)
        elif (unpacked / name).exists():
            _remove(folder / name)
            (unpacked / name).rename(folder / name)
    write_beside(folder / _SOURCE_FILE, agent_id.encode())
    _remove(unpacked)


async def _pull_uncommitted(
    host: Host,
    agent: AgentAddress,
    folder: Path,
    notes: list[str],
    fetched: FetchedCommits,
    repository: Repository,
    base: str,
) -> bool:
    """Keep uncommitted work as a patch. Return whether there is some and all of it was kept.

    For a copy on this machine with a deleted `.git`, the patch has everything that differs from the base.
    """
    try:
        patch = await uncommitted_patch(host, agent.work_dir, without=OUTPUT_FOLDER, limit=PATCH_LIMIT)
        if not patch and fetched.copy_problem and host.settings is None:
            patch = await patch_without_git(
                host, agent.work_dir, repository, base=base, without=OUTPUT_FOLDER, limit=PATCH_LIMIT
            )
        if patch:
            write_beside(folder / "uncommitted.patch", patch)
    except HostUnreachable:
        raise
    except SwarmError as error:
        raise_shortage(error)
        notes.append(f"its uncommitted work could not be kept: {plain(str(error), 200)}")
        return False
    if patch:
        notes.append("it left uncommitted work, kept as uncommitted.patch")
    return bool(patch)


async def pull_transcript(host: Host, agent: AgentAddress, folder: Path, sources: TranscriptSources) -> None:
    """Copy an agent's transcript, with those of its subagents, into a folder of the sweep."""
    (files,) = await host.find_files([agent], sources.patterns)
    path = choose_transcript((file.path for file in files), sources, agent.agent_id)
    if path is None:
        return
    await host.fetch_file(AgentFile(agent, path).full_path, folder / PULLED_TRANSCRIPT, limit=TRANSCRIPT_LIMIT)
    logs = subagent_logs((file.path for file in files), sources, path)[:SUBAGENTS_LIMIT]
    if not logs or sum(file.size for file in files) > MERGED_LIMIT:
        return
    drafts = [folder / f".subagent-{number}.jsonl" for number in range(len(logs))]
    try:
        for log, draft in zip(logs, drafts, strict=True):
            await host.fetch_file(AgentFile(agent, log).full_path, draft, limit=MERGED_LIMIT)
        await asyncio.to_thread(_merge_logs, folder / PULLED_TRANSCRIPT, [draft for draft in drafts if draft.exists()])
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _merge_logs(transcript: Path, others: Sequence[Path]) -> None:
    """Merge the records of other logs into a transcript by time. Each log keeps its order."""
    logs = []
    for path in (transcript, *others):
        at, timed = 0.0, []
        for line in read_regular(path, TRANSCRIPT_LIMIT).splitlines(keepends=True):
            at = max(at, record_time(line) or 0.0)
            timed.append((at, line if line.endswith(b"\n") else line + b"\n"))
        logs.append(timed)
    write_beside(transcript, b"".join(line for _, line in heapq.merge(*logs, key=itemgetter(0))))


async def _keep_screen(host: Host, agent: AgentAddress, folder: Path) -> None:
    """Keep the last screen, because stopping the agent closes its terminal."""
    try:
        screens = await host.tmux.capture([agent.session], history=SCREEN_HISTORY)
    except AdapterError:
        return
    screen = screens.get(agent.session)
    if screen is not None:
        write_beside(folder / SCREEN_NAME, screen.encode(errors="replace"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
