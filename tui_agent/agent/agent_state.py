"""The state of an agent that outlives its runs: its parts, its conversation, and its usage.

`checkpoints` makes the snapshot that saves it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tui_agent.context import (
    ConversationHistory,
    estimate_text,
)
from tui_agent.execution import ApprovalGate, ToolExecutor, ToolRegistry
from tui_agent.protocol.events import ContextUsage, MessageEnded, MessageStarted, PermissionModeChanged, UsageUpdated
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ToolResultMessage,
    Usage,
    now_ms,
)
from tui_agent.protocol.past_session import OpenCall
from tui_agent.protocol.permissions import (
    ApprovalRequest,
    PermissionChecker,
    PermissionMode,
)
from tui_agent.protocol.provider import ModelInfo, ModelProvider
from tui_agent.protocol.reports import AgentRunReport

from .event_publisher import EventPublisher
from .loop_config import AgentLoopConfig
from .run_report import added_cost
from .steering_queue import SteeringQueue

OWNER = "agent-loop"
"""Owner of the layers that the loop writes (S4-33)."""


@dataclass(slots=True)
class AgentState:
    """One agent's parts and state, shared by the loop, its runs and their turns."""

    config: AgentLoopConfig
    provider: ModelProvider
    tools: ToolRegistry
    history: ConversationHistory
    policy: PermissionChecker
    gate: ApprovalGate
    publisher: EventPublisher
    queue: SteeringQueue
    executor: ToolExecutor
    usage: Usage
    """Tokens that this conversation has used."""
    cost: float | None
    """Dollars; None if no price is known."""
    open_calls: dict[str, OpenCall]
    """Calls of the last answer whose process ended before they had results, by id. The next run resumes them."""
    reports: list[AgentRunReport] = field(default_factory=list[AgentRunReport])
    metadata: JsonObject = field(default_factory=dict[str, object])
    created_at: int = field(default_factory=now_ms)
    thinking_refusals: int = 0
    """Turns in which the model's server refused the reasoning in earlier answers."""

    @property
    def pending_calls(self) -> tuple[ApprovalRequest, ...]:
        """Calls that wait for approval, now or since their process ended; those of sub-agents included."""
        waiting = (
            call.request for call in self.open_calls.values() if call.request is not None and call.answer is None
        )
        return (*waiting, *self.gate.pending)

    def add_message(self, message: Message) -> None:
        """Publish a complete message and append it to the conversation."""
        call_id = message.call_id if isinstance(message, ToolResultMessage) else None
        self.publisher.publish(MessageStarted(message_id=message.id, role=message.role, call_id=call_id))
        self.end_message(message)

    def end_message(self, message: Message, latency_ms: float | None = None) -> None:
        """Append a message whose start was published to the conversation, and publish its end.

        `latency_ms` is the time that the model took, for its entry; None: unknown, or not an answer.
        """
        self.history.append(message, latency_ms=latency_ms)
        answer = message if isinstance(message, AssistantMessage) else None
        self.publisher.publish(
            MessageEnded(
                message_id=message.id,
                message=message,
                stop_reason=answer.stop_reason if answer else None,
                usage=answer.usage if answer else None,
            )
        )

    @contextmanager
    def limited_to(self, allowed: Callable[[str], bool] | None, provider: ModelProvider | None) -> Generator[None]:
        """Hide the tools whose names are not allowed, and use another model, while the context is open.

        None for `allowed` hides none; None for `provider` keeps the model.
        """
        before, others = self.provider, self.tools.only
        self.provider = provider or before
        self.tools.only = allowed if allowed is None or others is None else lambda name: allowed(name) and others(name)
        self.tools.only = self.tools.only or others
        try:
            yield
        finally:
            self.tools.only = others
            # The user may have chosen another model meanwhile, which stays.
            if self.provider is provider:
                self.provider = before

    def set_mode(self, mode: PermissionMode, by: str) -> None:
        """Change the permission mode, publish that, and judge the calls that wait for approval again.

        The mode in force changes nothing. `by` is who changes it, for the event.

        Raises:
            ConfigurationError: this agent has no permission policy, and `mode` is not `allow`.
        """
        old = self.policy.mode
        if mode is not old:
            self.policy.set_mode(mode)
            self.publisher.publish(PermissionModeChanged(old=old, new=mode, by=by))
            self.gate.reconsider()

    async def flush_events(self) -> None:
        """Wait until the outcomes of effects are stored: no request may contain one that a crash could lose."""
        if self.config.before_requests is not None:
            await self.config.before_requests()

    async def effects_published(self) -> None:
        """Wait until all effects of the calls that have ended are published."""
        if self.config.effects_published is not None:
            await self.config.effects_published()

    def takes_call(self, call_id: str) -> bool:
        """Return True if the id already names a call of this conversation or of another agent; else reserve it."""
        own = self.config.agent_id
        return self.history.knows_call(call_id) or self.config.call_owners.setdefault(call_id, own) != own

    def spend(self, usage: Usage, model: ModelInfo) -> float | None:
        """Count the tokens of an answer by `model`, kept or not. Return its cost in dollars; None if it is unknown."""
        cost = model.cost_of(usage)
        self.count(usage, cost, model.name)
        return cost

    def count(self, usage: Usage, cost: float | None, model: str) -> None:
        """Add tokens, and their cost in dollars (None: unknown), to the sums.

        A sub-agent passes them to its parent; the root agent publishes them.
        """
        self.usage = self.usage + usage
        self.cost = added_cost(self.cost, cost)
        # The root publishes one sum for all agents; a second one would count sub-agents twice.
        if self.config.on_spend is not None:
            self.config.on_spend(usage, cost, model)
        else:
            self.publisher.publish(UsageUpdated(delta=usage, total=self.usage, cost=self.cost, model=model))

    def publish_context_usage(self) -> None:
        """Publish how full the context window is; the only figure, which compaction and the screen use, too."""
        if not self.history.is_anchored:
            self.history.tool_tokens = sum(estimate_text(spec.model_dump_json()) for spec in self.tools.specs)
        self.publisher.publish(
            ContextUsage(
                tokens=self.history.estimated_tokens(),
                window=self.provider.model.context_window,
                source="actual" if self.history.is_anchored else "estimate",
            )
        )
