"""The page of the parts of a change: some are accepted, and a yes needs the end of the page."""

import pytest

from tests.ui.approval.test_change_parts import NEW, OLD
from tests.ui.question_page import ComposerKeys, empty_app, page_in
from tests.ui.stage import Clock
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.approval.approval_pages import ChangePartsScreen
from tui_agent.ui.approval.change_parts import change_parts

pytestmark = pytest.mark.slow

REQUEST = ApprovalRequest(
    request_id="q1", call_id="c1", digest="d", tool="write", args={"path": "src/x.py", "content": NEW},
    preview=Preview(kind="diff", text=diff_of(OLD, NEW, "a/x", "b/x"), path="/w/src/x.py"),
)  # fmt: skip


async def test_a_yes_is_for_the_accepted_parts_and_needs_the_end_of_the_page() -> None:
    parts = change_parts(REQUEST)
    assert parts is not None
    yes, some = ApprovalDecision(decision="approve"), parts.decision({0, 2})
    none = ApprovalDecision(decision="deny", note="I accept none of the 3 parts of this change.")
    wide = (80, 40)
    async with empty_app() as pilot:
        for size, steps, answers in (
            (wide, [("down space", "[ ] part 2 of 3  +0 −1  left out"), ("", "y yes to 2 of 3"), ("y", "")], [some]),
            (wide, [("a", "y no to all"), ("y", "")], [none]),
            ((40, 10), [("n", "")], [none]),
            ((40, 10), [("y", "more row")], []),
            ((20, 6), [("y", "more row"), ("end", ""), ("y", "")], [yes]),
            ((60, 12), [("down " * 12, "› [x] part 3 of 3"), ("up " * 5, "› [x] part 1 of 3")], []),
            (wide, [("escape", "")], [None]),
        ):
            async with page_in(
                pilot, ChangePartsScreen(REQUEST, parts, keys=ComposerKeys(Clock())), Clock(), size
            ) as page:
                for keys, words in steps:
                    await page.press(*keys.split())
                    assert words in page.text(), (size, keys)
                assert page.answers == answers, (size, steps)


async def test_text_and_pastes_answer_nothing_and_a_request_answered_elsewhere_closes_the_page() -> None:
    parts = change_parts(REQUEST)
    assert parts is not None
    async with empty_app((80, 40)) as pilot:
        for way in ("text", "paste", "elsewhere"):
            screen = ChangePartsScreen(REQUEST, parts, keys=ComposerKeys(Clock()))
            async with page_in(pilot, screen, Clock()) as page:
                match way:
                    case "text":
                        await pilot.press("x", "y")
                        screen.settle()
                    case "paste":
                        await page.paste("y")
                    case _:
                        screen.keep_only({"q1", "q2"})
                        assert screen.is_current
                        screen.keep_only({"q2"})
                        await pilot.pause()
                assert (way, page.answers) == (way, [None])
