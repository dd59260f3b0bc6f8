"""The page of all commands, generated from their parsers."""

from __future__ import annotations

import argparse
import importlib
from typing import cast

from swarm_tui.cli.main import COMMANDS, CommandModule, build_parser, subcommands
from tests.docs import table


def commands_page() -> str:
    """Return the page as Markdown."""
    lines = [
        "# Commands",
        "",
        "The same as `swarm-tui COMMAND --help`. Exit codes: 0 success, 1 failure, 2 usage error.",
        "",
        *table(
            ("command", "what it does"),
            ((f"[`{command.name}`](#{command.name})", command.summary) for command in COMMANDS),
        ),
    ]
    for command in COMMANDS:
        module = cast(CommandModule, importlib.import_module(command.module))
        parser = build_parser(command.name, module)
        lines += ["", f"## {command.name}", "", *_paragraphs(module.DESCRIPTION), *_options(parser)]
        for verb, below in subcommands(parser).items():
            lines += ["", f"### {command.name} {verb}", *_options(below)]
        lines += ["", "```text", *(line.rstrip() for line in module.EXAMPLES.strip("\n").splitlines()), "```"]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Return a description as Markdown, with indented lines as code blocks."""
    lines, is_indented = [], False
    for line in [*text.strip().splitlines(), ""]:
        if line.strip() and line.startswith("  ") != is_indented:
            is_indented = not is_indented
            lines += ["", "```text"] if is_indented else ["```", ""]
        # Escape angle brackets, which Markdown reads as HTML.
        lines.append(line.rstrip() if is_indented else line.rstrip().replace("<", "\\<"))
    return [*lines[:-1], "```"] if is_indented else lines[:-1]


def _options(parser: argparse.ArgumentParser) -> list[str]:
    rows = [
        (_words(action), _help(parser, action))
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    return ["", *table(("option", "meaning"), rows)] if rows else []


def _words(action: argparse.Action) -> str:
    """Return the usage of an option: `-o DIR, --output DIR`."""
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    shown = value[0] if isinstance(value, tuple) else value
    if not action.option_strings:
        return f"`{shown}`"
    takes = "" if action.nargs == 0 else f" [{shown}]" if action.nargs == "?" else f" {shown}"
    return ", ".join(f"`{word}{takes}`" for word in action.option_strings)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""
