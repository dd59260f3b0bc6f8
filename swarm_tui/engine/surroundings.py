"""What an agent finds around it on its host: our files, the interpreter, records, and how its own files get there."""

from __future__ import annotations

import os
import posixpath
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.agents.contract import OUTPUT_FOLDER, PROMPT_FILE
from swarm_tui.agents.shipped import Shelf, shelf_here
from swarm_tui.agents.task import Task
from swarm_tui.engine.copy_preparation import HostSetUp
from swarm_tui.engine.host_preparation import HostUnusable, PreparedHost
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.places.place import AgentAddress
from swarm_tui.regular_file import read_regular

TASK_FILE: Final = "task.json"
_IGNORED: Final = ".gitignore"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One agent's surroundings; all paths are as the agent sees them."""

    shelf: Shelf
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

    def prompt_words(self, copy: str) -> tuple[str, ...]:
        """Return the words by which mngr puts the prompt into the agent's copy, where git overlooks it."""
        names, target = (PROMPT_FILE, _IGNORED), posixpath.join(copy, OUTPUT_FOLDER)
        if self.host is None:
            return tuple(
                word
                for name in names
                for word in ("--upload-file", f"{self.folder}/{name}:{posixpath.join(target, name)}")
            )
        sources = [posixpath.join(self.folder, name) for name in names]
        command = f"mkdir -p {OUTPUT_FOLDER} && cp {shlex.join(sources)} {OUTPUT_FOLDER}/"
        return ("--extra-provision-command", command)

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
        """Bring what was written for an agent to its host; its copy shares the objects that are there."""
        if self.host is None:
            return
        place = self.host.place
        try:
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
            raise HostUnusable(f"{where} cannot be written on {address.host}", error.strerror or str(error)) from error


def surroundings_here(folder: SweepFolder, own: Path) -> Surroundings:
    """Return the surroundings of an agent on this machine, whose own files are in a folder of the sweep."""
    return Surroundings(shelf_here(folder.root.absolute()), str(own.absolute()), os.geteuid() == 0)


def surroundings_on(host: PreparedHost, agent: str) -> Surroundings:
    folder = posixpath.join(host.folder, "agents", agent)
    return Surroundings(host.shelf, folder, host.access.user == "root", host)
