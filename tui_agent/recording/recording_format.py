"""The format of a recording: a head line, then one JSON line per entry, each with the seconds since the start.

```json
{"recording":1,"program":"0.1.0","size":[120,40],"theme":"dark",…}
{"at":0.512,"event":{…}}        an event when the screen receives it, as its journal line
{"at":0.513,"answer":{"door":"status","about":"","value":{…}}}     the agent's status, or the answer to a query
{"at":2.25,"input":{"kind":"key","key":"y","character":"y"}}       input from the terminal
{"at":0.2,"stream":{"request":1,"event":{…}}}                      an event from the model
{"at":9.5,"mark":{"name":"approval"}}                              a named moment
```
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol, TypeAlias, get_args

from pydantic import Field, FiniteFloat

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import FrozenModel, JsonObject

FORMAT = 1
"""Version of the format; a reader accepts only its own."""

EntryKind: TypeAlias = Literal["event", "past", "input", "answer", "stream", "mark"]
"""`past` is an event from before the session was resumed, which the screen receives first; `mark` names a moment."""

ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

Cells = Annotated[int, Field(ge=1, le=2_000)]


class RecordingHeader(FrozenModel):
    """Data that the screen shows but no event contains."""

    recording: Literal[1] = FORMAT
    program: str = ""
    """Version of the recording program."""
    started: int = 0
    """Milliseconds since the epoch, for display only."""
    mono: FiniteFloat = 0.0
    """Start of the recording on the monotonic clock of the events."""
    size: tuple[Cells, Cells] = (120, 40)
    """Columns and rows of the window at the start."""
    theme: str = "dark"
    directory: str = ""
    branch: str = ""
    model: str = ""
    """The model's name, until an event contains it."""
    label: str = ""
    """Text beside the model's name."""
    ideas: tuple[str, ...] = ()
    """Suggested prompts, shown before the first message."""
    reduced_motion: bool = False


@dataclass(frozen=True, slots=True)
class RecordingEntry:
    """One entry of a recording."""

    at: float
    """Seconds since the start."""
    kind: EntryKind
    value: Envelope | JsonObject
    """Envelope for `event` and `past`, else plain data."""

    @property
    def data(self) -> JsonObject:
        """Plain data; empty for an event."""
        return {} if isinstance(self.value, Envelope) else self.value


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that was read."""

    head: RecordingHeader
    entries: tuple[RecordingEntry, ...]
    """Entries in order; `at` never decreases."""
    notices: tuple[str, ...] = ()
    """Reports of damaged parts that were skipped, a sentence each."""

    @property
    def length(self) -> float:
        """Length in seconds."""
        return self.entries[-1].at if self.entries else 0.0

    @property
    def largest(self) -> tuple[int, int]:
        """Largest number of columns and of rows that a window of the recording had."""
        sizes = [self.head.size, *(size for entry in self.entries if (size := size_of(entry)) is not None)]
        return max(width for width, _ in sizes), max(height for _, height in sizes)

    @property
    def marks(self) -> dict[str, float]:
        """Name of each marked moment → seconds, in order."""
        return {str(entry.data.get("name", "")): entry.at for entry in self.entries if entry.kind == "mark"}

    def data_of(self, kind: EntryKind) -> list[JsonObject]:
        """Return the plain data of all entries of a kind, in order."""
        return [entry.data for entry in self.entries if entry.kind == kind]


class RecordingSink(Protocol):
    """Receiver of a recording; never waits."""

    def events(self, envelopes: Iterable[Envelope], *, past: bool = False) -> None:
        """Record events that the screen receives now."""
        ...

    def note(self, kind: EntryKind, data: JsonObject) -> None:
        """Record anything else, as JSON data."""
        ...


def size_of(entry: RecordingEntry) -> tuple[int, int] | None:
    """Return the new size of the window; None if the entry is not a valid change of size."""
    if entry.kind != "input" or entry.data.get("kind") != "resize":
        return None
    width, height = entry.data.get("width"), entry.data.get("height")
    if not isinstance(width, int) or not isinstance(height, int):
        return None
    return (width, height) if 1 <= width <= 2_000 and 1 <= height <= 2_000 else None
