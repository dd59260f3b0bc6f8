"""Text is readable in every theme, states differ by more than colour, and few colours are enough."""

from collections.abc import Iterator

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.results import MARKS
from swarm_tui.room.colours import READABLE, ROLES, SHADES_256, VISIBLE, ThemeStyles, contrast
from swarm_tui.room.draw.glyphs import ASCII_OF, HELD_GLYPH, PILLS, mark_of_pill
from swarm_tui.room.draw.spans import Span
from swarm_tui.room.settings import TERMINAL_THEME
from tests.room.scenes import Scene, fixed_sweep, room_on

THEMES = [name for name, theme in BUILTIN_THEMES.items() if not theme.ansi]


@pytest.fixture(scope="module")
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(30) as sweep:
        yield sweep


def test_contrast_matches_wcag() -> None:
    black, white, grey = Color.parse("#000000"), Color.parse("#ffffff"), Color.parse("#777777")
    assert contrast(black, white) == contrast(white, black) == 21.0
    assert contrast(grey, white) == pytest.approx(4.48, abs=0.01)


async def test_important_text_is_readable_in_every_theme(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("themes", (), 120, 36)) as (app, _):
        for name in THEMES:
            app.theme = name
            styles = ThemeStyles(app, False)
            for role, (colour, _) in ROLES.items():
                shown = styles.style(role).color
                assert shown is not None
                least = VISIBLE if colour == "faint" else READABLE
                for under, background in styles.backgrounds.items():
                    measured = contrast(Color.from_rich_color(shown), background)
                    assert measured >= least, f"{name}: {role or 'text'} on {under or 'the screen'}: {measured:.1f}"


def test_state_words_are_not_faint() -> None:
    assert {ROLES[mark.role][0] for mark in MARKS.values()} & {"faint", ""} == set()


def test_pills_differ_by_more_than_colour() -> None:
    for is_ascii in (False, True):
        glyphs = [HELD_GLYPH, *(mark_of_pill(pill).glyph for pill in PILLS)]
        shown = [glyph.translate(ASCII_OF) if is_ascii else glyph for glyph in glyphs]
        assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("is_dark", [True, False])
def test_256_colours_added_green_removed_red(is_dark: bool) -> None:
    # In the cube of 6x6x6 colours: 16 + 36 * red + 6 * green + blue.
    for word, strongest in (("plus", 1), ("minus", 0)):
        number = SHADES_256[is_dark][word] - 16
        parts = [number // 36, number // 6 % 6, number % 6]
        assert parts[strongest] == max(parts)
        assert parts.count(max(parts)) == 1


async def test_diff_line_without_shades_is_green_or_red(folder: SweepFolder) -> None:
    async with room_on(folder, Scene("few", (), 80, 24, theme=TERMINAL_THEME)) as (app, _):
        styles = ThemeStyles(app, False)
        for over, colour in (("plus", "green"), ("minus", "red")):
            (segment,) = styles.strip((Span("return", "keyword"),), 6, over)
            assert segment.style is not None
            assert segment.style.color is not None
            assert segment.style.color.name == colour
