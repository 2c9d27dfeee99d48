"""The headless process of a unit: command line, environment, first message, streams; it ends with all it started."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.pipes import LineReader, PipeWriter, signal_group
from tui_agent.protocol.secret_variables import is_secret_variable

from .unit_events import depth_of, fields_of, type_of
from .worker_messages import UnitGranted

RESUMED = (
    "This task was interrupted, and you continue it in a new process, perhaps on another machine. The files are as "
    "they were after your last finished call; ignored files are gone. A call that was running at that moment may have "
    "had an effect outside the working directory: check that before you repeat it. Continue with the task."
)


@dataclass(frozen=True, slots=True)
class JournalState:
    """Progress of a unit, as its journal has it."""

    begun: bool = False
    """True if the prompt is part of the conversation."""
    done: bool = False
    """True if the last run ended by itself."""


def journal_state(journal: bytes) -> JournalState:
    """Return how far a unit came."""
    begun = done = False
    for line in journal.split(b"\n"):
        # Sub-agents have runs of their own, whose ends are not that of the unit.
        if depth_of(line):
            continue
        match type_of(line):
            case "run.started":
                done = False
            case "run.ended":
                done = fields_of(line).get("reason") == "done"
            case "message.ended":
                begun = True
            case _:
                pass
    return JournalState(begun, done)


def session_id(task: UnitTask) -> str:
    """Return the id of a unit's session."""
    return f"unit-{task.id.replace('.', '-')}"


def first_message(granted: UnitGranted) -> bytes | None:
    """Return the first line for the process; None if there is nothing left to ask for."""
    state = journal_state(granted.journal)
    # Without the prompt in the conversation, a note about its check would be the first thing that the model reads.
    if granted.note and state.begun:
        text = granted.note
    elif state.done:
        return None
    else:
        text = RESUMED if state.begun else granted.task.prompt
    return json.dumps({"type": "user", "text": text}).encode()


def unit_argv(program: tuple[str, ...], granted: UnitGranted) -> list[str]:
    """Return the command line of a unit's process. It holds no key and no prompt."""
    task, rights = granted.task, granted.task.permissions
    argv = [*program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--include-deltas"]
    argv += ["--permission-mode", rights.mode.value]
    for option, rules in (("--allow", rights.allow), ("--ask", rights.ask), ("--deny", rights.deny)):
        # In one word: a rule may begin with a dash.
        argv += [f"{option}={rule}" for rule in rules]
    argv += [f"--model={task.model}"] if task.model else []
    return [*argv, *granted.options, "--resume" if granted.journal else "--session", session_id(task)]


def unit_environment(task: UnitTask, inherited: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment of a unit's process, with a state directory of its own below `home`.

    The user's settings stay readable. Blocks.
    """
    environment = dict(inherited)
    if settings := inherited.get("TUI_AGENT_HOME"):
        # The variable covers settings and sessions alike, so that a link leads back to the settings.
        own = home / "home"
        own.mkdir(mode=0o700)
        (own / "config").symlink_to(Path(settings).absolute() / "config")
        environment["TUI_AGENT_HOME"] = str(own)
    else:
        environment["XDG_STATE_HOME"] = str(home / "state")
    if task.permissions.allow:
        # Rules that allow calls hold only for commands in a trial.
        environment["TUI_AGENT_SANDBOX"] = "required"
    if task.budget is not None:
        environment["TUI_AGENT_BUDGET__COST_USD"] = repr(task.budget)
    return environment


def journal_path(task: UnitTask, environment: Mapping[str, str]) -> Path:
    """Return the path of the unit's journal on its worker."""
    if own := environment.get("TUI_AGENT_HOME"):
        state = Path(own) / "state"
    else:
        state = Path(environment["XDG_STATE_HOME"]) / "tui-agent"
    return state / "sessions" / f"{session_id(task)}.jsonl"


class UnitFailureError(TuiAgentError):
    """A unit cannot start or continue. The text is the reason, in words for the user."""


KEPT_OUTPUT = 64 * 1024
LARGEST_EVENT = 256 * 1024 * 1024
"""Bytes of a line of a unit's output above which only its beginning is read."""
GRACE = 6.0
"""Seconds between TERM and KILL: a headless process ends its run, its commands and its journal first."""
DRAIN = 1.0
"""Longest wait in seconds for the rest of an output after the end of its process."""

_SHORTEST_SECRET = 6


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with the values of secret variables hidden."""
    values = {value for name, value in environment.items() if _hides(name, value)}
    # The longest first: one secret may be the beginning of another.
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _hides(name: str, value: str) -> bool:
    return len(value) >= _SHORTEST_SECRET and is_secret_variable(name, value)


class UnitProcess:
    """A process in a session of its own. It dies with this process, even if that is killed."""

    def __init__(self, process: asyncio.subprocess.Process, stdin: int, stdout: int) -> None:
        self._process = process
        self._descriptors = (stdin, stdout)
        self._input = PipeWriter(stdin)
        self._input.start()
        self._input_open = True
        self.lines = LineReader(stdout, longest=LARGEST_EVENT)
        self.lines.start()

    def put(self, line: bytes) -> None:
        """Write a line to its standard input; nothing once that is closed."""
        if self._input_open:
            self._input.put(line + b"\n")

    async def close_input(self) -> None:
        """End its standard input."""
        if self._input_open:
            self._input_open = False
            self._input.end()
            await self._input.drained()
            os.close(self._descriptors[0])

    async def ended(self) -> int:
        """Wait for its end and return its exit code."""
        return await self._process.wait()

    async def end(self) -> None:
        """End it with everything that it started: TERM, and KILL after `GRACE` seconds."""
        try:
            await end_group(self._process, GRACE)
        finally:
            if self._input_open:
                self._input_open = False
                self._input.abandon()
                self._input.end()


async def end_group(process: asyncio.subprocess.Process, grace: float) -> None:
    """End a process and what it left in its group: TERM, and KILL after these seconds or once it has ended."""
    try:
        if process.returncode is None:
            signal_group(process.pid, signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await process.wait()
    finally:
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()


async def start_process(argv: Sequence[str], cwd: Path, environment: Mapping[str, str], errors: Path) -> UnitProcess:
    """Start a process with pipes for its input and output; its errors go to the file `errors`, which is replaced.

    Raises:
        UnitFailureError: it cannot be started.
    """
    stdin, our_stdin = os.pipe2(os.O_CLOEXEC)
    our_stdout, stdout = os.pipe2(os.O_CLOEXEC)
    try:
        with errors.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *dying_with_us(),
                *argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
            )
    except OSError as error:
        os.close(our_stdin)
        os.close(our_stdout)
        raise UnitFailureError(f"the unit's process cannot be started: {error.strerror or error}") from error
    finally:
        os.close(stdin)
        os.close(stdout)
    return UnitProcess(process, our_stdin, our_stdout)


@cache
def dying_with_us() -> tuple[str, ...]:
    """Return the beginning of a command line that makes the kernel kill a process with this one, if there is setpriv.

    Blocks.
    """
    # A worker that is killed runs no code that could end its units.
    argv = ("setpriv", "--pdeathsig", "KILL", "--")
    try:
        subprocess.run((*argv, "true"), capture_output=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ()
    return argv


async def run_shell(
    command: str, cwd: Path, environment: Mapping[str, str], sandbox: Sequence[str] = ()
) -> tuple[int, str]:
    """Run a shell command without the secrets of the environment; what it left in its process group ends with it.

    `sandbox` is the start of the command line that confines it. Return the exit code, and the last `KEPT_OUTPUT` bytes
    of its output and errors.

    Raises:
        UnitFailureError: it cannot be started.
    """
    kept = {name: value for name, value in environment.items() if not is_secret_variable(name, value)}
    # A pipe of our own: asyncio takes a process for running while another one has its output open.
    our_stdout, stdout = os.pipe2(os.O_CLOEXEC)
    reader = asyncio.StreamReader()
    output = bytearray()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_stdout, "rb", buffering=0)
    )
    try:
        process = await asyncio.create_subprocess_exec(
            *(*dying_with_us(), *sandbox, "bash", "--noprofile", "--norc", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=kept,
            start_new_session=True,
        )
    except OSError as error:
        transport.close()
        raise UnitFailureError(f"the verification cannot be started: {error.strerror or error}") from error
    finally:
        os.close(stdout)
    try:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(_keep_end(reader, output))
            await process.wait()
            signal_group(process.pid, signal.SIGKILL)
            # What it left in a session of its own may keep its output open.
            await asyncio.wait([reading], timeout=DRAIN)
            reading.cancel()
    finally:
        transport.close()
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()
    return process.returncode or 0, output.decode("utf-8", "replace")


async def _keep_end(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while piece := await stream.read(KEPT_OUTPUT):
        kept += piece
        del kept[:-KEPT_OUTPUT]
