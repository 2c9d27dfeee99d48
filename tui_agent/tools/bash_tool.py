"""The bash tool: run a command in a new shell and show its output as it is written."""

import asyncio
import inspect
import os
import re
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from tui_agent.git.git_program import refusal_note
from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.errors import ConfigurationError, InvalidArgumentsError, ToolError
from tui_agent.protocol.messages import TERMINAL_OUTPUT, JsonObject, TextBlock
from tui_agent.protocol.permissions import DECIDED_BY_USER
from tui_agent.protocol.programs import find_program, script_argv, start_directory
from tui_agent.protocol.tool import (
    Accesses,
    CommandSubject,
    DataUpdate,
    Preview,
    StartedProcess,
    Subject,
    Timeout,
    ToolContext,
    ToolResult,
)
from tui_agent.protocol.trial import Layer, TrialFacts, Trials
from tui_agent.protocol.value_checks import wrong_kind
from tui_agent.protocol.visible_text import left_out_note, without_sequences

from .command_watch import NOT_WATCHED, CommandChanges, CommandWatch
from .processes.background_jobs import BackgroundJobs, Job, shortened
from .processes.captured_output import Captured, CapturedOutput, line_count, without_cut_character
from .processes.child_environment import child_environment, read_only_environment, withheld_variables
from .processes.process import ProcessOutcome, ProcessSpec, Release, run_process
from .processes.process_tree import TreeMark
from .processes.spool_file import JOB_SPOOL_LIMIT, SPOOL_LIMIT, SpoolFile
from .proposed_changes import LayerProposal
from .shell_syntax import syntax_error
from .text_format import printable, printable_name
from .typed_tool import Arguments, TypedTool, WordText
from .workspace import Workspace

DEFAULT_TIMEOUT = 120.0
"""Seconds a command may run if the call does not set `timeout`."""

LONGEST_TIMEOUT = 3_600.0
"""Longest `timeout` in seconds that a call may set."""

_OWN_TIMER_LATER = 0.25
"""Seconds by which this tool's timer comes after the engine's, whose result is a timeout rather than an error."""

_SCREEN_TIME = 0.5
"""Seconds after which a screen that does not change waits for keys."""

_LONGEST_OUTCOME = 200
_MISSES_TERMINAL = re.compile(
    r"(?i)not (?:from |to )?a (?:tty|terminal)|failed tty get|error opening terminal|"
    r"(?:needs|requires?) an? (?:interactive )?(?:tty|terminal)|(?:tty|terminal) is required|open /dev/tty"
)
"""Matches the message of a program that misses a terminal."""
_MOST_NAMED = 4
"""Most variables or changed paths that a note names."""
_NAMES_FAILURE = re.compile(
    r"(?:^|[\s:])(?:FAILED|FAIL|ERROR|Error|error|fatal|panic)\b|(?:^|\s)ERR!|^\w*(?:Error|Exception):"
)
"""Matches a line that names a failure, as test programs, compilers and interpreters write it."""

_DESCRIPTION = f"""Runs a command with bash in the working directory and returns its output.
Each call starts a new shell: `cd` and variables do not carry over to the next call.
The command has no terminal and no standard input, so do not run programs that prompt for input.
Standard output and standard error are combined. The command is stopped after `timeout` seconds \
(default {DEFAULT_TIMEOUT:g}).
If the output is long, you get its start and its end; the full output is in a file that you can page with read.
To view, search or find files, use read, grep and glob instead of cat, grep and find."""


_READ_ON = "bash_output returns what it prints from here on, kill_bash stops it; a message tells you when it ends"

_ABOUT_JOBS = """With `run_in_background`, the call returns at once with a task id, and the command runs on, without a \
time limit unless you set `timeout`. bash_output returns what it prints, kill_bash stops it, and a message tells you \
when it ends. What a command leaves running, such as a server started with `&`, becomes a background command, too. All \
of them end with the session at the latest."""

_WITHOUT_JOBS = "Processes still running in the background are stopped when the command ends."

_NO_LIMIT = 1e9
"""Seconds by which the limit of a command grows that the user sent to the background."""

_NO_TERMINAL = "commands have no terminal here: use options or a program that need none"
_NEEDS_TERMINAL = f"stopped: the command needs a terminal. It drew a screen and waited for keys, but {_NO_TERMINAL}"

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

LEAVE_TRIAL = "If the command needs that, repeat it with `sandbox: false`, which asks the user to run it outside."
"""Advice for the model after a refusal of a trial."""

_ONLY_OUTSIDE = "A background command runs outside only. Nothing was started; ask the user to allow it."
_MOST_REFUSALS = 100
"""Most commands of which the last refusal is remembered."""

ReadOnlyCheck: TypeAlias = Callable[[str], bool] | Callable[[str, Path], bool]
"""Function of a command, or of a command and the workspace, such as `permissions.is_read_only_command`; returns True
if the command only reads."""


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


class BashTool(TypedTool[BashArguments]):
    """Tool that runs shell commands. Bash gets the exact text that was judged and shown."""

    aborts_siblings = True
    starts_processes = True

    def __init__(
        self,
        workspace: Workspace,
        *,
        is_read_only_command: ReadOnlyCheck,
        trials: Trials | None = None,
        jobs: BackgroundJobs | None = None,
        report_problem: Callable[[str], None] | None = None,
    ) -> None:
        """
        Args:
            workspace: the directory that commands run in.
            is_read_only_command: returns True if a command only reads, False in doubt; never raises.
            trials: makes the layers in which commands run that may not run outside; None: none can.
            jobs: keeps commands that run on without their calls; None: none do.
            report_problem: called with the reason on the event loop when no layer could be made for a command.

        Raises:
            ConfigurationError: `is_read_only_command` cannot be called with a command.
        """
        about = f"{_DESCRIPTION}\n{_WITHOUT_JOBS if jobs is None else _ABOUT_JOBS}"
        has_trial = trials is not None and trials.facts.is_available
        super().__init__("bash", about + (_about_trial(trials.facts) if trials and has_trial else ""), BashArguments)
        # Not offered, but accepted: a call of an earlier run may have it.
        missing = {"sandbox": not has_trial, "run_in_background": jobs is None}
        schema = self.spec.input_schema
        offered = {name: one for name, one in schema["properties"].items() if not missing.get(name)}
        self.spec = self.spec.model_copy(update={"input_schema": {**schema, "properties": offered}})
        self._trials = trials
        self._report_problem = report_problem
        self._refusals: dict[str, str] = {}
        """Restrictions that commands met in their trials, by their text."""
        self._jobs = jobs
        self._workspace = workspace
        self.working_directory = workspace.root
        self._is_read_only_command = _check_of_commands(is_read_only_command, workspace.root)
        self._noted_variables: set[str] = set()

    def call_is_read_only(self, args: BashArguments) -> bool:
        # A command that runs on must not start before the model's message is complete, nor beside other calls.
        return not args.run_in_background and self._is_read_only_command(args.command)

    def call_accesses(self, args: BashArguments) -> Accesses | None:
        is_outside = args.run_in_background or not args.sandbox
        if is_outside or self._trials is None or not self._trials.facts.is_available:
            return None
        # Unless a rule lets it outside, which the engine knows.
        return Accesses(keeps=frozenset({self._workspace.root}))

    def call_subject(self, args: BashArguments) -> Subject:
        return CommandSubject(args.command, leaves_sandbox=not args.sandbox, in_background=args.run_in_background)

    def call_timeout(self, args: BashArguments) -> Timeout:
        return args.timeout

    def call_summary(self, args: BashArguments) -> str:
        return args.command

    async def call_preview(self, args: BashArguments) -> Preview:
        if error := await syntax_error(args.command, self._workspace.root):
            raise InvalidArgumentsError(f"The command was not run, because bash cannot read it:\n{error}")
        return Preview(kind="command", text=args.command, note=self._note_on_place(args))

    def _note_on_place(self, args: BashArguments) -> str:
        """Return the note for a question about a command that leaves the trial; empty for others."""
        if self._trials is None or not self._trials.facts.is_available or (args.sandbox and not args.run_in_background):
            return ""
        refused = self._refusals.get(args.command, "")
        why = f" In its trial it was refused: {refused}." if refused else ""
        return f"Runs outside of the trial, with your own rights.{why}"

    async def run(self, args: BashArguments, context: ToolContext) -> ToolResult:
        if context.resumed_from:
            return await self._waiting(context)
        is_confined = context.place != "outside"
        result = await (self._run_in_trial(args, context) if is_confined else self._run_outside(args, context))
        note = self._note_on_variables(args.command, is_confined=is_confined)
        if not note:
            return result
        if self._workspace.note_withheld is not None:
            note += " (the user's setting `env.pass` passes them)"
            self._workspace.note_withheld(f"{note}.")
        return ToolResult.of_text(f"{result.text}\n[{note}]", is_error=result.is_error, details=result.details)

    def _note_on_variables(self, command: str, *, is_confined: bool) -> str:
        """Return a note on the variables that a command lacks and none lacked before; empty if there are none."""
        names = withheld_variables(os.environ, command, is_confined=is_confined)
        new = [name for name in names if name not in self._noted_variables]
        self._noted_variables.update(new)
        if not new:
            return ""
        more = f" and {len(new) - _MOST_NAMED} more" if len(new) > _MOST_NAMED else ""
        return f"not set for commands: {', '.join(map(printable, new[:_MOST_NAMED]))}{more}"

    async def _waiting(self, context: ToolContext) -> ToolResult:
        """Return the result of a call that ran in an earlier process, and propose its changes again."""
        trials = self._trials
        found = None if trials is None else await asyncio.to_thread(trials.waiting, context.resumed_from)
        if found is None:
            raise ToolError(
                "The command ran before the program ended. What it changed in its trial is gone, and nothing was kept."
            )
        layer, stored = found
        result = ToolResult.model_validate_json(stored)
        kept = await LayerProposal.finish(self._workspace, layer, context.emit)
        if kept:
            # The answer was given, and the program ended while it was carried out.
            return result.model_copy(
                update={"content": (*result.content, TextBlock(text=f"[kept: {', '.join(kept)}]"))}
            )
        proposal = await LayerProposal.read(self._workspace, layer, context.emit)
        if proposal is not None:
            context.propose(proposal)
        return result

    async def _run_in_trial(self, args: BashArguments, context: ToolContext) -> ToolResult:
        """Run a command on a layer, and propose what it changed."""
        trials = self._trials
        if trials is None or context.place == "nowhere":
            raise ToolError("The command was not run: it may only run in a trial, and none works here.")
        if args.run_in_background:
            raise ToolError(_ONLY_OUTSIDE)
        if not os.path.isdir(self._workspace.root):
            raise ToolError(f"The command was not run: {_removed(self._workspace.root)}")
        opened: list[Layer] = []

        def open_layer() -> ProcessSpec:
            opened.append(trials.open(context.call_id))
            return self._walled(opened[0], args)

        if self._jobs is not None:
            self._jobs.in_trial.add(context.call_id)
        try:
            try:
                walled = await run_shielded_in_thread(open_layer)
            except ToolError as error:
                raise self._no_trial(str(error)) from error
            async with BackgroundJobs() as jobs:
                # Jobs of its own: what runs in a trial cannot be sent to the background.
                result, outcome = await self._run_on(args, context, jobs, walled, opened[0])
            if outcome.ending != "cancelled":
                proposal = await LayerProposal.read(self._workspace, opened[0], context.emit)
                opened.clear()
                if proposal is not None:
                    context.propose(proposal)
            return result
        finally:
            if self._jobs is not None:
                self._jobs.in_trial.discard(context.call_id)
            for layer in opened:
                await run_shielded_in_thread(layer.discard)

    def _walled(self, layer: Layer, args: BashArguments) -> ProcessSpec:
        """Return a command as it runs in a layer. Blocks."""
        spec = self._spec(args, is_reading=False, is_confined=True)
        walled = layer.walled(spec.argv, spec.environment)
        return replace(
            spec,
            argv=walled.argv,
            environment=walled.environment,
            descriptors=walled.descriptors,
            is_wrapped=True,
            ends_all=walled.ends_all,
        )

    def _no_trial(self, reason: str) -> ToolError:
        """Return the error of a command for which no layer could be made, and report that."""
        if self._report_problem is not None:
            self._report_problem(reason)
        return ToolError(f"The command was not run: its trial could not be set up: {reason}")

    async def _run_on(
        self, args: BashArguments, context: ToolContext, jobs: BackgroundJobs, spec: ProcessSpec, layer: Layer
    ) -> tuple[ToolResult, ProcessOutcome]:
        """Run a command to its end in a layer."""
        output = CapturedOutput(SpoolFile(self._workspace.new_spool_file, SPOOL_LIMIT, self._workspace.spool_budget))
        job = jobs.launch(args.command, output, partial(self._run, spec, True, context, jobs), context)
        try:
            await jobs.wait_for(job, context.cancellation, job.moments.settled)
        finally:
            captured = output.close()
            self._workspace.warn_of_full_spool()
        outcome = self._ended(job, spec)
        text = output_text(captured)
        # Only the code of a failure can be that of the walls.
        code = outcome.returncode
        reason = await asyncio.to_thread(layer.started, job.output.first_bytes(), code) if code else ""
        if reason and outcome.ending == "exited":
            raise self._no_trial(reason)
        refused = await asyncio.to_thread(layer.refused, text) if _failed(outcome) else ""
        self._refusals.pop(args.command, None)
        if refused:
            self._refusals[args.command] = refused
            if len(self._refusals) > _MOST_REFUSALS:
                del self._refusals[next(iter(self._refusals))]
        discarded = await run_shielded_in_thread(partial(_discarded, layer)) if outcome.ending == "cancelled" else ""
        return _result(args, outcome, captured, context, discarded, refused, NOT_WATCHED, job), outcome

    @staticmethod
    def _ended(job: Job, spec: ProcessSpec) -> ProcessOutcome:
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

    async def _run_outside(self, args: BashArguments, context: ToolContext) -> ToolResult:
        if self._jobs is not None:
            return await self._run_as_job(args, context, self._jobs)
        if args.run_in_background:
            raise InvalidArgumentsError("invalid arguments for bash: run_in_background: not available here")
        async with BackgroundJobs() as jobs:
            return await self._run_as_job(args, context, jobs)

    async def _run_as_job(self, args: BashArguments, context: ToolContext, jobs: BackgroundJobs) -> ToolResult:
        is_reading = self._is_read_only_command(args.command)
        spec = self._spec(args, is_reading=is_reading, is_confined=False)
        if args.run_in_background:
            jobs.check_room()
        with ExitStack() as held:
            changing = None if is_reading else held.enter_context(self._workspace.changing_calls.entered(None))

            def others_run() -> bool:
                return any(job.call_id != context.call_id for job in jobs.running)

            watch = CommandWatch(self._workspace, changing, args.command, others_run=others_run)
            result = await self._run_watched(args, context, jobs, spec, watch, held)
        if spec.cwd == self._workspace.root:
            return result
        note = TextBlock(text=f"[{_removed(self._workspace.root)} This ran in {spec.cwd}.]")
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
        output = CapturedOutput(SpoolFile(self._workspace.new_spool_file, SPOOL_LIMIT, self._workspace.spool_budget))
        job = jobs.launch(args.command, output, partial(self._run, spec, False, context, jobs), context)
        if args.run_in_background:
            job.release = Release(asyncio.Event(), lambda: (output.complete_file(), JOB_SPOOL_LIMIT), output.give_away)
        kept = ExitStack()
        job.at_end = partial(_end_in_background, watch, kept, context.call_id, jobs)
        changes = NOT_WATCHED
        try:
            until = job.moments.started if args.run_in_background else job.moments.settled
            await jobs.wait_for(job, context.cancellation, until)
            if args.run_in_background and not job.task_id and not job.moments.over.is_set():
                jobs.put(job)
        finally:
            captured = job.before or output.close()
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
            job.moments.left.set()
        if job.left is not None and not args.run_in_background:
            return _result(args, job.left, captured, context, "", "", changes, job)
        if job.task_id:
            return _left_result(job, captured, context, changes)
        return _result(args, self._ended(job, spec), captured, context, "", "", changes, job)

    async def _run(
        self, spec: ProcessSpec, in_trial: bool, context: ToolContext, jobs: BackgroundJobs, job: Job
    ) -> ProcessOutcome:
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
        on_left = partial(jobs.keep_left, job) if not in_trial and jobs is self._jobs else None
        spec = replace(spec, extra_seconds=extra_seconds, release=job.release, on_left=on_left)
        if context.mark:
            job.mark = TreeMark(context.mark)
        outcome = await run_process(spec, job.output, None, job.token, on_data, on_start, job.mark)
        # Only the walls' own program may still be there for a moment: it has ended everything that the command started.
        return replace(outcome, ended=()) if in_trial else outcome

    def _spec(self, args: BashArguments, *, is_reading: bool, is_confined: bool) -> ProcessSpec:
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
        argv = script_argv(str(bash))
        if is_confined:
            argv = (str(bash), "--noprofile", "--norc", "-c", _NAMES_LEFT, *argv)
        directory = start_directory(self._workspace.root)
        return ProcessSpec(argv, directory, environment, limit, args.command, is_command=True)


def _end_later_if_waiting_for_keys(job: Job) -> None:
    """End the command of a waiting call once a screen that it drew has not changed for a while."""
    printed = job.output.total

    def end() -> None:
        if printed == job.output.total and not job.task_id:
            job.needs_terminal = True
            job.token.cancel("it needs a terminal")

    if job.output.ends_in_screen:
        asyncio.get_running_loop().call_later(_SCREEN_TIME, end)


def _removed(workspace: Path) -> str:
    return f"The working directory {workspace} was removed; a file that you write there makes it again."


def _about_trial(facts: TrialFacts) -> str:
    """Return the part of the description that tells the model about trials."""
    network = "with network" if facts.network else "without network"
    leave = "repeat it with `sandbox: false`, which asks the user first"
    if facts.place == "read_only":
        return (
            f"\nCommands run behind walls: they read the working directory and change nothing, {network}, and of the "
            f"home only tools are there. If a command must change files or needs more, {leave}."
        )
    return (
        "\nCommands run in a trial, on a copy of the working directory: work as usual. What a command changed is kept "
        f"or discarded when it ends; the result says which. A trial is {network}, shows only tools of the home, and "
        "has a /tmp that later commands and read see; what is still running ends with the command. If a command needs "
        f"what the trial refuses, {leave}."
    )


def _check_of_commands(check: Callable[..., bool], workspace: Path) -> Callable[[str], bool]:
    """Return a check that takes a command alone.

    Raises:
        ConfigurationError: it can be called neither with a command nor with a command and the workspace.
    """
    try:
        signature = inspect.signature(check)
    except (TypeError, ValueError) as error:
        raise wrong_kind("is_read_only_command", "a function", check) from error
    if _can_take(signature, ""):
        return check
    if _can_take(signature, "", workspace):
        return partial(_call_with, check, workspace)
    words = "must take (command) or (command, workspace), by position"
    raise ConfigurationError(f"is_read_only_command {words}; {signature} does not")


def _can_take(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _call_with(check: Callable[[str, Path], bool], workspace: Path, command: str) -> bool:
    return check(command, workspace)


def _result(
    args: BashArguments,
    outcome: ProcessOutcome,
    captured: Captured,
    context: ToolContext,
    discarded: str,
    refused: str,
    changes: CommandChanges,
    job: Job,
) -> ToolResult:
    """Return the output and the outcome, as text for the model and as data for the screen."""
    context.measure("exit_code", outcome.returncode if outcome.returncode is not None else -1)
    context.measure("output_bytes", captured.total)
    output = output_text(job.output.before_screen() if job.needs_terminal else captured)
    others = _ended_note(outcome) if job.left is None else _left_note(job, context)
    left = f"left running as {job.task_id}" if job.left is not None else ""
    ending = _NEEDS_TERMINAL if job.needs_terminal else _ending_note(args, outcome)
    hint = _NO_TERMINAL if outcome.returncode and _MISSES_TERMINAL.search(output) and not job.needs_terminal else ""
    notes = [ending, hint, others, f"the trial refused this: {refused}. {LEAVE_TRIAL}" if refused else ""]
    notes += [refusal_note(output)] if _failed(outcome) else []
    notes = [note for note in (*notes, discarded, changes.note) if note]
    text = "\n".join([*([output.removesuffix("\n")] if output else []), *(f"[{note}]" for note in notes)])
    details: JsonObject = {
        "outcome": " · ".join(filter(None, (changes.mark, left, _outcome(outcome, captured, refused)))),
        "exit_code": outcome.returncode,
        "lines": captured.lines,
        "timed_out": outcome.ending == "timeout",
        "cancelled": outcome.ending == "cancelled" and not job.needs_terminal,
        "duration_ms": round(outcome.seconds * 1000, 1),
        "size_bytes": captured.total,
        "truncated": captured.left_out > 0,
        "persisted_path": printable(str(captured.path)) if captured.path else None,
        "ended_processes": list(outcome.ended) if job.left is None else [],
        "trial_refused": refused,
        TERMINAL_OUTPUT: True,
    }
    if job.left is not None:
        details |= {"task_id": job.task_id, "left_running": list(job.left.ended)}
    return ToolResult.of_text(text or "[no output]", is_error=_failed(outcome), details=details | changes.details)


def _discarded(layer: Layer) -> str:
    """Return a note on what a command changed that was stopped, or ran out of time; empty if nothing. Blocks."""
    found = layer.changes()
    names = [*found.repository, *(change.path for change in found.changes)]
    if not names and not found.problem:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = found.problem or f"{', '.join(map(printable_name, names[:_MOST_NAMED]))}{more}"
    return f"what it changed in its trial was discarded: {shown}"


def _failed(outcome: ProcessOutcome) -> bool:
    return outcome.ending != "exited" or outcome.returncode != 0


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


def _left_result(job: Job, captured: Captured, context: ToolContext, changes: CommandChanges) -> ToolResult:
    """Return the result of a call whose command runs on without it."""
    context.measure("output_bytes", captured.total)
    output = output_text(captured)
    if context.agent == DECIDED_BY_USER:
        note = f"this command runs on in the background as {job.task_id}; /jobs shows its output and stops it"
    else:
        how = "the user sent this command to the background: it runs on" if job.was_sent else "this command runs on"
        how = how if job.left is None else f"this command {job.words}. That runs on"
        note = f"{how} as {job.task_id}. {_READ_ON}"
    details: JsonObject = {
        "outcome": " · ".join(filter(None, (f"runs in the background as {job.task_id}", changes.mark))),
        "task_id": job.task_id,
        "size_bytes": captured.total,
        "truncated": captured.left_out > 0,
        "persisted_path": printable(str(captured.path)) if captured.path else None,
        # Nothing compares the files once it runs without its call.
        "files_changed": None,
        TERMINAL_OUTPUT: True,
    }
    if changes.protected:
        details["protected_changes"] = changes.protected
    notes = [f"[{text}]" for text in (note, changes.note) if text]
    return ToolResult.of_text("\n".join([*filter(None, (output.removesuffix("\n"),)), *notes]), details=details)


def _outcome(outcome: ProcessOutcome, captured: Captured, refused: str) -> str:
    """Return how the command ended and the line of its output that says most, in one line."""
    if outcome.ending != "exited":
        return ""
    code = outcome.returncode or 0
    ending = f"signal {-code}" if code < 0 else f"exit {code}" if code else ""
    if refused:
        ending = f"{ending} · the trial refused it: {refused}"
    if not captured.is_text:
        return " · ".join(filter(None, (ending, f"{captured.total:,} bytes of binary output")))
    text = without_sequences(_text(captured.tail or captured.head))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ending or "no output"
    if code:
        return f"{ending} · {next(filter(_NAMES_FAILURE.search, lines), lines[-1])[:_LONGEST_OUTCOME]}"
    return lines[-1][:_LONGEST_OUTCOME]


def output_text(captured: Captured) -> str:
    """Return the output for the model: all of it, or head and tail and between them a line that names the file."""
    if not captured.is_text:
        return f"[binary output of {captured.total:,} bytes; {_output_file_note(captured)}]"
    text = _text(captured.head) if not captured.left_out else _ends_text(captured)
    if not captured.has_nuls:
        return text
    return "\n".join((text.removesuffix("\n"), "[each NUL byte is shown as a line break]"))


def _ends_text(captured: Captured) -> str:
    head, tail = _whole_lines(captured)
    left_out = captured.size - len(head) - len(tail)
    gap, inside = ("", "") if head.endswith(b"\n") else ("\n", _place_in_line(captured, head))
    # A line of which the head has the beginning or the tail the end is not left out.
    lines = max(0, captured.lines - line_count(head) - line_count(tail)) if captured.lines is not None else None
    amount = f"{left_out:,} of {captured.size:,} bytes"
    note = left_out_note(amount, lines, f"{_output_file_note(captured)}{inside}")
    return f"{_text(head)}{gap}{note}\n{_text(tail)}"


def _place_in_line(captured: Captured, head: bytes) -> str:
    """Tell how to read on inside the long line that `head` ends in."""
    if captured.path is None:
        return ""
    if not captured.is_as_written or captured.has_nuls:
        return ", with `column` inside a long line"
    text = head.decode("utf-8", "replace")
    return f", from `offset` {text.count(chr(10)) + 1} and `column` {len(text) - text.rfind(chr(10))}"


def _output_file_note(captured: Captured) -> str:
    """Name the file with the full output, or say why there is none."""
    if captured.path is None:
        return f"the full output could not be saved: {captured.problem}"
    path = printable(str(captured.path))
    if captured.problem:
        return f"{path} holds part of the output: {captured.problem}"
    return f"the full output is in {path}; use read to page it"


def _whole_lines(captured: Captured) -> tuple[bytes, bytes]:
    """Return head and tail, cut at line ends unless that would lose more than half of either."""
    head, tail = captured.head, captured.tail
    end = head.rfind(b"\n") + 1
    head = head[:end] if end > len(head) // 2 else without_cut_character(head)
    start = tail.find(b"\n") + 1
    tail = tail[start:] if 0 < start < len(tail) // 2 else tail.lstrip(bytes(range(0x80, 0xC0)))
    return head, tail


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _ending_note(args: BashArguments, outcome: ProcessOutcome) -> str:
    """Return a note on how the command ended; empty if it succeeded."""
    if outcome.ending == "timeout":
        return f"stopped after {args.timeout:g} s, together with every process it had started"
    if outcome.ending == "cancelled":
        return "cancelled; the command and every process it had started were stopped"
    code = outcome.returncode
    if code is not None and code < 0:
        return f"ended by signal {-code} ({signal.strsignal(-code)})"
    return f"exit code {code}" if code else ""


def _left_note(job: Job, context: ToolContext) -> str:
    """Return a note on what the command left running."""
    ends = "/jobs lists and stops it" if context.agent == DECIDED_BY_USER else "/jobs lists it, kill_bash stops it"
    return f"still running: {job.names_left}; it ends with the session. As {job.task_id}, {ends}"


def _ended_note(outcome: ProcessOutcome) -> str:
    """Return a note on background processes that were stopped when the command ended; empty if there were none."""
    if outcome.ending != "exited" or not outcome.ended:
        return ""
    return f"stopped, because they were still running in the background: {', '.join(outcome.ended)}"
