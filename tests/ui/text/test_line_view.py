"""Colours of rows: looked up when they are drawn and after a change of theme; output is readable in each."""

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tests.support.table import table
from tui_agent.ui.app.themes import read_theme, shipped_themes
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.terminal_output import LEAST_CONTRAST, contrast

DARK = read_theme(shipped_themes() / "dark.toml")


WORDS = [
    *(f"sgr-f{number}" for number in range(256)),
    *(f"sgr-f#{level:02x}{level:02x}{255 - level:02x}" for level in range(0, 256, 15)),
    *("sgr-f0 sgr-b0", "sgr-f15 sgr-b15", "sgr-f1 sgr-b9", "sgr-reverse", "sgr-reverse sgr-f3", "sgr-dim sgr-f4"),
]


class Host(App[None]):
    """A view with one row in one theme."""

    def __init__(self, theme: str = "dark") -> None:
        super().__init__()
        self._name = theme

    def compose(self) -> ComposeResult:
        """The view."""
        yield RowsView(lambda _: [Line((("title", "heading-1"), ("text", "muted")))])

    def on_mount(self) -> None:
        """The theme, and one that differs from it only in a colour that the view itself does not have."""
        self.register_theme(read_theme(shipped_themes() / f"{self._name}.toml"))
        self.register_theme(replace(DARK, name="other", primary="#ff8800"))
        self.theme = self._name


async def test_a_theme_with_the_same_ground_changes_the_colours_of_the_rows() -> None:
    async with Host().run_test() as pilot:
        view = pilot.app.query_one(RowsView)
        before = view.style_named("heading-1")

        pilot.app.theme = "other"
        await pilot.pause()

        assert view.style_named("heading-1") != before
        assert view.style_named("muted") != view.style_named("heading-1")


async def test_only_colours_that_are_drawn_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: set[str] = set()
    apply = Stylesheet.apply

    def counted(stylesheet: Stylesheet, node: DOMNode, **settings: object) -> None:
        applied.update(name for name in node.classes if name.startswith("line--"))
        apply(stylesheet, node, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Stylesheet, "apply", counted)
    async with Host().run_test() as pilot:
        await pilot.pause()

        assert applied == {"line--heading-1", "line--muted"}


@table("theme", ["dark", "light", "high-contrast"])
async def test_every_colour_is_readable_in_every_theme(theme: str) -> None:
    async with Host(theme).run_test() as pilot:
        view = pilot.app.query_one(RowsView)
        for words in WORDS:
            style = view.style_named(f"muted {words}")
            assert style.color is not None
            assert style.bgcolor is not None
            colour, ground = (Color.from_rich_color(shown) for shown in (style.color, style.bgcolor))
            assert contrast(colour, ground) >= LEAST_CONTRAST - 0.1, words


async def test_a_terminal_with_its_own_colours_gets_their_numbers() -> None:
    async with Host("ansi").run_test() as pilot:
        view = pilot.app.query_one(RowsView)

        for number in (1, 9, 208):
            colour = view.style_named(f"muted sgr-bold sgr-f{number}").color
            assert colour is not None
            assert colour.number == number
        assert view.style_named("muted sgr-reverse").reverse
        # Text in the colour of its ground would be hidden.
        assert view.style_named("sgr-f4 sgr-b4") == view.style_named("")
