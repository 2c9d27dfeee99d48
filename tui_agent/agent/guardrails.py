"""Checks that may end a run: on what goes to the model, and on what comes back (S4-67 … S4-70)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tui_agent.execution.foreign_code import Crash, contained
from tui_agent.protocol.events import AgentEvent, GuardrailTripped
from tui_agent.protocol.messages import AssistantMessage, Message

Severity = Literal["low", "medium", "high", "critical"]
GuardrailKind = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class GuardrailContext:
    """What a guardrail looks at."""

    kind: GuardrailKind
    messages: Sequence[Message]
    """The conversation; for `output`, the answer is its last message."""
    system: str
    answer: AssistantMessage | None
    """What the model said; None for `input`."""
    step: int


@dataclass(frozen=True, slots=True)
class GuardrailDecision:
    """A guardrail's answer. Only one that does not pass and is a tripwire ends the run (S4-69)."""

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
        """`input`: before each request; `output`: after each answer, before its calls are awaited (S4-68)."""
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
        decision = await _ask(guardrail, context)
        if decision.passed:
            continue
        reason = decision.reason or f"guardrail {guardrail.name} did not pass"
        tell(
            GuardrailTripped(
                name=guardrail.name,
                lane=context.kind,
                severity=decision.severity,
                reason=reason,
                halted=decision.tripwire,
            ),
        )
        if decision.tripwire:
            return reason
    return None


async def _ask(guardrail: Guardrail, context: GuardrailContext) -> GuardrailDecision:
    answer = await contained(guardrail.check(context))
    if isinstance(answer, Crash):
        reason = f"guardrail {guardrail.name} failed: {answer.text}"
        return GuardrailDecision(passed=False, tripwire=True, reason=reason, severity="critical")
    return answer
