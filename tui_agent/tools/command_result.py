"""The result of a command: its output and how it ended, as text for the model and as data for the screen."""

import re
import signal

from tui_agent.git.git_program import refusal_note
from tui_agent.protocol.messages import TERMINAL_OUTPUT, JsonObject
from tui_agent.protocol.permissions import DECIDED_BY_USER
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.protocol.visible_text import left_out_note, without_sequences

from .command_watch import NOT_WATCHED, CommandChanges
from .processes.background_jobs import Job
from .processes.captured_output import Captured, line_count, without_cut_character
from .processes.process import ProcessOutcome
from .text_format import printable

_LONGEST_OUTCOME = 200
_MISSES_TERMINAL = re.compile(
    r"(?i)not (?:from |to )?a (?:tty|terminal)|failed tty get|error opening terminal|"
    r"(?:needs|requires?) an? (?:interactive )?(?:tty|terminal)|(?:tty|terminal) is required|open /dev/tty"
)
"""Matches the message of a program that misses a terminal."""
_NAMES_FAILURE = re.compile(
    r"(?:^|[\s:])(?:FAILED|FAIL|ERROR|Error|error|fatal|panic)\b|(?:^|\s)ERR!|^\w*(?:Error|Exception):"
)
"""Matches a line that names a failure, as test programs, compilers and interpreters write it."""
_READ_ON = "bash_output returns what it prints from here on, kill_bash stops it; a message tells you when it ends"
_NO_TERMINAL = "commands have no terminal here: use options or a program that need none"
_NEEDS_TERMINAL = f"stopped: the command needs a terminal. It drew a screen and waited for keys, but {_NO_TERMINAL}"
LEAVE_TRIAL = "If the command needs that, repeat it with `sandbox: false`, which asks the user to run it outside."
"""Advice for the model after a refusal of a trial."""


def command_result(
    job: Job,
    outcome: ProcessOutcome,
    captured: Captured,
    context: ToolContext,
    *,
    limit: float,
    changes: CommandChanges = NOT_WATCHED,
    refused: str = "",
    discarded: str = "",
) -> ToolResult:
    """Return the output and the outcome, as text for the model and as data for the screen.

    Args:
        limit: seconds after which the command is stopped.
        refused: what its trial refused, in words.
        discarded: note on the changes that were discarded with its trial.
    """
    context.measure("exit_code", outcome.returncode if outcome.returncode is not None else -1)
    context.measure("output_bytes", captured.total)
    output = output_text(job.output.before_screen() if job.needs_terminal else captured)
    others = _ended_note(outcome) if job.left is None else _left_note(job, context)
    left = f"left running as {job.task_id}" if job.left is not None else ""
    ending = _NEEDS_TERMINAL if job.needs_terminal else _ending_note(limit, outcome)
    # A program that succeeded may print such words about something else.
    hint = _NO_TERMINAL if outcome.returncode and _MISSES_TERMINAL.search(output) and not job.needs_terminal else ""
    notes = [ending, hint, others, f"the trial refused this: {refused}. {LEAVE_TRIAL}" if refused else ""]
    notes += [refusal_note(output)] if has_failed(outcome) else []
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
    return ToolResult.of_text(text or "[no output]", is_error=has_failed(outcome), details=details | changes.details)


def left_result(job: Job, captured: Captured, context: ToolContext, changes: CommandChanges) -> ToolResult:
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


def has_failed(outcome: ProcessOutcome) -> bool:
    return outcome.ending != "exited" or outcome.returncode != 0


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
        # The last line of a failed test run is a summary; the first that names a failure says what went wrong.
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
    # One endless line has no line end, and a cut at the only one near the start would lose nearly all.
    end = head.rfind(b"\n") + 1
    head = head[:end] if end > len(head) // 2 else without_cut_character(head)
    start = tail.find(b"\n") + 1
    tail = tail[start:] if 0 < start < len(tail) // 2 else tail.lstrip(bytes(range(0x80, 0xC0)))
    return head, tail


def _text(data: bytes) -> str:
    return printable(data.decode("utf-8", "replace"))


def _ending_note(limit: float, outcome: ProcessOutcome) -> str:
    """Return a note on how the command ended; empty if it succeeded."""
    if outcome.ending == "timeout":
        return f"stopped after {limit:g} s, together with every process it had started"
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
