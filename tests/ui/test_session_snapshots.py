"""Snapshots of the sessions screen and of the first page, at both sizes, dark and light."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
from textual.pilot import Pilot

from tests.ui.app.fake_sessions import PageService
from tests.ui.app.saved_sessions import NOW
from tests.ui.app.still_sessions import ROWS, StillShelf
from tests.ui.app.test_session_screen import ListApp
from tests.ui.still import FakeAgent, bridge_to, drawn
from tui_agent.protocol.facts.screen_facts import FirstPage, SessionOffer
from tui_agent.ui.app.question_app import NoKey, SessionInUse
from tui_agent.ui.app.session_screen import SessionScreen
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.first_page import Welcome

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]

SIZES = [(80, 24), (120, 40)]
NAMES = ["80x24", "120x40"]


def list_app(rows: Sequence[tuple[str, int, str, str, int, float | None, int, bool]]) -> ListApp:
    """Return the list of some sessions, the first of which is on the screen."""
    return ListApp(SessionScreen(StillShelf(rows), current="00f3a9c1e7b2", now=lambda: NOW))


def pressing(*keys: str) -> Callable[[Pilot[str | None]], Awaitable[None]]:
    """Wait for the list and its preview, and press keys."""

    async def before(pilot: Pilot[str | None]) -> None:
        app = pilot.app
        assert isinstance(app, ListApp)
        while app.list.is_reading:
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
        while app.list._is_previewing and app.list.selected is not None:
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


FIRST_PAGES = {
    "loaded": FirstPage(
        sessions=(
            SessionOffer("s1", "fix the failing price test", "5 min"),
            SessionOffer("s2", "write the docs of the cart, with an example for each kind of discount", "3 h"),
            SessionOffer("s3", "explain this project", "12 d"),
        ),
        facts=("main", "AGENTS.md", "3 rules"),
        starters=("explain this project", "run the tests and fix what fails", "review my uncommitted changes"),
    ),
    "first run": FirstPage(
        starters=("write a small program that …", "set up a new project for …", "what can you do?"),
        is_first_run=True,
        key="ANTHROPIC_API_KEY is set",
    ),
}


def first_page_app(page: str) -> TuiAgentApp:
    """Return the app on its first page."""
    return TuiAgentApp(
        bridge_to(FakeAgent()),
        ChatOptions(
            WorkingDirectory("~/shop", "main"),
            sessions=PageService(FIRST_PAGES[page]),
            surroundings=TerminalEnvironment(reduced_motion=True),
        ),
    )


def on_the_page(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Wait until the page has its content, and press keys."""

    async def before(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        while not app.chat.query(Welcome) or not app.chat.query_one(Welcome).page.starters:
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
        await drawn(pilot)

    return before


@pytest.mark.parametrize("size", [*SIZES, (60, 20)], ids=[*NAMES, "60x20"])
@pytest.mark.parametrize("page", FIRST_PAGES)
def test_the_first_page_looks_as_it_should(snap_compare: Compare, page: str, size: tuple[int, int]) -> None:
    assert snap_compare(first_page_app(page), terminal_size=size, run_before=on_the_page("tab", "down"))


@pytest.mark.parametrize("size", SIZES, ids=NAMES)
def test_the_start_without_a_key_looks_as_it_should(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(NoKey(theme="dark"), terminal_size=size)


def test_the_question_about_a_session_in_use_looks_as_it_should(snap_compare: Compare) -> None:
    assert snap_compare(SessionInUse("00f3a9c1e7b2"), terminal_size=(80, 24))
