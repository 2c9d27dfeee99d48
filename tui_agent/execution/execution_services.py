"""Everything the pipeline of a call works with, complete and the same for every path a call may come by (P14, P15)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.protocol.tool import Tool, ToolResult

from .approval_gate import ApprovalGate
from .hook_bus import HookBus
from .options import ExecutionOptions
from .pipeline.target_identity import Identity
from .pipeline.update_channel import Reporting
from .tool_registry import ToolRegistry

BeforeEffects: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited between `tool.started` and the execution of a call that may change something, so that whoever keeps a record
has it on disk before the effect (P82). If it raises, the call does not run."""


@dataclass(frozen=True, slots=True)
class GuardrailTrip:
    """A guardrail did not pass."""

    name: str
    reason: str
    severity: Literal["low", "medium", "high", "critical"] = "medium"
    halts: bool = False
    """Whether the whole run ends with reason `guardrail`."""


class ToolGuardrails(Protocol):
    """Guardrails over calls and results (C38); a check that raises counts as tripped."""

    @property
    def looks_at_results(self) -> bool:
        """Whether `check_output` may object to anything; if so, what a call reports waits until its result passed."""
        ...

    async def check_input(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> GuardrailTrip | None:
        """Looks at a call before it is judged; None: it passes."""
        ...

    async def check_output(self, call: ToolCall, result: ToolResult) -> GuardrailTrip | None:
        """Looks at a result before anybody sees it; None: it passes."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """What is needed to run calls."""

    registry: ToolRegistry
    publisher: Publisher
    options: ExecutionOptions
    hooks: HookBus
    policy: PermissionChecker | None
    """None: this caller has no permission system, and every call counts as allowed."""
    gate: ApprovalGate
    guardrails: ToolGuardrails | None
    agent: str
    """Who asks, in approval dialogs."""
    before_effects: BeforeEffects | None = None
    own_files: dict[str, Identity] = field(default_factory=dict[str, Identity])
    """What calls of ours last put at the paths they wrote."""

    @property
    def finishes_results(self) -> bool:
        """Whether anything may change or withhold what a tool gave, or answer for one that failed."""
        hooks = self.hooks
        return self.guardrails is not None or hooks.has("after_tool") or hooks.has("on_tool_error")

    @property
    def reporting(self) -> Reporting:
        """What becomes of what a running call reports, where its result may yet be withheld or is to be made safe
        (stages 12 and 13)."""
        if any(hook.hides for hook in self.hooks.hooks("after_tool")):
            return "dropped"
        return "held" if self.guardrails is not None and self.guardrails.looks_at_results else "live"

    @property
    def looks_before_judging(self) -> bool:
        """Whether anything that sees a call stands between the floor and the whole judgement."""
        return self.guardrails is not None or self.hooks.has("before_tool")
