"""How a headless run ended, as a number (interface §1)."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import assert_never

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import RETRYABLE_KINDS
from tui_agent.protocol.events import ApprovalResolved, RunStarted, StepStarted, ToolEnded, ToolStarted
from tui_agent.protocol.reports import AgentRunReport


class ExitCode(IntEnum):
    """What a script may rely on."""

    DONE = 0
    FAILED = 1
    """An error, a guardrail, a budget, a loop, or input that was refused."""
    USAGE = 2
    """An option or setting is wrong; nothing was done."""
    MAX_STEPS = 3
    NOBODY_TO_ASK = 4
    """The last thing it tried needed an answer that nobody could give; see `UnansweredApprovals`."""
    RETRY_LATER = 75
    """Rate limit, overload, network."""
    INTERRUPTED = 130


@dataclass(slots=True)
class UnansweredApprovals:
    """Finds out whether a run came to its end because nobody could be asked.

    It did if, in the last step that called tools, a call was refused because nobody could answer and no call that
    changes anything succeeded. A denied call alone is no failure: whoever goes on to another step with calls, or gets
    something done beside it, could go on.
    """

    stuck: bool = False
    """Whether the root agent's newest run ended that way; final once it has ended."""
    _refused: bool = False
    _changed_something: bool = False
    _may_change: set[str] = field(default_factory=set[str])

    def apply(self, envelope: Envelope) -> None:
        """Takes the next event."""
        if envelope.origin.depth:
            return
        match envelope.event:
            case RunStarted():
                self.stuck = False
            case StepStarted():
                self._refused = self._changed_something = False
            case ApprovalResolved(by=by):
                self._refused |= by in ("nobody", "timeout")
            case ToolStarted(call_id=call_id, read_only=False):
                self._may_change.add(call_id)
            case ToolEnded(call_id=call_id, is_error=is_error):
                self._changed_something |= not is_error and call_id in self._may_change
                self._may_change.discard(call_id)
                self.stuck = self._refused and not self._changed_something
            case _:
                pass


def code_of(report: AgentRunReport, *, stuck: bool = False) -> ExitCode:
    """The number for a run.

    Args:
        report: what the run left behind.
        stuck: what `UnansweredApprovals` found.
    """
    match report.reason:
        case "done" | "stopped" | "terminated":
            return ExitCode.NOBODY_TO_ASK if stuck else ExitCode.DONE
        case "aborted":
            return ExitCode.INTERRUPTED
        case "max_steps":
            return ExitCode.MAX_STEPS
        case "error":
            return ExitCode.RETRY_LATER if report.error_kind in RETRYABLE_KINDS else ExitCode.FAILED
        case "guardrail" | "budget" | "loop_detected" | "input_rejected":
            return ExitCode.FAILED
        case _:
            assert_never(report.reason)
