"""Converts roles of text to styles: palettes for dark, light and terminal-colour themes, and NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import quote

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

from swarm_tui.room.draw.glyphs import ASCII_OF
from swarm_tui.room.draw.spans import Line

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget

DARK: Final = {
    "cyan": "#56b6c2", "yellow": "#e5c07b", "green": "#98c379", "leaf": "#6d8f5e", "magenta": "#c678dd",
    "red": "#e06c75", "orange": "#e0925a", "teal": "#4d8890",
}  # fmt: skip
LIGHT: Final = {
    "cyan": "#0f7c8a", "yellow": "#9a6700", "green": "#3f7a22", "leaf": "#5d8a4c", "magenta": "#8f3fa8",
    "red": "#c4303b", "orange": "#b4560c", "teal": "#4d8890",
}  # fmt: skip
TERMINAL: Final = {
    "cyan": "cyan", "yellow": "yellow", "green": "green", "leaf": "green", "magenta": "magenta", "red": "red",
    "orange": "bright_red", "teal": "cyan", "text": "default", "muted": "default", "faint": "default",
}  # fmt: skip

# Role: colour of the palette, then attributes. Only terminal colours use dim, because they have no shades.
ROLES: Final[dict[str, tuple[str, str]]] = {
    "": ("text", ""),
    "dim": ("muted", "terminal-dim"),
    "faint": ("faint", "terminal-dim"),
    "strong": ("text", "bold"),
    "heading": ("muted", "bold"),
    "accent": ("accent", ""),
    "key": ("accent", "bold"),
    "here": ("text", "bold underline"),
    "number_open": ("yellow", ""),
    "queued": ("muted", "terminal-dim"),
    "launching": ("teal", "terminal-dim"),
    "running": ("cyan", ""),
    "waiting": ("yellow", "bold"),
    "held": ("yellow", ""),
    "api_error": ("yellow", ""),
    "clean": ("leaf", "terminal-dim"),
    "skipped": ("muted", "terminal-dim"),
    "fixed": ("green", ""),
    "impl_fix": ("magenta", ""),
    "unresolved": ("red", ""),
    "blocked": ("orange", ""),
    "stopped": ("muted", "terminal-dim"),
    "stale": ("muted", "terminal-dim italic"),
    "good": ("green", ""),
    "warning": ("yellow", ""),
    "error": ("red", "bold"),
    "added": ("green", ""),
    "removed": ("red", ""),
    "hunk": ("cyan", ""),
    "keyword": ("magenta", ""),
    "string": ("yellow", ""),
    "number": ("orange", ""),
    "comment": ("muted", "italic"),
    "name": ("cyan", ""),
    "match": ("yellow", "bold underline"),
    "marked": ("yellow", "bold underline"),
    "pending": ("", "italic underline"),
    "underline": ("", "underline"),
    "bold": ("", "bold"),
}


READABLE: Final = 4.5
"""Minimum contrast of important text with its background, as in WCAG."""
VISIBLE: Final = 2.0
"""Minimum contrast of separators and of disabled keys."""
SHADES_256: Final = {
    True: {"line": 236, "plus": 22, "minus": 52},
    False: {"line": 253, "plus": 194, "minus": 224},
}
"""Backgrounds for 256 colours in dark and light themes. The nearest colours to a blend would be grey."""


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    parts = (part / 255 for part in colour.rgb)
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def readable(colour: Color, backgrounds: Sequence[Color], least: float = READABLE) -> Color:
    """Return the colour, changed in lightness until it is readable on all of these backgrounds."""
    ends = (Color.parse("#ffffff"), Color.parse("#000000"))
    end = max(ends, key=lambda end: min(contrast(end, background) for background in backgrounds))
    for step in range(21):
        mixed = colour.blend(end, step / 20)
        if all(contrast(mixed, background) >= least for background in backgrounds):
            return mixed
    return end


class ThemeStyles:
    """The styles of one theme. Caches compare this object by identity to detect a change of theme."""

    def __init__(self, app: App[Any], is_ascii: bool) -> None:
        theme = app.current_theme
        self.is_ascii = is_ascii
        self.is_terminal = bool(theme.ansi)
        self.backgrounds: dict[str, Color] = {}
        """Backgrounds of text: the screen, the cursor line, added and removed lines. Empty for terminal colours."""
        if self.is_terminal:
            self._palette = TERMINAL | {"accent": "blue", "": ""}
            self.base = Style.parse("default on default")
            line = Style.parse("reverse default on default")
        else:
            variables = app.get_css_variables()
            background = _colour(variables.get("background"), "#121212")
            foreground = _colour(variables.get("foreground"), "#e0e0e0")
            accent = _colour(variables.get("primary"), "#61afef")
            bases = DARK if theme.dark else LIGHT
            self.backgrounds = {
                "": background,
                "line": background.blend(accent, 0.24 if theme.dark else 0.16),
                "plus": background.blend(Color.parse(bases["green"]), 0.14),
                "minus": background.blend(Color.parse(bases["red"]), 0.14),
            }
            if app.console.color_system == "256":
                self.backgrounds |= {word: _of_256(number) for word, number in SHADES_256[theme.dark].items()}
            wanted = {name: Color.parse(colour) for name, colour in bases.items()} | {
                "text": background.blend(foreground, 0.85),
                "muted": background.blend(foreground, 0.6),
                "accent": accent.lighten(0.12) if theme.dark else accent,
            }
            under = list(self.backgrounds.values())
            self._palette = {name: readable(colour, under).hex for name, colour in wanted.items()}
            self._palette["faint"] = readable(background.blend(foreground, 0.38), under, VISIBLE).hex
            self._palette[""] = ""
            self.base = Style.parse(f"{self._palette['text']} on {background.hex}")
            line = Style.parse("reverse" if app.no_color else self._background(app, "line"))
        self._overlays = {"cursor": Style.parse("reverse"), "line": line} | self._shades(app)
        self._styles: dict[str, Style] = {}

    def _shades(self, app: App[object]) -> dict[str, Style]:
        """Return the style of added or removed lines: a background, or a text colour if the theme has no shades."""
        if app.no_color:
            return {"plus": Style.null(), "minus": Style.null()}
        if self.is_terminal:
            return {"plus": Style.parse(TERMINAL["green"]), "minus": Style.parse(TERMINAL["red"])}
        return {word: Style.parse(self._background(app, word)) for word in ("plus", "minus")}

    def _background(self, app: App[Any], word: str) -> str:
        if app.console.color_system == "256":
            return f"on color({SHADES_256[app.current_theme.dark][word]})"
        return f"on {self.backgrounds[word].hex}"

    def style(self, role: str) -> Style:
        """Return the style of one role or of several separated by spaces. The last roles override the first."""
        style = self._styles.get(role)
        if style is None:
            style = self.base
            for word in role.split():
                style += self._word(word)
            self._styles[role] = style
        return style

    def _word(self, word: str) -> Style:
        if word in self._overlays:
            return self._overlays[word]
        colour, attributes = ROLES.get(word, ("", ""))
        words = [self._palette[colour]] if colour else []
        for attribute in attributes.split():
            if attribute != "terminal-dim":
                words.append(attribute)
            elif self.is_terminal:
                words.append("dim")
        return Style.parse(" ".join(words)) if words else Style.null()

    def strip(self, line: Line, width: int, over: str = "") -> Strip:
        """Return the line as exactly `width` cells, with the role `over` on top of every cell."""
        style = self.style
        is_ascii = self.is_ascii
        segments = []
        for part in line:
            text = part.text.translate(ASCII_OF) if is_ascii else part.text
            if text:
                drawn = style(f"{part.role} {over}" if over else part.role)
                segments.append(Segment(text, drawn + link_to(part.spot) if part.spot.startswith("file:") else drawn))
        return Strip(segments).adjust_cell_length(width, style(over))


def link_to(spot: str) -> Style:
    """Return the style of a link that terminals can open (OSC 8)."""
    line, _, path = spot.removeprefix("file:").partition(":")
    return Style(link=f"file://{quote(path)}#{line}")


def _of_256(number: int) -> Color:
    return Color.from_rich_color(RichColor.from_ansi(number))


def _colour(name: str | None, fallback: str) -> Color:
    try:
        return Color.parse(name or fallback)
    except ColorParseError:
        return Color.parse(fallback)


class HasThemeStyles(Protocol):
    """An app with the styles of a theme."""

    theme_styles: ThemeStyles


def segments_strip(widget: Widget, segments: Iterable[Segment]) -> Strip:
    """Return segments of terminal output as one line of a widget, on the base style of the theme."""
    base = styles_of(widget).base
    styled = [Segment(segment.text, base + segment.style if segment.style else base) for segment in segments]
    return Strip(styled).adjust_cell_length(widget.size.width, base)


def styles_of(widget: Widget) -> ThemeStyles:
    return cast(HasThemeStyles, widget.app).theme_styles
