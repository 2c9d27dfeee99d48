"""Any sequence of what can be done to a conversation, against the plainest model of it: a list."""

import asyncio
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from tests.support.transcripts import validate_history
from tui_agent.context import ContextGuard, ConversationHistory, GuardOptions, HistorySnapshot
from tui_agent.context.condense import condensed
from tui_agent.protocol.errors import CompactionError
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    user_message,
)


@dataclass
class Talk:
    """A conversation, its guard, and what it should hold."""

    history: ConversationHistory
    guard: ContextGuard
    expected: list[Message]
    undo: list[tuple[list[Message], int]]
    """Before each compaction: the messages; after it: how many there were."""


class AnyHistory(RuleBasedStateMachine):
    """Conversations that are spoken in, forked, kept, condensed and taken back in any order."""

    talks: Bundle[Talk] = Bundle("talks")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Talk] = []
        self.calls = 0

    def added(self, history: ConversationHistory, expected: list[Message]) -> Talk:
        talk = Talk(history, ContextGuard(GuardOptions(strategy="digest", keep_steps=2)), expected, [])
        self.all.append(talk)
        return talk

    @initialize(target=talks)
    def begin(self) -> Talk:
        first = user_message("the goal")
        talk = self.added(ConversationHistory([first]), [first])
        self.work(talk, [[1_500], [10, 2_000], [], [300]], 0)
        return talk

    @rule(talk=talks, text=st.text(max_size=400))
    def say(self, talk: Talk, text: str) -> None:
        self.append(talk, user_message(text or "?", "steer"))

    @rule(
        talk=talks,
        steps=st.lists(st.lists(st.integers(0, 3_000), max_size=3), min_size=1, max_size=6),
        read=st.integers(0, 5_000),
    )
    def work(self, talk: Talk, steps: list[list[int]], read: int) -> None:
        for results in steps:
            if isinstance(talk.expected[-1], AssistantMessage):
                self.append(talk, user_message("go on"))
            calls = [ToolCall(id=f"c{self.calls + place}", name="read") for place in range(len(results))]
            self.calls += len(results)
            content = (TextBlock(text="look " * 20), *calls)
            reason = "tool_use" if calls else "end_turn"
            answer = AssistantMessage(content=content, stop_reason=reason, usage=Usage(input_tokens=read))
            self.append(talk, answer)
            for call, letters in zip(calls, results, strict=True):
                text = TextBlock(text="x" * letters)
                self.append(talk, ToolResultMessage(call_id=call.id, tool_name="read", content=(text,)))

    def append(self, talk: Talk, message: Message) -> None:
        talk.history.append(message)
        talk.expected.append(message)

    @rule(target=talks, talk=talks)
    def fork(self, talk: Talk) -> Talk:
        return self.added(talk.history.fork(), list(talk.expected))

    @rule(talk=talks)
    def keep_and_take_up_again(self, talk: Talk) -> None:
        text = talk.history.export().model_dump_json()
        talk.history = ConversationHistory.restore(HistorySnapshot.model_validate_json(text))
        talk.undo = []

    @rule(talk=talks, window=st.integers(50, 2_000))
    def condense(self, talk: Talk, window: int) -> None:
        before = list(talk.expected)
        try:
            done = asyncio.run(talk.guard.compact(talk.history, window, forced=True))
        except CompactionError:
            return
        expected = [{old.id: new for old, new in done.cut}.get(message.id, message) for message in before]
        if done.replacement is not None:
            ids = [message.id for message in expected]
            start, end = ids.index(done.removed[0].id), ids.index(done.removed[-1].id) + 1
            assert tuple(before[start:end]) == done.removed
            expected[start:end] = [done.replacement]
        talk.expected = expected
        talk.undo.append((before, len(expected)))

    @rule(talk=talks)
    def take_back(self, talk: Talk) -> None:
        if not talk.undo:
            return
        before, length = talk.undo.pop()
        talk.guard.undo(talk.history)
        talk.expected = [*before, *talk.expected[length:]]

    @invariant()
    def every_conversation_holds_what_it_should(self) -> None:
        for talk in self.all:
            assert list(talk.history.messages()) == talk.expected
            assert talk.history.sound
            validate_history(talk.expected)
            assert [entry.index for entry in talk.history.entries] == list(range(len(talk.expected)))
            assert talk.history.estimated_tokens() >= 0
            assert sum(condensed(message) is not None for message in talk.expected) <= 1
            assert talk.expected[0].text == "the goal"


AnyHistory.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAnyHistory = AnyHistory.TestCase
