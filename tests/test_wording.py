"""The wording rules that a program can check: plain English in texts, docstrings, comments and commit messages."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]

RULES: Final = {
    "write 'is not a X' or 'invalid X'": r"(?<!\bthere )\b(is|are|was|were) no (?!longer\b|more\b)",
    "write two sentences": r"\b(of|by|about) which\b|\b(of|by|from|about) whom\b",
    "name the quantity": r"\bso (many|much|long|few)\b",
    "name the component, or write 'you' or 'the user'": r"\b(no|some|any|every)body\b|\bwhoever\b|\b(a|the) person\b",
    "write 'its own' or 'a separate'": r"\bof (its|their|our|your|my) own\b|\bof (ours|yours|theirs)\b",
    "write 'even if' or 'even while'": r"\balso (when|while|if|where)\b",
    "write 'reported'": r"\bsaid\b",
    "write 'ignored'": r"\bpass(es|ed)? over\b",
    "write 'stopped', 'exited' or 'finished'": r"\bended\b",
    "write 'created'": r"\bmade\b",
    "write 'again'": r"\banew\b",
    "write 'next to'": r"\bbeside\b",
    "write 'fix'": r"\b(mend|cure)(s|ed|d)?\b",
    "write 'submit'": r"\bhand(s|ed|ing)? (it |them |their work |its work )?in\b(?!to)",
    "write 'resume' or 'continue'": r"\bt(ake|akes|aking|aken|ook) (it |them )?up\b|\b(go|goes|going|went|gone) on\b",
    "write 'identical' or 'similar'": r"\balike\b",
    "write 'characters'": r"\bsigns\b",
    "write 'usage error'": r"\bmisused?\b",
    "write 'automatically'": r"\bby (itself|themselves)\b",
    "write 'unavailable'": r"\bcan(not)? be had\b",
    "write 'will be' or 'should be'": r"\b(is|are|was|were) to be\b",
    "write 'is'": r"\b(stands|lies)\b(?! for)",
    "write 'poll' or 'check'": r"\b(a|the|each|every|next) look\b",
}

PLACES: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "tutorial", "swarm_tui")
EXEMPT: Final = ("swarm_tui/demo/sample/", "swarm_tui/demo/records/", "swarm_tui/report/vendor/")
"""Folders with a project, recorded work and code of others."""
SUFFIXES: Final = frozenset({".py", ".md", ".sh", ".j2", ".html"})

ENDS_IN_ED: Final = frozenset({"Speed", "Embed", "Feed", "Seed"})
"""Imperatives that look like a past tense."""


def faults_of(text: str) -> Iterator[str]:
    """Yield the matches of the rules in a text, each with the words around it and the advice."""
    prose = re.sub(r"\s+", " ", re.sub(r"(?s)```.*?```|`[^`]*`", "`code`", text))
    for advice, pattern in RULES.items():
        for found in re.finditer(pattern, prose, re.IGNORECASE):
            yield f"...{prose[max(0, found.start() - 30) : found.end() + 30]}...: {advice}"


def texts_of_module(source: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, the docstrings and the other strings with several words, each with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def faults_of_file(path: Path) -> Iterator[str]:
    """Yield the faults of a file, each with path and line."""
    source = path.read_text(encoding="utf-8")
    texts = texts_of_module(source) if path.suffix == ".py" else enumerate(source.split("\n\n"))
    for number, text in texts:
        for fault in faults_of(text):
            yield f"{path.relative_to(ROOT)}:{number}: {fault}"


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, text=True).stdout


def places() -> dict[str, list[Path]]:
    """Return the files with text, by package of swarm_tui and by other place."""
    found: dict[str, list[Path]] = {}
    for name in git("ls-files", "-z", *PLACES).split("\0"):
        path = ROOT / name
        if path.suffix in SUFFIXES and path.is_file() and not name.startswith(EXEMPT):
            parts = Path(name).parts
            found.setdefault("/".join(parts[:2] if parts[0] == "swarm_tui" else parts[:1]), []).append(path)
    return found


@pytest.mark.parametrize("place", sorted(places()))
def test_texts_follow_the_wording_rules(place: str) -> None:
    assert [fault for path in places()[place] for fault in faults_of_file(path)] == []


@pytest.mark.parametrize(
    ("text", "is_fault"),
    [
        ("'2x' is no size", True),
        ("there is no engine; the host is no longer used", False),
        ("a process of its own", True),
        ("its own process", False),
        ("`mend` is a name in code", False),
        ("for each test,\n    of which the", True),
        ("all columns in it; the values come into view", False),
        ("agents that hand in their work", True),
    ],
)
def test_rules_match_the_examples(text: str, is_fault: bool) -> None:
    assert bool(list(faults_of(text))) == is_fault


def test_docstrings_comments_and_messages_are_read() -> None:
    source = '"""About it."""\n# a comment\nNAME = "word"\nraise ValueError(f"is no {NAME} of it")\n'
    assert {text for _, text in texts_of_module(source)} == {"# a comment", " of it", "About it.", "is no "}


def new_commits() -> list[str]:
    """Return the messages of HEAD and of commits that no remote branch has; only of HEAD without a remote."""
    unpushed = git("rev-list", "--max-count=200", "HEAD", "--not", "--remotes").split() if git("remote") else []
    return [git("log", "-1", "--format=%B", commit).strip() for commit in {git("rev-parse", "HEAD").strip(), *unpushed}]


def test_commit_messages_follow_the_rules() -> None:
    for message in new_commits():
        subject, _, rest = message.partition("\n")
        first = subject.partition(" ")[0]
        assert len(subject) <= 72, subject
        assert first.istitle(), subject
        assert first in ENDS_IN_ED or not first.endswith(("ed", "ing")), subject
        assert rest == "" or rest.startswith("\n"), f"an empty line follows the subject: {subject}"
        assert list(faults_of(message)) == []
