"""Execution of tool calls: the executor runs one call, the scheduler decides when each runs, options tune both."""

from .approval_gate import ApprovalAnswer, ApprovalGate, Approver, call_digest
from .entry_points import execute_tool_calls
from .execution_services import BeforeEffects, GuardrailTrip, ToolGuardrails
from .executor import ToolExecutor
from .hook_bus import HookBus
from .options import (
    Auto,
    Batched,
    ExecutionOptions,
    Grouping,
    Parallel,
    Sequential,
    SteeringMode,
    Strategy,
    parse_strategy,
    strategy_name,
)
from .outcomes import SkipReason, skip_tool_call
from .pipeline.tool_execution import EarlyExecutions, ToolExecution
from .process_hook import ProcessHook
from .scheduling.call_batch import ToolExecutionResult
from .scheduling.concurrency_gate import SteeringAnswer, SteeringGetter
from .scheduling.scheduler import ToolScheduler
from .tool_registry import ForeignTool, ToolLike, ToolRegistry, as_tool, as_tools, from_function
from .validation import validate_tool_arguments

__all__ = [
    "ApprovalAnswer",
    "ApprovalGate",
    "Approver",
    "Auto",
    "Batched",
    "BeforeEffects",
    "EarlyExecutions",
    "ExecutionOptions",
    "ForeignTool",
    "Grouping",
    "GuardrailTrip",
    "HookBus",
    "Parallel",
    "ProcessHook",
    "Sequential",
    "SkipReason",
    "SteeringAnswer",
    "SteeringGetter",
    "SteeringMode",
    "Strategy",
    "ToolExecution",
    "ToolExecutionResult",
    "ToolExecutor",
    "ToolGuardrails",
    "ToolLike",
    "ToolRegistry",
    "ToolScheduler",
    "as_tool",
    "as_tools",
    "call_digest",
    "execute_tool_calls",
    "from_function",
    "parse_strategy",
    "skip_tool_call",
    "strategy_name",
    "validate_tool_arguments",
]
