"""Every choice there is in running calls, and the presets that restore each seed's literal behaviour (§1, §3)."""

import difflib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_seconds, expect_whole

from .strategy import Auto, Batched, Parallel, Sequential, Strategy

Grouping: TypeAlias = Literal["conflicts", "consecutive", "safe_first"]
SteeringMode: TypeAlias = Literal[
    "between_calls", "between_batches", "after_batch", "before_effects", "interrupt", "off"
]
PreHookPosition: TypeAlias = Literal["before_lookup", "before_permission", "after_permission"]

MINIMAL_RESULT_LIMIT = 400
"""Characters; less would not hold the note that says what was left out."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """How calls run. The defaults are the engine's; `preset` restores a seed's.

    Raises:
        ConfigurationError: a value is of the wrong kind or out of range (C1, P39), or none of the words there are, or
            can do nothing beside another.
    """

    strategy: Strategy = field(default_factory=Auto)
    grouping: Grouping = "conflicts"
    """How `Auto` orders calls (C2)."""
    stream_tools: Literal["safe_only", "off"] = "safe_only"
    """Whether `Auto` starts read-only calls while the model still streams (C28)."""
    steering_mode: SteeringMode | None = None
    """Where steering is looked for (C7); None: as the strategy implies, see `steering`."""
    interrupt_interval: float = 0.1
    """Seconds between two looks for steering while calls run, in mode `interrupt`."""
    max_concurrency: int | None = 10
    """Most calls that run at the same time; None: no limit."""
    admit_first: bool = False
    """Whether every call of a complete message is judged, and asked about, before one of them runs (S1-3); what runs
    while the model still streams runs on. Otherwise a call waits only for those it conflicts with."""
    start_events: Literal["as_started", "upfront"] = "as_started"
    """When `tool.started` is told: when a call really starts, or for all before any (C4). `upfront` implies
    `admit_first`, so that it tells the arguments, the time limit and the preview with which each call runs."""
    end_events: Literal["completion", "source_order"] = "completion"
    """When `tool.ended` is told: when a call is over, or for all in call order after all (C5)."""
    message_events: Literal["ordered", "completion"] = "ordered"
    """When result messages are told: per wave in call order, or right after each call's end (C6)."""
    tool_timeout: float | None = 30.0
    """Seconds a call may execute where its tool says nothing; None: without limit (C24)."""
    grace: float = 2.0
    """Seconds between telling a call to stop and cancelling it, and again before it is given up (C24)."""
    validate_arguments: bool = True
    """Whether arguments are checked against the tool's schema before anything else (C15)."""
    malformed_args: Literal["error", "empty_object"] = "error"
    """What arguments that are no JSON object count as (C20)."""
    unknown_tool: Literal["explain", "plain"] = "explain"
    """Whether an unknown name is answered with the names there are (C21)."""
    start_unknown: bool = False
    """Whether a call of an unknown tool is told as started, as S0-28 has it."""
    balanced_start: bool = False
    """Whether calls that never run are told as started, too (C12)."""
    error_traceback: Literal["details", "model", "none"] = "details"
    """Who sees the traceback of a tool that raised (C23)."""
    skip_is_error: bool = True
    """Whether a call skipped without a result is an error for the model (C11)."""
    pre_hook_position: PreHookPosition = "before_permission"
    """Where `before_tool` hooks are asked (C13)."""
    hook_may_approve: bool = False
    """Whether a hook's `ApproveCall` answers a question instead of a person (C14)."""
    on_reject: Literal["continue", "stop_turn"] = "continue"
    """What a person's denial without words does to the run (C44)."""
    terminate_policy: Literal["all", "any"] = "all"
    """How many results must ask for the end of the run (C48)."""
    sibling_abort: bool = False
    """Whether a tool that says so (`Tool.aborts_siblings`) stops the other calls of its message if it fails (C26)."""
    result_limit: int | None = 100_000
    """Characters of text a result may have before its middle is left out; None: no limit (S3-20)."""
    archive_dir: Path | None = None
    """Where results that were too long are kept whole; None: nowhere (S3-21)."""

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
        if not isinstance(self.archive_dir, Path | None):  # pyright: ignore[reportUnnecessaryIsInstance] — the same
            raise ConfigurationError(f"archive_dir must be a Path or None, got {self.archive_dir!r}")
        self._expect_sense()

    def _expect_sense(self) -> None:
        """Refuses what would do nothing beside something else, because whoever chose it counts on it."""
        if self.hook_may_approve and self.pre_hook_position == "after_permission":
            words = "a hook that is asked after_permission comes too late to answer the question"
            raise ConfigurationError(f"hook_may_approve needs another pre_hook_position: {words}")
        if self.message_events == "completion" and self.end_events == "source_order":
            words = "a result message comes behind its call's end, and ends wait for all calls"
            raise ConfigurationError(f"message_events=completion needs end_events=completion: {words}")

    @property
    def admits_first(self) -> bool:
        """Whether every call is judged before one runs, chosen or implied."""
        return self.admit_first or self.start_events == "upfront"

    @property
    def steering(self) -> SteeringMode:
        """The steering mode in force: the one chosen, or the one the strategy implies (C7)."""
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
        """The literal behaviour of one seed: `rust_loop` (S0), `permissioned` (S1), `ordered_parallel` (S2),
        `streaming` (S3) or `sdk_loop` (S4), with `changes` on top, such as another strategy.

        Raises:
            ConfigurationError: there is no preset or no option of that name.
        """
        if name not in _PRESETS:
            near = difflib.get_close_matches(name, _PRESETS, 1) or sorted(_PRESETS)
            raise ConfigurationError(f"no preset {name!r}; did you mean {' or '.join(near)}?")
        unknown = set(changes) - set(cls.__dataclass_fields__)
        if unknown:
            raise ConfigurationError(f"no execution option named {', '.join(sorted(unknown))}")
        return replace(cls(**_PRESETS[name]), **changes)


_CHOICES: dict[str, tuple[object, ...]] = {
    "grouping": get_args(Grouping),
    "stream_tools": ("safe_only", "off"),
    "steering_mode": (*get_args(SteeringMode), None),
    "start_events": ("as_started", "upfront"),
    "end_events": ("completion", "source_order"),
    "message_events": ("ordered", "completion"),
    "malformed_args": ("error", "empty_object"),
    "unknown_tool": ("explain", "plain"),
    "error_traceback": ("details", "model", "none"),
    "pre_hook_position": get_args(PreHookPosition),
    "on_reject": ("continue", "stop_turn"),
    "terminate_policy": ("all", "any"),
}
"""What may be chosen where the choice is a word."""

_FLAGS = (
    "admit_first",
    "validate_arguments",
    "start_unknown",
    "balanced_start",
    "skip_is_error",
    "hook_may_approve",
    "sibling_abort",
)

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
