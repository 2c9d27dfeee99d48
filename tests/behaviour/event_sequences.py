"""Published events as tuples of the kinds that the requirements name, so that tests can compare whole sequences."""

from collections.abc import Iterable
from typing import Any

from tui_agent.protocol.events import (
    AgentEvent,
    MessageEnded,
    MessageStarted,
    ToolEnded,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
)
from tui_agent.protocol.messages import ToolResultMessage

OURS = ("tool.batch_", "tool.blocked_on", "hook.", "permission.", "approval.", "warning")
"""Events beyond the requirements: waiting for another call, hooks, permissions, approvals and warnings."""


def event_sequence(events: Iterable[AgentEvent]) -> list[tuple[Any, ...]]:
    """Return Start, Update, Progress, End, MessageStart and MessageEnd, each with the id and name of its call.

    `tool.queued` must come before any other event of its call. An event of an unknown kind is an error.
    """
    names: dict[str, str] = {}
    told: list[tuple[Any, ...]] = []
    for event in events:
        match event:
            case ToolQueued():
                names[event.call_id] = event.name
            case ToolStarted():
                assert event.name == names[event.call_id]
                told.append(("Start", event.call_id, event.name, event.args))
            case ToolUpdated():
                told.append(("Update", event.call_id, names[event.call_id], event.partial.text))
            case ToolProgress():
                told.append(("Progress", event.call_id, names[event.call_id], event.text))
            case ToolEnded():
                text = "\n".join(getattr(block, "text", "") for block in event.content)
                told.append(("End", event.call_id, event.name, text, event.is_error, event.child_run_id))
            case MessageStarted(role="tool_result"):
                assert event.call_id is not None
                told.append(("MessageStart", event.call_id, names[event.call_id]))
            case MessageEnded(message=ToolResultMessage() as message):
                told.append(("MessageEnd", message.call_id, message.tool_name, message.text, message.is_error))
            case _:
                assert event.type.startswith(OURS), event
    return told


def whole(call_id: str, name: str, text: str, *, args: Any = None, is_error: bool = False) -> list[tuple[Any, ...]]:
    """Return the sequence of one call that ran and reported nothing meanwhile (S0-43)."""
    return [("Start", call_id, name, args or {}), *end_of(call_id, name, text, is_error=is_error)]


def end_of(call_id: str, name: str, text: str, *, is_error: bool = False) -> list[tuple[Any, ...]]:
    """Return the sequence of one call that did not run (S0-27), which is also the end of every other sequence."""
    return [
        ("End", call_id, name, text, is_error, None),
        ("MessageStart", call_id, name),
        ("MessageEnd", call_id, name, text, is_error),
    ]
