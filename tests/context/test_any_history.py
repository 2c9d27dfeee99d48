"""Any sequence of operations on a conversation, compared with a simple model: a list."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from tests.support.examples import examples
from tests.support.transcript_checks import validate_history
from tui_agent.context import Compaction, ContextGuard, ConversationHistory, GuardOptions, HistorySnapshot
from tui_agent.context.compaction import SHORTEST_SAID, condensed
from tui_agent.protocol.errors import CompactionError
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_message,
)

GOAL = "the goal, told at length " * 30
IMAGE = ImageBlock(media_type="image/png", data="QUJD")
Summary = Literal["none", "short", "endless", "meddling"]


@dataclass
class Talk:
    """A conversation, its guard, and its expected messages."""

    history: ConversationHistory
    guard: ContextGuard
    expected: list[Message]
    whole: list[Message]
    """The messages without any compaction."""
    undo: list[tuple[Compaction, list[Message], int]] = field(default_factory=list)
    """Each compaction, with the messages before it and their number after it."""
    past: list[tuple[list[Message], list[Message]]] = field(default_factory=list)
    """Moments to rewind to."""
    is_pressed: bool = False
    """True once it was made shorter because a server refused it: goal and last answer may be in the summary then."""


class AnyHistory(RuleBasedStateMachine):
    """State machine that adds messages, forks, saves, compacts, undoes and rewinds in any order."""

    talks: Bundle[Talk] = Bundle("talks")

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Talk] = []
        self.calls = 0

    def added(self, history: ConversationHistory, expected: list[Message], whole: list[Message]) -> Talk:
        talk = Talk(history, ContextGuard(GuardOptions(keep_steps=2)), expected, whole)
        self.all.append(talk)
        return talk

    @initialize(target=talks, first=st.sampled_from([(), (user_message("$ ls\na b", "command"),)]))
    def begin(self, first: Sequence[Message]) -> Talk:
        talk = self.added(ConversationHistory(first), list(first), list(first))
        self.append(talk, user_message(GOAL))
        self.work(talk, [[1_500], [10, 2_000], [], [300]], 0)
        return talk

    @rule(
        talk=talks,
        text=st.text(max_size=400),
        kind=st.sampled_from(["prompt", "steer", "notice", "command"]),
        image=st.booleans(),
    )
    def say(self, talk: Talk, text: str, kind: Literal["prompt", "steer", "notice", "command"], image: bool) -> None:
        content = (TextBlock(text=text or "?"), *([IMAGE] if image else []))
        self.append(talk, UserMessage(content=content, kind=kind))

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
            self.append(talk, AssistantMessage(content=content, stop_reason=reason, usage=Usage(input_tokens=read)))
            for call, letters in zip(calls, results, strict=True):
                text = TextBlock(text="x" * letters)
                self.append(talk, ToolResultMessage(call_id=call.id, tool_name="read", content=(text,)))

    def append(self, talk: Talk, message: Message) -> None:
        talk.history.append(message)
        talk.expected.append(message)
        talk.whole.append(message)

    @rule(target=talks, talk=talks)
    def fork(self, talk: Talk) -> Talk:
        copy = self.added(talk.history.fork(), list(talk.expected), list(talk.whole))
        copy.is_pressed = talk.is_pressed
        return copy

    @rule(talk=talks)
    def keep_and_take_up_again(self, talk: Talk) -> None:
        text = talk.history.export().model_dump_json()
        talk.history = ConversationHistory.restore(HistorySnapshot.model_validate_json(text))
        talk.guard.remember(talk.history, [done for done, _, _ in talk.undo])

    @rule(
        talk=talks,
        window=st.integers(50, 2_000),
        forced=st.booleans(),
        summary=st.sampled_from(["none", "short", "endless", "meddling"]),
    )
    def condense(self, talk: Talk, window: int, forced: bool, summary: Summary) -> None:
        async def summarise(transcript: str) -> str | None:
            if summary == "meddling":
                self.append(talk, user_message("meanwhile"))
            return {"none": None, "endless": "and so on " * 2_000}.get(summary, "All is well.")

        before = list(talk.expected)
        try:
            done = asyncio.run(talk.guard.compact(talk.history, window, summarise, forced=forced))
        except CompactionError:
            return
        assert talk.expected == before, "a conversation that changed meanwhile is not compacted"
        assert done.tokens_after <= done.tokens_before
        assert not talk.guard.is_due(talk.history, window), "no second attempt without new messages"
        expected = [{old.id: new for old, new in done.cut}.get(message.id, message) for message in before]
        if done.replacement is not None:
            talk.is_pressed = talk.is_pressed or forced
            ids = [message.id for message in expected]
            start, end = ids.index(done.removed[0].id), ids.index(done.removed[-1].id) + 1
            assert tuple(before[start:end]) == done.removed
            expected[start:end] = [done.replacement]
        talk.expected = expected
        talk.undo.append((done, before, len(expected)))

    @rule(talk=talks)
    def take_back(self, talk: Talk) -> None:
        assert talk.guard.can_undo(talk.history) == bool(talk.undo)
        if talk.undo:
            done, before, length = talk.undo.pop()
            assert talk.guard.undo(talk.history) == done
            talk.expected = [*before, *talk.expected[length:]]

    @rule(talk=talks)
    def note_the_moment(self, talk: Talk) -> None:
        talk.past.append((list(talk.expected), list(talk.whole)))

    @rule(talk=talks, which=st.integers(0, 5))
    def go_back(self, talk: Talk, which: int) -> None:
        if which < len(talk.past):
            expected, whole = talk.past[which]
            talk.history.go_back_to(expected)
            talk.guard.forget_compactions(talk.history)
            talk.expected, talk.whole, talk.undo = list(expected), list(whole), []

    @invariant()
    def every_conversation_holds_what_it_should(self) -> None:
        for talk in self.all:
            assert list(talk.history.messages()) == talk.expected
            assert talk.history.sound
            validate_history(talk.expected)
            assert [entry.index for entry in talk.history.entries] == list(range(len(talk.expected)))
            assert talk.history.estimated_tokens() >= 0
            assert sum(condensed(message) is not None for message in talk.expected) <= 1

    @invariant()
    def what_a_person_said_is_all_there_in_its_order_and_the_goal_is_whole(self) -> None:
        for talk in self.all:
            there, said = _words_in(talk.expected), _words_in(talk.whole)
            assert len(there) == len(said)
            assert talk.is_pressed or there[0] == GOAL
            for now, then in zip(there, said, strict=True):
                assert now == then or (len(then) > SHORTEST_SAID and " […] " in now and now[:40] == then[:40])

    @invariant()
    def the_last_answer_and_its_calls_are_there(self) -> None:
        for talk in self.all:
            last = next(message for message in reversed(talk.whole) if isinstance(message, AssistantMessage))
            assert talk.is_pressed or last in talk.expected
            assert talk.expected[-1].id == talk.whole[-1].id


def _words_in(messages: Sequence[Message]) -> list[str]:
    words: list[str] = []
    for message in messages:
        if (summed := condensed(message)) is not None:
            words += summed.said
        elif isinstance(message, UserMessage) and message.is_from_user:
            words.append("\n".join("[image]" if isinstance(one, ImageBlock) else one.text for one in message.content))
    return words


AnyHistory.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
TestAnyHistory = AnyHistory.TestCase
