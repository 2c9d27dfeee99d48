"""Repair makes any conversation acceptable to a model."""

import pytest
from hypothesis import given

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
def test_repair_makes_any_conversation_valid(messages: list[Message]) -> None:
    repaired = repair_messages(_without_pauses(messages))

    validate_history(repaired.messages)
    assert PairingCheck(repaired.messages).sound


@given(damaged_conversations)
def test_repairing_twice_changes_nothing_more(messages: list[Message]) -> None:
    once = repair_messages(messages)

    twice = repair_messages(once.messages)

    assert twice.messages == once.messages
    assert not twice.changed


@given(sound_conversations())
def test_a_valid_conversation_is_left_as_it_is(messages: list[Message]) -> None:
    repaired = repair_messages(messages)

    assert repaired.messages == tuple(messages)
    assert not repaired.changed
    assert str(repaired) == "nothing to repair"


@given(damaged_conversations)
def test_repair_adds_only_error_results_and_notices(messages: list[Message]) -> None:
    repaired = repair_messages(messages)

    known = {message.id for message in messages}
    for message in repaired.messages:
        if message.id not in known:
            assert isinstance(message, ToolResultMessage | UserMessage)
            assert message.text == (UNANSWERED if isinstance(message, ToolResultMessage) else LOST_MESSAGE)


@given(sound_conversations())
def test_every_prefix_of_a_valid_conversation_can_be_continued(messages: list[Message]) -> None:
    for length in range(len(messages) + 1):
        repaired = repair_messages(messages[:length])
        validate_history(repaired.messages)
        assert repaired.messages[:length] == tuple(messages[:length])


def test_unanswered_calls_get_an_error_result_after_their_message() -> None:
    messages = [said("go"), answered("", "a", "b"), result("b"), said("and?")]

    repaired = repair_messages(messages)

    assert [message.role for message in repaired.messages] == [
        "user",
        "assistant",
        "tool_result",
        "tool_result",
        "user",
    ]
    made_up = repaired.messages[2]
    assert isinstance(made_up, ToolResultMessage)
    assert (made_up.call_id, made_up.is_error, made_up.text) == ("a", True, UNANSWERED)
    assert repaired.synthesised == (made_up,)
    assert str(repaired) == "1 calls got a result that says they were not answered"


def test_the_first_of_two_results_counts() -> None:
    messages = [said("go"), answered("", "a"), result("a", "first"), result("a", "second")]

    repaired = repair_messages(messages)

    assert [message.text for message in repaired.messages] == ["go", "", "first"]
    assert repaired.orphans == 1


def test_results_without_a_call_are_dropped() -> None:
    repaired = repair_messages([result("ghost"), said("go"), answered("hi"), result("other")])

    assert [message.role for message in repaired.messages] == ["user", "assistant"]
    assert repaired.orphans == 2


def test_results_are_moved_into_call_order_after_their_calls() -> None:
    messages = [said("go"), answered("", "a", "b"), result("b"), said("wait"), result("a")]

    repaired = repair_messages(messages)

    order = [message.call_id for message in repaired.messages if isinstance(message, ToolResultMessage)]
    assert order == ["a", "b"]
    assert repaired.messages[-1].role == "user"
    assert str(repaired) == "results were put in order"


def test_a_result_answers_the_latest_call_of_its_id() -> None:
    messages = [said("go"), answered("", "a"), said("again"), answered("", "a"), result("a", "late")]

    repaired = repair_messages(messages)

    texts = [message.text for message in repaired.messages if isinstance(message, ToolResultMessage)]
    assert texts == [UNANSWERED, "late"]


def test_an_answer_to_nothing_gets_a_user_message_before_it() -> None:
    repaired = repair_messages([answered("hello"), answered("again")])

    assert [message.text for message in repaired.messages] == [LOST_MESSAGE, "hello", LOST_MESSAGE, "again"]
    assert repaired.filled == 2


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
