"""The first page: its offers are chosen with the mouse, or with tab and enter; typing goes to the composer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from textual import on
from textual.pilot import Pilot

from tests.ui.app.fake_sessions import PageService
from tests.ui.still import FakeAgent, bridge_to, drawn, notes
from tui_agent.protocol.facts.screen_facts import FirstPage, SessionOffer
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.chat.chat_options import ChatOptions, SessionRequested
from tui_agent.ui.chat.first_page import Welcome

PAGE = FirstPage(
    sessions=(SessionOffer("s1", "fix the failing price test", "2 h"), SessionOffer("s2", "write the docs", "3 d")),
    facts=("main", "AGENTS.md", "3 rules"),
    starters=("explain this project", "run the tests and fix what fails"),
)


class PageApp(TuiAgentApp):
    """Notes which sessions the user asked for."""

    def __init__(self, page: FirstPage, kept: list[str], refusal: str) -> None:
        terminal = TerminalEnvironment(reduced_motion=True)
        options = ChatOptions(sessions=PageService(page, kept, refusal), surroundings=terminal)
        super().__init__(bridge_to(FakeAgent()), options)
        self.requests: list[tuple[str, str]] = []

    @on(SessionRequested)
    def _session_requested(self, event: SessionRequested) -> None:
        self.requests.append((event.kind, event.argument))


@dataclass
class Shown:
    """The page on the screen."""

    app: PageApp
    pilot: Pilot[None]
    kept: list[str] = field(default_factory=list[str])

    @property
    def welcome(self) -> Welcome:
        return self.app.chat.query_one(Welcome)

    @property
    def rows(self) -> list[str]:
        return [row.strip() for row in self.welcome.render().plain.split("\n")]

    @property
    def draft(self) -> str:
        return self.app.chat.entry.composer.text


@asynccontextmanager
async def shown(
    page: FirstPage = PAGE, *, size: tuple[int, int] = (100, 34), refusal: str = ""
) -> AsyncIterator[Shown]:
    kept: list[str] = []
    app = PageApp(page, kept, refusal)
    async with app.run_test(size=size) as pilot:
        await drawn(pilot)
        welcome = app.chat.query_one(Welcome)
        for _ in range(300):
            if welcome.page is page:
                break
            await pilot.pause(0.01)
        await pilot.pause()
        yield Shown(app, pilot, kept)


async def test_a_starter_is_put_into_the_composer_and_not_sent() -> None:
    async with shown() as page:
        await page.pilot.press("tab", "down", "down", "down", "down", "down", "enter")
        assert page.draft == "run the tests and fix what fails"
        assert page.app.focused is page.app.chat.entry.composer
        assert not page.app.chat.state.begun


async def test_a_click_on_an_offer_chooses_it() -> None:
    async with shown() as page:
        rows = page.rows
        top = (page.welcome.size.height - len(rows)) // 2
        middle = page.welcome.size.width // 2
        await page.pilot.click(Welcome, offset=(middle, top + rows.index("explain this project")))
        assert page.draft == "explain this project"
        await page.pilot.click(Welcome, offset=(middle, top + rows.index("2 h  fix the failing price test")))
        assert page.app.requests == [("resume", "s1")]


async def test_typing_on_the_page_goes_to_the_composer_and_enter_resumes_a_session() -> None:
    async with shown() as page:
        await page.pilot.press("tab", "h", "i")
        assert page.draft == "hi"
        await page.pilot.press("ctrl+c", "tab", "escape")
        assert page.app.focused is page.app.chat.entry.composer

        await page.pilot.press("tab", "down", "enter")
        assert any(row.startswith("›") and "write the docs" in row for row in page.rows)
        assert page.app.requests == [("resume", "s2")]


async def test_the_first_run_explains_the_modes_and_offers_themes() -> None:
    first = FirstPage(starters=("explain this project",), is_first_run=True, key="ANTHROPIC_API_KEY is set")
    async with shown(first) as page:
        assert "It asks before it changes anything." in page.rows
        assert "key: ANTHROPIC_API_KEY is set" in page.rows
        await page.pilot.press("tab", "down", "right")
        assert page.app.theme != "dark"
        chosen = page.app.theme
        await page.pilot.press("enter")
        await page.pilot.pause()
        assert page.kept == [chosen]
        assert f"› theme: {chosen}, kept in config.toml" in page.rows
        await page.pilot.press("left")
        assert page.app.theme == "dark"


async def test_a_theme_that_cannot_be_kept_is_reported() -> None:
    async with shown(FirstPage(is_first_run=True), refusal="config.toml exists") as page:
        await page.pilot.press("tab", "enter")
        await page.pilot.pause()
        assert notes(page.app) == ["config.toml exists"]


async def test_the_page_fits_any_window_and_keeps_the_offers_longest() -> None:
    async with shown() as page:
        for size in ((100, 34), (80, 24), (60, 20), (40, 12), (20, 6), (80, 20)):
            await page.pilot.resize_terminal(*size)
            await drawn(page.pilot)
            assert len(page.rows) <= max(1, page.welcome.size.height), size
        assert any("explain this project" in row for row in page.rows)


async def test_hostile_titles_stay_text() -> None:
    evil = "[red]x[/red]\x1b]0;owned\x07\u202e"
    page = FirstPage((SessionOffer("s1", evil, "2 h"),), (evil,), (evil,))
    async with shown(page) as seen:
        text = "\n".join(seen.rows)
        assert "[red]x[/red]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
