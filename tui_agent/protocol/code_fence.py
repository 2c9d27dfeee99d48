"""Backticks around a text, for Markdown."""

import re

_TICKS = re.compile("`+")


def code_fence(text: str, least: int) -> str:
    """Return the backticks around a text as code: at least so many, and more than any run of them in it."""
    return "`" * max(least, max(map(len, _TICKS.findall(text)), default=0) + 1)
