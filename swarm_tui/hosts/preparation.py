"""What a host gets before its first agent."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import posixpath
import shlex
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.adapters.pytest import SetUpFailed, read_failure, set_up_script
from swarm_tui.adapters.ssh import FOREIGN_SHELLS, OTHER_SHELL, SILENT_SHELL, target_of
from swarm_tui.agents.contract import OUTPUT_FOLDER, PROMPT_FILE, Task
from swarm_tui.agents.packaged import PackageDir, local_package_dir, packed_package
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import AdapterError
from swarm_tui.files import read_regular
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.hosts import HostSettings
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain


@dataclass(frozen=True, slots=True)
class HostSetUp:
    """What of the preparation is different on another host."""

    checkout: str
    is_done: bool
    """Whether the set-up was run once for all agents there."""


SETUP_TIMEOUT: Final = 1800.0
PUSH_TIMEOUT: Final = 1800
# The offline agent is a program of ours.
OUR_PYTHON: Final = (3, 11)
_NEEDED: Final = ("git", "tmux", "ps")
_LOOK_FOR_PROGRAMS: Final = 'for name in "$@"; do command -v "$name" >/dev/null 2>&1 || echo "$name"; done'
_LOOK_AT_PYTHONS: Final = r"""
for python in "$@"; do
  "$python" -c 'import importlib.util as u, sys
print("\t".join([sys.argv[1], "%d.%d" % sys.version_info[:2], str(u.find_spec("pytest") is not None)]))' "$python"
done 2>/dev/null
exit 0
"""


class HostSetupFailed(AdapterError):
    """A host answers, and no agent of this sweep can work on it."""


class HostCheckFailed(HostSetupFailed):
    """The same for a reason that trying again does not mend: a program is missing, or the set-up fails."""


@dataclass(frozen=True, slots=True)
class PreparedHost:
    """What a host has for the agents of one sweep."""

    place: SshHost
    folder: str
    """The sweep's folder there."""
    project: str
    """A checkout of the base commit there, in which `--setup` was run; no agent works in it."""
    python: str
    """The interpreter that runs the tests."""
    shelf: PackageDir
    records: str
    is_set_up: bool
    """Whether `--setup` has made the interpreter, so that it need not be repeated in every copy."""

    @property
    def access(self) -> HostSettings:
        return self.place.access

    @property
    def seed(self) -> str:
        return posixpath.join(self.folder, "seed.git")


def far_folder(access: HostSettings, sweep: str) -> str:
    """Return the folder of a sweep on a host."""
    return posixpath.join(access.host_dir, "swarm", sweep)


class HostPreparation:
    """Prepares each host before the first agent there, and once for all that wait for it."""

    def __init__(
        self, spec: SweepSpec, folder: SweepFolder, repository: Repository, note: Callable[[str], None]
    ) -> None:
        self._spec, self._folder, self._repository = spec, folder, repository
        self._note = note
        """Writes a sentence into the log of the sweep."""
        self._prepared: dict[str, PreparedHost] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepared(self, place: SshHost) -> PreparedHost:
        """Return what is there; HostUnusable when no agent can work on this host, PlaceUnreachable when it is lost."""
        name = place.access.name
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name not in self._prepared:
                try:
                    self._prepared[name] = await self._prepare(place)
                except OSError as error:
                    where = error.filename or place.access.host_dir
                    raise HostSetupFailed(f"{where} cannot be written on {name}: {error.strerror or error}") from error
            return self._prepared[name]

    async def push_commit(self, host: PreparedHost, commit: str) -> None:
        """Bring a commit of this repository to the repository on a host; HostUnusable when that fails."""
        await self._push(host.access, host.folder, (f"{commit}:refs/swarm/checked/{commit}",))

    async def _prepare(self, place: SshHost) -> PreparedHost:
        spec, access, link = self._spec, place.access, place.link
        await self._check_programs(place)
        if link.greeting:
            what = f"the shell of {access.name} prints {link.greeting!r} before every command"
            raise HostCheckFailed(f"{what}, and git takes that for an answer", SILENT_SHELL)
        folder = far_folder(access, spec.sweep)
        project = posixpath.join(folder, "project")
        await self._checked(place, ["mkdir", "-p", f"{folder}/agents"], "make its folder")
        await self._checked(place, ["tar", "-xzf", "-", "-C", folder], "unpack our files", stdin=packed_package())
        if spec.records:
            records = await asyncio.to_thread(_packed_folder, Path(spec.records), "records")
            await self._checked(place, ["tar", "-xzf", "-", "-C", folder], "unpack the records", stdin=records)
        await self._push_seed(access, folder, place)
        await self._check_out(place, folder, project)
        await self._set_up(place, folder, project)
        found = await link.run(
            ["sh", "-c", _LOOK_AT_PYTHONS, "look", *self._candidates(project)], cwd=project, timeout=120
        )
        python, ours = self._choose_pythons(access.name, [line.split("\t") for line in found.text.splitlines()])
        staging = self._folder.root.absolute() / "hosts" / access.name
        staging.mkdir(parents=True, exist_ok=True)
        return PreparedHost(
            place,
            folder,
            project,
            python,
            PackageDir(staging, folder, ours, f"{folder}/package", f"{folder}/live"),
            f"{folder}/records" if spec.records else "",
            python.startswith(f"{project}/"),
        )

    async def _check_programs(self, place: SshHost) -> None:
        kind = agent_type_of_sweep(self._spec)
        wanted = [*_NEEDED, *([kind.program] if kind.program else [])]
        missing = (await place.link.run(["sh", "-c", _LOOK_FOR_PROGRAMS, "look", *wanted])).text.split()
        if missing:
            raise HostCheckFailed(f"{place.access.name} has no {' and no '.join(missing)}", "install it there")
        shell = plain((await place.link.run(["sh", "-c", 'echo "${SHELL##*/}"'])).text.strip(), 40)
        if shell in FOREIGN_SHELLS:
            raise HostCheckFailed(
                f"mngr needs a login shell like sh, and on {place.access.name} it is {shell}", OTHER_SHELL
            )

    async def _push_seed(self, access: HostSettings, folder: str, place: SshHost) -> None:
        """Bring the repository's objects to the host, so that its agents' copies share them."""
        if self._repository.is_shallow:
            return
        seed = f"{folder}/seed.git"
        await self._checked(place, ["git", "init", "--quiet", "--bare", seed], "make a repository")
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+{self._spec.base}:refs/swarm/base")
        await self._push(access, folder, refs)

    async def _push(self, access: HostSettings, folder: str, refs: Sequence[str]) -> None:
        seed = f"{folder}/seed.git"
        target = target_of(access)
        words = target.words()
        address = f"[{target.address}]" if ":" in target.address else target.address
        variables = {"GIT_SSH_COMMAND": shlex.join(words[: words.index("-p")]), "GIT_SSH_VARIANT": "ssh"}
        variables["GIT_ALLOW_PROTOCOL"] = "ssh"
        repository = self._repository.with_environment(variables, self._repository.root)
        url = f"ssh://{target.user}@{address}:{target.port}{seed}"
        try:
            await finish_in_thread(
                lambda: repository.run("push", "--quiet", "--no-verify", url, *refs, timeout=PUSH_TIMEOUT)
            )
        except GitError as error:
            what = f"the repository cannot be brought to {access.name}: {error.message}"
            raise HostSetupFailed(what, error.hint) from error

    async def _check_out(self, place: SshHost, folder: str, project: str) -> None:
        if self._repository.is_shallow:
            await self._checked(place, ["mkdir", "-p", project], "make its folder")
            return
        if (await place.link.run(["test", "-e", f"{project}/.git"])).code != 0:
            clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", f"{folder}/seed.git", project]
            await self._checked(place, clone, "clone the repository")
        checkout = ["git", "-C", project, "checkout", "--quiet", "--force", "--detach", self._spec.base]
        await self._checked(place, checkout, "check out the repository", timeout=600)

    async def _set_up(self, place: SshHost, folder: str, project: str) -> None:
        """Run `--setup` in the checkout; when it fails, the log shows what it said."""
        if not self._spec.setup:
            return
        mark = f"{folder}/set-up-{hashlib.sha256(self._spec.setup.encode()).hexdigest()[:16]}"
        if (await place.link.run(["test", "-e", mark])).code == 0:
            return
        script = set_up_script(self._spec.setup, project)
        finished = await place.link.run(["sh", "-c", script], cwd=project, timeout=SETUP_TIMEOUT)
        if finished.code != 0:
            failure = read_failure(finished.error_text) or SetUpFailed(finished.code, finished.error_text)
            lines = "\n".join(failure.lines)
            self._note(f"on {place.access.name} {failure.problem}\n{lines}")
            raise HostCheckFailed(f"on {place.access.name} {failure.message}")
        await self._checked(place, ["touch", mark], "note that it is set up")

    def _candidates(self, project: str) -> list[str]:
        """Return the interpreters that may be the project's on a host, the likeliest first."""
        path = Path(self._spec.python)
        if path.is_relative_to(self._spec.repository):
            path = path.relative_to(self._spec.repository)
        own = [str(path) if path.is_absolute() else posixpath.join(project, path.as_posix())]
        made = [posixpath.join(project, venv, "bin/python") for venv in (".venv", "venv")]
        return list(dict.fromkeys([*own, *made, "python3", "python3.14", "python3.13", "python3.12", "python3.11"]))

    def _choose_pythons(self, host: str, found: list[list[str]]) -> tuple[str, str]:
        """Return the interpreter of the tests, and that of our programs."""
        pythons = [(row[0], tuple(map(int, row[1].split("."))), row[2] == "True") for row in found if len(row) == 3]
        python = next((path for path, _, has_pytest in pythons if has_pytest), None)
        if python is None:
            raise HostCheckFailed(
                f"no Python on {host} has pytest", "--setup makes the project's environment, --python names its Python"
            )
        ours = next((path for path, version, _ in pythons if version >= OUR_PYTHON), None)
        if ours is None and agent_type_of_sweep(self._spec).is_ours:
            raise HostCheckFailed(f"{host} has no Python 3.11", "the offline agent needs it")
        return python, ours or "python3"

    async def _checked(
        self, place: SshHost, words: list[str], doing: str, *, stdin: bytes | None = None, timeout: float = 120.0
    ) -> None:
        finished = await place.link.run(words, stdin=stdin, timeout=timeout)
        if finished.code != 0:
            said = plain(finished.error_text.strip().splitlines()[-1] if finished.error_text.strip() else "", 300)
            raise HostSetupFailed(f"{place.access.name} cannot {doing}: {said or f'code {finished.code}'}")


def _packed_folder(folder: Path, name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        archive.add(folder, name)
    return packed.getvalue()


TASK_FILE: Final = "task.json"
_IGNORED: Final = ".gitignore"


@dataclass(frozen=True, slots=True)
class AgentPaths:
    """One agent's surroundings; all paths are as the agent sees them."""

    shelf: PackageDir
    folder: str
    """Where its task and its prompt lie."""
    is_root: bool
    host: PreparedHost | None = None
    """None on this machine."""

    @property
    def task_file(self) -> str:
        return posixpath.join(self.folder, TASK_FILE)

    def task(self, task: Task) -> Task:
        """Return a task with the paths of the host."""
        if self.host is None:
            return task
        pytest = (self.host.python, *task.pytest[1:])
        return replace(task, pytest=pytest, repository=self.host.project, records=self.host.records)

    def prompt_words(self) -> tuple[str, ...]:
        """Return the words by which mngr puts the prompt into the agent's copy, where git ignores it.

        mngr's own --upload-file splits its value at the first colon, which the path of a project may contain.
        """
        sources = [posixpath.join(self.folder, name) for name in (PROMPT_FILE, _IGNORED)]
        return ("--extra-provision-command", f"mkdir -p {OUTPUT_FOLDER} && cp {shlex.join(sources)} {OUTPUT_FOLDER}/")

    @property
    def host_setup(self) -> HostSetUp | None:
        """What is different on the host about the preparation of copies; None on this machine."""
        return None if self.host is None else HostSetUp(self.host.project, self.host.is_set_up)

    def placed(self, request: CreateRequest) -> CreateRequest:
        """Return a request for an agent on the host."""
        if self.host is None:
            return request
        access = self.host.access
        return request.model_copy(update={"provider": access.provider, "host": access.name.partition(".")[0]})

    async def deliver(self, written: Path, address: AgentAddress) -> None:
        """Copy an agent's files to its host, where its copy shares the objects of the seed.

        mngr writes the agent's variables, which may be secret, into a folder that other users can read, unless it
        exists.
        """
        if self.host is None:
            state = Path(address.state_dir)
            state.parent.mkdir(parents=True, exist_ok=True)
            state.mkdir(mode=0o700, exist_ok=True)
            return
        place = self.host.place
        try:
            await place.link.run(["mkdir", "-p", "-m", "700", address.state_dir])
            for path in [file for file in self.shelf.folder.iterdir() if file.is_file()]:
                mode = path.stat().st_mode & 0o777
                await place.write_path(self.shelf.path(path.name), read_regular(path), mode=mode)
            for name in (TASK_FILE, PROMPT_FILE, _IGNORED):
                if (written / name).is_file():
                    await place.write_path(posixpath.join(self.folder, name), read_regular(written / name))
            if (await place.link.run(["test", "-d", self.host.seed])).code == 0:
                git = posixpath.join(address.work_dir, ".git")
                await place.link.run(["git", "init", "--quiet", "--bare", git])
                shared = f"{self.host.seed}/objects\n".encode()
                await place.write_path(posixpath.join(git, "objects/info/alternates"), shared)
        except OSError as error:
            where = error.filename or self.folder
            raise HostSetupFailed(f"{where} cannot be written on {address.host}: {error.strerror or error}") from error


def local_paths(folder: SweepFolder, own: Path) -> AgentPaths:
    """Return the surroundings of an agent on this machine, whose own files are in a folder of the sweep."""
    return AgentPaths(local_package_dir(folder.root.absolute()), str(own.absolute()), os.geteuid() == 0)


def paths_on(host: PreparedHost, agent: str) -> AgentPaths:
    folder = posixpath.join(host.folder, "agents", agent)
    return AgentPaths(host.shelf, folder, host.access.user == "root", host)
