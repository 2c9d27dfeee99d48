"""The token breakdown of the window."""

from hypothesis import given

from tests.context.conversations import answered, result, said, sound_conversations
from tests.ui.stage import StageTool
from tui_agent.context import ContextLayer, ConversationHistory
from tui_agent.context.tokens import estimate_message
from tui_agent.protocol.messages import Message, ThinkingBlock
from tui_agent.workbench.context_breakdown import context_breakdown


def test_layers_tools_messages_and_calls_are_counted_separately() -> None:
    spoken = answered("word" * 5, "c1", "c2")
    spoken = spoken.model_copy(update={"content": (ThinkingBlock(thinking="hmmm" * 3), *spoken.content)})
    history = ConversationHistory([said("abcd" * 10), spoken, result("c1", "x" * 400), result("c2", "y" * 40)])
    history.registry.set(ContextLayer(name="who", content="abcd" * 7))
    history.registry.set(ContextLayer(name="rules", content="abcd" * 9, priority=60))

    found = context_breakdown(history, [StageTool("read")])

    assert found.layers == (("who", 7), ("rules", 9))
    assert [name for name, _ in found.tools] == ["read"]
    assert (found.user, found.assistant, found.condensed) == (10, 8, 0)
    assert [(call.call_id, call.tool_name) for call in found.calls] == [("c1", "read"), ("c2", "read")]
    assert found.calls[0].tokens > 100
    assert found.by_tool == (("read", found.calls[0].tokens + found.calls[1].tokens),)


@given(sound_conversations())
def test_everything_is_counted_exactly_once(messages: list[Message]) -> None:
    history = ConversationHistory(messages)

    whole = sum(map(estimate_message, messages))

    assert abs(context_breakdown(history).total - whole) <= 2 * len(messages) + 3 * sum(
        len(message.content) for message in messages
    )


def test_the_parts_add_up_to_the_number_of_the_status_line() -> None:
    found = context_breakdown(ConversationHistory([said("abcd" * 100), said("abcd" * 100)]), [StageTool("read")])

    scaled = found.scaled_to(4_000)

    assert scaled.total == 4_000
    assert abs(scaled.user + sum(size for _, size in (*scaled.tools, *scaled.layers)) - 4_000) <= 3
    assert found.scaled_to(0) is found
