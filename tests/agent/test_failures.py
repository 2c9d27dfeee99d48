"""Requests that fail, break off, come back empty or are refused."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoopConfig, RetryPolicy
from tui_agent.agent.loop import AgentLoop
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.events import (
    Failed,
    MessageDiscarded,
    MessageStarted,
    StatusChanged,
    StepRetry,
    ToolEnded,
    ToolStarted,
    Warned,
)
from tui_agent.protocol.provider import (
    ModelInfo,
    ModelRequest,
    StreamEnded,
    StreamEvent,
    StreamStarted,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    UsageReported,
)
from tui_agent.providers import Call, Reply, Think, Wait, call, fail, reply

from .harness import AT_ONCE, BenchMaker, ScriptedTool

EARLY = ExecutionOptions(stream_tools="allowed", grace=0)


async def test_the_delays_are_those_of_the_policy(bench: BenchMaker) -> None:
    policy = RetryPolicy(max_attempts=4, first_wait=0.001, longest_wait=0.002)
    b = bench([fail(), fail(retry_after=0.003), fail(), "Hello."], retry=policy)

    await b.loop.run("Hi")

    assert [(event.attempt, event.max, event.wait_s) for event in b.of(StepRetry)] == [
        (2, 4, 0.001),
        (3, 4, 0.003),
        (4, 4, 0.002),
    ]
    assert [event.detail for event in b.of(StatusChanged) if event.status == "retrying"] == [
        "2/4 in 0.001 s",
        "3/4 in 0.003 s",
        "4/4 in 0.002 s",
    ]


async def test_a_broken_answer_is_discarded_and_requested_again(bench: BenchMaker) -> None:
    b = bench([reply("Half an", fail("stream_cut")), "A whole answer."])

    await b.loop.run("Hi")

    assert b.texts == ["user: Hi", "assistant: A whole answer."]
    first, second = [event.message_id for event in b.of(MessageStarted) if event.role == "assistant"]
    assert [event.message_id for event in b.of(MessageDiscarded)] == [first]
    assert first != second
    assert b.of(StepRetry)[0].discarded


async def test_a_read_that_started_before_the_answer_broke_off_runs_once_and_gets_one_result(bench: BenchMaker) -> None:
    look, change = ScriptedTool("look", read_only=True).hold(), ScriptedTool("change")
    asked = (call("look", n=1), call("change"))
    b = bench([reply("One", *asked, Wait(look.started), fail("network")), reply("Two", *asked), "Done."], look, change)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        while [event.call_id for event in b.of(ToolStarted)] != ["call_1", "call_3"]:
            await asyncio.sleep(0)
        look.go_on.set()

    assert look.runs == [{"n": 1}]
    assert len(change.runs) == 1
    assert b.of(ToolStarted)[1].adopted_from == "call_1"
    assert [event.attempt for event in b.of(ToolStarted)] == [1, 2, 2]
    assert [(result.call_id, result.text) for result in b.results] == [("call_3", "look 1"), ("call_4", "change")]
    assert look.cancelled == 0


@pytest.mark.parametrize("kind", ["authentication", "invalid_request", "too_large", "context_exceeded", "unavailable"])
async def test_a_request_that_was_rejected_is_not_repeated(bench: BenchMaker, kind: str) -> None:
    b = bench([fail(kind, "refused for good"), "unused"])

    report = await b.loop.run("Hi")

    assert (report.reason, report.error, report.error_kind) == ("error", "refused for good", kind)
    assert b.of(StepRetry) == []
    assert b.of(Failed) == [Failed(code="run_failed", text="refused for good", context={"kind": kind})]
    assert b.texts == ["user: Hi"]


async def test_a_stream_that_ends_without_a_reason_is_a_cut_stream() -> None:
    answers = iter([[TextDelta("Half")], [TextDelta("Whole."), StreamEnded("end_turn")]])

    async def stream(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in next(answers):
            yield event

    bus = ValidatingBus(whole=False)
    loop = AgentLoop(AgentLoopConfig(provider=ForeignProvider(stream), bus=bus, retry=AT_ONCE))
    with bus.subscribe(merge=False) as subscription:
        await loop.run("Hi")
        retries = [one.event for one in subscription.drain() if isinstance(one.event, StepRetry)]

    assert [message.text for message in loop.history.messages()] == ["Hi", "Whole."]
    assert [retry.error_kind for retry in retries] == ["stream_cut"]


@pytest.mark.parametrize("is_empty_again", [False, True])
async def test_an_empty_answer_is_requested_once_more_and_a_second_one_is_an_error(
    bench: BenchMaker, is_empty_again: bool
) -> None:
    b = bench([reply(Think("hm"), "  \n"), reply() if is_empty_again else "Now.", "unused"])

    report = await b.loop.run("Hi")

    (retry,) = b.of(StepRetry)
    assert (retry.error_kind, retry.attempt, retry.max, retry.wait_s) == ("empty_answer", 2, 2, 0)
    assert retry.discarded
    if is_empty_again:
        assert (report.reason, report.error_kind) == ("error", "bad_response")
        assert "empty answer" in (report.error or "")
    assert b.texts == ["user: Hi", *([] if is_empty_again else ["assistant: Now."])]
    assert b.provider.left == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_a_refusal_ends_the_run_with_a_clear_error(bench: BenchMaker, kept: bool) -> None:
    change = ScriptedTool("change")
    parts = ("I can't", call("change")) if kept else (Think("no"),)
    b = bench([reply(*parts, stop_reason="refusal")], change)

    report = await b.loop.run("Do harm")

    assert report.reason == "error"
    assert (report.error or "").startswith("The model declined to answer.")
    assert change.runs == []
    assert [line.split(":")[0] for line in b.texts] == (["user", "assistant", "tool_result"] if kept else ["user"])


async def test_a_full_window_ends_the_run_with_a_clear_error(bench: BenchMaker) -> None:
    b = bench([reply("It is", stop_reason="model_context_window_exceeded")])

    report = await b.loop.run("Go")

    assert (report.reason, report.error_kind) == ("error", "context_exceeded")
    assert b.texts[-1] == "assistant: It is"


async def test_an_answer_with_an_unknown_stop_reason_is_kept_with_a_warning(bench: BenchMaker) -> None:
    b = bench([reply("Fine.", stop_reason="other")])

    assert (await b.loop.run("Go")).reason == "done"
    assert [warned.code for warned in b.of(Warned)] == ["unfinished_answer"]


async def test_half_a_surrogate_pair_in_a_calls_arguments_leaves_the_run_serialisable(bench: BenchMaker) -> None:
    look = ScriptedTool("look")
    b = bench([reply(call("look", at="\ud83d")), "Done."], look)

    report = await b.loop.run("Hi")

    assert look.runs == []
    assert (report.reason, [one.status for step in report.steps for one in step.tool_calls]) == ("done", ["invalid"])
    assert "surrogate" in b.loop.dump().model_dump_json()
    assert report.model_dump_json()


BROKEN_STREAMS: list[tuple[Any, str]] = [
    ("hello", "'hello' is not a StreamEvent, such as TextDelta"),
    (None, "None is not a StreamEvent"),
    (TextDelta, "the class TextDelta, not an instance is not a StreamEvent"),
    (StreamStarted(3), "StreamStarted.model must be text, got 3"),  # type: ignore[arg-type] — these are the cases
    (TextDelta(3), "TextDelta.text must be text, got 3"),  # type: ignore[arg-type]
    (ToolCallEnded("call_1"), "ToolCallEnded.call must be a ToolCall, got 'call_1'"),  # type: ignore[arg-type]
    (ToolCallDelta("call_1", {"a": 1}), "ToolCallDelta.fragment must be text, got {'a': 1}"),  # type: ignore[arg-type]
    (UsageReported({"in": 1}), "UsageReported.usage must be a Usage, got {'in': 1}"),  # type: ignore[arg-type]
    (StreamEnded("stop"), "StreamEnded.stop_reason must be one of end_turn, "),  # type: ignore[arg-type]
]


class ForeignProvider:
    """Provider of another program."""

    model = ModelInfo("foreign")

    def __init__(self, stream: Callable[[ModelRequest], Any]) -> None:
        self.requests: list[ModelRequest] = []
        self._stream = stream

    async def prepare(self) -> None: ...

    async def aclose(self) -> None: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        return self._stream(request)


@table(("event", "words"), BROKEN_STREAMS)
async def test_a_provider_that_streams_other_values_ends_the_run_with_the_reason(event: Any, words: str) -> None:
    async def stream(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("Hel")
        yield event
        yield StreamEnded("end_turn")

    provider = ForeignProvider(stream)
    loop = AgentLoop(AgentLoopConfig(provider=provider))

    report = await loop.run("Hi")

    assert report.error is not None
    assert f"The provider's stream cannot be read: {words}" in report.error
    assert (report.reason, report.error_kind, len(provider.requests)) == ("error", "bad_response", 1)
    assert [message.text for message in loop.history.messages()] == ["Hi", "Hel"]


async def no_stream(_: ModelRequest) -> str:
    return "hello"


def plain_stream(_: ModelRequest) -> Iterator[StreamEvent]:
    yield TextDelta("Hello")


@pytest.mark.parametrize(("stream", "kind"), [(no_stream, "a coroutine"), (plain_stream, "a generator")])
async def test_a_stream_that_is_not_a_stream_ends_the_run_with_advice(stream: Any, kind: str) -> None:
    report = await AgentLoop(AgentLoopConfig(provider=ForeignProvider(stream))).run("Hi")

    assert report.error is not None
    assert "stream() must be an `async def` that yields, or a plain function that" in report.error
    assert f"it returned {kind}." in report.error


async def test_the_last_call_of_a_cut_answer_never_runs(bench: BenchMaker) -> None:
    change = ScriptedTool("change")
    first = Wait(asyncio.Event())
    cut = Reply((call("change", n=1), first, Call("change", {"n": 2}, cut=True)), stop_reason="max_tokens")
    b = bench([cut, "Done."], change, options=EARLY)
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("go"))
        await change.started.wait()
        first.gate.set()

    assert change.runs == [{"n": 1}]
    assert [event.status for event in b.of(ToolEnded)] == ["ok", "output_limit"]
