"""Checks of configuration values passed by callers; a wrong value raises, so that no default hides the mistake.

Each `expect_…` raises a `ConfigurationError` that names the value and what it must be.
"""

import difflib
import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, TypeGuard, TypeVar, cast

from .errors import ConfigurationError

T = TypeVar("T")

_SHOWN = 60
"""Maximum characters of a wrong value in an error; it may be long or confidential."""


def expect_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    """Raise unless a value is one of those allowed."""
    if value in allowed:
        return
    near = difflib.get_close_matches(str(value), [str(one) for one in allowed], 1) or [str(one) for one in allowed]
    raise ConfigurationError(f"unknown {name} {shown_value(value)}; did you mean {' or '.join(near)}?")


def expect_flag(name: str, value: object) -> None:
    """Raise unless a value is True or False."""
    # Text such as "no" would count as True.
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, got {shown_value(value)}")


def expect_whole(name: str, value: object, least: int) -> None:
    """Raise unless a value is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigurationError(f"{name} must be a whole number of at least {least}, got {shown_value(value)}")


def expect_seconds(name: str, value: object, *, or_zero: bool = False) -> None:
    """Raise unless a value is a finite number of seconds above 0, or 0 if `or_zero` is True."""
    if is_duration(value) or (or_zero and value == 0 and not isinstance(value, bool)):
        return
    least = "0 seconds or more" if or_zero else "more than 0 seconds"
    raise ConfigurationError(f"{name} must be {least}, got {shown_value(value)}")


def is_duration(value: object) -> TypeGuard[float]:
    """True if a value is a finite number of seconds above 0."""
    if isinstance(value, int):
        return not isinstance(value, bool) and 0 < value <= sys.float_info.max
    return isinstance(value, float) and math.isfinite(value) and value > 0


def expect_number(
    name: str, value: object, *, least: float = 0.0, more_than: bool = False, optional: bool = False
) -> None:
    """Raise unless a value is a finite number of at least `least`, or of more than that if `more_than` is True.

    None passes if `optional` is True.
    """
    if optional and value is None:
        return
    # `isfinite` raises for an int of hundreds of digits, which is finite.
    is_finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    number = cast(float, value) if is_finite and not isinstance(value, bool) else math.nan
    if number > least or (number == least and not more_than):
        return
    wanted = f"more than {least:g}" if more_than else f"a number of at least {least:g}"
    raise wrong_kind(name, wanted + (" or None" if optional else ""), value)


def expect_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Raise unless a value is an instance of `kind`, which the error calls `wanted`."""
    if not isinstance(value, kind):
        raise wrong_kind(name, wanted, value)


def expect_function(name: str, value: object, wanted: str, *, optional: bool = False) -> None:
    """Raise unless a value can be called; the error says that it must be `wanted`. None passes if `optional`."""
    if not (callable(value) or (optional and value is None)):
        raise wrong_kind(name, wanted, value)


def expect_members(name: str, value: object, members: Sequence[str], wanted: str) -> None:
    """Raise unless an object has all methods and attributes of its protocol.

    Raises:
        ConfigurationError: members are missing, which the text names; or the value is a class, not an instance.
    """
    if isinstance(value, type):
        raise wrong_kind(name, wanted, cast(object, value))
    # Looked up on the class first, so that a property is not evaluated.
    missing = [one for one in members if not hasattr(type(value), one) and not hasattr(value, one)]
    if missing:
        why = "" if len(missing) == len(members) else f", which has no {' and no '.join(missing)}"
        raise ConfigurationError(f"{wrong_kind(name, wanted, value)}{why}")


def expect_items(name: str, values: object, check: Callable[[str, Any], object] | None, wanted: str) -> tuple[Any, ...]:
    """Return the items as a tuple; raise unless `values` is iterable, and not text or a mapping.

    `check` is called with each item and its own name, such as `AgentLoopConfig.guardrails[0]`; None: any item passes.
    """
    # The characters of a text are never the items meant.
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise wrong_kind(name, wanted, cast(object, values))
    items = tuple(cast(Iterable[object], values))
    if check is not None:
        for place, item in enumerate(items):
            check(f"{name}[{place}]", item)
    return items


def wrong_kind(name: str, wanted: str, value: object) -> ConfigurationError:
    """Return the error for a wrong value: `name` must be `wanted`."""
    return ConfigurationError(f"{name} must be {wanted}, got {shown_value(value)}")


def shown_value(value: object) -> str:
    """Return a value for an error message: short, without addresses, even if its `repr` fails."""
    if isinstance(value, type):
        return f"the class {value.__name__}, not an instance"
    if value is None or isinstance(value, str | bytes | int | float | list | tuple | dict | set | frozenset):
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            text = repr(cast(object, value))
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    kind = type(cast(object, value)).__name__
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def refuse_unknown_fields(made: type[T]) -> type[T]:
    """Decorate a dataclass to raise a `ConfigurationError` for an unknown keyword, with the nearest field name."""
    known = tuple(field.name for field in fields(cast(Any, made)))
    build: Callable[..., None] = made.__init__

    @functools.wraps(build)
    def checked(self: T, *values: object, **named: object) -> None:
        for name in named:
            if name not in known:
                raise ConfigurationError(_no_field(made.__name__, name, known))
        build(self, *values, **named)

    setattr(made, "__init__", checked)  # noqa: B010 — assigning would lose the types of the fields
    return made


def _no_field(owner: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"{owner} has no field {name!r}; " + (f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}")
