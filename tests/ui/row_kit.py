"""Events for tests of the conversation and the dialog, and a small app to show them."""

from collections.abc import Iterator
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    SteeringDelivered,
    StepRetry,
    TodoItem,
    TodoUpdated,
    ToolEnded,
    ToolQueued,
    ToolStatus,
    Warned,
)
from tui_agent.protocol.messages import AssistantMessage, JsonObject, TextBlock, ThinkingBlock, UserKind, UserMessage
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.app.themes import DEFAULT_THEME, read_theme, shipped_themes
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.transcript.conversation import Conversation
from tui_agent.ui.transcript.transcript_builder import TranscriptFold
from tui_agent.ui.transcript.transcript_layout import Transcript


class FoldWithLedger(TranscriptFold):
    """A conversation with the ledger of its calls, which receives each event first."""

    def __init__(self, transcript: Transcript) -> None:
        self.ledger = CallLedger()
        super().__init__(transcript, self.ledger.find)

    def apply(self, envelope: Envelope) -> bool:
        self.ledger.apply(envelope)
        return super().apply(envelope)


DIFF = Diff("""--- a/src/price.py
+++ b/src/price.py
@@ -8,5 +8,5 @@ class Price:
 from decimal import Decimal
 def total(items):
-    return round(sum(round(item.price, 2) for item in items), 2)
+    return sum((item.price for item in items), Decimal(0))
 def tax(amount):
     return amount * RATE
""")

ANSWER = """I'll check both callers and then change **price.py**. It rounds *twice*, see `round(x, 2)`.

## What I found

1. `total()` rounds each item
2. `cart.sum()` rounds the total again
   - this one is right

> Decimal is exact.

| file | line | what |
|:-----|-----:|:-----|
| src/price.py | 12 | rounds every item although the sum is rounded later anyway |
| src/cart.py | 140 | rounds the sum |

```python
def total(items: list[Item]) -> Decimal:
    return sum((item.price for item in items), Decimal(0))  # exact
```

Then I run the tests."""


class Teller:
    """Numbers events and gives them a place."""

    def __init__(self) -> None:
        self._number = 0

    def tell(self, event: AgentEvent, *, step: int | None = 0, depth: int = 0, run: str = "r1") -> Envelope:
        """One event in its envelope, a second after the one before."""
        self._number += 1
        return Envelope(event, self._number, 0, float(self._number), Origin(run_id=run, step=step, depth=depth))


def user(text: str, message_id: str = "u1", kind: UserKind = "prompt") -> MessageEnded:
    """Return a user's message."""
    message = UserMessage(content=(TextBlock(text=text),), id=message_id, kind=kind, timestamp=0)
    return MessageEnded(message_id=message_id, message=message)


def answer(text: str, message_id: str = "a1", thinking: str = "", **fields: Any) -> MessageEnded:
    """The model's whole message."""
    blocks = (*((ThinkingBlock(thinking=thinking),) if thinking else ()), *((TextBlock(text=text),) if text else ()))
    message = AssistantMessage(content=blocks, id=message_id, timestamp=0, **fields)
    return MessageEnded(message_id=message_id, message=message)


def started(message_id: str = "a1") -> MessageStarted:
    """The model begins to answer."""
    return MessageStarted(message_id=message_id, role="assistant")


def delta(text: str, message_id: str = "a1", kind: Any = "text") -> MessageDelta:
    """More of its answer."""
    return MessageDelta(message_id=message_id, kind=kind, delta=text)


def queued(call_id: str, name: str, index: int = 0) -> ToolQueued:
    """A call is received."""
    return ToolQueued(call_id=call_id, name=name, args_raw={}, index=index)


def ended(call_id: str, name: str, status: ToolStatus = "ok", details: JsonObject | None = None) -> ToolEnded:
    """A call is over."""
    return ToolEnded(
        call_id=call_id, name=name, index=0, status=status, is_error=status != "ok", content=(), details=details
    )


def run_started() -> RunStarted:
    """A run begins."""
    return RunStarted(input="x", trigger="prompt", model="m", mode=PermissionMode.ASK)


def story() -> Iterator[Envelope]:
    """Yield a session with everything a conversation can show; its last answer is still being written."""
    teller = Teller()
    thoughts = "The user wants the failing test fixed. Let me look at the callers first."
    first: list[AgentEvent] = [
        run_started(),
        user("fix the failing price test\nand keep the public signature, please"),
        started(),
        delta(thoughts, kind="thinking"),
        *(delta(ANSWER[place : place + 7]) for place in range(0, len(ANSWER), 7)),
        answer(ANSWER, thinking=thoughts),
        *(queued(f"c{number}", name, number) for number, name in enumerate(("read", "read", "grep", "bash", "edit"))),
        ended("c0", "read"),
        ended("c3", "bash", "error"),
        ended("c4", "edit", details={"path": "src/price.py", "diff": DIFF}),
        StepRetry(attempt=2, max=10, wait_s=4.0, error_kind="overloaded", status=529, text="The model is overloaded"),
        SteeringDelivered(message_id="u2", kind="steer", text="", boundary="after step 2"),
        user("keep the [bold]public[/bold] signature \u202e", "u2", "steer"),
        TodoUpdated(items=(TodoItem(text="look", status="done"), TodoItem(text="run the tests", status="pending"))),
        Warned(code="x", text="The folder is not a git repository; changes cannot be undone."),
    ]
    for event in first:
        yield teller.tell(event)
    for event in (started("a2"), delta("Good, then I only change the helper", "a2")):
        yield teller.tell(event, step=1)


def run_ended(**fields: Any) -> RunEnded:
    """A run is over."""
    return RunEnded(**{"reason": "done", "total_ms": 12_300.0, "steps": 3, "tool_calls": 5, **fields})


def rows_of(transcript: Transcript, width: int = 60) -> list[str]:
    """Everything a transcript shows, as text."""
    transcript.set_width(width)
    total = -1
    while total != transcript.total:
        total = transcript.total
        transcript.settle(0, total)
    return [transcript.line(row).plain.rstrip() for row in range(total)]


def apply_to(conversation: Conversation, envelope: Envelope) -> None:
    """Apply one event to the fold of a conversation, and then refresh it, as the chat does."""
    if conversation._fold.apply(envelope):
        conversation.refresh_for(envelope.event)


class HostApp(App[None]):
    """A conversation, and beside it something that stands for the tool panel."""

    CSS = """
    Screen { background: $background; }
    #conversation { width: 1fr; }
    #side { width: 38%; border-left: solid $border-blurred; color: $text-muted; }
    """

    AUTO_FOCUS = None

    def __init__(self, *, theme: str = DEFAULT_THEME, side: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._side = side

    def compose(self) -> ComposeResult:
        """The two."""
        with Horizontal():
            yield Conversation(FoldWithLedger(Transcript()), id="conversation")
            if self._side:
                yield Static(" TOOLS  1 running\n ◐ bash pytest -q", id="side", markup=False)

    def on_mount(self) -> None:
        """The colours the program has."""
        self.register_theme(read_theme(shipped_themes() / f"{self._theme}.toml"))
        self.theme = self._theme

    @property
    def conversation(self) -> Conversation:
        """The conversation."""
        return self.query_one(Conversation)
