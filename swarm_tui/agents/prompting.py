"""Renders the prompts of agents from the packaged templates or from templates that the user names."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, OUTPUT_FOLDER, PACKED_OUTPUT_FOLDER, Task
from swarm_tui.errors import UsageError
from swarm_tui.files import read_regular
from swarm_tui.integrator.events import Revision
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.results import Baseline

if TYPE_CHECKING:
    from jinja2 import TemplateSyntaxError
    from pydantic import BaseModel

TEMPLATES: Final = Path(__file__).parent / "prompts"
MAPPER_TEMPLATE: Final = TEMPLATES / "mapper.md.jinja"
INTEGRATOR_TEMPLATE: Final = TEMPLATES / "integrator.md.jinja"
FILL_TEMPLATE: Final = TEMPLATES / "tutorial_fill.md.jinja"
REVISE_TEMPLATE: Final = TEMPLATES / "revise.md.jinja"
SYNC_TEMPLATE: Final = TEMPLATES / "tutorial_sync.md.jinja"


def render_prompt(template: Path, task: Task, *, block: str = "", baseline: Baseline = Baseline.UNKNOWN) -> str:
    """Return the prompt for a task. Raise UsageError with the line number if the template is invalid."""
    command = shlex.join(task.pytest)
    values = {"task": task, "test": task.test, "block": block, "baseline": baseline.value, "command": command}
    return _render(template, values)


def render_revision(task: Task, revision: Revision, fix: str) -> str:
    """Return the prompt for a fix that was sent back with a comment; `fix` is the title of the fix."""
    values = {"comment": revision.comment, "hunk": revision.hunk, "fix": fix}
    return _render(REVISE_TEMPLATE, {"task": task, "test": task.test, "command": shlex.join(task.pytest), **values})


def note_section(note: str) -> str:
    """Return the section of a prompt with the user's note about an earlier agent's work; "" without a note."""
    quoted = note.replace("\n", "\n> ")
    head = "An earlier agent worked on this, and the user has read its report. You start from the base commit again."
    return f"\n## Note from the user\n\n{head}\n\n> {quoted}\n" if note else ""


def render_tutorial_prompt(template: Path, task: Task, values: Mapping[str, object]) -> str:
    return _render(template, {"task": task, "check": shlex.join(task.pytest), **values})


def render_integrator_prompt(template: Path | None, inputs: BaseModel, sweep_folder: Path) -> str:
    values = {
        "inputs": inputs,
        "sweep_folder": str(sweep_folder),
        "outcome": f"{OUTPUT_FOLDER}/{INTEGRATOR_OUTCOME_FILE}",
    }
    return _render(template or INTEGRATOR_TEMPLATE, values)


def _render(template: Path, values: Mapping[str, object]) -> str:
    import jinja2

    source = _read(template)
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
    except jinja2.TemplateSyntaxError as error:
        raise _broken(template, error) from error
    except jinja2.TemplateError as error:
        raise UsageError(f"invalid prompt template {template}: {error.message or str(error)}") from error


def check_template(template: Path) -> None:
    """Raise UsageError if a template cannot be read or parsed. Its values are not needed for that."""
    import jinja2

    try:
        jinja2.Environment(autoescape=False).parse(_read(template))
    except jinja2.TemplateSyntaxError as error:
        raise _broken(template, error) from error


def _read(template: Path) -> str:
    try:
        return read_regular(template).decode()
    except OSError as error:
        raise UsageError(f"cannot read prompt template {template}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"prompt template is not UTF-8: {template}", "save it as UTF-8") from error


def _broken(template: Path, error: TemplateSyntaxError) -> UsageError:
    return UsageError(f"invalid prompt template {template}, line {error.lineno}: {error.message or str(error)}")
