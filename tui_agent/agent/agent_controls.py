"""What may be asked of an agent while it works: words, brakes, the mode, the answers to its questions."""

from collections.abc import Iterable, Mapping
from typing import Literal

from tui_agent.execution import ExecutionOptions, ToolLike
from tui_agent.protocol.events import AgentDestroyed, PermissionModeChanged
from tui_agent.protocol.messages import UserKind, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode, as_permission_mode
from tui_agent.protocol.value_checks import expect_kind

from .agent_state import AgentState
from .agent_view import AgentView
from .run_input import as_user_message
from .snapshot import OpenCall


class AgentControls(AgentView):
    """One agent, to be steered. Everything here returns at once; what comes of it are events."""

    def __init__(self, agent: AgentState, open_calls: Iterable[OpenCall]) -> None:
        super().__init__(agent, open_calls)
        self._children: dict[str, AgentControls] = {}

    @property
    def children(self) -> Mapping[str, "AgentControls"]:
        """The sub-agents at work, by their agent id: they can be steered and aborted like any agent."""
        return self._children

    def steer(self, message: str | UserMessage) -> UserMessage:
        """Queues a message for the next boundary of the run, or for the start of the next one. Returns it as queued.

        Raises:
            ConfigurationError: it is empty, or neither text nor a UserMessage.
        """
        queued = self._put(message, "steer")
        if self._run is not None:
            self._run.notify_steering()
        return queued

    def follow_up(self, message: str | UserMessage) -> UserMessage:
        """Queues a message for a turn of its own, once the run would end. Returns it as queued.

        Raises:
            ConfigurationError: it is empty, or neither text nor a UserMessage.
        """
        return self._put(message, "follow_up")

    def edit_message(self, message_id: str, text: str) -> UserMessage | None:
        """Puts another text in place of a waiting message, which gets a new id; None: it is not waiting any more.

        Raises:
            ConfigurationError: `text` is not text.
        """
        expect_kind("the text of a message", text, str, "text")
        return self._agent.queue.edit(message_id, text)

    def drop_message(self, message_id: str) -> UserMessage | None:
        """Takes a waiting message back, here or from a sub-agent, and returns it; None: it is not waiting any more."""
        own = self._agent.queue.drop(message_id)
        return own or next(filter(None, (child.drop_message(message_id) for child in self._children.values())), None)

    def steer_child(self, name: str, message: str | UserMessage) -> UserMessage | None:
        """Steers a sub-agent at work, at whatever depth; a message it does not read any more comes back here.

        Args:
            name: its agent id, or the part of it in front of the last `-`: then of several the oldest.
            message: what it is told.

        Returns:
            The message as queued; None: no sub-agent of that name is at work.

        Raises:
            ConfigurationError: the message is empty.
        """
        for agent_id, child in self._children.items():
            if name in (agent_id, agent_id.rpartition("-")[0]):
                return child.steer(message)
        return next(filter(None, (child.steer_child(name, message) for child in self._children.values())), None)

    def cancel_call(self, call_id: str, reason: str) -> bool:
        """Takes one call back, here or in a sub-agent; the run goes on, and the model is told the reason. False: the
        call is over, or unknown."""
        own = self._run is not None and self._run.cancel_call(call_id, reason)
        return own or any(child.cancel_call(call_id, reason) for child in self._children.values())

    def stop(self) -> None:
        """Ends the run after this step (C33); nothing happens where there is none."""
        if self._run is not None:
            self._run.stop()

    def abort(self, reason: str = "aborted") -> None:
        """Ends the run now, and those of its sub-agents: the stream is closed and the calls are cancelled. What was
        said so far is kept, every call has its answer, and waiting messages wait on.
        """
        if self._run is not None:
            self._run.abort(reason)
        for child in tuple(self._children.values()):
            child.abort(reason)

    def set_mode(self, mode: PermissionMode | str, by: str = "user") -> None:
        """Changes the permission mode at once, also for calls that wait for a person (P56).

        Args:
            mode: a `PermissionMode`, or its text, such as `"plan"`.
            by: who changes it, for the event.

        Raises:
            ConfigurationError: no mode has this name, or this agent has no permission policy.
        """
        mode = as_permission_mode("permission mode", mode)
        old = self._agent.policy.mode
        if mode is not old:
            self._agent.policy.set_mode(mode)
            self._agent.publisher.publish(PermissionModeChanged(old=old, new=mode, by=by))
            self._agent.gate.reconsider()

    def set_options(self, options: ExecutionOptions) -> None:
        """Runs calls in another way, from the next answer on; the calls at hand may end as they began.

        Raises:
            ConfigurationError: `options` is not an ExecutionOptions.
        """
        expect_kind("the options", options, ExecutionOptions, "ExecutionOptions")
        self._agent.config.options = options
        self._agent.executor.set_options(options)

    def resolve_approval(
        self, request_id: str, decision: ApprovalDecision, by: Literal["user", "nobody"] = "user"
    ) -> bool:
        """A person's answer to a waiting call, or word that nobody can answer any more.

        True only for the first answer to a request that waits (P51).

        Raises:
            ConfigurationError: `decision` is not an ApprovalDecision.
        """
        expect_kind("the decision", decision, ApprovalDecision, "an ApprovalDecision(decision=…)")
        return self._agent.gate.resolve(request_id, decision, by)

    def add_tool(self, tool: ToolLike) -> None:
        """Give the agent another tool, or a function as one, from the next request on (S4-82).

        Raises:
            ConfigurationError: `tool` is not a tool, or the agent already has one of that name.
        """
        self._agent.tools.add(tool)

    def destroy(self, reason: str = "closed") -> None:
        """Tells that the agent is gone (S4-90); a run that goes on is aborted. Its provider is left to its owner."""
        self.abort(reason)
        self._agent.publisher.publish(AgentDestroyed(reason=reason))

    def _put(self, message: str | UserMessage, kind: UserKind) -> UserMessage:
        return self._agent.queue.put(as_user_message(message).model_copy(update={"kind": kind}))
