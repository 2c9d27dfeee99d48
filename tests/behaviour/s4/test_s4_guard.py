"""The guard over the context window (S4-91)."""

from dataclasses import replace

import pytest

from tui_agent.context import ContextGuard, ConversationHistory, GuardOptions
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import AssistantMessage, Message, TextBlock, Usage, user_message


def talk(turns: int = 20) -> ConversationHistory:
    """Return many short turns of which the provider counted the last."""
    messages: list[Message] = []
    for turn in range(turns):
        messages += [user_message(f"question {turn}"), AssistantMessage(content=(TextBlock(text="words " * 50),))]
    messages[-1] = AssistantMessage(content=(TextBlock(text="last"),), usage=Usage(input_tokens=9_000))
    return ConversationHistory(messages)


@pytest.mark.parametrize("strategy", ["summary", "digest"])
async def test_s4_91_above_the_threshold_one_message_replaces_a_range_and_the_anchor_is_dropped(strategy: str) -> None:
    async def summarise(transcript: str) -> str:
        return "Much was said."

    history = talk()
    guard = ContextGuard(GuardOptions(strategy=strategy))  # pyright: ignore[reportArgumentType]
    assert guard.is_due(history, 10_000)
    assert not guard.is_due(history, 20_000)

    done = await guard.compact(history, 10_000, summarise)

    assert done.strategy == strategy
    assert done.replacement in list(history.messages())
    assert history.length == 40 - len(done.removed) + 1
    assert not history.is_anchored
    assert history.estimated_tokens() == done.tokens_after


async def test_s4_91_the_state_of_the_guard_belongs_to_one_conversation() -> None:
    first, second, guard = talk(), talk(), ContextGuard(GuardOptions(strategy="digest"))

    await guard.compact(first, 10_000)

    assert (guard.can_undo(first), guard.can_undo(second)) == (True, False)
    assert (guard.is_due(first, 10_000), guard.is_due(second, 10_000)) == (False, True)


async def test_s4_91_a_conversation_may_opt_out_or_choose_and_an_unknown_strategy_raises_only_on_request() -> None:
    strict = ContextGuard(GuardOptions(strategy="digest", on_unknown="throw"))
    lenient = ContextGuard(replace(strict.options, on_unknown="default"))
    out, unknown = talk(), talk()
    out.metadata["context_guard"] = "off"
    unknown.metadata["context_guard"] = "magic"

    assert not strict.is_due(out, 10)
    with pytest.raises(ConfigurationError, match="unknown compaction strategy 'magic'"):
        await strict.compact(unknown, 10_000)
    assert (await lenient.compact(unknown, 10_000)).strategy == "digest"
