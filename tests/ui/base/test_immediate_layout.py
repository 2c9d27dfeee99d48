"""The first paint of a screen has the layout for the window, and a widget receives each size that it gets."""

from textual.app import App, ComposeResult
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from tests.support.table import table
from tui_agent.ui.base.app_type import AnyScreen, apply_initial_breakpoints, report_each_layout


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


class Sized(Static):
    """Widget that counts its sizes."""

    DEFAULT_CSS = "Sized { height: 1fr; display: none; }"

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[Size] = []

    def on_resize(self, event: Resize) -> None:
        self.sizes.append(event.size)


class SmallScreen(AnyScreen):
    """Screen with one widget below a row."""

    def __init__(self) -> None:
        super().__init__()
        report_each_layout(self)

    def compose(self) -> ComposeResult:
        yield Static("a row", id="row")
        yield Sized()


class SmallApp(App[None]):
    """App with that screen."""

    def on_mount(self) -> None:
        self.push_screen(SmallScreen())


def ask_early(screen: AnyScreen, sized: Sized) -> Size:
    """Return the size that the map of the screen has before the layout."""
    screen._compositor._full_map_invalidated = True  # As after an update of a new widget.
    return sized.size


async def test_a_widget_that_is_shown_or_resized_receives_its_size() -> None:
    app = SmallApp()
    async with app.run_test(size=(20, 10)) as pilot:
        screen, sized = app.screen, app.screen.query_one(Sized)
        assert isinstance(screen, AnyScreen)
        assert sized.sizes == []

        sized.display = True
        assert ask_early(screen, sized) == Size(20, 9)
        await pilot.pause()
        assert sized.sizes == [Size(20, 9)]

        screen.query_one("#row").display = False
        assert ask_early(screen, sized) == Size(20, 10)
        await pilot.pause()
        assert sized.sizes == [Size(20, 9), Size(20, 10)]
