"""Exchanges that record what the agent answers the screen, and that replay it without an agent."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject
from tui_agent.ui.bridge.bridge_messages import AgentEvents, AgentStatus, HistoryEvents
from tui_agent.ui.bridge.exchange import Exchange, Query, Work

if TYPE_CHECKING:
    from tui_agent.recording import RecordingSink

T = TypeVar("T")

STATUS = "status"
"""Name under which a recording notes each status."""

_EARLIER_NAMES = {
    "coming": "pending",
    "running": "running",
    "mode": "mode",
    "unsent": "unsent",
    "waited": "restored_messages",
    "rewinds": "can_rewind",
    "left_running": "has_leftovers",
}
"""Fields of the status by the names under which earlier versions noted each one when the screen read it."""
_KNOWN_FROM_START = ("waited", "rewinds", "left_running")


class RecordingExchange(Exchange):
    """Asks the agent and records each answer, status and event at the moment the screen receives it."""

    def __init__(self, sink: "RecordingSink") -> None:
        self._sink = sink
        self._last: dict[tuple[str, str], object] = {}

    def ask(self, query: Query, about: str, work: Callable[[], T]) -> T:
        """Return the agent's answer and record it."""
        return self._note(query, about, work())

    async def ask_and_wait(self, query: Query, about: str, work: Callable[[], Work[T]]) -> T:
        """Return the agent's answer and record it; a refusal, too."""
        try:
            return self._note(query, about, await work())
        except TuiAgentError as error:
            self._sink.note("answer", {"door": query.name, "about": about, "error": str(error)})
            raise

    def note_status(self, status: AgentStatus) -> None:
        """Record a status."""
        self._sink.note("answer", {"door": STATUS, "about": "", "value": asdict(status)})

    def note_events(self, message: AgentEvents) -> None:
        """Record events."""
        self._sink.events(message.events, past=isinstance(message, HistoryEvents))

    def _note(self, query: Query, about: str, answer: T) -> T:
        key = (query.name, about)
        if not query.lasting or key not in self._last or self._last[key] != answer:
            self._last[key] = answer
            self._sink.note("answer", {"door": query.name, "about": about, "value": query.encode(answer)})
        return answer


class ReplayExchange(Exchange):
    """Answers as the agent did when the recording was made."""

    is_live = False

    def __init__(self, notes: Iterable[JsonObject]) -> None:
        """
        Args:
            notes: all answers and statuses of the recording, in order.
        """
        self._queues: dict[tuple[str, str], deque[JsonObject]] = defaultdict(deque)
        self._current: dict[tuple[str, str], JsonObject] = {}
        for note in notes:
            self._queues[_key_of(note)].append(note)
        self._statuses = TypeAdapter(AgentStatus)
        self.status = AgentStatus()
        """The status at the current moment of the replay."""
        for name in (STATUS, *_EARLIER_NAMES):
            if queue := self._queues.get((name, "")):
                self._read_status(queue[-1 if name in _KNOWN_FROM_START else 0])
        self.initial_status = self.status

    def receive(self, note: JsonObject) -> None:
        """Take the note of the current moment: a status, or an answer that holds from now on."""
        self._current[_key_of(note)] = note
        self._read_status(note)

    def ask(self, query: Query, about: str, work: Callable[[], T]) -> T:
        """Return the recorded answer."""
        return query.decode(self._next_note(query, about))

    async def ask_and_wait(self, query: Query, about: str, work: Callable[[], Work[T]]) -> T:
        """Return the recorded answer, or raise the recorded error."""
        note = self._next_note(query, about)
        if isinstance(error := note.get("error"), str):
            raise TuiAgentError(error)
        return query.decode(note)

    def _next_note(self, query: Query, about: str) -> JsonObject:
        key = (query.name, about)
        queue = self._queues.get(key)
        if query.lasting:
            return self._current.get(key) or (queue[0] if queue else {})
        return queue.popleft() if queue else {}

    def _read_status(self, note: JsonObject) -> None:
        name, value = note.get("door"), note.get("value")
        if name in _EARLIER_NAMES:
            value = {**asdict(self.status), _EARLIER_NAMES[name]: value}
        elif name != STATUS:
            return
        try:
            self.status = self._statuses.validate_python(value)
        except ValidationError:
            return  # A damaged note: the status stays as it was.


def _key_of(note: JsonObject) -> tuple[str, str]:
    return str(note.get("door")), str(note.get("about"))
