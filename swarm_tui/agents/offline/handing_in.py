"""Hands in the offline agent's work: outcome and bundle in one archive, put in place whole."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, PACKED_OUTPUT_FOLDER

_HUGE = 80_000_000


def write_outcome(path: Path, outcome: Mapping[str, Any], breakage: str) -> None:
    """Write the outcome by draft and rename, broken where the record says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(outcome, indent=1)
    if breakage == "outcome":
        text = text[: len(text) // 2]
    draft = path.with_suffix(".draft")
    draft.write_text(text + "\n", encoding="utf-8")
    os.replace(draft, path)


def publish_archive(state_folder: Path, output_folder: Path, bundle: Path | None, breakage: str) -> None:
    """Pack everything into one archive in the state folder; its presence ends the work."""
    archive = state_folder / ARCHIVE_PATH
    archive.parent.mkdir(parents=True, exist_ok=True)
    draft = archive.with_name(archive.name + ".tmp")
    if breakage == "archive":
        draft.write_bytes(b"\x1f\x8b this is no archive")
    else:
        with tarfile.open(draft, "w:gz", compresslevel=1) as packed:
            if breakage != "missing":
                packed.add(output_folder, PACKED_OUTPUT_FOLDER)
            if bundle is not None:
                packed.add(bundle, BUNDLE_FILE)
            _add_breakage(packed, breakage)
    os.replace(draft, archive)


def _add_breakage(packed: tarfile.TarFile, breakage: str) -> None:
    if breakage == "path":
        content = b"this file leads out of its folder\n"
        for name in ("../../../escaped.txt", "/tmp/swarm-escaped.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, BytesIO(content))
        link = tarfile.TarInfo(f"{PACKED_OUTPUT_FOLDER}/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    if breakage == "huge":
        entry = tarfile.TarInfo(f"{PACKED_OUTPUT_FOLDER}/huge.bin")
        entry.size = _HUGE
        packed.addfile(entry, BytesIO(bytes(_HUGE)))
