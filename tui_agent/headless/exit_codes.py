"""Exit codes of headless runs."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import assert_never

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import RETRYABLE_KINDS
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    RunStarted,
    StepStarted,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.reports import AgentRunReport


class ExitCode(IntEnum):
    """Exit code of the process; stable, so that scripts can rely on it."""

    DONE = 0
    FAILED = 1
    """An error, a guardrail, a budget, a loop, a refused input, or a session that could not be saved."""
    USAGE = 2
    """Wrong option or setting; nothing was done."""
    MAX_STEPS = 3
    NOBODY_TO_ASK = 4
    """A call of the last step needed an approval that no one could give; see `UnansweredApprovals`."""
    RETRY_LATER = 75
    """Rate limit, overload or network error."""
    INTERRUPTED = 130


@dataclass(slots=True)
class UnansweredApprovals:
    """Detects a run that ended because no one could answer a request for approval.

    That is the case if, in the last step with calls, a call was denied because no one could answer, and no call that
    changes anything succeeded. A denied call alone is not a failure: an agent that makes further calls, or succeeds
    with another one, could continue.
    """

    stuck: bool = False
    """True if the root agent's newest run ended that way; final once it has ended."""
    _refused: bool = False
    _changed_something: bool = False
    _asked: set[str] = field(default_factory=set[str])
    _may_change: set[str] = field(default_factory=set[str])

    def apply(self, envelope: Envelope) -> None:
        """Apply the next event."""
        # A sub-agent reports to its agent, which may still do without the call.
        if envelope.origin.depth:
            return
        match envelope.event:
            case RunStarted():
                self.stuck = False
            case StepStarted():
                self._refused = self._changed_something = False
            case ApprovalRequested(question=question, request_id=request_id):
                if question is not None and not question.server:
                    self._asked.add(request_id)
            case ApprovalResolved(by=by, request_id=request_id):
                # Without an answer to a question, the agent decides itself.
                self._refused |= by in ("nobody", "timeout") and request_id not in self._asked
                self._asked.discard(request_id)
            case ToolStarted(call_id=call_id, read_only=False):
                self._may_change.add(call_id)
            case ToolEnded(call_id=call_id, is_error=is_error):
                self._changed_something |= not is_error and call_id in self._may_change
                self._may_change.discard(call_id)
                self.stuck = self._refused and not self._changed_something
            case _:
                pass


def code_of(report: AgentRunReport, *, stuck: bool = False) -> ExitCode:
    """Return the exit code for a run.

    Args:
        stuck: `UnansweredApprovals.stuck` of the run.
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
