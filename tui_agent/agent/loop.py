"""The agent: one conversation with a model, its tools, and a user who may send a message at any time.

`run` handles one input; everything else may be called while it runs. All of it happens on one event loop.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import NoneType
from typing import Literal, Self, TypeVar

from tui_agent.context.history import ConversationHistory
from tui_agent.execution import ApprovalGate, ExecutionOptions, ToolLike
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.events import AgentCreated, AgentDestroyed, SessionRewound, Warned
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.protocol.messages import (
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    UserKind,
    UserMessage,
    new_id,
)
from tui_agent.protocol.permissions import (
    ApprovalDecision,
    ApprovalRequest,
    PermissionChecker,
    PermissionMode,
    as_permission_mode,
)
from tui_agent.protocol.provider import ModelProvider, ModelRequest, StreamEvent
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.value_checks import expect_kind, expect_number

from . import conversation_editor
from .agent_parts import make_agent
from .agent_stream import AgentStream, StreamedRun
from .checkpoints import ResumedCalls, restore_state, restored_config, save_checkpoint, take_snapshot
from .command_run import CommandRun
from .current_run import CurrentRun, answer_beside, ask_user, child_config
from .loop_config import AgentLoopConfig, AgentLoopSnapshot, expect_provider
from .run import AgentRun
from .run_input import Trigger, UserInput, as_messages, as_user_message
from .steering_queue import SteeringQueue

T = TypeVar("T")


class AgentLoop:
    """One agent. It handles one input at a time and remembers everything between runs.

    Every command returns at once unless it is a coroutine function; its effects are published as events.
    """

    def __init__(self, config: AgentLoopConfig) -> None:
        """Build the agent and publish `agent.created` (S4-33).

        Raises:
            ConfigurationError: two tools have the same name, agent, tools and policy work in different directories, or
                `config` is not an AgentLoopConfig.
        """
        expect_kind("the configuration of AgentLoop", config, AgentLoopConfig, "an AgentLoopConfig(provider=…)")
        self._agent = agent = make_agent(config)
        self._run = CurrentRun()
        self._children: dict[str, AgentLoop] = {}
        if config.checkpoint is not None:
            agent.gate.on_request = lambda _: save_checkpoint(agent)
        model = agent.provider.model.name
        agent.publisher.publish(AgentCreated(model=model, tools=agent.tools.names, mode=agent.policy.mode))
        conversation_editor.remember_compactions(agent, config.compactions)
        if agent.history.length:
            agent.publish_context_usage()
        agent.queue.restore(config.waiting)
        agent.queue.on_steer = self._run.notify_steering

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """True while a run or a command of the user is in progress."""
        return self._run.is_in_progress

    @property
    def config(self) -> AgentLoopConfig:
        """The configuration. Limits changed in it (`max_steps`, `budget`, `max_tokens`) hold from the next step on."""
        return self._agent.config

    @property
    def history(self) -> ConversationHistory:
        """The conversation; its id is the agent's (S4-33). Its `registry` takes layers from any caller (S4-83)."""
        return self._agent.history

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model can call."""
        return tuple(self._agent.tools)

    @property
    def policy(self) -> PermissionChecker:
        """The policy that judges calls."""
        return self._agent.policy

    @property
    def gate(self) -> ApprovalGate:
        """The gate at which calls wait for the user's answer."""
        return self._agent.gate

    @property
    def bus(self) -> EventBus:
        """The bus on which the agent publishes its events."""
        return self._agent.publisher.bus

    @property
    def origin(self) -> Origin:
        """The origin of the next event: agent id and depth, and the run and step in progress."""
        return self._agent.publisher.origin

    @property
    def provider(self) -> ModelProvider:
        """The model provider; another one is used from the next request on."""
        return self._agent.provider

    @provider.setter
    def provider(self, provider: ModelProvider) -> None:
        expect_provider("AgentLoop.provider", provider)
        window, self._agent.provider = self._agent.provider.model.context_window, provider
        if self._agent.history.length and provider.model.context_window != window:
            self._agent.publish_context_usage()

    @property
    def reports(self) -> tuple[AgentRunReport, ...]:
        """One report a run, oldest first (S4-43)."""
        return tuple(self._agent.reports)

    @property
    def waiting_messages(self) -> tuple[UserMessage, ...]:
        """Queued messages and notices of this agent in order of delivery, without those that the user is editing."""
        return self._agent.queue.waiting

    @property
    def message_queues(self) -> tuple[SteeringQueue, ...]:
        """The queues of this agent, first, and of its running sub-agents at any depth."""
        return (self._agent.queue, *(queue for child in self._running for queue in child.message_queues))

    @property
    def pending_calls(self) -> tuple[ApprovalRequest, ...]:
        """Calls that wait for approval, now or since the snapshot from which this agent was restored."""
        return self._agent.pending_calls

    @property
    def children(self) -> Mapping[str, "AgentLoop"]:
        """The running sub-agents by their agent id; they can be steered and aborted like any agent."""
        return self._children

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(
        self,
        user_input: UserInput = None,
        *,
        trigger: Trigger | None = None,
        tools: Sequence[ToolLike] = (),
        allowed_tools: Callable[[str], bool] | None = None,
        provider: ModelProvider | None = None,
        cancellation: CancellationToken | None = None,
        run_id: str | None = None,
    ) -> AgentRunReport:
        """Handle one input to its end. Mistakes of the model are published and reported, not raised.

        Args:
            user_input: the input; None: continue with queued messages, or where the last run ended, calls that waited
                for approval included.
            trigger: the reason of the run, for `run.started`.
            tools: tools or functions for this run alone, in addition to the agent's own (S4-41).
            allowed_tools: returns True for the names of the tools that this run may use; None: all of them.
            provider: the model of this run; None: the agent's own.
            cancellation: a token that aborts this run alone, in addition to the config's.
            run_id: the run's id, for callers that must know it in advance; None: a new one.

        Raises:
            AlreadyRunningError: a run is in progress (S4-34); `steer` sends it a message.
            ConfigurationError: there is no input and nothing to continue, an argument is of the wrong kind, or one of
                `tools` has a name that is taken.
            asyncio.CancelledError: the task was cancelled; the conversation is complete and `run.ended` was published.
        """
        await self._run.expect_none()
        expect_kind("run(cancellation=…)", cancellation, (CancellationToken, NoneType), "a CancellationToken or None")
        messages, open_calls = as_messages(user_input), self._agent.open_calls
        if not messages and not self._agent.history.length and not self._agent.queue.waiting:
            raise ConfigurationError("there is nothing to run: no input, no queued message, no conversation")
        trigger = trigger or ("prompt" if messages else "resume" if open_calls else "continue")
        with self._agent.tools.extra(tools), self._agent.limited_to(allowed_tools, provider):
            resumed = ResumedCalls(self._agent, open_calls)
            run = AgentRun(self._agent, messages, trigger, resumed=resumed, cancellation=cancellation, run_id=run_id)
            with self._run.hold(run):
                self._agent.open_calls = {}
                return await run.execute()

    async def run_command(
        self, tool: str, arguments: JsonObject, said: str, *, shared: bool = True, typed: bool = False
    ) -> ToolResultMessage:
        """Call a tool for the user. The call is published like every other; the model is not asked.

        Args:
            tool: the tool's name; an unknown one gives a result that says so.
            arguments: the arguments of the call.
            said: the command as the user typed it.
            shared: True if the model reads the result with its next request; False: only the user sees it.
            typed: True if the user typed exactly this call: it runs without a question, as in a terminal. False: it is
                judged like a call of the model.

        Raises:
            AlreadyRunningError: a run is in progress, or calls that wait for approval must be answered first.
            asyncio.CancelledError: the task was cancelled; the call has a result and `run.ended` was published.
        """
        await self._run.expect_none()
        if self._agent.open_calls:
            raise AlreadyRunningError
        call = ToolCall(id=new_id("call"), name=tool, arguments=arguments)
        with self._run.hold(CommandRun(self._agent, call, said, shared=shared, typed=typed)) as run:
            return await run.execute()

    def stream(self, user_input: UserInput = None) -> AgentStream:
        """Run like `run`, read event by event: `async for event in loop.stream("…")` (S4-46).

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
                at_work=self._run.streamed,
            )
        )

    async def resume_with_approval(self, call_id: str, decision: ApprovalDecision) -> AgentRunReport | None:
        """Answer a call that waited for approval when the snapshot was taken, and continue from there (S4-74).

        The approval holds for the call as it was shown: if its tool or target has changed since, the agent asks again.
        Other calls that waited ask again; calls with an unknown outcome get a result that says so and are not repeated.

        Returns:
            The report of the run; None, and a warning, for a call that does not wait here (S4-75).

        Raises:
            AlreadyRunningError: a run is in progress.
            ConfigurationError: `decision` is not an ApprovalDecision.
        """
        await self._run.expect_none()
        expect_kind("the decision", decision, ApprovalDecision, "an ApprovalDecision(decision=…)")
        waiting = self._agent.open_calls.get(call_id)
        if waiting is None or waiting.request is None or waiting.answer is not None:
            text = f"No call {call_id} waits for an answer; nothing was done."
            self._agent.publisher.publish(Warned(code="unknown_pending_call", text=text, context={"call_id": call_id}))
            return None
        self._agent.gate.prefeed(call_id, decision, waiting.request.digest)
        return await self.run()

    # --- messages -----------------------------------------------------------------------------------------------------

    def steer(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for the next boundary of the run, or for the start of the next run. Return it as queued.

        Raises:
            ConfigurationError: it is empty, or neither text nor a UserMessage.
        """
        return self._queue(message, "steer")

    def follow_up(self, message: str | UserMessage) -> UserMessage:
        """Queue a message for a turn of its own, at the time the run would end. Return it as queued.

        Raises:
            ConfigurationError: it is empty, or neither text nor a UserMessage.
        """
        return self._queue(message, "follow_up")

    def notify(self, text: str) -> UserMessage:
        """Queue a notice of the program for the model, which reads it with its next request; return it as queued.

        Unlike a steering message, it skips no calls and withdraws no questions. It starts no run.

        Raises:
            ConfigurationError: the text is empty.
        """
        return self._queue(text, "notice")

    def drop_message(self, message_id: str) -> UserMessage | None:
        """Remove a message from the queue of this agent or of a sub-agent; return it, or None if it is not queued."""
        return self._agent.queue.drop(message_id) or _first(child.drop_message(message_id) for child in self._running)

    def steer_child(self, name: str, message: str | UserMessage) -> UserMessage | None:
        """Steer a running sub-agent, at any depth. If it ends before it reads the message, this agent gets it.

        Args:
            name: its agent id, or the part before the last `-`: then the oldest of several.
            message: the message.

        Returns:
            The message as queued; None if no sub-agent of that name is running.

        Raises:
            ConfigurationError: the message is empty.
        """
        for agent_id, child in self._children.items():
            if name in (agent_id, agent_id.rpartition("-")[0]):
                return child.steer(message)
        return _first(child.steer_child(name, message) for child in self._running)

    # --- interrupting -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the run after this step, without waiting for that; does nothing without a run."""
        self._run.stop()

    def delay_requests(self, seconds: float) -> None:
        """Send no request to the model for so many seconds from now, sub-agents included. A longer wait stays."""
        self.config.request_delay.extend(seconds)

    def abort(self, reason: str = "aborted") -> None:
        """End the run and those of its sub-agents now: the stream is closed and the calls are cancelled.

        Returns at once; does nothing without a run. The text so far is kept, every call gets a result, and queued
        messages stay queued.
        """
        self._run.abort(reason)
        for child in self._running:
            child.abort(reason)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Cancel one call of this agent or of a sub-agent. The run continues, and the model reads the reason.

        Returns:
            False if the call has ended, is being stopped already, or is unknown.
        """
        return self._run.cancel_call(call_id, reason) or any(
            child.cancel_call(call_id, reason) for child in self._running
        )

    def extend_call(self, call_id: str, seconds: float) -> float | None:
        """Give one running call of this agent or of a sub-agent more time before it is stopped.

        Args:
            call_id: the call.
            seconds: the time to add to its limit.

        Returns:
            Its new limit in seconds from its start; None if it has no limit, does not run, or is unknown.

        Raises:
            ConfigurationError: `seconds` is not more than 0.
        """
        expect_number("the seconds", seconds, more_than=True)
        return self._run.extend_call(call_id, seconds) or _first(
            child.extend_call(call_id, seconds) for child in self._running
        )

    def destroy(self, reason: str = "closed") -> None:
        """Abort the run, without waiting for its end, and publish `agent.destroyed` (S4-90).

        The provider is not closed: it belongs to the caller.
        """
        self.abort(reason)
        self._agent.publisher.publish(AgentDestroyed(reason=reason))

    # --- settings -----------------------------------------------------------------------------------------------------

    def set_mode(self, mode: PermissionMode | str, by: str = "user") -> None:
        """Change the permission mode at once, also for calls that wait for approval.

        Args:
            mode: a `PermissionMode`, or its text, such as `"plan"`.
            by: who changes it, for the event.

        Raises:
            ConfigurationError: no mode has this name, or this agent has no permission policy.
        """
        self._agent.set_mode(as_permission_mode("permission mode", mode), by)

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        """Answer an approval request.

        Args:
            request_id: the id of the request.
            decision: the answer.
            by: `nobody` if the request is denied because no one can answer it any more.

        Returns:
            True only for the first answer to an open request.

        Raises:
            ConfigurationError: `decision` is not an ApprovalDecision.
        """
        expect_kind("the decision", decision, ApprovalDecision, "an ApprovalDecision(decision=…)")
        return self._agent.gate.resolve(request_id, decision, by)

    def set_options(self, options: ExecutionOptions) -> None:
        """Change the execution options from the next response on; calls in progress may end as they began.

        Raises:
            ConfigurationError: `options` is not an ExecutionOptions.
        """
        expect_kind("the options", options, ExecutionOptions, "ExecutionOptions")
        self._agent.config.options = options
        self._agent.executor.set_options(options)

    def add_tool(self, tool: ToolLike) -> None:
        """Give the agent another tool, or a function as one, from the next request on (S4-82).

        Raises:
            ConfigurationError: `tool` is not a tool, the agent already has one of that name, or lacks its deps.
        """
        self._agent.tools.add(tool)

    # --- beside the conversation --------------------------------------------------------------------------------------

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the user a question that belongs to no call, and wait for the answer.

        It is `deny` after the gate's `timeout`, and at once if neither an approver nor a front end can answer.
        """
        return await ask_user(self._agent, request)

    async def answer_beside(
        self,
        request: ModelRequest,
        provider: ModelProvider | None = None,
        take: Callable[[StreamEvent], object] = lambda _: None,
    ) -> SideAnswer:
        """Ask the model something outside the conversation. The usage counts for the agent and its run.

        Args:
            request: the request.
            provider: another model; None: that of the agent.
            take: receives the events of the response, also those of one that fails.

        Raises:
            ProviderError: the model did not answer, or the budget of the run is used up.
        """
        return await answer_beside(self._agent, self._run, request, provider, take)

    # --- the conversation between runs --------------------------------------------------------------------------------

    async def compact(self, focus: str = "") -> bool:
        """Compact the conversation now, if possible to half its size. False if that failed: see `compaction.ended`.

        Args:
            focus: what the summary must keep.

        Raises:
            AlreadyRunningError: a run is in progress.
            ConfigurationError: this agent has no context guard.
        """
        await self._run.expect_none()
        return await conversation_editor.compact(self._agent, focus)

    def undo_compaction(self) -> None:
        """Undo the last compaction; later messages stay.

        Raises:
            AlreadyRunningError: a run is in progress.
            CompactionError: nothing was compacted, or the last compaction can no longer be undone.
            ConfigurationError: this agent has no context guard.
        """
        self._run.refuse()
        conversation_editor.undo_compaction(self._agent)

    def apply_rewind(self, messages: Sequence[Message], event: SessionRewound) -> None:
        """Restore the conversation as far as `event` says, append its notice, and publish it.

        Args:
            messages: the conversation right after the event to which the session is rewound.
            event: the event to publish; the journal folds to the same conversation.

        Raises:
            AlreadyRunningError: a run is in progress.
        """
        self._run.refuse()
        conversation_editor.apply_rewind(self._agent, messages, event)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def dump(self) -> AgentLoopSnapshot:
        """Return a snapshot from which another process can restore this agent (S4-76); nothing is stored.

        During a run, the calls that wait for approval are part of it, so that the restored agent can resume them.
        """
        return take_snapshot(self._agent)

    @classmethod
    def restore(cls, snapshot: AgentLoopSnapshot, config: AgentLoopConfig) -> Self:
        """Return the agent of a snapshot (S4-77), whose values replace the config's; a system function stays.

        Publishes a `warning` with the code `tool_removed` or `tool_added` for each tool that differs (S4-78).

        Raises:
            ConfigurationError: an argument is of the wrong kind.
        """
        loop = cls.from_config(restored_config(snapshot, config))
        restore_state(loop._agent, snapshot)
        return loop

    @classmethod
    def from_config(cls, config: AgentLoopConfig) -> Self:
        """Return an agent with this configuration; it publishes and raises what the class does."""
        return cls(config)

    # --- sub-agents ---------------------------------------------------------------------------------------------------

    def child_config(self, agent_id: str, call_id: str | None) -> AgentLoopConfig:
        """Return the configuration of a sub-agent: the same model, tools, permissions, gate and bus, one level deeper.

        Its usage counts here, too. The caller chooses its conversation, its system prompt and its limits. `call_id` is
        the call that starts it; None if none does.
        """
        return child_config(self._agent, self._run, agent_id, call_id)

    @contextmanager
    def running_child(self, child: "AgentLoop") -> Generator[None]:
        """Keep `child` among `children` while the context is open; then destroy it, and queue its unread messages."""
        agent_id = child.origin.agent_id
        self._children[agent_id] = child
        try:
            yield
        finally:
            del self._children[agent_id]
            # The user sent them for this work, so this agent gets those that were not read.
            child.message_queues[0].move_to(self._agent.queue)
            child.destroy("done")

    @property
    def _running(self) -> tuple["AgentLoop", ...]:
        # A copy: a sub-agent may end meanwhile.
        return tuple(self._children.values())

    # --- inside -------------------------------------------------------------------------------------------------------

    def _queue(self, message: str | UserMessage, kind: UserKind) -> UserMessage:
        return self._agent.queue.put(as_user_message(message).model_copy(update={"kind": kind}))


def _first(answers: Iterable[T | None]) -> T | None:
    """Return the first answer of a sub-agent that has one."""
    return next(filter(None, answers), None)
