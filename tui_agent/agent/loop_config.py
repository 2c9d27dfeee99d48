"""Everything an agent is made of (S4-15). Only the provider is needed; the rest has defaults that do no harm."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from tui_agent.context.guard import ContextGuard
from tui_agent.context.history import ConversationHistory
from tui_agent.context.registry import ContextLayer
from tui_agent.execution import ApprovalGate, BeforeEffects, ExecutionOptions, HookBus, ToolLike
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import Message, Usage, UserMessage
from tui_agent.protocol.permissions import PermissionChecker
from tui_agent.protocol.provider import ModelProvider

from .guardrails import Guardrail
from .input_filters import InputFilter
from .limits import Budget, RepetitionLimits
from .output_format import OutputFormat
from .retry import RetryPolicy
from .snapshot import AgentLoopSnapshot, OpenCall, PastCompaction
from .system_prompt import DEFAULT_SYSTEM
from .waits import Waits

SystemText: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A text, or a function asked for it at the start of each run (S4-36)."""

BeforeRequests: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited before a request leaves; what it raises ends the run."""

DEFAULT_MAX_STEPS = 16
"""What a cap that is not positive means (S4-45, C35)."""


class CheckpointStore(Protocol):
    """Where an agent's state is put before a person is asked, so that the question survives the process (S4-71)."""

    async def set(self, key: str, snapshot: AgentLoopSnapshot) -> None:
        """Stores a snapshot under `agent-loop:<id>`, in place of the one before."""
        ...


@dataclass(slots=True)
class AgentLoopConfig:
    """What an `AgentLoop` is made of."""

    provider: ModelProvider
    """Who is asked; holds the credentials, which the loop never sees (S4-7)."""
    tools: Sequence[ToolLike] = ()
    """Tools, functions among them: `function_tool` makes a tool of each."""
    system: SystemText = DEFAULT_SYSTEM
    """Who the agent is: the layer `agentloop.system`. An empty text means no such layer."""
    context: str = ""
    """What holds for this task only: the layer `agentloop.context`."""
    layers: Sequence[ContextLayer] = ()
    """More layers of the system prompt, such as those of `load_instructions`."""
    workspace: Path | None = None
    """Where the agent works; told to the model."""
    bus: EventBus | None = None
    """Where everything is told; None: a bus of its own."""
    policy: PermissionChecker | None = None
    """Judges calls; None: nothing is refused but what tools and hooks refuse themselves."""
    gate: ApprovalGate | None = None
    """Where a call waits for a person; None: one at which nobody answers, so that what would be asked is denied."""
    hooks: HookBus | None = None
    options: ExecutionOptions = field(default_factory=ExecutionOptions)
    history: ConversationHistory | Sequence[Message] = ()
    """The conversation so far; repaired at the start of the first run if it has to be."""
    open_calls: Sequence[OpenCall] = ()
    """What is known of the calls at its end that have no result. A run without input takes them up: what finished is
    answered with what it gave, what had not started is judged, asked about and run, and nothing is done twice (C43)."""
    compactions: Sequence[PastCompaction] = ()
    """What made this conversation shorter before and was not taken back, oldest first."""
    waiting: Sequence[UserMessage] = ()
    """Steering and follow-ups that were not delivered when the session ended; they wait again."""
    input_filters: Sequence[InputFilter] = ()
    """Look at what a person says before it is part of the conversation (C38)."""
    guardrails: Sequence[Guardrail] = ()
    """Look at what goes to the model, at what comes back, and at each call and its result, each kind in this order."""
    output: OutputFormat[object] | None = None
    """The type that final answers must fit: one that does not is sent back once, then the run fails; None: any text."""
    max_steps: int | None = None
    """Most steps of one run, checked after each (C35); None: no cap; 0 and less: `DEFAULT_MAX_STEPS`."""
    guard: ContextGuard | None = field(default_factory=ContextGuard)
    """Makes the conversation shorter before it no longer fits into the model's window (S4-91); None: nobody does."""
    budget: Budget = field(default_factory=Budget)
    """What one run may use."""
    repetition: RepetitionLimits | None = field(default_factory=RepetitionLimits)
    """When a run that goes round in circles is nudged, and when it ends; None: never."""
    max_tokens: int | None = None
    """Longest answer in tokens; None: the provider's own."""
    temperature: float | None = None
    thinking_tokens: int | None = None
    """Budget for reasoning in tokens; None: the model's own default."""
    cache: bool = True
    """Whether the provider may keep the beginning of a request for the next one."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    checkpoint: CheckpointStore | None = None
    cancellation: CancellationToken | None = None
    """A caller's token: setting it aborts what runs (C34)."""
    before_effects: BeforeEffects | None = None
    """Awaited before a call that may change something is executed: the moment to have it on record (P82)."""
    before_requests: BeforeRequests | None = None
    """Awaited before each request leaves: the moment to have on record what the model is told (P82)."""
    session_id: str = ""
    agent_id: str = "main"
    parent_call_id: str | None = None
    """The call that started this agent; None for the root."""
    depth: int = 0
    usage: Usage = field(default_factory=Usage)
    """Tokens this conversation has used before."""
    cost: float | None = None
    """Dollars it has cost before; None where that is not known."""
    on_spend: Callable[[Usage, float | None], None] | None = None
    """Takes what each answer used and cost, in place of `usage.updated`: a sub-agent's parent does."""
    overrun_above: Callable[[], str | None] | None = None
    """Which limit is reached of the agent this one works for, in words; asked together with its own budget."""
    waits_above: Waits | None = None
    """How long a person was waited for in the agent this one works for."""
