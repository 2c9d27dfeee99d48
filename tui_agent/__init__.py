"""A full-screen terminal coding agent, and its engine for other programs: `from tui_agent import Agent, tool`.

Importing the package is cheap: each name loads its module on first use. The sub-packages (`tui_agent.agent`,
`tui_agent.tools`, …) have the same objects under the same names.
"""

TYPE_CHECKING = False  # Not imported from `typing`, which takes longer to load than this whole file.

if TYPE_CHECKING:
    from .agent import (
        DEFAULT_SYSTEM,
        AgentLoop,
        AgentLoopConfig,
        AgentLoopSnapshot,
        AgentStream,
        AgentStreamEvent,
        AgentTool,
        Budget,
        ChainResult,
        CheckpointStore,
        Done,
        Guardrail,
        GuardrailContext,
        GuardrailDecision,
        InputFilter,
        InputVerdict,
        OutputFormat,
        RepetitionLimits,
        RetryPolicy,
        RunReport,
        StepEnd,
        StepStart,
        TextPiece,
        ThinkingPiece,
        ToolCallEnd,
        ToolCallStart,
        UserInput,
        chain,
        consolidate,
        delegate,
    )
    from .agent.guardrails import GuardrailKind
    from .context import (
        ContextGuard,
        ContextLayer,
        ContextRegistry,
        ConversationHistory,
        GuardOptions,
        load_instructions,
    )
    from .execution import (
        ApprovalGate,
        Auto,
        Batched,
        ExecutionOptions,
        HookBus,
        Parallel,
        ProcessHook,
        Sequential,
        Strategy,
        ToolExecutionResult,
        ToolLike,
        execute_tool_calls,
        skip_tool_call,
        validate_tool_arguments,
    )
    from .library import Agent, Approve, coding_tools
    from .permissions import PermissionPolicy, Rule, is_read_only_command
    from .protocol import (
        AssistantMessage,
        DocumentBlock,
        Envelope,
        EventBus,
        ImageBlock,
        JsonObject,
        Message,
        Origin,
        Subscription,
        TextBlock,
        ThinkingBlock,
        Tool,
        ToolCall,
        ToolContext,
        ToolResult,
        ToolResultMessage,
        ToolSpec,
        Usage,
        UserMessage,
        events,
        function_tool,
        user_message,
    )
    from .protocol.cancellation import CancellationToken
    from .protocol.errors import (
        AlreadyRunningError,
        CompactionError,
        ConfigurationError,
        InvalidArgumentsError,
        OperationCancelledError,
        ProviderError,
        SessionError,
        ToolError,
        TuiAgentError,
    )
    from .protocol.function_tool import tool
    from .protocol.hooks import (
        AfterTool,
        ApproveCall,
        BeforeTool,
        BeforeToolAnswer,
        BeforeUpdate,
        Continue,
        DenyCall,
        FailureAnswer,
        ModifyArguments,
        OverrideResult,
        SkipCall,
        ToolFailed,
    )
    from .protocol.permissions import (
        ApprovalDecision,
        ApprovalRequest,
        PermissionChecker,
        PermissionDecision,
        PermissionMode,
    )
    from .protocol.provider import (
        ModelInfo,
        ModelProvider,
        ModelRequest,
        StreamEnded,
        StreamEvent,
        StreamStarted,
        SystemPart,
        TextDelta,
        ThinkingDelta,
        ThinkingEnded,
        ToolCallDelta,
        ToolCallEnded,
        ToolCallStarted,
        UsageReported,
    )
    from .protocol.reports import (
        AgentRunReport,
        GuardrailTrippedError,
        InputRefusedError,
        OutputError,
        RunError,
        RunFailedError,
        RunInterruptedError,
        RunLimitError,
        RunReason,
        StepReport,
        ToolCallReport,
    )
    from .protocol.tool import Accesses, CommandSubject, PathSubject, Preview, Subject, UrlSubject
    from .providers import AnthropicProvider, ScriptedProvider, call, fail, reply
    from .tools import (
        Arguments,
        BashTool,
        EditTool,
        GlobTool,
        GrepTool,
        ReadTool,
        TodoTool,
        TypedTool,
        Workspace,
        WriteTool,
        default_tools,
    )
    from .trial.trials import Trials
    from .ui.app.agent_app import AgentApp

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_SYSTEM",
    "Accesses",
    "AfterTool",
    "Agent",
    "AgentApp",
    "AgentLoop",
    "AgentLoopConfig",
    "AgentLoopSnapshot",
    "AgentRunReport",
    "AgentStream",
    "AgentStreamEvent",
    "AgentTool",
    "AlreadyRunningError",
    "AnthropicProvider",
    "ApprovalDecision",
    "ApprovalGate",
    "ApprovalRequest",
    "Approve",
    "ApproveCall",
    "Arguments",
    "AssistantMessage",
    "Auto",
    "BashTool",
    "Batched",
    "BeforeTool",
    "BeforeToolAnswer",
    "BeforeUpdate",
    "Budget",
    "CancellationToken",
    "ChainResult",
    "CheckpointStore",
    "CommandSubject",
    "CompactionError",
    "ConfigurationError",
    "ContextGuard",
    "ContextLayer",
    "ContextRegistry",
    "Continue",
    "ConversationHistory",
    "DenyCall",
    "DocumentBlock",
    "Done",
    "EditTool",
    "Envelope",
    "EventBus",
    "ExecutionOptions",
    "FailureAnswer",
    "GlobTool",
    "GrepTool",
    "GuardOptions",
    "Guardrail",
    "GuardrailContext",
    "GuardrailDecision",
    "GuardrailKind",
    "GuardrailTrippedError",
    "HookBus",
    "ImageBlock",
    "InputFilter",
    "InputRefusedError",
    "InputVerdict",
    "InvalidArgumentsError",
    "JsonObject",
    "Message",
    "ModelInfo",
    "ModelProvider",
    "ModelRequest",
    "ModifyArguments",
    "OperationCancelledError",
    "Origin",
    "OutputError",
    "OutputFormat",
    "OverrideResult",
    "Parallel",
    "PathSubject",
    "PermissionChecker",
    "PermissionDecision",
    "PermissionMode",
    "PermissionPolicy",
    "Preview",
    "ProcessHook",
    "ProviderError",
    "ReadTool",
    "RepetitionLimits",
    "RetryPolicy",
    "Rule",
    "RunError",
    "RunFailedError",
    "RunInterruptedError",
    "RunLimitError",
    "RunReason",
    "RunReport",
    "ScriptedProvider",
    "Sequential",
    "SessionError",
    "SkipCall",
    "StepEnd",
    "StepReport",
    "StepStart",
    "Strategy",
    "StreamEnded",
    "StreamEvent",
    "StreamStarted",
    "Subject",
    "Subscription",
    "SystemPart",
    "TextBlock",
    "TextDelta",
    "TextPiece",
    "ThinkingBlock",
    "ThinkingDelta",
    "ThinkingEnded",
    "ThinkingPiece",
    "TodoTool",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallEnded",
    "ToolCallReport",
    "ToolCallStart",
    "ToolCallStarted",
    "ToolContext",
    "ToolError",
    "ToolExecutionResult",
    "ToolFailed",
    "ToolLike",
    "ToolResult",
    "ToolResultMessage",
    "ToolSpec",
    "Trials",
    "TuiAgentError",
    "TypedTool",
    "UrlSubject",
    "Usage",
    "UsageReported",
    "UserInput",
    "UserMessage",
    "Workspace",
    "WriteTool",
    "call",
    "chain",
    "coding_tools",
    "consolidate",
    "default_tools",
    "delegate",
    "events",
    "execute_tool_calls",
    "fail",
    "function_tool",
    "is_read_only_command",
    "load_instructions",
    "reply",
    "skip_tool_call",
    "tool",
    "user_message",
    "validate_tool_arguments",
]

_NAMES = (
    # Agents
    ("library", "Agent Approve coding_tools"),
    (
        "agent",
        "AgentLoop AgentLoopConfig AgentLoopSnapshot Budget CheckpointStore DEFAULT_SYSTEM RepetitionLimits "
        "RetryPolicy UserInput",
    ),
    ("protocol.cancellation", "CancellationToken"),
    ("ui.app.agent_app", "AgentApp"),
    # Runs, their reports and their events
    (
        "agent",
        "AgentStream AgentStreamEvent Done OutputFormat RunReport StepEnd StepStart TextPiece ThinkingPiece "
        "ToolCallEnd ToolCallStart",
    ),
    (
        "protocol.reports",
        "AgentRunReport GuardrailTrippedError InputRefusedError OutputError RunError RunFailedError "
        "RunInterruptedError RunLimitError RunReason StepReport ToolCallReport",
    ),
    ("protocol", "Envelope EventBus Origin Subscription events"),
    # Several agents
    ("agent", "AgentTool ChainResult chain consolidate delegate"),
    # Tools
    ("protocol", "Tool ToolContext ToolResult ToolSpec function_tool"),
    ("protocol.function_tool", "tool"),
    ("execution", "ToolLike"),
    ("protocol.tool", "Accesses CommandSubject PathSubject Preview Subject UrlSubject"),
    (
        "tools",
        "Arguments BashTool EditTool GlobTool GrepTool ReadTool TodoTool TypedTool Workspace WriteTool default_tools",
    ),
    ("trial.trials", "Trials"),
    # Execution of calls
    (
        "execution",
        "Auto Batched ExecutionOptions Parallel Sequential Strategy ToolExecutionResult execute_tool_calls "
        "skip_tool_call validate_tool_arguments",
    ),
    # Permissions and approvals
    ("permissions", "PermissionPolicy Rule is_read_only_command"),
    ("execution", "ApprovalGate"),
    ("protocol.permissions", "ApprovalDecision ApprovalRequest PermissionChecker PermissionDecision PermissionMode"),
    # Hooks, guardrails and input filters
    ("execution", "HookBus ProcessHook"),
    (
        "protocol.hooks",
        "AfterTool ApproveCall BeforeTool BeforeToolAnswer BeforeUpdate Continue DenyCall FailureAnswer "
        "ModifyArguments OverrideResult SkipCall ToolFailed",
    ),
    ("agent", "Guardrail GuardrailContext GuardrailDecision InputFilter InputVerdict"),
    ("agent.guardrails", "GuardrailKind"),
    # The conversation
    (
        "protocol",
        "AssistantMessage DocumentBlock ImageBlock JsonObject Message TextBlock ThinkingBlock ToolCall "
        "ToolResultMessage Usage UserMessage user_message",
    ),
    ("context", "ContextGuard ContextLayer ContextRegistry ConversationHistory GuardOptions load_instructions"),
    # Models
    ("providers", "AnthropicProvider ScriptedProvider call fail reply"),
    (
        "protocol.provider",
        "ModelInfo ModelProvider ModelRequest StreamEnded StreamEvent StreamStarted SystemPart TextDelta "
        "ThinkingDelta ThinkingEnded ToolCallDelta ToolCallEnded ToolCallStarted UsageReported",
    ),
    # Errors
    (
        "protocol.errors",
        "AlreadyRunningError CompactionError ConfigurationError InvalidArgumentsError OperationCancelledError "
        "ProviderError SessionError ToolError TuiAgentError",
    ),
)
"""Modules and the names they define, grouped by subject."""

_ROOM_OF = {name: room for room, names in _NAMES for name in names.split()}


def __getattr__(name: str) -> object:
    """Load a name on first use (PEP 562).

    Raises:
        AttributeError: the package has no such name; the text suggests the closest one.
    """
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}", name=name)
    found = getattr(__import__(f"{__name__}.{_ROOM_OF[name]}", fromlist=(name,)), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return every name of the package, loaded or not."""
    return sorted({*globals(), *__all__})


def _hint(name: str) -> str:
    """Return a suggestion of the closest name; empty if no name is close."""
    if name.startswith("_"):
        return ""
    difflib = __import__("difflib")
    near = difflib.get_close_matches(name, __all__, 1)
    return f"; did you mean {near[0]}?" if near else ""
