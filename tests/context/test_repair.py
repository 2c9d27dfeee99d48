"""Repair makes any conversation acceptable to a model."""

import pytest
from hypothesis import given

from tests.support.table import table
from tests.support.transcript_checks import validate_history
from tui_agent.context import PairingCheck, repair_messages
from tui_agent.context.repair import UNANSWERED
from tui_agent.protocol.messages import LOST_MESSAGE, AssistantMessage, Message, ToolResultMessage, UserMessage

from .conversations import answered, damaged_conversations, result, said, sound_conversations


def _without_pauses(messages: list[Message]) -> list[Message]:
    """Return the messages with paused answers made ordinary ones: the strict check does not know pauses."""
    return [
        message.model_copy(update={"stop_reason": "end_turn"}) if isinstance(message, AssistantMessage) else message
        for message in messages
    ]


@given(damaged_conversations)
def test_repair_makes_any_conversation_valid_and_adds_only_error_results_and_notices(messages: list[Message]) -> None:
    repaired = repair_messages(_without_pauses(messages))
    validate_history(repaired.messages)
    assert PairingCheck(repaired.messages).sound

    once = repair_messages(messages)
    twice = repair_messages(once.messages)
    assert (twice.messages, twice.changed) == (once.messages, False)
    known = {message.id for message in messages}
    for message in once.messages:
        if message.id not in known:
            assert isinstance(message, ToolResultMessage | UserMessage)
            assert message.text == (UNANSWERED if isinstance(message, ToolResultMessage) else LOST_MESSAGE)


@given(sound_conversations())
def test_a_valid_conversation_is_left_as_it_is_and_each_prefix_can_be_continued(messages: list[Message]) -> None:
    repaired = repair_messages(messages)
    assert (repaired.messages, repaired.changed) == (tuple(messages), False)
    assert str(repaired) == "nothing to repair"

    for length in range(len(messages) + 1):
        repaired = repair_messages(messages[:length])
        validate_history(repaired.messages)
        assert repaired.messages[:length] == tuple(messages[:length])


@table(
    ("messages", "repaired", "words"),
    [
        (
            [said("go"), answered("", "a", "b"), result("b", "B"), said("and?")],
            ["go", "", UNANSWERED, "B", "and?"],
            "1 calls got a result that says they were not answered",
        ),
        (
            [said("go"), answered("", "a"), result("a", "first"), result("a", "second")],
            ["go", "", "first"],
            "1 results",
        ),
        ([result("ghost"), said("go"), answered("hi"), result("other")], ["go", "hi"], "2 results"),
        (
            [said("go"), answered("", "a", "b"), result("b", "B"), said("wait"), result("a", "A")],
            ["go", "", "A", "B", "wait"],
            "results were put in order",
        ),
        # A result answers the latest call of its id.
        (
            [said("go"), answered("", "a"), said("again"), answered("", "a"), result("a", "late")],
            ["go", "", UNANSWERED, "again", "", "late"],
            "1 calls",
        ),
        ([answered("hello"), answered("again")], [LOST_MESSAGE, "hello", LOST_MESSAGE, "again"], "2 "),
    ],
)
def test_each_fault_is_repaired_in_its_own_way(messages: list[Message], repaired: list[str], words: str) -> None:
    found = repair_messages(messages)

    assert [message.text for message in found.messages] == repaired
    assert words in str(found)
    assert all(message.is_error for message in found.synthesised)


@pytest.mark.parametrize("paused_first", [True, False])
def test_a_paused_answer_may_be_followed_by_the_next(paused_first: bool) -> None:
    messages = [said("go"), answered("one", stop_reason="pause_turn" if paused_first else "end_turn"), answered("two")]

    assert PairingCheck(messages).sound is paused_first


def test_empty_and_repeated_parts_are_dropped() -> None:
    twice = said("go")
    messages = [twice, twice, said(""), answered(""), answered("", "a", "a"), result("a")]

    repaired = repair_messages(messages)

    assert [message.role for message in repaired.messages] == ["user", "assistant", "tool_result"]
    assert repaired.dropped == 4


def test_open_calls_are_known_in_order() -> None:
    check = PairingCheck([said("go"), answered("", "a", "b", "c"), result("a")])

    assert [call.id for call in check.open_calls] == ["b", "c"]
    assert not check.sound
