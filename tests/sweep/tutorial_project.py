"""The sample project with its tutorial out of step on purpose, and the recorded work of agents that put it right."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.demo import sample_repository
from swarm_tui.tutorial.read import read_blocks
from tests.git_project import GitProject

MILK, MILK_LATER = "--best-before 2026-03-04", "--best-before 2026-03-05"
FIND_TEST = '''\
"""Finding something again."""

from swarm_tui.e2e import E2eSession, expect


def test_find_ignores_capitals(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Was there any of that left?
        larder find FLOUR
    """)
    e2e.run("larder add flour 1kg", comment="One bag")
    expect(e2e.run("larder find FLOUR", comment="Was there any left?").stdout).to_contain("1 kg of flour")


def test_find_says_when_there_is_none(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Was there any of that left?
        larder find FLOUR
    """)
    result = e2e.run("larder find FLOUR", comment="The shelf is empty")
    expect(result).to_exit_with(1)
    expect(result.stderr).to_contain("nothing like FLOUR")
'''
SHOP_TEST = '''\
"""Going shopping."""

from swarm_tui.e2e import E2eSession, expect


def test_shop(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
BLOCK
    """)
    expect(e2e.run("larder shop").stdout).to_contain("there is nothing to buy")
'''


def out_of_step(folder: Path) -> GitProject:
    """Return the sample with three blocks without a test, one that was edited, and a test of one that is gone."""
    root = sample_repository(folder)
    tutorial, look = (root / "tutorial.sh").read_text(), (root / "tests/e2e/test_look.py").read_text()
    share = (root / "tests/e2e/test_share.py").read_text()
    project = GitProject(root)
    project.commit(
        "Let the tutorial go its own way",
        {
            "tutorial.sh": tutorial.replace(MILK, MILK_LATER).replace(
                "# It was oat milk.\nlarder rename milk oat-milk\n\n", ""
            ),
            "tests/e2e/test_shop.py": None,
            "tests/e2e/test_look.py": _without(look, "test_find_ignores_capitals"),
            "tests/e2e/test_share.py": share[: share.index("\n\ndef test_share_with_the_family")],
        },
    )
    return project


def unfilled(folder: Path) -> GitProject:
    """Return the sample with two comments of its tutorial that have no commands any more, and one that needs none."""
    root = sample_repository(folder)
    tutorial = (root / "tutorial.sh").read_text()
    for command in ("larder find FLOUR\n", 'larder share "$LARDER_SHARE"\n'):
        assert command in tutorial
        tutorial = tutorial.replace(command, "")
    tutorial = tutorial.replace(
        "# ── Use things up ──\n", "# ── Use things up ──\n\n# All that follows takes something off.\n"
    )
    project = GitProject(root)
    project.commit("Leave comments without commands", {"tutorial.sh": tutorial})
    return project


def _without(source: str, test: str) -> str:
    start = source.index(f"def {test}(")
    return source[:start] + source[source.index("\ndef ", start) + 1 :]


def line_of(project: GitProject, words: str) -> int:
    """Return the line of the tutorial that begins with these words."""
    lines = (project.root / "tutorial.sh").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(words))


def record_sync(project: GitProject) -> Path:
    """Write what the agents play for `sync`, two blocks each; one test of theirs is wrong, one they cannot write."""
    folder = project.root / ".git" / "records"
    (block,) = (each for each in read_blocks(project.root / "tutorial.sh") if each.commands[-1] == "larder shop")
    milk, shop = line_of(project, "# Milk does not keep"), line_of(project, "# Always keep some")
    command = "larder add milk 1l --aisle dairy"
    record(
        folder / "first.toml",
        f"tutorial.sh::{milk} Milk does not keep: say until when. (+1)",
        ("say", "The date of the milk was changed."),
        ("run", "as it is"),
        ("edit", "tests/e2e/test_fill.py", f'{command} {MILK}\n    """', f'{command} {MILK_LATER}\n    """'),
        ("edit", "tests/e2e/test_fill.py", f'{command} {MILK}"', f'{command} {MILK_LATER}"'),
        ("commit", "FIX_TEST", "Say until when milk keeps"),
        ("write", "tests/e2e/test_was_there_any_of_that_left.py", FIND_TEST),
        ("run", "with both"),
        ("commit", "IMPROVE_TEST", "Find what is left"),
    )
    record(
        folder / "second.toml",
        f"tutorial.sh::{shop} Always keep some of these, and say what to buy. (+1)",
        ("run", "as it is"),
        ("write", "tests/e2e/test_shop.py", SHOP_TEST.replace("BLOCK", block.text)),
        ("commit", "IMPROVE_TEST", "Go shopping"),
        ("escalate", "HARD_TO_USE", "Let the family see it.", "`share` needs a folder that only one machine has."),
    )
    return folder


def record_fill(project: GitProject) -> Path:
    """Write what the agent plays for `fill`: one comment filled, one hard to use, one that needs no command."""
    folder = project.root / ".git" / "records"
    left = line_of(project, "# Was there any of that left?")
    record(
        folder / "fill.toml",
        f"tutorial.sh::{left} Was there any of that left? (+2)",
        ("run", "as it is"),
        (
            "edit",
            "tutorial.sh",
            "# Was there any of that left?\n",
            "# Was there any of that left?\nlarder find FLOUR\n",
        ),
        ("commit", "FIX_TUTORIAL", "Find what is left"),
        ("run", "with one of them"),
        ("escalate", "HARD_TO_USE", "Let the family see it.", "There is no way to say where the family is."),
        ("claim", "needs_no_command", "All that follows takes something off."),
    )
    return folder


_KEYS = {
    "edit": ("old", "new"),
    "write": ("text",),
    "commit": ("message",),
    "escalate": ("title", "detail"),
}


def record(path: Path, test: str, *steps: tuple[str, ...]) -> None:
    """Write what the offline agent plays for one batch."""
    lines = [f"test = {_quoted(test)}", 'summary = "Played."']
    for name, value, *more in steps:
        lines += ["", "[[step]]"]
        if name == "claim":
            lines.append(f"claim = {{ {value} = [{', '.join(map(_quoted, more))}] }}")
            continue
        lines.append(f"{name} = {_quoted(value)}")
        lines += [f"{key} = {_quoted(text)}" for key, text in zip(_KEYS.get(name, ()), more, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
