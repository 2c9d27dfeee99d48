"""Entries, snapshot and read-only message view of a conversation history."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, overload

from pydantic import Field

from tui_agent.protocol.messages import FrozenModel, JsonObject, Message, Usage

from .registry import RegistrySnapshot


class HistoryEntry(FrozenModel):
    """One message with its token estimate, model, usage and latency (S4-17)."""

    index: int
    message: Message
    tokens: int
    """Estimated."""
    model: str = ""
    usage: Usage | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry as a history keeps it: a fifth of the memory of a `HistoryEntry`. Its place is its index."""

    message: Message
    tokens: int
    model: str = ""
    usage: Usage | None = None
    latency_ms: float | None = None

    def at(self, index: int) -> HistoryEntry:
        """Return the entry with its index."""
        return HistoryEntry(
            index=index,
            message=self.message,
            tokens=self.tokens,
            model=self.model,
            usage=self.usage,
            latency_ms=self.latency_ms,
        )

    @classmethod
    def of(cls, entry: HistoryEntry) -> Self:
        """Return the entry without its index."""
        return cls(entry.message, entry.tokens, entry.model, entry.usage, entry.latency_ms)


class HistorySnapshot(FrozenModel):
    """Serialisable form of a conversation (S4-25). `system` is only read, from older snapshots without `registry`."""

    id: str
    entries: tuple[HistoryEntry, ...] = ()
    registry: RegistrySnapshot | None = None
    metadata: JsonObject = Field(default_factory=dict)
    anchor_tokens: int = 0
    anchor_index: int = -1
    anchor_is_counted: bool = True
    system: str | None = None


class MessageView(Sequence[Message]):
    """The messages of a history at the time of the call; never changes and copies nothing.

    Compare it as `tuple(view)`.
    """

    def __init__(self, messages: list[Message], length: int) -> None:
        self._messages = messages
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._messages[place] for place in range(*index.indices(self._length)))
        return self._messages[range(self._length)[index]]

    def __iter__(self) -> Iterator[Message]:
        return itertools.islice(self._messages, self._length)

    def __repr__(self) -> str:
        return f"MessageView({list(self)!r})"
