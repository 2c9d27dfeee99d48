"""Questions to hooks and their answers. The engine awaits a hook's answer; an event has none.

In-process hooks are registered on `execution.HookBus`. A `before_tool` hook that raises denies the call: a broken check
must not let a call through.
"""

from dataclasses import dataclass
from typing import TypeAlias

from .messages import JsonObject, ToolCall
from .tool import Tool, ToolResult


@dataclass(frozen=True, slots=True)
class Continue:
    """The call continues unchanged."""


@dataclass(frozen=True, slots=True)
class DenyCall:
    """The call is denied; the model reads the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class SkipCall:
    """The call does not run. With a `result`, that becomes its result and counts as success."""

    result: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class OverrideResult:
    """The call does not run; `result` becomes its result (S4-59)."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class ApproveCall:
    """The call continues and, if hooks may approve calls, needs no approval by the user; never lifts a denial."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequireApproval:
    """The call continues only if the user approves it, even if the policy allows it; never lifts a denial."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class ModifyArguments:
    """The call continues with these arguments, which are validated and checked against the policy again."""

    arguments: JsonObject
    verdict: ApproveCall | RequireApproval | None = None
    """Verdict about the call with these arguments."""


BeforeToolAnswer: TypeAlias = (
    Continue | DenyCall | SkipCall | OverrideResult | ModifyArguments | ApproveCall | RequireApproval
)


@dataclass(frozen=True, slots=True)
class BeforeTool:
    """Question before the policy checks a call: may it continue, and with which arguments?"""

    call: ToolCall
    tool: Tool | None
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class AfterTool:
    """Question after a call ran, before its end is published: which result does it have?"""

    call: ToolCall
    arguments: JsonObject
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """Question after a call raised: is there a fallback result, and does the run continue? (S4-64)"""

    call: ToolCall
    error: str


@dataclass(frozen=True, slots=True)
class FailureAnswer:
    """Answer to `ToolFailed`."""

    fallback: ToolResult | None = None
    continue_on_error: bool = True


@dataclass(frozen=True, slots=True)
class BeforeUpdate:
    """Question before an update is published: may it be? `text` joins all its text blocks (S0-32)."""

    call: ToolCall
    text: str
