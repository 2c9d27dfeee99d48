"""The bash tool: run a command in a new shell and show its output as it is written."""

import asyncio
import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.errors import ConfigurationError, InvalidArgumentsError, ToolError
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.tool import Accesses, CommandSubject, Preview, Subject, Timeout, ToolContext, ToolResult
from tui_agent.protocol.trial import Layer, TrialFacts, Trials
from tui_agent.protocol.value_checks import wrong_kind

from .command_result import command_result, has_failed, output_text
from .command_runner import DEFAULT_TIMEOUT, BashArguments, CommandRunner, ended, removed_note, syntax_error
from .processes.background_jobs import BackgroundJobs
from .processes.child_environment import withheld_variables
from .processes.process import ProcessOutcome, ProcessSpec
from .proposed_changes import LayerProposal
from .text_format import printable, printable_name
from .typed_tool import TypedTool
from .workspace import Workspace

_MOST_NAMED = 4
"""Most variables or changed paths that a note names."""

_DESCRIPTION = f"""Runs a command with bash in the working directory and returns its output.
Each call starts a new shell: `cd` and variables do not carry over to the next call.
The command has no terminal and no standard input, so do not run programs that prompt for input.
Standard output and standard error are combined. The command is stopped after `timeout` seconds \
(default {DEFAULT_TIMEOUT:g}).
If the output is long, you get its start and its end; the full output is in a file that you can page with read.
To view, search or find files, use read, grep and glob instead of cat, grep and find."""


_ABOUT_JOBS = """With `run_in_background`, the call returns at once with a task id, and the command runs on, without a \
time limit unless you set `timeout`. bash_output returns what it prints, kill_bash stops it, and a message tells you \
when it ends. What a command leaves running, such as a server started with `&`, becomes a background command, too. All \
of them end with the session at the latest."""

_WITHOUT_JOBS = "Processes still running in the background are stopped when the command ends."


_ONLY_OUTSIDE = "A background command runs outside only. Nothing was started; ask the user to allow it."
_MOST_REFUSALS = 100
"""Most commands of which the last refusal is remembered."""

ReadOnlyCheck: TypeAlias = Callable[[str], bool] | Callable[[str, Path], bool]
"""Function of a command, or of a command and the workspace, such as `permissions.is_read_only_command`; returns True
if the command only reads."""


class BashTool(TypedTool[BashArguments]):
    """Tool that runs shell commands. Bash gets the exact text that was judged and shown."""

    # The calls after a command that fails often need what it should have made.
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
        self._runner = CommandRunner(workspace, jobs)
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
        if is_confined:
            result = await self._run_in_trial(args, context)
        else:
            is_reading = self._is_read_only_command(args.command)
            result = await self._runner.run_outside(args, context, is_reading=is_reading)
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
        # A layer has to cover something; outside, a command runs in the nearest directory that is left.
        if not os.path.isdir(self._workspace.root):
            raise ToolError(f"The command was not run: {removed_note(self._workspace.root)}")
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
            result, outcome = await self._run_on(args, context, walled, opened[0])
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
        spec = self._runner.spec_of(args, is_confined=True)
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
        self, args: BashArguments, context: ToolContext, spec: ProcessSpec, layer: Layer
    ) -> tuple[ToolResult, ProcessOutcome]:
        """Run a command to its end in a layer."""
        job, captured = await self._runner.run_confined(args, context, spec)
        outcome = ended(job, spec)
        # Only the code of a failure can be that of the walls.
        code = outcome.returncode
        reason = await asyncio.to_thread(layer.started, job.output.first_bytes(), code) if code else ""
        if reason and outcome.ending == "exited":
            raise self._no_trial(reason)
        refused = await asyncio.to_thread(layer.refused, output_text(captured)) if has_failed(outcome) else ""
        self._note_refusal(args.command, refused)
        discarded = await run_shielded_in_thread(partial(_discarded, layer)) if outcome.ending == "cancelled" else ""
        result = command_result(
            job, outcome, captured, context, limit=args.timeout, refused=refused, discarded=discarded
        )
        return result, outcome

    def _note_refusal(self, command: str, refused: str) -> None:
        """Remember what a trial refused a command, for the question about running it outside."""
        # Taken out first, so that the newest is at the end and the oldest is forgotten.
        self._refusals.pop(command, None)
        if refused:
            self._refusals[command] = refused
            if len(self._refusals) > _MOST_REFUSALS:
                del self._refusals[next(iter(self._refusals))]


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


def _discarded(layer: Layer) -> str:
    """Return a note on what a command changed that was stopped, or ran out of time; empty if nothing. Blocks."""
    found = layer.changes()
    names = [*found.repository, *(change.path for change in found.changes)]
    if not names and not found.problem:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = found.problem or f"{', '.join(map(printable_name, names[:_MOST_NAMED]))}{more}"
    return f"what it changed in its trial was discarded: {shown}"
