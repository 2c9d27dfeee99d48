"""Changes to an agent's conversation between two runs: compaction, its undo, and rewind."""

from collections.abc import Iterable, Sequence

from tui_agent.context.guard import Compaction, ContextGuard
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SessionRewound
from tui_agent.protocol.messages import Message
from tui_agent.protocol.past_state import PastCompaction

from .agent_state import AgentState
from .compactor import compact_conversation, undo


class ConversationEditor:
    """Edits the conversation of one agent. The caller makes sure that no run is in progress."""

    def __init__(self, agent: AgentState) -> None:
        self._agent = agent

    def remember_compactions(self, past: Iterable[PastCompaction]) -> None:
        """Make compactions of an earlier process undoable, if this agent has a context guard."""
        guard = self._agent.config.guard
        if guard is not None:
            done = (Compaction(one.strategy, 0, 0, one.cut, one.removed, one.replacement) for one in past)
            guard.remember(self._agent.history, done)

    async def compact(self, focus: str) -> bool:
        """Compact the conversation now; False if that failed, with the reason in `compaction.ended`.

        Args:
            focus: what the summary must keep.

        Raises:
            ConfigurationError: this agent has no context guard.
        """
        guard = self._guard()
        # A repair would answer calls that still wait for approval.
        if not self._agent.open_calls:
            self._agent.history.repair()
        return await compact_conversation(
            self._agent, guard, self._agent.spend, trigger="manual", forced=True, focus=focus
        )

    def undo_compaction(self) -> None:
        """Undo the last compaction; later messages stay.

        Raises:
            CompactionError: nothing was compacted, or the last compaction can no longer be undone.
            ConfigurationError: this agent has no context guard.
        """
        undo(self._agent, self._guard())

    def apply_rewind(self, messages: Sequence[Message], event: SessionRewound) -> None:
        """Restore the conversation as far as `event` says, append its notice, and publish it.

        Args:
            messages: the conversation right after the event to which the session is rewound.
            event: the event to publish; the journal folds to the same conversation.
        """
        if event.conversation:
            self._agent.open_calls = {}
            self._agent.history.go_back_to(messages)
            if self._agent.config.guard is not None:
                self._agent.config.guard.forget_compactions(self._agent.history)
        if event.notice is not None:
            self._agent.history.append(event.notice)
        self._agent.publisher.publish(event)
        self._agent.publish_context_usage()

    def _guard(self) -> ContextGuard:
        guard = self._agent.config.guard
        if guard is None:
            raise ConfigurationError("this agent has no context guard; its conversation stays as it is")
        return guard
