"""The page of several approval requests: an answer applies to the selection, and a yes needs all of it read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from tests.ui.question_page import ComposerKeys, QuestionPage, empty_app, page_in
from tests.ui.stage import Clock
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.approval_pages import ApprovalListScreen, GroupGrant
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS

pytestmark = pytest.mark.slow


def request(number: int, rule: str | None = None, command: str = "") -> ApprovalRequest:
    text = command or f"make {number}"
    preview = Preview(kind="command", text=text)
    return ApprovalRequest(
        request_id=f"q{number}", call_id=f"c{number}", digest="d", tool="bash", args={"command": text},
        preview=preview, session_rule=rule, agent="explorer" if number == 2 else "main",
    )  # fmt: skip


THREE = (request(1, "bash(make:*)"), request(2), request(3, "bash(make:*)"))


@asynccontextmanager
async def asked_in(pilot: Pilot[None], *requests: ApprovalRequest) -> AsyncIterator[QuestionPage[ApprovalListScreen]]:
    """Show the page in a running app."""
    clock = Clock()
    async with page_in(pilot, ApprovalListScreen(requests, facts=None, keys=ComposerKeys(clock)), clock) as found:
        yield found


async def test_an_answer_is_for_what_is_selected_and_needs_no_pause_on_the_page_that_the_user_opened() -> None:
    long = request(4, command="echo " + "a b " * 5_000)
    async with empty_app() as pilot:
        async with asked_in(pilot, *THREE) as shown:
            text = shown.text()
            rule, other = "bash(make:*) would", "no rule would"
            places = [text.index(words) for words in (rule, "make 1", "make 3", other, "make 2")]
            assert places == sorted(places), "questions stand by the rule that would answer them"
            assert "sub-agent explorer" in text
            await shown.press("y")
            assert shown.answers == [], "nothing was selected"

            await shown.press("space", "down", "down", "space")
            assert "2 selected" in shown.text()
            await shown.press("y")
            assert shown.answers == [("approve", ("q1", "q2"))]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("down", "g")
            assert "2 selected" in shown.text()
            await shown.press("g")
            assert "0 selected" in shown.text()

            await shown.press("g", "n")
            assert shown.answers == [("deny", ("q1", "q3"))]

        async with asked_in(pilot, *(request(number) for number in range(1, 13))) as shown:
            assert "make 12" not in shown.text()
            await shown.press(*["down"] * 60)
            assert "make 12" in shown.text()
            await shown.press("space", "n")

            assert shown.answers == [("deny", ("q12",))]

        # A long input is allowed in a dialog of its own only.
        async with asked_in(pilot, THREE[0], long) as shown:
            assert "answer it in its own dialog" in shown.text()
            assert "a b a b" not in shown.text()
            await shown.press("down", "space", "y")
            assert shown.answers == []
            await shown.press("a", "y")
            assert shown.answers == [("approve", ("q1",))]

        async with asked_in(pilot, THREE[0], long) as shown:
            await shown.press("down", "space", "n")
            assert shown.answers == [("deny", ("q4",))]


async def test_a_group_is_allowed_for_the_session_by_its_rule_which_is_shown_first() -> None:
    long = request(4, "bash(make:*)", command="echo " + "a b " * 5_000)
    async with empty_app() as pilot:
        # The rule answers the long one, too, which was not shown.
        for requests, granted in ((THREE, ("q1", "q3")), ((THREE[0], long), ("q1",))):
            async with asked_in(pilot, *requests) as shown:
                await shown.press("s")
                for words in ("For this session also allowed:", "bash(make:*)", "It allows 2 questions of this page:"):
                    assert words in shown.text()
                await shown.press("s")
                assert shown.answers == [], "the rule is another question"

                await shown.press_in_turn("s")
                assert shown.answers == [GroupGrant(granted)]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("s", "escape")
            assert shown.answers == []
            shown.clock.now += SEEN_SECONDS
            await shown.press("a", "y")
            assert shown.answers == [("approve", ("q1", "q3", "q2"))]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("down", "down")
            assert "group, this session" not in shown.text()
            await shown.press("s")

            assert shown.answers == []
            assert "No rule would answer this group." in shown.text()


async def test_what_is_settled_elsewhere_goes_and_an_answer_then_needs_a_pause() -> None:
    async with empty_app() as pilot:
        async with asked_in(pilot, *THREE) as shown:
            await shown.press("a")
            shown.screen.keep_only({"q2", "q3"})
            await shown.press("y")
            assert shown.answers == []
            assert "make 1" not in shown.text()

            await shown.press_in_turn("y")
            assert shown.answers == [("approve", ("q3", "q2"))]

        async with asked_in(pilot, *THREE) as shown:
            shown.screen.keep_only(set())
            await pilot.pause()
            assert shown.answers == [None]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("s")
            shown.screen.keep_only({"q2", "q3"})
            await pilot.pause()
            assert "For this session" not in shown.text()
            await shown.press_in_turn("s")

            assert shown.answers == []
            assert "It allows 1 question of this page" in shown.text()


async def test_yes_counts_only_once_everything_was_seen_and_text_and_pastes_answer_nothing() -> None:
    long = request(4, command="\n".join(f"line {number}" for number in range(90)))
    async with empty_app() as pilot:
        async with asked_in(pilot, *THREE, long) as shown:
            await shown.press("a", "y")
            assert shown.answers == []

            while "more row" in shown.text():
                await shown.press("pagedown")
            await shown.press("y")
            assert shown.answers == [("approve", ("q1", "q3", "q2", "q4"))]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("a")
            await pilot.press("x", "y")
            shown.screen.settle()
            assert shown.answers == [None]

        async with asked_in(pilot, *THREE) as shown:
            await shown.press("a")
            await shown.paste("y")
            assert shown.answers == [None]
