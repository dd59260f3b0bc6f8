"""Makes the prompt of an agent from a template: ours, or the one that a person gives instead."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, OUTPUT_FOLDER, PACKED_OUTPUT_FOLDER
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.task import Task
from swarm_tui.errors import UsageError
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE

TEMPLATES: Final = Path(__file__).parent / "prompts"
MAPPER_TEMPLATE: Final = TEMPLATES / "mapper.md.jinja"
INTEGRATOR_TEMPLATE: Final = TEMPLATES / "integrator.md.jinja"
FILL_TEMPLATE: Final = TEMPLATES / "tutorial_fill.md.jinja"
SYNC_TEMPLATE: Final = TEMPLATES / "tutorial_sync.md.jinja"


def render_prompt(template: Path, task: Task, *, block: str = "") -> str:
    """Give the prompt for a task; a template that cannot be used is an error with the place in it."""
    return _render(template, {"task": task, "test": task.test, "block": block, "command": shlex.join(task.pytest)})


def render_tutorial_prompt(template: Path, task: Task, values: Mapping[str, object]) -> str:
    """Give the prompt for a batch of a tutorial's blocks."""
    return _render(template, {"task": task, "check": shlex.join(task.pytest), **values})


def render_integrator_prompt(template: Path | None, inputs: IntegratorInputs, sweep_folder: Path) -> str:
    """Give the prompt for a coding agent that integrates."""
    values = {
        "inputs": inputs,
        "sweep_folder": str(sweep_folder),
        "outcome": f"{OUTPUT_FOLDER}/{INTEGRATOR_OUTCOME_FILE}",
    }
    return _render(template or INTEGRATOR_TEMPLATE, values)


def _render(template: Path, values: Mapping[str, object]) -> str:
    import jinja2

    try:
        source = template.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"the prompt {template} cannot be read", str(error)) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, TEMPLATES]),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = shlex.quote
    try:
        return environment.from_string(source).render(
            output_folder=OUTPUT_FOLDER,
            packed_folder=PACKED_OUTPUT_FOLDER,
            bundle=BUNDLE_FILE,
            archive=ARCHIVE_PATH,
            **values,
        )
    except jinja2.TemplateError as error:
        place = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        raise UsageError(f"the prompt {template} cannot be used{place}", error.message or str(error)) from error


def message_for(prompt: Path) -> str:
    """Give the short message that an agent gets: a terminal cuts long lines, a file is read whole."""
    return f"Read {prompt} and do everything it says, to its last step."
