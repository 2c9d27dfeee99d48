"""Keeps a conversation inside the model's window: says when it must become shorter, and makes it so (S4-91).

First old results are cut; where that is not enough, a range in the middle is replaced by one message: a summary by a
model if it gives a usable one, else a digest. What was there is kept so that it can be undone.
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

from .compaction import LEFT_OUT, build_replacement, condensed, cut_result, find_plan, goal_end, tail_start
from .history import ConversationHistory
from .tokens import CHARACTERS_PER_TOKEN, estimate_message
from .transcript_text import as_transcript, digest, shortened

Strategy = Literal["summary", "digest", "trim"]
STRATEGIES: tuple[Strategy, ...] = ("summary", "digest", "trim")
METADATA_KEY = "context_guard"
"""In a history's metadata: `off`, or the strategy for this conversation."""

MOST_FAILURES = 3
"""Automatic attempts in a row that may fail, or gain too little, before a person has to ask for one (P69)."""

REPLACEMENT_SHARE = 1 / 3
"""Part of the target that the message in place of a range may take, also where nothing of it is left."""

LEAST_LETTERS = 1_200
"""Characters that the message in place of a range may take in the smallest of windows."""

Cuts: TypeAlias = list[tuple[ToolResultMessage, ToolResultMessage]]
"""Results as they were, and as they are."""

Summarise: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Sums up a transcript; None where there is no usable answer (P70)."""


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class GuardOptions:
    """When and how far.

    Raises:
        ConfigurationError: a field is unknown or of the wrong kind, or the numbers contradict each other.
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
        """
        Raises:
            ConfigurationError: `options` is not a GuardOptions.
        """
        expect_kind("ContextGuard.options", options, (GuardOptions, type(None)), "GuardOptions or None")
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
            record.failures += not forced
            record.length = history.length
            raise
        gained = done.tokens_after <= (self.options.trigger + self.options.target) / 2 * window
        record.failures = 0 if gained else record.failures + (not forced)
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
        for one in done:
            self._record(history).done.append(one)
            history.remember_calls(one.removed)

    def forget_compactions(self, history: ConversationHistory) -> None:
        """Has none of this conversation to take back any more: it was put back to what it was at another time."""
        record = self._record(history)
        record.done.clear()
        record.failures = 0
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
        cuts = _cuts(messages[: tail_start(messages, self.options.keep_steps)])
        done: Compaction | None = None
        if strategy != "trim" and not (cuts and sizes.without(cuts) <= sizes.target):
            chosen = self._range(messages, sizes)
            if chosen is not None:
                done = await self._replace(history, messages[slice(*chosen)], chosen[0], sizes, summarise, strategy)
        if done is None:
            done = _cut(history, cuts, Compaction("trim", sizes.before, sizes.before), sizes)
        if done.tokens_after >= self.options.trigger * window:
            done = _cut(history, _cuts(history.messages(), done.tokens_after - sizes.target, sizes), done, sizes)
        if not done.cut and done.replacement is None:
            raise CompactionError("There is nothing to condense: the conversation is its goal and its last steps.")
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
        """Puts one message in place of a range; None where that would not be shorter."""
        taken_tokens = sum(map(estimate_message, taken))
        limit = sizes.letters_beside(history.guessed_tokens() - taken_tokens)
        plan = find_plan(taken, self.options.plan_tool)

        def put_together(text: str) -> UserMessage | None:
            made = build_replacement(taken, text, plan, limit, with_goal=start == 0)
            return made if estimate_message(made) < taken_tokens else None

        if put_together("") is None:
            return None
        version = history.version
        summary = None
        if strategy == "summary" and summarise is not None:
            summary = await summarise(as_transcript(taken, sizes.letters(sizes.window) // 2))
            if history.version != version:
                raise CompactionError("The conversation changed while it was being condensed; it was kept as it is.")
        earlier = [shortened(found.summary, limit // 4, LEFT_OUT) for found in map(condensed, taken) if found]
        room = limit // 2 - sum(map(len, earlier))
        replacement = put_together(summary or "\n".join([*earlier, digest(taken, room)]))
        if replacement is None:
            return None
        history.splice_range(start, start + len(taken), replacement)
        used = "digest" if summary is None else "summary"
        return Compaction(used, sizes.before, sizes.now(history), removed=tuple(taken), replacement=replacement)

    def _range(self, messages: Sequence[Message], sizes: "_Sizes") -> tuple[int, int] | None:
        """The range to take away: behind the goal, and before as many of the last steps as fit; None: there is none."""
        start = goal_end(messages)
        best: tuple[int, int] | None = None
        for steps in range(self.options.keep_steps, 0, -1):
            end = tail_start(messages, steps)
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
        return cls(window, before, target, max(before, 1) / max(history.guessed_tokens(), 1))

    def letters(self, tokens: float) -> int:
        """Characters that are so many tokens."""
        return int(tokens / self.scale * CHARACTERS_PER_TOKEN)

    def letters_beside(self, kept: int) -> int:
        """Characters that the message in place of a range may take beside `kept` guessed tokens."""
        least = max(self.letters(self.target * REPLACEMENT_SHARE), LEAST_LETTERS)
        return max(self.letters(self.target) - kept * CHARACTERS_PER_TOKEN, least)

    def without(self, cuts: Cuts) -> float:
        """What would be left after these cuts."""
        return self.before - sum(map(_saved, cuts)) * self.scale

    def now(self, history: ConversationHistory) -> int:
        """What is there now."""
        return round(history.guessed_tokens() * self.scale)


def _cuts(messages: Iterable[Message], excess: float = math.inf, sizes: "_Sizes | None" = None) -> Cuts:
    """The results that can be cut, with what they become, oldest first; no more than it takes to save `excess`."""
    cuts: Cuts = []
    for message in messages:
        if excess <= 0:
            break
        if isinstance(message, ToolResultMessage) and (new := cut_result(message)) is not None:
            cuts.append((message, new))
            excess -= _saved(cuts[-1]) * (sizes.scale if sizes else 1)
    return cuts


def _saved(cut: tuple[ToolResultMessage, ToolResultMessage]) -> int:
    """Guessed tokens that a cut takes away."""
    return estimate_message(cut[0]) - estimate_message(cut[1])


def _cut(history: ConversationHistory, cuts: Cuts, done: Compaction, sizes: "_Sizes") -> Compaction:
    """Cuts results, on top of what was done already."""
    if not cuts:
        return done
    history.replace_messages({old.id: new for old, new in cuts})
    return replace(done, cut=(*done.cut, *cuts), tokens_after=sizes.now(history))
