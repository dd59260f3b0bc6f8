"""Which quick tests have to notice a fault in which module, and the faults that change nothing."""

from __future__ import annotations

from typing import Final

# The nearest tests first: the run of a mutant ends at the first one that fails.
CORE: Final[dict[str, tuple[str, ...]]] = {
    "swarm_tui/journal/state.py": (
        "tests/journal/test_fold.py",
        "tests/journal",
    ),
    "swarm_tui/agents/judging.py": ("tests/agents/test_judging.py",),
    "swarm_tui/sweep/slots.py": ("tests/sweep/test_schedule.py",),
    "swarm_tui/sweep/watch.py": (
        "tests/sweep/test_watch.py",
        "tests/agents/claude",
        "tests/sweep/test_sweep_runner.py",
    ),
    "swarm_tui/agents/types/claude/observer.py": ("tests/agents/claude/test_observer.py",),
    "swarm_tui/hosts/processes.py": ("tests/hosts/test_processes.py",),
    "swarm_tui/hosts/local.py": (
        "tests/hosts",
        "tests/adapters/test_mngr_contract.py",
    ),
    "swarm_tui/sweep/resume.py": (
        "tests/sweep/test_resume.py",
        "tests/sweep/test_tutorial_sweep.py",
    ),
    "swarm_tui/integrator/build.py": ("tests/integrator/test_build_branch.py",),
    "swarm_tui/testing/copies.py": ("tests/testing/test_results.py", "tests/testing/test_copies.py"),
    "swarm_tui/review/stack.py": (
        "tests/review/test_plan.py",
        "tests/review/test_preview.py",
        "tests/review/test_review.py",
        "tests/review",
    ),
    "swarm_tui/review/picking.py": (
        "tests/review/test_plan.py",
        "tests/review/test_preview.py",
        "tests/review/test_parts.py",
    ),
    "swarm_tui/review/apply.py": ("tests/review/test_apply.py",),
    "swarm_tui/room/grid/draw_layout.py": (
        "tests/room/test_layout.py",
        "tests/room/test_folders.py",
        "tests/room/test_parts.py",
    ),
    "swarm_tui/money/budget.py": ("tests/money/test_budget.py",),
    "swarm_tui/questions/groups.py": ("tests/questions/test_inbox.py",),
    "swarm_tui/questions/inbox.py": ("tests/questions/test_inbox.py",),
    "swarm_tui/failures/causes.py": ("tests/failures",),
    "swarm_tui/failures/patterns.py": ("tests/failures",),
    "swarm_tui/limits/stuck.py": ("tests/limits/test_stuck.py",),
    "swarm_tui/transcripts/layout.py": ("tests/transcripts/test_layout.py",),
    "swarm_tui/tutorial/citations.py": (
        "tests/tutorial/test_citations.py",
        "tests/tutorial/test_check.py",
    ),
    "swarm_tui/journal/recover.py": (
        "tests/journal/test_recover.py",
        "tests/journal",
    ),
    "swarm_tui/journal/append.py": ("tests/journal",),
    "swarm_tui/journal/open.py": (
        "tests/journal/test_open.py",
        "tests/journal",
    ),
    "swarm_tui/adapters/git/merging.py": (
        "tests/adapters/test_git_objects.py",
        "tests/review/test_preview.py",
    ),
}

# (module, line before, line after): why no test can tell them apart. Lines without the spaces around them.
EQUIVALENT: Final[dict[tuple[str, str, str], str]] = {
    (
        "swarm_tui/journal/append.py",
        "if time.monotonic() >= start + grace:",
        "if (time.monotonic() > start + grace):",
    ): "no clock stands still for two looks",
    ("swarm_tui/journal/append.py", "self._lines.sync()", "pass"): "seen after a power cut only",
    ("swarm_tui/journal/append.py", "os.fsync(self._descriptor)", "pass"): "seen after a power cut only",
    ("swarm_tui/adapters/git/merging.py", "self._lay_out_attributes(tree)", "pass"): "done ahead, or done when needed",
    ("swarm_tui/adapters/git/merging.py", "self._space.tree(tree)", "pass"): "read ahead, or read when needed",
    ("swarm_tui/agents/judging.py", 'return ""', "return None"): "neither speaks against an outcome",
    ("swarm_tui/sweep/slots.py", "break", "continue"): "a shortcut",
    (
        "swarm_tui/sweep/resume.py",
        '_LIVING: Final = frozenset({"RUNNING", "WAITING", "REPLACED"})',
        "_LIVING: Final = ({'RUNNING', 'WAITING', 'REPLACED'})",
    ): "the same set",
    (
        "swarm_tui/transcripts/layout.py",
        "_MARKDOWN_ROLES: Final = frozenset({Role.USER, Role.AGENT, Role.THINKING, Role.SYSTEM})",
        "_MARKDOWN_ROLES: Final = ({Role.USER, Role.AGENT, Role.THINKING, Role.SYSTEM})",
    ): "the same set",
    (
        "swarm_tui/transcripts/layout.py",
        "if len(text) <= room and (text.isascii() or cell_len(text) <= room):",
        "if len(text) <= room and ((cell_len(text) <= room)):",
    ): "a shortcut",
    (
        "swarm_tui/transcripts/layout.py",
        "if piece.isascii():\nreturn start + len(piece)",
        "pass",
    ): "a shortcut",
    (
        "swarm_tui/transcripts/layout.py",
        "if space > start:",
        "if (space >= start):",
    ): "differs in a room of one cell only, and there are eight at least",
}
