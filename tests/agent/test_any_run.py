"""Random model output, interruptions and strategies: everything is whole afterwards."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate, Auto, Batched, ExecutionOptions, Parallel, Sequential, Strategy
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import AgentEvent, CompactionEnded, SteeringDropped, SteeringQueued, ToolStarted, Warned
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.providers import Call, Reply, Say, ScriptedProvider, Think, call, fail, reply
from tui_agent.providers.scripted_provider import Part

from .fakes import FakePolicy, WordGuardrail
from .harness import AT_ONCE, Bench, ScriptedTool

TEXTS = ["x" * 900, "bad word", "worst"]
"""Text in calls and results: longer than a result may be, or rejected by guardrails."""

parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Say, st.sampled_from(["", " ", "words", "more words"])),
    st.just(Think("hm")),
    st.builds(Call, st.sampled_from(["look", "bash", "broken", "unknown"]), st.just({})),
    st.just(Call("look", {}, raw="{not json")),
    st.builds(Call, st.sampled_from(["look", "bash"]), st.builds(lambda n: {"n": n}, st.sampled_from(TEXTS))),
    st.just(Call("bash", {}, call_id="same")),
    st.builds(fail, st.sampled_from(["overloaded", "stream_cut", "authentication"])),
)
replies: st.SearchStrategy[Reply] = st.builds(
    lambda content, reason: Reply(tuple(content), reason),
    st.lists(parts, max_size=4),
    st.sampled_from([None, None, None, "end_turn", "max_tokens", "refusal", "model_context_window_exceeded", "other"]),
)
deeds = st.sampled_from(["steer", "steer", "follow_up", "drop", "stop", "abort", "cancel"])
plans = st.dictionaries(st.integers(2, 60), deeds, max_size=5)
"""Actions of the user, by the number of the event after which they happen."""


class PlannedBus(ValidatingBus):
    """Bus that performs planned actions once it has published so many events."""

    def __init__(self, plan: dict[int, str]) -> None:
        super().__init__(whole=False)
        self.plan = dict(plan)
        self.do: Callable[[str], object] = lambda _: None

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        if deed := self.plan.pop(self.last_seq, ""):
            self.do(deed)


def _do(deed: str, loop: AgentLoop, running: "asyncio.Task[object]") -> None:
    match deed:
        case "steer":
            loop.steer("steered")
        case "follow_up":
            loop.follow_up("followed up")
        case "drop":
            for message in loop.waiting_messages[-1:]:
                loop.drop_message(message.id)
        case "stop":
            loop.stop()
        case "abort":
            loop.abort()
        case _:
            running.cancel()


def _answer(request: ApprovalRequest) -> ApprovalDecision:
    """Approve every second question."""
    return ApprovalDecision(decision="approve" if request.call_id[-1] in "02468" else "deny")


async def _run(
    script: list[Reply], plan: dict[int, str], options: ExecutionOptions, guardrails: Sequence[WordGuardrail] = ()
) -> Bench:
    """Perform one run with the plan."""
    bus, provider = PlannedBus(plan), ScriptedProvider(script)
    tools = (
        ScriptedTool("look", read_only=True),
        ScriptedTool("bash"),
        ScriptedTool("broken", error=ValueError("broken")),
    )
    config = AgentLoopConfig(
        provider=provider,
        tools=tools,
        bus=bus,
        policy=FakePolicy(),
        gate=ApprovalGate(approver=_answer),
        options=options,
        guardrails=guardrails,
        retry=AT_ONCE,
        max_steps=6,
    )
    b = Bench(AgentLoop(config), provider, bus)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        bus.do = lambda deed: _do(deed, b.loop, running)
        await asyncio.wait([running])
    return b


def _judge(b: Bench) -> None:
    """Check the invariants of every run."""
    b.judge()
    assert not b.loop.running
    assert [event for event in b.of(Warned) if event.code == "unanswered_tool_calls_repaired"] == []
    queued = [event.message_id for event in b.of(SteeringQueued)]
    dropped = [event.message_id for event in b.of(SteeringDropped)]
    said = [message.id for message in b.loop.history.messages() if isinstance(message, UserMessage)]
    waiting = [message.id for message in b.loop.waiting_messages]
    # A compaction may have replaced a delivered one.
    assert b.of(CompactionEnded) or sorted(queued) == sorted([*dropped, *waiting, *(m for m in said if m in queued)])
    ran = [event.call_id for event in b.of(ToolStarted)]
    assert len(ran) == len(set(ran))


STRATEGIES: list[Strategy] = [Auto(), Auto(), Sequential(), Parallel(), Batched(2)]


guards = st.lists(st.builds(WordGuardrail, st.sampled_from(["tool_input", "tool_output"]), st.booleans()), max_size=2)


@pytest.mark.slow
@given(st.lists(replies, max_size=6), plans, st.sampled_from(STRATEGIES), st.sampled_from(["safe_only", "off"]), guards)
@settings(max_examples=examples(250, 50), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_script_with_any_interruption_leaves_everything_whole(
    tmp_path: Path,
    script: list[Reply],
    plan: dict[int, str],
    strategy: Strategy,
    early: Literal["safe_only", "off"],
    guardrails: list[WordGuardrail],
) -> None:
    options = ExecutionOptions(
        grace=0, strategy=strategy, stream_tools=early, result_limit=500, archive_dir=tmp_path / "kept"
    )
    _judge(asyncio.run(_run(script, plan, options, guardrails)))


PRESETS = ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"]


@pytest.mark.slow
@table("preset", PRESETS)
@table("brake", ["abort", "cancel", "stop"])
async def test_every_preset_can_be_stopped_anywhere(preset: str, brake: str) -> None:
    options = ExecutionOptions.preset(preset, grace=0)
    script = [reply("Look", call("look"), call("bash"), call("broken")), reply("Half", call("bash"), fail()), "Done."]

    for number in range(2, 60, 3):
        b = await _run([*script], {number: brake}, options)
        b.ordered = options.message_events == "ordered"
        b.balanced = options.balanced_start or options.start_events == "upfront" or options.start_unknown
        _judge(b)
