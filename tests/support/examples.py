"""The number of examples of a property: all of them in `.ci/long`, a few everywhere else."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

Row = TypeVar("Row")

IS_LONG = os.environ.get("TESTS") == "long"
"""True in `.ci/long` and wherever else the variable `TESTS` is `long`."""

DAILY = 25
"""Most examples of a property everywhere else."""


def examples(count: int, daily: int = DAILY) -> int:
    """Return the number of examples to draw where `.ci/long` draws `count`; fewer each day where each takes long."""
    return count if IS_LONG else min(count, daily)


def sample(rows: Sequence[Row], step: int) -> Sequence[Row]:
    """Return all rows in `.ci/long`, elsewhere the first, every `step`-th after it, and the last."""
    return rows if IS_LONG else [*rows[:-1:step], rows[-1]]


def only_long(*rows: Any) -> list[Any]:
    """Return rows for `parametrize` that run only in `.ci/long`."""
    return [pytest.param(row, marks=pytest.mark.long) for row in rows]
