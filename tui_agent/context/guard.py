"""Compaction of a conversation that no longer fits the model's window (S4-91).

The guard first truncates old results. If that is not enough, it replaces a range in the middle with one message: the
model's summary, or a digest if the model returns no usable one. Each compaction can be undone.
"""

import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.errors import CompactionError, ConfigurationError
from tui_agent.protocol.messages import Message, ToolResultMessage, UserMessage
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_kind,
    expect_number,
    expect_whole,
    refuse_unknown_fields,
)

from .compaction import (
    LEFT_OUT,
    as_transcript,
    build_replacement,
    condensed,
    cut_result,
    digest,
    find_plan,
    goal_end,
    safe_cuts,
    shortened,
    tail_start,
)
from .history import ConversationHistory
from .tokens import CHARACTERS_PER_TOKEN, estimate_message

Strategy = Literal["summary", "digest", "trim"]
STRATEGIES: tuple[Strategy, ...] = ("summary", "digest", "trim")
METADATA_KEY = "context_guard"
"""Key in a history's metadata; its value is `off` or the strategy for this conversation."""

MOST_FAILURES = 3
"""Automatic attempts in a row that fail or gain too little, after which only the user starts a compaction."""

REPLACEMENT_SHARE = 1 / 3
"""Share of the target that the replacement message may always use, even if the kept messages fill the target."""

LEAST_LETTERS = 1_200
"""Characters that the replacement message may always use, however small the window."""

Cuts: TypeAlias = list[tuple[ToolResultMessage, ToolResultMessage]]
"""Pairs of a result and its truncated version."""

Summarise: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Summarises a transcript; returns None if the model gave no usable answer."""


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Thresholds and strategy of a context guard.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind, or the numbers contradict each other.
    """

    trigger: float = 0.8
    """Share of the window at which compaction starts."""
    target: float = 0.4
    """Share of the window to compact to; well below `trigger`, so that not every step compacts."""
    keep_steps: int = 4
    """Answers at the end that are kept; fewer only if the target cannot be met otherwise."""
    strategy: Strategy = "summary"
    """`summary` asks a model, `digest` does not, `trim` only truncates results."""
    on_unknown: Literal["default", "throw"] = "default"
    """Reaction to an unknown strategy in a history's metadata: use `strategy`, or raise."""
    plan_tool: str = "todo"
    """Name of the tool whose last call contains the plan."""

    def __post_init__(self) -> None:
        for name in ("trigger", "target"):
            expect_number(f"GuardOptions.{name}", getattr(self, name))
        expect_whole("GuardOptions.keep_steps", self.keep_steps, 0)
        expect_choice("GuardOptions.strategy", self.strategy, STRATEGIES)
        expect_choice("GuardOptions.on_unknown", self.on_unknown, ("default", "throw"))
        expect_kind("GuardOptions.plan_tool", self.plan_tool, str, "the name of a tool")
        if not 0 < self.target < self.trigger <= 1 or self.keep_steps < 1:
            raise ConfigurationError(
                f"a context guard needs 0 < target < trigger <= 1 and keep_steps from 1, got {self.target}, "
                f"{self.trigger} and {self.keep_steps}"
            )


@dataclass(frozen=True, slots=True)
class Compaction:
    """Record of one compaction."""

    strategy: str
    """Strategy that was used: `trim`, `digest` or `summary`."""
    tokens_before: int
    """0 if it is not known."""
    tokens_after: int
    cut: tuple[tuple[ToolResultMessage, ToolResultMessage], ...] = ()
    """Truncated results: original and new version of each."""
    removed: tuple[Message, ...] = ()
    """Messages of the replaced range."""
    replacement: UserMessage | None = None
    """Message in place of the range."""


@dataclass(slots=True)
class _Record:
    """State of the guard for one conversation."""

    failures: int = 0
    length: int = 0
    """Number of messages after the last attempt; the next one waits until there are more."""
    done: list[Compaction] = field(default_factory=list[Compaction])


class ContextGuard:
    """Compacts any number of conversations; the state of one lives as long as its history."""

    def __init__(self, options: GuardOptions | None = None) -> None:
        """
        Raises:
            ConfigurationError: `options` is not a GuardOptions.
        """
        expect_kind("ContextGuard.options", options, (GuardOptions, type(None)), "GuardOptions or None")
        self.options = options or GuardOptions()
        # Weak, because the conversations of sub-agents come and go.
        self._records: weakref.WeakKeyDictionary[ConversationHistory, _Record] = weakref.WeakKeyDictionary()

    def is_due(self, history: ConversationHistory, window: int) -> bool:
        """True if the conversation must be compacted before the next request to a model with this window (in
        tokens)."""
        record = self._record(history)
        return (
            history.metadata.get(METADATA_KEY) != "off"
            and record.failures < MOST_FAILURES
            and history.length > record.length
            # Last, because without an anchor it composes the system prompt.
            and history.estimated_tokens() >= self.options.trigger * window
        )

    async def compact(
        self, history: ConversationHistory, window: int, summarise: Summarise | None = None, *, forced: bool = False
    ) -> Compaction:
        """Compact the conversation. Call it between steps, when every call has its result.

        Args:
            history: the conversation.
            window: size of the model's window in tokens.
            summarise: asks a model for a summary; without it, a digest is used.
            forced: compact below the threshold, too, to half of the current size if possible.

        Raises:
            CompactionError: nothing can be removed, or the conversation changed meanwhile; it is left unchanged.
            ConfigurationError: the metadata names an unknown strategy, and `on_unknown` is `throw`.
        """
        record = self._record(history)
        try:
            done = await self._compact(history, window, summarise, forced=forced)
        except CompactionError:
            record.failures += not forced
            record.length = history.length
            raise
        # A third of the way to the target: in a small window, prompt and tools alone take much of it.
        gained = done.tokens_after <= (2 * self.options.trigger + self.options.target) / 3 * window
        if history.estimated_tokens() != done.tokens_after:
            history.assume_tokens(done.tokens_after)
        record.failures = 0 if gained else record.failures + (not forced)
        record.length = history.length
        record.done.append(done)
        return done

    def undo(self, history: ConversationHistory) -> Compaction:
        """Undo the last compaction and return it; messages added since then stay.

        Raises:
            CompactionError: there is none, or the conversation no longer contains the messages it made.
        """
        record = self._record(history)
        if not record.done:
            raise CompactionError("No compaction of this conversation can be undone.")
        last = record.done[-1]
        made = [*(new.id for _, new in last.cut), *([last.replacement.id] if last.replacement else [])]
        present = {message.id for message in history.messages()}
        if not present.issuperset(made):
            raise CompactionError(
                "The compaction cannot be undone: its messages changed since. The conversation stays as it is."
            )
        record.done.pop()
        # Of what came since, there is only an estimate; the tokens before the compaction were known.
        since = history.estimated_tokens() - last.tokens_after
        history.replace_messages({new.id: old for old, new in last.cut})
        if last.replacement is not None:
            place = [message.id for message in history.messages()].index(last.replacement.id)
            history.replace_range(place, place + 1, last.removed)
        if last.tokens_before:
            history.assume_tokens(last.tokens_before + max(0, since))
        record.length = history.length
        return last

    def remember(self, history: ConversationHistory, done: Iterable[Compaction]) -> None:
        """Add earlier compactions of a resumed conversation, oldest first, so that they can be undone."""
        for compaction in done:
            self._record(history).done.append(compaction)
            history.remember_calls(compaction.removed)

    def forget_compactions(self, history: ConversationHistory) -> None:
        """Forget the compactions of a conversation after a rewind: they no longer match its messages."""
        record = self._record(history)
        record.done.clear()
        record.failures = 0
        record.length = min(record.length, history.length)

    def can_undo(self, history: ConversationHistory) -> bool:
        """True if a compaction of this conversation is on record to undo."""
        return bool(self._record(history).done)

    async def _compact(
        self, history: ConversationHistory, window: int, summarise: Summarise | None, *, forced: bool
    ) -> Compaction:
        if history.open_calls or not history.sound:
            raise CompactionError("The conversation cannot be compacted while calls wait for their results.")
        strategy = self._strategy(history)
        sizes = _Sizes.of(history, window, self.options.target, forced=forced)
        messages = list(history.messages())
        cuts = _cuts(messages[: tail_start(messages, self.options.keep_steps)])
        done: Compaction | None = None
        if strategy != "trim" and not (cuts and sizes.without(cuts) <= sizes.target):
            chosen = self._range(messages, sizes)
            if forced and (chosen is None or sizes.beside(messages[slice(*chosen)]) > sizes.target):
                chosen = _last_range(messages) or chosen
            if chosen is not None:
                done = await self._replace(history, messages[slice(*chosen)], chosen[0], sizes, summarise, strategy)
        if done is None:
            done = _cut(history, cuts, Compaction("trim", sizes.before, sizes.before), sizes)
        if done.tokens_after >= self.options.trigger * window:
            done = _cut(history, _cuts(history.messages(), done.tokens_after - sizes.target, sizes), done, sizes)
        if not done.cut and done.replacement is None:
            raise CompactionError("Nothing to compact: the conversation has only its goal and its last steps.")
        return done

    async def _replace(
        self,
        history: ConversationHistory,
        taken: Sequence[Message],
        start: int,
        sizes: "_Sizes",
        summarise: Summarise | None,
        strategy: Strategy,
    ) -> Compaction | None:
        """Replace a range with one message; return None if that would not be shorter."""
        taken_tokens = sum(map(estimate_message, taken))
        limit = sizes.letters_beside(history.guessed_tokens() - taken_tokens)
        plan = find_plan(taken, self.options.plan_tool)

        def put_together(text: str) -> UserMessage | None:
            # A goal at the start of the range was too long to be kept whole.
            made = build_replacement(taken, text, plan, limit, with_goal=start == 0 and not goal_end(taken))
            return made if estimate_message(made) < taken_tokens else None

        # The model is not asked if even an empty summary would not make it shorter.
        if put_together("") is None:
            return None
        version = history.version
        summary = None
        if strategy == "summary" and summarise is not None:
            summary = await summarise(as_transcript(taken, sizes.letters(sizes.window) // 2))
            if history.version != version:
                raise CompactionError("The conversation changed during the compaction. It was not compacted.")
        # Shortened, or each compaction would make the next digest longer.
        earlier = [shortened(found.summary, limit // 4, LEFT_OUT) for found in map(condensed, taken) if found]
        room = limit // 2 - sum(map(len, earlier))
        replacement = put_together(summary or "\n".join([*earlier, digest(taken, room)]))
        if replacement is None:
            return None
        history.splice_range(start, start + len(taken), replacement)
        used = "digest" if summary is None else "summary"
        return Compaction(used, sizes.before, sizes.now(history), removed=tuple(taken), replacement=replacement)

    def _range(self, messages: Sequence[Message], sizes: "_Sizes") -> tuple[int, int] | None:
        """Return the range to replace: after the goal, and before as many of the last steps as the target allows."""
        start = goal_end(messages)
        best: tuple[int, int] | None = None
        for steps in range(self.options.keep_steps, 0, -1):
            end = tail_start(messages, steps)
            if end - start < 2:
                continue
            best = (start, end)
            if sizes.beside(messages[start:end]) <= sizes.target:
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
            raise ConfigurationError(f"unknown compaction strategy {chosen!r}; choose from {', '.join(STRATEGIES)}")
        return self.options.strategy

    def _record(self, history: ConversationHistory) -> _Record:
        return self._records.setdefault(history, _Record())


def _last_range(messages: Sequence[Message]) -> tuple[int, int] | None:
    """Return everything before the newest user messages, without the goal if that leaves enough to take; None if no
    answer comes before them.

    A server has refused the conversation, and each later one would be refused, too.
    """
    end = len(messages)
    while end and isinstance(messages[end - 1], UserMessage):
        end -= 1
    start = goal_end(messages)
    if end == len(messages) or end not in safe_cuts(messages) or end <= start:
        return None
    sizes = [estimate_message(message) for message in messages]
    return 0 if sum(sizes[:start]) > sum(sizes[start:end]) else start, end


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Token counts of one compaction, scaled to the provider's last count."""

    window: int
    before: int
    target: float
    scale: float
    """Provider's tokens per estimated token."""

    @classmethod
    def of(cls, history: ConversationHistory, window: int, share: float, *, forced: bool) -> "_Sizes":
        before = history.estimated_tokens()
        target = min(share * window, before / 2) if forced else share * window
        return cls(window, before, target, max(before, 1) / max(history.guessed_tokens(), 1))

    def letters(self, tokens: float) -> int:
        """Convert tokens to characters."""
        return int(tokens / self.scale * CHARACTERS_PER_TOKEN)

    def letters_beside(self, kept: int) -> int:
        """Return the characters that the replacement message may use beside `kept` estimated tokens."""
        least = max(self.letters(self.target * REPLACEMENT_SHARE), LEAST_LETTERS)
        return max(self.letters(self.target) - kept * CHARACTERS_PER_TOKEN, least)

    def without(self, cuts: Cuts) -> float:
        """Return the tokens that would remain after these cuts."""
        return self.before - sum(map(_saved, cuts)) * self.scale

    def beside(self, taken: Iterable[Message]) -> float:
        """Return the tokens of the conversation without these messages."""
        return self.before - sum(map(estimate_message, taken)) * self.scale

    def now(self, history: ConversationHistory) -> int:
        """Return the current tokens of the conversation."""
        return round(history.guessed_tokens() * self.scale)


def _cuts(messages: Iterable[Message], excess: float = math.inf, sizes: "_Sizes | None" = None) -> Cuts:
    """Return the results to truncate, oldest first, with their new versions; stop once `excess` tokens are saved."""
    cuts: Cuts = []
    for message in messages:
        if excess <= 0:
            break
        if isinstance(message, ToolResultMessage) and (new := cut_result(message)) is not None:
            cuts.append((message, new))
            excess -= _saved(cuts[-1]) * (sizes.scale if sizes else 1)
    return cuts


def _saved(cut: tuple[ToolResultMessage, ToolResultMessage]) -> int:
    """Return the estimated tokens that a cut saves."""
    return estimate_message(cut[0]) - estimate_message(cut[1])


def _cut(history: ConversationHistory, cuts: Cuts, done: Compaction, sizes: "_Sizes") -> Compaction:
    """Truncate results and add them to the record."""
    if not cuts:
        return done
    history.replace_messages({old.id: new for old, new in cuts})
    return replace(done, cut=(*done.cut, *cuts), tokens_after=sizes.now(history))
