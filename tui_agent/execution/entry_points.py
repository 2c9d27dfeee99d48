"""Function that runs the tool calls of one message without an agent."""

from collections.abc import Iterable

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import AssistantMessage, ToolCall
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.protocol.value_checks import expect_function, expect_items, expect_kind

from .approval_gate import ApprovalGate
from .execution_services import BeforeEffects
from .executor import ToolExecutor
from .hook_bus import HookBus
from .options import ExecutionOptions
from .scheduling.call_batch import ToolExecutionResult
from .scheduling.concurrency_gate import SteeringGetter
from .scheduling.scheduler import ToolScheduler
from .tool_registry import ToolLike, ToolRegistry


async def execute_tool_calls(
    tools: ToolRegistry | Iterable[ToolLike] | None,
    calls: Iterable[ToolCall] | AssistantMessage,
    *,
    bus: Publisher,
    cancellation: CancellationToken | None = None,
    get_steering: SteeringGetter | None = None,
    options: ExecutionOptions | None = None,
    hooks: HookBus | None = None,
    policy: PermissionChecker | None = None,
    gate: ApprovalGate | None = None,
    step: int = 0,
    before_effects: BeforeEffects | None = None,
) -> ToolExecutionResult:
    """Run all calls of one message and wait for all of them (S0-1, S2-1).

    Args:
        tools: tools and functions (see `as_tool`); None: no tools, so that every call is answered as not found
            (S2-16).
        calls: the calls, or the message that holds them (S2-3).
        bus: publishes every event.
        cancellation: token of the run; set, it stops every call, and the calls are answered as cancelled.
        get_steering: a function, plain or async, that returns waiting messages: one or several, each a text or a
            `UserMessage`. Called only at the boundaries of the steering mode.
        options: how calls run.
        hooks: asked about every call.
        policy: judges every call; None: no permission system, so that every call counts as allowed.
        gate: asks the user; None: no one can answer, so that a call that needs approval is denied.
        step: number of the step, for tools.
        before_effects: awaited before each call that may change something is executed.

    Returns:
        One result for each call, in call order, whatever happened (S0-3); empty without calls (S0-2). A tool's failure
        never propagates (S0-37). If the task is cancelled, every call is answered and its events are published before
        `CancelledError` is raised.

    Raises:
        ConfigurationError: two tools have the same name, or two calls the same id, or an argument is of the wrong kind.
    """
    expect_function("get_steering", get_steering, "a function (plain or async) or None", optional=True)
    if not isinstance(calls, AssistantMessage):
        calls = expect_items("calls", calls, _expect_call, "a list of ToolCall, or the AssistantMessage with them")
    executor = ToolExecutor(
        tools, bus=bus, options=options, hooks=hooks, policy=policy, gate=gate, before_effects=before_effects
    )
    async with ToolScheduler(executor, cancellation=cancellation, get_steering=get_steering, step=step) as scheduler:
        if not isinstance(calls, AssistantMessage):
            scheduler.submit_all(calls)
            return await scheduler.finish()
        scheduler.submit_all(calls.tool_calls)
        return await scheduler.finish(answer=calls)


def _expect_call(name: str, call: object) -> None:
    expect_kind(name, call, ToolCall, "a ToolCall")
