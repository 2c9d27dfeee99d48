"""The agent loop: it asks the model, runs its calls, and takes messages of the user meanwhile."""

from .agent_stream import (
    AgentStream,
    AgentStreamEvent,
    Done,
    StepEnd,
    StepStart,
    TextPiece,
    ThinkingPiece,
    ToolCallEnd,
    ToolCallProgress,
    ToolCallStart,
)
from .agent_tool import AgentTool
from .delegation import ChainResult, chain, consolidate, delegate
from .guardrails import Guardrail, GuardrailContext, GuardrailDecision, InputFilter, InputVerdict
from .limit_settings import Budget, RepetitionLimits, RetryPolicy
from .loop import AgentLoop
from .loop_config import DEFAULT_SYSTEM, AgentLoopConfig, AgentLoopSnapshot, CheckpointStore
from .output_format import OutputFormat, RunReport
from .run_input import UserInput

__all__ = [
    "DEFAULT_SYSTEM",
    "AgentLoop",
    "AgentLoopConfig",
    "AgentLoopSnapshot",
    "AgentStream",
    "AgentStreamEvent",
    "AgentTool",
    "Budget",
    "ChainResult",
    "CheckpointStore",
    "Done",
    "Guardrail",
    "GuardrailContext",
    "GuardrailDecision",
    "InputFilter",
    "InputVerdict",
    "OutputFormat",
    "RepetitionLimits",
    "RetryPolicy",
    "RunReport",
    "StepEnd",
    "StepStart",
    "TextPiece",
    "ThinkingPiece",
    "ToolCallEnd",
    "ToolCallProgress",
    "ToolCallStart",
    "UserInput",
    "chain",
    "consolidate",
    "delegate",
]
