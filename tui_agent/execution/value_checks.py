"""What a configured value may be; anything else is refused where it is given, never taken for a default (P39)."""

import difflib
import math
import sys
from collections.abc import Sequence
from typing import TypeGuard

from tui_agent.protocol.errors import ConfigurationError


def expect_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    """
    Raises:
        ConfigurationError: the value is none of those there are; a misspelt one would silently be none of them.
    """
    if value in allowed:
        return
    near = difflib.get_close_matches(str(value), [str(one) for one in allowed], 1) or [str(one) for one in allowed]
    raise ConfigurationError(f"no {name} {value!r}; did you mean {' or '.join(near)}?")


def expect_flag(name: str, value: object) -> None:
    """
    Raises:
        ConfigurationError: the value is neither True nor False; a word like "no" would count as True.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, got {value!r}")


def expect_whole(name: str, value: object, least: int) -> None:
    """
    Raises:
        ConfigurationError: the value is no whole number, or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{name} must be a whole number of at least {least}, got {value!r}")


def expect_seconds(name: str, value: object, *, or_zero: bool = False) -> None:
    """
    Raises:
        ConfigurationError: the value is no finite number of seconds above 0, or no 0 where that is allowed.
    """
    if is_duration(value) or (or_zero and value == 0 and not isinstance(value, bool)):
        return
    least = "0 seconds or more" if or_zero else "more than 0 seconds"
    raise ConfigurationError(f"{name} must be {least}, got {value!r}")


def is_duration(value: object) -> TypeGuard[float]:
    """Whether a value is a usable number of seconds: finite and more than 0."""
    if isinstance(value, int):
        return not isinstance(value, bool) and 0 < value <= sys.float_info.max
    return isinstance(value, float) and math.isfinite(value) and value > 0
