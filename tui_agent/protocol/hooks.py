"""Questions asked of hooks. A hook is awaited and its answer is a value here; an event is told and needs none.

In-process hooks live on `execution.HookBus`. A `before_tool` hook that raises denies the call (C47).
"""

from dataclasses import dataclass
from typing import TypeAlias

from .messages import JsonObject, ToolCall
from .tool import Tool, ToolResult


@dataclass(frozen=True, slots=True)
class Continue:
    """Goes on unchanged."""


@dataclass(frozen=True, slots=True)
class DenyCall:
    """The call is refused; the reason goes to the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class SkipCall:
    """The call does not run; with a `result`, that is its answer and it is no error (C11)."""

    result: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class OverrideResult:
    """The call does not run; this is its result (S4-59)."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class ModifyArguments:
    """The call runs with these arguments after they were validated and judged again (P48)."""

    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ApproveCall:
    """The call goes on and, where hooks are trusted with that, needs no person's answer; never lifts a denial (C14)."""

    reason: str = ""


BeforeToolAnswer: TypeAlias = Continue | DenyCall | SkipCall | OverrideResult | ModifyArguments | ApproveCall


@dataclass(frozen=True, slots=True)
class BeforeTool:
    """Asked before a call is judged: may it go on, and as what?"""

    call: ToolCall
    tool: Tool | None
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class AfterTool:
    """Asked after a call ran, before its end is told: what is its result? (C39)"""

    call: ToolCall
    arguments: JsonObject
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """Asked when a call raised: is there a result to use instead, and does the run go on? (S4-64)"""

    call: ToolCall
    error: str


@dataclass(frozen=True, slots=True)
class FailureAnswer:
    """The answer to `ToolFailed`."""

    fallback: ToolResult | None = None
    continue_on_error: bool = True


@dataclass(frozen=True, slots=True)
class BeforeUpdate:
    """Asked before an update is told: may it be? Tells the text of all its text blocks (S0-32)."""

    call: ToolCall
    text: str
