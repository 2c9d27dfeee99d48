"""The page of `/btw`: it answers during a run, and the conversation never learns of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.open_bench import bench_of
from tests.ui.row_kit import HostApp
from tests.ui.stage import StageTool, stage
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.ui.dialogs.side_question_page import SideQuestionPage
from tui_agent.ui.text.rows_view import RowsView

ANSWER = "Because `total` rounds **twice**:\n\n- once for each item\n- once for the sum\x1b[31m"


def shown(page: SideQuestionPage) -> str:
    view = page.query_one(RowsView)
    return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height)).rstrip()


@pytest.mark.slow
async def test_a_question_is_answered_while_a_run_works_and_esc_cancels_it() -> None:
    look = StageTool("look", waits=True)
    asked, go_on, cancelled = list[str](), asyncio.Event(), list[bool]()

    async def ask(question: str, take: Callable[[str], object]) -> SideAnswer:
        asked.append(question)
        try:
            take("It rounds ")
            await go_on.wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        take("**twice**.")
        return SideAnswer("It rounds **twice**.", "box/tiny", "end_turn", 0.02)

    async with stage([reply(call("look", what="a")), "Done."], [look]) as on:
        on.chat.bridge.bench = bench_of(on.loop, on.bus, aside=ask)
        await on.say("go")
        await on.until(lambda: look.ran)

        await on.say("/btw")
        assert not asked
        await on.pilot.press("ctrl+c")
        await on.say("/btw why [b]twice[/b]?")
        await on.until(lambda: isinstance(on.app.screen, SideQuestionPage) and "It rounds" in shown(on.app.screen))
        page = on.app.screen
        assert isinstance(page, SideQuestionPage)
        assert asked == ["why [b]twice[/b]?"]
        assert on.loop.running
        go_on.set()
        await on.until(lambda: "It rounds twice." in shown(page))
        assert "box/tiny · $0.02" in str(page.query_one("Vertical").border_subtitle)
        await on.pilot.press("escape")
        assert on.app.screen is on.chat
        assert on.loop.running

        go_on.clear()
        await on.say("/btw and now?")
        await on.until(lambda: len(asked) == 2)
        await on.pilot.press("escape")
        await on.until(lambda: cancelled)

        look.gate.set()
        await on.settled()
        assert on.told() == ["go"]


class Host(HostApp):
    """Shows the page with an answer, or with a failure."""

    def __init__(self, fails: bool) -> None:
        super().__init__()
        self.fails = fails

    def on_mount(self) -> None:
        super().on_mount()
        self.push_screen(SideQuestionPage("Why does the sum differ?", self.answer))

    async def answer(self, question: str, take: Callable[[str], object]) -> SideAnswer:
        if self.fails:
            raise ToolError("the endpoint refuses the key")
        take(ANSWER)
        return SideAnswer(ANSWER, "box/tiny", "end_turn", 0.004)


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True], ids=["answer", "failure"])
def test_the_page_looks_as_it_should(snap_compare: Callable[..., Any], fails: bool) -> None:
    assert snap_compare(Host(fails), terminal_size=(80, 24))
