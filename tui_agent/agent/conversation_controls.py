"""The size of an agent's conversation, and going back in it: for the time between two runs."""

from collections.abc import Sequence

from tui_agent.context.breakdown import ContextBreakdown, measure_context
from tui_agent.context.guard import ContextGuard
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.events import SessionRewound
from tui_agent.protocol.messages import Message

from .agent_view import AgentView
from .compactor import compact_conversation, undo


class ConversationControls(AgentView):
    """One agent, whose conversation is looked into, made shorter, or taken back."""

    async def compact(self, focus: str = "") -> bool:
        """Makes the conversation shorter now, at least by half if it can be; whether that succeeded, which is told with
        the reason in `compaction.ended`.

        Args:
            focus: what the summary should not lose.

        Raises:
            AlreadyRunningError: a run goes on.
            ConfigurationError: this agent has no context guard.
        """
        await self._wait_for_abandoned_streams()
        guard = self._idle_guard()
        if not self._open_calls:
            self._agent.history.repair()
        return await compact_conversation(
            self._agent, guard, self._agent.spend, trigger="manual", forced=True, focus=focus
        )

    def context_breakdown(self) -> ContextBreakdown:
        """What fills the model's window: each layer, each tool, what was said, each call with its result."""
        return measure_context(self._agent.history, self._agent.tools.specs)

    def undo_compaction(self) -> None:
        """Takes the last compaction back; what was said since then stays.

        Raises:
            AlreadyRunningError: a run goes on.
            CompactionError: there is none, or it cannot be taken back any more.
            ConfigurationError: this agent has no context guard.
        """
        undo(self._agent, self._idle_guard())

    def go_back(self, messages: Sequence[Message], told: SessionRewound) -> None:
        """Puts the conversation back to what it was, as far as `told` says so, adds its notice, and tells it.

        Args:
            messages: the conversation right after the event `told` goes back to.
            told: what is told of it; the journal folds to the same conversation by it.

        Raises:
            AlreadyRunningError: a run goes on.
        """
        if self._run is not None:
            raise AlreadyRunningError
        if told.conversation:
            self._agent.history.go_back_to(messages)
            self._open_calls = {}
            if self._agent.config.guard is not None:
                self._agent.config.guard.forget_compactions(self._agent.history)
        if told.notice is not None:
            self._agent.history.append(told.notice)
        self._agent.publisher.publish(told)
        self._agent.publish_context_usage()

    def _idle_guard(self) -> ContextGuard:
        if self._run is not None:
            raise AlreadyRunningError
        guard = self._agent.config.guard
        if guard is None:
            raise ConfigurationError("this agent has no context guard; its conversation stays as it is")
        return guard
