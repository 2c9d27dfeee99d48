"""Goes back: finds the moments there are, says what going back to one would do, and does it."""

from .rewinder import Rewinder

__all__ = ["Rewinder"]
