"""The tools for background commands: bash_output reads what one has printed, kill_bash ends it."""

import asyncio
from contextlib import suppress

from pydantic import Field

from tui_agent.protocol.messages import TERMINAL_OUTPUT, JsonObject
from tui_agent.protocol.tool import Accesses, Timeout, ToolContext, ToolResult

from .command_result import output_text
from .processes.background_jobs import BackgroundJobs, Job, shortened
from .text_format import printable
from .typed_tool import Arguments, TypedTool, WordText

LONGEST_WAIT = 600.0

_WAIT_SLACK = 5.0

_OUTPUT_DESCRIPTION = """Returns what a background command has printed since the last call, and whether it still runs.
With `wait`, it first waits until the command ends, for that many seconds at most. You need not wait for the end: a \
message tells you."""

_KILL_DESCRIPTION = """Stops a background command together with everything it started.
Its output can still be read with bash_output."""


class BashOutputArguments(Arguments):
    """Arguments of the bash_output tool."""

    task_id: WordText = Field(description="The id that bash returned, such as bash_1.")
    wait: float = Field(default=0.0, ge=0, le=LONGEST_WAIT, description="Seconds to wait for the command's end.")


class BashOutputTool(TypedTool[BashOutputArguments]):
    """Tool that reads the output of background commands; it changes nothing, so it never asks."""

    touches = Accesses()

    def __init__(self, jobs: BackgroundJobs) -> None:
        super().__init__("bash_output", _OUTPUT_DESCRIPTION, BashOutputArguments, read_only=True)
        self._jobs = jobs

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        # What a call has returned is read: it must not start for a message that is discarded.
        return False

    def call_timeout(self, args: BashOutputArguments) -> Timeout:
        return args.wait + _WAIT_SLACK

    def call_summary(self, args: BashOutputArguments) -> str:
        job = next((job for job in self._jobs.all if job.task_id == args.task_id), None)
        return f"{args.task_id} {shortened(job.command)}" if job is not None else args.task_id

    async def run(self, args: BashOutputArguments, context: ToolContext) -> ToolResult:
        job = self._jobs.find(args.task_id)
        if args.wait:
            await self._wait(job, args.wait, context)
        output = job.output.take_unread(context.agent)
        text = output_text(output)
        note = f"[{job.task_id} {job.words}{'' if job.moments.exited.is_set() else f' since {job.elapsed:.0f} s'}]"
        details: JsonObject = {
            "outcome": f"{job.words} · {output.total:,} new bytes" if output.total else f"{job.words} · nothing new",
            "task_id": job.task_id,
            "exit_code": job.code,
            "size_bytes": output.total,
            "truncated": output.left_out > 0,
            "persisted_path": printable(str(output.path)) if output.path else None,
            TERMINAL_OUTPUT: True,
        }
        shown = text.removesuffix("\n") if output.total else "[no new output]"
        return ToolResult.of_text(f"{shown}\n{note}", details=details)

    async def _wait(self, job: Job, seconds: float, context: ToolContext) -> None:
        """Wait until a job ends, the time is over, or the call is cancelled."""
        over = asyncio.Event()
        forget = context.cancellation.on_cancel(over.set)
        # While a call waits for its end, no message has to report it.
        job.readers += 1
        try:
            async with asyncio.TaskGroup() as group:
                waiter = group.create_task(_set_when(job.moments.exited, over))
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await over.wait()
                waiter.cancel()
        finally:
            job.readers -= 1
            forget()


async def _set_when(first: asyncio.Event, second: asyncio.Event) -> None:
    await first.wait()
    second.set()


class KillBashArguments(Arguments):
    """Arguments of the kill_bash tool."""

    task_id: WordText = Field(description="The id that bash returned, such as bash_1.")


class KillBashTool(TypedTool[KillBashArguments]):
    """Tool that ends background commands. It reaches only what the session itself started, so it asks only before it
    ends what the user sent there."""

    def __init__(self, jobs: BackgroundJobs) -> None:
        super().__init__("kill_bash", _KILL_DESCRIPTION, KillBashArguments)
        self._jobs = jobs

    def call_is_read_only(self, args: KillBashArguments) -> bool:
        return not any(job.was_sent for job in self._jobs.running if job.task_id == args.task_id)

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        # It must not start before the model's message is complete, nor beside other calls.
        return False

    def call_summary(self, args: KillBashArguments) -> str:
        job = next((job for job in self._jobs.all if job.task_id == args.task_id), None)
        return f"{args.task_id} {shortened(job.command)}" if job is not None else args.task_id

    async def run(self, args: KillBashArguments, context: ToolContext) -> ToolResult:
        had_ended = self._jobs.find(args.task_id).moments.over.is_set()
        job = self._jobs.kill(args.task_id, by="model")
        await job.moments.over.wait()
        text = f"{job.task_id} had ended already: it {job.words}." if had_ended else f"{job.task_id} {job.words}."
        details: JsonObject = {"outcome": job.words, "task_id": job.task_id}
        return ToolResult.of_text(text, details=details)
