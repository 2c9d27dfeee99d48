"""The conversation: entries, estimates, splices, forks, snapshots (S4-2, S4-16 … S4-26)."""

import pytest

from tests.agent.harness import asking
from tests.support.table import table
from tests.support.transcript_checks import validate_history
from tui_agent.context import ContextLayer, ConversationHistory, HistorySnapshot, LayerChange
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_message,
)


def said(text: str, *, read: int = 0) -> AssistantMessage:
    """Return an answer for which the provider counted `read` tokens of input."""
    return AssistantMessage(content=(TextBlock(text=text),), usage=Usage(input_tokens=read), model="m")


def letters(tokens: int) -> str:
    """Return a text with this token estimate."""
    return "abcd" * tokens


def five() -> ConversationHistory:
    """Return a history of five messages of ten estimated tokens each."""
    turns: list[Message] = [user_message(letters(10)) if place % 2 == 0 else said(letters(10)) for place in range(5)]
    return ConversationHistory(turns)


def texts(history: ConversationHistory) -> list[str]:
    return [message.text for message in history.messages()]


def test_s4_2_s4_16_s4_17_a_history_is_messages_layers_and_an_estimate_and_append_returns_the_entry() -> None:
    history = ConversationHistory([user_message(letters(3))], id="talk")
    history.registry.set(ContextLayer(name="first", content=letters(5), priority=1))
    assert (texts(history), history.registry.flat("system"), history.estimated_tokens()) == (
        [letters(3)],
        letters(5),
        8,
    )

    history.system = "Old words."
    assert (history.id, history.length, len(history)) == ("talk", 1, 1)
    assert history.system == f"{letters(5)}\n\nOld words."
    assert [layer.name for layer in history.registry.layers()] == ["first", "_legacy_system"]
    with pytest.raises(AttributeError):
        setattr(history, "length", 2)  # noqa: B010 - the attribute must be read-only

    entry = history.append(said("Hello"), model="big", usage=Usage(input_tokens=7), latency_ms=12.5)
    assert (entry.index, entry.message.text, entry.model, entry.latency_ms) == (1, "Hello", "big", 12.5)
    assert (entry.usage, history.entries[-1]) == (Usage(input_tokens=7), entry)


def test_s4_18_s4_19_s4_22_the_estimate_is_the_anchor_plus_an_estimate_of_later_messages() -> None:
    image = ImageBlock(media_type="image/png", data="x" * 4000)
    history = five()

    history.record_actual_usage(100)
    history.record_actual_usage(0)
    assert history.estimated_tokens() == 100, "a count of zero sets no anchor"

    history.append(UserMessage(content=(TextBlock(text=letters(7)), image, image)))
    history.append(user_message("abcde"))
    assert history.estimated_tokens() == 100 + 7 + 2 * 250 + 2


def test_s4_20_s4_21_all_is_estimated_until_an_answer_with_counted_input_anchors_before_itself() -> None:
    history = five()
    history.system = letters(11)
    assert not history.is_anchored
    assert history.estimated_tokens() == 50 + 11

    history.append(said(letters(10), read=500))
    assert history.estimated_tokens() == 500 + 10, "the input is counted; the answer itself is still estimated"
    history.append(said(letters(10), read=0))
    assert history.estimated_tokens() == 520, "an uncounted answer sets no anchor"


def test_s4_23_one_message_replaces_a_range_and_the_entries_are_renumbered() -> None:
    history = five()
    before = texts(history)
    summary = user_message("summary", "notice")

    removed = history.splice_range(1, 4, summary)

    assert [entry.message.text for entry in removed] == before[1:4]
    assert texts(history) == [before[0], "summary", before[4]]
    assert [entry.index for entry in history.entries] == [0, 1, 2]


@table(("start", "end", "kept"), [(0, 2, False), (1, 3, False), (2, 4, False), (3, 5, True)])
def test_s4_23_the_anchor_is_dropped_if_the_range_includes_or_precedes_it(start: int, end: int, kept: bool) -> None:
    history = ConversationHistory(five().messages()[:3])
    history.record_actual_usage(1000)
    history.append(said(letters(10)))
    history.append(user_message(letters(10)))

    history.splice_range(start, end, user_message("abcd", "notice"))

    assert history.is_anchored is kept
    assert history.estimated_tokens() == (1001 if kept else 31)


@table(("start", "end"), [(-1, 2), (0, 6), (2, 2), (3, 1), (5, 6)])
def test_s4_23_an_invalid_range_changes_nothing(start: int, end: int) -> None:
    history = five()
    history.record_actual_usage(1000)
    before = history.export()

    assert history.splice_range(start, end, user_message("x")) == ()

    assert history.export() == before


def test_s4_24_a_fork_shares_no_data_and_no_listeners() -> None:
    history = five()
    history.system = "first"
    heard: list[LayerChange] = []
    history.registry.listen(heard.append)

    fork = history.fork("other")
    fork.append(user_message("only there"))
    fork.system = "second"
    history.append(user_message("only here"))

    assert (fork.id, history.system, fork.system) == ("other", "first", "second")
    assert texts(fork)[-1] == "only there"
    assert texts(history)[-1] == "only here"
    assert heard == []
    assert history.fork().id == history.id


def test_s4_25_export_and_import_reproduce_the_conversation() -> None:
    history = ConversationHistory([user_message("Hi"), asking("c1")], id="talk")
    history.append(ToolResultMessage(call_id="c1", tool_name="look", content=(TextBlock(text="seen"),), is_error=False))
    history.append(said("Fine", read=40))
    history.registry.set(ContextLayer(name="l", content="text", priority=7, owner="me", metadata={"a": [1]}))
    history.metadata["opted_out"] = True

    again = ConversationHistory.restore(HistorySnapshot.model_validate_json(history.export().model_dump_json()))

    assert again.export() == history.export()
    assert again.estimated_tokens() == history.estimated_tokens()
    assert again.metadata == {"opted_out": True}
    assert again.registry.layers() == history.registry.layers()
    validate_history(again.messages())


def test_s4_26_an_old_snapshot_with_only_a_system_text_can_be_read() -> None:
    entries = [entry.model_dump(mode="json") for entry in five().entries]

    history = ConversationHistory.restore(
        HistorySnapshot.model_validate({"id": "old", "entries": entries, "system": "You were good."})
    )

    assert (history.id, history.length, history.system) == ("old", 5, "You were good.")
    assert [layer.name for layer in history.registry.layers()] == ["_legacy_system"]
