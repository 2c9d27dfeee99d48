"""Running of the bash tool's commands: their arguments, processes, jobs, and the files they change."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from tui_agent.protocol.errors import InvalidArgumentsError, ToolError
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.programs import find_program, open_script, script_argv, start_directory
from tui_agent.protocol.tool import DataUpdate, StartedProcess, ToolContext, ToolResult

from .command_result import command_result, left_result
from .command_watch import NOT_WATCHED, CommandWatch
from .processes.background_jobs import BackgroundJobs, Job, shortened
from .processes.captured_output import Captured, CapturedOutput
from .processes.child_environment import child_environment, read_only_environment
from .processes.process import ProcessOutcome, ProcessSpec, Release, run_process
from .processes.spool_file import JOB_SPOOL_LIMIT, SPOOL_LIMIT, SpoolFile
from .typed_tool import Arguments, WordText
from .workspace import Workspace

DEFAULT_TIMEOUT = 120.0
"""Seconds a command may run if the call does not set `timeout`."""

LONGEST_TIMEOUT = 3_600.0
"""Longest `timeout` in seconds that a call may set."""

_OWN_TIMER_LATER = 0.25
"""Seconds by which this tool's timer comes after the engine's, whose result is a timeout rather than an error."""

_SCREEN_TIME = 0.5
"""Seconds after which a screen that does not change waits for keys."""

_NO_LIMIT = 1e9
"""Seconds by which the limit of a command grows that the user sent to the background."""

_NAMES_LEFT = """"$0" "$@"; code=$?
look() {
    left=()
    for place in /proc/[0-9]*; do
        [[ ${place#/proc/} -gt 2 ]] && read -r name < "$place/comm" && left+=("$name")
    done 2>/dev/null
    [[ ${#left[@]} -gt 0 ]]
}
[[ $$ -eq 2 ]] && look && sleep 0.2 && look && IFS=, &&
    echo "[stopped with the command's trial, where they were still running in the background: ${left[*]}. No later \
command reaches what a trial started: start a server with run_in_background, outside]"
exit "$code\""""
"""Script that runs a command as the first one behind walls, and names what ends with it."""
_LONGEST_MESSAGE = 2_000
"""Most characters of bash's message."""


def _with_line_feeds(command: str) -> str:
    """Return a command whose lines all end in CR LF with line feeds: bash would take the carriage returns for words."""
    lines = command.split("\n")
    if all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    return "\n".join(lines) or command


class BashArguments(Arguments):
    """Arguments of the bash tool."""

    command: Annotated[WordText, AfterValidator(_with_line_feeds)] = Field(
        description="The command to run, in bash syntax."
    )
    timeout: float = Field(
        default=DEFAULT_TIMEOUT, gt=0, le=LONGEST_TIMEOUT, description="Seconds after which the command is stopped."
    )
    description: str = Field(default="", description="A few words on what the command does, for the user.")
    sandbox: bool = Field(
        default=True,
        description="false: run outside of the trial, with the user's rights, files and network; asks the user first.",
    )
    run_in_background: bool = Field(
        default=False,
        description="true: return at once while the command runs on, for servers, watchers and long builds.",
    )


class CommandRunner:
    """Runs the commands of one bash tool."""

    def __init__(self, workspace: Workspace, jobs: BackgroundJobs | None) -> None:
        """
        Args:
            workspace: the directory that commands run in.
            jobs: keeps commands that run on without their calls; None: none do.
        """
        self._workspace = workspace
        self._jobs = jobs

    async def run_outside(self, args: BashArguments, context: ToolContext, *, is_reading: bool) -> ToolResult:
        """Run a command with the user's rights.

        Raises:
            ToolError: it could not be run.
        """
        if self._jobs is not None:
            return await self._run_as_job(args, context, self._jobs, is_reading=is_reading)
        if args.run_in_background:
            raise InvalidArgumentsError("invalid arguments for bash: run_in_background: not available here")
        async with BackgroundJobs() as jobs:
            return await self._run_as_job(args, context, jobs, is_reading=is_reading)

    async def run_confined(self, args: BashArguments, context: ToolContext, spec: ProcessSpec) -> tuple[Job, Captured]:
        """Run a command behind walls to its end."""
        # Jobs of its own: what runs in a trial cannot be sent to the background.
        async with BackgroundJobs() as jobs:
            job = self._launch(args, context, spec, jobs)
            try:
                await jobs.wait_for(job, context.cancellation, job.moments.settled)
            finally:
                captured = job.output.close()
                self._workspace.warn_of_full_spool()
            return job, captured

    def spec_of(self, args: BashArguments, *, is_reading: bool = False, is_confined: bool = False) -> ProcessSpec:
        """Return how a command is started.

        Raises:
            ToolError: there is no bash.
        """
        bash = find_program("bash", self._workspace.root)
        if bash is None:
            raise ToolError("bash is not installed: no program of that name is on PATH outside the workspace")
        environment = child_environment(os.environ, is_confined=is_confined) | (
            {} if self._jobs is None else self._jobs.variables
        )
        if is_reading:
            environment = read_only_environment(environment, self._workspace.root)
        limit = args.timeout + _OWN_TIMER_LATER
        if args.run_in_background:
            # Its default is for a call that someone waits for.
            limit = args.timeout if "timeout" in args.model_fields_set else None
        # The command line does not contain its text, or a `pkill -f` in it would find its own shell.
        argv = script_argv(str(bash))
        if is_confined:
            argv = (str(bash), "--noprofile", "--norc", "-c", _NAMES_LEFT, *argv)
        directory = start_directory(self._workspace.root)
        return ProcessSpec(argv, directory, environment, limit, args.command, is_command=True)

    def _launch(self, args: BashArguments, context: ToolContext, spec: ProcessSpec, jobs: BackgroundJobs) -> Job:
        output = CapturedOutput(SpoolFile(self._workspace.new_spool_file, SPOOL_LIMIT, self._workspace.spool_budget))
        return jobs.launch(args.command, output, partial(self._run, spec, context, jobs), context)

    async def _run_as_job(
        self, args: BashArguments, context: ToolContext, jobs: BackgroundJobs, *, is_reading: bool
    ) -> ToolResult:
        spec = self.spec_of(args, is_reading=is_reading, is_confined=False)
        if args.run_in_background:
            # Before it starts: a command that is refused afterwards has already had effects.
            jobs.check_room()
        with ExitStack() as held:
            changing = None if is_reading else held.enter_context(self._workspace.changing_calls.entered(None))

            def others_run() -> bool:
                return any(job.call_id != context.call_id for job in jobs.running)

            watch = CommandWatch(self._workspace, changing, args.command, others_run=others_run)
            result = await self._run_watched(args, context, jobs, spec, watch, held)
        if spec.cwd == self._workspace.root:
            return result
        note = TextBlock(text=f"[{removed_note(self._workspace.root)} This ran in {spec.cwd}.]")
        return result.model_copy(update={"content": (*result.content, note)})

    async def _run_watched(
        self,
        args: BashArguments,
        context: ToolContext,
        jobs: BackgroundJobs,
        spec: ProcessSpec,
        watch: CommandWatch,
        held: ExitStack,
    ) -> ToolResult:
        await watch.begin()
        job = self._launch(args, context, spec, jobs)
        if args.run_in_background:
            job.release = Release(
                asyncio.Event(), lambda: (job.output.complete_file(), JOB_SPOOL_LIMIT), job.output.give_away
            )
        kept = ExitStack()
        job.at_end = partial(_end_in_background, watch, kept, context.call_id, jobs)
        changes = NOT_WATCHED
        try:
            until = job.moments.started if args.run_in_background else job.moments.settled
            await jobs.wait_for(job, context.cancellation, until)
            if args.run_in_background and not job.task_id and not job.moments.over.is_set():
                jobs.put(job)
        finally:
            captured = job.before or job.output.close()
            self._workspace.warn_of_full_spool()
            report = context.report_effects if jobs is self._jobs and jobs.is_open else None
            if not job.task_id and report is not None and (found := watch.pending):
                # Comparing the files takes longer than all else between the command's end and the next request.
                changes = found
                jobs.finish_later(_report_effects(watch, held.pop_all(), report, partial(_notify_agent, jobs, job)))
            elif not job.task_id or not args.run_in_background:
                changes = await watch.end(context)
                if job.task_id:
                    await watch.begin()
            if job.task_id:
                # It may change files until it ends.
                kept.enter_context(held.pop_all())
            # Only now may its end be reported, or the report would come before the call's own result.
            job.moments.left.set()
        if job.left is not None and not args.run_in_background:
            return command_result(job, job.left, captured, context, changes=changes, limit=args.timeout)
        if job.task_id:
            return left_result(job, captured, context, changes)
        return command_result(job, ended(job, spec), captured, context, changes=changes, limit=args.timeout)

    async def _run(self, spec: ProcessSpec, context: ToolContext, jobs: BackgroundJobs, job: Job) -> ProcessOutcome:
        """Run the command of a job to its end, whether its call still waits for it or not."""

        def on_data() -> None:
            job.live.wake()
            self._workspace.warn_of_full_spool()
            _end_later_if_waiting_for_keys(job)

        def on_start(process: StartedProcess) -> None:
            context.report_process(process)
            job.moments.started.set()

        def extra_seconds() -> float:
            # A limit that the model sets for a background command is one for all that it starts.
            is_unlimited = job.was_sent or (job.left is not None and job.release is None)
            return _NO_LIMIT if is_unlimited else context.extra_seconds()

        # Without a session, nothing could list or end what a command leaves running.
        on_left = partial(jobs.keep_left, job) if not spec.is_wrapped and jobs is self._jobs else None
        spec = replace(spec, extra_seconds=extra_seconds, release=job.release, on_left=on_left)
        outcome = await run_process(spec, job.output, None, job.token, on_data, on_start, job.mark)
        # Only the walls' own program may still be there for a moment: it has ended everything that the command started.
        return replace(outcome, ended=()) if spec.is_wrapped else outcome


def ended(job: Job, spec: ProcessSpec) -> ProcessOutcome:
    """Return how the command of a job ended.

    Raises:
        ToolError: it could not be run.
    """
    if isinstance(job.error, OSError):
        reason = job.error.strerror or job.error
        raise ToolError(f"bash could not be started in {spec.cwd}: {reason}") from job.error
    if job.outcome is None:
        raise job.error or ToolError("The command was not run.")
    return job.outcome


def _end_later_if_waiting_for_keys(job: Job) -> None:
    """End the command of a waiting call once a screen that it drew has not changed for a while."""
    printed = job.output.total

    def end() -> None:
        if printed == job.output.total and not job.task_id:
            job.needs_terminal = True
            job.token.cancel("it needs a terminal")

    if job.output.ends_in_screen:
        asyncio.get_running_loop().call_later(_SCREEN_TIME, end)


def removed_note(workspace: Path) -> str:
    """Return a note on a working directory that is gone."""
    return f"The working directory {workspace} was removed; a file that you write there makes it again."


async def _report_effects(
    watch: CommandWatch, held: ExitStack, report: Callable[[DataUpdate], None], notify: Callable[[str], object]
) -> None:
    """Report the changes of a command that has ended, which counts among the calls that change files until then."""
    with held:
        await watch.end_later(report, notify)


def _notify_agent(jobs: BackgroundJobs, job: Job, finding: str) -> None:
    jobs.notify(job.agent, f"The command `{shortened(job.command)}` {finding}.")


async def _end_in_background(watch: CommandWatch, kept: ExitStack, call_id: str, jobs: BackgroundJobs) -> str:
    """Report the protected files that a background command changed; return a note on them for the model."""
    with kept:
        return await watch.end_in_background(call_id, jobs.publish)


async def syntax_error(text: str, workspace: Path) -> str:
    """Return bash's message if it certainly cannot read a text; empty otherwise.

    Settings that a text makes itself may change how bash reads the rest.
    """
    bash = find_program("bash", workspace)
    # An alias may complete what looks unfinished.
    if bash is None or "expand_aliases" in text:
        return ""
    message = ""
    # Without a check, the user decides.
    with suppress(OSError):
        message = await _syntax_message(bash, text)
        # `bash -n` runs no `shopt`: a text that sets extglob itself is valid only with it.
        message = message and await _syntax_message(bash, text, "-O", "extglob") and message
    return message


async def _syntax_message(bash: Path, text: str, *options: str) -> str:
    # As a file, because the system refuses a word of more than 128 KiB.
    script = open_script(text)
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(bash), "--noprofile", "--norc", "-n", *options),
            stdin=script,
            stdout=DEVNULL,
            stderr=PIPE,
            cwd="/",
            env=child_environment(os.environ),
        )
    finally:
        os.close(script)
    try:
        _, message = await process.communicate()
    except BaseException:
        # A question that is withdrawn must leave no process.
        with suppress(ProcessLookupError):
            process.kill()
        raise
    return message.decode("utf-8", "replace").strip()[:_LONGEST_MESSAGE] if process.returncode else ""
