"""Print mode: one run, or one run after another until the input ends, without a screen.

Like any other front end, it follows the runs through the events on the bus.
"""

import asyncio
import codecs
import os
import select
import signal
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.errors import ConfigurationError, TuiAgentError
from tui_agent.protocol.events import Failed
from tui_agent.protocol.messages import now_ms
from tui_agent.protocol.pipes import LineReader, PipeWriter, read_everything
from tui_agent.protocol.reports import AgentRunReport

from .command_handler import CommandHandler, Listener, PromptQueue
from .exit_codes import ExitCode
from .plain_commands import PlainCommands
from .plain_mode_output import INTRODUCTION, Describe, PlainReporter, in_lines
from .reporters import OutputFormat, ReadAnswer, describe_briefly, reporter_for

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import Workbench

InputFormat: TypeAlias = Literal["text", "stream-json", "plain"]

ABORT_TIMEOUT = 4.0
"""Seconds after an abort before the task of the run is cancelled."""

OUTPUT_FLUSH_TIMEOUT = 0.5
"""Seconds to wait for a reader that does not read, at the end of an interrupted program."""

_SILENT_PIPE = (
    "tui-agent: warning: Standard input stayed silent, so it is not part of the prompt. To wait for it, pass the whole "
    "prompt there, with -p -.\n"
)
SILENCE_OF_A_PIPE = 3.0
"""Seconds to wait for the first byte of a pipe beside a prompt in the arguments."""

MAX_INPUT = 10 * 1024**2
"""Largest standard input in bytes."""
LONGEST_INPUT = 500_000
"""Most characters of standard input in a prompt."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class HeadlessOptions:
    """Options of print mode."""

    prompt: str | None = None
    """Input of the first run; optional unless the input format is `text`."""
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"
    include_deltas: bool = False
    read_answer: ReadAnswer | None = None
    """Reads the value of a final answer that must match a JSON schema; None: final answers are text."""

    @property
    def interactive(self) -> bool:
        """True if a client reads requests for approval and can answer them; for the agent's `ApprovalGate`."""
        return self.input_format == self.output_format != "text"


@dataclass(frozen=True, slots=True)
class StandardStreams:
    """File descriptors of the standard streams."""

    stdin: int = 0
    stdout: int = 1
    stderr: int = 2


def read_prompt(argument: str | None, streams: StandardStreams | None = None) -> str:
    """Return the prompt: the argument, all of standard input, or both. Blocks.

    If the argument is `-`, or missing and the input is not a terminal, the prompt is the input. Otherwise the text of a
    pipe or a file follows the argument, as in `git diff | tui-agent -p "review this"`. A pipe that stays silent for
    `SILENCE_OF_A_PIPE` is ignored with a warning, because it may belong to a parent process that never closes it. Of a
    long input the middle is left out, with a warning.

    Raises:
        ConfigurationError: the prompt is empty, or the input is binary or larger than `MAX_INPUT`.
    """
    streams = streams or StandardStreams()
    stdin = streams.stdin
    if argument == "-" or (argument is None and not os.isatty(stdin)):
        prompt = _text_of_input(streams)
    else:
        prompt = argument or ""
        piped = _text_of_input(streams) if prompt.strip() and _brings_text(streams) else ""
        if piped.strip():
            prompt = f"{prompt}\n\n<stdin>\n{piped.strip(chr(10))}\n</stdin>"
    if not prompt.strip():
        raise ConfigurationError("-p needs a prompt: as an argument, or on standard input.")
    return prompt


def _text_of_input(streams: StandardStreams) -> str:
    content = read_everything(streams.stdin, MAX_INPUT)
    if len(content) > MAX_INPUT:
        size = MAX_INPUT // 1024**2
        raise ConfigurationError(f"standard input has more than {size} MB; name the file in the prompt instead")
    # Text in UTF-16 is full of zero bytes, which otherwise tell binary data.
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not is_utf_16 and b"\0" in content:
        raise ConfigurationError("standard input is not text; for an image or a PDF, name it in the prompt: @FILE")
    text = content.decode("utf-16" if is_utf_16 else "utf-8", "replace").removeprefix("\ufeff")
    if len(text) <= LONGEST_INPUT:
        return text
    left_out = len(text) - LONGEST_INPUT
    head = LONGEST_INPUT * 4 // 5
    note = f"{left_out:,} characters in the middle of standard input are left out"
    with suppress(OSError):
        os.write(streams.stderr, f"tui-agent: warning: {note}: it is too long for a prompt.\n".encode())
    return f"{text[:head]}\n[{note}]\n{text[head + left_out :]}"


def _brings_text(streams: StandardStreams) -> bool:
    """True if the input is a file, or a pipe that does not stay silent."""
    stdin = streams.stdin
    try:
        mode = os.fstat(stdin).st_mode
        # A file ends; a pipe that a parent process never closes would be waited for without end.
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            if select.select([stdin], [], [], SILENCE_OF_A_PIPE)[0]:
                return True
            os.write(streams.stderr, _SILENT_PIPE.encode())
            return False
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode)


async def run_headless(
    bench: "Workbench",
    options: HeadlessOptions,
    *,
    streams: StandardStreams | None = None,
    describe: Describe = describe_briefly,
) -> int:
    """Run the agent of a session without a screen and return the exit code of the process.

    INT, TERM and HUP abort the run, a second one cancels it; both end in code 130. Cancelling this function cancels the
    run. Call it in the main thread.

    Args:
        bench: the open session; it is `watched` if `options.interactive` is true.
        describe: returns the lines of a question for the format `plain`.

    Raises:
        ConfigurationError: there is no prompt, and the input format is `text`.
    """
    if options.input_format == "text" and not options.prompt:
        raise ConfigurationError("-p needs a prompt: as an argument, or on standard input.")
    streams = streams or StandardStreams()
    output, errors = PipeWriter(streams.stdout), PipeWriter(streams.stderr)
    output.start()
    errors.start()
    try:
        # From the first event on: what the session said while it opened is part of the stream.
        with bench.events.subscribe(since=0) as heard:
            reporter = reporter_for(
                options.output_format,
                include_deltas=options.include_deltas,
                session_id=bench.events.origin.session_id,
                terminal=os.isatty(streams.stdout),
                describe=describe,
                rule_for=bench.rules.narrowest,
                read_answer=options.read_answer,
            )
            listener = Listener(bench, heard, reporter, output, errors, answers=options.interactive)
            service = _Service(bench, listener, output)
            if isinstance(reporter, PlainReporter):
                service.take_lines(reporter)
            with _on_signal(service.interrupt):
                await service.serve(options, streams.stdin, heard.close)
                return await service.finish(errors)
    finally:
        output.end()
        errors.end()


class _Service:
    """One headless program from its first prompt to its exit code."""

    def __init__(self, bench: "Workbench", listener: Listener, output: PipeWriter) -> None:
        self._bench = bench
        self._agent = bench.agent
        self._listener = listener
        self._output = output
        self._prompts = PromptQueue()
        self._runs: asyncio.Task[None] | None = None
        self._failure = ExitCode.DONE
        """Exit code if the last run could not start."""
        self._interrupted = False
        self._typed: PlainCommands | None = None

    def take_lines(self, reporter: PlainReporter) -> None:
        """Take typed lines instead of JSON commands."""

        def say(*lines: str) -> None:
            self._output.put(in_lines(lines))

        self._typed = PlainCommands(self._bench, self._prompts, reporter, say)
        say(INTRODUCTION)

    async def serve(self, options: HeadlessOptions, stdin: int, hang_up: Callable[[], None]) -> None:
        """Run all prompts; return once all events are processed."""
        if options.prompt:
            self._prompts.put(options.prompt)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listener.listen())
            self._runs = tasks.create_task(self._run_prompts(stdin))
            helpers = [tasks.create_task(self._watch_output())]
            if options.input_format != "text":
                helpers.append(tasks.create_task(self._read_commands(stdin)))
            else:
                self._prompts.close()
            await asyncio.wait([self._runs])
            # Before the subscription closes, so that the ends of the commands are in the stream.
            await self._bench.jobs.end_all()
            for helper in helpers:
                helper.cancel()
            hang_up()
            if self._interrupted:
                self._abandon_output_later()

    async def finish(self, errors: PipeWriter) -> int:
        """Wait until everything is written and return the exit code."""
        code = self._failure or self._listener.code
        # Only of a run that did well: any other code tells more.
        if code is ExitCode.DONE and self._listener.is_unsaved:
            code = ExitCode.FAILED
        self._output.end()
        await self._output.drained()
        if self._output.error is not None:
            self._listener.say(f"error: the output could not be written ({self._output.error.strerror})")
            code = ExitCode.FAILED if code in (ExitCode.DONE, ExitCode.INTERRUPTED) else code
        errors.end()
        # Standard error may be a pipe that no one reads.
        asyncio.get_running_loop().call_later(OUTPUT_FLUSH_TIMEOUT, errors.abandon)
        await errors.drained()
        return int(ExitCode.INTERRUPTED if self._interrupted else code)

    def interrupt(self, name: str) -> None:
        """Abort the run at the first signal; cancel it at the second, or if it does not end in time.

        In plain mode, ctrl+c first cancels the run, and quits the second time.
        """
        runs = self._runs
        if self._typed is not None and name == signal.SIGINT.name and self._typed.absorbs_interrupt():
            return
        if runs is None or runs.done():
            self._interrupted = True
            self._abandon_output_later()
        elif self._interrupted:
            runs.cancel()
        else:
            self._interrupted = True
            self._prompts.close(discard=True)
            if self._agent.running:
                self._agent.abort(f"{PROGRAM_QUIT} ({name})")
            # A tool may ignore the abort, and the user waits for the shell.
            asyncio.get_running_loop().call_later(ABORT_TIMEOUT, runs.cancel)

    def _abandon_output_later(self) -> None:
        asyncio.get_running_loop().call_later(OUTPUT_FLUSH_TIMEOUT, self._output.abandon)

    async def _run_prompts(self, stdin: int) -> None:
        """Run one prompt after another; first resume calls that waited for approval when the program ended."""
        if self._agent.pending_calls:
            await self._run(None, typed=True)
        types_lines = self._typed is not None and os.isatty(stdin)
        while (prompt := await self._prompts.next()) is not None:
            # Soon, and not now: the run has begun only once the agent has been called.
            asyncio.get_running_loop().call_soon(self._prompts.mark_started)
            # The rest comes from other programs, such as text of a pipe beside the argument.
            await self._run(prompt, typed=types_lines or prompt == self._bench.options.prompt)

    async def _run(self, prompt: str | None, *, typed: bool) -> None:
        self._failure = ExitCode.DONE
        try:
            await (self._agent.run(None) if prompt is None else self._bench.prompts.run(prompt, typed=typed))
        except TuiAgentError as error:
            self._failure = ExitCode.USAGE if isinstance(error, ConfigurationError) else ExitCode.FAILED
            self._listener.sum_up(_failed_report(prompt or "", str(error)), self._failure)
            self._bench.events.publish(Failed(code="run_failed", text=str(error)))

    async def _read_commands(self, stdin: int) -> None:
        lines = LineReader(stdin)
        lines.start()
        quits = False
        if self._typed is not None:
            quits = await self._typed.serve(lines)
        else:
            await CommandHandler(self._bench, self._prompts, self._complain).serve(lines)
        self._prompts.close(discard=quits)
        if quits and self._agent.running:
            self._agent.abort(PROGRAM_QUIT)
        # With the end of the input, the only client that could answer is gone.
        self._listener.deny_approvals()

    def _complain(self, text: str, line: int) -> None:
        self._bench.events.publish(Failed(code="bad_input_line", text=text, context={"line": line}))

    async def _watch_output(self) -> None:
        """Abort the run when the output is closed."""
        # Noticed without a write: `head` may have left while the model still thinks.
        await self._output.closed_by_reader.wait()
        self._prompts.close(discard=True)
        if self._agent.running:
            error = self._output.error
            why = "the output was closed" if error is None else f"cannot write the output: {error.strerror}"
            self._agent.abort(f"{PROGRAM_QUIT} ({why})")


@contextmanager
def _on_signal(act: Callable[[str], None]) -> Generator[None, None, None]:
    """Call `act` with the name of each signal that would end the program; restore earlier handlers on exit."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, act, number.name)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            # None stands for a handler that was not set from Python, which cannot be set back.
            if handler is not None:
                signal.signal(number, handler)


def _failed_report(prompt: str, error: str) -> AgentRunReport:
    """Return the report of a run that could not start."""
    now = now_ms()
    return AgentRunReport(
        id="",
        model="",
        started_at=now,
        completed_at=now,
        total_ms=0.0,
        reason="error",
        user_message=prompt,
        final_text="",
        error=error,
    )
