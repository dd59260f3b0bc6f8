"""Colours the lines of a diff: signs and shades for added and removed lines, words by the language of the file."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from swarm_tui.room.draw.parts import Line, Part

if TYPE_CHECKING:
    from pygments.lexer import Lexer

    from swarm_tui.model.diff import Diff

HUNK_LIMIT: Final = 2_000
"""Longer hunks are coloured by their signs alone: reading them as a language would be felt at the keys."""
LINE_LIMIT: Final = 2_000

_SPECIAL: Final = frozenset("*?[")
_SHADES: Final = {"+": "plus", "-": "minus"}


def draw_bare_line(text: str) -> Line:
    """Return a line of a diff by its sign alone: hunk marks, and files of unknown language."""
    if text.startswith("@@"):
        place, _, context = text[2:].partition("@@")
        return [Part(f"@@{place}@@", "hunk"), Part(context, "dim")]
    sign = text[:1]
    if sign in _SHADES:
        return [Part(sign, f"{'added' if sign == '+' else 'removed'} {_SHADES[sign]}"), Part(text[1:], _SHADES[sign])]
    return [Part(text, "" if sign == " " else "dim")]


def draw_ahead(diff: Diff, rows: int) -> None:
    """Draw the hunks that are seen first when a diff is shown, so that they are known then."""
    for file in diff.files:
        for start, end in zip(file.hunks, (*file.hunks[1:], file.end), strict=True):
            if start > rows:
                return
            draw_hunk(diff.lines[start:end], file.path)


@functools.lru_cache(maxsize=64)
def draw_hunk(lines: tuple[str, ...], path: str) -> list[Line]:
    """Return the lines of one hunk, its `@@` line first, coloured by the language of the file.

    Each side of the hunk is read as one text, so that a string over several lines is a string on each of them.
    """
    lexer = _lexer_of(path)
    if lexer is None or len(lines) > HUNK_LIMIT or any(len(line) > LINE_LIMIT for line in lines):
        return [draw_bare_line(line) for line in lines]
    body = lines[1:]
    old_parts = iter(_read(lexer, [line[1:] for line in body if line[:1] in (" ", "-")]))
    new_parts = iter(_read(lexer, [line[1:] for line in body if line[:1] in (" ", "+")]))
    drawn: list[Line] = [draw_bare_line(lines[0])] if lines else []
    for line in body:
        sign = line[:1]
        if sign == "-":
            drawn.append(_with_sign("-", next(old_parts, [])))
        elif sign == "+":
            drawn.append(_with_sign("+", next(new_parts, [])))
        elif sign == " ":
            next(old_parts, [])
            drawn.append([Part(" "), *next(new_parts, [])])
        else:
            drawn.append(draw_bare_line(line))
    return drawn


def _with_sign(sign: str, parts: Sequence[Part]) -> Line:
    shade = _SHADES[sign]
    colour = "added" if sign == "+" else "removed"
    return [Part(sign, f"{colour} {shade}"), *(part._replace(role=f"{part.role} {shade}".strip()) for part in parts)]


def _read(lexer: Lexer, lines: Sequence[str]) -> list[list[Part]]:
    rows: list[list[Part]] = [[]]
    for token, value in lexer.get_tokens("\n".join(lines)):
        role = _role_of(str(token))
        first, *others = value.split("\n")
        if first:
            rows[-1].append(Part(first, role))
        for other in others:
            rows.append([Part(other, role)] if other else [])
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
    """Return what `find_lexer_class_for_filename` of pygments does, which takes 60 ms to make ready its patterns."""
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
