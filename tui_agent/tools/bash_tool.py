"""The bash tool: runs a command in a shell of its own and shows what it writes as it writes it."""

import asyncio
import codecs
import inspect
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import CommandSubject, Preview, Subject, Timeout, ToolContext, ToolResult
from tui_agent.protocol.value_checks import wrong_kind

from .captured_output import Captured, CapturedOutput
from .child_environment import child_environment, read_only_environment
from .file_change import DIFF_LIMIT
from .file_states import TreeChange, diffs_of
from .live_output import LiveOutput
from .process import ProcessOutcome, ProcessSpec, run_process
from .process_tree import TreeMark
from .programs import find_program
from .sandbox import Sandbox
from .shielded_thread import run_shielded_in_thread
from .spool_file import SPOOL_LIMIT, SpoolFile
from .text_format import printable
from .tree_watch import TreeSnapshot, TreeWatch
from .typed_tool import Arguments, TypedTool, WordText
from .unified_diff import Diff
from .workspace import Workspace

DEFAULT_TIMEOUT = 120.0
"""Seconds a command may run where the call does not say."""

LONGEST_TIMEOUT = 3_600.0
"""Seconds a call may ask for at most."""

_OWN_TIMER_LATER = 0.25
"""Seconds by which the engine's timer, whose result is a timeout and not an error, is ahead of the tool's own."""

_DIFF_SECONDS = 0.2
"""Longest time that changed files are compared line by line."""

_CHANGES_PER_LOOP_TURN = 200

_DESCRIPTION = f"""Runs a command with bash in the working directory and shows its output.
Each call is a new shell: directory and variables do not last. There is no terminal and no input, so nothing may ask.
Output and error output come together. It is stopped after `timeout` seconds (default {DEFAULT_TIMEOUT:g}).
When the command ends, what it left running in the background is ended, too.
Of long output you get the start and the end; the whole is in a file that read can page.
Prefer read, grep and glob to cat, grep and find."""


ReadOnlyCheck: TypeAlias = Callable[[str], bool] | Callable[[str, Path], bool]
"""Takes a command, and the workspace where it needs one, as `permissions.is_read_only_command` does; returns True if
the command only reads."""


class BashArguments(Arguments):
    """What to run."""

    command: WordText = Field(description="The command, as bash reads it.")
    timeout: float = Field(
        default=DEFAULT_TIMEOUT, gt=0, le=LONGEST_TIMEOUT, description="Seconds until it is stopped."
    )
    description: str = Field(default="", description="What the command does, in a few words.")


class BashTool(TypedTool[BashArguments]):
    """Runs shell commands. Its command is never changed: what was judged and shown is what bash gets."""

    aborts_siblings = True
    starts_processes = True

    def __init__(
        self, workspace: Workspace, *, is_read_only_command: ReadOnlyCheck, sandbox: Sandbox | None = None
    ) -> None:
        """
        Args:
            workspace: where commands run.
            is_read_only_command: says whether a command only reads; never raises, and says no when in doubt.
            sandbox: what every command runs in; None: commands run as they are.

        Raises:
            ConfigurationError: `is_read_only_command` cannot be called with a command.
        """
        about = f"\nEach command {sandbox.words}; /tmp is its own and empty." if sandbox is not None else ""
        super().__init__("bash", _DESCRIPTION + about, BashArguments)
        self._sandbox = sandbox
        self._workspace = workspace
        self._is_read_only_command = _check_of_commands(is_read_only_command, workspace.root)

    def call_is_read_only(self, args: BashArguments) -> bool:
        return self._is_read_only_command(args.command)

    def call_subject(self, args: BashArguments) -> Subject:
        return CommandSubject(args.command)

    def call_timeout(self, args: BashArguments) -> Timeout:
        return args.timeout

    def call_summary(self, args: BashArguments) -> str:
        return args.command if self._sandbox is None else f"box: {args.command}"

    async def call_preview(self, args: BashArguments) -> Preview:
        return Preview(kind="command", text=args.command, note=self._sandbox.words if self._sandbox else "")

    async def run(self, args: BashArguments, context: ToolContext) -> ToolResult:
        spec = self._spec(args)
        watch = None if self.call_is_read_only(args) else self._workspace.tree
        before = None if watch is None else await run_service("listing files", asyncio.to_thread(watch.look))
        output = CapturedOutput(SpoolFile(self._workspace.new_spool_file, SPOOL_LIMIT, self._workspace.spool_budget))
        live = LiveOutput(output, context.output)
        try:
            outcome = await self._run(spec, output, live, context)
        except OSError as error:
            raise ToolError(
                f"bash could not be started in {self._workspace.root}: {error.strerror or error}"
            ) from error
        finally:
            live.close()
            captured = output.close()
            self._workspace.warn_of_full_spool()
            changed: int | None = None
            if watch is not None and before is not None:
                changed = await run_service("finding changed files", _publish_changes(watch, before, context))
        result = _result(args, outcome, captured, context, is_sandboxed=self._sandbox is not None)
        if watch is not None and result.details is not None:
            result.details["files_changed"] = changed
        return result

    async def _run(
        self, spec: ProcessSpec, output: CapturedOutput, live: LiveOutput, context: ToolContext
    ) -> ProcessOutcome:
        def look() -> None:
            live.wake()
            self._workspace.warn_of_full_spool()

        mark = TreeMark(context.mark) if context.mark else None
        if self._sandbox is None:
            return await run_process(spec, output, None, context.cancellation, look, context.report_process, mark)
        async with self._sandbox.around(spec) as run:
            outcome = await run_process(
                run.spec, output, None, context.cancellation, look, context.report_process, mark
            )
            run.refuse_unless_started(outcome, output.first_bytes())
        return outcome

    def _spec(self, args: BashArguments) -> ProcessSpec:
        bash = find_program("bash", self._workspace.root)
        if bash is None:
            raise ToolError("bash is not installed: no program of that name is on PATH outside the workspace")
        environment = child_environment(os.environ)
        if self.call_is_read_only(args):
            environment = read_only_environment(environment, self._workspace.root)
        argv = (str(bash), "--noprofile", "--norc", "-c", "--", args.command)
        limit = args.timeout + _OWN_TIMER_LATER
        return ProcessSpec(argv, self._workspace.root, environment, limit, is_command=True)


async def _publish_changes(watch: TreeWatch, before: TreeSnapshot, context: ToolContext) -> int | None:
    """Tells what the command changed, however it ended; returns how many files, None where some may be missing."""
    told, is_complete = await run_shielded_in_thread(lambda: _compared(watch, before))
    for number, (change, diff) in enumerate(told, start=1):
        context.emit("file.changed", change.event_data(diff))
        if number % _CHANGES_PER_LOOP_TURN == 0:
            await asyncio.sleep(0)
    return len(told) if is_complete else None


def _compared(watch: TreeWatch, before: TreeSnapshot) -> tuple[list[tuple[TreeChange, Diff]], bool]:
    changes = watch.changes_since(before)
    diffs = diffs_of(changes.files, watch.contents, watch.root, seconds=_DIFF_SECONDS, room=DIFF_LIMIT)
    return list(zip(changes.files, diffs, strict=True)), changes.is_complete


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
    args: BashArguments, outcome: ProcessOutcome, captured: Captured, context: ToolContext, *, is_sandboxed: bool
) -> ToolResult:
    """Output for the model, with how the command ended; the same as data for the screen."""
    context.measure("exit_code", outcome.returncode if outcome.returncode is not None else -1)
    context.measure("output_bytes", captured.total)
    notes = [note for note in (_ending_note(args, outcome), _ended_note(outcome)) if note]
    output = _output_text(captured)
    text = "\n".join([*([output.removesuffix("\n")] if output else []), *(f"[{note}]" for note in notes)])
    details: JsonObject = {
        "exit_code": outcome.returncode,
        "timed_out": outcome.ending == "timeout",
        "cancelled": outcome.ending == "cancelled",
        "duration_ms": round(outcome.seconds * 1000, 1),
        "size_bytes": captured.total,
        "truncated": captured.left_out > 0,
        "persisted_path": printable(str(captured.path)) if captured.path else None,
        "ended_processes": list(outcome.ended),
        "sandboxed": is_sandboxed,
    }
    failed = outcome.ending != "exited" or outcome.returncode != 0
    return ToolResult.of_text(text or "[no output]", is_error=failed, details=details)


def _output_text(captured: Captured) -> str:
    """What the model gets of the output: all, or head and tail with a line between that says where the whole is."""
    if not captured.is_text:
        return f"[binary output of {captured.total:,} bytes; {_where_it_is(captured)}]"
    if not captured.left_out:
        return _text(captured.head)
    head, tail = _whole_lines(captured)
    left_out = captured.total - len(head) - len(tail)
    gap = "" if head.endswith(b"\n") else "\n"
    note = f"[… {left_out:,} of {captured.total:,} bytes left out here; {_where_it_is(captured)} …]"
    return f"{_text(head)}{gap}{note}\n{_text(tail)}"


def _where_it_is(captured: Captured) -> str:
    """Where the model finds the whole output, or why it does not."""
    if captured.path is None:
        return f"the whole could not be kept: {captured.problem}"
    path = printable(str(captured.path))
    if captured.problem:
        return f"{path} holds a part of it: {captured.problem}"
    return f"the whole is in {path}, which read can page"


def _whole_lines(captured: Captured) -> tuple[bytes, bytes]:
    """Head and tail, cut back to line ends where the lines are not endless."""
    head, tail = captured.head, captured.tail
    end = head.rfind(b"\n") + 1
    head = head[:end] if end > len(head) // 2 else _without_cut_character(head)
    start = tail.find(b"\n") + 1
    tail = tail[start:] if 0 < start < len(tail) // 2 else tail.lstrip(bytes(range(0x80, 0xC0)))
    return head, tail


def _without_cut_character(data: bytes) -> bytes:
    """`data` without a character that was cut in two at its end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _ending_note(args: BashArguments, outcome: ProcessOutcome) -> str:
    """How the command ended, unless it ended well."""
    if outcome.ending == "timeout":
        return f"stopped: it ran longer than {args.timeout:g} s; everything it had started was ended"
    if outcome.ending == "cancelled":
        return "stopped before its end; everything it had started was ended"
    code = outcome.returncode
    if code is not None and code < 0:
        return f"ended by signal {-code} ({signal.strsignal(-code)})"
    return f"exit code {code}" if code else ""


def _ended_note(outcome: ProcessOutcome) -> str:
    """What was still running when the command itself had ended."""
    if outcome.ending != "exited" or not outcome.ended:
        return ""
    return f"left running in the background, and ended: {', '.join(outcome.ended)}"
