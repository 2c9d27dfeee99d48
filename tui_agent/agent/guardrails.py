"""Guardrails: checks of requests, answers, calls and results that may end a run (S4-67 … S4-70)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import GuardrailTrip, ToolGuardrails
from tui_agent.execution.contained_calls import Crash, asked, kind_of
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import AgentEvent, GuardrailTripped
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, ToolCall
from tui_agent.protocol.tool import Tool, ToolResult
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_flag,
    expect_kind,
    expect_members,
    refuse_unknown_fields,
    shown_value,
)

from .event_publisher import EventPublisher

Severity = Literal["low", "medium", "high", "critical"]
GuardrailKind = Literal["input", "output", "tool_input", "tool_output"]


@dataclass(frozen=True, slots=True)
class GuardrailContext:
    """The data that a guardrail checks."""

    kind: GuardrailKind
    messages: Sequence[Message]
    """The conversation; for `output`, the answer is its last message."""
    system: str
    answer: AssistantMessage | None
    """The answer, for `output`."""
    step: int
    call: ToolCall | None = None
    """For `tool_input` and `tool_output`: the call, with the arguments in effect."""
    result: ToolResult | None = None
    """The result of the call, for `tool_output`."""


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class GuardrailDecision:
    """A guardrail's answer. Only one that does not pass and is a tripwire ends the run (S4-69); one that does not pass
    denies the call or withholds the result it looked at, tripwire or not.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind: a text such as "no" would count as passed.
    """

    passed: bool
    tripwire: bool = False
    reason: str = ""
    severity: Severity = "medium"

    def __post_init__(self) -> None:
        expect_flag("GuardrailDecision.passed", self.passed)
        expect_flag("GuardrailDecision.tripwire", self.tripwire)
        expect_kind("GuardrailDecision.reason", self.reason, str, "text")
        expect_choice("GuardrailDecision.severity", self.severity, get_args(Severity))


class Guardrail(Protocol):
    """One check. Guardrails of a kind are called in the order of the configuration."""

    @property
    def name(self) -> str:
        """Its name in events."""
        ...

    @property
    def kind(self) -> GuardrailKind:
        """`input`: before each request; `output`: after each answer, before its calls are awaited (S4-68);
        `tool_input`: before a call is judged; `tool_output`: before its result is shown to anyone."""
        ...

    async def check(self, context: GuardrailContext) -> GuardrailDecision:
        """Check the context. An exception counts as a tripwire: data that could not be checked does not pass."""
        ...


def expect_guardrail(name: str, guardrail: Guardrail) -> None:
    """Refuse an object that is not a guardrail, or that would never be asked because its kind is unknown.

    Args:
        name: the field, for the error.
        guardrail: the object to check.

    Raises:
        ConfigurationError: it lacks `name`, `kind` or `check`, or its kind is not a `GuardrailKind`.
    """
    expect_members(name, guardrail, ("name", "kind", "check"), "a guardrail")
    kinds = get_args(GuardrailKind)
    if guardrail.kind not in kinds:
        shown = shown_value(guardrail.kind)
        raise ConfigurationError(
            f"{name}: guardrail {guardrail.name} has no kind {shown}; there are {', '.join(kinds)}"
        )


async def first_trip(
    guardrails: Iterable[Guardrail], context: GuardrailContext, publish: Callable[[AgentEvent], None]
) -> str | None:
    """Call the guardrails of the context's kind in order; return the reason of the first tripwire, if any."""
    for guardrail in guardrails:
        if guardrail.kind != context.kind:
            continue
        decision = await decision_of(guardrail, context)
        if decision.passed:
            continue
        publish(
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
    """Return a guardrail's decision. A failure is a tripwire, and a decision that does not pass has a reason."""
    answer = await asked(guardrail.check, context, timeout=None)
    if isinstance(answer, GuardrailDecision):
        no_word = not answer.passed and not answer.reason
        return replace(answer, reason=f"guardrail {guardrail.name} did not pass") if no_word else answer
    why = f"answered a {type(answer).__name__}"
    if isinstance(answer, Crash):
        # The text of the exception may contain the result that must be withheld.
        why = f"failed: {kind_of(answer) if context.kind == 'tool_output' else answer.text}"
    reason = f"guardrail {guardrail.name} {why}"
    return GuardrailDecision(passed=False, tripwire=True, reason=reason, severity="critical")


class AgentToolGuardrails:
    """Checks an agent's calls with its guardrails. One that does not pass denies the call or withholds the result; a
    tripwire also ends the run, and no later guardrail is called (S4-69)."""

    def __init__(
        self, guardrails: Sequence[Guardrail], history: ConversationHistory, publisher: EventPublisher
    ) -> None:
        self._guardrails = guardrails
        self._history = history
        self._publisher = publisher

    async def check_input(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> GuardrailTrip | None:
        """Check a call, with the arguments in effect."""
        return await self._first_trip("tool_input", call.model_copy(update={"arguments": arguments}), None)

    async def check_output(self, call: ToolCall, result: ToolResult) -> GuardrailTrip | None:
        """Check the result of a call."""
        return await self._first_trip("tool_output", call, result)

    async def _first_trip(self, kind: GuardrailKind, call: ToolCall, result: ToolResult | None) -> GuardrailTrip | None:
        context = GuardrailContext(
            kind,
            self._history.messages(),
            self._history.system,
            answer=None,
            step=self._publisher.origin.step or 0,
            call=call,
            result=result,
        )
        verdict: GuardrailTrip | None = None
        for guardrail in self._guardrails:
            if guardrail.kind != kind:
                continue
            decision = await decision_of(guardrail, context)
            if decision.passed:
                continue
            trip = GuardrailTrip(guardrail.name, decision.reason, decision.severity, halts=decision.tripwire)
            if verdict is not None:
                # The caller publishes the verdict itself, so only the other trip is published here.
                self._publish(verdict if trip.halts else trip, kind)
            if trip.halts:
                return trip
            verdict = verdict or trip
        return verdict

    def _publish(self, trip: GuardrailTrip, lane: GuardrailKind) -> None:
        told = GuardrailTripped(
            name=trip.name, lane=lane, severity=trip.severity, reason=trip.reason, halted=trip.halts
        )
        self._publisher.publish(told)


def tool_lanes(
    guardrails: Sequence[Guardrail], history: ConversationHistory, publisher: EventPublisher
) -> ToolGuardrails | None:
    """Return the guardrails for calls and results; None if the agent has none."""
    asked = tuple(guardrail for guardrail in guardrails if guardrail.kind in ("tool_input", "tool_output"))
    if not asked:
        return None
    checks = AgentToolGuardrails(asked, history, publisher)
    looks_at_results = any(guardrail.kind == "tool_output" for guardrail in asked)
    return ToolGuardrails(checks.check_input, checks.check_output if looks_at_results else None)
