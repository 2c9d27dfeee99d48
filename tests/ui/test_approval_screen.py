"""The approval dialog: its keys, its guard against accidental answers, and what it must show first."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any

import pytest
from textual import on
from textual.events import MouseMove, Paste
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Input

from tests.support.table import table
from tests.ui.question_page import ComposerKeys
from tests.ui.row_kit import DIFF, HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, GrantScope, PermissionMode
from tui_agent.protocol.tool import Preview
from tui_agent.tools import PresentPlanTool
from tui_agent.ui.approval.approval_answers import (
    RuleOffer,
    answer_choices,
    answer_rows,
    first_answers,
    offered_answers,
)
from tui_agent.ui.approval.approval_dialog import PAST_SECONDS
from tui_agent.ui.approval.approval_rows import ApprovalRows
from tui_agent.ui.approval.approval_screen import ApprovalScreen, PageRequested
from tui_agent.ui.dialogs.answer_rules import PAUSE_SECONDS, RESTING_SECONDS, SEEN_SECONDS
from tui_agent.ui.dialogs.question_screen import AnswerRow
from tui_agent.ui.text.rows_view import RowsView

pytestmark = pytest.mark.slow

COMMAND = "git commit -am 'x'"
REQUEST = ApprovalRequest(
    call_id="c1",
    digest="d",
    tool="bash",
    args={"command": COMMAND},
    preview=Preview(kind="command", text=COMMAND),
    reason="no rule allows it",
    trace=("floor: nothing protected", "rules: none"),
    session_rule="bash(git commit:*)",
    rules=("bash(git commit -am x)", "bash(git commit:*)"),
)
LONG_DIFF = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,90 @@\n" + "".join(f"+line {number}\n" for number in range(90))
LONG = REQUEST.model_copy(
    update={"tool": "write", "args": {"path": "x"}, "preview": Preview(kind="diff", text=LONG_DIFF, path="/home/a/x")}
)


class FakeFacts:
    """Grant facts with two files and one earlier call."""

    def file_of(self, scope: str) -> str | None:
        return {"project": "/w/.tui-agent/config.toml", "user": "/home/a/config.toml"}.get(scope)

    def answered(self, rule: str, but_call: str) -> list[str]:
        return ["bash  git commit -m y"] if "*" in rule else []

    def refusal(self, rule: str, tool: str, arguments: JsonObject) -> str:
        assert (tool, arguments) == ("bash", REQUEST.args)
        return "" if rule.startswith("bash(git commit") and rule.endswith(")") else f"No: {rule}"


class Asked:
    """A dialog on the screen, with its results."""

    def __init__(self, pilot: Pilot[None], screen: ApprovalScreen, clock: Clock, typed: list[str]) -> None:
        self.pilot, self.screen, self.clock, self.typed = pilot, screen, clock, typed
        self.answers: list[ApprovalDecision | PageRequested | None] = []

    async def press(self, *keys: str) -> None:
        """Press keys, pause long enough for an answer after each of several letters, and wait for their effect."""
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

    async def type(self, text: str, gap: float = 0.1) -> None:
        """Press keys so fast that each follows before an answer takes effect."""
        for letter in text:
            self.clock.now += gap
            await self.pilot.press({" ": "space", ",": "comma"}.get(letter, letter))
        await self.pilot.pause()

    def keys_are_dim(self) -> bool:
        """Return True if the answers are dim."""
        keys = self.screen.query_one("#approval-keys", RowsView)
        line = keys.line_at(0)
        assert line is not None
        return ("y", "key") not in line.runs and ("s", "key") not in line.runs

    def text(self) -> str:
        """Return the text of the whole screen."""
        width, height = self.pilot.app.size
        rows = self.pilot.app.screen._compositor.render_strips(self.pilot.app.size)
        return "\n".join("".join(segment.text for segment in row)[:width] for row in rows[:height])


@asynccontextmanager
async def asking(
    request: ApprovalRequest = REQUEST,
    position: int = 1,
    total: int = 1,
    *,
    size: tuple[int, int] = (80, 24),
    quiet: bool = True,
    app: HostApp | None = None,
    foot: tuple[int, int] = (0, 0),
) -> AsyncIterator[Asked]:
    """Start an app and show a dialog; with `quiet`, answers count already."""
    async with (
        (app or HostApp()).run_test(size=size) as pilot,
        asking_in(pilot, request, position, total, quiet=quiet, foot=foot) as asked,
    ):
        yield asked


@asynccontextmanager
async def asking_in(
    pilot: Pilot[None],
    request: ApprovalRequest = REQUEST,
    position: int = 1,
    total: int = 1,
    *,
    size: tuple[int, int] | None = None,
    quiet: bool = True,
    foot: tuple[int, int] = (0, 0),
) -> AsyncIterator[Asked]:
    """Show a dialog in a running app and close it, so that many questions share a start."""
    if size is not None and size != tuple(pilot.app.size):
        await pilot.resize_terminal(*size)
        await pilot.pause()
    width, height = pilot.app.size
    clock = Clock()
    keys = ComposerKeys(clock, Region(0, height - 1, width, 1))
    screen = ApprovalScreen(request, position, total, facts=FakeFacts(), keys=keys, foot=lambda: foot)
    asked = Asked(pilot, screen, clock, keys.typed)
    await pilot.app.push_screen(screen, asked.answers.append)
    while not screen.guard.was_drawn:
        await pilot.pause()
    if quiet:
        clock.now += SEEN_SECONDS
    yield asked
    if pilot.app.screen is screen:
        await screen.dismiss(None)
        await pilot.pause()


# --- answers --------------------------------------------------------------------------------------------------------


async def test_one_key_answers() -> None:
    decisions = {"y": "approve", "n": "deny", "k": "skip"}
    async with HostApp().run_test(size=(80, 24)) as pilot:
        for key in (*decisions, "escape"):
            async with asking_in(pilot) as asked:
                await asked.press(key)

                decision = decisions.get(key)
                assert asked.answers == [decision and ApprovalDecision(decision=decision)]


async def test_a_question_settled_before_its_dialog_is_laid_out_ends_quietly() -> None:
    async with asking() as asked:
        dialog = asked.screen.dialog
        await asked.screen.dismiss(None)
        await asked.pilot.pause()

        dialog.lay_out()

        assert not dialog.is_attached


async def test_nothing_else_answers() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        for key in ("enter", "space", "p", "e", "tab", "f1", "ctrl+y"):
            async with asking_in(pilot) as asked:
                await asked.press(key)

                assert (key, asked.answers) == (key, [])
                assert pilot.app.screen is asked.screen


async def test_any_other_letter_goes_to_the_composer_and_the_question_waits() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        for key in ("N", "x", "7", "é"):
            async with asking_in(pilot) as asked:
                await asked.press(key)

                assert (asked.answers, asked.typed) == ([None], [key])


async def test_for_the_session_the_rule_is_shown_first() -> None:
    async with asking() as asked:
        await asked.press("s")
        assert asked.answers == []
        assert "bash(git commit:*)" in asked.text()

        await asked.press("s")
        assert asked.answers == [], "the same key held down must not get through"

        asked.clock.now += SEEN_SECONDS
        await asked.press("s")
        assert asked.answers == [ApprovalDecision(decision="approve", scope="session")]


@pytest.mark.parametrize(("key", "scope"), [("p", "project"), ("u", "user")])
async def test_for_ever_the_rule_and_the_file_are_shown_first(key: str, scope: GrantScope) -> None:
    async with asking() as asked:
        await asked.press("p")
        text = asked.text()
        for words in (
            "From now on also allowed",
            "bash(git commit:*)",
            "/w/.tui-agent/config.toml",
            "/home/a/config.toml",
            "To undo this, delete the rule there",
            "1 more question",
            "bash git commit -m y",
        ):
            assert words in text
        await asked.press(key)
        assert asked.answers == []

        asked.clock.now += SEEN_SECONDS
        await asked.press(key)
        assert asked.answers == [ApprovalDecision(decision="approve", scope=scope)]


async def test_a_narrower_rule_can_be_chosen() -> None:
    async with asking() as asked:
        await asked.press("s", "right", "left")
        text = asked.text()
        assert "bash(git commit -am x)" in text
        assert "no other question" in text
        assert "1 of 2" in text

        asked.clock.now += SEEN_SECONDS
        await asked.press("s")

        narrow = ApprovalDecision(decision="approve", scope="session", rule="bash(git commit -am x)")
        assert asked.answers == [narrow]


async def test_a_rule_can_be_typed_and_is_shown_again_before_it_is_stored() -> None:
    async with asking() as asked:
        await asked.press_in_turn("s", "e")
        assert asked.screen.dialog.editor.text == "bash(git commit:*)"
        await asked.press(*["backspace"] * 3)
        assert "No: bash(git commit" in asked.text(), "the reason is shown while the user types"

        await asked.press("ctrl+s")
        assert asked.screen.dialog.step == "typing", "a refused rule is not taken"

        await asked.press("space", "minus", "a", ":", "*", ")")
        async with asyncio.timeout(60):
            while "1 more question" not in asked.text():
                await asked.pilot.pause(PAST_SECONDS / 10)
        assert "bash git commit -m y" in asked.text()

        await asked.press("ctrl+s", "s")
        assert asked.answers == [], "the typed rule is another question"
        assert "bash(git commit -a:*)" in asked.text()
        assert "yours" in asked.text()

        asked.clock.now += SEEN_SECONDS
        await asked.press("s")
        assert asked.answers == [ApprovalDecision(decision="approve", scope="session", rule="bash(git commit -a:*)")]


async def test_a_typed_rule_can_be_given_up_and_a_proposed_one_chosen_instead() -> None:
    async with asking() as asked:
        await asked.press_in_turn("p", "e", "x", "escape")
        assert asked.screen.dialog.step == "confirming"
        assert "bash(git commit:*)" in asked.text()

        asked.clock.now += SEEN_SECONDS
        await asked.press("e", *["backspace"] * 3, "space", "minus", "q", ")", "ctrl+s", "left")
        assert "bash(git commit:*)" in asked.text()
        assert "2 of 2" in asked.text()
        asked.clock.now += SEEN_SECONDS
        await asked.press("u")

        assert asked.answers == [ApprovalDecision(decision="approve", scope="user")]


async def test_a_rule_counts_only_once_all_of_it_was_seen() -> None:
    long = "bash(echo " + " ".join(f"word-{number}" for number in range(400)) + ")"
    async with asking(REQUEST.model_copy(update={"session_rule": long, "rules": (long,)})) as asked:
        await asked.press("p")
        asked.clock.now += SEEN_SECONDS
        await asked.press("p", "u")
        assert asked.answers == []
        assert "more rows" in asked.text()

        while "more row" in asked.text():
            await asked.press("space")
        asked.clock.now += SEEN_SECONDS
        await asked.press("u")

        assert asked.answers == [ApprovalDecision(decision="approve", scope="user")]


async def test_the_rule_shown_again_is_shown_whole() -> None:
    async with asking() as asked:
        for _ in range(3):
            await asked.press("p", "escape")
            asked.clock.now += SEEN_SECONDS
        await asked.press("p")

        assert "more row" not in asked.text()


async def test_an_edited_input_is_allowed_and_an_unchanged_one_is_a_plain_yes() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot, REQUEST.model_copy(update={"args": {"command": COMMAND, "timeout": 5}})) as asked:
            await asked.press("e")
            assert asked.screen.dialog.editor.text == COMMAND
            await asked.press(*" -v", "y", "n", "ctrl+s")

            changed = {"command": COMMAND + " -vyn", "timeout": 5}
            assert asked.answers == [ApprovalDecision(decision="approve", input=changed)]

        async with asking_in(pilot, FILE) as asked:
            await asked.press("e", "ctrl+s")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot, REQUEST.model_copy(update={"preview": None})) as asked:
            await asked.press("e", "x", "ctrl+s")
            assert asked.answers == []
            assert "this is not valid JSON" in asked.text()

            await asked.press("escape")
            asked.clock.now += SEEN_SECONDS
            await asked.press("y")
            assert asked.answers == [ApprovalDecision(decision="approve")]


FILE_TEXT = "import os\n\n\ndef price():\n\treturn 'a'  # ä\n"
FILE = REQUEST.model_copy(
    update={
        "tool": "write",
        "args": {"path": "src/price.py", "content": FILE_TEXT},
        "preview": Preview(kind="diff", text="--- /dev/null\n+++ b/src/price.py\n@@ -0,0 +1 @@\n+import os\n"),
    }
)


async def test_the_content_of_a_file_is_edited_as_text_with_colours_that_follow_each_change() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot, FILE) as asked:
            await asked.press("e")
            editor = asked.screen.dialog.editor
            assert editor.text == FILE_TEXT
            assert "You edit the content of src/price.py" in asked.text()
            coloured = {str(span.style) for row in range(5) for span in editor.get_line(row).spans}
            assert len(coloured) >= 3, "keywords, names, strings and comments differ"

            await asked.press("#", "ctrl+s")

            changed = {"path": "src/price.py", "content": "#" + FILE_TEXT}
            assert asked.answers == [ApprovalDecision(decision="approve", input=changed)]

        async with asking_in(pilot, FILE) as asked:
            await asked.press("e")
            editor = asked.screen.dialog.editor
            before = editor.get_line(0).spans
            await asked.press("#")
            assert editor.get_line(0).spans != before
            editor.undo()
            assert editor.get_line(0).spans == before


async def test_another_editor_gets_the_text_and_its_result_is_shown_before_it_counts() -> None:
    wanted: list[ApprovalScreen.EditorRequested] = []

    class EditorApp(HostApp):
        @on(ApprovalScreen.EditorRequested)
        def note(self, event: ApprovalScreen.EditorRequested) -> None:
            wanted.append(event)

    async with asking(FILE, app=EditorApp()) as asked:
        await asked.press("e", "ctrl+g")
        (request,) = wanted
        assert (request.text, request.file_name) == (FILE_TEXT, "text.py")

        request.done(FILE_TEXT, "No editor is set.")
        await asked.pilot.pause()
        assert "No editor is set." in asked.text()

        request.done("x = 1\u202e\n", "")
        await asked.pilot.pause()
        assert asked.screen.dialog.editor.text == "x = 1\\u202e\n"
        assert asked.answers == []
        await asked.press("ctrl+s")
        changed = {"path": "src/price.py", "content": "x = 1\\u202e\n"}
        assert asked.answers == [ApprovalDecision(decision="approve", input=changed)]


PLAN_TEXT = "# Round once\n\n1. Change `price()`\n2. Run the **tests**\n"
PLAN = ApprovalRequest(
    call_id="c1",
    digest="d",
    tool="present_plan",
    args={"plan": PLAN_TEXT},
    question=PresentPlanTool(lambda: PermissionMode.PLAN, lambda _: None).question({"plan": PLAN_TEXT}),
)
EDITED_AND_DECLINED = ApprovalDecision(decision="deny", note=f"no\n\nThe plan as I edited it:\n\nX{PLAN_TEXT}")


@table(
    ("keys", "decision"),
    [
        (("y",), ApprovalDecision(decision="approve", input={"mode": "ask"})),
        (("s",), ApprovalDecision(decision="approve", input={"mode": "accept_edits"})),
        (("n",), ApprovalDecision(decision="deny")),
        (("f", "m", "o", "r", "e", "enter"), ApprovalDecision(decision="deny", note="more")),
        (("right", "right", "enter"), ApprovalDecision(decision="approve", input={"mode": "accept_edits"})),
        (("e", "ctrl+s", "y"), ApprovalDecision(decision="approve", input={"mode": "ask"})),
        (("e", "X", "ctrl+s", "f", "n", "o", "enter"), EDITED_AND_DECLINED),
        (("e", "X", "escape", "s"), ApprovalDecision(decision="approve", input={"mode": "accept_edits"})),
        (("escape",), None),
    ],
)
async def test_a_plan_is_accepted_with_a_mode_or_declined(
    keys: tuple[str, ...], decision: ApprovalDecision | None
) -> None:
    async with asking(PLAN) as asked:
        text = asked.text()
        assert "Accept this plan?" in text
        assert "1. Change price()" in text
        assert "w why" not in text
        await asked.press_in_turn(*keys)
        assert asked.answers == [decision]


async def test_an_edited_plan_is_shown_again_before_it_is_accepted() -> None:
    wanted: list[ApprovalScreen.EditorRequested] = []

    class EditorApp(HostApp):
        @on(ApprovalScreen.EditorRequested)
        def note(self, event: ApprovalScreen.EditorRequested) -> None:
            wanted.append(event)

    async with asking(PLAN, app=EditorApp()) as asked:
        await asked.press("ctrl+g")
        assert (wanted[0].text, wanted[0].file_name) == (PLAN_TEXT, "plan.md")
        wanted[0].done("1. Only *this*\n", "")
        await asked.press("ctrl+s")
        assert asked.answers == []
        assert "1. Only this" in asked.text()
        assert "Round once" not in asked.text()
        await asked.press_in_turn("f", "g", "o", "escape", "y")
        edited = {"mode": "ask", "plan": "1. Only *this*\n"}
        assert asked.answers == [ApprovalDecision(decision="approve", input=edited)]


async def test_what_hides_in_a_paste_can_be_seen_in_the_editor() -> None:
    async with asking() as asked:
        await asked.press("e")
        asked.pilot.app.post_message(Paste("\x1b]52;c;eA==\x07 a\u202eb"))
        await asked.pilot.pause()

        assert asked.screen.dialog.editor.text == COMMAND + "\\x1b]52;c;eA==\\x07 a\\u202eb"


async def test_the_keys_are_drawn_dim_whenever_none_counts_and_an_early_key_does_not_delay_them() -> None:
    async with asking(quiet=False) as asked:
        assert asked.keys_are_dim()
        asked.clock.now += SEEN_SECONDS / 2
        await asked.press("y")
        assert asked.keys_are_dim()
        assert "does not count yet" in asked.text()
        asked.clock.now += SEEN_SECONDS / 2
        asked.screen.dialog.query_one(AnswerRow).redraw()
        assert not asked.keys_are_dim()
        asked.clock.now += PAUSE_SECONDS

        await asked.press("s")

        assert asked.keys_are_dim(), "the rule is another question"
        assert asked.answers == []


async def test_a_reason_and_a_remark_go_to_the_agent() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot) as asked:
            await asked.press("f")
            assert asked.screen.query_one(Input).has_focus
            assert not asked.screen.query_one(Input).cursor_blink, "nothing wakes a program that waits"

            await asked.press(*"yes, use rg", "enter")

            assert asked.answers == [ApprovalDecision(decision="deny", note="yes, use rg")]

        async with asking_in(pilot) as asked:
            await asked.press("Y")
            assert asked.screen.query_one(Input).has_focus
            assert "reads it with the result" in asked.text()

            await asked.press(*"no, then push", "enter")

            assert asked.answers == [ApprovalDecision(decision="approve", note="no, then push")]


async def test_a_reason_may_be_pasted_and_given_up() -> None:
    async with asking() as asked:
        await asked.press("f")
        asked.pilot.app.post_message(Paste("pasted\r\nwords\x1b\r\u202e"))
        await asked.pilot.pause()
        assert asked.screen.query_one(Input).value == "pasted words\\x1b \\u202e"

        await asked.press("escape")
        assert asked.answers == []
        assert not asked.screen.query_one(Input).display
        await asked.press("n")
        assert asked.answers == []
        asked.clock.now += SEEN_SECONDS
        await asked.press("n")

        assert asked.answers == [ApprovalDecision(decision="deny")]


async def test_the_end_of_a_long_paste_into_the_reason_is_in_sight() -> None:
    async with asking() as asked:
        await asked.press("f")
        asked.pilot.app.post_message(Paste("begin " + "word " * 40 + "\x1b end"))
        await asked.pilot.pause()
        field = asked.screen.query_one(Input)

        assert "\\x1b end " in asked.text()
        assert "begin" not in asked.text()
        assert field.cursor_screen_offset.x <= field.content_region.right


async def test_only_what_is_offered_can_be_chosen() -> None:
    request = REQUEST.model_copy(update={"options": ("deny",), "session_rule": None})
    async with asking(request) as asked:
        assert "skip" not in asked.text()
        await asked.press("n")
        assert asked.answers == [ApprovalDecision(decision="deny")]

    async with asking(request) as asked:
        await asked.press("y")
        assert (asked.answers, asked.typed) == ([], [])
        assert "This key does nothing here." in asked.text()


async def test_a_dead_key_says_why() -> None:
    dead = [
        ("h", REQUEST, "This change has one part"),
        ("a", REQUEST, "No other question waits."),
        ("s", REQUEST.model_copy(update={"session_rule": None}), "No rule can be stored"),
        ("u", REQUEST, "for a rule that is shown"),
        *((key, LONG, "before a yes counts") for key in ("y", "Y", "e", "s", "p")),
    ]
    async with HostApp().run_test(size=(60, 20)) as pilot:
        for size in ((60, 20), (80, 24), (120, 40)):
            for key, request, reason in dead:
                async with asking_in(pilot, request, size=size) as asked:
                    await asked.press(key)

                    assert reason in asked.text(), (key, size)
                    assert (asked.answers, asked.typed) == ([], [])


async def test_arrows_and_enter_answer() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        for keys, answers in (
            (("enter",), []),
            (("right", "enter"), [ApprovalDecision(decision="approve")]),
            (("right", "right", "enter"), [ApprovalDecision(decision="deny")]),
            (("left", "left", "enter"), [None]),
        ):
            async with asking_in(pilot) as asked:
                await asked.press(*keys)

                assert (keys, asked.answers) == (keys, answers)


async def test_keys_answer_only_once_they_are_bright_and_not_now_always_works() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot, quiet=False) as asked:
            await asked.type("yes, nanny, do keep skis")

            assert asked.answers == [None]
            assert "".join(asked.typed) == "ye", "the others go to the chat"

        async with asking_in(pilot, quiet=False) as asked:
            asked.clock.now += 0.05
            await asked.press("y")
            asked.clock.now += SEEN_SECONDS - 0.05
            await asked.press("y")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot, quiet=False) as asked:
            await asked.press("right", "enter")

            assert asked.answers == []
            assert "does not count yet" in asked.text()

        async with asking_in(pilot, quiet=False) as asked:
            await asked.press("escape")

            assert asked.answers == [None]


# --- the guard ------------------------------------------------------------------------------------------------------


async def test_a_click_into_the_composer_folds_the_question() -> None:
    async with asking(foot=(1, 1)) as asked:
        await asked.pilot.click(asked.screen.dialog, offset=(5, 3))
        assert asked.answers == []
        await asked.pilot.click(offset=(5, 23))
        await asked.pilot.pause()

        assert asked.answers == [None]


@pytest.mark.parametrize("paging", ["pagedown", "space"])
async def test_paging_drops_a_yes_that_came_before_everything_was_shown(paging: str) -> None:
    async with asking(LONG) as asked:
        await asked.press("y")
        asked.clock.now += PAUSE_SECONDS
        while not asked.screen.dialog.body.read_to_end:
            await asked.press(paging)
        await asked.press("y")

        assert asked.typed == []
        assert asked.answers == [ApprovalDecision(decision="approve")]


async def test_paging_right_after_an_answer_lets_it_take_effect_first() -> None:
    async with asking(LONG) as asked:
        await asked.pilot.press("y", "pagedown", "end", "y", "pagedown")
        await asked.pilot.pause()

        assert asked.typed == []
        assert asked.answers == [ApprovalDecision(decision="approve")]


async def test_an_early_letter_and_a_space_right_after_it_are_text() -> None:
    async with asking(LONG) as asked:
        await asked.type("y ok")

        assert "".join(asked.typed) == "y "
        assert asked.answers == [None]


async def test_a_paste_never_answers() -> None:
    async with asking() as asked:
        asked.pilot.app.post_message(Paste("y"))
        asked.screen.post_message(Paste("y\n"))
        await asked.pilot.pause()

        assert asked.answers == [None]
        assert asked.typed == ["y"]


# --- clicks ---------------------------------------------------------------------------------------------------------


def place_of(asked: Asked, label: str) -> tuple[int, int]:
    """Return column and row of a label's first letter."""
    rows = asked.text().split("\n")
    row = next(number for number, text in enumerate(rows) if label in text)
    return rows[row].index(label), row


async def armed(asked: Asked, seconds: float = RESTING_SECONDS) -> None:
    """Let time pass until the answers are bright."""
    asked.clock.now += seconds
    asked.screen.dialog.query_one(AnswerRow).redraw()
    await asked.pilot.pause()


async def move(asked: Asked, label: str, by: int) -> None:
    """Move the pointer to a label, from `by` columns to its left."""
    column, row = place_of(asked, label)
    asked.screen._forward_event(MouseMove(None, column, row, by, 0, 0, False, False, False, column, row))
    await asked.pilot.pause()


async def click(asked: Asked, label: str) -> None:
    """Click on a label."""
    await asked.pilot.click(offset=place_of(asked, label))
    await asked.pilot.pause()


async def test_clicks_beside_the_labels_never_answer() -> None:
    async with HostApp().run_test(size=(20, 6)) as pilot:
        for size in ((20, 6), (80, 24), (120, 40)):
            async with asking_in(pilot, size=size) as asked:
                await armed(asked)
                keys = asked.screen.query_one("#approval-keys").region
                line = asked.text().split("\n")[keys.y]
                gaps = [(keys.x + gap.start(), keys.y) for gap in re.finditer("  ", line[keys.x :])]
                rows = [row for row in range(0, size[1], 3) if row != keys.y]
                for place in [(column, row) for column in (0, 3, 6) for row in rows] + gaps:
                    await pilot.click(offset=place)

                assert asked.answers == [], size


async def test_a_click_on_a_label_acts_as_its_key() -> None:
    answers: dict[str, object] = {
        "y yes": ApprovalDecision(decision="approve"),
        "n no": ApprovalDecision(decision="deny"),
        "a all 2": "list",
        "esc later": None,
        "k skip": ApprovalDecision(decision="skip"),
    }
    async with HostApp().run_test(size=(60, 20)) as pilot:
        for label, answer in answers.items():
            for letter in (0, len(label) - 1):
                async with asking_in(pilot, REQUEST, 1, 2) as asked:
                    await armed(asked)
                    await click(asked, "f1 more")
                    column, row = place_of(asked, label)
                    await pilot.click(offset=(column + letter, row))
                    await pilot.pause()

                    assert asked.answers == [answer], (label, letter)


@pytest.mark.parametrize("label", ["s session", "p always"])
async def test_a_rule_is_stored_by_keys_alone(label: str) -> None:
    async with asking() as asked:
        await asked.press("f1")
        await armed(asked)
        await click(asked, label)
        assert asked.screen.dialog.step == "asking"
        assert [note.message for note in asked.pilot.app._notifications] == [
            f"Press {label[0]}: a click does not give this answer."
        ]
        await asked.press(label[0])
        await armed(asked)
        await click(asked, f"{label[0]} yes, ")

        assert asked.answers == []


async def test_a_click_needs_the_end_of_the_input_and_one_button_down_and_up_on_one_answer() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot, LONG) as asked:
            await armed(asked)
            await click(asked, "y yes")
            assert asked.answers == []
            while not asked.screen.dialog.body.read_to_end:
                await asked.press("space")
            await click(asked, "y yes")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot) as asked:
            await armed(asked)
            await asked.pilot.mouse_down(offset=place_of(asked, "n no"))
            await asked.pilot.mouse_up(offset=place_of(asked, "y yes"))
            # The button went down before the question appeared.
            await asked.pilot.mouse_up(offset=place_of(asked, "y yes"))
            await asked.pilot.click(offset=place_of(asked, "y yes"), button=3)

            assert asked.answers == []


async def test_a_click_in_the_first_moment_does_not_answer() -> None:
    async with asking(quiet=False) as asked:
        await move(asked, "y yes", 30)
        await armed(asked, SEEN_SECONDS - 0.01)
        await click(asked, "y yes")
        assert asked.answers == []
        assert "does not count yet" in asked.text()

        await armed(asked, 0.02)
        await click(asked, "y yes")
        assert asked.answers == [ApprovalDecision(decision="approve")]


async def test_a_question_under_a_resting_pointer_is_not_answered_by_a_click_meant_for_something_else() -> None:
    async with asking(quiet=False) as asked:
        await armed(asked, RESTING_SECONDS - 0.1)
        await move(asked, "y yes", -1)
        await click(asked, "y yes")
        assert asked.answers == []

        await move(asked, "y yes", 30)
        await click(asked, "y yes")
        assert asked.answers == [ApprovalDecision(decision="approve")]


@pytest.mark.parametrize("seconds", [0.0, RESTING_SECONDS - 0.1], ids=["dim", "resting"])
async def test_a_button_that_went_down_too_early_does_not_answer_when_it_goes_up(seconds: float) -> None:
    async with asking(quiet=False) as asked:
        await armed(asked, seconds)
        await asked.pilot.mouse_down(offset=place_of(asked, "y yes"))
        await armed(asked)
        await asked.pilot.mouse_up(offset=place_of(asked, "y yes"))
        assert asked.answers == []

        await click(asked, "y yes")
        assert asked.answers == [ApprovalDecision(decision="approve")]


async def test_a_click_that_brings_the_window_to_the_front_does_not_answer() -> None:
    async with asking() as asked:
        await armed(asked)
        asked.pilot.app.app_focus = False
        await asked.pilot.pause()
        asked.clock.now += 60
        asked.pilot.app.app_focus = True
        await click(asked, "y yes")
        assert asked.answers == []

        # The button went down before.
        await armed(asked)
        await asked.pilot.mouse_down(offset=place_of(asked, "y yes"))
        asked.pilot.app.app_focus = False
        await asked.pilot.pause()
        asked.pilot.app.app_focus = True
        await asked.pilot.mouse_up(offset=place_of(asked, "y yes"))
        assert asked.answers == []


# --- reading before answering ---------------------------------------------------------------------------------------


async def test_a_yes_to_a_long_input_counts_only_once_its_end_was_seen() -> None:
    async with HostApp().run_test(size=(80, 24)) as pilot:
        async with asking_in(pilot, LONG) as asked:
            assert "more rows" in asked.text()
            await asked.press("y", "s")
            assert asked.answers == []

            for _ in range(20):
                await asked.press("space")
            assert "more row" not in asked.text()
            await asked.press("y")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot, LONG) as asked:
            await asked.press("end")
            assert "rows above skipped" in asked.text()
            await asked.press("y")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot, LONG) as asked:
            body = asked.screen.dialog.body
            body.scroll_to(y=body.max_scroll_y, animate=False)
            await asked.pilot.pause()
            await asked.press("y")

            assert asked.answers == [ApprovalDecision(decision="approve")]

        async with asking_in(pilot, LONG) as asked:
            await asked.press("w")
            await asked.press("y")
            assert asked.answers == []
            assert "scroll to the end (end) before a yes counts" in asked.text()

            await asked.press("end")
            await asked.press("y")
            assert asked.answers == [ApprovalDecision(decision="approve")]


HUGE = REQUEST.model_copy(
    update={
        "args": {"command": "echo " + "a b " * 2_600},
        "preview": Preview(kind="command", text="echo " + "a b " * 2_600),
        "parts": (),
    }
)


class Gate:
    """A gate that delays the layout of rows until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = threading.Event()
        self.threads: list[threading.Thread] = []
        lay_out = ApprovalRows.lay_out

        def held(rows: ApprovalRows, width: int) -> None:
            self.threads.append(threading.current_thread())
            assert self._open.wait(60)
            lay_out(rows, width)

        monkeypatch.setattr(ApprovalRows, "lay_out", held)
        # Otherwise each pause of the pilot would wait for the held thread.
        monkeypatch.setattr("tests.support.idle_loop._threads_work", lambda _: False)

    def open(self) -> None:
        self._open.set()


async def test_a_long_input_is_laid_out_beside_the_keys_and_no_yes_counts_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(monkeypatch)
    try:
        async with asking(HUGE) as asked:
            assert "The input is long" in asked.text()
            for key in ("y", "s", "p", "e", "w", "pagedown", "end"):
                await asked.press(key)
                asked.clock.now += SEEN_SECONDS
            assert asked.answers == []
            assert asked.screen.dialog.step == "asking"

            gate.open()
            while "echo a b" not in asked.text():
                await asked.pilot.pause()
            await asked.press("y")
            assert asked.answers == []
            assert "more rows" in asked.text()

            while not asked.screen.dialog.body.read_to_end:
                await asked.press("pagedown")
            await asked.press("y")
            assert asked.answers == [ApprovalDecision(decision="approve")]
            assert threading.main_thread() not in gate.threads
    finally:
        gate.open()


async def test_a_long_input_can_be_denied_before_it_is_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    try:
        async with asking(HUGE) as asked:
            await asked.press("n")
            assert asked.answers == [ApprovalDecision(decision="deny")]
            gate.open()
    finally:
        gate.open()


async def test_a_long_input_laid_out_for_another_width_is_read_anew() -> None:
    async with asking(HUGE, size=(120, 40)) as asked:
        while "echo a b" not in asked.text():
            await asked.pilot.pause()
        while not asked.screen.dialog.body.read_to_end:
            await asked.press("pagedown")

        await asked.pilot.resize_terminal(80, 24)
        await asked.pilot.pause()
        while asked.screen.dialog.body.total < 2:
            await asked.pilot.pause()
        await asked.press("y")

        assert asked.answers == []


async def test_what_was_read_stays_read_in_a_smaller_window() -> None:
    async with asking(REQUEST) as asked:
        await asked.pilot.resize_terminal(30, 8)
        await asked.pilot.pause()

        await asked.press("y")

        assert asked.answers == [ApprovalDecision(decision="approve")]


# --- what it shows --------------------------------------------------------------------------------------------------


async def test_the_title_is_a_question() -> None:
    command = {"args": REQUEST.args, "preview": REQUEST.preview}
    titles: dict[str, dict[str, Any]] = {
        "Edit src/a.py?": {"tool": "edit", "preview": Preview(kind="diff", text=DIFF, path="/w/a.py")},
        "Create src/a.py?": {"tool": "write", "preview": Preview(kind="diff", text=LONG_DIFF, path="/w/a.py")},
        "Start a sub-agent to find all callers?": {"tool": "agent", "args": {"task": "Find all callers."}},
        "Start a sub-agent to API: list it?": {"tool": "agent", "args": {"task": "API: list it"}},
        "Use deploy?": {"tool": "deploy", "args": {}},
        "Run this command? · sub-agent explorer": {**command, "agent": "explorer"},
        "Run this command? · asked by #2 Check the tests of cart": {**command, "agent": "#2 Check the tests of cart"},
        "Run this command for you?": {**command, "agent": "you"},
    }
    async with HostApp().run_test(size=(80, 24)) as pilot:
        for title, fields in titles.items():
            values = {"args": {"path": "src/a.py"}, "preview": None, **fields}
            async with asking_in(pilot, REQUEST.model_copy(update=values)) as asked:
                assert title in asked.text()


@table("is_trial", [False, True])
def test_at_every_width_all_is_third_and_later_is_among_the_answers(is_trial: bool) -> None:
    offer = RuleOffer(REQUEST, None)
    for total, width, most in product((1, 2, 12, 345), range(16, 200), (4, 6)):
        offered = offered_answers(REQUEST, offer, total)
        shown = first_answers(answer_choices("asking", offer, offered, total, is_trial=is_trial), width)
        keys = ["y", "n", "a", "f", "esc", "f1"] if total > 1 else ["y", "n", "f", "esc", "f1"]
        assert [choice.key for choice in shown] == [key for key in keys if key in {one.key for one in shown}]
        rows = [line.plain for line in answer_rows(shown, width, most)]
        assert max(map(len, rows)) <= width + 2, "a blank row end"
        assert "esc later" in "\n".join(rows)
        assert total == 1 or f"a all {total}" in "\n".join(rows)


async def test_f1_shows_all_answers_and_only_the_most_used_again() -> None:
    async with asking(REQUEST, 1, 3, size=(60, 20)) as asked:
        before = asked.text()
        await asked.press("f1")
        for words in ("y yes", "f no, because", "s session", "p always", "a all 3", "esc later", "w why", "k skip"):
            assert words in asked.text()
        await asked.press("f1")
        assert asked.text() == before
        assert asked.answers == []


async def test_it_can_be_read_and_answered_at_every_size() -> None:
    async with HostApp().run_test(size=(20, 6)) as pilot:
        for size in ((20, 6), (40, 13), (80, 24), (109, 30), (110, 24), (200, 60)):
            for request in (REQUEST, LONG):
                async with asking_in(pilot, request, size=size) as asked:
                    while "more row" in asked.text():
                        for _ in range(5):
                            asked.screen.action_page_down()
                        await pilot.pause()
                    await asked.press("y")

                    assert asked.answers == [ApprovalDecision(decision="approve")], size


async def test_hidden_characters_and_markup_are_shown() -> None:
    command = "echo \u202e[bold]x[/bold] [/ \x1b[2J  "
    request = REQUEST.model_copy(
        update={"tool": "[/x]", "args": {}, "preview": Preview(kind="command", text=command), "reason": "[/] \x07"}
    )
    async with asking(request) as asked:
        text = asked.text()

    for words in ("echo \\u202e[bold]x[/bold] [/ \\x1b[2J\\x20{2}", "[/x]", "[/] \\x07"):
        assert words in text
