"""The first paint of a screen already has the layout for the window."""

from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from tests.support.table import table
from tui_agent.ui.base.app_type import apply_initial_breakpoints


class Noting(Static):
    """A widget that records each width it is laid out for."""

    def __init__(self) -> None:
        super().__init__()
        self.widths: list[int] = []

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        self.widths.append(size.width)
        return super()._size_updated(size, virtual_size, container_size, layout)


class Page(Screen[None]):
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (10, "-high")]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.noting = Noting()

    def compose(self) -> ComposeResult:
        apply_initial_breakpoints(self, self.app.size)
        yield self.noting


class PageApp(App[None]):
    CSS = """
    Noting { width: 50%; }
    .-narrow Noting { width: 100%; }
    .-low Noting { width: 25%; }
    """

    def get_default_screen(self) -> Page:
        return Page()


@table(("size", "width"), [((80, 24), 80), ((120, 24), 60), ((80, 6), 20)])
async def test_no_other_shape_is_laid_out(size: tuple[int, int], width: int) -> None:
    async with PageApp().run_test(size=size) as pilot:
        await pilot.pause()
        assert isinstance(pilot.app.screen, Page)

        assert set(pilot.app.screen.noting.widths) == {width}
