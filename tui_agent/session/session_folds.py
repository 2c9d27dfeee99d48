"""Facts that a resume needs of a whole journal, folded while its lines are read, so that no event need be kept."""

from collections.abc import Iterable, Sequence

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import MessageDiscarded, MessageEnded, SessionRewound

from .history_fold import FOLDED_EVENTS, QUEUE_EVENTS, ROOT_AGENT, HistoryFold, QueueFold, fold_history
from .interrupted_run import LEDGERED_EVENTS, OpenScopes
from .lost_processes import LOST_PROCESS_EVENTS, LostProcessFold


class SessionFolds:
    """Conversation, queue, open scopes and lost programs of a session."""

    def __init__(self, envelopes: Iterable[Envelope] = ()) -> None:
        """Fold these events; `apply` takes the others."""
        self.queue, self.scopes, self.lost = QueueFold(), OpenScopes(), LostProcessFold()
        self._history = HistoryFold()
        self._ended: set[str] = set()
        self._discarded: set[str] = set()
        self._is_history_whole = True
        for envelope in envelopes:
            self.apply(envelope)

    def apply(self, envelope: Envelope) -> None:
        """Apply the next event of the journal."""
        kind = type(envelope.event)
        if kind in LEDGERED_EVENTS:
            self.scopes.apply(envelope)
        if kind in LOST_PROCESS_EVENTS:
            self.lost.apply(envelope.event)
        if isinstance(envelope.event, SessionRewound) and envelope.event.conversation:
            # What it removes is already in the conversation.
            self._is_history_whole = False
        if envelope.origin.agent_id == ROOT_AGENT:
            if kind in QUEUE_EVENTS:
                self.queue.apply(envelope)
            if kind in FOLDED_EVENTS and self._is_history_whole:
                self._apply_to_history(envelope)

    def _apply_to_history(self, envelope: Envelope) -> None:
        """Apply an event to the conversation, unless it belongs to a discarded message."""
        match envelope.event:
            case MessageDiscarded(message_id=message_id):
                self._discarded.add(message_id)
                if message_id in self._ended:
                    self._is_history_whole = False
            case MessageEnded(message_id=message_id):
                self._ended.add(message_id)
                if message_id in self._discarded:
                    return
            case _:
                pass
        self._history.apply(envelope.event)

    def history(self, envelopes: Sequence[Envelope]) -> HistoryFold:
        """Return the conversation of the root agent; `envelopes` is the journal, which a rewind has read again."""
        return self._history if self._is_history_whole else fold_history(envelopes)
