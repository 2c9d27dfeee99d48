"""Snapshots of an agent: take, store and restore one; a restored agent resumes calls that had no results."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tui_agent.context import UNANSWERED
from tui_agent.context.history import ConversationHistory
from tui_agent.context.registry import CONTEXT_LAYER, SYSTEM_LAYER, layer_text
from tui_agent.execution import ToolExecutionResult, ToolScheduler
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import CheckpointRestored, CheckpointSaved, Warned
from tui_agent.protocol.messages import ToolResultMessage, UserMessage, now_ms
from tui_agent.protocol.past_session import OpenCall
from tui_agent.protocol.value_checks import expect_kind

from .agent_state import AgentState
from .loop_config import AgentLoopConfig, AgentLoopSnapshot


def tool_warnings(before: Iterable[str], now: Iterable[str]) -> tuple[Warned, ...]:
    """Return warnings for tools that were removed or added since the snapshot was taken (S4-78)."""
    known, present = list(before), list(now)
    gone, new = "was removed since this session was saved; calls of it fail", "was added since this session was saved"
    removed = [
        Warned(code="tool_removed", text=f"tool {name} {gone}", context={"tool": name})
        for name in known
        if name not in present
    ]
    added = [
        Warned(code="tool_added", text=f"tool {name} {new}", context={"tool": name})
        for name in present
        if name not in known
    ]
    return (*removed, *added)


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
        # Those of sub-agents belong to their own snapshots.
        pending_tool_calls=tuple(request for request in agent.pending_calls if request.agent == own),
        waiting_messages=agent.queue.all,
        usage=agent.usage,
        cost=agent.cost,
    )


async def save_checkpoint(agent: AgentState) -> None:
    """Store a snapshot in the configured store, if there is one, and publish `checkpoint.saved` (S4-71).

    Raises:
        Exception: anything that the store raises; nothing was published.
    """
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
        # Its layer is part of the snapshot's context.
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
    # A restored agent is the same agent.
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


class ResumedCalls:
    """The calls that were open when the process ended. The next run gives them their results, in order.

    A call that had not started is judged again and run, unless there is new input. A finished call gets its stored
    result. A call with an unknown outcome is not repeated, because it may have had its effect already.
    """

    def __init__(self, agent: AgentState, known: Mapping[str, OpenCall]) -> None:
        """
        Args:
            agent: the agent.
            known: the known facts about calls without results at the end of the conversation, by id.
        """
        self.scheduler: ToolScheduler | None = None
        """The scheduler of these calls; None until `execute` resumes them."""
        self._agent = agent
        self._known = known

    async def execute(self, token: CancellationToken, *, has_input: bool) -> ToolExecutionResult | None:
        """Give each call its result and return all of them; None if no call was open.

        Args:
            token: cancels the calls.
            has_input: True if the user said something instead of answering.
        """
        history, queue = self._agent.history, self._agent.queue
        if not self._known:
            return None
        waited_before = {message.id for message in queue.waiting}

        async def take_steers() -> tuple[UserMessage, ...]:
            # Messages from before this run follow the calls that it resumes; the calls yield only to a new one.
            new = [message for message in queue.waiting if message.id not in waited_before]
            is_steered = any(message.kind == "steer" for message in new)
            return queue.take_steers() if is_steered and not token.is_set() else ()

        def add_result(result: ToolResultMessage) -> None:
            history.append(result)

        calls = history.open_calls
        async with ToolScheduler(
            self._agent.executor, cancellation=token, get_steering=take_steers, on_result=add_result
        ) as scheduler:
            self.scheduler = scheduler
            scheduler.submit_all(calls)
            for call in calls:
                self._settle(scheduler, call.id, self._known.get(call.id), has_input=has_input)
            return await scheduler.finish()

    def _settle(self, scheduler: ToolScheduler, call_id: str, known: OpenCall | None, *, has_input: bool) -> None:
        """Give a call what is known of it; one that had not started needs nothing to be run."""
        if known is None:
            scheduler.mark_interrupted(call_id, UNANSWERED)
        elif known.result is not None:
            scheduler.answer_call(call_id, known.result)
        # It ran before, so only its changes are decided on.
        elif known.layer_of or (known.fate == "in_trial" and known.request):
            self._resume_changes(scheduler, known, has_input=has_input)
        elif known.fate != "not_started" or has_input:
            scheduler.mark_interrupted(call_id, UNANSWERED)

    def _resume_changes(self, scheduler: ToolScheduler, call: OpenCall, *, has_input: bool) -> None:
        """Let the changes of a call be decided on: by the answer of the user, by a new question, or, because the user
        sent a message instead, not at all."""
        discards = "the user sent a message instead of an answer" if has_input and call.answer is None else ""
        scheduler.resume_changes(call.call_id, call.layer_of or call.call_id, discards)
        if call.answer is not None and call.request is not None:
            self._agent.gate.prefeed(call.call_id, call.answer, call.request.digest)
