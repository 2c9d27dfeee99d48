"""Functions of dataclasses that are compiled when they are first called.

Up to version 3.12, Python compiles each function that it generates by itself. With 600 classes that is a quarter of the
CPU of a start, and most of these functions are never called.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

_CREATE = "_create_fn"
_STANDARD: Callable[..., Any] | None = vars(dataclasses).get(_CREATE)
"""The standard library's function that compiles; None in versions that compile all functions of a class at once."""
_LATE = frozenset(("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"))
"""Functions whose signature is not inspected. The last two raise errors for frozen classes."""


def compile_late() -> None:
    """Let dataclasses that are defined from now on compile most of their functions at the first call."""
    if _STANDARD is not None:
        setattr(dataclasses, _CREATE, _create_late)


def compile_at_once() -> None:
    """Let dataclasses that are defined from now on compile their functions at once."""
    if _STANDARD is not None:
        setattr(dataclasses, _CREATE, _STANDARD)


def _create_late(name: str, arguments: Sequence[str], body: Sequence[str], **options: Any) -> object:
    assert _STANDARD is not None
    create = _STANDARD
    if name not in _LATE:
        return create(name, arguments, body, **options)

    def late(self: object, *others: object) -> object:
        function = create(name, arguments, body, **options)
        function.__qualname__ = late.__qualname__
        for owner in type(self).__mro__:
            if vars(owner).get(name) is late:
                setattr(owner, name, function)
        return function(self, *others)

    late.__name__ = name
    return late
