"""The page of the parts of a change: some are accepted, and a yes needs the end of the page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.events import Paste

from tests.support.table import table
from tests.ui.approval.test_change_parts import NEW, OLD
from tests.ui.question_page import ComposerKeys, QuestionPage, shown_page
from tests.ui.stage import Clock
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.approval.change_parts import change_parts
from tui_agent.ui.approval.change_parts_screen import ChangePartsScreen

pytestmark = pytest.mark.slow

REQUEST = ApprovalRequest(
    request_id="q1", call_id="c1", digest="d", tool="write", args={"path": "src/x.py", "content": NEW},
    preview=Preview(kind="diff", text=diff_of(OLD, NEW, "a/x", "b/x"), path="/w/src/x.py"),
)  # fmt: skip
PARTS = change_parts(REQUEST)


@asynccontextmanager
async def page(size: tuple[int, int] = (80, 40)) -> AsyncIterator[QuestionPage[ApprovalDecision | None]]:
    assert PARTS is not None
    clock = Clock()
    async with shown_page(ChangePartsScreen(REQUEST, PARTS, keys=ComposerKeys(clock)), clock, size) as found:
        yield found


async def test_some_parts_are_accepted() -> None:
    assert PARTS is not None
    async with page() as shown:
        await shown.press("down", "space")
        assert "[ ] part 2 of 3  +0 −1  left out" in shown.text()
        assert "y yes to 2 of 3" in shown.text()
        await shown.press("y")

        assert shown.answers == [PARTS.decision({0, 2})]


async def test_without_any_part_the_answer_is_no() -> None:
    async with page() as shown:
        await shown.press("a")
        assert "y no to all" in shown.text()
        await shown.press("y")

        note = "I accept none of the 3 parts of this change."
        assert shown.answers == [ApprovalDecision(decision="deny", note=note)]


@table("size", [(80, 40), (40, 10)])
async def test_a_no_to_the_whole_change_needs_no_reading(size: tuple[int, int]) -> None:
    async with page(size) as shown:
        await shown.press("n")

        assert [answer.decision for answer in shown.answers if answer is not None] == ["deny"]


@table("size", [(80, 12), (40, 10), (20, 6)])
async def test_a_yes_needs_the_end_of_the_page(size: tuple[int, int]) -> None:
    async with page(size) as shown:
        await shown.press("y")
        assert shown.answers == []

        await shown.press("end")
        await shown.press("y")
        assert shown.answers == [ApprovalDecision(decision="approve")]


async def test_the_cursor_reaches_every_part() -> None:
    async with page((60, 12)) as shown:
        await shown.press(*["down"] * 12)
        assert "› [x] part 3 of 3" in shown.text()
        await shown.press(*["up"] * 5)
        assert "› [x] part 1 of 3" in shown.text()


async def test_one_can_go_back_and_a_request_that_is_answered_elsewhere_closes_the_page() -> None:
    async with page() as shown:
        await shown.press("escape")
        assert shown.answers == [None]

    async with page() as shown:
        shown.screen.keep_only({"q1", "q2"})
        assert shown.screen.is_current
        shown.screen.keep_only({"q2"})
        await shown.pilot.pause()
        assert shown.answers == [None]


async def test_text_and_pastes_answer_nothing() -> None:
    async with page() as shown:
        await shown.pilot.press("x", "y")
        shown.screen.settle()
        assert shown.answers == [None]

    async with page() as shown:
        shown.pilot.app.post_message(Paste("y"))
        await shown.pilot.pause()
        assert shown.answers == [None]
