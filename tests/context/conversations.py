"""Helpers that make messages, and Hypothesis strategies for conversations, sound or not."""

from collections.abc import Sequence

from hypothesis import strategies as st

from tui_agent.protocol.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)


def said(text: str, message_id: str | None = None) -> UserMessage:
    """Return a user message."""
    message = UserMessage(content=(TextBlock(text=text),) if text else ())
    return message if message_id is None else message.model_copy(update={"id": message_id})


def answered(
    text: str = "", *calls: str, stop_reason: StopReason = "end_turn", read: int = 0, message_id: str | None = None
) -> AssistantMessage:
    """Return an assistant message with text and calls of these ids; `read`: input tokens of its usage."""
    content: list[AssistantBlock] = [TextBlock(text=text)] if text else []
    content += [ToolCall(id=call_id, name="read", arguments={"path": call_id}) for call_id in calls]
    message = AssistantMessage(content=tuple(content), stop_reason=stop_reason, usage=Usage(input_tokens=read))
    return message if message_id is None else message.model_copy(update={"id": message_id})


def result(call_id: str, text: str = "done", message_id: str | None = None) -> ToolResultMessage:
    """Return the result of a call."""
    message = ToolResultMessage(call_id=call_id, tool_name="read", content=(TextBlock(text=text),))
    return message if message_id is None else message.model_copy(update={"id": message_id})


_ids = st.sampled_from(["a", "b", "c", "d"])
_message_ids = st.sampled_from([f"m{number}" for number in range(40)])

any_message: st.SearchStrategy[Message] = st.one_of(
    st.builds(said, st.sampled_from(["", "hello"]), _message_ids),
    st.builds(
        lambda text, calls, reason, name: answered(text, *calls, stop_reason=reason, message_id=name),
        st.sampled_from(["", "words"]),
        st.lists(_ids, max_size=3),
        st.sampled_from(["end_turn", "tool_use", "pause_turn"]),
        _message_ids,
    ),
    st.builds(result, _ids, st.sampled_from(["one", "two"]), _message_ids),
)
"""One message, with ids from a small set, so that they collide."""

damaged_conversations: st.SearchStrategy[list[Message]] = st.lists(any_message, max_size=12)


@st.composite
def sound_conversations(draw: st.DrawFn) -> Sequence[Message]:
    """Generate complete turns: user message, answer, results in call order."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(0, 5))):
        messages += [said(f"request {turn}") for _ in range(draw(st.integers(1, 2)))]
        for step in range(draw(st.integers(0, 3))):
            calls = [f"call_{turn}_{step}_{number}" for number in range(draw(st.integers(1, 3)))]
            messages.append(answered("look", *calls, stop_reason="tool_use", read=draw(st.integers(0, 500))))
            messages += [result(call_id, "x" * draw(st.integers(0, 50))) for call_id in calls]
        messages.append(answered("done", read=draw(st.integers(0, 500))))
    return messages
