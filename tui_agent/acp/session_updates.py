"""The events of a session as updates for its client, live and when a saved session is loaded. Pure."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from acp.helpers import (
    image_block,
    plan_entry,
    text_block,
    update_agent_message,
    update_agent_thought_text,
    update_plan,
    update_user_message,
)
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    CurrentModeUpdate,
    SessionInfoUpdate,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    CompactionEnded,
    ContextUsage,
    Failed,
    McpStatus,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    PermissionModeChanged,
    RunEnded,
    SessionRenamed,
    SessionRepaired,
    SessionSaveFailed,
    StepRetry,
    TodoUpdated,
    UsageUpdated,
    Warned,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    UserMessage,
)
from tui_agent.protocol.report_text import retry_text

from .call_updates import CallUpdates, fenced, in_code

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | CurrentModeUpdate
    | SessionInfoUpdate
    | UsageUpdate
)


class SessionUpdates:
    """Turns events into updates."""

    def __init__(self, cwd: Path, *, terminals: bool = False) -> None:
        """Begin without calls; the arguments are those of `CallUpdates`."""
        self.calls = CallUpdates(cwd, terminals=terminals)
        self._cost: float | None = None

    def apply(self, envelope: Envelope) -> Iterator[Update]:
        """Yield the updates for an event that was published now; read all of them, as for `CallUpdates.apply`."""
        yield from self.calls.apply(envelope)
        event = envelope.event
        if isinstance(event, UsageUpdated):
            self._cost = event.cost
        if envelope.origin.depth:
            return
        match event:
            case MessageDelta(kind="text", delta=delta, message_id=message_id):
                yield _answer(delta, message_id)
            case MessageDelta(kind="thinking", delta=delta, message_id=message_id):
                yield _thought(delta, message_id)
            case ContextUsage(tokens=tokens, window=window):
                cost = None if self._cost is None else Cost(amount=self._cost, currency="USD")
                yield UsageUpdate(session_update="usage_update", used=tokens, size=window, cost=cost)
            case PermissionModeChanged(new=mode):
                yield CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode.value)
            case SessionRenamed(title=title):
                yield SessionInfoUpdate(session_update="session_info_update", title=title)
            case RunEnded():
                self.calls.forget()
            case _:
                yield from _plan(envelope)

    def replay(self, past: Iterable[Envelope]) -> Iterator[Update]:
        """Yield the updates that show an earlier conversation."""
        events = list(past)
        discarded = {one.event.message_id for one in events if isinstance(one.event, MessageDiscarded)}
        for envelope in events:
            yield from self.calls.apply(envelope)
            match envelope.event:
                case MessageEnded(message=message, message_id=message_id) if not envelope.origin.depth:
                    if message_id not in discarded:
                        yield from _whole(message, message_id)
                case SessionRenamed(title=title):
                    yield SessionInfoUpdate(session_update="session_info_update", title=title)
                case _:
                    yield from _plan(envelope)
        self.calls.forget()


def note_of(envelope: Envelope) -> str:
    """Return the text for the user that the protocol has no update for; empty for other events."""
    match envelope.event:
        case Failed(text=text) | Warned(text=text):
            return text
        case McpStatus(problem=problem) if problem:
            return problem
        case SessionSaveFailed(error=error):
            return error
        case SessionRepaired(what=what):
            return what
        case StepRetry() as retry:
            return retry_text(retry)
        case CompactionEnded(ok=True, strategy=strategy) if strategy != "trim":
            return "The conversation was compacted, because it filled the model's context window."
        case _:
            return ""


def note_update(text: str, number: int) -> AgentMessageChunk:
    """Return a note as a message of its own. It is shown as code: it may name files, whose names are no Markdown."""
    return _answer(f"\n\n{fenced(f'tui-agent: {text}')}\n\n", f"note-{number}")


def _plan(envelope: Envelope) -> Iterator[AgentPlanUpdate]:
    if isinstance(envelope.event, TodoUpdated) and not envelope.origin.depth:
        items = envelope.event.items
        yield update_plan(
            [plan_entry(one.text, status="completed" if one.status == "done" else one.status) for one in items]
        )


def _whole(message: object, message_id: str) -> Iterator[Update]:
    """Yield the parts of a message of a saved session."""
    match message:
        case UserMessage(content=content, kind=kind) if kind != "notice":
            for block in content:
                match block:
                    case TextBlock(text=text):
                        part = update_user_message(text_block(text))
                    case ImageBlock(data=data, media_type=media_type):
                        part = update_user_message(image_block(data, media_type))
                    case DocumentBlock(label=label):
                        part = update_user_message(text_block(in_code(label)))
                part.message_id = message_id
                yield part
        case AssistantMessage(content=content):
            for block in content:
                if isinstance(block, ThinkingBlock) and block.thinking:
                    yield _thought(block.thinking, message_id)
                elif isinstance(block, TextBlock) and block.text:
                    yield _answer(block.text, message_id)
        case _:
            pass


def _answer(text: str, message_id: str) -> AgentMessageChunk:
    chunk = update_agent_message(text_block(text))
    chunk.message_id = message_id
    return chunk


def _thought(text: str, message_id: str) -> AgentThoughtChunk:
    chunk = update_agent_thought_text(text)
    chunk.message_id = message_id
    return chunk
