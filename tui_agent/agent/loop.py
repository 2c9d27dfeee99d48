"""The agent: one conversation with a model, its tools, and a person who may say something at any time (seed 004).

`run` handles one input; everything else may be called while it goes on. All of it happens on one event loop.
"""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Self

from tui_agent.context.guard import Compaction
from tui_agent.context.history import ConversationHistory
from tui_agent.context.layers import CONTEXT_LAYER, OUTPUT_LAYER, SYSTEM_LAYER, layer_text, write_layer
from tui_agent.execution import ToolLike
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.events import (
    AgentCreated,
    CheckpointRestored,
    CheckpointSaved,
    Warned,
)
from tui_agent.protocol.messages import (
    JsonObject,
    ToolCall,
    ToolResultMessage,
    Usage,
    new_id,
    now_ms,
)
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.value_checks import expect_items, expect_kind

from .agent_controls import AgentControls
from .agent_state import AgentState, make_agent
from .agent_stream import AgentStream, StreamedRun
from .command_run import CommandRun
from .conversation_controls import ConversationControls
from .loop_config import AgentLoopConfig
from .run import OWNER, AgentRun
from .run_input import Trigger, UserInput, as_messages
from .snapshot import AgentLoopSnapshot, OpenCall, tool_warnings
from .system_prompt import environment_text


class AgentLoop(AgentControls, ConversationControls):
    """One agent. It handles one input at a time and remembers everything between runs."""

    def __init__(self, config: AgentLoopConfig) -> None:
        """Puts the agent together and tells `agent.created` (S4-33).

        Raises:
            ConfigurationError: two tools have the same name, or `config` is not an AgentLoopConfig.
        """
        expect_kind("the configuration of AgentLoop", config, AgentLoopConfig, "an AgentLoopConfig(provider=…)")
        agent = make_agent(config)
        super().__init__(agent, config.open_calls)
        _write_own_layers(agent)
        if config.checkpoint is not None:
            agent.gate.on_request = self._save_checkpoint
        model = agent.provider.model.name
        agent.publisher.publish(AgentCreated(model=model, tools=agent.tools.names, mode=agent.policy.mode))
        if agent.history.length:
            agent.publish_context_usage()
        agent.queue.restore(config.waiting)
        if config.guard is not None:
            done = (Compaction(one.strategy, 0, 0, one.cut, one.removed, one.replacement) for one in config.compactions)
            config.guard.remember(agent.history, done)

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(
        self,
        user_input: UserInput = None,
        *,
        trigger: Trigger | None = None,
        tools: Sequence[ToolLike] = (),
        cancellation: CancellationToken | None = None,
        run_id: str | None = None,
    ) -> AgentRunReport:
        """Handles one input to its end. What the model does wrong is told and reported, not raised.

        Args:
            user_input: what is said; None: go on with what waits, or where the last run ended, which may be with calls
                that waited for a person.
            trigger: why it runs; told in `run.started`.
            tools: tools or functions for this run alone, beside the agent's own (S4-41).
            cancellation: a token that aborts this run alone, beside the config's (C34).
            run_id: the run's id, where somebody must know it before; a fresh one where None.

        Raises:
            AlreadyRunningError: a run goes on (S4-34); `steer` is what is wanted then.
            ConfigurationError: there is nothing to say, an argument is of the wrong kind, or one of `tools` has a name
                that is taken.
            asyncio.CancelledError: the task was cancelled; the conversation is whole and `run.ended` was told.
        """
        await self._wait_for_abandoned_streams()
        if self._run is not None:
            raise AlreadyRunningError
        expect_kind("run(cancellation=…)", cancellation, (CancellationToken, NoneType), "a CancellationToken or None")
        messages, open_calls = as_messages(user_input), self._open_calls
        if not messages and not self._agent.history.length and not self._agent.queue.waiting:
            raise ConfigurationError("there is nothing to run: no input, no message that waits, no conversation")
        trigger = trigger or ("prompt" if messages else "resume" if open_calls else "continue")
        with self._with_extra_tools(tools):
            self._run = AgentRun(
                self._agent, messages, trigger, open_calls=open_calls, cancellation=cancellation, run_id=run_id
            )
            self._open_calls = {}
            try:
                return await self._run.execute()
            finally:
                self._run = None

    async def run_command(
        self, tool: str, arguments: JsonObject, said: str, *, shared: bool = True
    ) -> ToolResultMessage:
        """Calls a tool for the person: judged, asked about and told like every call; the model is not asked.

        Args:
            tool: its name; a tool that is not there is answered as not found.
            arguments: what it is given.
            said: the command as the person typed it.
            shared: whether the model reads what it gave, from its next request on; False: it stays with the person.

        Raises:
            AlreadyRunningError: a run goes on, or calls that waited for a person must be answered first.
            asyncio.CancelledError: the task was cancelled; the call was answered and `run.ended` was told.
        """
        await self._wait_for_abandoned_streams()
        if self._run is not None or self._open_calls:
            raise AlreadyRunningError
        call = ToolCall(id=new_id("call"), name=tool, arguments=arguments)
        self._run = run = CommandRun(self._agent, call, said, shared=shared)
        try:
            return await run.execute()
        finally:
            self._run = None

    def stream(self, user_input: UserInput = None) -> AgentStream:
        """The same as `run`, read event by event: `async for event in loop.stream("…")` (S4-46).

        The run starts when the first event is requested; its exceptions are raised there. Leaving the loop aborts the
        run; see `AgentStream`.
        """
        run_id = new_id("run")
        return AgentStream(
            StreamedRun(
                self.bus,
                lambda: self.run(user_input, run_id=run_id),
                agent_id=self._agent.config.agent_id,
                run_id=run_id,
                at_work=self._streams,
            )
        )

    # --- keeping and taking up again ----------------------------------------------------------------------------------

    def dump(self) -> AgentLoopSnapshot:
        """Everything needed to take this agent up again elsewhere, also in the middle of a run (S4-76)."""
        agent = self._agent
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
            pending_tool_calls=tuple(request for request in self.pending_calls if request.agent == own),
            waiting_messages=agent.queue.waiting,
            usage=agent.usage,
            cost=agent.cost,
        )

    @classmethod
    def restore(cls, snapshot: AgentLoopSnapshot, config: AgentLoopConfig) -> Self:
        """Takes an agent up again (S4-77). What the snapshot knows replaces the config's; a system function stays.

        Tells `warning`s with the codes `tool_removed` and `tool_added` where its tools are not the same (S4-78).

        Raises:
            ConfigurationError: an argument is of the wrong kind.
        """
        loop = cls.from_config(restored_config(snapshot, config))
        loop._take_over(snapshot)
        return loop

    @classmethod
    def from_config(cls, config: AgentLoopConfig) -> Self:
        """Return an agent with this configuration."""
        return cls(config)

    def _take_over(self, snapshot: AgentLoopSnapshot) -> None:
        """Restore the parts of a snapshot that a configuration lacks, and report tools that were added or removed."""
        agent = self._agent
        agent.reports.extend(snapshot.reports)
        agent.metadata.update(snapshot.metadata)
        agent.created_at = snapshot.created_at
        pending = (OpenCall(request.call_id, "not_started", request=request) for request in snapshot.pending_tool_calls)
        self._open_calls = {call.call_id: call for call in pending}
        for warning in tool_warnings(snapshot.tool_names, agent.tools.names):
            agent.publisher.publish(warning)
        agent.publisher.publish(CheckpointRestored(key=self._checkpoint_key, pending=tuple(self._open_calls)))

    async def resume_with_approval(self, call_id: str, decision: ApprovalDecision) -> AgentRunReport | None:
        """Answers a call that waited for a person when the snapshot was taken, and goes on from there (S4-74).

        The call itself is executed, bound to what was asked: if its tool or target changed, the question comes again
        (C43). Other calls that waited ask again; calls whose outcome nobody knows are answered as such, not repeated.

        Returns:
            The report of the run; None for a call that does not wait here, which only gives a warning (S4-75).

        Raises:
            AlreadyRunningError: a run goes on.
            ConfigurationError: `decision` is not an ApprovalDecision.
        """
        await self._wait_for_abandoned_streams()
        if self._run is not None:
            raise AlreadyRunningError
        expect_kind("the decision", decision, ApprovalDecision, "an ApprovalDecision(decision=…)")
        waiting = self._open_calls.get(call_id)
        if waiting is None or waiting.request is None:
            text = f"No call {call_id} waits for an answer; nothing was done."
            self._agent.publisher.publish(Warned(code="unknown_pending_call", text=text, context={"call_id": call_id}))
            return None
        self._agent.gate.prefeed(call_id, decision, waiting.request.digest)
        return await self.run()

    # --- sub-agents ---------------------------------------------------------------------------------------------------

    def child_config(self, agent_id: str, call_id: str | None) -> AgentLoopConfig:
        """The configuration of a sub-agent: the same model, tools, permissions, gate and bus, one floor deeper.

        What it uses counts here, too. Its conversation, its system prompt and its limits are the caller's to choose.
        """
        agent, config = self._agent, self._agent.config
        return replace(
            config,
            provider=agent.provider,
            tools=tuple(agent.tools),
            bus=agent.publisher.bus,
            policy=agent.policy,
            gate=agent.gate,
            history=(),
            open_calls=(),
            compactions=(),
            waiting=(),
            checkpoint=None,
            output=None,
            agent_id=agent_id,
            parent_call_id=call_id,
            depth=config.depth + 1,
            usage=Usage(),
            cost=None,
            on_spend=self._count,
            parent_overrun=self._overrun,
            parent_wait_clock=agent.publisher.waits,
        )

    @contextmanager
    def running_child(self, child: "AgentLoop") -> Generator[None]:
        """Has `child` among `children` for as long as the context is open; then it is told to be gone, and what it was
        told and did not read is this agent's to read."""
        agent_id = child.origin.agent_id
        self._children[agent_id] = child
        try:
            yield
        finally:
            del self._children[agent_id]
            for message in child.waiting_messages:
                child.drop_message(message.id)
                self.steer(message.model_copy(update={"id": new_id("msg")}))
            child.destroy("done")

    @contextmanager
    def _with_extra_tools(self, tools: Sequence[ToolLike]) -> Generator[None]:
        """Has more tools for as long as the context is open."""
        registry = self._agent.tools
        with ExitStack() as taken_back:
            for tool in expect_items("run(tools=…)", tools, None, "a list of tools and functions"):
                taken_back.callback(registry.remove, registry.add(tool).name)
            yield

    def _count(self, usage: Usage, cost: float | None) -> None:
        """What a sub-agent used is this agent's and its run's as well."""
        self._agent.count(usage, cost)
        if self._run is not None:
            self._run.count(usage, cost)

    def _overrun(self) -> str | None:
        """Which limit of this agent's run is reached while its sub-agents work."""
        return self._run.overrun() if self._run is not None else None

    @property
    def _checkpoint_key(self) -> str:
        return f"agent-loop:{self._agent.history.id}"

    async def _save_checkpoint(self, request: ApprovalRequest) -> None:
        """Stores the agent's state while a call waits for a person (S4-71)."""
        store = self._agent.config.checkpoint
        if store is not None:
            snapshot = self.dump()
            await store.set(self._checkpoint_key, snapshot)
            pending = tuple(waiting.call_id for waiting in snapshot.pending_tool_calls)
            self._agent.publisher.publish(CheckpointSaved(key=self._checkpoint_key, pending=pending))


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


def _write_own_layers(agent: AgentState) -> None:
    """Write the loop's own layers (S4-31); a system function is asked when a run starts."""
    config, registry = agent.config, agent.history.registry
    if isinstance(config.system, str):
        write_layer(registry, SYSTEM_LAYER, config.system, OWNER)
    write_layer(registry, OUTPUT_LAYER, config.output.instructions if config.output else "", OWNER)
    environment = environment_text(Path(config.workspace)) if config.workspace else ""
    write_layer(registry, CONTEXT_LAYER, "\n\n".join(filter(None, (environment, config.context))), OWNER)
