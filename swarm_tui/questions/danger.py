"""Recognise commands that can destroy work or reach beyond the agent's copy, so that approving one takes a second key.

This is a reminder for the user, not a protection: a script can do anything under a harmless name.
"""

from __future__ import annotations

import re
from typing import Final

from swarm_tui.model.questions import SHELL_TOOLS, Question

_OPTIONS: Final = r"(?:\s+-[^\s;|&]+)*"
_RISKS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), risk)
    for pattern, risk in (
        (r"\brm\s(?:[^;|&]*\s)?-(?:\w*r|-recursive)|\bfind\b[^;|]*\s-delete\b|\bshred\b", "deletes files"),
        (r"\bgit\b[^;|&]*\spush\b[^;|&]*\s(?:-f\b|--force|--delete|--mirror|\+)", "overwrites a remote branch"),
        (r"\bgit\b[^;|&]*\spush\b", "publishes commits"),
        (rf"\bgit{_OPTIONS}\s+(?:reset\b[^;|&]*--hard|clean\b[^;|&]*\s-\w*f|checkout\s+(?:--\s|\.))", "discards work"),
        (r"\b(?:sudo|doas|su)\s", "runs as another user"),
        (r"\b(?:curl|wget|base64)\b[^;&]*\|\s*(?:\w+\s+)*(?:ba|z|da)?sh\b", "runs code that it downloads or decodes"),
        (
            r"\b(?:curl|wget|base64)\b[^;&]*\|\s*(?:\w+\s+)*(?:python|perl|ruby|node)",
            "runs code that it downloads or decodes",
        ),
        (
            r"\b(?:mkfs\S*|fdisk|wipefs)\s|\bdd\s[^;|&]*\bof=|>\s*/dev/(?!null|std|tty|fd)",
            "overwrites a disk or a file",
        ),
        (r"\b(?:chmod|chown|chgrp)\s(?:[^;|&]*\s)?-\w*R", "changes the permissions of many files"),
        (
            r"\bkill(?:all)?\s(?:[^;|&]*\s)?-(?:9|KILL|SIGKILL)|\b(?:killall|pkill|shutdown|reboot)\b",
            "ends other processes",
        ),
        (r"\b(?:docker|podman)\b[^;|&]*\s(?:prune|rm|rmi|down)\b", "removes containers or images"),
        (r"\bdrop\s+(?:database|table|schema)\b|\btruncate\s+table\b", "deletes data"),
        (r"(?:^|[\s/'\"~])\.(?:ssh|aws|gnupg|netrc|kube)\b", "reads or writes credentials"),
    )
)


def risk_of(question: Question | None) -> str:
    """Return what makes the command that an agent wants to run dangerous, or ""."""
    if question is None or question.tool not in SHELL_TOOLS:
        return ""
    command = re.sub(r"\\\n|['\"\\]", "", question.subject)
    return next((risk for pattern, risk in _RISKS if pattern.search(command)), "")
