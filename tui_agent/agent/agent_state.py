"""What an agent has between its runs: the parts it is made of, its conversation, and what it has spent."""

from dataclasses import dataclass, field

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import ApprovalGate, HookBus, ToolExecutor, ToolRegistry
from tui_agent.protocol.bus import EventBus, listener_warning
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ContextUsage, MessageEnded, MessageStarted, UsageUpdated
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ToolResultMessage,
    Usage,
    now_ms,
)
from tui_agent.protocol.permissions import GrantScope, PermissionChecker, PermissionDecision, PermissionMode
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import Tool

from .approval_wait_clock import ApprovalWaitClock
from .event_publisher import EventPublisher
from .guardrails import tool_lanes
from .loop_config import AgentLoopConfig
from .run_report import added_cost
from .steering_queue import SteeringQueue


@dataclass(slots=True)
class AgentState:
    """One agent's parts and its memory. Shared by the loop, its runs and their turns; changed by nobody else."""

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
    """Everything this conversation has used."""
    cost: float | None
    """Dollars; None where no price is known."""
    reports: list[AgentRunReport] = field(default_factory=list[AgentRunReport])
    metadata: JsonObject = field(default_factory=dict[str, object])
    created_at: int = field(default_factory=now_ms)

    def add_message(self, message: Message) -> None:
        """Tells a message that is complete from the start, and makes it part of the conversation."""
        call_id = message.call_id if isinstance(message, ToolResultMessage) else None
        self.publisher.publish(MessageStarted(message_id=message.id, role=message.role, call_id=call_id))
        self.end_message(message)

    def end_message(self, message: Message, latency_ms: float | None = None) -> None:
        """Makes a message that was begun part of the conversation, and tells that it is."""
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

    async def flush_events(self) -> None:
        """Returns once everything a request holds is on record, so that no outcome is told that could be lost (P82)."""
        if self.config.before_requests is not None:
            await self.config.before_requests()

    def spend(self, usage: Usage) -> float | None:
        """Counts an answer's tokens, kept or not. Returns what it cost in dollars."""
        cost = self.provider.model.cost_of(usage)
        self.count(usage, cost)
        return cost

    def count(self, usage: Usage, cost: float | None) -> None:
        """Adds to the sums; a sub-agent hands them on, and the root tells them (P64)."""
        self.usage = self.usage + usage
        self.cost = added_cost(self.cost, cost)
        if self.config.on_spend is not None:
            self.config.on_spend(usage, cost)
        else:
            self.publisher.publish(UsageUpdated(delta=usage, total=self.usage, cost=self.cost))

    def publish_context_usage(self, answer: AssistantMessage | None = None) -> None:
        """Tells how full the model's window is: as counted with `answer`, else as estimated."""
        counted = answer.usage if answer is not None and answer.usage.context_tokens > 0 else None
        tokens = counted.context_tokens + counted.output_tokens if counted else self.history.estimated_tokens()
        self.publisher.publish(
            ContextUsage(
                tokens=tokens,
                window=self.provider.model.context_window,
                source="actual" if counted else "estimate",
            )
        )


class AllowAllPolicy:
    """A permission checker for programs that bring their own safety, such as a container; its mode is `allow`."""

    @property
    def mode(self) -> PermissionMode:
        """Always `allow`."""
        return PermissionMode.ALLOW

    def set_mode(self, mode: PermissionMode) -> None:
        """Refuses every other mode: nothing here could keep it.

        Raises:
            ConfigurationError: `mode` is not `allow`.
        """
        if mode is not PermissionMode.ALLOW:
            raise ConfigurationError(f"mode {mode} needs a permission policy, and this agent was given none")

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """There is none."""
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """Allows."""
        return PermissionDecision(decision="allow", source="mode", reason="this agent has no permission policy")

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """Nothing needs to be stored."""
        return None

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Nothing needs to be stored."""
        return ()

    def grant(self, rule: str, scope: GrantScope) -> None:
        """Changes nothing: every call is allowed as it is."""


def make_agent(config: AgentLoopConfig) -> AgentState:
    """Puts an agent together; tells nothing yet.

    Raises:
        ConfigurationError: two tools have one name, or a guardrail is of no kind there is.
    """
    history = config.history
    if not isinstance(history, ConversationHistory):
        history = ConversationHistory(history, id=config.session_id or None)
    origin = Origin(
        session_id=config.session_id,
        agent_id=config.agent_id,
        parent_call_id=config.parent_call_id,
        depth=config.depth,
    )
    publisher = EventPublisher(config.bus or EventBus(), origin, ApprovalWaitClock(config.parent_wait_clock))
    history.registry.report_failures(lambda name, crash: publisher.publish(listener_warning(name, crash)))
    for layer in config.layers:
        history.registry.remove(layer.name)
        history.registry.set(layer)
    tools = ToolRegistry(config.tools)
    policy, gate = config.policy or AllowAllPolicy(), config.gate or ApprovalGate()
    executor = ToolExecutor(
        tools,
        bus=publisher,
        options=config.options,
        hooks=config.hooks or HookBus(),
        policy=policy,
        gate=gate,
        guardrails=tool_lanes(config.guardrails, history, publisher),
        agent=config.agent_id,
        before_effects=config.before_effects,
    )
    return AgentState(
        config=config,
        provider=config.provider,
        tools=tools,
        history=history,
        policy=policy,
        gate=gate,
        publisher=publisher,
        queue=SteeringQueue(publisher.publish),
        executor=executor,
        usage=config.usage,
        cost=config.cost,
    )
