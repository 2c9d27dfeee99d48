"""Services that all stages of the pipeline share, on every path by which a call arrives."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.protocol.tool import Tool, ToolResources, ToolResult

from .approval_gate import ApprovalGate, Identity, identity_of
from .hook_bus import HookBus
from .options import ExecutionOptions
from .tool_registry import ToolRegistry

BeforeEffects: TypeAlias = Callable[[], Awaitable[None]]
"""Function awaited between `tool.started` and the execution of a call that may change something, so that a journal can
reach the disk before the effect. If it raises, the call does not run."""


@dataclass(frozen=True, slots=True)
class GuardrailTrip:
    """Objection of a guardrail."""

    name: str
    reason: str
    severity: Literal["low", "medium", "high", "critical"] = "medium"
    halts: bool = False
    """True if the whole run ends with reason `guardrail`."""


@dataclass(frozen=True, slots=True)
class ToolGuardrails:
    """Guardrails over calls and results; a check that raises counts as tripped."""

    check_input: Callable[[ToolCall, Tool, JsonObject], Awaitable[GuardrailTrip | None]]
    """Checks a call before it is judged; returns None if it passes."""
    check_output: Callable[[ToolCall, ToolResult], Awaitable[GuardrailTrip | None]] | None = None
    """Checks a result before it is published; a call's reports wait until its result has passed. None: nothing does."""


@dataclass(frozen=True, slots=True)
class ExecutionServices:
    """Services of one executor."""

    registry: ToolRegistry
    publisher: Publisher
    options: ExecutionOptions
    hooks: HookBus
    policy: PermissionChecker | None
    """None: the caller has no permission system, and every call counts as allowed."""
    gate: ApprovalGate
    guardrails: ToolGuardrails | None
    agent: str
    """Name of the agent in approval requests."""
    before_effects: BeforeEffects | None = None
    effects_published: Callable[[], Awaitable[None]] | None = None
    """Awaited before a call that may change something is decided on for the last time."""
    waits_for_effects: bool = False
    """True if the agent waits for effects that are published after a call's end where it needs them."""
    resources: ToolResources = field(default_factory=lambda: ToolResources(None))
    """Objects that the agent's owner hands to its tools."""
    own_files: dict[str, Identity] = field(default_factory=dict[str, Identity])
    """Identities of the files that this executor's calls wrote last, by path."""

    def record_own_files(self, paths: Iterable[str]) -> None:
        """Record files that a call wrote, so that the user is not asked again because of them."""
        for path in paths:
            found = identity_of(path)
            if found is not None:
                self.own_files[path] = found

    def is_own_file(self, path: str) -> bool:
        """Return True if the file at a path is the one that a call of this executor wrote."""
        found = identity_of(path)
        return found is not None and self.own_files.get(path) == found
