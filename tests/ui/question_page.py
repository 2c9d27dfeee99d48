"""A page that asks, on a screen of its own, with its answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from textual.pilot import Pilot

from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.ui.dialogs.typed_answers import TypedAnswers

AnswerT = TypeVar("AnswerT")


class QuestionPage(Generic[AnswerT]):
    """The page on a screen, with its results."""

    def __init__(self, pilot: Pilot[None], screen: TypedAnswers[AnswerT], clock: Clock) -> None:
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
    screen: TypedAnswers[AnswerT], clock: Clock, size: tuple[int, int]
) -> AsyncIterator[QuestionPage[AnswerT]]:
    """Show a page until the block is left; its answers count once it was drawn."""
    async with HostApp().run_test(size=size) as pilot:
        found = QuestionPage(pilot, screen, clock)
        await pilot.app.push_screen(screen, found.answers.append)
        while not screen.guard.was_drawn:
            await pilot.pause()
        yield found
