"""Checks that may end a run: on what goes to the model, on what comes back, and on calls (S4-67 … S4-70, C38)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from tui_agent.execution.foreign_code import Crash, contained
from tui_agent.protocol.events import AgentEvent, GuardrailTripped
from tui_agent.protocol.messages import AssistantMessage, Message, ToolCall
from tui_agent.protocol.tool import ToolResult

Severity = Literal["low", "medium", "high", "critical"]
GuardrailKind = Literal["input", "output", "tool_input", "tool_output"]


@dataclass(frozen=True, slots=True)
class GuardrailContext:
    """What a guardrail looks at."""

    kind: GuardrailKind
    messages: Sequence[Message]
    """The conversation; for `output`, the answer is its last message."""
    system: str
    answer: AssistantMessage | None
    """What the model said, for `output`."""
    step: int
    call: ToolCall | None = None
    """For `tool_input` and `tool_output`: the call, with the arguments in effect."""
    result: ToolResult | None = None
    """What the call gave, for `tool_output`."""


@dataclass(frozen=True, slots=True)
class GuardrailDecision:
    """A guardrail's answer. Only one that does not pass and is a tripwire ends the run (S4-69); one that does not pass
    denies the call or withholds the result it looked at, tripwire or not."""

    passed: bool
    tripwire: bool = False
    reason: str = ""
    severity: Severity = "medium"


class Guardrail(Protocol):
    """One check. Those of a kind are asked in the order they were given."""

    @property
    def name(self) -> str:
        """What events call it."""
        ...

    @property
    def kind(self) -> GuardrailKind:
        """`input`: before each request; `output`: after each answer, before its calls are awaited (S4-68);
        `tool_input`: before a call is judged; `tool_output`: before anybody sees its result (C38)."""
        ...

    async def check(self, context: GuardrailContext) -> GuardrailDecision:
        """Judges. One that raises counts as tripped: what could not be checked does not pass."""
        ...


async def first_trip(
    guardrails: Iterable[Guardrail], context: GuardrailContext, tell: Callable[[AgentEvent], None]
) -> str | None:
    """Asks the guardrails of the context's kind; the reason of the first that trips, after which none is asked."""
    for guardrail in guardrails:
        if guardrail.kind != context.kind:
            continue
        decision = await decision_of(guardrail, context)
        if decision.passed:
            continue
        tell(
            GuardrailTripped(
                name=guardrail.name,
                lane=context.kind,
                severity=decision.severity,
                reason=decision.reason,
                halted=decision.tripwire,
            ),
        )
        if decision.tripwire:
            return decision.reason
    return None


async def decision_of(guardrail: Guardrail, context: GuardrailContext) -> GuardrailDecision:
    """A guardrail's answer; one that does not pass has a reason, and one that fails does not pass."""
    answer = await contained(guardrail.check(context))
    if isinstance(answer, Crash):
        reason = f"guardrail {guardrail.name} failed: {answer.text}"
        return GuardrailDecision(passed=False, tripwire=True, reason=reason, severity="critical")
    if answer.passed or answer.reason:
        return answer
    return replace(answer, reason=f"guardrail {guardrail.name} did not pass")
