"""The format of a recording, and its reader.

A recording is a head line, then one JSON line per entry, each with the seconds since the start:

```json
{"recording":1,"program":"0.1.0","size":[120,40],"theme":"dark",…}
{"at":0.512,"event":{…}}        an event when the screen receives it, as its journal line
{"at":0.513,"answer":{"door":"status","about":"","value":{…}}}     the agent's status, or the answer to a query
{"at":2.25,"input":{"kind":"key","key":"y","character":"y"}}       input from the terminal
{"at":0.2,"stream":{"request":1,"event":{…}}}                      an event from the model
{"at":9.5,"mark":{"name":"approval"}}                              a named moment
```

Damaged entries are skipped and reported; other files are refused with a one-line error.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias, get_args

from pydantic import Field, FiniteFloat, ValidationError

from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import FrozenModel, JsonObject, is_object
from tui_agent.protocol.regular_file import read_regular_file

FORMAT = 1
"""Version of the format; a reader accepts only its own."""

EntryKind: TypeAlias = Literal["event", "past", "input", "answer", "stream", "mark"]
"""`past` is an event from before the session was resumed, which the screen receives first; `mark` names a moment."""

ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

Cells = Annotated[int, Field(ge=1, le=2_000)]

MOST_BYTES = 2 * 1024**3
"""Largest file in bytes: the whole recording is kept in memory."""
LONGEST = 366 * 86_400.0
"""Longest recording in seconds; a later entry counts as damaged."""

_KINDS: dict[bytes, EntryKind] = {kind.encode(): kind for kind in ENTRY_KINDS}
_ENTRY = re.compile(rb'\s*\{\s*"at"\s*:\s*([0-9.eE+-]+)\s*,\s*"([a-z]+)"\s*:\s*(\{.*\})\s*\}\s*', re.DOTALL)


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
    keys: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """The user's own keys by id of their command."""


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


def read_recording(path: Path) -> Recording:
    """Read a recording from a file. Blocks.

    Raises:
        ConfigurationError: the file cannot be read, is not a recording, or has another version; one line.
    """
    try:
        content = read_regular_file(str(path), MOST_BYTES)
    except FileNotFoundError:
        raise ConfigurationError(f"the recording {path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"the recording {path} cannot be read: {reason}") from error
    return parse_recording(content, str(path))


def parse_recording(content: bytes, name: str) -> Recording:
    """Parse the content of a recording file.

    Args:
        content: the whole content.
        name: name of the file in error messages.

    Raises:
        ConfigurationError: it is not a recording, or has another version; one line.
    """
    first, _, rest = content.partition(b"\n")
    head = _head(first, name)
    lines = rest.split(b"\n")
    torn = lines.pop()
    found = [_entry(line) for line in lines]
    entries = tuple(_in_order([entry for entry in found if entry is not None]))
    notices: list[str] = []
    if torn:
        notices.append("The recording ends in the middle of a line; it plays up to the last complete line.")
    if damaged := len(lines) - len(entries):
        notices.append(f"{damaged} damaged line{'s' if damaged > 1 else ''} of the recording skipped.")
    return Recording(head, entries, tuple(notices))


def _head(line: bytes, name: str) -> RecordingHeader:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not is_object(record) or "recording" not in record:
        raise ConfigurationError(f"{name} is not a recording of tui-agent")
    version = str(record["recording"])[:20]
    if version != str(FORMAT):
        raise ConfigurationError(f"{name} is a recording of version {version}; this program reads version {FORMAT}")
    try:
        return RecordingHeader.model_validate(record)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ConfigurationError(
            f"the first line of the recording {name} is damaged: {place}: {fault['msg']}"
        ) from None


def _entry(line: bytes) -> RecordingEntry | None:
    """Parse one line; return None if it is damaged."""
    parts = _ENTRY.fullmatch(line)
    if parts is None:
        return None
    try:
        at, text = float(parts[1]), parts[3].decode("utf-8")
        kind = _KINDS.get(parts[2])
        if kind is None or not 0 <= at <= LONGEST:
            return None
        value: Any = read_envelope(text) if kind in ("event", "past") else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if value is None else RecordingEntry(at, kind, value)


def _in_order(entries: Sequence[RecordingEntry]) -> Iterator[RecordingEntry]:
    """Yield the entries except those with an impossible time: earlier than the previous or later than the next one."""
    last = 0.0
    for number, entry in enumerate(entries):
        following = entries[min(number + 1, len(entries) - 1)]
        is_too_late = last <= following.at < entry.at
        if entry.at >= last and not is_too_late:
            last = entry.at
            yield entry
