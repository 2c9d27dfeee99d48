"""S3: a streaming executor, in the preset `streaming`."""

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import psutil

import tui_agent
from tests.agent.harness import BenchMaker
from tests.agent.harness import ScriptedTool as AgentTool
from tests.behaviour.event_sequences import event_sequence
from tests.execution.bench import Bench, settled
from tests.execution.kit import Doors, FakePolicy, Ran, ScriptedTool, call, calls, run
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.context import ConversationHistory
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus, execute_tool_calls
from tui_agent.permissions import PermissionMode, PermissionPolicy
from tui_agent.protocol.events import (
    ToolBlockedOn,
    ToolData,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolUpdated,
)
from tui_agent.protocol.hooks import DenyCall
from tui_agent.protocol.messages import AssistantMessage, JsonObject, ToolCall, ToolResultMessage, user_message
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult
from tui_agent.providers import call as said_call
from tui_agent.providers import reply
from tui_agent.providers.request_builder import WireConversation
from tui_agent.ui.state.call_ledger import CallLedger

LITERAL = ExecutionOptions.preset("streaming")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def tools_over(behaviour: Any) -> list[Any]:
    return [ScriptedTool(behaviour=behaviour), ScriptedTool("look", behaviour, read_only=True)]


async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise ValueError("broken")


# --- streaming --------------------------------------------------------------------------------------------------------


async def test_s3_2_callers_can_inspect_the_queue_the_groups_and_the_ordered_results() -> None:
    doors = Doors()
    bench = Bench(tools_over(doors), LITERAL)
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        assert bench.events() == []
        scheduler.submit_all(calls("look", "look", "act", "act"))
        group.create_task(scheduler.finish())
        await doors.until("c0", "c1")
        await settled()
        queued = [(event.call_id, event.index, event.safe) for event in bench.events(ToolQueued)]
        assert queued == [("c0", 0, True), ("c1", 1, True), ("c2", 2, False), ("c3", 3, False)]
        assert bench.started() == ["c0", "c1"]
        assert {event.call_id: event.on for event in bench.events(ToolBlockedOn)} == {"c2": ("c0", "c1"), "c3": ("c2",)}
        doors.open("c0", "c1", "c2", "c3")

    assert [event.index for event in sorted(bench.events(ToolEnded), key=lambda event: event.index)] == [0, 1, 2, 3]


SAFE: dict[str, JsonObject] = {
    "read": {"path": "a.txt"},
    "grep": {"pattern": "x"},
    "glob": {"pattern": "*"},
    "bash": {"command": "git status"},
}
UNSAFE: dict[str, JsonObject] = {
    "write": {"path": "a.txt", "content": ""},
    "edit": {"path": "a.txt", "old_string": "a", "new_string": "b"},
    "bash": {"command": "make install"},
}


def test_s3_4_s3_5_tools_without_side_effects_are_safe_and_others_are_not(tools: dict[str, Tool]) -> None:
    assert [name for name in SAFE if not tools[name].is_concurrency_safe(SAFE[name])] == []
    assert [name for name in UNSAFE if tools[name].is_concurrency_safe(UNSAFE[name])] == []


async def test_s3_6_s3_7_s3_8_safe_calls_run_first_and_together_the_others_in_order_and_results_in_call_order() -> None:
    doors = Doors()
    bench = Bench(tools_over(doors), LITERAL)
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls("act", "look", "act", "look"))
        finishing = group.create_task(scheduler.finish())
        await doors.until("c1", "c3")
        await settled()
        assert doors.arrived == ["c1", "c3"]
        doors.open("c1", "c3")
        await doors.until("c0")
        await settled()
        assert doors.arrived == ["c1", "c3", "c0"]
        doors.open("c0", "c2")

    assert doors.arrived == ["c1", "c3", "c0", "c2"]
    assert [message.call_id for message in finishing.result().tool_results] == ["c0", "c1", "c2", "c3"]


# --- the pipeline of one call -----------------------------------------------------------------------------------------


class RecordedCall:
    """Policy, hooks and a tool that record the order in which they run."""

    def __init__(self, verdict: str = "allow", veto: bool = False) -> None:
        self.heard: list[str] = []
        self.policy = FakePolicy({"act": verdict})
        self.gate = ApprovalGate(approver=self._person)
        self.hooks = HookBus()
        self.hooks.before_tool(self._before)
        self.hooks.after_tool(self._after)
        self._veto = veto
        self.tool = ScriptedTool(behaviour=self._run, schema=SCHEMA)

    async def ran(self, **arguments: Any) -> Ran:
        asked = [call("act", "c0", **arguments)]
        return await run([self.tool], asked, LITERAL, hooks=self.hooks, policy=self.policy, gate=self.gate)

    def _person(self, request: Any) -> ApprovalDecision:
        self.heard.append("dialog")
        return ApprovalDecision(decision="approve")

    def _before(self, question: Any) -> Any:
        self.heard.append("pre")
        return DenyCall("not on a friday") if self._veto else None

    def _after(self, question: Any) -> ToolResult:
        self.heard.append("post")
        return ToolResult.of_text(f"{question.result.text}, formatted")

    async def _run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.heard.append("call")
        context.progress("half")
        return ToolResult.of_text("done")


@table(
    ("verdict", "veto", "path", "heard", "status", "text"),
    [
        ("ask", False, 3, [], "invalid", "path"),
        ("deny", False, "x", [], "denied_policy", "act is deny"),
        ("ask", True, "x", ["dialog", "pre"], "denied_hook", "not on a friday"),
        ("ask", False, "x", ["dialog", "pre", "call", "post"], "ok", "done, formatted"),
        ("allow", False, "x", ["pre", "call", "post"], "ok", "done, formatted"),
    ],
)
async def test_s3_9_s3_10_s3_11_s3_12_s3_13_s3_14_s3_27_validation_permission_hooks_call_hooks_result(
    verdict: str, veto: bool, path: Any, heard: list[str], status: str, text: str
) -> None:
    asked = RecordedCall(verdict, veto=veto)

    ran = await asked.ran(path=path)

    assert asked.heard == heard
    assert ran.statuses == [status]
    assert text in ran.texts[0]
    # Invalid arguments reach neither the policy nor a hook.
    assert (asked.policy.checks == 0) is (status == "invalid")
    assert ran.ended("c0").content == ran.result.tool_results[0].content
    kinds = [one[0] for one in event_sequence(ran.events)]
    assert kinds[:3] == (["Start", "Progress", "End"] if status == "ok" else kinds[:3])


# --- progress ---------------------------------------------------------------------------------------------------------


async def test_s3_15_a_tool_receives_arguments_a_context_its_message_and_services(
    bench: BenchMaker,
) -> None:
    contexts: list[ToolContext] = []
    given: list[JsonObject] = []

    async def keep(arguments: JsonObject, context: ToolContext) -> ToolResult:
        given.append(arguments)
        contexts.append(context)
        context.progress("going on")
        return ToolResult()

    tools = [ScriptedTool(behaviour=keep), ScriptedTool("write", schema=SCHEMA), ScriptedTool("rm")]
    policy = FakePolicy({"write": "ask", "rm": "deny"})
    message = AssistantMessage(content=(call("act", "c0", n=1),), stop_reason="tool_use")
    await execute_tool_calls(tools, message, bus=ValidatingBus(LITERAL), options=LITERAL, policy=policy)

    (context,) = contexts
    assert given == [{"n": 1}]
    assert context.answer == message
    assert context.can_use("act", {}) == "allow"
    assert context.can_use("write", {"path": "x"}) == "ask"
    assert context.can_use("write", {}) == "deny", "its arguments are invalid"
    assert context.can_use("rm", {}) == "deny"
    assert context.can_use("nothing", {}) == "deny"


async def test_s3_15_in_a_run_the_message_is_the_answer_that_contains_the_call(bench: BenchMaker) -> None:
    answers: list[Any] = []

    class Keep(AgentTool):
        """Tool that keeps the answer it was called in."""

        async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
            answers.append(context.answer)
            return await super().execute(arguments, context)

    b = bench([reply("So.", said_call("keep")), "Done."], Keep("keep"), options=LITERAL)
    await b.loop.run("Go")

    assert answers == [message for message in b.loop.history.messages() if isinstance(message, AssistantMessage)][:1]


async def test_s3_16_progress_names_its_call_and_has_a_type() -> None:
    async def tell(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.progress("Reading file...")
        context.output("partial content")
        context.emit("rows", {"count": 3})
        return ToolResult()

    ran = await run([ScriptedTool(behaviour=tell)], calls("act"), LITERAL)

    told = {event.type: event for event in ran.of(ToolProgress) + ran.of(ToolOutput) + ran.of(ToolData)}
    assert {event.call_id for event in told.values()} == {"c0"}
    assert told["tool.progress"].text == "Reading file..."
    assert told["tool.output"].chunk == "partial content"
    assert (told["tool.data"].kind, told["tool.data"].data) == ("rows", {"count": 3})


@table("count", [0, 1, 100])
async def test_s2_26_s3_17_updates_and_progress_may_be_reported_any_number_of_times_beside_the_result(
    count: int,
) -> None:
    given: list[Any] = []

    async def tell(arguments: JsonObject, context: ToolContext) -> Any:
        update: Any = context.on_update
        for number in range(count):
            context.progress(f"step {number}")
            given.append(update(ToolResult.of_text(str(number))))
        return {"data": "the value"}

    ran = await run([ScriptedTool(behaviour=tell)], calls("act"), LITERAL)

    assert given == [None] * count
    assert len(ran.of(ToolProgress)) == count
    assert [event.n for event in ran.of(ToolUpdated)] == list(range(1, count + 1))
    assert ran.texts == ["the value"]


async def test_s3_18_the_screens_fold_shows_elapsed_time_live_output_and_diffs(
    tools: dict[str, Tool], root: Path
) -> None:
    doors = Doors()

    async def tell(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.output("first line\n")
        context.progress("half way")
        return await doors(arguments, context)

    ledger = CallLedger()
    bench = Bench([ScriptedTool(behaviour=tell), tools["write"]], LITERAL)  # pyright: ignore[reportArgumentType]
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all([call("act", "c0"), call("write", "c1", path="new.txt", content="fresh\n")])
        group.create_task(scheduler.finish())
        await doors.until("c0")
        bench.events()
        for envelope in bench.envelopes:
            ledger.apply(envelope)
        act, write = (ledger.calls[place].view for place in (0, 1))
        assert (act.phase, act.live.text, act.live.progress) == ("running", "first line\n", "half way")
        assert act.timing.started_at is not None
        assert act.elapsed_ms(act.timing.started_at + 2) == 2_000
        heard = len(bench.envelopes)
        doors.open("c0")
        await bench.until(ToolEnded, 2)
        for envelope in bench.envelopes[heard:]:
            ledger.apply(envelope)

    assert (act.status, act.outcome.result) == ("ok", "through c0")
    assert "+fresh" in write.diff


# --- mapping results --------------------------------------------------------------------------------------------------


async def test_s3_19_the_result_becomes_a_block_with_the_id_of_its_call() -> None:
    message = AssistantMessage(content=tuple(calls("act", "act")), stop_reason="tool_use")
    ran = await run([ScriptedTool()], message.tool_calls, LITERAL)

    conversation = WireConversation(mark=b"").to_json([user_message("go"), message, *ran.result.tool_results])
    wire = json.loads(b"[" + b"".join(conversation) + b"]")
    blocks = [block for one in wire for block in one["content"] if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in blocks] == ["c0", "c1"]
    assert all("act {}" in json.dumps(block["content"]) for block in blocks)


async def long_result(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult.of_text("\n".join(f"line {number}" for number in range(2_000)))


async def test_s3_20_s3_21_a_long_result_is_truncated_and_whole_in_a_file_that_the_message_names(
    tmp_path: Path,
) -> None:
    options = ExecutionOptions.preset("streaming", result_limit=1_000, archive_dir=tmp_path)

    ran = await run([ScriptedTool(behaviour=long_result)], calls("act"), options)

    assert len(ran.texts[0]) <= 1_000
    assert ran.texts[0].startswith("line 0\n")
    assert ran.texts[0].endswith("line 1999")
    kept = ran.ended("c0").persisted_path
    assert ran.ended("c0").truncated
    assert kept is not None
    assert kept in ran.texts[0]
    assert Path(kept).read_text("utf-8") == (await long_result({}, ToolContext("c", "act"))).text


def test_s3_22_compaction_can_shorten_long_results_later() -> None:
    asked = AssistantMessage(content=tuple(calls("act")), stop_reason="tool_use")
    result = ToolResultMessage(call_id="c0", tool_name="act", content=ToolResult.of_text("x" * 50_000).content)
    history = ConversationHistory([user_message("go"), asked, result, user_message("and now?")])
    before = history.estimated_tokens()

    removed = history.splice_range(1, 3, user_message("The act gave fifty thousand x.", "notice"))

    assert [entry.message for entry in removed] == [asked, result]
    assert history.estimated_tokens() < before / 100
    assert history.sound


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_s3_23_a_validation_error_reaches_the_model_which_can_retry(bench: BenchMaker) -> None:
    class Picky(AgentTool):
        """Tool that requires a path."""

        def __init__(self) -> None:
            super().__init__("picky")
            self.spec = self.spec.model_copy(update={"input_schema": SCHEMA})

    tool = Picky()
    b = bench([reply(said_call("picky")), reply(said_call("picky", path="x")), "Good."], tool, options=LITERAL)
    await b.loop.run("Go")

    assert b.sent(1)[-1].startswith("tool_result: Invalid arguments for picky:\n- arguments: 'path' is a required")
    assert tool.runs == [{"path": "x"}]


def is_running(pid: int) -> bool:
    """Return True if a process is alive and not a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_s3_25_a_timeout_kills_the_calls_process_and_the_result_says_so(
    tools: dict[str, Tool], root: Path
) -> None:
    command = "sleep 1000 & echo $! > pid; wait"
    asked = [call("bash", "c0", command=command, timeout=2.5)]
    policy = PermissionPolicy(root, mode=PermissionMode.ALLOW)

    ran = await run([tools["bash"]], asked, LITERAL, policy=policy)  # pyright: ignore[reportArgumentType]

    assert ran.statuses == ["timeout"]
    assert "timed out after 2.5 s" in ran.texts[0]
    assert not is_running(int((root / "pid").read_text()))


async def test_s3_26_an_exception_is_caught_and_the_result_has_its_traceback() -> None:
    ran = await run([ScriptedTool("fail", fail)], calls("fail"), LITERAL)

    assert ran.texts[0].startswith("broken\n\nTraceback (most recent call last):")
    assert 'raise ValueError("broken")' in ran.texts[0]
    assert ran.result.tool_results[0].is_error


async def test_s3_28_every_error_reaches_the_model_as_a_result() -> None:
    hooks = HookBus()
    hooks.before_tool(lambda question: DenyCall("veto") if question.call.name == "vetoed" else None)
    tools = [*tools_over(fail), ScriptedTool("vetoed"), ScriptedTool("denied"), ScriptedTool("picky", schema=SCHEMA)]
    asked = [*calls("act", "vetoed", "denied", "picky", "nothing"), ToolCall(id="c5", name="act", malformed="cut")]

    ran = await run(tools, asked, LITERAL, hooks=hooks, policy=FakePolicy({"denied": "deny"}))

    assert ran.statuses == ["error", "denied_hook", "denied_policy", "invalid", "not_found", "invalid"]
    assert all(message.is_error and message.text for message in ran.result.tool_results)
    assert [message.call_id for message in ran.result.tool_results] == [one.id for one in asked]


def imports_of(room: str, name: str) -> set[str]:
    """Return the names of the modules that a module imports from, without their packages."""
    tree = ast.parse((Path(tui_agent.__file__).parent / room / f"{name}.py").read_text("utf-8"))
    return {(node.module or "").rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_s3_29_execution_ordering_and_requests_are_separate_parts() -> None:
    executor, scheduler, turn = (
        imports_of("execution", "executor"),
        imports_of("execution/scheduling", "scheduler"),
        imports_of("agent", "turn"),
    )

    assert not executor & {"scheduler", "turn", "attempt", "conflict_order"}
    assert "executor" in scheduler
    assert not scheduler & {"turn", "attempt", "admission", "run_tool"}
    assert "execution" in turn
    assert not turn & {"executor", "scheduler"}
