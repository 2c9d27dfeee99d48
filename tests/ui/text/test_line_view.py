"""Colours of rows: looked up when they are drawn, and looked up again after a change of theme."""

from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tui_agent.ui.app.themes import read_theme, shipped_themes
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsView

DARK = read_theme(shipped_themes() / "dark.toml")


class Host(App[None]):
    """A view with one row."""

    def compose(self) -> ComposeResult:
        """The view."""
        yield RowsView(lambda _: [Line((("title", "heading-1"), ("text", "muted")))])

    def on_mount(self) -> None:
        """The theme, and one that differs from it only in a colour that the view itself does not have."""
        self.register_theme(DARK)
        self.register_theme(replace(DARK, name="other", primary="#ff8800"))
        self.theme = "dark"


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
