"""Pictures of the conversation, the dialog and the page about a call, at both sizes."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest
from textual.pilot import Pilot

from tests.support.examples import only_long
from tests.ui.approval.test_change_parts import CHANGE
from tests.ui.row_kit import DIFF, HostApp, Teller, answer, apply_to, delta, run_ended, started, story, user
from tests.ui.state.test_call_view_state import QUEUED, STARTED, ended, seen
from tests.ui.test_approval_screen import LONG, REQUEST, Clock
from tui_agent.protocol.events import Failed, MessageEnded, PermissionDecided
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, TextBlock, Usage, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest, DecisionPart, PermissionMode
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.approval_pages import ChangePartsScreen
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.approval.change_parts import change_parts
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS
from tui_agent.ui.dialogs.question_screen import AnswerRow, TypedKeys
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen
from tui_agent.ui.transcript.conversation import Conversation

SIZES = [(80, 24), (120, 40)]

COMMAND = "cd src && git commit -am 'fix  it' && git push \u202e"
PIPELINE = REQUEST.model_copy(
    update={
        "args": {"command": COMMAND, "description": "Commit and push", "timeout": 60},
        "preview": Preview(kind="command", text=COMMAND),
        "parts": (
            DecisionPart(text="cd src", decision="allow", reason="only changes the directory"),
            DecisionPart(text="git commit -am 'fix  it'", decision="ask", reason="no rule"),
            DecisionPart(text="git push \u202e", decision="ask", rule="bash(git push:*) (project)"),
        ),
    }
)
EDIT = REQUEST.model_copy(
    update={
        "tool": "edit",
        "args": {"path": "src/price.py", "old_string": "round("},
        "preview": Preview(kind="diff", text=DIFF, path="/home/ada/shop/src/price.py"),
        "session_rule": "edit(src/**)",
        "agent": "explorer",
    }
)


NOTEBOOK = REQUEST.model_copy(
    update={
        "tool": "edit",
        "args": {"path": "prices.ipynb", "cell": 2, "old_string": "tax = 1", "new_string": "tax = 2"},
        "preview": Preview(
            kind="diff",
            text=(
                "--- a/prices.ipynb cell 2 (code)\n+++ b/prices.ipynb cell 2 (code)\n@@ -1,2 +1,2 @@\n"
                "-tax = 1\n+tax = 2\n print(tax)\n"
            ),
            path="/home/ada/shop/prices.ipynb",
            note="cell 2 (code)",
        ),
    }
)


class Compare(Protocol):
    """The picture-comparing fixture."""

    def __call__(self, app: object, *, terminal_size: tuple[int, int], run_before: object = None) -> bool: ...


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_session_with_everything(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        for envelope in story():
            apply_to(conversation, envelope)
        conversation.flush()
        await pilot.pause()

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=tell)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_reader_further_up(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        for envelope in story():
            apply_to(conversation, envelope)
        conversation.flush()
        conversation.scroll_home(animate=False)
        await pilot.pause()
        teller = Teller()
        for event in (answer("Good, then I only change the helper.", "a2"), user("thanks", "u9")):
            apply_to(conversation, teller.tell(event))
        conversation.flush()
        await pilot.pause()

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=tell)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_runs_that_ended_well_and_badly(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        teller = Teller()
        text = "The key was not accepted by the server. Nothing was sent. Set ANTHROPIC_API_KEY and try again."
        for event in (
            user("explain this"),
            answer("It rounds twice.", thinking="Easy.\n\nVery easy."),
            run_ended(usage=Usage(input_tokens=9_000, output_tokens=240), cost=0.04),
            user("and now?", "u2"),
            started("a2"),
            delta("It ", "a2"),
            Failed(code="provider", text=text),
            run_ended(reason="error", error=text, steps=1, tool_calls=0),
        ):
            apply_to(conversation, teller.tell(event))
        conversation.flush()
        conversation.focus()
        await pilot.press("shift+up", "enter")
        await pilot.pause()

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=tell)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_attached_files(snap_compare: Compare, size: tuple[int, int]) -> None:
    pixels = bytes(value for row in range(12) for column in range(24) for value in (column * 10, row * 20, 128))
    image = ImageBlock(
        media_type="image/png", data="AAAA" * 40, name="logo.png", thumbnail=f"24x12:{b64encode(pixels).decode()}"
    )
    pdf = DocumentBlock(media_type="application/pdf", data="JVBERg==", name="report.pdf", pages=3)
    lines = DocumentBlock(media_type="text/plain", data="2\tx = 1\n3\ty = 2", name="src/shop.py:2-3")
    text = TextBlock(text="compare [image logo.png 64×48] [PDF report.pdf 3 pages] @src/shop.py:2-3")
    message = UserMessage(content=(text, image, pdf, lines), id="u1", kind="prompt", timestamp=0)

    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        teller = Teller()
        for event in (MessageEnded(message_id="u1", message=message), answer("The logo is on page 2.")):
            apply_to(conversation, teller.tell(event))
        conversation.flush()
        await pilot.pause()

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=tell)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", *only_long("high-contrast", "ansi")])
def test_every_theme(snap_compare: Compare, theme: str) -> None:
    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        for envelope in story():
            apply_to(conversation, envelope)
        conversation.flush()
        await pilot.pause()

    assert snap_compare(HostApp(theme=theme), terminal_size=(80, 60), run_before=tell)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("request_", [PIPELINE, EDIT, LONG, NOTEBOOK], ids=["command", "edit", "long", "notebook"])
def test_a_question(snap_compare: Compare, request_: ApprovalRequest, size: tuple[int, int]) -> None:
    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=asking(request_))


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [("s",), ("f",), ("Y",), ("w",), ("e",)], ids=["rule", "reason", "remark", "trace", "edit"]
)
def test_steps_of_a_question(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    assert snap_compare(HostApp(side=True), terminal_size=(80, 24), run_before=asking(REQUEST, *keys))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_parts_of_a_change(snap_compare: Compare, size: tuple[int, int]) -> None:
    parts = change_parts(CHANGE)
    assert parts is not None

    async def show(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(ChangePartsScreen(CHANGE, parts, keys=TypedKeys(Clock())))
        await pilot.pause()
        await pilot.press("down", "space")
        await pilot.pause()

    assert snap_compare(HostApp(), terminal_size=size, run_before=show)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_rule_is_typed(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def type_rule(pilot: Pilot[None]) -> None:
        await asking(REQUEST, "s")(pilot)
        await pilot.press("e")
        screen = pilot.app.screen
        assert isinstance(screen, ApprovalScreen)
        screen.settle()
        await pilot.press(*["backspace"] * 2)
        screen.dialog._show_typed_rule()
        await pilot.pause()

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=type_rule)


@pytest.mark.slow
def test_a_question_in_a_tiny_window(snap_compare: Compare) -> None:
    assert snap_compare(HostApp(), terminal_size=(30, 8), run_before=asking(PIPELINE))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_page_about_a_call(snap_compare: Compare, size: tuple[int, int]) -> None:
    decided = PermissionDecided(call_id="c1", decision="allow", source="rule", mode=PermissionMode.ASK, rule="bash(ls)")
    result = ended(
        status="error",
        is_error=True,
        content=(TextBlock(text="ls: nowhere: No such file"),),
        latency_ms=40.0,
        details={"diff": DIFF},
    )

    async def show(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(CallDetailScreen(seen(QUEUED, decided, STARTED, result), clock=lambda: 50.0))
        await pilot.pause()

    assert snap_compare(HostApp(), terminal_size=size, run_before=show)


def asking(request: ApprovalRequest, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Brings a question over a conversation, its quiet moment over, and presses keys."""

    async def ask(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        for envelope in story():
            apply_to(conversation, envelope)
        conversation.flush()
        clock = Clock()
        screen = ApprovalScreen(request, 2, 5, facts=None, keys=TypedKeys(clock))
        await pilot.app.push_screen(screen)
        while not screen.guard.was_drawn:
            await pilot.pause()
        clock.now += SEEN_SECONDS
        screen.dialog.query_one(AnswerRow).redraw()
        await pilot.press(*keys)
        screen.settle()
        await pilot.pause()
        while not screen.guard.was_drawn:
            await pilot.pause()
        clock.now += SEEN_SECONDS
        await pilot.pause()
        screen.dialog.query_one(AnswerRow).redraw()
        await pilot.pause()

    return ask
