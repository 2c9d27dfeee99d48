"""The approval dialog: its keys, its guard against accidental answers, and what it must show first."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Sequence
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
from tests.ui.question_page import ComposerKeys, QuestionPage, empty_app, page_in
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
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
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.dialogs.answer_rules import PAUSE_SECONDS, RESTING_SECONDS, SEEN_SECONDS
from tui_agent.ui.dialogs.answer_screen import AnswerRow
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
YES, NO = ApprovalDecision(decision="approve"), ApprovalDecision(decision="deny")
Asked = QuestionPage[ApprovalScreen]


class FakeFacts:
    """Grant facts with two files and one earlier call."""

    def file_of(self, scope: str) -> str | None:
        return {"project": "/w/.tui-agent/config.toml", "user": "/home/a/config.toml"}.get(scope)

    def answered(self, rule: str, but_call: str) -> list[str]:
        return ["bash  git commit -m y"] if "*" in rule else []

    def refusal(self, rule: str, tool: str, arguments: JsonObject) -> str:
        assert (tool, arguments) == ("bash", REQUEST.args)
        return "" if rule.startswith("bash(git commit") and rule.endswith(")") else f"No: {rule}"


class EditorApp(HostApp):
    """Notes which texts another editor is to open."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[ApprovalScreen.EditorRequested] = []

    @on(ApprovalScreen.EditorRequested)
    def note(self, event: ApprovalScreen.EditorRequested) -> None:
        self.wanted.append(event)


@asynccontextmanager
async def asking(
    request: ApprovalRequest = REQUEST, *, size: tuple[int, int] = (80, 24), quiet: bool = True
) -> AsyncIterator[Asked]:
    """Start an app and show a dialog; with `quiet`, answers count already."""
    async with empty_app(size) as pilot, asking_in(pilot, request, quiet=quiet) as asked:
        yield asked


@asynccontextmanager
async def asking_in(
    pilot: Pilot[None],
    request: ApprovalRequest = REQUEST,
    total: int = 1,
    *,
    size: tuple[int, int] | None = None,
    quiet: bool = True,
    foot: tuple[int, int] = (0, 0),
) -> AsyncIterator[Asked]:
    """Show a dialog in a running app."""
    width, height = size or pilot.app.size
    clock = Clock()
    keys = ComposerKeys(clock, Region(0, height - 1, width, 1))
    screen = ApprovalScreen(request, 1, total, facts=FakeFacts(), keys=keys, foot=lambda: foot)
    async with page_in(pilot, screen, clock, size) as asked:
        if quiet:
            clock.now += SEEN_SECONDS
        yield asked


async def walk(
    pilot: Pilot[None],
    request: ApprovalRequest,
    steps: Sequence[tuple[str, ...]],
    answers: Sequence[object],
    *,
    typed: Sequence[str] = (),
    **options: Any,
) -> None:
    """Press the keys of each step (`.` stands for a quiet moment) and find its words; only the last step answers."""
    async with asking_in(pilot, request, **options) as asked:
        for keys, *words in steps:
            assert asked.answers == [], steps
            for key in keys.split():
                if key == ".":
                    asked.clock.now += SEEN_SECONDS
                else:
                    await asked.press(key)
            text = asked.text()
            assert [word for word in words if word not in text] == [], (keys, text)
        assert (asked.answers, asked.typed) == (list(answers), list(typed)), (steps, options)


def keys_are_dim(asked: Asked) -> bool:
    """Return True if the answers are dim."""
    line = asked.screen.query_one("#approval-keys", RowsView).line_at(0)
    assert line is not None
    return ("y", "key") not in line.runs and ("s", "key") not in line.runs


# --- answers --------------------------------------------------------------------------------------------------------


async def test_some_keys_answer_some_do_nothing_and_text_goes_to_the_composer() -> None:
    answers: dict[str, list[object]] = {"y": [YES], "n": [NO], "k": [ApprovalDecision(decision="skip")]}
    answers |= {key: [] for key in ("enter", "space", "p", "e", "tab", "f1", "ctrl+y")}
    answers |= {key: [None] for key in ("escape", "N", "x", "7", "é")}
    answers |= {"right enter": [YES], "right right enter": [NO], "left left enter": [None]}
    async with empty_app() as pilot:
        for keys, expected in answers.items():
            await walk(pilot, REQUEST, [(keys,)], expected, typed=[keys] if keys in "Nx7é" else [])


async def test_a_question_settled_before_its_dialog_is_laid_out_ends_quietly() -> None:
    async with asking() as asked:
        dialog = asked.screen
        await asked.screen.dismiss(None)
        await asked.pilot.pause()

        dialog.lay_out()

        assert not dialog.is_attached


async def test_the_rule_to_store_is_shown_first_and_counts_after_a_quiet_moment() -> None:
    lasting = ("From now on also allowed", "/w/.tui-agent/config.toml", "/home/a/config.toml", "delete the rule there")
    past = ("bash(git commit:*)", "1 more question", "bash git commit -m y")
    async with empty_app() as pilot:
        for opening, key, scope, words in (
            ("s", "s", "session", past),
            ("p", "p", "project", (*past, *lasting)),
            ("p", "u", "user", (*past, *lasting)),
        ):
            granted = ApprovalDecision.model_validate({"decision": "approve", "scope": scope})
            # A key held down must not get through: the rule is another question.
            await walk(pilot, REQUEST, [(opening, *words), (key,), (f". {key}",)], [granted])

        narrow = ApprovalDecision(decision="approve", scope="session", rule="bash(git commit -am x)")
        words = ("bash(git commit -am x)", "no other question", "1 of 2")
        await walk(pilot, REQUEST, [("s right left", *words), (". s",)], [narrow])

        async with asking_in(pilot) as asked:
            for _ in range(3):
                await asked.press("p", "escape")
                asked.clock.now += SEEN_SECONDS
            await asked.press("p")

            assert "more row" not in asked.text(), "shown again, it is shown whole"


async def test_a_rule_can_be_typed_and_is_shown_again_before_it_is_stored() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot) as asked:
            await asked.press_in_turn("s", "e")
            assert asked.screen.editor.text == "bash(git commit:*)"
            await asked.press(*["backspace"] * 3)
            assert "No: bash(git commit" in asked.text(), "the reason is shown while the user types"

            await asked.press("ctrl+s")
            assert asked.screen.step == "typing", "a refused rule is not taken"

            await asked.press("space", "minus", "a", ":", "*", ")")
            async with asyncio.timeout(60):
                while "1 more question" not in asked.text():
                    await pilot.pause(PAST_SECONDS / 10)

            await asked.press("ctrl+s", "s")
            assert asked.answers == [], "the typed rule is another question"
            assert "bash(git commit -a:*)" in asked.text()
            assert "yours" in asked.text()

            await asked.press_in_turn("s")
            typed = ApprovalDecision(decision="approve", scope="session", rule="bash(git commit -a:*)")
            assert asked.answers == [typed]

        typing = "e backspace backspace backspace space minus q ) ctrl+s"
        proposed = (f". {typing} left", "bash(git commit:*)", "2 of 2")
        granted = ApprovalDecision(decision="approve", scope="user")
        # Instead of a typed rule, a proposed one can be chosen.
        await walk(pilot, REQUEST, [(". p . e x escape",), proposed, (". u",)], [granted])


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
        await asked.press_in_turn("u")

        assert asked.answers == [ApprovalDecision(decision="approve", scope="user")]


FILE_TEXT = "import os\n\n\ndef price():\n\treturn 'a'  # ä\n"
FILE = REQUEST.model_copy(
    update={
        "tool": "write",
        "args": {"path": "src/price.py", "content": FILE_TEXT},
        "preview": Preview(kind="diff", text="--- /dev/null\n+++ b/src/price.py\n@@ -0,0 +1 @@\n+import os\n"),
    }
)


async def test_an_edited_input_is_allowed_and_an_unchanged_one_is_a_plain_yes() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot, REQUEST.model_copy(update={"args": {"command": COMMAND, "timeout": 5}})) as asked:
            await asked.press("e")
            assert asked.screen.editor.text == COMMAND
            await asked.press(*" -v", "y", "n")
            await asked.paste("\x1b]52;c;eA==\x07 a\u202eb")
            await asked.press("ctrl+s")

            # What hides in a paste can be seen in the editor.
            changed = {"command": COMMAND + " -vyn\\x1b]52;c;eA==\\x07 a\\u202eb", "timeout": 5}
            assert asked.answers == [ApprovalDecision(decision="approve", input=changed)]

        async with asking_in(pilot, FILE) as asked:
            await asked.press("e")
            editor = asked.screen.editor
            assert editor.text == FILE_TEXT
            assert "You edit the content of src/price.py" in asked.text()
            coloured = {str(span.style) for row in range(5) for span in editor.get_line(row).spans}
            assert len(coloured) >= 3, "keywords, names, strings and comments differ"
            before = editor.get_line(0).spans
            await asked.press("#")
            assert editor.get_line(0).spans != before, "colours follow each change"
            editor.undo()
            await asked.press("ctrl+s")

            assert asked.answers == [YES]

        steps = [("e x ctrl+s", "this is not valid JSON"), ("escape . y",)]
        await walk(pilot, REQUEST.model_copy(update={"preview": None}), steps, [YES])


async def test_another_editor_gets_the_text_and_its_result_is_shown_before_it_counts() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot, asking_in(pilot, FILE) as asked:
        await asked.press("e", "ctrl+g")
        (request,) = app.wanted
        assert (request.text, request.file_name) == (FILE_TEXT, "text.py")

        request.done(FILE_TEXT, "No editor is set.")
        await pilot.pause()
        assert "No editor is set." in asked.text()

        request.done("x = 1\u202e\n", "")
        await pilot.pause()
        assert asked.screen.editor.text == "x = 1\\u202e\n"
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


async def test_a_plan_is_accepted_with_a_mode_or_declined() -> None:
    accepts = ApprovalDecision(decision="approve", input={"mode": "accept_edits"})
    edited_and_declined = ApprovalDecision(decision="deny", note=f"no\n\nThe plan as I edited it:\n\nX{PLAN_TEXT}")
    async with empty_app() as pilot:
        for keys, decision in (
            ("y", ApprovalDecision(decision="approve", input={"mode": "ask"})),
            ("s", accepts),
            ("n", NO),
            ("f m o r e enter", ApprovalDecision(decision="deny", note="more")),
            ("e X ctrl+s f n o enter", edited_and_declined),
            ("e X escape s", accepts),
        ):
            shown = ("", "Accept this plan?", "1. Change price()")
            await walk(pilot, PLAN, [shown, (keys.replace(" ", " . "),)], [decision])


async def test_an_edited_plan_is_shown_again_before_it_is_accepted() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot, asking_in(pilot, PLAN) as asked:
        await asked.press("ctrl+g")
        assert (app.wanted[0].text, app.wanted[0].file_name) == (PLAN_TEXT, "plan.md")
        app.wanted[0].done("1. Only *this*\n", "")
        await asked.press("ctrl+s")
        assert asked.answers == []
        assert "1. Only this" in asked.text()
        assert "Round once" not in asked.text()
        await asked.press_in_turn("f", "g", "o", "escape", "y")
        edited = {"mode": "ask", "plan": "1. Only *this*\n"}
        assert asked.answers == [ApprovalDecision(decision="approve", input=edited)]


async def test_a_reason_and_a_remark_go_to_the_agent() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot) as asked:
            await asked.press("f")
            field = asked.screen.query_one(Input)
            assert field.has_focus
            assert not field.cursor_blink, "nothing wakes a program that waits"
            await asked.press(*"yes, use rg", "enter")

            assert asked.answers == [ApprovalDecision(decision="deny", note="yes, use rg")]

        async with asking_in(pilot) as asked:
            await asked.press("Y")
            assert "reads it with the result" in asked.text()
            await asked.press(*"no, then push", "enter")

            assert asked.answers == [ApprovalDecision(decision="approve", note="no, then push")]

        async with asking_in(pilot) as asked:
            await asked.press("f")
            await asked.paste("pasted\r\nwords\x1b\r\u202e")
            field = asked.screen.query_one(Input)
            assert field.value == "pasted words\\x1b \\u202e"
            await asked.paste("word " * 40 + "\x1b end")
            assert "\\x1b end " in asked.text(), "the end of a long paste is in sight"
            assert "pasted" not in asked.text()

            await asked.press("escape", "n")
            assert not field.display
            assert asked.answers == [], "the question is asked anew"
            await asked.press_in_turn("n")
            assert asked.answers == [NO]


async def test_a_dead_key_says_why() -> None:
    no_rule = REQUEST.model_copy(update={"session_rule": None})
    dead = [
        ("h", REQUEST, "This change has one part"),
        ("a", REQUEST, "No other question waits."),
        ("s", no_rule, "No rule can be stored"),
        ("u", REQUEST, "for a rule that is shown"),
        ("y", no_rule.model_copy(update={"options": ("deny",)}), "This key does nothing here."),
        *((key, LONG, "before a yes counts") for key in ("y", "Y", "e", "s", "p")),
    ]
    async with empty_app((60, 20)) as pilot:
        for size, (key, request, reason) in product(((60, 20), (120, 40)), dead):
            await walk(pilot, request, [(key, reason)], [], size=size)


# --- the guard ------------------------------------------------------------------------------------------------------


async def test_keys_answer_only_once_they_are_bright_and_not_now_always_works() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot, quiet=False) as asked:
            await asked.type("yes, nanny, do keep skis")

            assert asked.answers == [None]
            assert "".join(asked.typed) == "ye", "the others go to the chat"

        async with asking_in(pilot, quiet=False) as asked:
            assert keys_are_dim(asked)
            asked.clock.now += SEEN_SECONDS / 2
            await asked.press("y")
            assert keys_are_dim(asked)
            assert "does not count yet" in asked.text()
            asked.clock.now += SEEN_SECONDS / 2
            asked.screen.dialog.query_one(AnswerRow).redraw()
            assert not keys_are_dim(asked), "an early key does not delay the answers"
            await asked.press("y")

            assert asked.answers == [YES]

        await walk(pilot, REQUEST, [("right enter", "does not count yet"), ("escape",)], [None], quiet=False)


async def test_paging_ends_a_run_of_letters_and_text_and_pastes_answer_nothing() -> None:
    async with empty_app() as pilot:
        for paging in ("pagedown", "space"):
            async with asking_in(pilot, LONG) as asked:
                await asked.press("y")
                asked.clock.now += PAUSE_SECONDS
                while not asked.screen.body.read_to_end:
                    await asked.press(paging)
                await asked.press("y")

                assert (asked.answers, asked.typed) == ([YES], []), "the first yes came before everything was shown"

        async with asking_in(pilot, LONG) as asked:
            await pilot.press("y", "pagedown", "end", "y", "pagedown")
            await pilot.pause()
            assert (asked.answers, asked.typed) == ([YES], [])

        async with asking_in(pilot, LONG) as asked:
            await asked.type("y ok")
            assert (asked.answers, "".join(asked.typed)) == ([None], "y ")

        async with asking_in(pilot) as asked:
            pilot.app.post_message(Paste("y"))
            asked.screen.post_message(Paste("y\n"))
            await pilot.pause()
            assert (asked.answers, asked.typed) == ([None], ["y"])


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


async def test_clicks_beside_the_labels_never_answer_and_one_into_the_composer_folds_the_question() -> None:
    async with empty_app((20, 6)) as pilot:
        for size in ((20, 6), (80, 24)):
            async with asking_in(pilot, size=size) as asked:
                await armed(asked)
                keys = asked.screen.query_one("#approval-keys").region
                line = asked.text().split("\n")[keys.y]
                gaps = [(keys.x + gap.start(), keys.y) for gap in re.finditer("  ", line[keys.x :])]
                rows = [row for row in range(0, size[1], 3) if row != keys.y]
                for place in [(column, row) for column in (0, 3, 6) for row in rows] + gaps:
                    await pilot.click(offset=place)

                assert asked.answers == [], size

        async with asking_in(pilot, foot=(1, 1)) as asked:
            await pilot.click(asked.screen.dialog, offset=(5, 3))
            assert asked.answers == []
            await pilot.click(offset=(5, 23))
            await pilot.pause()
            assert asked.answers == [None]


async def test_a_click_on_a_label_acts_as_its_key_but_stores_no_rule() -> None:
    skip = ApprovalDecision(decision="skip")
    answers = {"y yes": YES, "n no": NO, "a all 2": "list", "esc later": None, "k skip": skip}
    async with empty_app((60, 20)) as pilot:
        for label, answer in answers.items():
            async with asking_in(pilot, REQUEST, 2) as asked:
                await armed(asked)
                await click(asked, "f1 more")
                column, row = place_of(asked, label)
                await pilot.click(offset=(column + len(label) - 1, row))
                await pilot.pause()

                assert asked.answers == [answer], label

        for key, label in (("s", "s session"), ("p", "p always")):
            async with asking_in(pilot, size=(80, 24)) as asked:
                await asked.press("f1")
                await armed(asked)
                await click(asked, label)
                assert asked.screen.step == "asking"
                last = list(pilot.app._notifications)[-1]
                assert last.message == f"Press {key}: a click does not give this answer."
                await asked.press(key)
                await armed(asked)
                await click(asked, f"{key} yes, ")

                assert asked.answers == []


async def test_a_click_needs_the_end_of_the_input_and_one_button_down_and_up_on_one_answer() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot, LONG) as asked:
            await armed(asked)
            await click(asked, "y yes")
            assert asked.answers == []
            while not asked.screen.body.read_to_end:
                await asked.press("space")
            await click(asked, "y yes")

            assert asked.answers == [YES]

        async with asking_in(pilot) as asked:
            await armed(asked)
            await pilot.mouse_down(offset=place_of(asked, "n no"))
            await pilot.mouse_up(offset=place_of(asked, "y yes"))
            # The button went down before the question appeared.
            await pilot.mouse_up(offset=place_of(asked, "y yes"))
            await pilot.click(offset=place_of(asked, "y yes"), button=3)

            assert asked.answers == []


async def test_a_click_that_was_meant_for_something_else_does_not_answer() -> None:
    async with empty_app() as pilot:
        # In the first moment.
        async with asking_in(pilot, quiet=False) as asked:
            await move(asked, "y yes", 30)
            await armed(asked, SEEN_SECONDS - 0.01)
            await click(asked, "y yes")
            assert asked.answers == []
            assert "does not count yet" in asked.text()
            await armed(asked, 0.02)
            await click(asked, "y yes")
            assert asked.answers == [YES]

        # The question appeared under a pointer that rests.
        async with asking_in(pilot, quiet=False) as asked:
            await armed(asked, RESTING_SECONDS - 0.1)
            await move(asked, "y yes", -1)
            await click(asked, "y yes")
            assert asked.answers == []
            await move(asked, "y yes", 30)
            await click(asked, "y yes")
            assert asked.answers == [YES]

        # The button went down too early, and goes up in time.
        for seconds in (0.0, RESTING_SECONDS - 0.1):
            async with asking_in(pilot, quiet=False) as asked:
                await armed(asked, seconds)
                await pilot.mouse_down(offset=place_of(asked, "y yes"))
                await armed(asked)
                await pilot.mouse_up(offset=place_of(asked, "y yes"))
                assert asked.answers == []

        # The click brings the window to the front, or the button went down before that.
        async with asking_in(pilot) as asked:
            for is_down in (False, True):
                await armed(asked)
                if is_down:
                    await pilot.mouse_down(offset=place_of(asked, "y yes"))
                pilot.app.app_focus = False
                await pilot.pause()
                asked.clock.now += 60
                pilot.app.app_focus = True
                await (pilot.mouse_up if is_down else pilot.click)(offset=place_of(asked, "y yes"))
                assert asked.answers == []


# --- reading before answering ---------------------------------------------------------------------------------------


async def test_a_yes_to_a_long_input_counts_only_once_its_end_was_seen() -> None:
    async with empty_app() as pilot:
        async with asking_in(pilot, LONG) as asked:
            assert "more rows" in asked.text()
            await asked.press("y", "s")
            assert asked.answers == []

            for _ in range(20):
                await asked.press("space")
            assert "more row" not in asked.text()
            await asked.press("y")

            assert asked.answers == [YES]

        await walk(pilot, LONG, [("end", "rows above skipped"), ("y",)], [YES])
        unread = "scroll to the end (end) before a yes counts"
        await walk(pilot, LONG, [("w y", unread), ("end y",)], [YES])

        async with asking_in(pilot, LONG) as asked:
            body = asked.screen.body
            body.scroll_to(y=body.max_scroll_y, animate=False)
            await pilot.pause()
            await asked.press("y")

            assert asked.answers == [YES]

        async with asking_in(pilot) as asked:
            await pilot.resize_terminal(30, 8)
            await pilot.pause()
            await asked.press("y")

            assert asked.answers == [YES], "what was read stays read in a smaller window"


HUGE = REQUEST.model_copy(
    update={
        "args": {"command": "echo " + "a b " * 2_600},
        "preview": Preview(kind="command", text="echo " + "a b " * 2_600),
        "parts": (),
    }
)


async def test_a_long_input_is_laid_out_beside_the_keys_and_no_yes_counts_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, threads, lay_out = threading.Event(), list[threading.Thread](), ApprovalRows.lay_out

    def held(rows: ApprovalRows, width: int) -> None:
        threads.append(threading.current_thread())
        assert gate.wait(60)
        lay_out(rows, width)

    monkeypatch.setattr(ApprovalRows, "lay_out", held)
    # Otherwise each pause of the pilot would wait for the held thread.
    monkeypatch.setattr("tests.support.idle_loop._threads_work", lambda _: False)
    try:
        async with empty_app() as pilot:
            async with asking_in(pilot, HUGE) as asked:
                await asked.press("n")
                assert asked.answers == [NO], "a no needs no reading"

            async with asking_in(pilot, HUGE) as asked:
                assert "The input is long" in asked.text()
                await asked.press_in_turn("y", "s", "p", "e", "w", "pagedown", "end")
                assert asked.answers == []
                assert asked.screen.step == "asking"

                gate.set()
                while "echo a b" not in asked.text():
                    await pilot.pause()
                await asked.press("y")
                assert asked.answers == []
                assert "more rows" in asked.text()

                while not asked.screen.body.read_to_end:
                    await asked.press("pagedown")
                await asked.press("y")
                assert asked.answers == [YES]
                assert threading.main_thread() not in threads
    finally:
        gate.set()


async def test_a_long_input_laid_out_for_another_width_is_read_anew() -> None:
    async with asking(HUGE, size=(120, 40)) as asked:
        while "echo a b" not in asked.text():
            await asked.pilot.pause()
        while not asked.screen.body.read_to_end:
            await asked.press("pagedown")

        await asked.pilot.resize_terminal(80, 24)
        await asked.pilot.pause()
        while asked.screen.body.total < 2:
            await asked.pilot.pause()
        await asked.press("y")

        assert asked.answers == []


# --- what it shows --------------------------------------------------------------------------------------------------


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


async def test_it_can_be_read_and_answered_at_every_size() -> None:
    async with empty_app((20, 6)) as pilot:
        for size in ((20, 6), (40, 13), (80, 24), (109, 30), (110, 24), (200, 60)):
            for request in (REQUEST, LONG):
                async with asking_in(pilot, request, size=size) as asked:
                    while "more row" in asked.text():
                        for _ in range(5):
                            asked.screen.action_page_down()
                        await pilot.pause()
                    await asked.press("y")

                    assert asked.answers == [YES], size
