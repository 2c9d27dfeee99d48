"""The loop: creating an agent, a run from its input to its report, its stream (S4-1 … S4-7, S4-33 … S4-46)."""

import ast
import asyncio
from pathlib import Path

import pytest

import tui_agent.agent
from tests.agent.fakes import FakeGuardrail
from tests.agent.harness import BenchMaker, ScriptedTool
from tui_agent.agent import (
    AgentLoop,
    AgentLoopConfig,
    AgentStreamEvent,
    Done,
    GuardrailDecision,
    StepEnd,
    StepStart,
    TextPiece,
    ThinkingPiece,
    ToolCallEnd,
    ToolCallStart,
)
from tui_agent.agent.limit_settings import DEFAULT_MAX_STEPS
from tui_agent.context import ConversationHistory
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.events import AgentCreated, AgentEvent, RunEnded
from tui_agent.protocol.messages import ImageBlock, TextBlock, ToolResultMessage, Usage, UserMessage, user_message
from tui_agent.providers import ScriptedProvider, Think, Wait, call, reply


async def test_s4_3_s4_42_s4_87_s4_88_results_return_under_their_ids_and_a_step_without_calls_ends_the_run(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    b = bench([reply(call("look", n=1), call("gone")), "Done."], ScriptedTool("look"), options=literal)

    report = await b.loop.run("Go")

    history = b.loop.history.messages()
    assert [message.role for message in history] == ["user", "assistant", "tool_result", "tool_result", "assistant"]
    asked = history[1]
    assert asked.role == "assistant"
    assert [result.call_id for result in b.results] == [made.id for made in asked.tool_calls] == ["call_1", "call_2"]
    assert (b.results[0].tool_name, b.results[0].text) == ("look", "look 1")
    assert b.provider.requests[1].messages[-2:] == tuple(b.results)
    assert [step.type for step in report.steps] == ["initial", "tool_followup"]
    assert len(b.provider.requests) == 2
    assert (b.provider.prepared, b.provider.closed) == (0, False), "its owner connects and closes it"


async def test_s4_4_s4_44_the_limits_of_a_run_are_enforced_and_at_least_one_step_runs(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    trip = FakeGuardrail("in", GuardrailDecision(passed=False, tripwire=True, reason="no"))
    tool = ScriptedTool("look")
    capped = bench([reply("Looking.", call("look")), "never"], tool, max_steps=1, options=literal)
    tripped = bench(["unused"], options=literal, guardrails=[trip])

    report = await capped.loop.run("Go")

    assert (report.reason, report.step_count, len(tool.runs)) == ("max_steps", 1, 1)
    assert (await bench(["Hi."], max_steps=1).loop.run("Go")).reason == "done"
    assert (await tripped.loop.run("Go")).reason == "guardrail"


def test_s4_7_the_loop_knows_no_network_and_no_credentials() -> None:
    forbidden = {"socket", "ssl", "http", "urllib", "httpx", "httpx2", "anthropic", "os"}
    for path in Path(tui_agent.agent.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & forbidden, path.name


def test_s4_31_s4_33_creating_an_agent_sets_up_everything_and_publishes_it(bench: BenchMaker) -> None:
    history = ConversationHistory([user_message("before")], id="talk")
    b = bench([], ScriptedTool("look"), ScriptedTool("change"), system="Who.", context="What.", history=history)

    assert b.of(AgentCreated) == [
        AgentCreated(model="scripted-model", tools=("look", "change"), mode=b.loop.policy.mode)
    ]
    assert b.loop.history is history
    history.system = "Before."
    assert [(layer.name, layer.owner, layer.priority) for layer in history.registry.layers()] == [
        ("agentloop.system", "agent-loop", 10),
        ("_legacy_system", "history", 50),
        ("agentloop.context", "agent-loop", 100),
    ]
    assert history.system == "Who.\n\nBefore.\n\nWhat."
    assert bench([], session_id="s1").loop.history.id == "s1"
    with pytest.raises(TypeError, match="provider"):
        AgentLoopConfig()  # pyright: ignore[reportCallIssue]
    with pytest.raises(ConfigurationError, match="already a tool named look"):
        AgentLoop(AgentLoopConfig(ScriptedProvider(), tools=[ScriptedTool("look"), ScriptedTool("look")]))


async def test_s4_34_s4_89_a_second_run_is_refused_even_as_a_stream_and_the_first_continues(bench: BenchMaker) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), "Done.", "Second."], tool)

    async with asyncio.TaskGroup() as group:
        first = group.create_task(b.loop.run("Go"))
        await tool.started.wait()
        with pytest.raises(AlreadyRunningError, match=r"^AgentLoop is already running$"):
            await b.loop.run("Me too")
        with pytest.raises(AlreadyRunningError):
            async for _ in b.loop.stream("Me too"):
                pass
        tool.go_on.set()

    assert first.result().reason == "done"
    assert "user: Me too" not in b.texts
    assert (await b.loop.run("Now")).reason == "done"


async def test_s4_35_each_run_starts_with_a_new_stop_flag_and_token(bench: BenchMaker) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), "Second."], tool, options=ExecutionOptions(grace=0))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await tool.started.wait()
        b.loop.stop()
        b.loop.abort("enough")

    report = await b.loop.run("Again")

    assert running.result().reason == "aborted"
    assert (report.reason, report.final_text) == ("done", "Second.")


async def test_s4_36_a_system_function_is_called_at_each_start_and_changes_the_layer_only_if_the_text_changes(
    bench: BenchMaker,
) -> None:
    texts = ["One.", "One.", "Two."]

    async def system() -> str:
        return texts.pop(0)

    b = bench(["a", "b", "c"], system=system)
    changes: list[str] = []
    b.loop.history.registry.listen(lambda change: changes.append(change.name))

    for _ in range(3):
        await b.loop.run("Go")

    assert [request.system[0].text for request in b.provider.requests] == ["One.", "One.", "Two."]
    assert changes == ["agentloop.system"] * 2


async def test_s4_37_a_run_has_an_id_and_is_published_before_its_input_joins_the_conversation(
    bench: BenchMaker,
) -> None:
    b = bench(["a", "b"])

    reports = [await b.loop.run("One"), await b.loop.run("Two")]

    assert len({report.id for report in reports}) == 2
    assert all(report.started_at <= report.completed_at for report in reports)
    assert b.types()[:3] == ["run.started", "message.started", "message.ended"]
    runs = [envelope.origin.run_id for envelope in b.told if envelope.type == "run.started"]
    assert runs == [report.id for report in reports]


async def test_s4_38_input_is_a_text_blocks_or_messages(bench: BenchMaker) -> None:
    image = ImageBlock(media_type="image/png", data="")
    whole: list[UserMessage] = [user_message("one"), user_message("two")]
    b = bench(["a", "b", "c"])

    await b.loop.run("text")
    await b.loop.run([TextBlock(text="look"), image])
    await b.loop.run(whole)

    asked = [message for message in b.loop.history.messages() if isinstance(message, UserMessage)]
    assert [message.text for message in asked] == ["text", "look", "one", "two"]
    assert asked[1].content == (TextBlock(text="look"), image)
    assert asked[2:] == whole


async def test_s4_5_s4_40_the_order_of_a_step_and_its_events(bench: BenchMaker, literal: ExecutionOptions) -> None:
    order: list[str] = []

    class NotingGuardrail(FakeGuardrail):
        async def check(self, context: object) -> GuardrailDecision:
            order.append(f"{self.name} behind {b.types()[-1]}")
            return GuardrailDecision(passed=True)

    class NotingProvider(ScriptedProvider):
        def _next(self, request: object) -> object:
            order.append(f"model behind {b.types()[-1]}")
            return super()._next(request)  # pyright: ignore

    passes = GuardrailDecision(passed=True)
    rails = [NotingGuardrail("out", passes, "output"), *(NotingGuardrail(f"in{n}", passes) for n in (1, 2))]
    b = bench([], ScriptedTool("look"), guardrails=rails, options=literal)
    b.loop.provider = NotingProvider([reply(call("look")), "Done."])

    await b.loop.run("Go")

    assert order[:4] == [
        "in1 behind step.started",
        "in2 behind step.started",
        "model behind step.started",
        "out behind step.ended",
    ]
    kept = b.loop.history.entries[1]
    assert (kept.model, kept.usage) == ("scripted-model", Usage(input_tokens=10, output_tokens=5))
    assert kept.latency_ms is not None
    types = b.types()
    wanted = ["run.started", "step.started", "step.ended", "tool.started", "tool.ended", "step.started", "step.ended"]
    shown = [kind for kind in types if kind.startswith(("run.", "step.")) or kind in ("tool.started", "tool.ended")]
    assert shown == [*wanted, "run.ended"]
    assert types.index("message.ended", 3) < types.index("step.ended") < types.index("tool.started")


async def test_s4_41_a_request_has_everything_and_a_run_may_add_tools(bench: BenchMaker) -> None:
    extra = ScriptedTool("extra")
    b = bench(
        [reply(call("extra", n=1)), "Done.", "Again."],
        ScriptedTool("look"),
        system="Who.",
        max_tokens=99,
        temperature=0.5,
        thinking_tokens=1024,
        cache=False,
        session_id="talk",
    )

    await b.loop.run("Go", tools=[extra])
    await b.loop.run("Again")

    first, _, last = b.provider.requests
    assert [message.text for message in first.messages] == ["Go"]
    assert [part.text for part in first.system] == ["Who."]
    assert [spec.name for spec in first.tools] == ["look", "extra"]
    assert [spec.name for spec in last.tools] == ["look"]
    assert (first.max_tokens, first.temperature, first.thinking_tokens) == (99, 0.5, 1024)
    assert (first.cache, first.conversation_id) == (False, "talk")
    assert extra.runs == [{"n": 1}]
    with pytest.raises(ConfigurationError, match="already a tool named look"):
        await b.loop.run("Go", tools=[ScriptedTool("other"), ScriptedTool("look")])
    assert "other" not in b.loop.dump().tool_names


@pytest.mark.parametrize("whose", ["caller", "config"])
async def test_s4_41_the_callers_token_and_the_agents_token_both_end_a_run(bench: BenchMaker, whose: str) -> None:
    tokens = {"caller": CancellationToken(), "config": CancellationToken()}
    tool = ScriptedTool("look").hold()
    options = ExecutionOptions(grace=0)
    b = bench([reply(call("look")), "never"], tool, options=options, cancellation=tokens["config"])

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go", cancellation=tokens["caller"]))
        await tool.started.wait()
        tokens[whose].cancel("the caller left")

    assert (running.result().reason, running.result().error) == ("aborted", "the caller left")


async def test_s4_43_the_report_is_stored_then_published_and_usage_is_the_sum(bench: BenchMaker) -> None:
    kept_when_told: list[int] = []

    class WatchingBus(EventBus):
        def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
            if isinstance(event, RunEnded):
                kept_when_told.append(len(b.loop.reports))
            super().publish(event, origin)

    provider = ScriptedProvider([reply(call("look")), reply("Done.", usage=Usage(input_tokens=7, output_tokens=1))])
    bus = WatchingBus()
    b = bench.add(AgentLoop(AgentLoopConfig(provider, tools=[ScriptedTool("look")], bus=bus)), provider, bus)

    report = await b.loop.run("Go")

    assert kept_when_told == [1]
    assert b.loop.reports == (report,)
    assert report.total_usage == Usage(input_tokens=17, output_tokens=6)
    assert report.final_text == "Done."


async def test_s4_45_the_limit_is_sixteen_if_the_given_number_is_invalid(bench: BenchMaker) -> None:
    steps = [reply(call("look", n=place)) for place in range(20)]
    b = bench(steps, ScriptedTool("look"), max_steps=0)

    report = await b.loop.run("Go")

    assert DEFAULT_MAX_STEPS == 16
    assert (report.reason, report.step_count) == ("max_steps", 16)


async def test_s4_13_s4_46_streaming_gives_the_same_run_and_done_comes_last(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    script = [reply(Think("hm"), "Look", call("look", n=1)), "Done."]
    b = bench(script, ScriptedTool("look"), options=literal)
    twin = bench(script, ScriptedTool("look"), options=literal)

    events: list[AgentStreamEvent] = [event async for event in b.loop.stream("Go")]
    report = await twin.loop.run("Go")

    assert [type(event) for event in events] == [
        StepStart,
        ThinkingPiece,
        TextPiece,
        ToolCallStart,
        ToolCallEnd,
        StepEnd,
        StepStart,
        TextPiece,
        StepEnd,
        Done,
    ]
    assert [event.step for event in events if isinstance(event, StepStart)] == [0, 1]
    (start,) = (event for event in events if isinstance(event, ToolCallStart))
    assert (start.step, start.call_id, start.tool_name, start.arguments) == (0, "call_1", "look", {"n": 1})
    (end,) = (event for event in events if isinstance(event, ToolCallEnd))
    assert (end.step, end.call_id, end.latency_ms > 0) == (0, "call_1", True)
    usages = [event.usage for event in events if isinstance(event, StepEnd) and event.latency_ms > 0]
    assert usages == [Usage(input_tokens=10, output_tokens=5)] * 2
    done = events[-1]
    assert isinstance(done, Done)
    assert done.response == b.loop.history.messages()[-1]
    assert (done.report.reason, done.report.final_text, done.report.total_usage) == (
        report.reason,
        report.final_text,
        report.total_usage,
    )
    assert b.texts == twin.texts


async def test_s4_1_s4_84_requests_follow_one_another_until_an_answer_has_no_calls_and_messages_alternate(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    b = bench(
        [reply(call("look"), call("gone")), reply(call("look")), "Done.", "Again."],
        ScriptedTool("look"),
        options=literal,
    )

    await b.loop.run("Go")
    await b.loop.run("And?")

    talks = [*(request.messages for request in b.provider.requests), b.loop.history.messages()]
    roles = ["".join({"user": "u", "assistant": "a", "tool_result": "t"}[m.role] for m in talk) for talk in talks]
    assert roles == ["u", "uatt", "uattat", "uattatau", "uattataua"]


async def test_s4_39_s4_85_a_stop_lets_the_current_step_finish_its_stream_and_its_calls_and_begins_no_other(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    tool = ScriptedTool("look")
    b = bench([reply("Half ", Wait(gate, reached), "and whole.", call("look")), "never"], tool, options=literal)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await reached.wait()
        b.loop.stop()
        gate.set()

    assert (running.result().reason, len(tool.runs), b.provider.left) == ("stopped", 1, 1)
    assert b.texts[1] == "assistant: Half \nand whole."
    assert isinstance(b.loop.history.messages()[-1], ToolResultMessage)
