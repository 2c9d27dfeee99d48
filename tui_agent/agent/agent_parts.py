"""Parts of a new agent: those of its configuration, a policy if that has none, and its own layers of the prompt."""

import platform
from functools import partial
from pathlib import Path

from tui_agent.context import (
    CONTEXT_LAYER,
    OUTPUT_LAYER,
    SYSTEM_LAYER,
    ContextRegistry,
    ConversationHistory,
    write_layer,
)
from tui_agent.execution import ApprovalGate, HookBus, ToolExecutor, ToolRegistry
from tui_agent.protocol.bus import EventBus, listener_warning
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.function_tool import expect_deps
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
)
from tui_agent.protocol.permissions import (
    GrantScope,
    PermissionDecision,
    PermissionMode,
)
from tui_agent.protocol.tool import Tool

from .agent_state import OWNER, AgentState
from .event_publisher import ApprovalWaitClock, EventPublisher
from .guardrails import tool_lanes
from .loop_config import AgentLoopConfig
from .steering_queue import SteeringQueue


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
    # A listener that raises must be seen, but must not stop the run that changed a layer.
    history.registry.report_failures(lambda name, crash: publisher.publish(listener_warning(name, crash)))
    for layer in config.layers:
        history.registry.remove(layer.name)
        history.registry.set(layer)
    tools = ToolRegistry(config.tools)
    tools.only = config.only_tools
    tools.expect = partial(expect_deps, deps=config.resources.deps)
    # A call that is judged in one directory and runs in another would not be judged at all.
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
    # A resumed conversation owns its old ids: a server that counts from zero must not get one twice.
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


def environment_text(workspace: Path) -> str:
    """Return the facts that hold for a whole session: its directory and the platform."""
    return f"Working directory: {workspace}\nPlatform: {platform.system()} {platform.machine()}"
