"""Pictures of the conversation, and of a dialog over it, at both sizes."""

from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

import pytest
from textual.pilot import Pilot

from tests.ui.row_kit import DIFF, HostApp, Teller, answer, apply_to, delta, run_ended, started, story, user
from tests.ui.test_approval_screen import LONG, REQUEST, Clock
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import Failed, MessageEnded
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, TextBlock, Usage, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS
from tui_agent.ui.dialogs.answer_screen import AnswerRow, TypedKeys
from tui_agent.ui.transcript.conversation import Conversation

SIZES = [(80, 24), (120, 40)]

EDIT = REQUEST.model_copy(
    update={
        "tool": "edit",
        "args": {"path": "src/price.py", "old_string": "round("},
        "preview": Preview(kind="diff", text=DIFF, path="/home/ada/shop/src/price.py"),
        "session_rule": "edit(src/**)",
        "agent": "explorer",
    }
)


class Compare(Protocol):
    """The picture-comparing fixture."""

    def __call__(self, app: object, *, terminal_size: tuple[int, int], run_before: object = None) -> bool: ...


def telling(envelopes: Iterable[Envelope], *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Apply events to the conversation, and press keys in it."""

    async def tell(pilot: Pilot[None]) -> None:
        await pilot.pause()
        conversation = pilot.app.query_one(Conversation)
        for envelope in envelopes:
            apply_to(conversation, envelope)
        conversation.flush()
        if keys:
            conversation.focus()
            await pilot.press(*keys)
        await pilot.pause()

    return tell


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_session_with_everything(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=telling(story()))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_runs_that_ended_well_and_badly(snap_compare: Compare, size: tuple[int, int]) -> None:
    text = "The key was not accepted by the server. Nothing was sent. Set ANTHROPIC_API_KEY and try again."
    events = (
        user("explain this"),
        answer("It rounds twice.", thinking="Easy.\n\nVery easy."),
        run_ended(usage=Usage(input_tokens=9_000, output_tokens=240), cost=0.04),
        user("and now?", "u2"),
        started("a2"),
        delta("It ", "a2"),
        Failed(code="provider", text=text),
        run_ended(reason="error", error=text, steps=1, tool_calls=0),
    )
    told = telling(map(Teller().tell, events), "shift+up", "enter")

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=told)


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
    events = MessageEnded(message_id="u1", message=message), answer("The logo is on page 2.")

    assert snap_compare(HostApp(side=True), terminal_size=size, run_before=telling(map(Teller().tell, events)))


@pytest.mark.slow
@pytest.mark.parametrize("request_", [EDIT, LONG], ids=["edit", "long"])
def test_a_question(snap_compare: Compare, request_: ApprovalRequest) -> None:
    assert snap_compare(HostApp(side=True), terminal_size=(80, 24), run_before=asking(request_))


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [("s",), ("f",), ("Y",), ("w",), ("e",)], ids=["rule", "reason", "remark", "trace", "edit"]
)
def test_steps_of_a_question(snap_compare: Compare, keys: tuple[str, ...]) -> None:
    assert snap_compare(HostApp(side=True), terminal_size=(80, 24), run_before=asking(REQUEST, *keys))


def asking(request: ApprovalRequest, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Brings a question over a conversation, its quiet moment over, and presses keys."""

    async def ask(pilot: Pilot[None]) -> None:
        await telling(story())(pilot)
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
