"""The number of examples of a property: all of them in CI, a few in daily work."""

import os

IS_CI = bool(os.environ.get("CI"))
"""True in `.ci/run` and wherever else the variable `CI` is set."""

DAILY = 25
"""Most examples of a property in the daily loop."""


def examples(count: int) -> int:
    """Return the number of examples to draw where CI draws `count`."""
    return count if IS_CI else min(count, DAILY)
