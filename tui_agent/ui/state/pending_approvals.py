"""Approval requests that wait for the user, oldest first."""

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunEnded, SessionLoaded
from tui_agent.protocol.messages import FrozenModel
from tui_agent.protocol.permissions import ApprovalRequest

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset((ApprovalRequested, ApprovalResolved, RunEnded, SessionLoaded))
"""Events that may change the requests."""


class PendingApprovals:
    """The open requests in order of arrival. Changed by events and by the user's answers."""

    def __init__(self) -> None:
        self._requests: dict[str, ApprovalRequest] = {}
        self._provisional: set[str] = set()
        """Requests whose answer may still be recalled; they do not count as open."""
        self._postponed: set[str] = set()
        self._done = 0

    def __len__(self) -> int:
        return len(self.all)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._requests and request_id not in self._provisional

    @property
    def first(self) -> ApprovalRequest | None:
        """The oldest request."""
        return next(iter(self.all), None)

    @property
    def all(self) -> tuple[ApprovalRequest, ...]:
        """Every open request, oldest first."""
        return tuple(request for key, request in self._requests.items() if key not in self._provisional)

    @property
    def next_to_open(self) -> ApprovalRequest | None:
        """The request that may open by itself: the oldest one that was not postponed."""
        return next((request for request in self.all if request.request_id not in self._postponed), None)

    def position_of(self, request: ApprovalRequest) -> tuple[int, int]:
        """Return a request's number, from 1, and the number of requests since none was open, for `2 of 5`."""
        order = list(self._requests)
        place = order.index(request.request_id) if request.request_id in self._requests else 0
        return self._done + place + 1, self._done + len(order)

    def alike(self, request: ApprovalRequest) -> int:
        """Return the number of other open requests that one rule would answer with this one."""
        rule = request.session_rule
        others = (one for one in self.all if one.session_rule == rule and one.tool == request.tool)
        return max(0, sum(1 for _ in others) - 1) if rule is not None else 0

    def postpone(self) -> None:
        """Let no request that is open now open by itself again."""
        self._postponed.update(self._requests)

    def note_answer(self, request_id: str) -> None:
        """Let a request no longer be open, although its answer may be recalled."""
        self._provisional.add(request_id)

    def take_back(self) -> None:
        """Open the requests again whose answers have not taken effect."""
        self._provisional.clear()

    def is_known(self, request_id: str) -> bool:
        """Return True if a request is open, or would be without its answer."""
        return request_id in self._requests

    def settle(self, request_id: str) -> bool:
        """Remove an answered request; return False if it was not open."""
        if self._requests.pop(request_id, None) is None:
            return False
        self._provisional.discard(request_id)
        self._done += 1
        self._forget_burst()
        return True

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        match envelope.event:
            case ApprovalRequested() as request:
                self._requests[request.request_id] = request
            case ApprovalResolved(request_id=request_id):
                return self.settle(request_id)
            case RunEnded() if envelope.origin.depth == 0:
                # A question of a tool server may belong to no run; its own event ends it.
                self._requests = {key: one for key, one in self._requests.items() if one.question is not None}
            case SessionLoaded():
                self._requests.clear()
            case _:
                return False
        self._forget_burst()
        return True

    def _forget_burst(self) -> None:
        """Restart the count once no request is open."""
        if not self._requests:
            self._done = 0
            self._postponed.clear()
            self._provisional.clear()
