"""Registry of in-process hooks, which run in the order they were added, each within its time limit.

| hook | runs | its answer |
|---|---|---|
| `before_tool` | before a call is judged | continue, deny, skip, another result, other arguments |
| `before_update` | before a partial result is published | `False` drops it |
| `after_update` | after a partial result was published | none |
| `on_tool_error` | when a call raised, timed out or is unknown | a result to use instead; whether the run continues |
| `after_tool` | when a call has a result, before its end is published | the result to publish |
| `after_tool_observer` | after the end of a call that ran was published | none |

`after_tool` hooks, and after them the output guardrails, see every result of a tool, a hook or the user, including one
that replaces a run: from a `before_tool` hook, `on_tool_error` or the user's answer. They do not see the engine's own
text about a call that did not run. Reports of a running call are published at once; guardrails hold them until the
result has passed, and a hook added with `hides` drops them.

In the steering modes `between_calls` and `between_batches`, steering is polled and the next call starts only after the
observers of the previous call have returned (S0-40). An observer that waits for a later call runs into its time limit.

A `before_tool` hook that raises or does not answer in time denies its call, unless it was added with `fail_open`.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolEnded
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.value_checks import expect_seconds

from .contained_calls import asked

HookEvent: TypeAlias = Literal[
    "before_tool", "before_update", "after_update", "on_tool_error", "after_tool", "after_tool_observer"
]

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
    """One hook with its settings."""

    name: str
    function: Callable[[Any], object]
    timeout: float | None
    """Seconds until it counts as failed; None: no limit."""
    fail_open: bool
    hides: bool = False
    with_input: bool = False
    may_approve: bool = False
    applies: Callable[[Any], bool] | None = None
    needs_effects: bool = True

    def is_about(self, question: object) -> bool:
        """Return True if it wants to answer the question."""
        return self.applies is None or self.applies(question)

    async def ask(self, question: object) -> object:
        """Return its answer, or a `Crash`."""
        return await asked(self.function, question, timeout=self.timeout)


class HookBus:
    """In-process hooks by event. The methods named like an event also work as decorators."""

    def __init__(self, *, timeout: float | None = 30.0) -> None:
        """
        Raises:
            ConfigurationError: the timeout is not a number of seconds.
        """
        self.timeout = _usable(timeout)
        """Seconds that a hook without a timeout of its own may take; None: no limit."""
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
        may_approve: bool = False,
        applies: Callable[[Any], bool] | None = None,
        needs_effects: bool = True,
    ) -> Callable[[], None]:
        """Add a hook after the existing ones.

        Args:
            event: one of `HookEvent`.
            function: plain or async; takes the question and returns the answer.
            name: name shown in events; default: the function's own.
            timeout: seconds; None: the timeout of the bus.
            fail_open: True if the call continues when the hook fails.
            hides: True if an `after_tool` hook hides parts of results. Reports of a running call do not pass the hook;
                with `hides` they are not published.
            with_input: True if an `after_tool_observer` gets an `EndedCall`, which has the arguments, instead of the
                `ToolEnded` event.
            may_approve: True if an approval by a `before_tool` hook answers what the mode alone would ask, even without
                the option `hook_may_approve`.
            applies: returns False for the questions of `before_tool` and `after_tool` that the hook has no answer to;
                it is not called for these, and no event is published.
            needs_effects: False if a command's end need not wait for what is found about its effects.

        Returns:
            A function that removes the hook again.

        Raises:
            ConfigurationError: event, function or timeout is wrong, or `hides` or `with_input` does not apply.
        """
        if event not in self._hooks:
            near = difflib.get_close_matches(event, _EVENTS, 1) or _EVENTS
            raise ConfigurationError(f"no hook named {event!r}; did you mean {' or '.join(near)}?")
        if hides and (event != "after_tool" or fail_open):
            raise ConfigurationError("hides needs an after_tool hook that is not fail_open")
        if with_input and event != "after_tool_observer":
            raise ConfigurationError("with_input needs an after_tool_observer; other hooks have the arguments")
        if not callable(function):
            raise ConfigurationError(f"a {event} hook must be a function, got {function!r}")
        name = name or str(getattr(function, "__name__", type(function).__name__))
        limit = self.timeout if timeout is None else _usable(timeout)
        hook = Hook(name, function, limit, fail_open, hides, with_input, may_approve, applies, needs_effects)
        self._hooks[event].append(hook)
        self.events.add(event)

        def remove() -> None:
            if hook in self._hooks[event]:
                self._hooks[event].remove(hook)
            if not self._hooks[event]:
                self.events.discard(event)

        return remove

    def include(self, other: "HookBus", owner: str) -> None:
        """Add the hooks of another bus after the existing ones, with the owner in their names.

        They keep their time limits. None of them may approve calls.
        """
        for event in other.events:
            hooks = other._hooks[event]
            self._hooks[event] += [replace(hook, name=f"{owner}: {hook.name}", may_approve=False) for hook in hooks]
        self.events |= other.events

    def before_tool(self, function: H) -> H:
        """Add a `before_tool` hook."""
        self.add("before_tool", function)
        return function

    def before_update(self, function: H) -> H:
        """Add a `before_update` hook (S0-32)."""
        self.add("before_update", function)
        return function

    def after_update(self, function: H) -> H:
        """Add an `after_update` hook (S0-34)."""
        self.add("after_update", function)
        return function

    def on_tool_error(self, function: H) -> H:
        """Add an `on_tool_error` hook (S4-64)."""
        self.add("on_tool_error", function)
        return function

    def after_tool(self, function: H) -> H:
        """Add an `after_tool` hook."""
        self.add("after_tool", function)
        return function

    def after_tool_observer(self, function: H) -> H:
        """Add an `after_tool_observer` (S0-40)."""
        self.add("after_tool_observer", function)
        return function

    def hooks(self, event: HookEvent) -> tuple[Hook, ...]:
        """Return the hooks for an event, in order."""
        return tuple(self._hooks[event])

    @property
    def needs_effects(self) -> bool:
        """True if a hook has to see all effects of a call with its end."""
        return any(hook.needs_effects for hooks in self._hooks.values() for hook in hooks)

    def has(self, event: HookEvent) -> bool:
        """Return True if at least one hook was added for an event."""
        return event in self.events


def _usable(timeout: float | None) -> float | None:
    if timeout is not None:
        expect_seconds("a hook's timeout", timeout)
    return timeout
