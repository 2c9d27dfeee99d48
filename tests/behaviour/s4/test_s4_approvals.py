"""Guardrails, approvals and restoring an agent (S4-6, S4-67 … S4-78, S4-82, S4-83)."""

from typing import get_args

import pytest

from tests.agent.fakes import FakeCheckpoints, FakeGuardrail, FakePolicy
from tests.agent.harness import BenchMaker, ScriptedTool, killed_while_asking, revived
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoopSnapshot, GuardrailContext, GuardrailDecision
from tui_agent.agent.guardrails import GuardrailKind, Severity
from tui_agent.context import ContextLayer
from tui_agent.execution import ApprovalGate, ExecutionOptions, call_digest
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, GuardrailTripped, ToolEnded, Warned
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.tool import ToolResult
from tui_agent.providers import call, reply

PASS = GuardrailDecision(passed=True)
TRIP = GuardrailDecision(passed=False, tripwire=True, reason="not that", severity="high")
APPROVE, DENY = ApprovalDecision(decision="approve"), ApprovalDecision(decision="deny", note="not now")


def approver(decision: ApprovalDecision) -> ApprovalGate:
    return ApprovalGate(approver=lambda _: decision)


# --- guardrails -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tripwire", [False, True])
async def test_s4_67_s4_70_a_guardrail_decides_and_its_failed_check_is_an_event(
    bench: BenchMaker, tripwire: bool
) -> None:
    decision = GuardrailDecision(passed=False, tripwire=tripwire, reason="too loud", severity="critical")
    rail = FakeGuardrail("calm", decision)
    b = bench(["Done."], guardrails=[rail])

    await b.loop.run("GO")

    assert set(get_args(GuardrailKind)) >= {"input", "output"}
    assert set(get_args(Severity)) == {"low", "medium", "high", "critical"}
    assert isinstance(rail.asked[0], GuardrailContext)
    assert b.of(GuardrailTripped) == [
        GuardrailTripped(name="calm", lane="input", severity="critical", reason="too loud", halted=tripwire)
    ]


async def test_s4_68_input_guardrails_run_before_each_request_and_output_ones_after_each_answer_in_order(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    order: list[str] = []

    class Noting(FakeGuardrail):
        async def check(self, context: GuardrailContext) -> GuardrailDecision:
            order.append(f"{self.name} {context.step}")
            return PASS

    rails = [Noting("out1", PASS, "output"), Noting("in1", PASS), Noting("in2", PASS), Noting("out2", PASS, "output")]
    b = bench([reply(call("look")), "Done."], ScriptedTool("look"), guardrails=rails, options=literal)

    await b.loop.run("Go")

    assert order == ["in1 0", "in2 0", "out1 0", "out2 0", "in1 1", "in2 1", "out1 1", "out2 1"]


@pytest.mark.parametrize("kind", ["input", "output"])
async def test_s4_69_the_first_failed_tripwire_ends_the_run(bench: BenchMaker, kind: GuardrailKind) -> None:
    soft = FakeGuardrail("soft", GuardrailDecision(passed=False, reason="hm"), kind)
    armed = FakeGuardrail("armed", GuardrailDecision(passed=True, tripwire=True), kind)
    first, later = FakeGuardrail("first", TRIP, kind), FakeGuardrail("later", TRIP, kind)
    tool = ScriptedTool("look")
    b = bench([reply(call("look")), "never"], tool, guardrails=[soft, armed, first, later])

    report = await b.loop.run("Go")

    assert (report.reason, report.final_text) == ("guardrail", "not that")
    assert [len(rail.asked) for rail in (soft, armed, first, later)] == [1, 1, 1, 0]
    assert tool.runs == []
    assert len(b.results) == (kind == "output"), "the calls of a rejected answer have results"


# --- approvals --------------------------------------------------------------------------------------------------------


async def test_s4_71_the_order_of_an_approval(bench: BenchMaker, literal: ExecutionOptions) -> None:
    order: list[str] = []

    class Checkpoints(FakeCheckpoints):
        async def set(self, key: str, snapshot: AgentLoopSnapshot) -> None:
            await super().set(key, snapshot)
            order.append(f"set {key} with {len(snapshot.pending_tool_calls)} behind {b.types()[-1]}")

    def answer(request: ApprovalRequest) -> ApprovalDecision:
        order.append(f"answered, {len(b.loop.pending_calls)} pending")
        return APPROVE

    store = Checkpoints()
    b = bench(
        [reply(call("change")), "Done."],
        ScriptedTool("change"),
        options=literal,
        policy=FakePolicy(),
        gate=ApprovalGate(approver=answer),
        checkpoint=store,
    )

    await b.loop.run("Go")

    key = f"agent-loop:{b.loop.history.id}"
    assert order == [f"set {key} with 1 behind approval.requested", "answered, 1 pending"]
    assert b.loop.pending_calls == ()
    types = b.types()
    assert types.index("approval.requested") < types.index("checkpoint.saved") < types.index("approval.resolved")
    assert types.index("approval.resolved") < types.index("tool.started")
    kept = AgentLoopSnapshot.model_validate_json(store.stored[key])
    assert [request.call_id for request in kept.pending_tool_calls] == ["call_1"]


async def test_s4_72_a_stored_decision_counts_first_and_once_then_the_approver(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    gate = approver(DENY)
    tool = ScriptedTool("change")
    b = bench(
        [reply(call("change")), reply(call("change")), "Done."], tool, options=literal, policy=FakePolicy(), gate=gate
    )
    gate.prefeed("call_1", APPROVE, call_digest("change", {}, schema=tool.spec.input_schema))

    await b.loop.run("Go")

    assert [(event.by, event.decision) for event in b.of(ApprovalResolved)] == [("resume", "approve"), ("user", "deny")]
    assert len(tool.runs) == 1
    (first, _) = b.of(ApprovalRequested)
    again = await gate.ask(ApprovalRequest(**dict(first)), ValidatingBus(whole=False))
    assert (again.by, again.decision.decision) == ("user", "deny"), "it is used up"


@pytest.mark.parametrize(
    ("decision", "status", "text", "runs"),
    [
        (APPROVE, "ok", "change", 1),
        (ApprovalDecision(decision="approve", override_result=ToolResult.of_text("mine")), "overridden", "mine", 0),
        (ApprovalDecision(decision="skip"), "skipped_user", "Skipped by the user.", 0),
        (DENY, "denied_user", "The user denied this call. The user said: not now", 0),
    ],
)
async def test_s4_73_approved_skipped_and_denied_calls_get_their_result(
    bench: BenchMaker, literal: ExecutionOptions, decision: ApprovalDecision, status: str, text: str, runs: int
) -> None:
    tool = ScriptedTool("change")
    b = bench([reply(call("change")), "Done."], tool, options=literal, policy=FakePolicy(), gate=approver(decision))

    await b.loop.run("Go")

    assert b.of(ToolEnded)[0].status == status
    assert (b.results[0].text, len(tool.runs)) == (text, runs)


# --- restoring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [False, True])
async def test_s4_74_a_restored_agent_executes_the_pending_call(
    bench: BenchMaker, literal: ExecutionOptions, preset: bool
) -> None:
    options = literal if preset else ExecutionOptions()
    tool = ScriptedTool("change")
    snapshot, _ = await killed_while_asking(bench, reply(call("change", n=1)), ScriptedTool("change"), options=options)
    again = revived(bench, snapshot, ["Done."], tool, options=options)

    report = await again.loop.resume_with_approval("call_1", APPROVE)

    assert report is not None
    assert (report.reason, tool.runs) == ("done", [{"n": 1}])
    assert again.texts == ["user: Go", "assistant: ", "tool_result: change 1", "assistant: Done."]
    assert again.of(ApprovalResolved)[0].by == "resume"


async def test_s4_75_an_approval_for_an_unknown_call_produces_a_warning(bench: BenchMaker) -> None:
    b = bench(["Done."])

    assert await b.loop.resume_with_approval("call_9", APPROVE) is None

    assert [(warning.code, warning.context) for warning in b.of(Warned)] == [
        ("unknown_pending_call", {"call_id": "call_9"})
    ]


async def test_s4_76_a_snapshot_contains_everything(bench: BenchMaker) -> None:
    settings = {"system": "Who.", "context": "What.", "session_id": "s"}
    snapshot, before = await killed_while_asking(bench, reply(call("change", n=1)), ScriptedTool("change"), **settings)

    assert (snapshot.version, snapshot.system, snapshot.context) == (1, "Who.", "What.")
    assert snapshot.history.id == "s"
    assert [entry.message.text for entry in snapshot.history.entries] == ["Go", ""]
    assert (snapshot.tool_names, snapshot.reports, snapshot.metadata) == (("change",), (), {})
    assert snapshot.created_at <= snapshot.saved_at
    assert [(request.call_id, request.tool, request.args) for request in snapshot.pending_tool_calls] == [
        ("call_1", "change", {"n": 1})
    ]
    later = before.loop.dump()
    assert [report.reason for report in later.reports] == ["aborted"]
    assert later.pending_tool_calls == ()


async def test_s4_6_s4_77_restoring_recovers_all_of_it(bench: BenchMaker) -> None:
    first = bench(["One."], ScriptedTool("change"), system="Who.", context="What.", session_id="s")
    await first.loop.run("Go")
    first.loop.follow_up("And then?")
    snapshot = first.loop.dump().model_copy(update={"metadata": {"kept": True}})

    again = revived(
        bench, AgentLoopSnapshot.model_validate_json(snapshot.model_dump_json()), ["Done."], ScriptedTool("change")
    )

    copy = again.loop.dump()
    assert copy.model_copy(update={"saved_at": snapshot.saved_at}) == snapshot
    assert [report.final_text for report in again.loop.reports] == ["One."]
    assert again.texts == ["user: Go", "assistant: One."]
    await again.loop.run()
    assert again.texts[2:] == ["user: And then?", "assistant: Done."]


async def test_s4_78_removed_and_added_tools_produce_a_warning(bench: BenchMaker) -> None:
    first = bench([], ScriptedTool("look"), ScriptedTool("change"))

    again = revived(bench, first.loop.dump(), ["Done."], ScriptedTool("look"), ScriptedTool("new"))

    assert [(warning.code, warning.context["tool"]) for warning in again.of(Warned)] == [
        ("tool_removed", "change"),
        ("tool_added", "new"),
    ]


async def test_s4_82_a_tool_can_be_added_to_a_live_agent(bench: BenchMaker) -> None:
    late = ScriptedTool("late")
    b = bench(["One.", reply(call("late", n=1)), "Two."])
    await b.loop.run("Go")

    b.loop.add_tool(late)
    await b.loop.run("Again")

    assert [[spec.name for spec in request.tools] for request in b.provider.requests] == [[], ["late"], ["late"]]
    assert late.runs == [{"n": 1}]


async def test_s4_83_guardrails_policies_and_layers_may_be_custom(bench: BenchMaker) -> None:
    rail = FakeGuardrail("own", PASS)
    b = bench(
        [reply(call("look")), "Done."], ScriptedTool("look"), guardrails=[rail], policy=FakePolicy(PermissionMode.DENY)
    )

    b.loop.history.registry.set(ContextLayer(name="plugin", content="From a plugin.", priority=70, owner="plugin"))
    await b.loop.run("Go")

    assert "From a plugin." in b.provider.requests[0].system[0].text
    assert len(rail.asked) == 2
    assert b.of(ToolEnded)[0].status == "denied_policy"
    kinds = {event.type.split(".")[0] for event in b.events}
    assert {"agent", "run", "step", "tool", "message", "request", "usage"} <= kinds, "one bus delivers all of them"
