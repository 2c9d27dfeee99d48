"""Fold of a unit's events into its row, the files of its end, and the pauses of all units after rate limits."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    MessageEnded,
    RunEnded,
    RunStarted,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolStarted,
    UsageUpdated,
)
from tui_agent.protocol.fleet_records import UnitRow, UnitState, UnitTask, WorkerSpan
from tui_agent.protocol.messages import AssistantMessage, TextBlock, now_ms
from tui_agent.protocol.permissions import ApprovalRequest

from .unit_events import seq_of, type_of
from .worker_messages import UnitEnded

_TOLD = frozenset({"run.started", "run.ended", "step.started", "step.retry", "message.ended", "tool.started"}) | {
    *("tool.ended", "usage.updated", "approval.requested", "approval.resolved")
}
"""Types of events that change a row."""
_LONGEST_ACTIVITY = 200
RATE_LIMITED = (429, 529)


@dataclass(frozen=True, slots=True)
class RateLimitMet:
    """A unit's request was refused because of a rate limit."""

    wait: float


class UnitProgress:
    """State of one unit, from its events and from what the driver decides."""

    def __init__(self, unit: UnitTask) -> None:
        self.row = UnitRow(unit=unit)
        self.last_seq = 0
        self.questions: dict[str, ApprovalRequest] = {}
        self.final_text = ""
        self.run_ended = False
        self._settled = 0
        """Spans before the last end of the unit."""

    def apply(self, line: bytes) -> RateLimitMet | None:
        """Apply a saved event that is newer than `last_seq`; return the rate limit that it reports, else None."""
        self.last_seq = max(self.last_seq, seq_of(line))
        # Most events change no row, and to read one as a record costs far more than to find its type.
        if type_of(line) not in _TOLD:
            return None
        try:
            envelope = read_envelope(line)
        except ValueError:
            return None
        return self._apply(envelope.event, is_root=not envelope.origin.depth) if envelope is not None else None

    @property
    def used(self) -> float:
        """Seconds of the time limit that lost workers used since the unit began, or since its last end."""
        return sum((span.ended or span.started) - span.started for span in self.row.spans[self._settled :]) / 1000

    def restore_spans(self, spans: tuple[WorkerSpan, ...], last_sign: int) -> None:
        """Take the spans that a driver recorded when it granted the unit; the last one is open.

        It lived at least until `last_sign`, in milliseconds since the epoch.
        """
        *earlier, last = spans
        self._change(spans=(*earlier, last.lost_at(last_sign)))

    def restore_end(self, row: UnitRow) -> None:
        """Take the row that a driver recorded at the unit's end; the time limit counts from there."""
        self.row = row
        # A retry has the whole time again; a lost worker has not.
        self._settled = len(row.spans)

    def begin(self, worker: str, epoch: int) -> None:
        """Note that a worker got the unit."""
        span = WorkerSpan(worker=worker, started=now_ms())
        # The epoch, and not the journal: a worker that died before its first event has already claimed.
        state: UnitState = "starting" if epoch == 1 else "resuming"
        self.questions.clear()
        self._change(state=state, epoch=epoch, spans=(*self._ended_spans(lost=True), span), reason="", verified=None)

    def lose_worker(self) -> None:
        """Note that the unit's worker is gone."""
        if not self.row.ended:
            self.questions.clear()
            self._change(state="resuming", spans=self._ended_spans(lost=True))

    def queue(self) -> None:
        """Let a unit continue that ended, or whose driver died."""
        self.questions.clear()
        self._change(state="queued", reason="")

    def end(self, state: UnitState, ended: UnitEnded) -> None:
        """Note the end of the unit."""
        self.questions.clear()
        self._change(
            state=state,
            reason=ended.reason,
            verified=ended.verified,
            changes=ended.changes,
            spans=self._ended_spans(lost=False),
        )

    def _apply(self, event: AgentEvent, *, is_root: bool) -> RateLimitMet | None:
        match event:
            case StepRetry(status=status, wait_s=wait) if status in RATE_LIMITED:
                return RateLimitMet(wait)
            case ApprovalRequested(request_id=request_id):
                self.questions[request_id] = event
                self._show_running()
            case ApprovalResolved(request_id=request_id):
                self.questions.pop(request_id, None)
                self._show_running()
            case ToolStarted(name=name, summary=summary):
                self._change(activity=_in_one_line(summary or name))
            case ToolEnded(status="interrupted"):
                self._change(unknown_effects=self.row.unknown_effects + 1)
            case MessageEnded(message=AssistantMessage() as message) if is_root and not message.tool_calls:
                # With calls, these say what the unit does, and may have begun before this event.
                for block in message.content:
                    if isinstance(block, TextBlock) and block.text.strip():
                        self._change(activity=_in_one_line(block.text))
            case UsageUpdated(total=total, cost=cost) if is_root:
                self._change(
                    input_tokens=total.input_tokens + total.cache_read_tokens + total.cache_write_tokens,
                    output_tokens=total.output_tokens,
                    cost=self.row.cost if cost is None else cost,
                )
            case StepStarted() if is_root:
                self._change(step=self.row.step + 1)
                self._show_running()
            case RunStarted() if is_root:
                self.run_ended = False
                self._show_running()
            case RunEnded(final_text=text) if is_root:
                self.run_ended = True
                self.final_text = text
                self.questions.clear()
                self._change(state="verifying" if self.row.unit.verify else self.row.state)
            case _:
                pass
        return None

    def _show_running(self) -> None:
        if not self.row.ended:
            self._change(state="asking" if self.questions else "running")

    def _ended_spans(self, *, lost: bool) -> tuple[WorkerSpan, ...]:
        """Return the spans with the open one ended now."""
        end = {"ended": now_ms(), "lost": lost}
        return tuple(span if span.ended is not None else span.model_copy(update=end) for span in self.row.spans)

    def _change(self, **fields: object) -> None:
        self.row = self.row.model_copy(update=fields)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_ACTIVITY]


FIRST_WAIT = 2.0
LONGEST_WAIT = 120.0
QUIET = 60.0
"""Seconds without a rate limit after which the next one counts as the first."""


class RateLimits:
    """Decides how long the fleet waits."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._wait = FIRST_WAIT
        self._until = 0.0
        self._last = float("-inf")

    @property
    def left(self) -> float:
        """Seconds that the fleet still waits."""
        return max(0.0, self._until - self._clock())

    def meet(self, wait: float) -> float | None:
        """Note a rate limit that a unit met, which waits that many seconds.

        Return the seconds that the fleet waits from now; None if it waits that long already.
        """
        now = self._clock()
        if now - self._last > QUIET:
            self._wait = FIRST_WAIT
        elif now >= self._until:
            # Units that were asking already when the wait began tell nothing new.
            self._wait = min(LONGEST_WAIT, 2 * self._wait)
        self._last = now
        until = now + min(LONGEST_WAIT, max(wait, self._wait))
        # Requests of many units meet the same limit within a second.
        if until <= self._until + 1.0:
            return None
        self._until = until
        return until - now


def result_files(unit: UnitProgress, ended: UnitEnded) -> dict[str, bytes]:
    """Return the content of each file, by its path below the unit's directory."""
    row = unit.row
    record = row.model_dump(mode="json", exclude={"activity"}) | {"exit_code": ended.exit_code}
    files = {
        "result.json": json.dumps(record, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n",
        "stderr.log": ended.stderr.encode("utf-8", "replace"),
        "report.md": unit.final_text.encode("utf-8", "replace") + b"\n",
    }
    if ended.verified is not None:
        files["verify.txt"] = ended.verify_output.encode("utf-8", "replace")
    if ended.patch:
        files["patch/0001.patch"] = ended.patch
    return files
