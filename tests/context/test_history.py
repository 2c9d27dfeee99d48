"""The conversation, its token estimate and its copies (S4-16 … S4-26)."""

import sys
import tracemalloc

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.examples import examples
from tests.support.transcript_checks import validate_history
from tui_agent.context import (
    ContextLayer,
    ConversationHistory,
    HistorySnapshot,
    estimate_message,
    estimate_text,
)
from tui_agent.protocol.messages import Message, Usage

from .conversations import answered, result, said


class HistoryAgainstNaiveModel(RuleBasedStateMachine):
    """State machine with every change of a history, compared with a list and recomputed sums."""

    @initialize(system=st.sampled_from(["", "you are an agent"]))
    def begin(self, system: str) -> None:
        self.history = ConversationHistory()
        self.history.system = system
        self.system = system
        self.messages: list[Message] = []
        self.anchor = (0, -1)
        self.called: set[str] = set()

    @rule(text=st.text(max_size=9))
    def person_speaks(self, text: str) -> None:
        self._append(said(text))

    @rule(text=st.text(max_size=9), calls=st.lists(st.sampled_from("ab"), unique=True), read=st.integers(0, 90))
    def model_answers(self, text: str, calls: list[str], read: int) -> None:
        if read and self.messages:
            self.anchor = (read, len(self.messages) - 1)
        self._append(answered(text, *calls, read=read))

    @rule(call_id=st.sampled_from("ab"))
    def call_is_answered(self, call_id: str) -> None:
        self._append(result(call_id))

    @rule(tokens=st.integers(-1, 90))
    def tokens_are_counted(self, tokens: int) -> None:
        self.history.record_actual_usage(tokens)
        if self.messages and tokens > 0:
            self.anchor = (tokens, len(self.messages) - 1)

    @rule(start=st.integers(-2, 9), end=st.integers(-2, 9))
    def part_is_replaced(self, start: int, end: int) -> None:
        replacement = said("summary")
        view, before = self.history.messages(), list(self.messages)

        removed = self.history.splice_range(start, end, replacement)

        if 0 <= start < end <= len(self.messages):
            assert [entry.message for entry in removed] == self.messages[start:end]
            self.messages[start:end] = [replacement]
            if start <= self.anchor[1]:
                self.anchor = (0, -1)
        else:
            assert removed == ()
        assert list(view) == before

    @rule()
    def it_is_kept_and_read_again(self) -> None:
        self.called.clear()
        text = self.history.export().model_dump_json()
        self.history = ConversationHistory.restore(HistorySnapshot.model_validate_json(text))

    @rule()
    def it_goes_on_in_a_copy(self) -> None:
        self.called.clear()
        original, self.history = self.history, self.history.fork()
        original.append(said("only in the original"))
        original.system = "only in the original"

    @rule()
    def it_is_repaired(self) -> None:
        if self.history.repair().changed:
            self.messages = list(self.history.messages())
            self.anchor = (0, -1)
        validate_history(self.messages)

    @invariant()
    def holds_the_same_messages(self) -> None:
        assert list(self.history.messages()) == self.messages
        assert [entry.index for entry in self.history.entries] == list(range(len(self.messages)))
        assert len(self.history) == self.history.length == len(self.messages)

    @invariant()
    def estimates_the_same_tokens(self) -> None:
        tokens, index = self.anchor
        guessed = sum(estimate_message(message) for message in self.messages[index + 1 :])
        assert self.history.estimated_tokens() == tokens + guessed + (estimate_text(self.system) if index < 0 else 0)
        assert self.history.is_anchored is (index >= 0)

    @invariant()
    def knows_its_calls(self) -> None:
        calls = (message.tool_calls for message in self.messages if message.role == "assistant")
        self.called.update(call.id for each in calls for call in each)
        assert {name for name in ("a", "b", "zz") if self.history.knows_call(name)} == self.called

    def _append(self, message: Message) -> None:
        entry = self.history.append(message)
        assert (entry.index, entry.message) == (len(self.messages), message)
        self.messages.append(message)


HistoryAgainstNaiveModel.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
TestHistoryAgainstNaiveModel = HistoryAgainstNaiveModel.TestCase


def test_cached_tokens_count_as_input() -> None:
    history = ConversationHistory([said("hi")])
    usage = Usage(input_tokens=1, cache_read_tokens=20, cache_write_tokens=300)

    history.append(answered("hello").model_copy(update={"usage": usage}))

    assert history.estimated_tokens() == 321 + estimate_text("hello")


def test_going_back_before_the_anchor_drops_it() -> None:
    for kept, anchored in ((1, False), (2, True)):
        history = ConversationHistory([said("a"), said("b")])
        history.record_actual_usage(50)
        history.append(said("c"))

        history.go_back_to(history.messages()[:kept])

        assert history.is_anchored is anchored


def test_metadata_is_not_shared_with_forks_or_snapshots() -> None:
    history = ConversationHistory([said("hi")])
    history.metadata["notes"] = ["one"]
    history.registry.set(ContextLayer(name="note", content="here", metadata={"seen": ["a"]}))
    kept = history.export()

    for other in (history.fork(), ConversationHistory.restore(kept)):
        other.metadata["notes"].append("two")
        layer = other.registry.get("note")
        assert layer is not None
        layer.metadata["seen"].append("b")

    history.metadata["notes"].append("later")
    assert kept.metadata == {"notes": ["one"]}
    history.metadata["notes"].remove("later")
    for same in (history, ConversationHistory.restore(kept)):
        assert same.metadata == {"notes": ["one"]}
        assert [layer.metadata for layer in same.registry.layers()] == [{"seen": ["a"]}]


def test_a_removed_call_is_still_known() -> None:
    """An undo may restore it, and call ids must be unique in a conversation."""
    history = ConversationHistory([said("go"), answered("", "first"), result("first"), answered("Done.")])

    history.splice_range(1, 4, said("summary"))
    history.remember_calls([answered("", "before")])

    assert [name for name in ("first", "before", "other") if history.knows_call(name)] == ["first", "before"]


def test_the_work_of_a_step_does_not_grow_with_the_conversation() -> None:
    short = ConversationHistory([said("x")])
    long = ConversationHistory([said("x") for _ in range(5_000)])

    assert _calls_of_a_step(long) < _calls_of_a_step(short) + 20


def test_a_view_copies_nothing() -> None:
    history = ConversationHistory([said("x") for _ in range(5_000)])

    tracemalloc.start()
    view = history.messages()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(view) == 5_000
    assert peak < 1_000


def _calls_of_a_step(history: ConversationHistory) -> int:
    """Count the function calls of one step."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    message = answered("y", "call", read=5)
    sys.setprofile(count)
    try:
        history.messages()
        history.append(message)
        history.estimated_tokens()
    finally:
        sys.setprofile(None)
    return calls
