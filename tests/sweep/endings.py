"""A small project whose tests end in every way that a test of a sweep can end, with the records that lead there."""

from __future__ import annotations

import json
from pathlib import Path

from tests.git_project import GitProject

PROGRAM = """\
def double(number):
    return number + number


def half(number):
    return number * 2


def greet(name):
    return "Hello " + name
"""

TESTS = """\
import pytest

import ends


def test_clean():
    assert ends.double(2) == 4


def test_fixed():
    assert ends.half(4) == 2


def test_wrong_test():
    assert ends.greet("Ada") == "Hello, Ada"


def test_improved():
    assert ends.double(3) == 6


def test_tutorial():
    assert "Helo" not in open("TUTORIAL.md").read()


def test_given_up():
    assert ends.greet("Bob") == "Goodbye Bob"


def test_blocked():
    assert ends.greet("Eve") == "the word of a service"


def test_asks():
    assert ends.double(1) == 2


def test_never_answered():
    assert ends.double(1) == 2


def test_crashes():
    assert ends.double(1) == 2


def test_hangs():
    assert ends.double(1) == 2


def test_lies():
    assert ends.double(1) == 3


def test_claims_a_commit():
    assert ends.double(1) == 2


def test_broken_outcome():
    assert ends.double(1) == 2


def test_broken_archive():
    assert ends.double(1) == 2


def test_huge_archive():
    assert ends.double(1) == 2


def test_leads_out():
    assert ends.double(1) == 2


def test_misfit():
    assert ends.double(1) == 2


def test_leaves_work():
    assert ends.double(1) == 2


@pytest.mark.parametrize("name", ["$(touch pwned)", "[/red]", "a b/c", "\\x1b[31mred\\x1b[0m", "two\\nlines", "ü"])
def test_names(name):
    assert ends.greet(name).endswith(name)
"""

SETTINGS = """\
[tool.pytest.ini_options]
addopts = "-q -p no:cacheprovider -p no:hypothesispytest"
disable_test_id_escaping_and_forfeit_all_rights_to_community_support = true
pythonpath = ["src"]
"""

FILE = "tests/test_ends.py"

# What each test comes to: its result, and a part of the reason.
EXPECTED: dict[str, tuple[str, str]] = {
    "test_clean": ("clean", ""),
    "test_fixed": ("impl_fix", ""),
    "test_wrong_test": ("test_fix", ""),
    "test_improved": ("better", ""),
    "test_tutorial": ("tutorial_fix", ""),
    "test_given_up": ("unresolved", "Nobody knows"),
    "test_blocked": ("blocked", "The service is not there"),
    "test_asks": ("clean", ""),
    "test_never_answered": ("blocked", "no answer"),
    "test_crashes": ("error", "its process exited"),
    "test_hangs": ("error", "within the time limit"),
    "test_lies": ("unresolved", "fails on the submitted commit"),
    "test_claims_a_commit": ("unresolved", "no commit of that kind"),
    "test_broken_outcome": ("error", "invalid report"),
    "test_broken_archive": ("error", "its archive is broken"),
    "test_huge_archive": ("error", "unpacks to more than"),
    "test_leads_out": ("clean", ""),
    "test_misfit": ("unresolved", "does not match this tree"),
    "test_leaves_work": ("clean", ""),
    **{
        f"test_names[{name}]": ("clean", "")
        for name in ("$(touch pwned)", "[/red]", "a b/c", "\x1b[31mred\x1b[0m", "two\nlines", "ü")
    },
}

RUN = '[[step]]\nrun = "a run"\n'

STEPS: dict[str, str] = {
    "test_fixed": RUN
    + '[[step]]\nedit = "src/ends.py"\nold = "number * 2"\nnew = "number / 2"\n'
    + RUN
    + '[[step]]\ncommit = "FIX_IMPL"\nmessage = "Halve instead of doubling"\nsummary = "half() doubled."\n',
    "test_wrong_test": RUN
    + f'[[step]]\nedit = "{FILE}"\nold = "Hello, Ada"\nnew = "Hello Ada"\n'
    + RUN
    + '[[step]]\ncommit = "FIX_TEST"\nmessage = "Expect what is said"\n',
    "test_improved": RUN
    + f'[[step]]\nedit = "{FILE}"\nold = "ends.double(3) == 6"\nnew = "ends.double(3) == 6 and ends.double(0) == 0"\n'
    + RUN
    + '[[step]]\ncommit = "IMPROVE_TEST"\nmessage = "Double nothing too"\n',
    "test_tutorial": RUN
    + '[[step]]\nwrite = "TUTORIAL.md"\ntext = "Hello\\n"\n'
    + RUN
    + '[[step]]\ncommit = "FIX_TUTORIAL"\nmessage = "Spell it"\n',
    "test_given_up": RUN + '[[step]]\nfail = "FIX_IMPL"\nsummary = "Nobody knows what is meant."\n',
    "test_blocked": RUN + '[[step]]\nescalate = "BLOCKER"\ntitle = "The service is not there"\n',
    "test_asks": '[[step]]\nask = "Which of the two?"\nanswer = "The first."\n' + RUN,
    "test_never_answered": '[[step]]\nask = "Is anybody there?"\n' + RUN,
    "test_crashes": RUN + "[[step]]\ncrash = 3\n",
    "test_hangs": RUN + "[[step]]\nhang = true\n",
    "test_lies": RUN + "[[step]]\nclaim = { tests_passing_after = true }\n",
    "test_claims_a_commit": RUN + '[[step]]\nclaim = { changes = { FIX_IMPL = { status = "SUCCEEDED" } } }\n',
    "test_broken_outcome": RUN + '[[step]]\nbreak = "outcome"\n',
    "test_broken_archive": RUN + '[[step]]\nbreak = "archive"\n',
    "test_huge_archive": RUN + '[[step]]\nbreak = "huge"\n',
    "test_leads_out": RUN + '[[step]]\nbreak = "path"\n',
    "test_misfit": RUN
    + '[[step]]\nedit = "src/ends.py"\nold = "no such line"\nnew = "x"\n'
    + '[[step]]\ncommit = "FIX_IMPL"\n',
    "test_leaves_work": RUN + '[[step]]\nuncommitted = "notes.txt"\ntext = "not committed\\n"\n',
}


def make_endings(root: Path, names: list[str] | None = None) -> GitProject:
    """Make the project and its records; with names, only with the tests that are named."""
    project = GitProject(root)
    files = {
        "src/ends.py": PROGRAM,
        FILE: TESTS,
        "TUTORIAL.md": "Helo\n",
        "pyproject.toml": SETTINGS,
        ".gitignore": "__pycache__/\n.test_output/\n/records/\n",
    }
    project.commit("Begin", files)
    for name, steps in STEPS.items():
        if names is None or name in names:
            record = f"test = {json.dumps(f'{FILE}::{name}')}\n{steps}"
            project.write({f"records/{name}.toml": record})
    return project
