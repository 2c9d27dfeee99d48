"""A call that starts while the answer streams is refused for the same reasons and with the same messages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.execution.kit import Behaviour, FakePolicy, ScriptedTool, call
from tests.execution.stage_kit import FakeGuardrails
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    EarlyExecutions,
    ExecutionOptions,
    HookBus,
    ToolExecutor,
    ToolScheduler,
)
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import AgentEvent
from tui_agent.protocol.hooks import ApproveCall, DenyCall, ModifyArguments, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.tool import ToolContext, ToolResult

SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}

Submit = Callable[[ToolScheduler, ToolCall], Awaitable[None]]


async def early(scheduler: ToolScheduler, asked: ToolCall) -> None:
    """Submit the call while the answer streams, with time to end before the message is complete."""
    scheduler.submit(asked)
    await asyncio.sleep(100)


async def late(scheduler: ToolScheduler, asked: ToolCall) -> None:
    """Submit the call with the whole message."""
    scheduler.submit_all([asked])


async def never(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(1000)
    return ToolResult.of_text("late")


async def say_bad(arguments: JsonObject, context: ToolContext) -> ToolResult:
    return ToolResult.of_text("a bad word")


def asked_by(answer: Any) -> HookBus:
    hooks = HookBus(timeout=5.0)
    hooks.before_tool(lambda question: answer)
    return hooks


def failing() -> HookBus:
    hooks = HookBus()

    @hooks.before_tool
    def broken(question: Any) -> None:
        raise ValueError("broken")

    return hooks


def gate(decision: str) -> ApprovalGate:
    return ApprovalGate(approver=lambda request: ApprovalDecision.model_validate({"decision": decision}))


REFUSALS: dict[str, tuple[str, dict[str, Any]]] = {
    "arguments that are no JSON": ("invalid", {"asked": call("look").model_copy(update={"malformed": "no JSON"})}),
    "arguments that do not fit": ("invalid", {"asked": call("look", n="one")}),
    "no such tool": ("not_found", {"asked": call("lok")}),
    "cut off": ("output_limit", {"asked": call("look").model_copy(update={"cut": True})}),
    "the floor": ("denied_policy", {"policy": FakePolicy(floor_denies={"look"})}),
    "a rule": ("denied_policy", {"policy": FakePolicy({"look": "deny"})}),
    "no approver": ("denied_policy", {"policy": FakePolicy({"look": "ask"})}),
    "the user's denial": ("denied_user", {"policy": FakePolicy({"look": "ask"}), "gate": gate("deny")}),
    "the user's skip": ("skipped_user", {"policy": FakePolicy({"look": "ask"}), "gate": gate("skip")}),
    "a guardrail": ("denied_guardrail", {"asked": call("look", what="bad"), "guardrails": FakeGuardrails()}),
    "a broken guardrail": ("denied_guardrail", {"asked": call("look", what="worst"), "guardrails": FakeGuardrails()}),
    "a hook's no": ("denied_hook", {"hooks": asked_by(DenyCall("no"))}),
    "a hook that fails": ("denied_hook", {"hooks": failing()}),
    "a hook's skip": ("skipped_hook", {"hooks": asked_by(SkipCall())}),
    "a hook's own result": ("overridden", {"hooks": asked_by(OverrideResult(ToolResult.of_text("known")))}),
    "a rewriting that does not fit": ("denied_hook", {"hooks": asked_by(ModifyArguments({"n": "one"}))}),
    "a rewriting the floor denies": (
        "denied_policy",
        {"hooks": asked_by(ModifyArguments({"forbidden": 1})), "policy": FakePolicy()},
    ),
    "a rewriting a guardrail refuses": (
        "denied_guardrail",
        {"hooks": asked_by(ModifyArguments({"what": "bad"})), "guardrails": FakeGuardrails()},
    ),
    "a rewriting for no tool": (
        "not_found",
        {
            "asked": call("nothing"),
            "hooks": asked_by(ModifyArguments({"what": "b"})),
            "options": ExecutionOptions(pre_hook_position="before_lookup"),
        },
    ),
    "the floor, before a hook's skip": (
        "denied_policy",
        {"policy": FakePolicy(floor_denies={"look"}), "hooks": asked_by(SkipCall(ToolResult()))},
    ),
    "the floor, before a hook's own result": (
        "denied_policy",
        {"policy": FakePolicy(floor_denies={"look"}), "hooks": asked_by(OverrideResult(ToolResult()))},
    ),
    "a rule, although a trusted hook approves": (
        "denied_policy",
        {
            "policy": FakePolicy({"look": "deny"}),
            "hooks": asked_by(ApproveCall()),
            "options": ExecutionOptions(hook_may_approve=True),
        },
    ),
    "a result that takes too long": ("timeout", {"behaviour": never}),
    "a result that a guardrail withholds": ("withheld", {"behaviour": say_bad, "guardrails": FakeGuardrails()}),
}


async def outcome(
    submit: Submit,
    behaviour: Behaviour | None = None,
    asked: ToolCall | None = None,
    options: ExecutionOptions | None = None,
    **settings: Any,
) -> tuple[str, str, list[str]]:
    """Return status and text of one call of a read-only tool, and the calls that ran."""
    look = ScriptedTool("look", *([behaviour] if behaviour else []), read_only=True, schema=SCHEMA)
    options = options or ExecutionOptions(tool_timeout=3.0, grace=1.0)
    executor = ToolExecutor([look], bus=ValidatingBus(options), options=options, **settings)
    async with EarlyExecutions(CancellationToken()) as kept, ToolScheduler(executor, early=kept) as scheduler:
        await submit(scheduler, asked or call("look"))
        result = await scheduler.finish()
    return result.reports[0].status, result.tool_results[0].text, look.calls


@pytest.mark.parametrize("refusal", REFUSALS)
def test_every_refusal_is_the_same_while_the_answer_streams(refusal: str) -> None:
    status, settings = REFUSALS[refusal]

    while_talking = run_virtual(outcome(early, **settings))

    assert while_talking == run_virtual(outcome(late, **settings))
    # The last two have run when their result is lost.
    assert (while_talking[0], while_talking[2]) == (status, ["c"] if "behaviour" in settings else [])


class DeafBus(ValidatingBus):
    """Bus that fails on one type of event."""

    def __init__(self, kind: str) -> None:
        super().__init__(whole=False)
        self._kind = kind

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        if event.type == self._kind:
            raise OSError("event bus is broken")


@pytest.mark.parametrize("submit", [early, late])
@pytest.mark.parametrize("kind", ["hook.started", "hook.ended", "permission.decided", "tool.started"])
def test_a_denial_counts_although_its_event_fails(kind: str, submit: Submit) -> None:
    """The call does not run if anything breaks while its decision is published."""
    act = ScriptedTool("look", read_only=True)
    decides = {"hooks": asked_by(None), "policy": FakePolicy({"look": "allow" if kind == "tool.started" else "deny"})}

    async def work() -> None:
        executor = ToolExecutor([act], bus=DeafBus(kind), **decides)
        async with ToolScheduler(executor) as scheduler:
            await submit(scheduler, call("look"))
            await scheduler.finish()

    run_virtual(work())

    assert act.calls == []


@pytest.mark.parametrize("changed", [False, True], ids=["same mode", "mode changed"])
async def test_a_call_that_starts_at_once_is_judged_once_in_one_mode(*, changed: bool) -> None:
    policy = FakePolicy()
    executor = ToolExecutor([ScriptedTool(read_only=True)], bus=ValidatingBus(), policy=policy)

    async with ToolScheduler(executor) as scheduler:
        scheduler.submit(call())
        if changed:
            policy.set_mode(PermissionMode.DENY)
            policy.verdicts = {call().name: "deny"}
        result = (await scheduler.finish()).tool_results[0]

    assert (result.is_error, policy.checks) == (changed, 2 if changed else 1)
