"""A widget receives its size although someone asks for its region before the layout that shows it."""

from textual.app import App, ComposeResult
from textual.events import Resize
from textual.geometry import Size
from textual.widgets import Static

from tui_agent.ui.base.app_type import AnyScreen, report_each_layout


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
