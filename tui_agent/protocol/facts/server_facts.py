"""Tool servers of a session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerFact:
    """One tool server."""

    name: str
    origin: str
    """File, with its line if known, that configures it."""
    target: str
    """Command line or URL."""
    state: str
    """`connecting`, `ready`, `degraded`, `failed`, `closed` or `not enabled`."""
    error: str
    """Reason why it does not run; empty if it does."""
    info: str
    """Name and version, as the server reports them."""
    tools: tuple[str, ...]
    """Each tool, with the server's claims about it."""
    left_out: tuple[str, ...]
    """Tools that are not used, each with the reason."""
    prompts: tuple[str, ...]
    """Each prompt as the user types it, such as `/docs:explain what=…`."""
    resources: tuple[str, ...]
    """Each resource as the user types it, such as `@docs:memo://one`."""
