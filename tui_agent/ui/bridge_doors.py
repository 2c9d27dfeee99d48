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
from tui_agent.recording import Tape
from tui_agent.rewind.rewind_plan import Outcome, RewindPlan, RewindPoint

T = TypeVar("T")


class Door(Generic[T]):
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


RUNNING = Door("running", bool, False)
MODE = Door("mode", PermissionMode, PermissionMode.ASK)
WAITING: Door[tuple[UserMessage, ...]] = Door("waiting", tuple[UserMessage, ...], ())
COMING = Door("coming", bool, False)
WAITED: Door[tuple[str, ...]] = Door("waited", tuple[str, ...], ())
UNSENT: Door[tuple[str, ...]] = Door("unsent", tuple[str, ...], ())
REWINDS = Door("rewinds", bool, False)
LEFT_RUNNING = Door("left_running", bool, False)
CONTEXT: Door[ContextBreakdown | None] = Door("context", ContextBreakdown | None, None)
FILE_OF: Door[str | None] = Door("file_of", str | None, None)
ANSWERED: Door[tuple[str, ...]] = Door("answered", tuple[str, ...], ())

DECIDE = Door("decide", bool, True)
TAKE_BACK: Door[str | None] = Door("take_back", str | None, None)
RUN_SHELL = Door("run_shell", bool, True)
STEER_CHILD = Door("steer_child", bool, True)
CANCEL_CALL = Door("cancel_call", bool, True)
COMPACT = Door("compact", bool, True)
TAKE_ALL_BACK = Door("take_all_back", str, "")
UNDO = Door("undo_compaction", str, "")
POINTS: Door[tuple[RewindPoint, ...]] = Door("points", tuple[RewindPoint, ...], ())
PLAN = Door("plan", RewindPlan, RewindPlan(0, "", ()))
CARRY_OUT = Door("carry_out", Outcome, Outcome())


class DoorNotes:
    """Notes what the screen is told."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._known: dict[tuple[str, str], object] = {}

    def read(self, door: Door[T], value: T, about: str = "") -> T:
        """Notes what is read, if it is something else than before; gives it on."""
        key = (door.name, about)
        if key not in self._known or self._known[key] != value:
            self._known[key] = value
            self.answer(door, value, about)
        return value

    def answer(self, door: Door[T], value: T, about: str = "") -> T:
        """Notes an answer; gives it on."""
        self._tape.note("answer", {"door": door.name, "about": about, "value": door.plain(value)})
        return value

    def refused(self, door: Door[T], error: TuiAgentError, about: str = "") -> None:
        """Notes that the answer was an error."""
        self._tape.note("answer", {"door": door.name, "about": about, "error": str(error)})


class Answers:
    """Tells again what was noted. What is damaged or missing is told as the door says."""

    def __init__(self, notes: Iterable[JsonObject]) -> None:
        self._now: dict[tuple[str, str], JsonObject] = {}
        self._queues: dict[tuple[str, str], deque[JsonObject]] = defaultdict(deque)
        for note in notes:
            self._queues[_key_of(note)].append(note)

    def heard(self, note: JsonObject) -> None:
        """What is read at this door from now on."""
        self._now[_key_of(note)] = note

    def read(self, door: Door[T], about: str = "") -> T:
        """What holds now; before anything was noted, what was noted first."""
        key = (door.name, about)
        queue = self._queues.get(key)
        note = self._now.get(key) or (queue[0] if queue else {})
        return self._told(door, note)

    def last(self, door: Door[T]) -> T:
        """What was noted last of all."""
        queue = self._queues.get((door.name, ""))
        return self._told(door, queue[-1] if queue else {})

    def answer(self, door: Door[T], about: str = "") -> T:
        """The next answer.

        Raises:
            TuiAgentError: it was that error.
        """
        queue = self._queues.get((door.name, about))
        note = queue.popleft() if queue else {}
        if isinstance(error := note.get("error"), str):
            raise TuiAgentError(error)
        return self._told(door, note)

    def _told(self, door: Door[T], note: JsonObject) -> T:
        try:
            return door.value(note["value"])
        except (KeyError, ValidationError):
            return door.missing


def _key_of(note: JsonObject) -> tuple[str, str]:
    return str(note.get("door")), str(note.get("about"))
