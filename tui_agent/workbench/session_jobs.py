"""The subject `jobs`: lists, stops and detaches a session's background commands."""

from contextlib import AsyncExitStack

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.facts.page_facts import JobFact
from tui_agent.tools import BackgroundJobs
from tui_agent.tools.command_result import output_text

from .opened_session import OpenedSession


async def open_jobs(session: OpenedSession, stack: AsyncExitStack) -> BackgroundJobs:
    """Return the jobs of a session, numbered after those it had; `stack` ends them."""
    jobs = BackgroundJobs(session.bus.publish, first_number=session.stored.background_jobs + 1)
    return await stack.enter_async_context(jobs)


class SessionJobs:
    """Lists the background commands, and does with them what the user asks for."""

    def __init__(self, jobs: BackgroundJobs) -> None:
        self._jobs = jobs
        self.end_all = jobs.end_all
        """Ends every command and waits for their last events."""

    def list(self) -> tuple[JobFact, ...]:
        """Return the background commands, the oldest first."""
        return tuple(
            JobFact(
                task_id=job.task_id,
                command=job.command,
                state="running" if job.is_in_background and job.left is None else job.words,
                is_running=job.is_in_background,
                seconds=job.elapsed,
                size=job.output.total,
            )
            for job in self._jobs.all
        )

    def send(self, call_id: str, /) -> tuple[str, str]:
        """Send the command of a running call to the background.

        Returns:
            The id of the job and an empty text; or an empty id and the reason, as a sentence, why it stays.
        """
        try:
            job = self._jobs.send(call_id)
        except ToolError as error:
            return "", str(error)
        return (job.task_id, "") if job is not None else ("", "Only a command that runs can be sent to the background.")

    def stop(self, task_id: str, /) -> str:
        """Stop a background command without waiting for its end.

        Returns:
            Empty if it is being stopped; else the reason, as a sentence: no such command, or it has ended.
        """
        try:
            job = self._jobs.find(task_id)
        except ToolError as error:
            return str(error)
        if job.moments.over.is_set():
            return f"{task_id} {job.words} already."
        self._jobs.kill(task_id, by="user")
        return ""

    async def detach(self, task_id: str, /) -> str:
        """Let a background command outlive this program; return one sentence: what became of it, or why it cannot."""
        try:
            job = await self._jobs.detach(task_id)
        except ToolError as error:
            return str(error)
        return f"{task_id} {job.words}."

    async def output(self, task_id: str, /) -> str:
        """Return the output so far of a background command, shortened in the middle; a sentence if it is unknown."""
        try:
            return output_text(self._jobs.find(task_id).output.peek())
        except ToolError as error:
            return str(error)
