"""Finds which variables of the user's environment a project needs, and agents and test runs do not get."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.model.environment import is_allowed_name, withheld_names
from swarm_tui.model.masking import is_secret_name

_SETTINGS_AND_CODE: Final = ("*.py", "*.toml", "*.ini", "*.cfg")
_READ: Final = r"(environ|getenv)[^'\"#]{0,20}['\"](%s)['\"]"
_NAMES_NAMED: Final = 5
# As programs report that a variable is missing.
_MISSED: Final = (
    r"KeyError: ['\"]{name}['\"]",
    r"environ\w*\W{{1,6}}(?:get\W{{1,2}})?{name}\b",
    r"(?i:environment variable|env var)[^\n]{{0,30}}\b{name}\b",
    r"\b{name}\b[^\n]{{0,40}}(?i:environment variable|env var|not set|unset|must be set|required|missing|undefined)",
)


def missed_variable(text: str, passed: Collection[str]) -> str:
    """Return the first withheld variable whose absence a message of the project reports, or ""."""
    for name in withheld_names(os.environ, passed):
        if name in text and any(re.search(form.format(name=re.escape(name)), text) for form in _MISSED):
            return name
    return ""


def pass_hint(name: str) -> str:
    """Return the option that passes a withheld variable."""
    return f"`--pass-env {name}` passes {name}, which is set here, to agents and test runs"


def report_withheld(repository: Repository, base: str, passed: Collection[str]) -> list[str]:
    """Return sentences on withheld variables that the project's files read, and on secrets in common variables."""
    names = [name for name in withheld_names(os.environ, passed) if re.fullmatch(r"\w+", name)]
    sentences = [
        f"{name} contains a secret, so that agents and test runs do not get it: --pass-env {name} passes it"
        for name in names
        if is_allowed_name(name) and not is_secret_name(name)
    ]
    found = _names_read(repository, base, names) if names else []
    if found:
        named = ", ".join(found[:_NAMES_NAMED]) + (", ..." if len(found) > _NAMES_NAMED else "")
        options = " ".join(f"--pass-env {name}" for name in found[:_NAMES_NAMED])
        sentences.append(f"the project reads {named}, but agents and test runs do not get that: {options}")
    return sentences


def _names_read(repository: Repository, base: str, names: Collection[str]) -> list[str]:
    """Return the names that files of a commit read from the environment."""
    words = ("grep", "-h", "-o", "-I", "-E", _READ % "|".join(names), base, "--", *_SETTINGS_AND_CODE)
    answer = repository.run(*words, environment={"GIT_LITERAL_PATHSPECS": "0"}, codes=(0, 1))
    return sorted({name for line in answer.text.splitlines() for name in re.findall(r"['\"](\w+)['\"]$", line)})
