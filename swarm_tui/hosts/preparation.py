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
from swarm_tui.hosts.protocol import AgentAddress, Host
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.spec import HostSettings, SweepSpec
from swarm_tui.model.text import plain


@dataclass(frozen=True, slots=True)
class HostSetUp:
    """How the set-up of copies differs on another host."""

    checkout: str
    is_done: bool
    """Whether `--setup` was run once for all copies."""


SETUP_TIMEOUT: Final = 1800.0
PUSH_TIMEOUT: Final = 1800
OFFLINE_AGENT_PYTHON: Final = (3, 11)
_NEEDED: Final = ("git", "tmux", "ps")
_LIST_MISSING_PROGRAMS: Final = 'for name in "$@"; do command -v "$name" >/dev/null 2>&1 || echo "$name"; done'
_LIST_PYTHONS: Final = r"""
for python in "$@"; do
  "$python" -c 'import importlib.util as u, sys
print("\t".join([sys.executable, "%d.%d" % sys.version_info[:2], str(u.find_spec("pytest") is not None)]))'
done 2>/dev/null
exit 0
"""


class HostSetupFailed(AdapterError):
    """The host answers, but agents of this sweep cannot work on it."""


class HostCheckFailed(HostSetupFailed):
    """A retry cannot help: a program is missing, or the set-up fails."""


@dataclass(frozen=True, slots=True)
class PreparedHost:
    """The files of one sweep on a host."""

    host: Host
    settings: HostSettings
    folder: str
    """The sweep's folder."""
    project: str
    """A checkout of the base commit, with `--setup` done. No agent works in it."""
    python: str
    """The interpreter that runs the tests."""
    package_dir: PackageDir
    records: str
    is_set_up: bool
    """Whether the interpreter was created by `--setup`, so that the copies do not need to run it again."""

    @property
    def seed(self) -> str:
        return posixpath.join(self.folder, "seed.git")


def remote_folder(host: Host, sweep: str) -> str:
    """Return the folder of a sweep on a host."""
    return posixpath.join(host.host_dir, "swarm", sweep)


class HostPreparation:
    """Prepares each host once, before its first agent."""

    def __init__(
        self, spec: SweepSpec, folder: SweepFolder, repository: Repository, note: Callable[[str], None]
    ) -> None:
        self._spec, self._folder, self._repository = spec, folder, repository
        self._note = note
        self._prepared: dict[str, PreparedHost] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def prepared(self, host: Host) -> PreparedHost:
        """Return the files of the sweep on a host; raise HostSetupFailed if agents cannot work there."""
        async with self._locks.setdefault(host.name, asyncio.Lock()):
            if host.name not in self._prepared:
                try:
                    self._prepared[host.name] = await self._prepare(host)
                except OSError as error:
                    where = error.filename or host.host_dir
                    raise HostSetupFailed(f"cannot write {where} on {host.name}: {error.strerror or error}") from error
            return self._prepared[host.name]

    async def push_commit(self, prepared: PreparedHost, commit: str) -> None:
        """Push a commit of the user's repository to the repository on a host; raise HostSetupFailed if that fails."""
        await self._push(prepared.settings, prepared.folder, (f"{commit}:refs/swarm/checked/{commit}",))

    async def _prepare(self, host: Host) -> PreparedHost:
        spec, settings = self._spec, host.settings
        assert settings is not None, "this machine needs no preparation"
        await self._check_programs(host)
        report = host.report()
        if report is not None and report.greeting:
            what = f"the shell of {host.name} prints {report.greeting!r} before every command"
            raise HostCheckFailed(f"{what}, which breaks git", SILENT_SHELL)
        folder = remote_folder(host, spec.sweep)
        project = posixpath.join(folder, "project")
        await self._checked(host, ["mkdir", "-p", f"{folder}/agents"], "create its folder")
        await self._checked(host, ["tar", "-xzf", "-", "-C", folder], "unpack swarm-tui", stdin=packed_package())
        if spec.records:
            records = await asyncio.to_thread(_packed_folder, Path(spec.records), "records")
            await self._checked(host, ["tar", "-xzf", "-", "-C", folder], "unpack the records", stdin=records)
        if self._repository.is_shallow:
            await self._checked(host, ["mkdir", "-p", project], "create its folder")
        else:
            await self._push_seed(host, settings, folder)
            await self._check_out(host, folder, project)
        await self._set_up(host, folder, project)
        words = ["sh", "-c", _LIST_PYTHONS, "list", *self._candidates(project)]
        found = await host.run(words, cwd=project, timeout=120)
        python, ours = self._choose_pythons(host.name, [line.split("\t") for line in found.text.splitlines()])
        staging = self._folder.root.absolute() / "hosts" / host.name
        staging.mkdir(parents=True, exist_ok=True)
        return PreparedHost(
            host,
            settings,
            folder,
            project,
            python,
            PackageDir(staging, folder, ours, f"{folder}/package", f"{folder}/live"),
            f"{folder}/records" if spec.records else "",
            python.startswith(f"{project}/"),
        )

    async def _check_programs(self, host: Host) -> None:
        kind = agent_type_of_sweep(self._spec)
        wanted = [*_NEEDED, *([kind.program] if kind.program else [])]
        missing = (await host.run(["sh", "-c", _LIST_MISSING_PROGRAMS, "look", *wanted])).text.split()
        if missing:
            raise HostCheckFailed(f"missing on {host.name}: {', '.join(missing)}", "install it there")
        shell = plain((await host.run(["sh", "-c", 'echo "${SHELL##*/}"'])).text.strip(), 40)
        if shell in FOREIGN_SHELLS:
            raise HostCheckFailed(f"mngr does not support the login shell of {host.name}: {shell}", OTHER_SHELL)

    async def _push_seed(self, host: Host, settings: HostSettings, folder: str) -> None:
        """Push the repository to the host, where all copies share its objects."""
        seed = f"{folder}/seed.git"
        await self._checked(host, ["git", "init", "--quiet", "--bare", seed], "create a repository")
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+{self._spec.base}:refs/swarm/base")
        await self._push(settings, folder, refs)

    async def _push(self, settings: HostSettings, folder: str, refs: Sequence[str]) -> None:
        seed = f"{folder}/seed.git"
        target = target_of(settings)
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
            what = f"cannot push the repository to {settings.name}: {error.message}"
            raise HostSetupFailed(what, error.hint) from error

    async def _check_out(self, host: Host, folder: str, project: str) -> None:
        if (await host.run(["test", "-e", f"{project}/.git"])).code != 0:
            clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", f"{folder}/seed.git", project]
            await self._checked(host, clone, "clone the repository")
        checkout = ["git", "-C", project, "checkout", "--quiet", "--force", "--detach", self._spec.base]
        await self._checked(host, checkout, "check out the repository", timeout=600)

    async def _set_up(self, host: Host, folder: str, project: str) -> None:
        """Run `--setup` in the checkout. If it fails, write its output to the log."""
        if not self._spec.setup:
            return
        mark = f"{folder}/set-up-{hashlib.sha256(self._spec.setup.encode()).hexdigest()[:16]}"
        if (await host.run(["test", "-e", mark])).code == 0:
            return
        script = set_up_script(self._spec.setup, project)
        finished = await host.run(["sh", "-c", script], cwd=project, timeout=SETUP_TIMEOUT)
        if finished.code != 0:
            failure = read_failure(finished.error_text) or SetUpFailed(finished.code, finished.error_text)
            lines = "\n".join(failure.lines)
            self._note(f"on {host.name} {failure.problem}\n{lines}")
            raise HostCheckFailed(f"on {host.name} {failure.message}")
        await self._checked(host, ["touch", mark], "write to its folder")

    def _candidates(self, project: str) -> list[str]:
        """Return the possible interpreters of the project on a host, the most likely first."""
        path = Path(self._spec.python)
        if path.is_relative_to(self._spec.repository):
            path = path.relative_to(self._spec.repository)
        own = [str(path) if path.is_absolute() else posixpath.join(project, path.as_posix())]
        made = [posixpath.join(project, venv, "bin/python") for venv in (".venv", "venv")]
        return list(dict.fromkeys([*own, *made, "python3", "python3.14", "python3.13", "python3.12", "python3.11"]))

    def _choose_pythons(self, host: str, found: list[list[str]]) -> tuple[str, str]:
        """Return the interpreters of the tests and of the offline agent."""
        pythons = [(row[0], tuple(map(int, row[1].split("."))), row[2] == "True") for row in found if len(row) == 3]
        python = next((path for path, _, has_pytest in pythons if has_pytest), None)
        if python is None:
            raise HostCheckFailed(
                f"no Python on {host} has pytest",
                "create the project's environment with --setup, or name its Python with --python",
            )
        ours = next((path for path, version, _ in pythons if version >= OFFLINE_AGENT_PYTHON), None)
        if ours is None and agent_type_of_sweep(self._spec).is_ours:
            raise HostCheckFailed(f"missing on {host}: Python 3.11", "install it there, for the offline agent")
        return python, ours or "python3"

    async def _checked(
        self, host: Host, words: list[str], doing: str, *, stdin: bytes | None = None, timeout: float = 120.0
    ) -> None:
        finished = await host.run(words, stdin=stdin, timeout=timeout)
        if finished.code != 0:
            error = plain(finished.error_text.strip().splitlines()[-1] if finished.error_text.strip() else "", 300)
            raise HostSetupFailed(f"{host.name} cannot {doing}: {error or f'exit code {finished.code}'}")


def _packed_folder(folder: Path, name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
        archive.add(folder, name)
    return packed.getvalue()


TASK_FILE: Final = "task.json"
_IGNORED: Final = ".gitignore"


@dataclass(frozen=True, slots=True)
class AgentPaths:
    """The files that swarm-tui gives to one agent, by their paths on the agent's host."""

    package_dir: PackageDir
    folder: str
    """The folder with the task and the prompt."""
    is_root: bool
    prepared: PreparedHost | None = None
    """None on this machine."""

    @property
    def task_file(self) -> str:
        return posixpath.join(self.folder, TASK_FILE)

    def task(self, task: Task) -> Task:
        """Return a task with paths of the host."""
        if self.prepared is None:
            return task
        pytest = (self.prepared.python, *task.pytest[1:])
        return replace(task, pytest=pytest, repository=self.prepared.project, records=self.prepared.records)

    def prompt_words(self) -> tuple[str, ...]:
        """Return the arguments of mngr that copy the prompt into the agent's copy, into a folder that git ignores.

        mngr's --upload-file splits its value at the first colon, but the path of a project may contain colons.
        """
        sources = [posixpath.join(self.folder, name) for name in (PROMPT_FILE, _IGNORED)]
        return ("--extra-provision-command", f"mkdir -p {OUTPUT_FOLDER} && cp {shlex.join(sources)} {OUTPUT_FOLDER}/")

    @property
    def host_setup(self) -> HostSetUp | None:
        """How the set-up of copies differs on the host; None on this machine."""
        return None if self.prepared is None else HostSetUp(self.prepared.project, self.prepared.is_set_up)

    def placed(self, request: CreateRequest) -> CreateRequest:
        """Return a request for an agent on the host."""
        if self.prepared is None:
            return request
        settings = self.prepared.settings
        return request.model_copy(update={"provider": settings.provider, "host": settings.name.partition(".")[0]})

    async def deliver(self, written: Path, address: AgentAddress) -> None:
        """Copy an agent's files to its host, where its copy shares the objects of the seed.

        mngr writes the agent's variables, which may be secret, into a folder that other users can read, unless it
        exists.
        """
        if self.prepared is None:
            state = Path(address.state_dir)
            state.parent.mkdir(parents=True, exist_ok=True)
            state.mkdir(mode=0o700, exist_ok=True)
            return
        host = self.prepared.host
        try:
            await host.run(["mkdir", "-p", "-m", "700", address.state_dir])
            for path in [file for file in self.package_dir.folder.iterdir() if file.is_file()]:
                mode = path.stat().st_mode & 0o777
                await host.write_file(self.package_dir.path(path.name), read_regular(path), mode=mode)
            for name in (TASK_FILE, PROMPT_FILE, _IGNORED):
                if (written / name).is_file():
                    await host.write_file(posixpath.join(self.folder, name), read_regular(written / name))
            if (await host.run(["test", "-d", self.prepared.seed])).code == 0:
                git = posixpath.join(address.work_dir, ".git")
                await host.run(["git", "init", "--quiet", "--bare", git])
                shared = f"{self.prepared.seed}/objects\n".encode()
                await host.write_file(posixpath.join(git, "objects/info/alternates"), shared)
        except OSError as error:
            where = error.filename or self.folder
            raise HostSetupFailed(f"cannot write {where} on {address.host}: {error.strerror or error}") from error


def local_paths(folder: SweepFolder, own: Path) -> AgentPaths:
    """Return the files of an agent on this machine. They are in the sweep folder."""
    return AgentPaths(local_package_dir(folder.root.absolute()), str(own.absolute()), os.geteuid() == 0)


def paths_on(prepared: PreparedHost, agent: str) -> AgentPaths:
    folder = posixpath.join(prepared.folder, "agents", agent)
    return AgentPaths(prepared.package_dir, folder, prepared.settings.user == "root", prepared)
