"""What the screen is told when it asks through the bridge: noted while it is recorded, told again when it is replayed.

There are two kinds of doors. What is only *read* is noted when it changed, and holds until it changes again. What does
something gives an *answer* of its own every time.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from tui_agent.agent import ContextBreakdown
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import JsonObject, UserMessage
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.recording import RecordingSink
from tui_agent.rewind.rewind_plan import RewindOutcome, RewindPlan, RewindPoint

T = TypeVar("T")


class Query(Generic[T]):
    """One thing the screen may ask."""

    def __init__(self, name: str, form: Any, missing: T) -> None:
        """Makes a door.

        Args:
            name: its name in a recording.
            form: the type of what is told.
            missing: told in a replay where the recording does not know.
        """
        self.name = name
        self.missing = missing
        self._adapter: TypeAdapter[T] = TypeAdapter(form)

    def plain(self, value: T) -> Any:
        """What was told, as plain data."""
        return self._adapter.dump_python(value, mode="json")

    def value(self, data: object) -> T:
        """The same again.

        Raises:
            ValidationError: the data is damaged.
        """
        return self._adapter.validate_python(data)


RUNNING = Query("running", bool, False)
MODE = Query("mode", PermissionMode, PermissionMode.ASK)
WAITING: Query[tuple[UserMessage, ...]] = Query("waiting", tuple[UserMessage, ...], ())
COMING = Query("coming", bool, False)
INITIAL_QUEUE: Query[tuple[str, ...]] = Query("waited", tuple[str, ...], ())
UNSENT: Query[tuple[str, ...]] = Query("unsent", tuple[str, ...], ())
REWINDS = Query("rewinds", bool, False)
LEFT_RUNNING = Query("left_running", bool, False)
CONTEXT: Query[ContextBreakdown | None] = Query("context", ContextBreakdown | None, None)
FILE_OF: Query[str | None] = Query("file_of", str | None, None)
ANSWERED: Query[tuple[str, ...]] = Query("answered", tuple[str, ...], ())

DECIDE = Query("decide", bool, True)
RECALL_MESSAGE: Query[str | None] = Query("take_back", str | None, None)
RUN_SHELL = Query("run_shell", bool, True)
STEER_CHILD = Query("steer_child", bool, True)
CANCEL_CALL = Query("cancel_call", bool, True)
COMPACT = Query("compact", bool, True)
RECALL_ALL_MESSAGES = Query("take_all_back", str, "")
UNDO = Query("undo_compaction", str, "")
POINTS: Query[tuple[RewindPoint, ...]] = Query("points", tuple[RewindPoint, ...], ())
PLAN = Query("plan", RewindPlan, RewindPlan(0, "", ()))
CARRY_OUT = Query("carry_out", RewindOutcome, RewindOutcome())


class QueryRecorder:
    """Notes what the screen is told."""

    def __init__(self, sink: RecordingSink) -> None:
        self._sink = sink
        self._last_recorded: dict[tuple[str, str], object] = {}

    def read(self, door: Query[T], value: T, about: str = "") -> T:
        """Notes what is read, if it is something else than before; gives it on."""
        key = (door.name, about)
        if key not in self._last_recorded or self._last_recorded[key] != value:
            self._last_recorded[key] = value
            self.answer(door, value, about)
        return value

    def answer(self, door: Query[T], value: T, about: str = "") -> T:
        """Notes an answer; gives it on."""
        self._sink.note("answer", {"door": door.name, "about": about, "value": door.plain(value)})
        return value

    def refused(self, door: Query[T], error: TuiAgentError, about: str = "") -> None:
        """Notes that the answer was an error."""
        self._sink.note("answer", {"door": door.name, "about": about, "error": str(error)})


class RecordedAnswers:
    """Tells again what was noted. What is damaged or missing is told as the door says."""

    def __init__(self, notes: Iterable[JsonObject]) -> None:
        self._now: dict[tuple[str, str], JsonObject] = {}
        self._queues: dict[tuple[str, str], deque[JsonObject]] = defaultdict(deque)
        for note in notes:
            self._queues[_key_of(note)].append(note)

    def heard(self, note: JsonObject) -> None:
        """What is read at this door from now on."""
        self._now[_key_of(note)] = note

    def read(self, door: Query[T], about: str = "") -> T:
        """What holds now; before anything was noted, what was noted first."""
        key = (door.name, about)
        queue = self._queues.get(key)
        note = self._now.get(key) or (queue[0] if queue else {})
        return self._value_of(door, note)

    def last(self, door: Query[T]) -> T:
        """What was noted last of all."""
        queue = self._queues.get((door.name, ""))
        return self._value_of(door, queue[-1] if queue else {})

    def answer(self, door: Query[T], about: str = "") -> T:
        """The next answer.

        Raises:
            TuiAgentError: it was that error.
        """
        queue = self._queues.get((door.name, about))
        note = queue.popleft() if queue else {}
        if isinstance(error := note.get("error"), str):
            raise TuiAgentError(error)
        return self._value_of(door, note)

    def _value_of(self, door: Query[T], note: JsonObject) -> T:
        try:
            return door.value(note["value"])
        except (KeyError, ValidationError):
            return door.missing


def _key_of(note: JsonObject) -> tuple[str, str]:
    return str(note.get("door")), str(note.get("about"))
