"""Where hooks are kept and asked: in the order they were added, each within its time.

| hook | asked | its answer |
|---|---|---|
| `before_tool` | before a call is judged | goes on, denied, skipped, another result, other arguments |
| `before_update` | before a partial result is told | `False` keeps it back |
| `after_update` | after one was told | none |
| `on_tool_error` | when a call raised, timed out or is unknown | a result to use instead; whether the run goes on |
| `after_tool` | when a call has a result, before its end is told | the result everybody sees |
| `after_tool_observer` | after the end of a call that ran was told | none |

`after_tool`, and after it the guardrails over results, see every result that a tool, a hook or a person gave, whatever
way it came by: also one that a `before_tool` hook, `on_tool_error` or a person's answer put in the place of a run. What
the engine itself says of a call that did not run does not pass them. What a call reports while it runs is told at once;
guardrails hold it back until the result has passed, and a hook added with `hides` keeps it from being told at all.

In the steering modes `between_calls` and `between_batches` nobody looks for a message, and so no later call begins,
before the observers of the call behind it have answered (S0-40); one that itself waits for a later call waits until its
own time is up.

A `before_tool` hook that raises or does not answer denies its call, unless it was added with `fail_open` (C47).
"""

import difflib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.hooks import AfterTool, BeforeTool, BeforeToolAnswer, BeforeUpdate, FailureAnswer, ToolFailed
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolResult
from tui_agent.protocol.value_checks import expect_seconds

from .untrusted_calls import asked

HookEvent: TypeAlias = Literal[
    "before_tool", "before_update", "after_update", "on_tool_error", "after_tool", "after_tool_observer"
]

BeforeToolHook = Callable[[BeforeTool], BeforeToolAnswer | bool | Awaitable[BeforeToolAnswer | bool | None] | None]
BeforeUpdateHook = Callable[[BeforeUpdate], bool | Awaitable[bool | None] | None]
AfterUpdateHook = Callable[[BeforeUpdate], Awaitable[None] | None]
ToolErrorHook = Callable[[ToolFailed], FailureAnswer | Awaitable[FailureAnswer | None] | None]
AfterToolHook = Callable[[AfterTool], ToolResult | Awaitable[ToolResult | None] | None]
ToolObserver = Callable[[ToolEnded], Awaitable[None] | None]

H = TypeVar("H", bound=Callable[..., Any])

_EVENTS: tuple[str, ...] = get_args(HookEvent)


@dataclass(frozen=True, slots=True)
class EndedCall:
    """Argument of an `after_tool_observer` that was added with `with_input`, instead of the event alone."""

    ended: ToolEnded
    arguments: JsonObject
    """Arguments in effect."""


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """One hook as it was added."""

    name: str
    function: Callable[[Any], object]
    timeout: float | None
    """Seconds until it counts as failed; None: no limit."""
    fail_open: bool
    hides: bool = False
    with_input: bool = False

    async def ask(self, question: object) -> object:
        """Its answer, or a `Crash`."""
        return await asked(self.function, question, timeout=self.timeout)


class HookBus:
    """In-process hooks, by the name of what they are asked. The methods named like a hook also work as decorators."""

    def __init__(self, *, timeout: float | None = 30.0) -> None:
        """
        Raises:
            ConfigurationError: the timeout is not a number of seconds (P39).
        """
        self.timeout = _usable(timeout)
        """Seconds a hook may take where it was added without a time of its own (P44)."""
        self.events: set[str] = set()
        """Events with at least one hook."""
        self._hooks: dict[str, list[Hook]] = {event: [] for event in _EVENTS}

    def add(
        self,
        event: str,
        function: Callable[[Any], object],
        *,
        name: str | None = None,
        timeout: float | None = None,
        fail_open: bool = False,
        hides: bool = False,
        with_input: bool = False,
    ) -> Callable[[], None]:
        """Adds a hook behind those there are.

        Args:
            event: one of `HookEvent`.
            function: plain or async; gets the question, gives the answer.
            name: shown in events; the function's own name where none is given.
            timeout: seconds; None: the bus's own.
            fail_open: whether the call goes on if the hook fails.
            hides: whether an `after_tool` hook is there to hide something. What a call reports while it runs (its
                output, updates, progress, data) does not come by here; with `hides` it is never told.
            with_input: True if an `after_tool_observer` gets an `EndedCall`, which has the arguments, instead of the
                `ToolEnded` event.

        Returns:
            A function that removes the hook again.

        Raises:
            ConfigurationError: there is no such event, so that a misspelt hook would never be asked (P47), or it is
                no function, or the time is not more than 0 (P39), or a hook is to hide what it is not asked about.
        """
        if event not in self._hooks:
            near = difflib.get_close_matches(event, _EVENTS, 1) or _EVENTS
            raise ConfigurationError(f"no hook named {event!r}; did you mean {' or '.join(near)}?")
        if hides and (event != "after_tool" or fail_open):
            raise ConfigurationError("only an after_tool hook that is not fail_open can hide anything")
        if with_input and event != "after_tool_observer":
            raise ConfigurationError("only an after_tool_observer is added with_input; other hooks have the arguments")
        if not callable(function):
            raise ConfigurationError(f"a {event} hook must be a function, got {function!r}")
        own_name = name or getattr(function, "__name__", type(function).__name__)
        limit = self.timeout if timeout is None else _usable(timeout)
        hook = Hook(own_name, function, limit, fail_open, hides, with_input)
        self._hooks[event].append(hook)
        self.events.add(event)

        def remove() -> None:
            if hook in self._hooks[event]:
                self._hooks[event].remove(hook)
            if not self._hooks[event]:
                self.events.discard(event)

        return remove

    def before_tool(self, function: H) -> H:
        """Adds a `before_tool` hook."""
        self.add("before_tool", function)
        return function

    def before_update(self, function: H) -> H:
        """Adds a `before_update` hook (S0-32)."""
        self.add("before_update", function)
        return function

    def after_update(self, function: H) -> H:
        """Adds an `after_update` hook (S0-34)."""
        self.add("after_update", function)
        return function

    def on_tool_error(self, function: H) -> H:
        """Adds an `on_tool_error` hook (S4-64)."""
        self.add("on_tool_error", function)
        return function

    def after_tool(self, function: H) -> H:
        """Adds an `after_tool` hook (C39)."""
        self.add("after_tool", function)
        return function

    def after_tool_observer(self, function: H) -> H:
        """Adds an `after_tool_observer` (S0-40)."""
        self.add("after_tool_observer", function)
        return function

    def hooks(self, event: HookEvent) -> tuple[Hook, ...]:
        """The hooks for an event, in order."""
        return tuple(self._hooks[event])

    def has(self, event: HookEvent) -> bool:
        """Return True if at least one hook was added for an event."""
        return event in self.events


def _usable(timeout: float | None) -> float | None:
    if timeout is not None:
        expect_seconds("a hook's timeout", timeout)
    return timeout
