"""Strategies: four ways to say which calls of one message may run at the same time (S0-4, C1)."""

from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_whole


@dataclass(frozen=True, slots=True)
class Sequential:
    """One call at a time, in order; the next begins once the result before it is committed (S0-13)."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """All calls at once (S0-5)."""


@dataclass(frozen=True, slots=True)
class Batched:
    """Consecutive chunks of calls, one chunk after the other (S0-6).

    Raises:
        ConfigurationError: the size is no whole number of at least 1.
    """

    size: int
    """Most calls in one chunk."""

    def __post_init__(self) -> None:
        expect_whole("the size of batched", self.size, 1)


@dataclass(frozen=True, slots=True)
class Auto:
    """Every call as soon as the earlier calls it conflicts with are done (C2)."""


Strategy: TypeAlias = Sequential | Parallel | Batched | Auto


def strategy_name(strategy: Strategy) -> str:
    """The form of options and events: `auto`, `sequential`, `parallel` or `batched:N`."""
    match strategy:
        case Batched(size=size):
            return f"batched:{size}"
        case _:
            return type(strategy).__name__.lower()


def parse_strategy(text: str) -> Strategy:
    """Reads what `strategy_name` writes.

    Raises:
        ConfigurationError: the text names no strategy.
    """
    name, colon, size = text.strip().partition(":")
    if name == "batched" and size.isdecimal():
        return Batched(int(size))
    plain: dict[str, Strategy] = {"auto": Auto(), "sequential": Sequential(), "parallel": Parallel()}
    if name in plain and not colon:
        return plain[name]
    raise ConfigurationError(f"no strategy {text!r}; there are auto, sequential, parallel and batched:N with N ≥ 1")


class WaveNumbering:
    """Numbers the waves of a strategy that has waves, call by call; a call that must run alone is its own wave."""

    def __init__(self, strategy: Sequential | Parallel | Batched) -> None:
        self._size = _wave_size(strategy)
        self._wave = -1
        self._room = 0

    def place(self, *, alone: bool) -> int:
        """The wave of the next call, from 0."""
        if alone or self._room == 0:
            self._wave += 1
            self._room = 0 if alone else self._size
        if not alone:
            self._room -= 1
        return self._wave


def _wave_size(strategy: Sequential | Parallel | Batched) -> int:
    match strategy:
        case Sequential():
            return 1
        case Batched(size=size):
            return size
        case Parallel():
            # Never reached: a message has far fewer calls.
            return 1 << 62
