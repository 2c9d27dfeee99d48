"""Hooks of a session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HookFact:
    """One hook, or a part of a hook file that is not used."""

    event: str
    matcher: str
    """The calls or causes that it is for; empty: all."""
    command: str
    origin: str
    """File, with its line if known, that defines it."""
    problem: str = ""
    """Reason why it does not run; empty if it does."""
    last: str = ""
    """Its last answer with the time that it took; empty if it has not run."""
    has_failed: bool = False
    """True if it failed the last time."""
