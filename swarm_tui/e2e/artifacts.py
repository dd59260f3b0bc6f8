"""Where a test's transcript and other artifacts are kept: `.test_output/e2e/<run>/<test>/try_<n>/`."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

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
    """Make and return the folder of a new try; concurrent runs get different ones."""
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
    raise AssertionError("counting does not end")


def write_artifacts(folder: Path, texts: Mapping[str, str], facts: Mapping[str, object], files: Iterable[Path]) -> None:
    """Write the texts that are not empty, the facts as `result.json`, and copies of the files."""
    for name, text in texts.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    for file in files:
        shutil.copy(file, folder)
    (folder / "result.json").write_text(json.dumps(dict(facts), indent=2) + "\n", encoding="utf-8")
