"""When a question to a person may open, and what becomes of the answer.

It opens by itself only when nothing was typed for a while; until then a line announces it. The one on the screen is
never replaced; whatever settles it elsewhere closes it. The answer carries the id of the question that was drawn.
"""

from typing import ClassVar

from textual.screen import SystemModalScreen
from textual.timer import Timer

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import FrozenModel
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.terminal_environment import Clock
from tui_agent.ui.bridge.agent_bridge import AgentBridge

from .approval_layout import ListRequested
from .approval_list_screen import Answer, ApprovalListScreen
from .approval_screen import ApprovalScreen
from .attention_line import AttentionLine
from .pending_approvals import HANDLED_EVENTS, PendingApprovals

QUIET_SECONDS = 0.5
"""How long nothing must have been typed before a dialog opens by itself."""


class ApprovalController:
    """Holds the questions of one chat screen and shows them one after another."""

    HANDLED_EVENTS: ClassVar[frozenset[type[FrozenModel]]] = HANDLED_EVENTS

    def __init__(self, screen: AnyScreen, bridge: AgentBridge, clock: Clock) -> None:
        self.line = AttentionLine(id="attention")
        """Announces requests whose dialog is not open."""
        self._screen = screen
        self._bridge = bridge
        self._clock = clock
        self._pending = PendingApprovals()
        self._dialog: ApprovalScreen | None = None
        self._drawn: ApprovalRequest | None = None
        self._list: ApprovalListScreen | None = None
        self._typed_at = float("-inf")
        self._timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """Open questions."""
        return len(self._pending)

    def note_keypress(self) -> None:
        """A key was pressed or something was pasted; in a dialog that is an answer and holds up no other one."""
        if self._dialog is None and self._list is None:
            self._typed_at = self._clock()

    def apply(self, envelope: Envelope) -> None:
        """Takes one event; a dialog whose question is settled closes, and one that stays counts those behind it."""
        if not self._pending.apply(envelope):
            return
        if self._list is not None:
            self._list.keep_only({request.request_id for request in self._pending.all})
        if self._dialog is None or self._drawn is None:
            return
        if self._drawn.request_id in self._pending:
            self._dialog.call_after_refresh(self._count)
        else:
            self._close()

    def show(self, pending: PendingApprovals) -> None:
        """Takes other questions in the place of those known, before one of them was opened."""
        self._pending = pending

    def look(self) -> None:
        """Opens the next question if it may open now; else announces what waits."""
        request = self._pending.next_to_open
        if request is not None and self._dialog is None and self._list is None:
            rest = self._typed_at + QUIET_SECONDS - self._clock()
            if rest > 0:
                self._schedule_check(rest)
            elif not isinstance(self._screen.app.screen, SystemModalScreen):
                self._open(request)
        self._announce()

    def open_next(self) -> None:
        """Opens the question that has waited longest, because a person asked for it."""
        if self._dialog is None and self._list is None and (request := self._pending.first) is not None:
            self._open(request)
            self._announce()

    def _open(self, request: ApprovalRequest) -> None:
        position, total = self._pending.position_of(request)
        self._dialog = ApprovalScreen(request, position, total, facts=self._bridge.grants, clock=self._clock)
        self._drawn = request
        self._screen.app.push_screen(self._dialog, self._answered)

    def _answered(self, decision: ApprovalDecision | ListRequested | None) -> None:
        request, self._dialog, self._drawn = self._drawn, None, None
        if decision == "list":
            self._list = ApprovalListScreen(self._pending.all, clock=self._clock)
            self._screen.app.push_screen(self._list, self._several_answered)
            return
        if request is not None and request.request_id in self._pending:
            if decision is None:
                self._pending.postpone()
            else:
                self._settle(request.request_id, decision)
        self._screen.call_after_refresh(self.look)

    def _several_answered(self, answer: Answer | None) -> None:
        self._list = None
        verdict, ids = answer or ("deny", ())
        for request_id in ids:
            if request_id in self._pending:
                self._settle(request_id, ApprovalDecision(decision=verdict))
        self._screen.call_after_refresh(self.look)

    def _count(self) -> None:
        """Says which of how many questions is on the screen."""
        if self._dialog is not None and self._drawn is not None:
            self._dialog.count(*self._pending.position_of(self._drawn))

    def _settle(self, request_id: str, decision: ApprovalDecision) -> None:
        # Settled here at once: until the agent tells of it, the next look must not open it again.
        if not self._bridge.decide(request_id, decision):
            self._screen.notify("This question was already settled.", severity="warning", markup=False)
        self._pending.settle(request_id)

    def _close(self) -> None:
        dialog, self._dialog, self._drawn = self._dialog, None, None
        if dialog is not None and dialog.is_current:
            dialog.dismiss(None)

    def _announce(self) -> None:
        shown = self._pending.first if self._dialog is None else None
        self.line.announce(shown, len(self._pending))

    def _schedule_check(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(seconds, self.look)
