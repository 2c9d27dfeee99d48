"""The state of an agent between its runs: its parts, its conversation, and its usage."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.context import (
    CONTEXT_LAYER,
    OUTPUT_LAYER,
    SYSTEM_LAYER,
    ContextRegistry,
    ConversationHistory,
    write_layer,
)
from tui_agent.context.tokens import estimate_text
from tui_agent.execution import ApprovalGate, HookBus, ToolExecutor, ToolLike, ToolRegistry
from tui_agent.protocol.bus import EventBus, listener_warning
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ContextUsage, MessageEnded, MessageStarted, PermissionModeChanged, UsageUpdated
from tui_agent.protocol.function_tool import expect_deps
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
    GrantScope,
    PermissionChecker,
    PermissionDecision,
    PermissionMode,
)
from tui_agent.protocol.provider import ModelInfo, ModelProvider
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import expect_items

from .event_publisher import ApprovalWaitClock, EventPublisher
from .guardrails import tool_lanes
from .loop_config import AgentLoopConfig
from .run_report import added_cost
from .steering_queue import SteeringQueue
from .system_prompt import environment_text

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
        """Append a message whose start was published to the conversation, and publish its end."""
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

    def add_tool(self, tool: ToolLike) -> Tool:
        """Give the agent another tool, and return it.

        Raises:
            ConfigurationError: it is not a tool, its name is taken, or its context has deps that the agent lacks.
        """
        made = self.tools.add(tool)
        try:
            expect_deps(made, self.config.resources.deps)
        except ConfigurationError:
            self.tools.remove(made.name)
            raise
        return made

    @contextmanager
    def extra_tools(self, tools: Sequence[ToolLike]) -> Generator[None]:
        """Add tools while the context is open (S4-41).

        Raises:
            ConfigurationError: one of them is not a tool, or has a name that is taken.
        """
        with ExitStack() as added:
            for tool in expect_items("run(tools=…)", tools, None, "a list of tools and functions"):
                added.callback(self.tools.remove, self.add_tool(tool).name)
            yield

    @contextmanager
    def limited_to(self, allowed: Callable[[str], bool] | None, provider: ModelProvider | None) -> Generator[None]:
        """Hide the tools whose names are not allowed, and use another model, while the context is open."""
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
        """Change the permission mode, publish that, and judge the calls that wait for approval again."""
        old = self.policy.mode
        if mode is not old:
            self.policy.set_mode(mode)
            self.publisher.publish(PermissionModeChanged(old=old, new=mode, by=by))
            self.gate.reconsider()

    async def flush_events(self) -> None:
        """Wait until what the next request must not contain before it is stored is stored: outcomes of effects."""
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
        """Count the tokens of an answer by `model`, kept or not. Return its cost in dollars."""
        cost = model.cost_of(usage)
        self.count(usage, cost, model.name)
        return cost

    def count(self, usage: Usage, cost: float | None, model: str) -> None:
        """Add to the sums. A sub-agent passes them to its parent; the root agent publishes them."""
        self.usage = self.usage + usage
        self.cost = added_cost(self.cost, cost)
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


class AllowAllPolicy:
    """The permission checker of an agent without a policy: it allows all calls, for programs that are isolated."""

    @property
    def mode(self) -> PermissionMode:
        """Always `allow`."""
        return PermissionMode.ALLOW

    def set_mode(self, mode: PermissionMode) -> None:
        """Refuse every other mode: without a policy it would have no effect.

        Raises:
            ConfigurationError: `mode` is not `allow`.
        """
        if mode is not PermissionMode.ALLOW:
            raise ConfigurationError(f"mode {mode} needs a permission policy, and this agent has none")

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        """Return None: nothing is refused in all modes."""
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        """Allow the call."""
        return PermissionDecision(decision="allow", source="mode", reason="this agent has no permission policy")

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        """Return None: no rule is needed."""
        return None

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        """Return no rules."""
        return ()

    def grant(self, rule: str, scope: GrantScope) -> None:
        """Do nothing: every call is allowed anyway."""


def make_agent(config: AgentLoopConfig) -> AgentState:
    """Build the parts of an agent; publishes no events.

    Raises:
        ConfigurationError: two tools have the same name, tools, agent and policy work in different directories, or a
            guardrail is of an unknown kind.
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
    tools.only = config.only_tools
    tools.expect_directory(config.workspace and Path(config.workspace), "the agent")
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
        effects_published=config.effects_published,
        resources=config.resources,
    )
    _write_own_layers(config, history.registry)
    for message in history.messages():
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            config.call_owners.setdefault(call.id, config.agent_id)
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
        open_calls={call.call_id: call for call in config.open_calls},
    )


def _write_own_layers(config: AgentLoopConfig, registry: ContextRegistry) -> None:
    """Write the loop's own layers (S4-31); a system function is called when a run starts."""
    if isinstance(config.system, str):
        write_layer(registry, SYSTEM_LAYER, config.system, OWNER)
    write_layer(registry, OUTPUT_LAYER, config.output.instructions if config.output else "", OWNER)
    environment = environment_text(Path(config.workspace)) if config.workspace else ""
    write_layer(registry, CONTEXT_LAYER, "\n\n".join(filter(None, (environment, config.context))), OWNER)
