"""The fold of one answer's stream (S4-14, S4-47 … S4-55, S4-86)."""

from collections.abc import Iterable

from tests.agent.harness import BenchMaker, ScriptedTool
from tui_agent.agent.response_accumulator import StepState, accumulate, build_message, finalize_unended_tool_calls
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import TextBlock, ThinkingBlock, ToolCall, Usage, parse_tool_call
from tui_agent.protocol.provider import (
    StreamEnded,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)
from tui_agent.providers import Call, call, reply

Folded = MessageDelta | ToolCall | None


def fold(state: StepState, *events: StreamEvent) -> list[Folded]:
    return [accumulate(state, event) for event in events]


def shown(folded: Iterable[Folded]) -> list[tuple[str, str]]:
    return [(delta.kind, delta.delta) for delta in folded if isinstance(delta, MessageDelta)]


def call_of(call_id: str, text: str) -> tuple[StreamEvent, ...]:
    made = parse_tool_call(call_id, "look", text)
    return ToolCallStarted(call_id, "look"), ToolCallDelta(call_id, text), ToolCallEnded(made)


def test_s4_14_s4_47_s4_48_s4_52_s4_53_text_and_thinking_grow_and_the_last_usage_and_the_end_count() -> None:
    state = StepState()
    signed = ThinkingBlock(thinking="hm, so", signature="s")

    thought = fold(state, ThinkingDelta("hm, "), ThinkingDelta("so"), ThinkingEnded(signed))
    said = fold(state, TextDelta("Hel", 1), TextDelta("lo", 1))
    fold(state, UsageReported(Usage(input_tokens=9, output_tokens=1)), UsageReported(Usage(output_tokens=4)))
    fold(state, *call_of("c1", '{"a": 1}'))
    assert state.stop_reason is None
    fold(state, StreamEnded("max_tokens", "limit"))

    assert shown(thought) == [("thinking", "hm, "), ("thinking", "so")]
    assert shown(said) == [("text", "Hel"), ("text", "lo")]
    assert (state.text, [made.call_id for made in state.calls]) == ("Hello", ["c1"])
    assert build_message(state).content[:2] == (signed, TextBlock(text="Hello"))
    assert (state.usage, state.stop_reason, state.detail) == (Usage(output_tokens=4), "max_tokens", "limit")


def test_s4_49_s4_50_a_call_start_opens_a_call_that_fragments_with_its_id_extend() -> None:
    state = StepState()

    assert fold(state, ToolCallStarted("c1", "a"), ToolCallStarted("c2", "b")) == [None, None]
    assert [(opened.call_id, opened.name, opened.finished) for opened in state.calls] == [
        ("c1", "a", None),
        ("c2", "b", None),
    ]
    fold(state, ToolCallDelta("c2", '{"y"'), ToolCallDelta("c1", '{"x"'), ToolCallDelta("c2", ":2}"))
    fold(state, ToolCallDelta("c1", ":1}"))
    assert ["".join(opened.fragments) for opened in state.calls] == ['{"x":1}', '{"y":2}']


def test_s4_51_a_call_end_sets_the_arguments_once_by_id_or_of_the_first_open_call() -> None:
    state = StepState()
    fold(state, ToolCallStarted("c1", "look"), ToolCallStarted("c2", "look"))

    by_id = accumulate(state, ToolCallEnded(ToolCall(id="c2", name="look", arguments={"n": 2})))
    fallback = accumulate(state, ToolCallEnded(ToolCall(id="", name="look", arguments={"n": 1})))
    again = accumulate(state, ToolCallEnded(ToolCall(id="c2", name="look", arguments={"n": 3})))

    assert isinstance(by_id, ToolCall)
    assert isinstance(fallback, ToolCall)
    assert (by_id.id, by_id.arguments) == ("c2", {"n": 2})
    assert (fallback.id, fallback.arguments) == ("c1", {"n": 1})
    assert again is None


async def test_s4_51_in_the_literal_preset_broken_arguments_are_silently_empty(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    tool = ScriptedTool("look")
    b = bench([reply(Call("look", {}, raw='{"path": "a')), "Done."], tool, options=literal)

    await b.loop.run("Go")

    assert tool.runs == [{}]
    assert not b.results[0].is_error


async def test_s4_51_by_default_broken_arguments_are_an_error_and_nothing_runs(bench: BenchMaker) -> None:
    tool = ScriptedTool("look")
    b = bench([reply(Call("look", {}, raw='{"path": "a'), Call("look", {}, raw="")), "Done."], tool)

    await b.loop.run("Go")

    assert [result.is_error for result in b.results] == [True, False]
    assert tool.runs == [{}], "a call without arguments belongs to a tool that needs none"


def test_s4_54_calls_without_an_end_are_kept_and_none_is_counted_twice() -> None:
    state = StepState()
    fold(state, *call_of("c1", "{}"), ToolCallStarted("c2", "look"), ToolCallDelta("c2", '{"n": 2}'))

    late = finalize_unended_tool_calls(state)

    assert [(made.id, made.arguments) for made in late] == [("c2", {"n": 2})]
    assert finalize_unended_tool_calls(state) == ()
    assert [made.id for made in build_message(state).tool_calls] == ["c1", "c2"]


def test_s4_55_an_answer_is_text_thinking_calls_usage_and_a_reason() -> None:
    state = StepState()
    fold(state, ThinkingDelta("hm"), TextDelta("Look:", 1), *call_of("c1", "{}"))
    fold(state, UsageReported(Usage(input_tokens=5)), StreamEnded("end_turn"))

    made = build_message(state)

    assert [type(block) for block in made.content] == [ThinkingBlock, TextBlock, ToolCall]
    assert (made.usage, made.stop_reason) == (Usage(input_tokens=5), "tool_use")
    plain = StepState()
    fold(plain, TextDelta("Bye"), StreamEnded("stop_sequence"))
    assert build_message(plain).stop_reason == "stop_sequence"


async def test_s4_86_an_answer_contains_nothing_of_the_previous_one(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    b = bench([reply("First.", call("look", n=1)), "Second."], ScriptedTool("look"), options=literal)

    report = await b.loop.run("Go")

    first, second = (message for message in b.loop.history.messages() if message.role == "assistant")
    assert (first.text, second.text) == ("First.", "Second.")
    assert first.id != second.id
    assert [len(step.tool_calls) for step in report.steps] == [1, 0]
    assert [step.usage for step in report.steps] == [Usage(input_tokens=10, output_tokens=5)] * 2
