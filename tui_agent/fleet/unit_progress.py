"""Fold of a unit's events into its row."""

import json
from dataclasses import dataclass

from pydantic import ValidationError

from tui_agent.protocol.fleet_records import UnitChanges, UnitRow, UnitState, UnitTask, WorkerSpan
from tui_agent.protocol.messages import JsonObject, is_array, is_object, now_ms
from tui_agent.protocol.permissions import ApprovalRequest

from .unit_events import seq_of, type_of

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
    """Seconds that the unit waits."""


@dataclass(frozen=True, slots=True)
class UnitEnding:
    """End of a unit."""

    state: UnitState
    reason: str = ""
    verified: bool | None = None
    changes: UnitChanges | None = None


class UnitProgress:
    """State of one unit, from its events and from what the driver decides."""

    def __init__(self, unit: UnitTask) -> None:
        self.row = UnitRow(unit=unit)
        self.last_seq = 0
        """Number of the last event."""
        self.questions: dict[str, ApprovalRequest] = {}
        """Open requests for approval, by id."""
        self.final_text = ""
        """Text of the last run."""
        self.run_ended = False
        """True if no run is active."""
        self._settled = 0
        """Spans before the last end of the unit."""

    def apply(self, line: bytes) -> RateLimitMet | None:
        """Apply an event that is saved, if it is newer than the last one."""
        self.last_seq = max(self.last_seq, seq_of(line))
        kind = type_of(line)
        if kind not in _TOLD:
            return None
        try:
            record: object = json.loads(line)
        except ValueError:
            return None
        data = record.get("data") if is_object(record) else None
        if is_object(record) and is_object(data):
            return self._apply(kind, data, is_root=not record.get("depth"))
        return None

    @property
    def used(self) -> float:
        """Seconds of the time limit that lost workers used since the unit began, or since its last end."""
        return sum((span.ended or span.started) - span.started for span in self.row.spans[self._settled :]) / 1000

    def restore_spans(self, spans: tuple[WorkerSpan, ...], last_sign: int) -> None:
        """Take the spans that a driver recorded when it granted the unit.

        Args:
            spans: the spans; the last one is open.
            last_sign: time until which that driver lived at least, in milliseconds since the epoch.
        """
        *earlier, last = spans
        self._change(spans=(*earlier, last.lost_at(last_sign)))

    def restore_end(self, row: UnitRow) -> None:
        """Take the row that a driver recorded at the unit's end; the time limit counts from there."""
        self.row = row
        self._settled = len(row.spans)

    def begin(self, worker: str, epoch: int) -> None:
        """Note that a worker got the unit."""
        span = WorkerSpan(worker=worker, started=now_ms())
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

    def end(self, ending: UnitEnding) -> None:
        """Note the end of the unit."""
        self.questions.clear()
        self._change(
            state=ending.state,
            reason=ending.reason,
            verified=ending.verified,
            changes=ending.changes,
            spans=self._ended_spans(lost=False),
        )

    def _apply(self, kind: str, data: JsonObject, *, is_root: bool) -> RateLimitMet | None:
        match kind:
            case "step.retry" if data.get("status") in RATE_LIMITED:
                wait = data.get("wait_s")
                return RateLimitMet(wait if isinstance(wait, int | float) else 0.0)
            case "approval.requested":
                self._ask(data)
            case "approval.resolved":
                self.questions.pop(str(data.get("request_id")), None)
                self._show_running()
            case "tool.started":
                self._change(activity=_in_one_line(data.get("summary") or data.get("name")))
            case "tool.ended" if data.get("status") == "interrupted":
                self._change(unknown_effects=self.row.unknown_effects + 1)
            case "message.ended" if is_root:
                self._show_text(data.get("message"))
            case "usage.updated" if is_root:
                self._count(data)
            case "step.started" if is_root:
                self._change(step=self.row.step + 1)
                self._show_running()
            case "run.started" if is_root:
                self.run_ended = False
                self._show_running()
            case "run.ended" if is_root:
                self.run_ended = True
                self.final_text = str(data.get("final_text") or "")
                self.questions.clear()
                self._change(state="verifying" if self.row.unit.verify else self.row.state)
            case _:
                pass
        return None

    def _ask(self, data: JsonObject) -> None:
        try:
            request = ApprovalRequest.model_validate({key: value for key, value in data.items() if key != "type"})
        except ValidationError:
            return
        self.questions[request.request_id] = request
        self._show_running()

    def _show_running(self) -> None:
        if not self.row.ended:
            self._change(state="asking" if self.questions else "running")

    def _show_text(self, message: object) -> None:
        content = message.get("content") if is_object(message) and message.get("role") == "assistant" else None
        blocks = [block for block in content if is_object(block)] if is_array(content) else []
        if any(block.get("type") == "tool_call" for block in blocks):
            return  # Its calls say what the unit does, and may have begun before this event.
        for block in blocks:
            text = block.get("text")
            if isinstance(text, str) and text.strip():
                self._change(activity=_in_one_line(text.strip()))

    def _count(self, data: JsonObject) -> None:
        total, cost = data.get("total"), data.get("cost")
        if is_object(total):
            read = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
            self._change(
                input_tokens=sum(value for name in read if isinstance(value := total.get(name), int)),
                output_tokens=value if isinstance(value := total.get("output_tokens"), int) else 0,
                cost=float(cost) if isinstance(cost, int | float) else self.row.cost,
            )

    def _ended_spans(self, *, lost: bool) -> tuple[WorkerSpan, ...]:
        """Return the spans with the open one ended now."""
        end = {"ended": now_ms(), "lost": lost}
        return tuple(span if span.ended is not None else span.model_copy(update=end) for span in self.row.spans)

    def _change(self, **fields: object) -> None:
        self.row = self.row.model_copy(update=fields)


def _in_one_line(text: object) -> str:
    return " ".join(str(text or "").split())[:_LONGEST_ACTIVITY]
