"""S1: permissions, plan mode and streaming, in the preset `permissioned`."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from tests.agent.harness import BenchMaker, ScriptedTool
from tests.execution.kit import FakePolicy, call, calls, run, sleeping
from tests.execution.kit import ScriptedTool as EngineTool
from tests.support.table import table
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions, HookBus, ToolExecutor, ToolRegistry
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule
from tui_agent.protocol.events import (
    MessageEnded,
    PermissionDecided,
    RequestBuilt,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import AssistantMessage, JsonObject
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.providers import Wait, reply
from tui_agent.providers import call as said_call

LITERAL = ExecutionOptions.preset("permissioned")


def policy_of(root: Path, *rules: tuple[str, str], mode: str = "allow") -> PermissionPolicy:
    parsed = [Rule.parse(verdict, text) for verdict, text in rules]  # pyright: ignore[reportArgumentType]
    return PermissionPolicy(root, rules=parsed, mode=PermissionMode(mode))


def decision_of(policy: PermissionPolicy, tool: Tool, **arguments: Any) -> str:
    return policy.check(tool, arguments).decision


def overlapping(spans: dict[str, tuple[float, float]], one: str, other: str) -> bool:
    return spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]


def spans_of(*asked: str, **tools: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the time span of each call on the virtual clock; each takes a second."""
    spans: dict[str, tuple[float, float]] = {}

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        clock = asyncio.get_running_loop().time
        began = clock()
        await asyncio.sleep(1)
        spans[context.call_id] = (began, clock())
        return ToolResult()

    made = [EngineTool(name, work, **settings) for name, settings in tools.items()]
    run_virtual(run(made, calls(*asked), LITERAL))
    return spans


# --- the flow ---------------------------------------------------------------------------------------------------------


async def test_s1_1_s1_4_s1_5_the_flow_is_answer_checks_execution_hooks_results_next_request(bench: BenchMaker) -> None:
    hooks = HookBus()
    hooks.after_tool(lambda question: ToolResult.of_text(f"{question.result.text}, seen by a hook"))
    b = bench([reply(said_call("look"), said_call("act")), "Done."], *both(), hooks=hooks, options=LITERAL)

    await b.loop.run("Go")

    first, second = [place for place, event in enumerate(b.events) if isinstance(event, RequestBuilt)]
    for call_id in ("call_1", "call_2"):
        told = [(event.type, place) for place, event in enumerate(b.events) if getattr(event, "call_id", "") == call_id]
        order = [kind for kind, place in told if first < place < second and kind in FLOW]
        assert order == list(FLOW), call_id
    assert b.sent(1)[-2:] == ["tool_result: look, seen by a hook", "tool_result: act, seen by a hook"]
    assert [event.content[0].text for event in b.of(ToolEnded)] == ["look, seen by a hook", "act, seen by a hook"]
    assert [line.partition(":")[0] for line in b.sent(1)] == ["user", "assistant", *["tool_result"] * 2]


FLOW = ("tool.queued", "permission.decided", "tool.started", "tool.ended", "message.started")


def both() -> tuple[ScriptedTool, ScriptedTool]:
    return ScriptedTool("look", read_only=True), ScriptedTool("act")


async def test_s1_2_each_call_is_checked_for_permission_schema_plan_mode_and_protected_directories(
    tools: dict[str, Tool], root: Path
) -> None:
    async def refusal(policy: PermissionPolicy, name: str, **arguments: Any) -> str:
        ran = await run(list(tools.values()), [call(name, **arguments)], LITERAL, policy=policy)  # pyright: ignore
        return ran.statuses[0]

    denying = policy_of(root, ("deny", "write"))
    assert await refusal(denying, "write", path="c.txt", content="x") == "denied_policy"
    assert await refusal(policy_of(root), "write", path="c.txt") == "invalid"
    assert await refusal(policy_of(root, mode="plan"), "write", path="c.txt", content="x") == "denied_policy"
    assert await refusal(policy_of(root), "write", path=".git/hooks/x", content="x") == "denied_policy"
    assert await refusal(policy_of(root), "write", path="c.txt", content="x") == "ok"


# --- batching ---------------------------------------------------------------------------------------------------------


class Plain(Tool):
    """Tool with no optional declarations."""

    def __init__(self, name: str = "plain") -> None:
        self.spec = ToolSpec(name=name, description="plain", input_schema={"type": "object"})

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text("plain ran")


def test_s1_6_read_only_defaults_to_no_and_concurrency_safe_to_read_only() -> None:
    class Reading(Plain):
        """Tool that only reads."""

        def is_read_only(self, arguments: JsonObject) -> bool:
            return True

    assert (Plain().is_read_only({}), Plain().is_concurrency_safe({})) == (False, False)
    assert (Reading().is_read_only({}), Reading().is_concurrency_safe({})) == (True, True)


def test_s1_7_s1_8_s1_9_safe_calls_run_together_and_mutating_ones_one_at_a_time_in_order() -> None:
    spans = spans_of("act", "look", "write", "look", "act", look={"read_only": True}, act={}, write={})

    assert spans["c1"] == spans["c3"]
    assert spans["c1"] < spans["c0"], "safe calls come first in this preset"
    assert spans["c0"] < spans["c2"] < spans["c4"]
    for one, other in [("c0", "c2"), ("c2", "c4"), ("c0", "c4")]:
        assert not overlapping(spans, one, other)


def test_s1_10_s3_3_safe_and_read_only_are_declared_independently() -> None:
    spans = spans_of("safe", "safe", "alone", "alone", safe={"safe": True}, alone={"read_only": True, "safe": False})

    assert spans["c0"] == spans["c1"]
    assert not overlapping(spans, "c2", "c3")


# --- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hooked", [False, True])
async def test_s1_11_every_call_is_checked_whichever_entry_point_it_came_through(
    bench: BenchMaker, hooked: bool
) -> None:
    streamed, later, rewritten = both()[0], ScriptedTool("act"), ScriptedTool("write")
    hooks = HookBus()
    if hooked:
        hooks.before_tool(lambda question: ModifyArguments({"n": 2}) if question.call.name == "write" else None)
    policy = FakePolicy({"look": "deny", "act": "deny", "write": "deny"})
    answer = reply(said_call("look"), said_call("act"), said_call("write"))
    b = bench([answer, "Done."], streamed, later, rewritten, policy=policy, hooks=hooks)

    await b.loop.run("Go")

    assert (streamed.runs, later.runs, rewritten.runs) == ([], [], [])
    assert [event.decision for event in b.of(PermissionDecided)] == ["deny"] * 3


@pytest.mark.parametrize("place", [".git/config", ".husky/pre-commit", "node_modules/x/index.js", "sub/../.git/HEAD"])
async def test_s1_12_writes_to_protected_directories_are_refused_whatever_the_rules_and_the_mode(
    tools: dict[str, Tool], root: Path, place: str
) -> None:
    policy = policy_of(root, ("allow", "write"), ("allow", "edit"), mode="allow")

    assert decision_of(policy, tools["write"], path=place, content="x") == "deny"
    assert decision_of(policy, tools["edit"], path=place, old_string="a", new_string="b") == "deny"
    assert policy.check(tools["write"], {"path": place, "content": "x"}).source == "floor"


def test_s1_13_reads_of_protected_directories_are_not_refused(tools: dict[str, Tool], root: Path) -> None:
    assert decision_of(policy_of(root, mode="deny"), tools["read"], path=".git/config") == "allow"


def test_s1_14_rules_are_checked_in_order_and_the_first_match_decides(tools: dict[str, Tool], root: Path) -> None:
    allow_first = policy_of(root, ("allow", "write(src/**)"), ("deny", "write"), mode="ask")
    deny_first = policy_of(root, ("deny", "write"), ("allow", "write(src/**)"), mode="ask")

    assert decision_of(allow_first, tools["write"], path="src/a.py", content="") == "allow"
    assert decision_of(allow_first, tools["write"], path="a.py", content="") == "deny"
    assert decision_of(deny_first, tools["write"], path="src/a.py", content="") == "deny"


@pytest.mark.parametrize(
    ("mode", "edit", "bash"),
    [
        ("ask", "ask", "ask"),
        ("allow", "allow", "allow"),
        ("deny", "deny", "deny"),
        ("plan", "deny", "deny"),
        ("accept_edits", "allow", "ask"),
    ],
)
def test_s1_15_s1_16_without_a_matching_rule_each_mode_decides_as_documented(
    tools: dict[str, Tool], root: Path, mode: str, edit: str, bash: str
) -> None:
    policy = policy_of(root, ("allow", "bash(make)"), mode=mode)

    assert policy.check(tools["bash"], {"command": "make install"}).source in ("mode", "floor")
    assert decision_of(policy, tools["edit"], path="a.txt", old_string="a", new_string="b") == edit
    assert decision_of(policy, tools["bash"], command="make install") == bash


@pytest.mark.parametrize("mode", list(PermissionMode))
def test_s1_17_only_an_explicit_denial_blocks_reads(tools: dict[str, Tool], root: Path, mode: PermissionMode) -> None:
    policy = policy_of(root, ("deny", "read(b.txt)"), mode=mode.value)

    assert decision_of(policy, tools["read"], path="a.txt") == "allow"
    assert decision_of(policy, tools["grep"], pattern="alpha", path="a.txt") == "allow"
    assert decision_of(policy, tools["read"], path="b.txt") == "deny"


# --- the streaming executor -------------------------------------------------------------------------------------------


async def test_s1_19_s1_20_a_call_starts_as_soon_as_its_own_arguments_are_complete(bench: BenchMaker) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    look = ScriptedTool("look", read_only=True)
    answer = reply(said_call("look", n=1), "and while it runs", Wait(gate, reached), "the answer goes on.")
    b = bench([answer, "Done."], look, options=LITERAL)
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await reached.wait()
        await look.started.wait()
        before = [event.type for event in b.events if event.type in ("tool.started", "message.ended")]
        gate.set()

    assert before == ["message.ended", "tool.started"], "the user's message, then the call, without the answer"
    assert look.runs == [{"n": 1}]
    started = next(place for place, event in enumerate(b.events) if isinstance(event, ToolStarted))
    ended = next(
        place
        for place, event in enumerate(b.events)
        if isinstance(event, MessageEnded) and isinstance(event.message, AssistantMessage)
    )
    assert started < ended
    assert b.told[started].mono <= b.told[ended].mono


# --- errors -----------------------------------------------------------------------------------------------------------


@table(
    ("verdict", "text"),
    [("deny", "Permission denied: act is deny"), ("allow", "disk full")],
)
async def test_s1_22_s1_23_s3_24_a_denial_or_a_failure_is_the_text_of_the_result_and_the_run_continues(
    bench: BenchMaker, verdict: str, text: str
) -> None:
    act, policy = ScriptedTool("act", error=OSError("disk full")), FakePolicy({"act": verdict})
    b = bench([reply(said_call("act")), "Then I do without."], act, policy=policy, options=LITERAL)

    report = await b.loop.run("Go")

    assert b.sent(1)[-1] == f"tool_result: {text}"
    assert b.results[0].is_error
    assert (report.reason, report.final_text) == ("done", "Then I do without.")


def test_s1_24_a_call_that_exceeds_its_time_limit_is_cancelled_through_its_token_and_answered() -> None:
    heard: list[str] = []

    async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await context.cancellation.wait()
        heard.append(context.cancellation.reason)
        return ToolResult.of_text("half of it")

    tools = [EngineTool("heed", heed, timeout=5.0), EngineTool("deaf", sleeping(1000), timeout=5.0)]
    ran = run_virtual(run(tools, calls("heed", "deaf"), LITERAL))

    assert ran.statuses == ["timeout", "timeout"]
    assert heard == ["Tool heed timed out after 5 s. It may have done a part of its work."]
    assert [message.is_error for message in ran.result.tool_results] == [True, True]


# --- the tool interface -----------------------------------------------------------------------------------------------


async def test_s1_26_a_tool_has_name_description_schema_an_async_function_and_two_declarations() -> None:
    tool = Plain()

    assert (tool.name, tool.spec.description, tool.spec.input_schema) == ("plain", "plain", {"type": "object"})
    assert inspect.iscoroutinefunction(Tool.execute)
    assert Tool.__abstractmethods__ == {"execute"}
    assert (await run([tool], calls("plain"), LITERAL)).texts == ["plain ran"]


async def test_s1_27_tools_live_in_a_registry_and_adding_one_changes_nothing_else() -> None:
    registry = ToolRegistry([Plain()])
    before = registry.specs
    registry.add(Plain("other"))

    ran = await run(registry, calls("other", "plain"), LITERAL)  # pyright: ignore[reportArgumentType]

    assert ran.texts == ["plain ran", "plain ran"]
    assert registry.specs[:1] == before
    assert registry.find("other") is not None


def test_s1_28_tool_executor_and_registry_are_three_separate_parts() -> None:
    parts = [inspect.getfile(part) for part in (Tool, ToolExecutor, ToolRegistry)]

    assert len(set(parts)) == 3
    tool_file, _, registry_file = (Path(part).read_text("utf-8") for part in parts)
    assert "ToolExecutor" not in tool_file
    assert "ToolRegistry" not in tool_file
    assert "ToolExecutor" not in registry_file
