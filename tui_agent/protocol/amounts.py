"""Short texts for amounts: time, tokens, bytes, money. Every part of the screen uses them."""

from collections.abc import Sequence
from datetime import datetime

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
"""Milliseconds."""


def seconds_text(seconds: float, *, tenths: bool = True) -> str:
    """Return a duration: `0.04 s`, `12.3 s`, `2:05`, `1:02:05`; a negative one counts as 0.

    Without tenths, it suits a clock that should not flicker.
    """
    seconds = max(0.0, seconds)
    # From here on, one decimal would be 60.0.
    if seconds < 59.95:
        if not tenths:
            return f"{int(seconds)} s"
        # From here on, two decimals would be 1.00.
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def tokens_text(tokens: int) -> str:
    """Return a number of tokens: `980`, `12.3k`, `200k`, `1.2M`."""
    return _scaled(tokens, 1000, ("", "k", "M", "G"))


def bytes_text(size: int) -> str:
    """Return a number of bytes: `812 B`, `1.2 kB`, `3.4 MB`."""
    return _scaled(size, 1000, (" B", " kB", " MB", " GB", " TB"))


def money_text(dollars: float | None) -> str:
    """Return an estimated cost in dollars: `$0.04`; empty for None, an unknown cost."""
    if dollars is None:
        return ""
    if 0 < dollars < 0.01:
        return "<$0.01"
    return f"${dollars:,.2f}"


def share_text(part: float, whole: float) -> str:
    """Return a share in whole percent: `6 %`; empty if the whole is 0 or less."""
    return f"{round(100 * part / whole)} %" if whole > 0 else ""


def names_text(names: Sequence[str], most: int = 12) -> str:
    """Return names in one row; of more than `most` the first ones, and the number of others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 call`, `2,000 calls`; `many` is the plural if `one` with an `s` is not."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def _scaled(amount: int, base: int, units: tuple[str, ...]) -> str:
    """Return about three digits and a unit; no tenths if they say nothing."""
    value, unit = float(amount), 0
    while round(value, 1) >= base and unit < len(units) - 1:
        value /= base
        unit += 1
    if unit == 0 or value >= 99.95 or round(value, 1).is_integer():
        return f"{round(value)}{units[unit]}"
    return f"{value:.1f}{units[unit]}"


def age_text(time: int, now: int) -> str:
    """Return the age of a moment: `now`, `5 min`, `3 h`, `2 d`, `4 Nov`, `Nov 2024`; both in ms since the epoch."""
    age = max(0, now - time)
    if age < _MINUTE:
        return "now"
    if age < _HOUR:
        return f"{age // _MINUTE} min"
    if age < _DAY:
        return f"{age // _HOUR} h"
    if age < 14 * _DAY:
        return f"{age // _DAY} d"
    then = datetime.fromtimestamp(time / 1000)
    return f"{then.day} {then:%b}" if age < 300 * _DAY else f"{then:%b %Y}"
