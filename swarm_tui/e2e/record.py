"""One test with the `e2e` fixture: session, transcript of a failure, artifacts and cleanup."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
import shutil
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from swarm_tui.e2e.result import ExpectationFailed
from swarm_tui.e2e.session import MARK_NAME, E2eSession
from swarm_tui.model.text import plain_lines
from swarm_tui.tutorial.citations import docstring_part

_SHOWN_CHARACTERS = 6_000
OUTPUT_FOLDER: Final = ".test_output"
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_NAME: Final = 150


def folder_name(node_id: str) -> str:
    """Return a readable, safe and unique folder name for a node id."""
    path, *names = node_id.split("::")
    readable = ".".join([path.removesuffix(".py").replace("/", "."), *names])
    if _PLAIN_NAME.fullmatch(readable) and len(readable) <= _LONGEST_NAME and not readable.startswith("."):
        return readable
    safe = re.sub(r"[^A-Za-z0-9_.]+", "-", readable).strip("-.")[: _LONGEST_NAME - 9]
    return f"{safe}-{hashlib.sha256(node_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def claim_try_folder(root: Path, run_name: str, node_id: str) -> Path:
    """Create and return the folder of a new try. Concurrent runs get different folders."""
    output = root / OUTPUT_FOLDER
    test_folder = output / "e2e" / run_name / folder_name(node_id)
    test_folder.mkdir(parents=True, exist_ok=True)
    ignore = output / ".gitignore"
    if not ignore.exists():
        # Keeps `git add -A` from adding transcripts to the project.
        ignore.write_text("*\n", encoding="utf-8")
    for number in itertools.count(1):
        folder = test_folder / f"try_{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


def write_artifacts(folder: Path, texts: Mapping[str, str], facts: Mapping[str, object], files: Iterable[Path]) -> None:
    """Write non-empty texts, the facts as `result.json`, and copies of the files."""
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    for file in files:
        shutil.copy(file, folder)
    (folder / "result.json").write_text(json.dumps(dict(facts), indent=2) + "\n", encoding="utf-8")


class E2eTestRecord:
    """The session and the result of one test."""

    # Without this, pytest would collect the class as a test.
    __test__ = False

    def __init__(
        self, root: Path, run_name: str, node_id: str, docstring: str, artifacts: str, keep_environment: str
    ) -> None:
        self.session = E2eSession()
        self.has_failed = False
        self._root = root
        self._run_name = run_name
        self._node_id = node_id
        self._docstring = docstring
        self._artifacts = artifacts
        self._keep_environment = keep_environment

    def note_failure(self, error: BaseException | None) -> list[tuple[str, str]]:
        """Mark the test as failed. Return the sections for its report."""
        self.has_failed = True
        shown = []
        if not isinstance(error, ExpectationFailed) and self.session.transcript:
            # The message of a failed expectation includes the transcript.
            shown.append(_last_part(plain_lines(self.session.transcript)))
        if self._are_artifacts_kept and self._folder is not None:
            shown.append(f"artifacts: {self._folder}")
        if self._is_environment_kept:
            shown.append(f"environment kept: . {self.session.isolation.base / 'enter.sh'}")
        return [("e2e transcript", "\n".join(shown))] if shown else []

    def close(self) -> Path | None:
        """Write the artifacts and clean up. Return the folder of the environment if it is kept."""
        try:
            if self._is_environment_kept:
                _write_environment_scripts(self.session)
            else:
                self.session.finish()
            if self._are_artifacts_kept and self._folder is not None:
                self._write_artifacts(self._folder)
        finally:
            if not self._is_environment_kept:
                self.session.remove()
        return self.session.isolation.base if self._is_environment_kept else None

    @property
    def _are_artifacts_kept(self) -> bool:
        return _is_wanted(self._artifacts, self.has_failed)

    @property
    def _is_environment_kept(self) -> bool:
        return _is_wanted(self._keep_environment, self.has_failed)

    @cached_property
    def _folder(self) -> Path | None:
        try:
            return claim_try_folder(self._root, self._run_name, self._node_id)
        except OSError as error:
            _warn_of_lost_artifacts(error)
            return None

    def _write_artifacts(self, folder: Path) -> None:
        cited = docstring_part(self._docstring)
        blocks = [*self.session.tutorial_blocks, *([cited] if cited else [])]
        texts = {
            "transcript.txt": self.session.transcript,
            "tutorial_block.txt": "\n".join(f"{block}\n" for block in blocks),
        }
        facts: dict[str, object] = {"test": self._node_id, "has_failed": self.has_failed}
        if self._is_environment_kept:
            facts["environment"] = str(self.session.isolation.base)
        try:
            write_artifacts(folder, texts, facts, self.session.recordings)
        except OSError as error:
            _warn_of_lost_artifacts(error)


def _warn_of_lost_artifacts(error: OSError) -> None:
    # A test must not fail because of a read-only checkout or a full disk.
    warnings.warn(f"the artifacts of the e2e tests are not kept: {error}", stacklevel=2)


def _is_wanted(when: str, has_failed: bool) -> bool:
    return when == "always" or (when == "on-failure" and has_failed)


def _last_part(text: str) -> str:
    """Return the end of a long text, from the start of a line."""
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return "[...]\n" + text[-_SHOWN_CHARACTERS:].partition("\n")[2]


def _write_environment_scripts(session: E2eSession) -> None:
    """Write two shell scripts into a kept environment: one to enter it, one to kill its processes and remove it."""
    base = session.isolation.base
    exports = "\n".join(
        f"export {name}={shlex.quote(value)}" for name, value in session.environment.items() if name.isidentifier()
    )
    (base / "enter.sh").write_text(f"{exports}\ncd {shlex.quote(str(session.folder))}\n", encoding="utf-8")
    mark = shlex.quote(f"{MARK_NAME}={session.isolation.mark}")
    (base / "remove.sh").write_text(
        "#!/bin/sh\n# Kills the processes of this test and removes its folders.\n"
        "for process in /proc/[0-9]*; do\n"
        '    [ "$process" = "/proc/$$" ] && continue\n'
        f'    tr "\\0" "\\n" 2>/dev/null < "$process/environ" | grep -Fqx {mark} && kill "${{process#/proc/}}"\n'
        "done\n"
        f"rm -rf {shlex.quote(str(base))}\n",
        encoding="utf-8",
    )
