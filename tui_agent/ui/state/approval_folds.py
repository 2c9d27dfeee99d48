"""Open questions, the time that questions waited for the user, and the calls that each rule decided."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from statistics import median

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    PermissionDecided,
    RunEnded,
    RunStarted,
    SessionLoaded,
)
from tui_agent.protocol.messages import FrozenModel
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL, ApprovalRequest

from .run_times import LEAST_SAVED, covered

APPROVAL_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (ApprovalRequested, ApprovalResolved, RunEnded, SessionLoaded)
)
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
        """The oldest open request; None if none is open."""
        return next(iter(self.all), None)

    @property
    def all(self) -> tuple[ApprovalRequest, ...]:
        """Every open request, oldest first."""
        return tuple(request for key, request in self._requests.items() if key not in self._provisional)

    @property
    def next_to_open(self) -> ApprovalRequest | None:
        """The request that may open by itself: the oldest one that was not postponed; None without one."""
        return next((request for request in self.all if request.request_id not in self._postponed), None)

    def position_of(self, request: ApprovalRequest) -> tuple[int, int]:
        """Return a request's number, from 1, and the number of requests since none was open, for `2 of 5`."""
        order = list(self._requests)
        # Its dialog may be shown for a moment after something else has settled it.
        place = order.index(request.request_id) if request.request_id in self._requests else 0
        return self._done + place + 1, self._done + len(order)

    def alike(self, request: ApprovalRequest) -> int:
        """Return the number of other open requests that one rule would answer with this one."""
        rule = request.session_rule
        others = (one for one in self.all if one.session_rule == rule and one.tool == request.tool)
        # Without a rule, nothing says that the others are like it.
        return max(0, sum(1 for _ in others) - 1) if rule is not None else 0

    def postpone(self) -> None:
        """Let no request that is open now open by itself again."""
        self._postponed.update(self._requests)

    def note_answer(self, request_id: str) -> None:
        """Leave a request out of `all`, until `settle` removes it or `take_back` opens it again."""
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
                self._requests = {key: one for key, one in self._requests.items() if not one.call_id}
            case SessionLoaded():
                self._requests.clear()
            case _:
                return False
        self._forget_burst()
        return True

    def _forget_burst(self) -> None:
        if not self._requests:
            # `2 of 5` counts anew with the next burst.
            self._done = 0
            self._postponed.clear()
            self._provisional.clear()


ATTENTION_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (ApprovalRequested, ApprovalResolved, RunStarted, RunEnded, SessionLoaded)
)
"""Events that may change the figures."""

MAX_RULES_COMPARED = 20
"""Most rules, those of the longest waits, for which the saved time is computed."""


@dataclass(slots=True)
class Question:
    """One question to the user. Times are monotonic seconds of the process that asked."""

    process: int
    """Number of the process; the clocks of two processes cannot be compared."""
    asked: float
    rule: str | None
    """Session rule offered with it; several are on separate lines."""
    resolved: float | None = None
    """None while it waits."""
    by_user: bool = False
    allowed_once: bool = False
    """True if the user answered yes for this call alone."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Attention figures of some questions."""

    questions: int
    waited: float
    """Seconds during which at least one of them waited."""
    median: float | None
    """Median seconds to an answer of the user; None without an answer."""


@dataclass(frozen=True, slots=True)
class Saving:
    """A rule that would have saved questions."""

    rule: str
    """Rule or rules, on separate lines."""
    questions: int
    seconds: float
    """Seconds during which nothing else waited for the user."""


class Attention:
    """All questions of the session. Changed by `apply` only."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self._open: dict[str, Question] = {}
        self._first_of_run = 0
        self._ended_run: slice | None = None
        self._process = 0

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event, at = envelope.event, envelope.mono
        match event:
            case ApprovalRequested(request_id=request_id, session_rule=rule):
                self._open[request_id] = question = Question(self._process, at, rule)
                self.questions.append(question)
            case ApprovalResolved(request_id=request_id):
                question = self._open.pop(request_id, None)
                if question is None:
                    return False
                question.resolved, question.by_user = at, event.by == "user"
                question.allowed_once = question.by_user and event.decision == "approve" and event.scope == "once"
            case RunStarted() if envelope.origin.depth == 0:
                self._first_of_run = len(self.questions)
            case RunEnded() if envelope.origin.depth == 0:
                # The report of a run is often read while the next run asks its own questions.
                self._ended_run = slice(self._first_of_run, len(self.questions))
            case SessionLoaded():
                # The process that asked has ended, at an unknown time.
                for question in self._open.values():
                    question.resolved = question.asked
                self._open.clear()
                self._process += 1
            case _:
                return False
        return True

    @property
    def of_run(self) -> Sequence[Question]:
        """The questions of the last run that ended, as its report is; of the first run before it ends."""
        return self.questions[self._first_of_run :] if self._ended_run is None else self.questions[self._ended_run]


def figures(questions: Sequence[Question], now: float) -> Figures:
    """Return the figures of some questions; one that waits has waited until `now`, in monotonic seconds."""
    answers = [_end(question, now) - question.asked for question in questions if question.by_user]
    return Figures(len(questions), _waited(questions, now), median(answers) if answers else None)


def best_saving(questions: Sequence[Question], now: float, in_force: Container[str] = ()) -> Saving | None:
    """Return the rule that would have saved most of the waiting time; None if no rule would have saved any.

    Only rules that the program offered with questions which the user answered with a yes for one call count, unless
    they are in force.
    """
    groups: dict[str, list[Question]] = {}
    for question in questions:
        if question.allowed_once and question.rule:
            groups.setdefault(question.rule, []).append(question)
    candidates = {
        rule: group for rule, group in groups.items() if not all(line in in_force for line in rule.splitlines())
    }
    # Each is compared with all questions, so only those that can save much are.
    longest = sorted(candidates, key=lambda rule: -_waited(candidates[rule], now))[:MAX_RULES_COMPARED]
    whole, savings = _waited(questions, now), list[Saving]()
    for rule in longest:
        # By identity: two questions may have equal fields.
        own = {id(question) for question in candidates[rule]}
        left = _waited([question for question in questions if id(question) not in own], now)
        savings.append(Saving(rule, len(own), whole - left))
    best = max(savings, key=lambda saving: (saving.seconds, saving.questions), default=None)
    return best if best is not None and best.seconds >= LEAST_SAVED else None


def _waited(questions: Sequence[Question], now: float) -> float:
    """Return the seconds during which at least one of the questions waited."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for question in questions:
        spans.setdefault(question.process, []).append((question.asked, _end(question, now)))
    return sum(map(covered, spans.values()))


def _end(question: Question, now: float) -> float:
    return max(question.asked, now if question.resolved is None else question.resolved)


RULE_EVENTS: frozenset[type[FrozenModel]] = frozenset((PermissionDecided,))
"""Events that may change the hits."""
FLOOR_ASKS = "floor_asks"
"""Key of the calls that need an answer whatever the rules say, such as reads of private paths."""


@dataclass(slots=True)
class RuleHits:
    """Calls that each rule decided in this session. Changed by `apply` only."""

    total: int = 0
    """Number of decisions."""
    _calls: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event = envelope.event
        if not isinstance(event, PermissionDecided):
            return False
        self.total += 1
        # A command is decided part by part; each rule behind a part has decided something.
        for key in (event.rule or _built_in(event), *(part.rule for part in event.parts if part.rule)):
            # A dictionary as an ordered set: several parts of one call may fall under one rule.
            self._calls.setdefault(key, {})[event.call_id] = None
        return True

    def of(self, key: str) -> tuple[str, ...]:
        """Return the ids of the calls that a rule decided, oldest first.

        Args:
            key: the rule with its origin, or for calls without a rule `floor`, `FLOOR_ASKS` or the source of the
                decision, such as `mode`.
        """
        return tuple(self._calls.get(key, ()))


def _built_in(event: PermissionDecided) -> str:
    if event.source != "floor":
        return event.source
    if event.decision == "ask":
        return FLOOR_ASKS
    return "mode" if event.reason.startswith(PLAN_MODE_DENIAL) else "floor"
