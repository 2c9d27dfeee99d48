"""Options for running calls, strategies among them (which calls of one message may run at the same time, S0-4), and
presets that reproduce the literal behaviour of each requirement series.
"""

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_seconds, expect_whole


@dataclass(frozen=True, slots=True)
class Sequential:
    """One call at a time, in order; the next starts once the previous result is committed (S0-13)."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """All calls at once (S0-5)."""


@dataclass(frozen=True, slots=True)
class Batched:
    """Consecutive chunks of calls, one chunk after the other (S0-6).

    Raises:
        ConfigurationError: the size is not a whole number of at least 1.
    """

    size: int
    """Largest number of calls in one chunk."""

    def __post_init__(self) -> None:
        expect_whole("the size of batched", self.size, 1)


@dataclass(frozen=True, slots=True)
class Auto:
    """Every call as soon as the earlier calls that it conflicts with are done."""


Strategy: TypeAlias = Sequential | Parallel | Batched | Auto


def strategy_name(strategy: Strategy) -> str:
    """Return the name used in options and events: `auto`, `sequential`, `parallel` or `batched:N`."""
    match strategy:
        case Batched(size=size):
            return f"batched:{size}"
        case _:
            return type(strategy).__name__.lower()


def parse_strategy(text: str) -> Strategy:
    """Return the strategy that `strategy_name` names so.

    Raises:
        ConfigurationError: the text names no strategy.
    """
    name, colon, size = text.strip().partition(":")
    if name == "batched" and size.isdecimal():
        return Batched(int(size))
    plain: dict[str, Strategy] = {"auto": Auto(), "sequential": Sequential(), "parallel": Parallel()}
    if name in plain and not colon:
        return plain[name]
    raise ConfigurationError(f"unknown strategy {text!r}; use auto, sequential, parallel or batched:N with N ≥ 1")


Grouping: TypeAlias = Literal["conflicts", "consecutive", "safe_first"]
SteeringMode: TypeAlias = Literal[
    "between_calls", "between_batches", "after_batch", "before_effects", "interrupt", "off"
]
PreHookPosition: TypeAlias = Literal["before_lookup", "before_permission", "after_permission"]

MINIMAL_RESULT_LIMIT = 400
"""Smallest `result_limit` in characters; less would not hold the note about what was left out."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Options for running calls; `preset` returns those of one requirement series.

    Raises:
        ConfigurationError: a value is of the wrong kind, out of range or unknown, or has no effect beside another.
    """

    strategy: Strategy = field(default_factory=Auto)
    grouping: Grouping = "conflicts"
    """Order of calls with `Auto`."""
    stream_tools: Literal["allowed", "safe_only", "off"] = "safe_only"
    """Calls that `Auto` starts while the model still streams: with `allowed` all that need no question, with
    `safe_only` those of them that only read."""
    steering_mode: SteeringMode | None = None
    """Points at which steering is polled; None: as the strategy implies, see `steering`."""
    interrupt_interval: float = 0.1
    """Seconds between two polls for steering while calls run, in mode `interrupt`."""
    max_concurrency: int | None = 10
    """Largest number of calls that run at the same time; None: no limit."""
    admit_first: bool = False
    """True if every call of a complete message is judged and approved before any of them runs (S1-3); calls that
    started during the stream continue. False: a call waits only for those that it conflicts with."""
    start_events: Literal["as_started", "upfront"] = "as_started"
    """Time at which `tool.started` is published: when a call starts, or for all calls before any starts. `upfront`
    implies `admit_first`, so that the event has the arguments, time limit and preview with which each call runs."""
    end_events: Literal["completion", "source_order"] = "completion"
    """Time at which `tool.ended` is published: when a call is over, or in call order after all calls."""
    message_events: Literal["ordered", "completion"] = "ordered"
    """Time at which result messages are published: per wave in call order, or right after each call's end."""
    tool_timeout: float | None = 30.0
    """Seconds that a call may execute unless its tool sets a limit; None: no limit."""
    grace: float = 2.0
    """Seconds from the request to stop a call until it is cancelled."""
    validate_arguments: bool = True
    """True if arguments are validated against the tool's schema before anything else."""
    malformed_args: Literal["error", "empty_object"] = "error"
    """Treatment of arguments that are not a JSON object."""
    unknown_tool: Literal["explain", "plain"] = "explain"
    """`explain`: the answer to an unknown tool name lists the known ones."""
    start_unknown: bool = False
    """True if `tool.started` is published for calls of unknown tools, as S0-28 requires."""
    balanced_start: bool = False
    """True if `tool.started` is published for calls that never run, too."""
    error_traceback: Literal["details", "model", "none"] = "details"
    """Destination of the traceback of a tool that raised."""
    skip_is_error: bool = True
    """True if a call skipped without a result is an error for the model."""
    pre_hook_position: PreHookPosition = "before_permission"
    """Stage before which `before_tool` hooks run."""
    hook_may_approve: bool = False
    """True if a hook's `ApproveCall` replaces the user's approval."""
    on_reject: Literal["continue", "stop_turn"] = "continue"
    """Effect of a denial without a note on the run."""
    terminate_policy: Literal["all", "any"] = "all"
    """The run ends if all results of a wave ask for it, or any one."""
    sibling_abort: bool = False
    """True if a failed call whose tool sets `aborts_siblings` stops the other calls of its message."""
    result_limit: int | None = 100_000
    """Characters of text in a result, beyond which its middle is left out; None: no limit (S3-20)."""
    archive_dir: Path | None = None
    """Directory that keeps the whole text of truncated results; None: it is not kept (S3-21)."""

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
            raise ConfigurationError(
                f"strategy must be Auto(), Sequential(), Parallel() or Batched(n), got {self.strategy!r}"
            )
        for name, allowed in _CHOICES.items():
            expect_choice(name, getattr(self, name), allowed)
        for name in _FLAGS:
            expect_flag(name, getattr(self, name))
        if self.max_concurrency is not None:
            expect_whole("max_concurrency", self.max_concurrency, 1)
        if self.result_limit is not None:
            expect_whole("result_limit", self.result_limit, MINIMAL_RESULT_LIMIT)
        if self.tool_timeout is not None:
            expect_seconds("tool_timeout", self.tool_timeout)
        expect_seconds("grace", self.grace, or_zero=True)
        expect_seconds("interrupt_interval", self.interrupt_interval)
        if not isinstance(self.archive_dir, Path | None):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
            raise ConfigurationError(f"archive_dir must be a Path or None, got {self.archive_dir!r}")
        self._expect_effective()

    def _expect_effective(self) -> None:
        """Refuse options that have no effect beside others, because the caller relies on them."""
        if self.hook_may_approve and self.pre_hook_position == "after_permission":
            why = "hooks that run after_permission are too late to approve a call"
            raise ConfigurationError(f"hook_may_approve needs another pre_hook_position: {why}")
        if self.message_events == "completion" and self.end_events == "source_order":
            why = "a result message follows its call's end, and with source_order ends wait for all calls"
            raise ConfigurationError(f"message_events=completion needs end_events=completion: {why}")

    @property
    def admits_first(self) -> bool:
        """True if every call is judged before any runs, chosen or implied."""
        return self.admit_first or self.start_events == "upfront"

    @property
    def steering(self) -> SteeringMode:
        """Steering mode in force: the chosen one, or the one that the strategy implies."""
        if self.steering_mode is not None:
            return self.steering_mode
        match self.strategy:
            case Sequential():
                return "between_calls"
            case Batched():
                return "between_batches"
            case Parallel():
                return "after_batch"
            case Auto():
                return "before_effects"

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ExecutionOptions":
        """Return the options of one requirement series, `rust_loop` (S0), `permissioned` (S1), `ordered_parallel` (S2),
        `streaming` (S3) or `sdk_loop` (S4), with `changes`, such as another strategy.

        Raises:
            ConfigurationError: the preset or an option is unknown.
        """
        if name not in _PRESETS:
            near = difflib.get_close_matches(name, _PRESETS, 1) or sorted(_PRESETS)
            raise ConfigurationError(f"unknown preset {name!r}; did you mean {' or '.join(near)}?")
        unknown = set(changes) - set(cls.__dataclass_fields__)
        if unknown:
            raise ConfigurationError(f"unknown execution option: {', '.join(sorted(unknown))}")
        return replace(cls(**_PRESETS[name]), **changes)


def _words(hint: Any) -> tuple[object, ...]:
    """Return the values of a type that is one of several words, or None; empty for any other type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    first, *others = get_args(hint) or (None,)
    words = _words(first) if others == [NoneType] else ()
    return (*words, None) if words else ()


# Read from the types, so that an option and its check cannot differ.
_HINTS = get_type_hints(ExecutionOptions)
_CHOICES = {name: words for name, hint in _HINTS.items() if (words := _words(hint))}
_FLAGS = tuple(name for name, hint in _HINTS.items() if hint is bool)

_LITERAL: dict[str, Any] = {
    "validate_arguments": False,
    "unknown_tool": "plain",
    "stream_tools": "off",
    "max_concurrency": None,
    "tool_timeout": None,
    "result_limit": None,
}

_PRESETS: dict[str, dict[str, Any]] = {
    "rust_loop": {
        **_LITERAL,
        "strategy": Parallel(),
        "message_events": "completion",
        "pre_hook_position": "before_lookup",
        "start_unknown": True,
    },
    "permissioned": {
        "admit_first": True,
        "grouping": "safe_first",
        "max_concurrency": None,
        "steering_mode": "after_batch",
    },
    "ordered_parallel": {
        **_LITERAL,
        "strategy": Parallel(),
        "start_events": "upfront",
        "end_events": "source_order",
        "steering_mode": "after_batch",
    },
    "streaming": {
        "grouping": "safe_first",
        "max_concurrency": None,
        "steering_mode": "after_batch",
        "pre_hook_position": "after_permission",
        "error_traceback": "model",
    },
    "sdk_loop": {
        **_LITERAL,
        "strategy": Parallel(),
        "unknown_tool": "explain",
        "malformed_args": "empty_object",
        "steering_mode": "off",
        "pre_hook_position": "before_lookup",
        "skip_is_error": False,
        "tool_timeout": 30.0,
    },
}
