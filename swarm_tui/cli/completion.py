"""`swarm-tui completion`: complete commands, options and sweep ids in bash, zsh and fish."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Final, cast

from swarm_tui.cli.main import COMMAND_BY_NAME, COMMANDS, CommandModule, build_parser, subcommands

DESCRIPTION = "Print the completion script of a shell."
EXAMPLES = """\
  eval "$(swarm-tui completion bash)"        in ~/.bashrc
  eval "$(swarm-tui completion zsh)"         in ~/.zshrc
  swarm-tui completion fish | source         in ~/.config/fish/config.fish
"""

SCRIPTS: Final = {
    "bash": """\
_swarm_tui() {
    local IFS=$'\\n'
    COMPREPLY=($(swarm-tui completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _swarm_tui swarm-tui
""",
    "zsh": """\
_swarm_tui() {
    local -a found
    found=(${(f)"$(swarm-tui completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( $#found )) && compadd -a found || _files
}
compdef _swarm_tui swarm-tui
""",
    "fish": """\
function __swarm_tui
    set -l typed (commandline -opc) (commandline -ct)
    swarm-tui completion words -- $typed[2..-1] 2>/dev/null
end
complete -c swarm-tui -f -a '(__swarm_tui)'
""",
}
SWEEP_ARGUMENT: Final = "sweep"
SWEEP_METAVAR: Final = "SWEEP"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=[*SCRIPTS, "words"], help="the shell (`words` is for the scripts)")
    typed = parser.add_argument("typed", nargs=argparse.REMAINDER, default=[], help=argparse.SUPPRESS)
    # By default, argparse reports an empty remainder as missing.
    typed.required = False


def run(arguments: argparse.Namespace) -> int:
    if arguments.shell == "words":
        # Some versions of argparse keep the first --; a later one may be the word to complete.
        typed = arguments.typed[1:] if arguments.typed[:1] == ["--"] else arguments.typed
        print("\n".join(completions(typed or [""], Path.cwd())))
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0


def completions(typed: list[str], folder: Path) -> list[str]:
    """Return the completions of the last of the typed words."""
    *before, prefix = typed
    if not before:
        return [command.name for command in COMMANDS if command.name.startswith(prefix)]
    command = COMMAND_BY_NAME.get(before[0])
    if command is None:
        return []
    parser = build_parser(command.name, cast(CommandModule, importlib.import_module(command.module)))
    found: list[str] = []
    for word in before[1:]:
        parser = subcommands(parser).get(word, parser)
    if "--" in before:
        return []
    option = parser._option_string_actions.get(before[-1])
    if option is not None and option.nargs is None:
        values = [str(choice) for choice in option.choices or ()]
        values += _sweeps(folder) if str(option.metavar).partition("|")[0] == SWEEP_METAVAR else []
        return [value for value in values if value.startswith(prefix)]
    for action in parser._actions:
        if action.help != argparse.SUPPRESS and prefix.startswith("-"):
            found += action.option_strings
        elif not action.option_strings and action.choices:
            found += [str(choice) for choice in action.choices]
        elif not action.option_strings and action.dest == SWEEP_ARGUMENT:
            found += _sweeps(folder)
    return [word for word in found if word.startswith(prefix)]


def _sweeps(folder: Path) -> list[str]:
    # Reads only folder names: importing the models would delay each Tab.
    for place in (folder, *folder.parents):
        runs = place / ".swarm" / "runs"
        if runs.is_dir():
            return sorted(path.name for path in runs.iterdir() if path.is_dir())
    return []
