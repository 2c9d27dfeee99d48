"""Snapshots of an agent: taking one, storing one while a call waits for approval, and restoring one."""

from dataclasses import replace

from tui_agent.context.history import ConversationHistory
from tui_agent.context.registry import CONTEXT_LAYER, SYSTEM_LAYER, layer_text
from tui_agent.protocol.events import CheckpointRestored, CheckpointSaved
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.past_session import OpenCall
from tui_agent.protocol.value_checks import expect_kind

from .agent_state import AgentState
from .loop_config import AgentLoopConfig
from .snapshot import AgentLoopSnapshot, tool_warnings


def take_snapshot(agent: AgentState) -> AgentLoopSnapshot:
    """Return everything needed to restore this agent."""
    own = agent.config.agent_id
    return AgentLoopSnapshot(
        system=layer_text(agent.history.registry, SYSTEM_LAYER),
        context=layer_text(agent.history.registry, CONTEXT_LAYER),
        history=agent.history.export(),
        tool_names=agent.tools.names,
        reports=tuple(agent.reports),
        metadata=dict(agent.metadata),
        created_at=agent.created_at,
        saved_at=now_ms(),
        pending_tool_calls=tuple(request for request in agent.pending_calls if request.agent == own),
        waiting_messages=agent.queue.all,
        usage=agent.usage,
        cost=agent.cost,
    )


async def save_checkpoint(agent: AgentState) -> None:
    """Store a snapshot in the configured store, if there is one, and publish `checkpoint.saved` (S4-71)."""
    store = agent.config.checkpoint
    if store is not None:
        key, snapshot = _key_of(agent), take_snapshot(agent)
        await store.set(key, snapshot)
        pending = tuple(request.call_id for request in snapshot.pending_tool_calls)
        agent.publisher.publish(CheckpointSaved(key=key, pending=pending))


def restored_config(snapshot: AgentLoopSnapshot, config: AgentLoopConfig) -> AgentLoopConfig:
    """Return a configuration with the conversation of a snapshot, whose values replace those of `config`.

    Raises:
        ConfigurationError: an argument is of the wrong kind.
    """
    expect_kind("the snapshot of AgentLoop.restore", snapshot, AgentLoopSnapshot, "an AgentLoopSnapshot")
    expect_kind("the configuration of AgentLoop.restore", config, AgentLoopConfig, "an AgentLoopConfig")
    return replace(
        config,
        system=snapshot.system if isinstance(config.system, str) else config.system,
        context=snapshot.context,
        workspace=None,
        history=ConversationHistory.restore(snapshot.history),
        waiting=snapshot.waiting_messages,
        usage=snapshot.usage,
        cost=snapshot.cost,
    )


def restore_state(agent: AgentState, snapshot: AgentLoopSnapshot) -> None:
    """Restore the parts of a snapshot that a configuration lacks, and report tools that were added or removed."""
    agent.reports.extend(snapshot.reports)
    agent.metadata.update(snapshot.metadata)
    agent.created_at = snapshot.created_at
    pending = (
        OpenCall(request.call_id, "in_trial" if request.changes else "not_started", request=request)
        for request in snapshot.pending_tool_calls
    )
    agent.open_calls = {call.call_id: call for call in pending}
    for warning in tool_warnings(snapshot.tool_names, agent.tools.names):
        agent.publisher.publish(warning)
    agent.publisher.publish(CheckpointRestored(key=_key_of(agent), pending=tuple(agent.open_calls)))


def _key_of(agent: AgentState) -> str:
    return f"agent-loop:{agent.history.id}"
