"""The pictures of the room, made from fixed sweeps; `python -m tests.pictures` draws all of them anew."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "screenshots"
_ENVIRONMENTS: Final = {
    "256": {"TEXTUAL_COLOR_SYSTEM": "256"},
    "standard": {"TEXTUAL_COLOR_SYSTEM": "standard"},
    "none": {"NO_COLOR": "1"},
}
"""What a terminal's environment says of its colours. Textual reads it once in a process."""


async def pictures_in_colours(system: str, expected: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the pictures in fewer colours by their names, drawn by a process in such an environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.pictures", "--colours", system,
        cwd=FOLDER.parent, env=os.environ | _ENVIRONMENTS[system], stdin=PIPE, stdout=PIPE,
    )  # fmt: skip
    drawn, _ = await process.communicate(json.dumps(dict(expected)).encode())
    assert process.returncode == 0
    pictures: dict[str, str] = json.loads(drawn)
    return pictures
