"""What a run told, in the words of the seeds (engine §5.4): so whole sequences can be compared with their text."""

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
"""Events no seed knows: who waits for whom, who was asked, and what is only worth a warning."""


def in_seed_words(events: Iterable[AgentEvent]) -> list[tuple[Any, ...]]:
    """Start, Update, Progress, End, MessageStart and MessageEnd, each with the id and name of its call.

    `tool.queued` is ours, too, but must come before anything else of its call; any event that no seed and none of ours
    accounts for is an error here.
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
    """The sequence of one call that was executed and told nothing meanwhile (S0-43)."""
    return [("Start", call_id, name, args or {}), *end_of(call_id, name, text, is_error=is_error)]


def end_of(call_id: str, name: str, text: str, *, is_error: bool = False) -> list[tuple[Any, ...]]:
    """The sequence of one call that was not executed (S0-27), and the end of every other."""
    return [
        ("End", call_id, name, text, is_error, None),
        ("MessageStart", call_id, name),
        ("MessageEnd", call_id, name, text, is_error),
    ]
