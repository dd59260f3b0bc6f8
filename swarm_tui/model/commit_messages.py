"""Messages of the commits that swarm-tui creates from agents' work, with trailers that name the origin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.model.commits import FIX_PREFIX
from swarm_tui.model.pulled import ChangeKind, kinds_of, without_marks
from swarm_tui.model.text import plain, plain_lines

SQUASH_PREFIX: Final = "[TEST/DOC]"
MESSAGE_LIMIT: Final = 20_000
_KIND_NAMES: Final = {
    ChangeKind.IMPROVE_TEST: ("better test", "better tests"),
    ChangeKind.FIX_TEST: ("test fix", "test fixes"),
    ChangeKind.FIX_TUTORIAL: ("tutorial fix", "tutorial fixes"),
}
_WEAKER_KIND: Final = ("weaker test", "weaker tests")
_OTHER_KIND: Final = ("other change", "other changes")
_TRAILERS: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*: [^\n]+\n?)+")


@dataclass(frozen=True, slots=True)
class TestWork:
    """One commit of an agent that changes tests or documentation."""

    __test__ = False

    message: str
    agent: str = ""
    test: str = ""
    author: str = ""
    is_weaker: bool = False
    """Whether the source shows that the agent's test became weaker."""

    @property
    def _kind(self) -> tuple[str, str]:
        kinds = kinds_of(self.message)
        if kinds == (ChangeKind.IMPROVE_TEST,) and self.is_weaker:
            return _WEAKER_KIND
        return _KIND_NAMES.get(kinds[0], _OTHER_KIND) if len(kinds) == 1 else _OTHER_KIND


def squash_subject(works: Iterable[TestWork]) -> str:
    """Return the subject of the commit of test and doc fixes, which counts the changes of each kind."""
    counts = Counter(work._kind for work in works)
    kinds = (kind for kind in (*_KIND_NAMES.values(), _WEAKER_KIND, _OTHER_KIND) if counts[kind])
    return f"{SQUASH_PREFIX} {', '.join(f'{counts[kind]} {kind[counts[kind] > 1]}' for kind in kinds)}"


def squash_message(works: Sequence[TestWork], sweep: str) -> str:
    """Return the message of the single commit that contains all test and doc fixes."""
    body = "\n".join(f"* {without_marks(_subject(work))}\n  {plain(work.test, 300)}".rstrip() for work in works)
    authors = tuple(dict.fromkeys(work.author for work in works if work.author))
    trailers = [f"Co-authored-by: {author}" for author in authors] if len(authors) > 1 else []
    trailers += _origin((work.agent for work in works), (), sweep)
    return "\n\n".join(filter(None, (squash_subject(works), body, "\n".join(trailers)))) + "\n"


def fix_message(message: str, agents: Iterable[str], tests: Iterable[str], sweep: str) -> str:
    """Return the agent's message of a fix, with the [FIX_IMPL] prefix and trailers that name the origin."""
    subject, _, body = plain_lines(message[:MESSAGE_LIMIT]).partition("\n")
    if kinds_of(subject) != (ChangeKind.FIX_IMPL,):
        subject = f"{FIX_PREFIX} {without_marks(subject)}"
    return with_origin(f"{subject}\n{body}", agents, tests, sweep)


def with_origin(message: str, agents: Iterable[str], tests: Iterable[str], sweep: str) -> str:
    """Return a message with trailers that name the origin, added to its existing block of trailers."""
    subject, _, rest = message.strip().partition("\n")
    body, last = _split_trailers(rest.strip())
    # git reads only the last block of trailers.
    ending = "\n".join(filter(None, (last, *_origin(agents, tests, sweep))))
    return "\n\n".join(part for part in (subject.strip(), body, ending) if part) + "\n"


def with_paragraph(message: str, paragraph: str) -> str:
    """Return a message with a paragraph added before its trailers."""
    subject, _, rest = message.strip().partition("\n")
    body, last = _split_trailers(rest.strip())
    return "\n\n".join(part for part in (subject, body, paragraph.strip(), last) if part) + "\n"


def trailer_of(message: str, name: str) -> str:
    """Return the value of the first trailer with this name, or ""."""
    lines = _split_trailers(message.partition("\n")[2].strip())[1].split("\n")
    return next((line.partition(": ")[2] for line in lines if line.startswith(f"{name}: ")), "")


def _origin(agents: Iterable[str], tests: Iterable[str], sweep: str) -> list[str]:
    lines = [f"Agent: {plain(agent, 300)}" for agent in dict.fromkeys(agents) if agent]
    lines += [f"Test: {plain(test, 300)}" for test in dict.fromkeys(tests) if test]
    return [*lines, f"Sweep: {plain(sweep, 100)}"] if sweep else lines


def _split_trailers(text: str) -> tuple[str, str]:
    """Return a message split into the text and its block of trailers, which is "" if there is none."""
    rest, _, last = text.rpartition("\n\n")
    if not _TRAILERS.fullmatch(last):
        return text, ""
    return rest.rstrip(), last.rstrip()


def _subject(work: TestWork) -> str:
    return plain(work.message.partition("\n")[0], 300)
