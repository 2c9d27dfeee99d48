"""Rows to scroll through, and whether they were read."""

import asyncio

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.styled_lines import plain_line


class ViewApp(App[None]):
    """One view, as large as the screen."""

    def __init__(self, view: RowsView) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        yield self._view


def numbered(count: int) -> RowsView:
    return RowsView(lambda width: [plain_line(f"row {number} of width {width}") for number in range(count)])


async def drawn(pilot: Pilot[None]) -> None:
    """Waits until the screen was painted."""
    painted = asyncio.Event()
    pilot.app.screen.call_after_refresh(painted.set)
    pilot.app.screen.refresh()
    await painted.wait()
    await pilot.pause()


def shown(view: RowsView) -> list[str]:
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


async def test_reading_on_never_outruns_what_was_drawn() -> None:
    view = numbered(40)
    async with ViewApp(view).run_test(size=(40, 5)) as pilot:
        await drawn(pilot)
        for _ in range(3):
            view.read_on(4)
        assert view.scroll_offset.y == 5, "all three came before anything else was drawn"

        for _ in range(10):
            view.read_on(4)
            await drawn(pilot)
        assert view.read_to_end


async def test_rows_of_another_width_are_to_be_read_anew() -> None:
    view = RowsView(lambda width: [plain_line(f"{number}") for number in range(400 // width)])
    async with ViewApp(view).run_test(size=(21, 5)) as pilot:
        await drawn(pilot)
        view.read_on(4)
        await drawn(pilot)
        assert not view.read_to_end

        await pilot.resize_terminal(51, 5)
        await drawn(pilot)
        assert view.total == 8
        assert not view.read_to_end, "nine rows of twenty cells are not eight rows of fifty"


async def test_what_was_shown_by_a_window_that_was_never_drawn_is_unread() -> None:
    view = numbered(12)
    async with ViewApp(view).run_test(size=(40, 5)) as pilot:
        with pilot.app.batch_update():
            view.styles.height = 30
            view.styles.height = 5
        await drawn(pilot)

        assert not view.read_to_end
