"""Parse a tutorial script into blocks, which are separated by empty lines and have a title and a section."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_RULER: Final = re.compile(r"#{4,}|#+\s*([=*_~#-])\1{2,}\s*#*")
_HEADING: Final = re.compile(r"(#{2,6})\s+(\S.*?)[\s#]*")
_LONGEST_LONE_HEADING: Final = 60
# A quotation must be closed on its line: `"$(cat <<EOF` opens a here-document within an open quotation.
_SHELL_TOKEN: Final = re.compile(
    r"\\."
    r"|'[^']*'"
    r'|"(?:\\.|[^"\\])*"'
    r"|(?:^|(?<=[\s;&|()]))(?P<comment>#)"
    r"|\(\([^)]*\)\)"
    r"|<<<"
    r"|<<(?P<tabs>-?)[ \t]*(?P<word>(?:\\.|'[^']*'|\"[^\"]*\"|[^\s;&|<>()'\"\\])+)"
)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines with at least one command; the first line of the file is 1."""

    line: int
    end_line: int
    title: str
    section: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def key(self) -> tuple[str, ...]:
        """The lines that a citation must match, without indentation and empty lines."""
        return comparable_lines("\n".join(self.lines))

    @property
    def commands(self) -> tuple[str, ...]:
        """The lines that are not comments."""
        return tuple(line.strip() for line in self.lines if line.strip() and not is_comment(line))


def parse_blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks with commands, without a first block with a shebang."""
    blocks: list[Block] = []
    headings: dict[int, str] = {}
    title_above = ""
    for number, (line, lines) in enumerate(_runs(text_lines(text))):
        if number == 0 and lines[0].startswith("#!"):
            continue
        comments = _leading_comments(lines)
        has_command = len(comments) < len(lines)
        found = _read_headings(comments, is_alone=not has_command)
        for level, heading in found.headings:
            headings = {higher: name for higher, name in headings.items() if higher < level} | {level: heading}
        if not has_command:
            title_above = found.text
            continue
        last_heading = found.headings[-1][1] if found.headings else ""
        title = found.text or last_heading or title_above or lines[len(comments)].strip().removesuffix("\\").strip()
        section = " / ".join(headings[level] for level in sorted(headings))
        blocks.append(Block(line, line + len(lines) - 1, title, section, tuple(lines)))
        title_above = ""
    return tuple(blocks)


def parse_unfilled(text: str) -> tuple[Block, ...]:
    """Return the comments without commands, except headings and the first lines of the script."""
    unfilled: list[Block] = []
    headings: dict[int, str] = {}
    for number, (line, lines) in enumerate(_runs(text_lines(text))):
        comments = _leading_comments(lines)
        if (number == 0 and lines[0].startswith("#!")) or len(comments) < len(lines):
            continue
        found = _read_headings(comments, is_alone=False)
        if found.headings or not found.text or (len(comments) == 1 and _is_title(found.text)):
            level, name = found.headings[-1] if found.headings else (1, found.text)
            headings = {higher: title for higher, title in headings.items() if higher < level} | {level: name}
            continue
        section = " / ".join(headings[level] for level in sorted(headings) if headings[level])
        unfilled.append(Block(line, line + len(lines) - 1, found.text, section, tuple(lines)))
    return tuple(unfilled)


def _is_title(words: str) -> bool:
    """Return whether a comment without commands looks like a heading, not like a task."""
    is_drawn = not (words[0].isalnum() or words[0] in "`'\"($") or words[-1] in "─━═=-*~"
    is_short = len(words.split()) <= 3 and words[0].isupper() and _is_like_heading(words)
    return is_drawn or words.isupper() or is_short


def text_lines(text: str) -> list[str]:
    """Return the lines of a text with any line ends, but split only at those, unlike `splitlines`."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def comparable_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text without indentation and empty lines, to compare citations."""
    return tuple(stripped for line in text_lines(text) if (stripped := line.strip()))


def is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _runs(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Return each run of non-empty lines with its first line number; here-documents may contain empty lines."""
    numbers_by_line: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        numbers_by_line.setdefault(line.strip(), []).append(index)
    start: int | None = None
    index = 0
    while index < len(lines):
        if lines[index].strip():
            start = index if start is None else start
            index = _end_of_here_documents(lines, index, numbers_by_line)
        elif start is not None:
            yield start + 1, lines[start:index]
            start = None
        index += 1
    if start is not None:
        yield start + 1, lines[start:]


def _end_of_here_documents(lines: list[str], index: int, numbers_by_line: dict[str, list[int]]) -> int:
    """Return the last line of the here-documents that a line opens, or the line itself.

    One without an end is ignored: else all that follows would be lost.
    """
    end = index
    if "<<" in lines[index]:
        for word, is_indented in here_document_words(lines[index]):
            known = numbers_by_line.get(word, [])
            for candidate in known[bisect.bisect_right(known, end) :]:
                if (lines[candidate].lstrip("\t") if is_indented else lines[candidate]).rstrip() == word:
                    end = candidate
                    break
    return end


def here_document_words(line: str) -> list[tuple[str, bool]]:
    """Return the end word of each here-document that a line of shell opens, and whether it was opened with `<<-`."""
    words: list[tuple[str, bool]] = []
    for token in _SHELL_TOKEN.finditer(line):
        if token["comment"]:
            break
        if token["word"]:
            words.append((re.sub(r"['\"\\]", "", token["word"]), token["tabs"] == "-"))
    return words


@dataclass(frozen=True, slots=True)
class _Comments:
    """The headings in comment lines with their levels, and the text of the other lines."""

    headings: tuple[tuple[int, str], ...]
    text: str


def _leading_comments(lines: list[str]) -> list[str]:
    for count, line in enumerate(lines):
        if not is_comment(line):
            return [line.strip() for line in lines[:count]]
    return [line.strip() for line in lines]


def _read_headings(comments: list[str], *, is_alone: bool) -> _Comments:
    """Return the headings (`## NAME`, the first line between rulers, a short lone comment) and the other text."""
    is_box = any(_RULER.fullmatch(comment) for comment in comments)
    headings: list[tuple[int, str]] = []
    words: list[str] = []
    for comment in comments:
        plain = comment.lstrip("#").strip()
        if _RULER.fullmatch(comment) or not plain:
            continue
        heading = _HEADING.fullmatch(comment)
        if heading:
            headings.append((len(heading[1]), heading[2]))
        elif is_box and not headings:
            headings.append((1, plain))
        else:
            words.append(plain)
    if is_alone and not headings and len(words) == 1 and _is_like_heading(words[0]):
        return _Comments(((1, words[0]),), "")
    return _Comments(tuple(headings), " ".join(words).removesuffix(":").strip())


def _is_like_heading(words: str) -> bool:
    return len(words) <= _LONGEST_LONE_HEADING and words[-1] not in ".:;,!?)"
