"""The content of the first page."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionOffer:
    """A session that the page offers to resume."""

    session_id: str
    title: str
    age: str


@dataclass(frozen=True, slots=True)
class FirstPage:
    """Content of the page beside the name of the program."""

    sessions: tuple[SessionOffer, ...] = ()
    facts: tuple[str, ...] = ()
    """Facts about the folder, such as `main` and `AGENTS.md`."""
    starters: tuple[str, ...] = ()
    """Prompts to start with."""
    is_first_run: bool = False
    """True if there are neither settings nor sessions: the page explains the modes, and offers themes."""
    key: str = ""
    """Origin of the key, without the key; shown at the first run."""
