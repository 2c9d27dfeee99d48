"""Snapshots of the sessions screen and of the first page, at both sizes, dark and light."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
from textual.pilot import Pilot

from tests.ui.app.saved_sessions import NOW
from tests.ui.app.still_sessions import ROWS, StillShelf
from tui_agent.ui.app.question_app import QuestionApp
from tui_agent.ui.app.session_screen import SessionScreen

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]

SIZES = [(80, 24), (120, 40)]
NAMES = ["80x24", "120x40"]


class ListApp(QuestionApp[str | None]):
    """Shows only the list."""

    def __init__(self, screen: SessionScreen, theme: str) -> None:
        super().__init__(theme)
        self.list = screen

    def on_mount(self) -> None:
        self.push_screen(self.list)


def list_app(rows: Sequence[tuple[str, int, str, str, int, float | None, int, bool]], theme: str = "dark") -> ListApp:
    """Return the list of some sessions, the first of which is on the screen."""
    return ListApp(SessionScreen(StillShelf(rows), current="00f3a9c1e7b2", now=lambda: NOW), theme)


def pressing(*keys: str) -> Callable[[Pilot[str | None]], Awaitable[None]]:
    """Wait for the list and its preview, and press keys."""

    async def before(pilot: Pilot[str | None]) -> None:
        app = pilot.app
        assert isinstance(app, ListApp)
        while app.list.is_reading:
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
        while app.list._is_previewing and app.list._sessions.chosen is not None:
            await pilot.pause(0.01)
        await pilot.pause()

    return before


LISTS: dict[str, tuple[Sequence[tuple[str, int, str, str, int, float | None, int, bool]], tuple[str, ...]]] = {
    "sessions": (ROWS, ("down",)),
    "search": (ROWS, tuple("price")),
    "rename": (ROWS, ("down", "down", "ctrl+r")),
    "all folders": (ROWS, ("tab", "down")),
    "no match": (ROWS, tuple("xyz")),
    "empty": ((), ()),
}


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
@pytest.mark.parametrize("page", LISTS)
def test_the_sessions_look_as_they_should(snap_compare: Compare, page: str, size: tuple[int, int]) -> None:
    rows, keys = LISTS[page]

    assert snap_compare(list_app(rows), terminal_size=size, run_before=pressing(*keys))


def test_the_sessions_look_as_they_should_in_a_small_window(snap_compare: Compare) -> None:
    assert snap_compare(list_app(ROWS), terminal_size=(60, 20), run_before=pressing("down"))


@pytest.mark.parametrize("page", ["sessions", "rename"])
def test_the_sessions_look_as_they_should_in_the_light_theme(snap_compare: Compare, page: str) -> None:
    rows, keys = LISTS[page]

    assert snap_compare(list_app(rows, "light"), terminal_size=(80, 24), run_before=pressing(*keys))
