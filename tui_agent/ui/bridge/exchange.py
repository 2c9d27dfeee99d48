"""Queries of the screen to the agent, and the exchange that answers, records or replays them.

A method that returns something to the screen is a query: `@Query(…)` passes its calls through the exchange of its
object. A recording notes each answer, and a replay returns it without asking the agent.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property, wraps
from inspect import iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject

from .bridge_messages import AgentEvents, AgentStatus, HistoryEvents

if TYPE_CHECKING:
    from tui_agent.recording import RecordingSink

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]
"""The result of calling a coroutine function."""

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


class _Asker(Protocol):
    exchange: "Exchange"


S = TypeVar("S", bound=_Asker)


class Query:
    """One question of the screen; decorates the method that asks the agent.

    The method's return annotation is the type of the answer. A coroutine function may raise a `TuiAgentError`.
    """

    def __init__(self, name: str, missing: object, *, about: Sequence[str] = (), lasting: bool = False) -> None:
        """Declare a query.

        Args:
            name: its name in recordings.
            missing: the answer of a replay whose recording has none, as plain JSON data.
            about: parameters whose values tell two queries of this name apart.
            lasting: True if asking changes nothing: an answer holds until the next different one.
        """
        self.name = name
        self.lasting = lasting
        self._missing = missing
        self._about = about
        self._method: Callable[..., object]

    def __call__(self, method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        """Return the method with its calls passed through the exchange of its object."""
        self._method = method
        parameters, is_async = signature(method), iscoroutinefunction(method)

        @wraps(method)
        def ask(asker: S, *args: P.args, **kwargs: P.kwargs) -> T:
            values = parameters.bind(asker, *args, **kwargs).arguments
            about = " ".join(str(values[parameter]) for parameter in self._about)
            through: Any = asker.exchange.ask_and_wait if is_async else asker.exchange.ask
            return through(self, about, lambda: method(asker, *args, **kwargs))

        vars(ask)["query"] = self
        return ask

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        # Only recordings need the type, and evaluating the annotation loads the engine.
        from . import engine_types

        return TypeAdapter(get_type_hints(self._method, localns=vars(engine_types))["return"])

    def encode(self, answer: object) -> Any:
        """Return the answer as plain JSON data."""
        return self._adapter.dump_python(answer, mode="json")

    def decode(self, note: JsonObject) -> Any:
        """Return the answer of a note; the `missing` one if the note is damaged."""
        try:
            return self._adapter.validate_python(note["value"])
        except (KeyError, ValidationError):
            return self._adapter.validate_python(self._missing)


class Exchange:
    """Asks the agent itself and records nothing."""

    is_live = True
    """False in a replay: there is no agent, and the recording publishes the status."""
    initial_status: AgentStatus | None = None
    """The status at the start of a recording; None: the bridge's own."""

    def ask(self, query: Query, about: str, work: Callable[[], T]) -> T:
        """Return the answer to a query; `work` asks the agent."""
        return work()

    async def ask_and_wait(self, query: Query, about: str, work: Callable[[], Work[T]]) -> T:
        """Return the answer to a query that takes a while.

        Raises:
            TuiAgentError: the agent refused.
        """
        return await work()

    def note_status(self, status: AgentStatus) -> None:
        """Take a status that the screen receives."""

    def note_events(self, message: AgentEvents) -> None:
        """Take events that the screen receives."""


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
