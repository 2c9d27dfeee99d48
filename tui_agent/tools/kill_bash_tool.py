"""The kill_bash tool: it stops a background command."""

from pydantic import Field

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult

from .processes.background_jobs import BackgroundJobs, shortened
from .typed_tool import Arguments, TypedTool, WordText

_DESCRIPTION = """Stops a background command together with everything it started.
Its output can still be read with bash_output."""


class KillBashArguments(Arguments):
    """Arguments of the kill_bash tool."""

    task_id: WordText = Field(description="The id that bash returned, such as bash_1.")


class KillBashTool(TypedTool[KillBashArguments]):
    """Tool that ends background commands. It reaches only what the session itself started, so it asks only before it
    ends what the user sent there."""

    def __init__(self, jobs: BackgroundJobs) -> None:
        super().__init__("kill_bash", _DESCRIPTION, KillBashArguments)
        self._jobs = jobs

    def call_is_read_only(self, args: KillBashArguments) -> bool:
        return not any(job.was_sent for job in self._jobs.running if job.task_id == args.task_id)

    def call_is_concurrency_safe(self, args: KillBashArguments) -> bool:
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
