"""A page that asks, on a screen of its own, with its answers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from textual.events import Paste
from textual.geometry import Region
from textual.pilot import Pilot

from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.ui.dialogs.question_screen import QuestionScreen, Typed, TypedKeys

AnswerT = TypeVar("AnswerT")


class ComposerKeys(TypedKeys):
    """Keys of questions over a composer at the foot of the window, which notes what is typed into it."""

    def __init__(self, clock: Clock, region: Region = Region()) -> None:  # noqa: B008
        super().__init__(clock)
        self.region, self.typed = region, list[str]()

    def composer_region(self) -> Region:
        return self.region

    def type_text(self, typed: Sequence[Typed]) -> None:
        self.typed += [event.text if isinstance(event, Paste) else event.character or "" for event in typed]


class QuestionPage(Generic[AnswerT]):
    """The page on a screen, with its results."""

    def __init__(self, pilot: Pilot[None], screen: QuestionScreen[AnswerT], clock: Clock) -> None:
        self.pilot, self.screen, self.clock = pilot, screen, clock
        self.answers: list[AnswerT | None] = []

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            self.screen.settle()
        await self.pilot.pause()

    def text(self) -> str:
        rows = self.pilot.app.screen._compositor.render_strips(self.pilot.app.size)
        return "\n".join("".join(segment.text for segment in row) for row in rows)


@asynccontextmanager
async def shown_page(
    screen: QuestionScreen[AnswerT], clock: Clock, size: tuple[int, int]
) -> AsyncIterator[QuestionPage[AnswerT]]:
    """Show a page until the block is left; its answers count once it was drawn."""
    async with HostApp().run_test(size=size) as pilot, page_in(pilot, screen, clock) as found:
        yield found


@asynccontextmanager
async def page_in(
    pilot: Pilot[None], screen: QuestionScreen[AnswerT], clock: Clock
) -> AsyncIterator[QuestionPage[AnswerT]]:
    """Show a page in a running app and close it, so that many pages share a start."""
    found = QuestionPage(pilot, screen, clock)
    await pilot.app.push_screen(screen, found.answers.append)
    while not screen.guard.was_drawn:
        await pilot.pause()
    yield found
    if pilot.app.screen is screen:
        await screen.dismiss(None)
        await pilot.pause()
