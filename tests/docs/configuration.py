"""The page of settings, variables and files, generated from the modules that read them."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import swarm_tui
from swarm_tui.adapters.provision import private_folder
from swarm_tui.journal.user_files import config_file, state_folder
from swarm_tui.model.environment import ALLOWED
from swarm_tui.room.settings import NOTICES
from tests.docs import table

_HOME: Final = {"HOME": "~", "XDG_CONFIG_HOME": "~/.config", "XDG_STATE_HOME": "~/.local/state"}

# Variables for users; other SWARM_ variables are internal.
_SET_BY_PEOPLE: Final = (
    ("SWARM_MNGR", "path of mngr; takes precedence over `PATH` and the private mngr, `--mngr` over all"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME", "base folders of the files below"),
    ("NO_COLOR", "disable colours in the room"),
    ("TEXTUAL_FPS", "maximum number of frames per second of the room (default: 120)"),
)
_SET_FOR_SETUP: Final = (("SWARM_CHECKOUT", "path of your checkout, for the command of `--setup`"),)
_BETWEEN_US: Final = frozenset(
    {"SWARM_LIVE_OUTER", "SWARM_NAMED_IN", "SWARM_COPY", "SWARM_CALLED_AS"}
    | {"SWARM_TASK", "SWARM_TRIES", "SWARM_COLLECT", "SWARM_TOP", "SWARM_RESULTS", "SWARM_PYTHONPATH", "SWARM_USED"}
)
_OF_TRACING: Final = "SWARM_LINES"
_VARIABLE: Final = re.compile(r"""["'](SWARM_[A-Z_]+)["']""")


def configuration_page() -> str:
    """Return the page as Markdown."""
    open_help = importlib.import_module("swarm_tui.cli.open").DESCRIPTION
    settings = open_help.partition("config.toml:\n")[2]
    lines = [
        "# Configuration",
        "",
        f"swarm-tui reads one file and never writes it: `{config_file(_HOME)}` (below `$XDG_CONFIG_HOME` if set).",
        "",
        "```toml",
        *(line.removeprefix("  ") for line in settings.splitlines()),
        "```",
        "",
        f"`notify` in `[room]` is {', '.join(f'`{word}`' for word in NOTICES)}. A command gets the notification",
        "as JSON on standard input, a webhook by POST ([schema](schemas/notification.json)). Errors name",
        "invalid settings.",
        "",
        "The file has no options for sweeps: give them on the command line ([run](commands.md#run)).",
        "Only `mngr swarm` has default options, in the settings of mngr. Options of the command line take precedence:",
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
        "## Variables that agents and test runs get from you",
        "",
        "Only these, and those that `--pass-env` names. Variables with the name of a secret (`..._TOKEN`) and values",
        "in the form of a secret are left out. Claude also gets the variables that it logs in with.",
        "",
        *table(("for", "variables"), ((use, _as_code(names)) for use, names in ALLOWED)),
        "",
        "## Where files are kept",
        "",
        *table(
            ("path", "content"),
            (
                (f"`{config_file(_HOME)}`", "your settings"),
                (
                    f"`{state_folder(_HOME)}`",
                    "saved choices of the room, your last visit of each sweep, crash reports",
                ),
                (
                    f"`{private_folder({'HOME': '~', 'XDG_DATA_HOME': ''}).parent}`",
                    "the private mngr of `doctor --fix` and `demo`, if necessary with uv and Python",
                ),
                (
                    "`.swarm/runs/<sweep>`",
                    "a sweep, in its repository, ignored by git: [files](json.md#a-sweeps-folder)",
                ),
            ),
        ),
    ]
    return "\n".join(lines) + "\n"


def _as_code(names: str) -> str:
    return " ".join(f"`{name}`" for name in names.split())


def _of_limits() -> Iterator[tuple[str, str]]:
    """Yield the variables that `model/run_limits.py` lists."""
    text = inspect.getdoc(importlib.import_module("swarm_tui.model.run_limits")) or ""
    for name, meaning in re.findall(r"^([A-Z_]+) {2,}(.+)$", text, re.MULTILINE):
        yield f"`{name}`", meaning


def undocumented_variables() -> set[str]:
    """Return the SWARM_ variables in the source that are not on the page."""
    page = configuration_page()
    source = Path(swarm_tui.__file__).parent
    named = {name for path in source.rglob("*.py") for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))}
    return {name for name in named - _BETWEEN_US if f"`{name}`" not in page and not name.startswith(_OF_TRACING)}
