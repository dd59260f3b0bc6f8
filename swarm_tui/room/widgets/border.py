"""The border between two panels. It can be dragged, and its position is saved for the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events
from textual.geometry import Region
from textual.widget import Widget

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen

SMALLEST: Final = 15
LARGEST: Final = 85
"""In percent of both panels, so that neither panel disappears."""


class PanelBorder:
    """Keeps the dragged size of one of two panels, side by side or stacked."""

    def __init__(self, screen: RoomScreen, sized: Widget) -> None:
        """`sized`, the right or lower panel, gets the dragged size and the other panel the rest."""
        self._screen, self._sized = screen, sized
        self._is_dragged = False
        self._share = 0

    @property
    def _is_beside(self) -> bool:
        return self._screen.has_class("-wide")

    @property
    def has_share(self) -> bool:
        """Whether the user has dragged the border in this layout of the screen."""
        return bool(self._share)

    @property
    def _name(self) -> str:
        return f"{self._screen.NAME}{'' if self._is_beside else '-stacked'}"

    @property
    def _both(self) -> Region:
        parent = self._sized.parent
        assert isinstance(parent, Widget)
        return parent.region

    def show(self) -> None:
        """Apply the saved size for this layout of the screen."""
        self._apply(_shares(self._screen.room.chosen.panels).get(self._name, 0))

    def _apply(self, share: int) -> None:
        self._share = share
        styles = self._sized.styles
        used, others = ("width", ("height",)) if self._is_beside else ("height", ("width",))
        for rule in (*others, *((used, f"max_{used}") if not share else ())):
            styles.clear_rule(rule)
        if share:
            setattr(styles, used, f"{share}%")
            setattr(styles, f"max_{used}", "100%")
        self._screen.border_moved()

    def press(self, event: events.MouseDown) -> bool:
        """Start dragging if the border is at this position."""
        region, both = self._sized.region, self._both
        if not region or not both.contains(event.screen_x, event.screen_y) or region == both:
            return False
        edge, at = (region.x, event.screen_x) if self._is_beside else (region.y, event.screen_y)
        # Each of the two panels has its own border.
        self._is_dragged = at in (edge - 1, edge)
        if self._is_dragged:
            self._sized.capture_mouse()
        return self._is_dragged

    def drag(self, event: events.MouseMove) -> None:
        if not self._is_dragged:
            return
        both = self._both
        end, size, at = (
            (both.right, both.width, event.screen_x) if self._is_beside else (both.bottom, both.height, event.screen_y)
        )
        # Round up, because a fraction of a cell is cut off.
        self._apply(max(SMALLEST, min(LARGEST, -(-100 * (end - at) // max(1, size)))))

    def release(self) -> None:
        if not self._is_dragged:
            return
        self._is_dragged = False
        self._sized.release_mouse()
        shares = _shares(self._screen.room.chosen.panels) | {self._name: self._share}
        words = " ".join(f"{name}={share}" for name, share in shares.items() if share)
        self._screen.room.remember_for_project(panels=words)


def _shares(text: str) -> dict[str, int]:
    """Return the sizes from text such as `sweep=40 inbox-stacked=30`. Invalid entries are ignored."""
    pairs = (word.partition("=") for word in text.split())
    return {
        name: int(share)
        for name, _, share in pairs
        if share.isascii() and share.isdecimal() and SMALLEST <= int(share[:3]) <= LARGEST and len(share) < 3
    }
