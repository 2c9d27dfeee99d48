"""Names of the package and their modules: type checkers read this file, and `__init__.py` loads names by it."""

from .agent import (
    DEFAULT_SYSTEM as DEFAULT_SYSTEM,
    AgentLoop as AgentLoop,
    AgentLoopConfig as AgentLoopConfig,
    AgentLoopSnapshot as AgentLoopSnapshot,
    AgentStream as AgentStream,
    AgentStreamEvent as AgentStreamEvent,
    AgentTool as AgentTool,
    Budget as Budget,
    ChainResult as ChainResult,
    CheckpointStore as CheckpointStore,
    Done as Done,
    Guardrail as Guardrail,
    GuardrailContext as GuardrailContext,
    GuardrailDecision as GuardrailDecision,
    InputFilter as InputFilter,
    InputVerdict as InputVerdict,
    OutputFormat as OutputFormat,
    RepetitionLimits as RepetitionLimits,
    RetryPolicy as RetryPolicy,
    RunReport as RunReport,
    StepEnd as StepEnd,
    StepStart as StepStart,
    TextPiece as TextPiece,
    ThinkingPiece as ThinkingPiece,
    ToolCallEnd as ToolCallEnd,
    ToolCallProgress as ToolCallProgress,
    ToolCallStart as ToolCallStart,
    UserInput as UserInput,
    chain as chain,
    consolidate as consolidate,
    delegate as delegate,
)
from .agent.guardrails import (
    GuardrailKind as GuardrailKind,
)
from .context import (
    ContextGuard as ContextGuard,
    ContextLayer as ContextLayer,
    ContextRegistry as ContextRegistry,
    ConversationHistory as ConversationHistory,
    GuardOptions as GuardOptions,
    load_instructions as load_instructions,
)
from .execution import (
    ApprovalGate as ApprovalGate,
    Auto as Auto,
    Batched as Batched,
    ExecutionOptions as ExecutionOptions,
    HookBus as HookBus,
    Parallel as Parallel,
    ProcessHook as ProcessHook,
    Sequential as Sequential,
    Strategy as Strategy,
    ToolExecutionResult as ToolExecutionResult,
    ToolLike as ToolLike,
    execute_tool_calls as execute_tool_calls,
    skip_tool_call as skip_tool_call,
    validate_tool_arguments as validate_tool_arguments,
)
from .library import (
    Agent as Agent,
    Approve as Approve,
    coding_tools as coding_tools,
)
from .permissions import (
    PermissionPolicy as PermissionPolicy,
    Rule as Rule,
    is_read_only_command as is_read_only_command,
)
from .protocol import (
    AssistantMessage as AssistantMessage,
    DocumentBlock as DocumentBlock,
    Envelope as Envelope,
    EventBus as EventBus,
    ImageBlock as ImageBlock,
    JsonObject as JsonObject,
    Message as Message,
    Origin as Origin,
    Subscription as Subscription,
    TextBlock as TextBlock,
    ThinkingBlock as ThinkingBlock,
    Tool as Tool,
    ToolCall as ToolCall,
    ToolContext as ToolContext,
    ToolResult as ToolResult,
    ToolResultMessage as ToolResultMessage,
    ToolSpec as ToolSpec,
    Usage as Usage,
    UserMessage as UserMessage,
    events as events,
    function_tool as function_tool,
    user_message as user_message,
)
from .protocol.cancellation import (
    CancellationToken as CancellationToken,
)
from .protocol.errors import (
    AlreadyRunningError as AlreadyRunningError,
    CompactionError as CompactionError,
    ConfigurationError as ConfigurationError,
    InvalidArgumentsError as InvalidArgumentsError,
    OperationCancelledError as OperationCancelledError,
    ProviderError as ProviderError,
    SessionError as SessionError,
    ToolError as ToolError,
    TuiAgentError as TuiAgentError,
)
from .protocol.function_tool import (
    tool as tool,
)
from .protocol.hooks import (
    AfterTool as AfterTool,
    ApproveCall as ApproveCall,
    BeforeTool as BeforeTool,
    BeforeToolAnswer as BeforeToolAnswer,
    BeforeUpdate as BeforeUpdate,
    Continue as Continue,
    DenyCall as DenyCall,
    FailureAnswer as FailureAnswer,
    ModifyArguments as ModifyArguments,
    OverrideResult as OverrideResult,
    SkipCall as SkipCall,
    ToolFailed as ToolFailed,
)
from .protocol.permissions import (
    ApprovalDecision as ApprovalDecision,
    ApprovalRequest as ApprovalRequest,
    PermissionChecker as PermissionChecker,
    PermissionDecision as PermissionDecision,
    PermissionMode as PermissionMode,
)
from .protocol.provider import (
    ModelInfo as ModelInfo,
    ModelProvider as ModelProvider,
    ModelRequest as ModelRequest,
    StreamEnded as StreamEnded,
    StreamEvent as StreamEvent,
    StreamStarted as StreamStarted,
    SystemPart as SystemPart,
    TextDelta as TextDelta,
    ThinkingDelta as ThinkingDelta,
    ThinkingEnded as ThinkingEnded,
    ToolCallDelta as ToolCallDelta,
    ToolCallEnded as ToolCallEnded,
    ToolCallStarted as ToolCallStarted,
    UsageReported as UsageReported,
)
from .protocol.reports import (
    AgentRunReport as AgentRunReport,
    GuardrailTrippedError as GuardrailTrippedError,
    InputRefusedError as InputRefusedError,
    OutputError as OutputError,
    RunError as RunError,
    RunFailedError as RunFailedError,
    RunInterruptedError as RunInterruptedError,
    RunLimitError as RunLimitError,
    RunReason as RunReason,
    StepReport as StepReport,
    ToolCallReport as ToolCallReport,
)
from .protocol.tool import (
    Accesses as Accesses,
    CommandSubject as CommandSubject,
    PathSubject as PathSubject,
    Preview as Preview,
    Subject as Subject,
    UrlSubject as UrlSubject,
)
from .providers import (
    AnthropicProvider as AnthropicProvider,
    ScriptedProvider as ScriptedProvider,
    call as call,
    fail as fail,
    reply as reply,
)
from .tools import (
    Arguments as Arguments,
    BashTool as BashTool,
    EditTool as EditTool,
    GlobTool as GlobTool,
    GrepTool as GrepTool,
    ReadTool as ReadTool,
    TodoTool as TodoTool,
    TypedTool as TypedTool,
    Workspace as Workspace,
    WriteTool as WriteTool,
    default_tools as default_tools,
)
from .trial.trials import (
    Trials as Trials,
)
from .ui.app.tui_agent_app import (
    AgentApp as AgentApp,
)

__version__: str
__all__: list[str]
