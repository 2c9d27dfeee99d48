"""Background commands of the session as the screen shows them, and what the user does with them."""

from dataclasses import dataclass
from typing import Protocol


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


class JobService(Protocol):
    """The background commands of a session."""

    def list(self) -> tuple[JobFact, ...]:
        """Return the background commands, the oldest first."""
        ...

    def send(self, call_id: str, /) -> tuple[str, str]:
        """Send a running command to the background; return its id there, or an empty one and why it stays."""
        ...

    def stop(self, task_id: str, /) -> str:
        """Stop a background command; return why that is impossible."""
        ...

    async def detach(self, task_id: str, /) -> str:
        """Let a background command run on after the session; return what became of it."""
        ...

    async def output(self, task_id: str, /) -> str:
        """Return what a background command has printed."""
        ...


_NOT_HERE = "This program has no background commands."


class JobQueries:
    """Asks for background commands; without a service there are none."""

    def __init__(self, service: JobService | None = None) -> None:
        self._service = service

    def list(self) -> tuple[JobFact, ...]:
        """Return the background commands, the oldest first."""
        return self._service.list() if self._service is not None else ()

    def send(self, call_id: str) -> tuple[str, str]:
        """Send a running command to the background; return its id there, or an empty one and why it stays."""
        return self._service.send(call_id) if self._service is not None else ("", _NOT_HERE)

    def stop(self, task_id: str) -> str:
        """Stop a background command; return why that is impossible."""
        return self._service.stop(task_id) if self._service is not None else _NOT_HERE

    async def detach(self, task_id: str) -> str:
        """Let a background command run on after the session; return what became of it."""
        return await self._service.detach(task_id) if self._service is not None else _NOT_HERE

    async def output(self, task_id: str) -> str:
        """Return what a background command has printed."""
        return await self._service.output(task_id) if self._service is not None else ""
