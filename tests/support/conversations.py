"""Random conversations that follow every rule of `protocol.messages`, with hostile text in them."""

from hypothesis import strategies as st

from tests.support.protocol_strategies import json_objects
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

any_text = st.text(max_size=20) | st.sampled_from(
    ["", " ", "\n", "\ud800", "a\udfffb", "\u2028\x00\x1b[31m", "héllo 🙂"]
)
"""Text, blank text, lone surrogates, separators and control characters."""

user_blocks = st.lists(
    any_text.map(lambda text: TextBlock(text=text)) | st.just(ImageBlock(media_type="image/png", data="aGk=")),
    max_size=3,
).map(tuple)

_odd_numbers = st.sampled_from([float("nan"), float("inf"), float("-inf"), 1.5])
_arguments = json_objects | st.dictionaries(st.sampled_from(["a", "\udc00"]), _odd_numbers | any_text, max_size=2)
_names = st.sampled_from(["read", "bash", "mcp__x__y", "bad name!", "", "ü" * 200])


@st.composite
def conversations(draw: st.DrawFn, max_turns: int = 4) -> list[Message]:
    """Draw a prompt, then answers with their results, steering messages and further prompts."""
    messages: list[Message] = [_user(draw)]
    for turn in range(draw(st.integers(0, max_turns))):
        count = draw(st.integers(0, 3))
        calls = tuple(
            ToolCall(id=f"call:{turn}.{number}" if number else f"call_{turn}", name=draw(_names), arguments=args)
            for number, args in enumerate(draw(st.lists(_arguments, min_size=count, max_size=count)))
        )
        said = draw(st.lists(_spoken, max_size=2))
        messages.append(AssistantMessage(content=(*said, *calls)))
        messages += [
            ToolResultMessage(
                call_id=call.id, tool_name=call.name, content=draw(user_blocks), is_error=draw(st.booleans())
            )
            for call in calls
        ]
        if not calls or draw(st.booleans()):
            messages.append(_user(draw))
    return messages


_spoken = (
    any_text.map(lambda text: TextBlock(text=text))
    | st.builds(ThinkingBlock, thinking=any_text, signature=st.sampled_from(["", "c2ln"]))
    | st.just(ThinkingBlock(thinking="", redacted="ZW5j"))
)


def _user(draw: st.DrawFn) -> UserMessage:
    return UserMessage(
        content=draw(user_blocks), kind=draw(st.sampled_from(["prompt", "steer", "follow_up", "notice"]))
    )
