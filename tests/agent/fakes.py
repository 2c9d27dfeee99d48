"""Fakes of a policy, a guardrail and a checkpoint store."""

from dataclasses import dataclass, field

from tui_agent.agent import AgentLoopSnapshot, GuardrailContext, GuardrailDecision
from tui_agent.agent.guardrails import GuardrailKind
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope, PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Tool


class FakePolicy:
    """Lets read-only calls and mode `allow` pass, denies in mode `deny`, and asks for everything else."""

    def __init__(self, mode: PermissionMode = PermissionMode.ASK) -> None:
        self.mode = mode
        self.granted: list[tuple[str, GrantScope]] = []

    def set_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        verdict = "ask"
        if self.mode is PermissionMode.ALLOW or tool.is_read_only(arguments):
            verdict = "allow"
        elif self.mode is PermissionMode.DENY:
            verdict = "deny"
        return PermissionDecision(decision=verdict, source="mode", reason=f"mode {self.mode}")

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        return None

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        rule = self.grant_rule(tool, arguments)
        return () if rule is None else (rule,)

    def grant(self, rule: str, scope: GrantScope) -> None:
        self.granted.append((rule, scope))


@dataclass
class FakeGuardrail:
    """Answers what it was told to."""

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
    """Does not pass where a call or a result says the bad word; raises where it says the worst."""

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
    """Keeps snapshots in memory, as text."""

    stored: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None

    async def set(self, key: str, snapshot: AgentLoopSnapshot) -> None:
        if self.error is not None:
            raise self.error
        self.stored[key] = snapshot.model_dump_json()
