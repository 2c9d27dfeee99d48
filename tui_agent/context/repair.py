"""Rules of a conversation that models accept, and the repair of a conversation that breaks them.

The rules: it begins with a user message; no message is empty; an assistant message follows another only if that one
paused; every call has exactly one result; the results of an assistant message follow it directly, in call order; no
two messages share an id.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    lost_message_notice,
)

UNANSWERED = (
    "No result: the session ended before this call finished. It never ran, or its outcome is unknown; "
    "check before you run it again."
)
"""Text of the result that repair adds for a call without one."""


class PairingCheck:
    """Incremental check of a conversation against the rules; constant time a message."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._ids: set[str] = set()
        self._may_answer = False
        self._broken = False
        self._open: list[ToolCall] = []
        for message in messages:
            self.add(message)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last assistant message that have no result yet, in order."""
        return tuple(reversed(self._open))

    @property
    def sound(self) -> bool:
        """True if the conversation so far keeps every rule and no call is open."""
        return not self._broken and not self._open

    def add(self, message: Message) -> None:
        """Check the next message."""
        if message.id in self._ids:
            self._broken = True
        self._ids.add(message.id)
        match message:
            case ToolResultMessage():
                if self._open and self._open[-1].id == message.call_id:
                    self._open.pop()
                else:
                    self._broken = True
            case AssistantMessage():
                calls = message.tool_calls
                distinct = len({call.id for call in calls}) == len(calls)
                if self._open or not self._may_answer or not message.content or not distinct:
                    self._broken = True
                self._open = list(reversed(calls))
            case UserMessage():
                if self._open or not message.content:
                    self._broken = True
        self._may_answer = awaits_assistant(message)


def awaits_assistant(message: Message) -> bool:
    """True if an assistant message may follow: after a user message, a result, or a paused answer."""
    return not isinstance(message, AssistantMessage) or message.stop_reason == "pause_turn"


@dataclass(frozen=True, slots=True)
class RepairResult:
    """A conversation that keeps the rules, and counts of the repairs."""

    messages: tuple[Message, ...]
    changed: bool = False
    orphans: int = 0
    """Results that were dropped: no call matches them, or it already had one."""
    synthesised: tuple[ToolResultMessage, ...] = ()
    """Results that were added for calls without one."""
    dropped: int = 0
    """Empty and duplicate messages, and calls with an id used before in the same message, that were dropped."""
    filled: int = 0
    """User messages that were added before an answer to nothing."""

    def __str__(self) -> str:
        counts = {
            "calls got a result that says they were not answered": len(self.synthesised),
            "results without a call were dropped": self.orphans,
            "empty or duplicate parts were dropped": self.dropped,
            "gaps were filled": self.filled,
        }
        done = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return done or ("results were put in order" if self.changed else "nothing to repair")


def repair_messages(messages: Sequence[Message], *, unanswered: str = UNANSWERED) -> RepairResult:
    """Return the conversation with all rules kept. A conversation that keeps them is returned unchanged.

    Args:
        messages: any messages in any order, for example of a damaged or unfinished session.
        unanswered: text of the result for a call that has none; the model reads it.
    """
    if PairingCheck(messages).sound:
        return RepairResult(tuple(messages))
    groups, orphans, dropped = _gather(messages)
    repaired: list[Message] = []
    synthesised: list[ToolResultMessage] = []
    filled = 0
    for group in groups:
        if isinstance(group.message, AssistantMessage) and not (repaired and awaits_assistant(repaired[-1])):
            repaired.append(lost_message_notice(group.message, f"repair_{group.message.id}"))
            filled += 1
        repaired.append(group.message)
        for call in group.calls:
            result = group.results.get(call.id)
            if result is None:
                result = _made_up(call, group.message, unanswered)
                synthesised.append(result)
            repaired.append(result)
    return RepairResult(tuple(repaired), True, orphans, tuple(synthesised), dropped, filled)


@dataclass(slots=True)
class _Group:
    """A user or assistant message with the results of its calls."""

    message: UserMessage | AssistantMessage
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, ToolResultMessage] = field(default_factory=dict[str, ToolResultMessage])


def _gather(messages: Sequence[Message]) -> tuple[list[_Group], int, int]:
    """Group each message with the first result of each of its calls; also count orphans and dropped parts."""
    groups: list[_Group] = []
    asked_by: dict[str, _Group] = {}
    seen: set[str] = set()
    orphans = dropped = 0
    for message in messages:
        if message.id in seen:
            dropped += 1
            continue
        seen.add(message.id)
        if isinstance(message, ToolResultMessage):
            asker = asked_by.get(message.call_id)
            if asker is None or message.call_id in asker.results:
                orphans += 1
            else:
                asker.results[message.call_id] = message
            continue
        kept = _with_distinct_calls(message) if isinstance(message, AssistantMessage) else message
        dropped += len(message.content) - len(kept.content) or int(not message.content)
        if kept.content:
            group = _Group(kept, kept.tool_calls if isinstance(kept, AssistantMessage) else ())
            groups.append(group)
            asked_by.update((call.id, group) for call in group.calls)
    return groups, orphans, dropped


def _with_distinct_calls(message: AssistantMessage) -> AssistantMessage:
    """Return the message without calls that repeat the id of an earlier one."""
    seen: set[str] = set()
    kept: list[AssistantBlock] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            if block.id in seen:
                continue
            seen.add(block.id)
        kept.append(block)
    return message if len(kept) == len(message.content) else message.model_copy(update={"content": tuple(kept)})


def _made_up(call: ToolCall, message: UserMessage | AssistantMessage, text: str) -> ToolResultMessage:
    """Return a result for a call without one. Its id derives from the call's, so that repeated repairs agree."""
    return ToolResultMessage(
        id=f"repair_{message.id}_{call.id}",
        call_id=call.id,
        tool_name=call.name,
        content=(TextBlock(text=text),),
        is_error=True,
        timestamp=message.timestamp,
    )
