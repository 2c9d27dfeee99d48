"""An unanswered question holds up the calls that conflict with its call, and no others.

Random messages run on a virtual clock. A simulation that knows nothing but the definition of a conflict says when each
call starts and ends.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execution.bench import Bench
from tests.execution.kit import FakePolicy, ScriptedTool, Steering, judge
from tests.support.examples import examples
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.execution.options import PreHookPosition
from tui_agent.execution.scheduling.conflict_order import conflict
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

PATHS = ("/a", "/b", "/d", "/d/x")


@dataclass(eq=False)
class Planned:
    """One call of a message, and what the user says about it."""

    kind: str
    path: str = "/a"
    more: str | None = None
    """A second path."""
    lasts: int = 1
    """Whole seconds."""
    answer: str | None = None
    """None: it is allowed without a question."""
    answered_at: int = 1
    """Whole seconds; the answer comes a quarter of a second later, so that its order with the message is clear."""

    index: int = 0
    has_turn: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}_asked" if self.answer else self.kind

    @property
    def safe(self) -> bool:
        return self.kind in ("read", "search", "fetch", "lone")

    @property
    def alone(self) -> bool:
        return self.kind == "lone"

    @property
    def arguments(self) -> JsonObject:
        return {"paths": [self.path] if self.more is None else [self.path, self.more], "lasts": self.lasts}

    def accesses(self) -> Accesses | None:
        return accesses_of(self.kind, self.arguments)


def accesses_of(kind: str, arguments: JsonObject) -> Accesses | None:
    paths = frozenset(map(Path, arguments["paths"]))
    kinds = {"read": Accesses(reads=paths), "search": Accesses(searches=paths), "write": Accesses(writes=paths)}
    return kinds.get(kind)


@dataclass
class Course:
    """Start times and ends of the calls, by index."""

    started: dict[int, float]
    ended: dict[int, str]


def simulate(plan: list[Planned], steered_at: float | None) -> Course:
    """Run the calls by definition: each starts once it is allowed and no earlier call that conflicts is left."""
    course = Course({}, {})
    questions = {call.index for call in plan if call.answer}
    times = {0.0} | {call.answered_at + 0.25 for call in plan} | ({steered_at} if steered_at is not None else set())
    while times:
        now = min(times)
        times.remove(now)
        for call in plan:
            if call.answered_at + 0.25 == now and call.index in questions:
                questions.remove(call.index)
                if call.answer == "deny":
                    course.ended.setdefault(call.index, "denied_user")
            if call.index in course.started and course.started[call.index] + call.lasts == now:
                course.ended[call.index] = "ok"
            yields = not call.safe or call.index in questions
            if now == steered_at and call.index not in course.started and yields:
                course.ended.setdefault(call.index, "skipped_steering")
        for call in plan:
            left = [other for other in plan[: call.index] if other.index not in course.ended]
            is_waiting = not {call.index} & (questions | course.started.keys() | course.ended.keys())
            if is_waiting and not any(conflict(other, call) for other in left):
                course.started[call.index] = now
                times.add(now + call.lasts)
    return course


async def play(plan: list[Planned], steered_at: float | None, options: ExecutionOptions, *, hooked: bool) -> Course:
    """Run the calls by the engine."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    started: dict[int, float] = {}
    gate, steering, hooks = ApprovalGate(interactive=True), Steering(), HookBus()
    if hooked:
        hooks.before_tool(lambda question: None)

    async def behave(arguments: JsonObject, context: ToolContext) -> ToolResult:
        started[int(context.call_id)] = loop.time() - began
        await asyncio.sleep(arguments["lasts"])
        return ToolResult()

    def answer(call: Planned) -> None:
        for request in gate.pending:
            if request.call_id == str(call.index):
                gate.resolve(request.request_id, ApprovalDecision.model_validate({"decision": call.answer}))

    def steer() -> None:
        steering.say()
        bench.scheduler.notify_steering()

    tools: dict[str, ScriptedTool] = {}
    for call in plan:
        traits: dict[str, Any] = {"read_only": call.safe, "alone": call.alone}
        tools[call.name] = ScriptedTool(call.name, behave, paths=partial(accesses_of, call.kind), **traits)
    policy = FakePolicy({name: "ask" for name in tools if name.endswith("_asked")})
    asked = [ToolCall(id=str(call.index), name=call.name, arguments=call.arguments) for call in plan]
    bench = Bench(list(tools.values()), options, get_steering=steering, gate=gate, hooks=hooks, policy=policy)
    async with bench.scheduler as scheduler:
        scheduler.submit_all(asked)
        for call in plan:
            if call.answer:
                loop.call_at(began + call.answered_at + 0.25, answer, call)
        if steered_at is not None:
            loop.call_at(began + steered_at, steer)
        ran = await scheduler.finish()
    bench.bus.judge()
    judge(asked, ran)
    return Course(started, {int(report.call_id): report.status for report in ran.reports})


plans = st.lists(
    st.builds(
        Planned,
        st.sampled_from(["read", "search", "write", "write", "shell", "fetch", "lone"]),
        st.sampled_from(PATHS),
        st.none() | st.sampled_from(PATHS),
        st.integers(1, 4),
        st.sampled_from([None, "approve", "approve", "deny"]),
        st.integers(1, 9),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=examples(400))
@given(plans, st.none() | st.integers(0, 12), st.booleans(), st.sampled_from(["before_permission", "after_permission"]))
def test_a_question_holds_up_exactly_the_calls_that_conflict(
    plan: list[Planned], steered_at: int | None, hooked: bool, position: PreHookPosition
) -> None:
    for index, call in enumerate(plan):
        call.index = index
    moment = None if steered_at is None else steered_at + 0.5
    options = ExecutionOptions(max_concurrency=None, pre_hook_position=position)

    course = run_virtual(play(plan, moment, options, hooked=hooked))

    assert course == simulate(plan, moment)
