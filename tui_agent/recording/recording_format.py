"""The form of a recording: a head line, then one JSON line an entry, each with the seconds since the start.

```json
{"recording":1,"program":"0.1.0","size":[120,40],"theme":"dark",…}
{"at":0.512,"event":{…}}        an event at the moment it is handed to the screen, as its journal line
{"at":0.513,"answer":{"door":"status","about":"","value":{…}}}     the agent's status, or the answer to a query
{"at":2.25,"input":{"kind":"key","key":"y","character":"y"}}       what came from the terminal
{"at":0.2,"stream":{"request":1,"event":{…}}}                      what the model sent
{"at":9.5,"mark":{"name":"approval"}}                              a moment with a name
```
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeAlias, get_args

from pydantic import Field, FiniteFloat

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import FrozenModel, JsonObject

FORMAT = 1
"""Version of the form; a reader takes its own only."""

EntryKind: TypeAlias = Literal["event", "past", "input", "answer", "stream", "mark"]
"""`past` is an event of an earlier life of the session, handed to the screen first; `mark` names a moment."""

ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

Cells = Annotated[int, Field(ge=1, le=2_000)]


class RecordingHeader(FrozenModel):
    """What the screen shows that no event tells."""

    recording: Literal[1] = FORMAT
    program: str = ""
    """Version of the program that recorded."""
    started: int = 0
    """Milliseconds since the epoch; shown only."""
    mono: FiniteFloat = 0.0
    """The start on the monotonic clock of the events."""
    size: tuple[Cells, Cells] = (120, 40)
    """Columns and rows of the window at the start."""
    theme: str = "dark"
    directory: str = ""
    branch: str = ""
    model: str = ""
    """The model's name, as long as no event tells it."""
    label: str = ""
    """Said beside the model's name."""
    ideas: tuple[str, ...] = ()
    """What could be asked for, shown before anything was said."""
    reduced_motion: bool = False


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """One thing that happened."""

    at: float
    """Seconds since the start."""
    kind: EntryKind
    value: Envelope | JsonObject
    """An envelope for `event` and `past`, else plain data."""

    @property
    def data(self) -> JsonObject:
        """The plain data; empty for an event."""
        return {} if isinstance(self.value, Envelope) else self.value


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as it was read."""

    head: RecordingHeader
    entries: tuple[RecordingEntry, ...]
    """In order; `at` never falls."""
    notices: tuple[str, ...] = ()
    """What was left out because it could not be read, a sentence each."""

    @property
    def length(self) -> float:
        """Seconds."""
        return self.entries[-1].at if self.entries else 0.0

    @property
    def largest(self) -> tuple[int, int]:
        """Columns and rows that hold every window the recording saw."""
        sizes = [self.head.size, *(size for entry in self.entries if (size := size_of(entry)) is not None)]
        return max(width for width, _ in sizes), max(height for _, height in sizes)

    @property
    def marks(self) -> dict[str, float]:
        """Moments that have a name, in seconds, in order."""
        return {str(entry.data.get("name", "")): entry.at for entry in self.entries if entry.kind == "mark"}

    def data_of(self, kind: EntryKind) -> list[JsonObject]:
        """The plain data of all entries of a kind, in order."""
        return [entry.data for entry in self.entries if entry.kind == kind]


class RecordingSink(Protocol):
    """What takes a recording down; never waits."""

    def events(self, envelopes: Iterable[Envelope], *, past: bool = False) -> None:
        """Notes events that are handed to the screen now."""
        ...

    def note(self, kind: EntryKind, data: JsonObject) -> None:
        """Notes anything else, as plain data that JSON can hold."""
        ...


def size_of(entry: RecordingEntry) -> tuple[int, int] | None:
    """The size a window was given; None for anything else."""
    if entry.kind != "input" or entry.data.get("kind") != "resize":
        return None
    width, height = entry.data.get("width"), entry.data.get("height")
    if not isinstance(width, int) or not isinstance(height, int):
        return None
    return (width, height) if 1 <= width <= 2_000 and 1 <= height <= 2_000 else None
