"""Background commands of the session as the screen shows them, and what the user does with them."""

from typing import TYPE_CHECKING

from tui_agent.protocol.facts.job_facts import JobFact

if TYPE_CHECKING:
    from tui_agent.workbench.session_jobs import SessionJobs


_NOT_HERE = "This program has no background commands."


class JobQueries:
    """Asks for background commands; without a service there are none."""

    def __init__(self, service: "SessionJobs | None" = None) -> None:
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
