"""A call and an engine around it, for tests of single stages."""

from typing import Any

from tests.execution.kit import FakePolicy, ScriptedTool, call
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import ApprovalGate, BeforeEffects, ExecutionOptions, GuardrailTrip, HookBus, ToolExecutor
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Tool, ToolResult


class FreeTurns:
    """Turns that are granted at once."""

    def settle(self, state: CallState) -> None: ...

    def change(self, state: CallState) -> None: ...

    def is_next(self, state: CallState) -> bool:
        return True

    async def before_question(self, state: CallState) -> Outcome | None:
        return None

    async def take(self, state: CallState) -> Outcome | None:
        return None

    async def until_complete(self) -> None: ...

    def may_settle(self, state: CallState) -> bool:
        return True

    async def take_settling(self, state: CallState) -> None: ...

    def give_back(self, state: CallState) -> None: ...


class FakeGuardrails:
    """Guardrails that trip on the bad word and raise on the worst one."""

    def __init__(self, bad: str = "bad", *, halts: bool = False) -> None:
        self._bad = bad
        self._halts = halts

    async def check_input(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> GuardrailTrip | None:
        return self._look(str(arguments))

    async def check_output(self, call: ToolCall, result: ToolResult) -> GuardrailTrip | None:
        return self._look(result.text)

    def _look(self, text: str) -> GuardrailTrip | None:
        if "worst" in text:
            raise RuntimeError("no idea")
        return GuardrailTrip("words", "bad word", "high", halts=self._halts) if self._bad in text else None


class Stand:
    """Engine with one call, and the events it published."""

    def __init__(
        self,
        *tools: Tool,
        asked: ToolCall | None = None,
        options: ExecutionOptions | None = None,
        hooks: HookBus | None = None,
        policy: FakePolicy | None = None,
        gate: ApprovalGate | None = None,
        guardrails: FakeGuardrails | None = None,
        before_effects: BeforeEffects | None = None,
    ) -> None:
        bus = ValidatingBus(whole=False)
        self._subscription = bus.subscribe(merge=False)
        self._events: list[Any] = []
        self.executor = ToolExecutor(
            tools or (ScriptedTool(),),
            bus=bus,
            options=options,
            hooks=hooks,
            policy=policy,
            gate=gate,
            guardrails=guardrails,
            before_effects=before_effects,
        )
        self.services = self.executor.services
        self.token = CancellationToken()
        self.turns = FreeTurns()
        self.state = self.executor.receive(asked or call(), index=0, step=3, token=self.token, turns=self.turns)

    def events(self, kind: type[Any] = object) -> list[Any]:
        self._events += [envelope.event for envelope in self._subscription.drain()]
        return [event for event in self._events if isinstance(event, kind)]


def status(outcome: Outcome | None) -> str | None:
    return outcome.status if outcome is not None else None
