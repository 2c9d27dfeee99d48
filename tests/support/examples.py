"""The number of examples of a property: all of them in `.ci/long`, a few everywhere else."""

import os

IS_LONG = os.environ.get("TESTS") == "long"
"""True in `.ci/long` and wherever else the variable `TESTS` is `long`."""

DAILY = 25
"""Most examples of a property everywhere else."""


def examples(count: int) -> int:
    """Return the number of examples to draw where `.ci/long` draws `count`."""
    return count if IS_LONG else min(count, DAILY)
