"""A page that asks, on a screen of its own, with its answers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from textual.events import Paste
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen

from tests.ui.open_bench import bench_of
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock, Stage
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS
from tui_agent.ui.dialogs.answer_screen import QuestionScreen, Typed, TypedKeys
from tui_agent.ui.text.rows_view import RowsView

ScreenT = TypeVar("ScreenT", bound=QuestionScreen[Any])


class ComposerKeys(TypedKeys):
    """Keys of questions over a composer at the foot of the window, which notes what is typed into it."""

    def __init__(self, clock: Clock, region: Region = Region()) -> None:  # noqa: B008
        super().__init__(clock)
        self.region, self.typed = region, list[str]()

    def composer_region(self) -> Region:
        return self.region

    def type_text(self, typed: Sequence[Typed]) -> None:
        self.typed += [event.text if isinstance(event, Paste) else event.character or "" for event in typed]


class QuestionPage(Generic[ScreenT]):
    """The page on a screen, with its results."""

    def __init__(self, pilot: Pilot[None], screen: ScreenT, clock: Clock) -> None:
        self.pilot, self.screen, self.clock = pilot, screen, clock
        self.answers: list[Any] = []

    async def press(self, *keys: str) -> None:
        """Press keys, with a pause long enough for an answer after each, and wait until what they show is drawn."""
        for key in keys:
            await self.pilot.press(key)
            self.screen.settle()
        await self.pilot.pause()
        while self.screen.is_attached and not self.screen.guard.was_drawn:
            await self.pilot.pause()

    async def press_in_turn(self, *keys: str) -> None:
        """Press keys, each after the quiet moment of what the last one showed."""
        for key in keys:
            self.clock.now += SEEN_SECONDS
            await self.press(key)

    async def type(self, text: str) -> None:
        """Press keys so fast that each follows before an answer takes effect."""
        for letter in text:
            self.clock.now += 0.1
            await self.pilot.press({" ": "space", ",": "comma"}.get(letter, letter))
        await self.pilot.pause()

    async def paste(self, text: str) -> None:
        self.pilot.app.post_message(Paste(text))
        await self.pilot.pause()

    @property
    def typed(self) -> list[str]:
        """Text that went to the composer."""
        assert isinstance(self.screen.keys, ComposerKeys)
        return self.screen.keys.typed

    def text(self) -> str:
        rows = self.pilot.app.screen._compositor.render_strips(self.pilot.app.size)
        return "\n".join("".join(segment.text for segment in row) for row in rows)


@asynccontextmanager
async def page_in(
    pilot: Pilot[None], screen: ScreenT, clock: Clock, size: tuple[int, int] | None = None
) -> AsyncIterator[QuestionPage[ScreenT]]:
    """Show a page in a running app and close it, so that many pages share a start; its answers count once drawn."""
    if size is not None and size != tuple(pilot.app.size):
        await pilot.resize_terminal(*size)
        await pilot.pause()
    found = QuestionPage(pilot, screen, clock)
    await pilot.app.push_screen(screen, found.answers.append)
    while not screen.guard.was_drawn:
        await pilot.pause()
    yield found
    if pilot.app.screen is screen:
        await screen.dismiss(None)
        await pilot.pause()


@asynccontextmanager
async def empty_app(size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[None]]:
    """Start an app for pages."""
    async with HostApp().run_test(size=size) as pilot:
        yield pilot


PageT = TypeVar("PageT", bound=Screen[Any])


async def open_page(on: Stage, command: str, kind: type[PageT], **services: Any) -> PageT:
    """Type a command with these services of the session, and return the page that it opens."""
    on.chat.bridge.bench = bench_of(on.loop, on.bus, **services) if services else on.chat.bridge.bench
    await on.say(command)
    await on.until(lambda: isinstance(on.app.screen, kind))
    page = on.app.screen
    assert isinstance(page, kind)
    return page


def rows_of(screen: Screen[Any], name: str) -> str:
    """Return all rows of a view of a page."""
    view = screen.query_one(name, RowsView)
    rows = [view.line_at(row) for row in range(view.total)]
    return "\n".join(row.plain.rstrip() for row in rows if row is not None)


class WorkPage:
    """A page that works in threads, with a simulated user."""

    def __init__(self, pilot: Pilot[None], clock: Clock) -> None:
        self.pilot, self.clock = pilot, clock

    async def press(self, *keys: str) -> None:
        """Press keys, each after a quiet moment, and wait for the work that each begins."""
        for key in keys:
            self.clock.now += 1.0
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        for _ in range(3):
            await self.pilot.pause()

    def rows(self, name: str) -> str:
        """Return the visible rows of a view."""
        view = self.pilot.app.screen.query_one(name, RowsView)
        return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height)).rstrip()
