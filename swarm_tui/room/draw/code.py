"""Colours the lines of a diff: added and removed lines, and the syntax of the file's language."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from swarm_tui.room.draw.spans import Line, Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer

    from swarm_tui.model.commits import Diff

HUNK_LIMIT: Final = 2_000
"""Longer hunks are coloured without their syntax, because parsing them would delay keys."""
LINE_LIMIT: Final = 2_000

_SPECIAL: Final = frozenset("*?[")
_SHADES: Final = {"+": "plus", "-": "minus"}


def draw_bare_line(text: str) -> Line:
    """Return a line of a diff coloured without syntax: hunk headers, and files of unknown languages."""
    if text.startswith("@@"):
        place, _, context = text[2:].partition("@@")
        return [Span(f"@@{place}@@", "hunk"), Span(context, "dim")]
    marker = text[:1]
    if marker in _SHADES:
        return [
            Span(marker, f"{'added' if marker == '+' else 'removed'} {_SHADES[marker]}"),
            Span(text[1:], _SHADES[marker]),
        ]
    return [Span(text, "" if marker == " " else "dim")]


def draw_ahead(diff: Diff, rows: int) -> None:
    """Draw the first visible hunks of a diff ahead of time, to fill the cache."""
    for file in diff.files:
        for start, end in zip(file.hunks, (*file.hunks[1:], file.end), strict=True):
            if start > rows:
                return
            draw_hunk(diff.lines[start:end], file.path)


@functools.lru_cache(maxsize=64)
def draw_hunk(lines: tuple[str, ...], path: str) -> list[Line]:
    """Return the lines of one hunk, beginning with its `@@` line, coloured by the syntax of the file's language.

    The old and the new side are parsed separately as one text each, so that strings over several lines are recognized.
    """
    lexer = _lexer_of(path)
    if lexer is None or len(lines) > HUNK_LIMIT or any(len(line) > LINE_LIMIT for line in lines):
        return [draw_bare_line(line) for line in lines]
    body = lines[1:]
    old_parts = iter(_read(lexer, [line[1:] for line in body if line[:1] in (" ", "-")]))
    new_parts = iter(_read(lexer, [line[1:] for line in body if line[:1] in (" ", "+")]))
    drawn: list[Line] = [draw_bare_line(lines[0])] if lines else []
    for line in body:
        marker = line[:1]
        if marker == "-":
            drawn.append(_with_marker("-", next(old_parts, [])))
        elif marker == "+":
            drawn.append(_with_marker("+", next(new_parts, [])))
        elif marker == " ":
            next(old_parts, [])
            drawn.append([Span(" "), *next(new_parts, [])])
        else:
            drawn.append(draw_bare_line(line))
    return drawn


def _with_marker(marker: str, parts: Sequence[Span]) -> Line:
    shade = _SHADES[marker]
    colour = "added" if marker == "+" else "removed"
    return [Span(marker, f"{colour} {shade}"), *(part._replace(role=f"{part.role} {shade}".strip()) for part in parts)]


def _read(lexer: Lexer, lines: Sequence[str]) -> list[list[Span]]:
    rows: list[list[Span]] = [[]]
    for token, value in lexer.get_tokens("\n".join(lines)):
        role = _role_of(str(token))
        first, *others = value.split("\n")
        if first:
            rows[-1].append(Span(first, role))
        for other in others:
            rows.append([Span(other, role)] if other else [])
    return rows[: len(lines)]


@functools.lru_cache(maxsize=512)
def _role_of(token: str) -> str:
    for beginning, role in (
        ("Token.Keyword", "keyword"),
        ("Token.Operator.Word", "keyword"),
        ("Token.Literal.String", "string"),
        ("Token.Literal.Number", "number"),
        ("Token.Comment", "comment"),
        ("Token.Name.Function", "name"),
        ("Token.Name.Class", "name"),
        ("Token.Name.Decorator", "name"),
    ):
        if token.startswith(beginning):
            return role
    return ""


@functools.lru_cache(maxsize=64)
def _lexer_of(path: str) -> Lexer | None:
    chosen = lexer_class_for(posixpath.basename(path.strip('"')))
    return chosen(stripnl=False, ensurenl=False) if chosen is not None else None


def lexer_class_for(name: str) -> type[Lexer] | None:
    """Return the same as `find_lexer_class_for_filename` of pygments, which needs 60 ms to prepare its patterns."""
    # Late: 50 ms.
    from pygments.lexers import find_lexer_class, get_all_lexers

    fitting = [
        ("*" not in pattern, lexer)
        for lexer, _, patterns, _ in get_all_lexers(plugins=False)
        for pattern in patterns
        if _fits(name, pattern)
    ]
    rated = [
        (found.priority + is_name / 2, found.__name__, found)
        for is_name, lexer in fitting
        if (found := find_lexer_class(lexer))
    ]
    return max(rated, key=lambda rating: rating[:2])[2] if rated else None


def _fits(name: str, pattern: str) -> bool:
    end = pattern.removeprefix("*")
    if _SPECIAL.isdisjoint(end):
        return name == end or (name.endswith(end) and end != pattern)
    return fnmatchcase(name, pattern)
