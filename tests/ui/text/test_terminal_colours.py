"""Colours of programs' output in each theme: readable on its ground."""

from textual.app import App, ComposeResult
from textual.color import Color

from tests.support.table import table
from tui_agent.ui.app.themes import read_theme, shipped_themes
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.terminal_output import LEAST_CONTRAST, contrast

WORDS = [
    *(f"sgr-f{number}" for number in range(256)),
    *(f"sgr-f#{level:02x}{level:02x}{255 - level:02x}" for level in range(0, 256, 15)),
    *("sgr-f0 sgr-b0", "sgr-f15 sgr-b15", "sgr-f1 sgr-b9", "sgr-reverse", "sgr-reverse sgr-f3", "sgr-dim sgr-f4"),
]


class Host(App[None]):
    """A view in one theme."""

    def __init__(self, theme: str) -> None:
        super().__init__()
        self._name = theme

    def compose(self) -> ComposeResult:
        """The view."""
        yield RowsView(lambda _: [Line((("x", "muted sgr-f1"),))])

    def on_mount(self) -> None:
        """The theme."""
        self.register_theme(read_theme(shipped_themes() / f"{self._name}.toml"))
        self.theme = self._name


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


async def test_text_in_the_colour_of_its_ground_is_not_hidden_in_a_terminals_own_colours() -> None:
    async with Host("ansi").run_test() as pilot:
        view = pilot.app.query_one(RowsView)

        assert view.style_named("sgr-f4 sgr-b4") == view.style_named("")
