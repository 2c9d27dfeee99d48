"""Guardrails over calls and results: lanes `tool_input` and `tool_output` (C38), as the engine asks for them."""

from collections.abc import Sequence

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import GuardrailTrip
from tui_agent.protocol.events import GuardrailTripped
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Tool, ToolResult

from .event_publisher import EventPublisher
from .guardrails import Guardrail, GuardrailContext, GuardrailKind, decision_of


class AgentToolGuardrails:
    """Asks an agent's guardrails about its calls. One that does not pass denies the call or withholds the result; if it
    is a tripwire, the run ends, too, and none behind it is asked (S4-69)."""

    def __init__(
        self, guardrails: Sequence[Guardrail], history: ConversationHistory, publisher: EventPublisher
    ) -> None:
        self._guardrails = guardrails
        self._history = history
        self._publisher = publisher
        self.looks_at_results = any(guardrail.kind == "tool_output" for guardrail in guardrails)

    async def check_input(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> GuardrailTrip | None:
        """Asks about a call, with the arguments in effect."""
        return await self._first_trip("tool_input", call.model_copy(update={"arguments": arguments}), None)

    async def check_output(self, call: ToolCall, result: ToolResult) -> GuardrailTrip | None:
        """Asks about what a call gave."""
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
                # Whoever asked tells of one; which it will be is open as long as a tripwire may follow.
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
) -> AgentToolGuardrails | None:
    """The lanes of an agent; None where none of its guardrails looks at calls."""
    asked = tuple(guardrail for guardrail in guardrails if guardrail.kind in ("tool_input", "tool_output"))
    return AgentToolGuardrails(asked, history, publisher) if asked else None
