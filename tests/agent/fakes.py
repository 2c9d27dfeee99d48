"""Fakes for the rooms that the loop does not import: a policy, guardrails, a store for checkpoints."""

from dataclasses import dataclass, field

from tests.execution import kit
from tui_agent.agent import AgentLoopSnapshot, GuardrailContext, GuardrailDecision
from tui_agent.agent.guardrails import GuardrailKind
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Tool


class FakePolicy(kit.FakePolicy):
    """Policy that allows read-only calls and mode `allow`, denies in mode `deny`, and asks for everything else."""

    def __init__(self, mode: PermissionMode = PermissionMode.ASK) -> None:
        super().__init__(mode=mode, rule=None)

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        verdict = "ask"
        if self.mode is PermissionMode.ALLOW or tool.is_read_only(arguments):
            verdict = "allow"
        elif self.mode is PermissionMode.DENY:
            verdict = "deny"
        return PermissionDecision(decision=verdict, source="mode", reason=f"mode {self.mode}")


@dataclass
class FakeGuardrail:
    """Guardrail that returns fixed answers."""

    name: str
    decision: GuardrailDecision | Exception
    kind: GuardrailKind = "input"
    asked: list[GuardrailContext] = field(default_factory=list)

    async def check(self, context: GuardrailContext) -> GuardrailDecision:
        self.asked.append(context)
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


@dataclass
class WordGuardrail:
    """Guardrail that fails a call or result with the bad word, and raises on the worst one."""

    kind: GuardrailKind
    halts: bool
    name: str = "words"

    async def check(self, context: GuardrailContext) -> GuardrailDecision:
        said = context.result.text if context.result else str(context.call.arguments if context.call else "")
        if "worst" in said:
            raise RuntimeError("no idea")
        return GuardrailDecision(passed="bad" not in said, tripwire=self.halts, reason="bad word")


@dataclass
class FakeCheckpoints:
    """Store that keeps snapshots in memory, as text."""

    stored: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None

    async def set(self, key: str, snapshot: AgentLoopSnapshot) -> None:
        if self.error is not None:
            raise self.error
        self.stored[key] = snapshot.model_dump_json()
