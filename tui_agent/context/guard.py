"""Keeps a conversation inside the model's window: says when it must become shorter, and makes it so (S4-91).

First old results are cut; where that is not enough, a range in the middle is replaced by one message: a summary by a
model if it gives a usable one, else a digest. What was there is kept so that it can be undone.
"""

import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.errors import CompactionError, ConfigurationError
from tui_agent.protocol.messages import Message, ToolResultMessage, UserMessage

from .condense import condensed, cut_result, goal_end, plan_in, replacement_of, tail_begin
from .history import ConversationHistory
from .tokens import CHARACTERS_PER_TOKEN, estimate_message
from .transcript_text import as_transcript, digest

Strategy = Literal["summary", "digest", "trim"]
STRATEGIES: tuple[Strategy, ...] = ("summary", "digest", "trim")
METADATA_KEY = "context_guard"
"""In a history's metadata: `off`, or the strategy for this conversation."""

MOST_FAILURES = 3
"""Automatic attempts in a row that may fail before a person has to ask for one (P69)."""

Cuts: TypeAlias = list[tuple[ToolResultMessage, ToolResultMessage]]
"""Results as they were, and as they are."""

Summarise: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Sums up a transcript; None where there is no usable answer (P70)."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """When and how far.

    Raises:
        ConfigurationError: the numbers make no sense.
    """

    trigger: float = 0.8
    """Share of the window from which on the conversation is made shorter."""
    target: float = 0.4
    """Share it is brought under; well below `trigger`, so that it does not happen at every step (P69)."""
    keep_steps: int = 4
    """Answers at the end that stay as they are, fewer only where that would not be enough."""
    strategy: Strategy = "summary"
    """`summary`: by a model; `digest`: without one; `trim`: only results are cut."""
    on_unknown: Literal["default", "throw"] = "default"
    """What a strategy that does not exist, asked for in a history's metadata, counts as."""
    plan_tool: str = "todo"
    """Tool whose last call holds the plan."""

    def __post_init__(self) -> None:
        if not 0 < self.target < self.trigger <= 1 or self.keep_steps < 1:
            raise ConfigurationError(
                f"a context guard needs 0 < target < trigger <= 1 and keep_steps from 1, got {self.target}, "
                f"{self.trigger} and {self.keep_steps}"
            )


@dataclass(frozen=True, slots=True)
class Compaction:
    """What was done to a conversation."""

    strategy: str
    """How: `trim`, `digest` or `summary`."""
    tokens_before: int
    tokens_after: int
    cut: tuple[tuple[ToolResultMessage, ToolResultMessage], ...] = ()
    """Results that were cut: as they were, and as they are."""
    removed: tuple[Message, ...] = ()
    """The range that is gone, as it was."""
    replacement: UserMessage | None = None
    """What stands in its place."""


@dataclass(slots=True)
class _Record:
    """What the guard knows of one conversation."""

    failures: int = 0
    length: int = 0
    """Messages after the last attempt; it is not tried again before there are more."""
    done: list[Compaction] = field(default_factory=list[Compaction])


class ContextGuard:
    """Guards any number of conversations; what it knows of one goes with it."""

    def __init__(self, options: GuardOptions | None = None) -> None:
        self.options = options or GuardOptions()
        self._records: weakref.WeakKeyDictionary[ConversationHistory, _Record] = weakref.WeakKeyDictionary()

    def is_due(self, history: ConversationHistory, window: int) -> bool:
        """Whether the conversation should be made shorter before the next request of a model with this window."""
        record = self._record(history)
        return (
            history.metadata.get(METADATA_KEY) != "off"
            and record.failures < MOST_FAILURES
            and history.length > record.length
            and history.estimated_tokens() >= self.options.trigger * window
        )

    async def compact(
        self, history: ConversationHistory, window: int, summarise: Summarise | None = None, *, forced: bool = False
    ) -> Compaction:
        """Makes the conversation shorter; to be called between steps, when every call has its result.

        Args:
            history: the conversation.
            window: tokens of the model's window.
            summarise: asks a model; None: a digest stands in.
            forced: also under the threshold; what is there is then at least halved if it can be.

        Raises:
            CompactionError: there is nothing to take away, or the conversation changed meanwhile. Nothing was changed.
            ConfigurationError: the metadata names no strategy, and `on_unknown` is `throw`.
        """
        record = self._record(history)
        try:
            done = await self._compact(history, window, summarise, forced=forced)
        except CompactionError:
            record.failures += 1
            record.length = history.length
            raise
        gained = done.tokens_after < self.options.trigger * window
        record.failures = 0 if gained else record.failures + 1
        record.length = history.length
        record.done.append(done)
        return done

    def undo(self, history: ConversationHistory) -> Compaction:
        """Takes the last compaction back; what was said since then stays. Returns what was undone.

        Raises:
            CompactionError: there is none, or the conversation no longer holds what it made.
        """
        record = self._record(history)
        if not record.done:
            raise CompactionError("There is no compaction to take back in this conversation.")
        last = record.done[-1]
        made = [*(new.id for _, new in last.cut), *([last.replacement.id] if last.replacement else [])]
        present = {message.id for message in history.messages()}
        if not present.issuperset(made):
            raise CompactionError(
                "The compaction cannot be taken back: the conversation was changed since. Kept as is."
            )
        record.done.pop()
        history.replace_messages({new.id: old for old, new in last.cut})
        if last.replacement is not None:
            place = [message.id for message in history.messages()].index(last.replacement.id)
            history.replace_range(place, place + 1, last.removed)
        record.length = history.length
        return last

    def remember(self, history: ConversationHistory, done: Iterable[Compaction]) -> None:
        """Takes over what was done to a conversation before, oldest first, so that it can be undone."""
        self._record(history).done.extend(done)

    def forget_compactions(self, history: ConversationHistory) -> None:
        """Has none of this conversation to take back any more: it was put back to what it was at another time."""
        record = self._record(history)
        record.done.clear()
        record.length = min(record.length, history.length)

    def can_undo(self, history: ConversationHistory) -> bool:
        """Whether a compaction of this conversation could be taken back."""
        return bool(self._record(history).done)

    async def _compact(
        self, history: ConversationHistory, window: int, summarise: Summarise | None, *, forced: bool
    ) -> Compaction:
        if history.open_calls or not history.sound:
            raise CompactionError("The conversation cannot be made shorter while calls wait for their results.")
        strategy = self._strategy(history)
        sizes = _Sizes.of(history, window, self.options.target, forced=forced)
        messages = list(history.messages())
        cuts = _cuts(messages, tail_begin(messages, self.options.keep_steps))
        saved = sum(estimate_message(old) - estimate_message(new) for old, new in cuts)
        if strategy == "trim" or (cuts and sizes.before - saved * sizes.scale <= sizes.target):
            return self._cut(history, cuts, Compaction("trim", sizes.before, sizes.before), sizes)
        chosen = self._range(messages, sizes)
        if chosen is None:
            if not cuts and sizes.before >= self.options.trigger * window:
                cuts = _cuts(messages, len(messages))
            return self._cut(history, cuts, Compaction("trim", sizes.before, sizes.before), sizes)
        done = await self._replace(history, messages[slice(*chosen)], chosen[0], sizes, summarise, strategy)
        if done.tokens_after < self.options.trigger * window:
            return done
        rest = list(history.messages())
        return self._cut(history, _cuts(rest, len(rest)), done, sizes)

    def _cut(self, history: ConversationHistory, cuts: Cuts, done: Compaction, sizes: "_Sizes") -> Compaction:
        """Cuts results, on top of what was done already."""
        if not cuts and done.replacement is None:
            raise CompactionError("There is nothing to condense: the conversation is its goal and its last steps.")
        history.replace_messages({old.id: new for old, new in cuts})
        return replace(done, cut=tuple(cuts), tokens_after=sizes.now(history))

    async def _replace(
        self,
        history: ConversationHistory,
        taken: Sequence[Message],
        start: int,
        sizes: "_Sizes",
        summarise: Summarise | None,
        strategy: Strategy,
    ) -> Compaction:
        """Puts one message in place of a range."""
        version = history.version
        limit = int(sizes.target * CHARACTERS_PER_TOKEN)
        summary = None
        if strategy == "summary" and summarise is not None:
            summary = await summarise(as_transcript(taken, sizes.window * CHARACTERS_PER_TOKEN // 2))
            if history.version != version:
                raise CompactionError("The conversation changed while it was being condensed; it was kept as it is.")
        earlier = [found.summary for found in map(condensed, taken) if found is not None]
        text = summary or "\n".join([*earlier, digest(taken)])
        replacement = replacement_of(taken, text, plan_in(taken, self.options.plan_tool), limit // 2)
        if estimate_message(replacement) >= sum(map(estimate_message, taken)):
            raise CompactionError("Condensing would not make the conversation shorter; it was kept as it is.")
        history.splice_range(start, start + len(taken), replacement)
        used = "digest" if summary is None else "summary"
        return Compaction(used, sizes.before, sizes.now(history), removed=tuple(taken), replacement=replacement)

    def _range(self, messages: Sequence[Message], sizes: "_Sizes") -> tuple[int, int] | None:
        """The range to take away: behind the goal, and before as many of the last steps as fit; None: there is none."""
        start = goal_end(messages)
        best: tuple[int, int] | None = None
        for steps in range(self.options.keep_steps, 0, -1):
            end = tail_begin(messages, steps)
            if end - start < 2:
                continue
            best = (start, end)
            if sizes.before - sum(map(estimate_message, messages[start:end])) * sizes.scale <= sizes.target:
                break
        return best

    def _strategy(self, history: ConversationHistory) -> Strategy:
        chosen = history.metadata.get(METADATA_KEY)
        if chosen is None or chosen == "off":
            return self.options.strategy
        for strategy in STRATEGIES:
            if strategy == chosen:
                return strategy
        if self.options.on_unknown == "throw":
            raise ConfigurationError(f"no compaction strategy {chosen!r}; there are {', '.join(STRATEGIES)}")
        return self.options.strategy

    def _record(self, history: ConversationHistory) -> _Record:
        return self._records.setdefault(history, _Record())


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Tokens, in the measure of the provider's last count."""

    window: int
    before: int
    target: float
    scale: float
    """What a guessed token counts."""

    @classmethod
    def of(cls, history: ConversationHistory, window: int, share: float, *, forced: bool) -> "_Sizes":
        before = history.estimated_tokens()
        target = min(share * window, before / 2) if forced else share * window
        return cls(window, before, target, before / max(history.guessed_tokens(), 1))

    def now(self, history: ConversationHistory) -> int:
        """What is there now."""
        return round(history.guessed_tokens() * self.scale)


def _cuts(messages: Sequence[Message], end: int) -> Cuts:
    """The results before `end` that can be cut, with what they become."""
    found = ((message, cut_result(message)) for message in messages[:end] if isinstance(message, ToolResultMessage))
    return [(old, new) for old, new in found if new is not None]
