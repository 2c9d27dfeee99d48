"""The conversation: its messages, the layers of the system prompt, and a token estimate (S4-16 … S4-26).

Appending and reading take constant time: readers get a view, not a copy.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Self, overload

from pydantic import Field

from tui_agent.protocol.messages import (
    AssistantMessage,
    FrozenModel,
    JsonObject,
    Message,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
    share_field_sets,
)
from tui_agent.protocol.value_checks import expect_items, expect_kind

from .registry import LEGACY_LAYER, ContextRegistry, RegistrySnapshot, write_layer
from .repair import PairingCheck, RepairResult, repair_messages
from .tokens import estimate_message, estimate_text


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


def _expect_message(name: str, message: object) -> None:
    expect_kind(name, message, (UserMessage, AssistantMessage, ToolResultMessage), "a message, such as user_message(…)")


class ConversationHistory:
    """Messages of one agent in order; append-only except for compaction, rewind and repair. Its id is the agent's
    (S4-33)."""

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        registry: ContextRegistry | None = None,
        id: str | None = None,  # noqa: A002 - the name S4-16 gives it
    ) -> None:
        self.id = id or new_id("conversation")
        self.registry = registry or ContextRegistry()
        """The layers of the system prompt."""
        self.metadata: JsonObject = {}
        self.tool_tokens = 0
        """Estimated tokens of the definitions of the tools, which each request sends, too."""
        self._version = 0
        self._call_ids: set[str] = set()
        self._is_counted = True
        self._start_over([])
        for message in expect_items("ConversationHistory.messages", messages, _expect_message, "a list of messages"):
            self._add(self._kept(message))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def length(self) -> int:
        """Number of messages."""
        return len(self._entries)

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """A copy of all entries; linear time."""
        return _shown(self._entries)

    @property
    def system(self) -> str:
        """The composed system prompt. Assigning to it sets the legacy layer and leaves the others (S4-16)."""
        return self.registry.flat("system")

    @system.setter
    def system(self, text: str) -> None:
        write_layer(self.registry, LEGACY_LAYER, text, "history")

    @property
    def version(self) -> int:
        """Number that grows with each change of the messages; compare it to detect changes during an await."""
        return self._version

    @property
    def sound(self) -> bool:
        """True if a model accepts the conversation (see `context.repair`); constant time."""
        return self._check.sound

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls of the last assistant message that have no result yet, in order."""
        return self._check.open_calls

    def append(
        self,
        message: Message,
        *,
        model: str | None = None,
        usage: Usage | None = None,
        latency_ms: float | None = None,
    ) -> HistoryEntry:
        """Add one message at the end; constant time.

        Model and usage default to those of an assistant message. Usage with input tokens anchors the estimate: the
        messages before are counted now, the message itself is still estimated (S4-21).
        """
        entry = self._kept(message, model, usage, latency_ms)
        self._add(entry)
        return entry.at(len(self._entries) - 1)

    def _kept(
        self,
        message: Message,
        model: str | None = None,
        usage: Usage | None = None,
        latency_ms: float | None = None,
    ) -> KeptEntry:
        """Return the entry of a message that is added next, after it has moved the anchor of the estimate."""
        if isinstance(message, AssistantMessage):
            model = message.model if model is None else model
            usage = message.usage if usage is None else usage
            if usage.context_tokens > 0:
                self.record_actual_usage(usage.context_tokens)
        return KeptEntry(message, estimate_message(message), model or "", usage, latency_ms)

    def messages(self) -> MessageView:
        """Return a view of all messages, which later changes do not affect; constant time."""
        return MessageView(self._messages, len(self._messages))

    def knows_call(self, call_id: str) -> bool:
        """True if this conversation ever had a call with this id. Removed messages count: an undo may restore them."""
        return call_id in self._call_ids

    def remember_calls(self, messages: Iterable[Message]) -> None:
        """Register the call ids of removed messages of this conversation."""
        for message in messages:
            if isinstance(message, AssistantMessage):
                self._call_ids.update(call.id for call in message.tool_calls)

    def estimated_tokens(self) -> int:
        """Return the tokens of the conversation: counted up to the anchor, estimated after it (S4-18…20).

        Without an anchor everything is estimated, system prompt and tools included.
        """
        if self._anchor_index < 0:
            return self._since_anchor + estimate_text(self.system) + self.tool_tokens
        return self._anchor_tokens + self._since_anchor

    def guessed_tokens(self) -> int:
        """Return the tokens estimated from characters alone, ignoring the anchor; linear time."""
        return sum(entry.tokens for entry in self._entries) + estimate_text(self.system) + self.tool_tokens

    @property
    def is_anchored(self) -> bool:
        """True if the estimate is based on a provider's count."""
        return self._anchor_index >= 0 and self._is_counted

    def record_actual_usage(self, input_tokens: int) -> None:
        """Anchor the estimate: the provider counted `input_tokens` for everything so far (S4-22).

        Without messages, and for 0 or less, nothing changes.
        """
        if not self._entries or input_tokens <= 0:
            return
        self._anchor_tokens, self._is_counted = input_tokens, True
        self._anchor_index = len(self._entries) - 1
        self._since_anchor = 0

    def assume_tokens(self, tokens: int, length: int | None = None) -> None:
        """Estimate the first `length` messages, by default all, at `tokens` until a provider counts them.

        After a compaction, earlier counts stay the better estimate: one from characters may be a hundredth of them. A
        `length` of 0, or of more than there are, changes nothing.
        """
        length = len(self._entries) if length is None else length
        if 0 < length <= len(self._entries):
            self._anchor_tokens, self._anchor_index, self._is_counted = tokens, length - 1, False
            self._since_anchor = sum(entry.tokens for entry in self._entries[length:])

    def splice_range(self, start: int, end: int, replacement: Message) -> tuple[HistoryEntry, ...]:
        """Replace the messages `start` to `end` (exclusive) with one and return the removed entries (S4-23).

        The anchor is dropped if the range includes or precedes it. An invalid range changes nothing and returns
        nothing. Existing views do not change.
        """
        return self.replace_range(start, end, (replacement,))

    def replace_range(self, start: int, end: int, replacements: Iterable[Message]) -> tuple[HistoryEntry, ...]:
        """Replace a range with any number of messages; otherwise like `splice_range`."""
        if not 0 <= start < end <= len(self._entries):
            return ()
        before, removed, after = self._entries[:start], self._entries[start:end], self._entries[end:]
        anchor = (self._anchor_tokens, self._anchor_index) if start > self._anchor_index else (0, -1)
        self._start_over([*before, *map(_bare_entry, replacements), *after], *anchor)
        return _shown(removed, start)

    def replace_messages(self, replacements: Mapping[str, Message]) -> int:
        """Replace messages by id and return how many were replaced. The anchor is dropped if it counted one of them."""
        # Each turn asks, mostly with nothing to replace.
        every = enumerate(self._entries) if replacements else ()
        indices = [index for index, entry in every if entry.message.id in replacements]
        if indices:
            entries = list(self._entries)
            for index in indices:
                message = replacements[entries[index].message.id]
                entries[index] = replace(entries[index], message=message, tokens=estimate_message(message))
            anchored = indices[0] > self._anchor_index
            self._start_over(entries, *((self._anchor_tokens, self._anchor_index) if anchored else (0, -1)))
        return len(indices)

    def go_back_to(self, messages: Sequence[Message]) -> None:
        """Replace all messages. Common messages at the beginning keep their entries."""
        kept = 0
        for here, then in zip(self._messages, messages, strict=False):
            if here != then:
                break
            kept += 1
        anchored = self._anchor_index < kept
        entries = [*self._entries[:kept], *map(_bare_entry, messages[kept:])]
        self._start_over(entries, *((self._anchor_tokens, self._anchor_index) if anchored else (0, -1)))

    def drop_open_step(self) -> int:
        """Remove the last answer and its results if one of its calls has no result.

        Returns:
            The number of messages removed; 0 if no call was open.
        """
        if not self.open_calls:
            return 0
        entries = list(self._entries)
        while entries and not isinstance(entries.pop().message, AssistantMessage):
            pass
        dropped = len(self._entries) - len(entries)
        anchored = self._anchor_index < len(entries)
        self._start_over(entries, *((self._anchor_tokens, self._anchor_index) if anchored else (0, -1)))
        return dropped

    def repair(self) -> RepairResult:
        """Make the conversation acceptable to a model. Constant time if it already is."""
        if self.sound:
            return RepairResult(())
        repaired = repair_messages(self._messages)
        # By identity, because a damaged conversation may use an id twice.
        known = {id(entry.message): entry for entry in self._entries}
        entries = [known.get(id(message)) or _bare_entry(message) for message in repaired.messages]
        self._start_over(entries)
        return repaired

    def fork(self, new_id: str | None = None) -> "ConversationHistory":
        """Return an independent copy of messages and layers, without listeners (S4-24).

        Open calls are copied, too; `repair` adds results for them.
        """
        return ConversationHistory.restore(self.export(), id=new_id, registry=self.registry.copy())

    def export(self) -> HistorySnapshot:
        """Return a snapshot from which `restore` makes the same conversation (S4-25)."""
        return HistorySnapshot(
            id=self.id,
            entries=self.entries,
            registry=self.registry.snapshot(),
            metadata=deepcopy(self.metadata),
            anchor_tokens=self._anchor_tokens,
            anchor_index=self._anchor_index,
            anchor_is_counted=self._is_counted,
        )

    @classmethod
    def restore(
        cls,
        snapshot: HistorySnapshot,
        *,
        id: str | None = None,  # noqa: A002 - the name S4-16 gives it
        registry: ContextRegistry | None = None,
    ) -> "ConversationHistory":
        """Return the conversation of a snapshot: the `import` of S4-25, a reserved word in Python.

        Also reads older snapshots with a plain `system` (S4-26).

        Args:
            snapshot: a result of `export`.
            id: another id; None: that of the snapshot.
            registry: the layers; None: those of the snapshot.
        """
        if registry is None:
            layers = snapshot.registry.layers if snapshot.registry else ()
            registry = ContextRegistry(layer.model_copy(deep=True) for layer in layers)
        history = cls(registry=registry, id=id or snapshot.id)
        history.metadata = deepcopy(snapshot.metadata)
        history._start_over(list(map(KeptEntry.of, snapshot.entries)), snapshot.anchor_tokens, snapshot.anchor_index)
        history._is_counted = snapshot.anchor_is_counted
        if snapshot.registry is None and snapshot.system:
            history.system = snapshot.system
        return history

    def _start_over(self, entries: list[KeptEntry], anchor_tokens: int = 0, anchor_index: int = -1) -> None:
        """Replace the entries. New lists are made, so that existing views do not change."""
        self._entries: list[KeptEntry] = []
        self._messages: list[Message] = []
        self._check = PairingCheck()
        self._anchor_tokens = anchor_tokens
        self._anchor_index = anchor_index
        self._since_anchor = 0
        for entry in entries:
            self._add(entry)
        self._since_anchor = sum(entry.tokens for entry in self._entries[anchor_index + 1 :])

    def _add(self, entry: KeptEntry) -> None:
        self._version += 1
        share_field_sets(entry.message)
        self._entries.append(entry)
        self._messages.append(entry.message)
        self._check.add(entry.message)
        self._since_anchor += entry.tokens
        self.remember_calls((entry.message,))


def _bare_entry(message: Message) -> KeptEntry:
    """Return an entry without model, usage and latency."""
    return KeptEntry(message, estimate_message(message))


def _shown(entries: Iterable[KeptEntry], start: int = 0) -> tuple[HistoryEntry, ...]:
    """Return entries with their indexes, the first of which is `start`."""
    return tuple(entry.at(index) for index, entry in enumerate(entries, start))
