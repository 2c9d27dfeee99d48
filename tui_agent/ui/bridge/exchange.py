"""Queries of the screen to the agent, and the exchange through which they pass.

A method that returns something to the screen is a query: `@Query(…)` passes its calls through the exchange of its
object, so that a recording can note each answer, and a replay can return it without asking the agent
(`ui/replay/recorded_exchange.py`).
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property, wraps
from inspect import iscoroutinefunction, signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.messages import JsonObject

from .bridge_messages import AgentEvents, AgentStatus

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]
"""The result of calling a coroutine function."""


class _Asker(Protocol):
    exchange: "Exchange"


S = TypeVar("S", bound=_Asker)


class Query:
    """One question of the screen; decorates the method that asks the agent.

    The method's return annotation is the type of the answer. A coroutine function may raise a `TuiAgentError`.
    """

    def __init__(self, name: str, missing: object, *, about: Sequence[str] = (), lasting: bool = False) -> None:
        """Declare a query.

        Args:
            name: its name in recordings.
            missing: the answer of a replay whose recording has none, as plain JSON data.
            about: parameters whose values tell two queries of this name apart.
            lasting: True if asking changes nothing: an answer holds until the next different one.
        """
        self.name = name
        self.lasting = lasting
        self._missing = missing
        self._about = about
        self._method: Callable[..., object]

    def __call__(self, method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        """Return the method with its calls passed through the exchange of its object."""
        self._method = method
        parameters, is_async = signature(method), iscoroutinefunction(method)

        @wraps(method)
        def ask(asker: S, *args: P.args, **kwargs: P.kwargs) -> T:
            values = parameters.bind(asker, *args, **kwargs).arguments
            about = " ".join(str(values[parameter]) for parameter in self._about)
            through: Any = asker.exchange.ask_and_wait if is_async else asker.exchange.ask
            return through(self, about, lambda: method(asker, *args, **kwargs))

        vars(ask)["query"] = self
        return ask

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        # Only recordings need the type, and evaluating the annotation loads the engine.
        with IMPORTING:
            from . import engine_types

        return TypeAdapter(get_type_hints(self._method, localns=vars(engine_types))["return"])

    def encode(self, answer: object) -> Any:
        """Return the answer as plain JSON data."""
        return self._adapter.dump_python(answer, mode="json")

    def decode(self, note: JsonObject) -> Any:
        """Return the answer of a note; the `missing` one if the note is damaged."""
        try:
            return self._adapter.validate_python(note["value"])
        except (KeyError, ValidationError):
            return self._adapter.validate_python(self._missing)


class Exchange:
    """Asks the agent and records nothing; the base of the exchanges that record and replay."""

    is_live = True
    """False in a replay: there is no agent, and the recording publishes the status."""
    initial_status: AgentStatus | None = None
    """The status at the start of a recording; None: the bridge's own."""

    def ask(self, query: Query, about: str, work: Callable[[], T]) -> T:
        """Return the answer to a query; `work` asks the agent."""
        return work()

    async def ask_and_wait(self, query: Query, about: str, work: Callable[[], Work[T]]) -> T:
        """Return the answer to a query that takes a while.

        Raises:
            TuiAgentError: the agent refused.
        """
        return await work()

    def note_status(self, status: AgentStatus) -> None:
        """Take a status that the screen receives."""

    def note_events(self, message: AgentEvents) -> None:
        """Take events that the screen receives."""
