"""What the merge view shows where there are no fixes yet, or none any more: how far the sweep is."""

from __future__ import annotations

from swarm_tui.room.draw.no_fixes import draw_no_fixes, no_fixes_message
from swarm_tui.room.draw.parts import Part, wrap_text
from swarm_tui.room.no_fixes_facts import no_fixes_facts
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.lines import TextLines


class NoFixesPanel:
    """Stands in the place of the fixes."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TextLines(id="no-fixes")

    def show(self, problem: str) -> None:
        """Show how far the sweep is, or the problem because of which the branch could not be read."""
        width = max(20, self.lines.text_width)
        facts = no_fixes_facts(self._screen.store)
        if problem and not facts.is_simulated:
            title, text, role = "No fixes", problem, "warning"
        else:
            title, text, role = no_fixes_message(facts)
        self.lines.title(title)
        if self._screen.room.given_review is None:
            self.lines.show(draw_no_fixes(facts, text, role, width))
        else:
            self.lines.show([[Part(row, role)] for row in wrap_text(text, width, 12)])
