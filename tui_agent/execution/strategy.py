"""Strategies: which calls of one message may run at the same time (S0-4)."""

from dataclasses import dataclass
from typing import TypeAlias

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_whole


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


class WaveNumbering:
    """Counter that assigns each call to a wave; a call that must run alone is a wave of its own."""

    def __init__(self, strategy: Sequential | Parallel | Batched) -> None:
        self._size = _wave_size(strategy)
        self._wave = -1
        self._room = 0

    def place(self, *, alone: bool) -> int:
        """Return the number of the next call's wave, from 0."""
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
            # No limit: no message has that many calls.
            return 1 << 62
