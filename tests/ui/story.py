"""Sessions for the screen: events with fixed times, so that a picture of them is always the same."""

from dataclasses import replace
from typing import Any, Protocol, TypeVar

from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentCreated,
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ContextUsage,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    Status,
    StatusChanged,
    SteeringDelivered,
    SteeringQueued,
    StepEnded,
    StepStarted,
    ToolBlockedOn,
    ToolEnded,
    ToolOutput,
    ToolQueued,
    ToolStarted,
    ToolStatus,
    UsageUpdated,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    TextBlock,
    ToolCall,
    Usage,
    UserKind,
    UserMessage,
)
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.tool import Preview

START = 1_000.0
"""Monotonic seconds at which every story begins."""


class Story:
    """A session that a test writes event by event; `envelopes` has them all."""

    def __init__(self, model: str = "claude-sonnet-4-5", mode: PermissionMode = PermissionMode.ASK) -> None:
        self.model, self.mode = model, mode
        self.now = START
        self.envelopes: list[Envelope] = []
        self.origin = Origin(session_id="s1")
        self._calls = 0
        self.tell(AgentCreated(model=model, tools=("read", "grep", "edit", "bash"), mode=mode))

    def tell(self, event: AgentEvent) -> Envelope:
        """Add one event now."""
        number = len(self.envelopes) + 1
        envelope = Envelope(event, number, int(self.now * 1000), self.now, self.origin)
        self.envelopes.append(envelope)
        return envelope

    def wait(self, seconds: float) -> "Story":
        """Let time pass."""
        self.now += seconds
        return self

    # --- run and step -------------------------------------------------------------------------------------------------

    def run(self, text: str, run_id: str = "r1") -> "Story":
        """Begin a run with the user's message."""
        self.origin = replace(self.origin, run_id=run_id)
        self.tell(RunStarted(input=text, trigger="prompt", model=self.model, mode=self.mode))
        self.user(text)
        return self

    def user(self, text: str, kind: UserKind = "prompt", message_id: str | None = None) -> "Story":
        """Add a user's message to the conversation."""
        name = message_id or f"u{len(self.envelopes)}"
        message = UserMessage(content=(TextBlock(text=text),), id=name, kind=kind, timestamp=0)
        self.tell(MessageStarted(message_id=name, role="user"))
        self.tell(MessageEnded(message_id=name, message=message))
        return self

    def step(self, index: int) -> "Story":
        """Begin a step with a request to the model."""
        self.origin = replace(self.origin, step=index, turn=index)
        self.tell(StepStarted(index=index, kind="tool_followup" if index else "initial"))
        return self.status("thinking")

    def stream(self, text: str, message_id: str = "") -> str:
        """Begin an answer and leave it unfinished; return the message's id."""
        name = message_id or f"a{len(self.envelopes)}"
        self.status("streaming")
        self.tell(MessageStarted(message_id=name, role="assistant"))
        self.tell(MessageDelta(message_id=name, kind="text", delta=text))
        return name

    def answer(self, text: str, *calls: ToolCall, tokens: int = 12_300) -> "Story":
        """Add a whole answer of the model."""
        name = self.stream(text)
        usage = Usage(input_tokens=tokens, output_tokens=240)
        message = AssistantMessage(
            content=(TextBlock(text=text), *calls), id=name, model=self.model, usage=usage, timestamp=0
        )
        self.tell(MessageEnded(message_id=name, message=message, usage=usage))
        self.tell(UsageUpdated(delta=usage, total=usage, cost=0.04))
        self.tell(ContextUsage(tokens=tokens, window=200_000, source="actual"))
        return self

    def end_step(self, index: int) -> "Story":
        """End the step."""
        self.tell(
            StepEnded(
                index=index,
                kind="tool_followup" if index else "initial",
                llm_ms=900.0,
                finish_reason="tool_use",
                usage=Usage(),
            )
        )
        return self

    def end(self, text: str = "", **fields: Any) -> "Story":
        """End the run."""
        self.tell(RunEnded(**{"reason": "done", "final_text": text, "steps": 1, **fields}))
        return self.status("idle")

    def status(self, status: Status, detail: str = "") -> "Story":
        """Change the agent's status."""
        self.tell(StatusChanged(status=status, detail=detail))
        return self

    # --- calls --------------------------------------------------------------------------------------------------------

    def queued(self, tool: str, summary: str, **args: Any) -> str:
        """Add a call to the queue; return its id."""
        self._calls += 1
        call_id = f"c{self._calls}"
        self.tell(ToolQueued(call_id=call_id, name=tool, args_raw=args, index=self._calls - 1, summary=summary))
        return call_id

    def blocked(self, call_id: str, *on: str) -> "Story":
        """Let a call wait for others."""
        self.tell(ToolBlockedOn(call_id=call_id, what="group", on=on))
        return self

    def started(self, call_id: str, tool: str, summary: str = "", **args: Any) -> "Story":
        """Start a call."""
        self.tell(ToolStarted(call_id=call_id, name=tool, args=args, summary=summary))
        return self.status("running_tools", tool)

    def output(self, call_id: str, text: str) -> "Story":
        """Add output of a call."""
        self.tell(ToolOutput(call_id=call_id, stream="stdout", chunk=text, bytes_total=len(text)))
        return self

    def ended(self, call_id: str, tool: str, status: ToolStatus = "ok", text: str = "done", **fields: Any) -> "Story":
        """End a call."""
        self.tell(
            ToolEnded(
                **{
                    "call_id": call_id,
                    "name": tool,
                    "index": 0,
                    "status": status,
                    "is_error": status not in ("ok", "overridden"),
                    "content": (TextBlock(text=text),),
                    "size_bytes": len(text),
                    **fields,
                }
            )
        )
        return self

    def call(self, tool: str, summary: str, seconds: float = 0.02, status: ToolStatus = "ok", **fields: Any) -> str:
        """Add a whole call; return its id."""
        call_id = self.queued(tool, summary)
        self.started(call_id, tool, summary)
        self.wait(seconds)
        self.ended(call_id, tool, status, latency_ms=seconds * 1000, **fields)
        return call_id

    # --- user ---------------------------------------------------------------------------------------------------------

    def asks(self, call_id: str, tool: str, summary: str, reason: str, **fields: Any) -> str:
        """Ask the user to approve a call; return the request's id."""
        request_id = f"q{len(self.envelopes)}"
        self.tell(ToolBlockedOn(call_id=call_id, what="approval"))
        self.tell(
            ApprovalRequested(
                **{
                    "request_id": request_id,
                    "call_id": call_id,
                    "digest": "d",
                    "tool": tool,
                    "args": {"command": summary},
                    "summary": summary,
                    "reason": reason,
                    "preview": Preview(kind="command", text=summary),
                    **fields,
                }
            )
        )
        self.status("waiting_approval")
        return request_id

    def resolved(self, request_id: str, call_id: str) -> "Story":
        """Let the user approve a call."""
        self.tell(ApprovalResolved(request_id=request_id, call_id=call_id, decision="approve", by="user"))
        return self

    def sends(self, text: str, kind: UserKind = "steer", position: int = 0) -> str:
        """Queue a message of the user; return its id."""
        message_id = f"m{len(self.envelopes)}"
        self.tell(SteeringQueued(message_id=message_id, kind=kind, text=text, position=position))
        return message_id

    def delivered(self, message_id: str, text: str, boundary: str, kind: UserKind = "steer") -> "Story":
        """Deliver a queued message."""
        self.tell(SteeringDelivered(message_id=message_id, kind=kind, text=text, boundary=boundary))
        return self.user(text, kind, message_id)


class Fold(Protocol):
    """A fold behind the screen."""

    def apply(self, envelope: Envelope, /) -> object: ...


SomeFold = TypeVar("SomeFold", bound=Fold)


def folded(fold: SomeFold, story: Story) -> SomeFold:
    """Apply all events of a story to a fold, and return it."""
    for envelope in story.envelopes:
        fold.apply(envelope)
    return fold


def working() -> Story:
    """Return a session at work: reads are done, a test run is running, and an edit waits for it."""
    story = Story().run("fix the failing price test")
    story.step(0).wait(1.8)
    story.answer("The rounding happens twice. I'll check both callers and then change price.py.")
    story.call("read", "tests/test_price.py", 0.01)
    story.call("grep", '"round(" in src', 0.04)
    message_id = story.sends("keep the public signature")
    story.end_step(0).delivered(message_id, "keep the public signature", "after step 1")
    story.step(1).wait(0.9)
    story.answer("Good, then I only change the helper.")
    test_run = story.queued("bash", "pytest -q", command="pytest -q")
    edit = story.queued("edit", "src/price.py")
    story.started(test_run, "bash", "pytest -q")
    story.blocked(edit, test_run)
    story.wait(9.0)
    story.output(test_run, "tests/test_price.py ..F\ntests/test_cart.py ....\n")
    story.wait(3.3)
    return story
