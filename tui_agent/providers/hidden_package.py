"""An optional package of a library, kept out of its import."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hidden_package(name: str) -> Generator[None]:
    """Let imports inside the context find a package missing, unless it is loaded already."""
    loaded: dict[str, Any] = sys.modules
    if name in loaded:
        yield
        return
    loaded[name] = None
    try:
        yield
    finally:
        del loaded[name]
