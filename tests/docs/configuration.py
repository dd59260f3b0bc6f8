"""The page of settings, variables and files, made from the modules that read them."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import swarm_tui
from swarm_tui.adapters.provision import private_folder
from swarm_tui.journal.personal_files import config_file, state_folder
from swarm_tui.room.settings import NOTICES
from tests.docs import table

_HOME: Final = {"HOME": "~", "XDG_CONFIG_HOME": "~/.config", "XDG_STATE_HOME": "~/.local/state"}

# What people may set; all other variables of ours are between programs of ours.
_SET_BY_PEOPLE: Final = (
    ("SWARM_MNGR", "the mngr to use, before `PATH` and our own; `--mngr` comes first"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME", "where the files below are kept"),
    ("NO_COLOR", "the room without colours"),
    ("TEXTUAL_FPS", "how often the room may draw, 120 times a second unless it is set"),
)
_SET_FOR_SETUP: Final = (("SWARM_CHECKOUT", "in a command of `--setup`: your checkout"),)
_BETWEEN_US: Final = frozenset(
    {"SWARM_LIVE_OUTER", "SWARM_NAMED_IN", "SWARM_COPY", "SWARM_CALLED_AS"}
    | {"SWARM_TASK", "SWARM_TRIES", "SWARM_COLLECT", "SWARM_TOP", "SWARM_RESULTS", "SWARM_USED"}
)
_OF_TRACING: Final = "SWARM_LINES"
_VARIABLE: Final = re.compile(r"""["'](SWARM_[A-Z_]+)["']""")


def configuration_page() -> str:
    """Return the page as Markdown."""
    open_help = importlib.import_module("swarm_tui.cli.open").DESCRIPTION
    settings = open_help.partition("keys:\n")[2]
    lines = [
        "# Configuration",
        "",
        f"One file, which is only read: `{config_file(_HOME)}` (below `$XDG_CONFIG_HOME` where that is set).",
        "",
        "```toml",
        *(line.removeprefix("  ") for line in settings.splitlines()),
        "```",
        "",
        f"`notify` in `[room]` is {', '.join(f'`{word}`' for word in NOTICES)}. A command gets the message as JSON on",
        "its standard input, a webhook by POST: [its schema](schemas/notice.json). What cannot be understood in these",
        "tables is refused, with the name of the setting.",
        "",
        "Options of a sweep are not configured: `swarm-tui run` remembers nothing, a line in a script says all of it.",
        "[Commands](commands.md#run) lists them. Only `mngr swarm` has some, in mngr's settings, as its plugins have;",
        "they come before those of the command line:",
        "",
        "```toml",
        "[plugins.swarm.options]",
        'run = ["--slots", "8"]',
        "```",
        "",
        "## Variables that you may set",
        "",
        *table(("variable", "meaning"), ((f"`{name}`", text) for name, text in _SET_BY_PEOPLE)),
        "",
        "## Variables that tests and set-up commands get",
        "",
        *table(("variable", "meaning"), (*_of_limits(), *((f"`{name}`", text) for name, text in _SET_FOR_SETUP))),
        "",
        "## Where files are kept",
        "",
        *table(
            ("place", "what it has"),
            (
                (f"`{config_file(_HOME)}`", "your settings"),
                (
                    f"`{state_folder(_HOME)}`",
                    "what the room remembers, how far you have seen each sweep, the key of seals, reports of crashes",
                ),
                (
                    f"`{private_folder({'HOME': '~', 'XDG_DATA_HOME': ''}).parent}`",
                    "mngr, and a uv and a Python for it, where `doctor --fix` or `demo` brought them",
                ),
                (
                    "`.swarm/runs/<sweep>`",
                    "a sweep, in its repository, which git overlooks: [its files](json.md#a-sweeps-folder)",
                ),
            ),
        ),
    ]
    return "\n".join(lines) + "\n"


def _of_limits() -> Iterator[tuple[str, str]]:
    """Yield the variables that `model/limits.py` lists."""
    text = inspect.getdoc(importlib.import_module("swarm_tui.model.limits")) or ""
    for name, meaning in re.findall(r"^([A-Z_]+) {2,}(.+)$", text, re.MULTILINE):
        yield f"`{name}`", meaning


def undocumented_variables() -> set[str]:
    """Return the variables of ours that stand in the source and on no page."""
    page = configuration_page()
    source = Path(swarm_tui.__file__).parent
    named = {name for path in source.rglob("*.py") for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}
    return {name for name in named - _BETWEEN_US if f"`{name}`" not in page and not name.startswith(_OF_TRACING)}
