"""Background commands of a session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobFact:
    """One background command."""

    task_id: str
    command: str
    state: str
    """`running`, or how it ended and what it left running, in words."""
    is_running: bool
    seconds: float
    """Seconds it has run."""
    size: int
    """Bytes it has printed."""
