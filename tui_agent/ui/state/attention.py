"""Questions to the user and the time they waited: the fold behind the attention figures of the report."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from statistics import median

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunStarted, SessionLoaded
from tui_agent.protocol.messages import FrozenModel

from .run_times import covered

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (ApprovalRequested, ApprovalResolved, RunStarted, SessionLoaded)
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
    answered: int
    """Questions that the user answered."""
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
        """The questions of the newest run."""
        return self.questions[self._first_of_run :]


def figures(questions: Sequence[Question], now: float) -> Figures:
    """Return the figures of some questions; one that waits has waited until now."""
    answers = [_end(question, now) - question.asked for question in questions if question.by_user]
    return Figures(len(questions), len(answers), _waited(questions, now), median(answers) if answers else None)


def best_saving(questions: Sequence[Question], now: float, in_force: Container[str] = ()) -> Saving | None:
    """Return the rule that would have saved most of the waiting time; None if no rule would have saved any.

    Only rules that the program offered with questions which the user answered with a yes for one call count.

    Args:
        questions: the questions.
        now: the present time in monotonic seconds.
        in_force: allow rules that need not be added.
    """
    groups: dict[str, list[Question]] = {}
    for question in questions:
        if question.allowed_once and question.rule:
            groups.setdefault(question.rule, []).append(question)
    candidates = {
        rule: group for rule, group in groups.items() if not all(line in in_force for line in rule.splitlines())
    }
    longest = sorted(candidates, key=lambda rule: -_waited(candidates[rule], now))[:MAX_RULES_COMPARED]
    whole, savings = _waited(questions, now), list[Saving]()
    for rule in longest:
        own = {id(question) for question in candidates[rule]}
        left = _waited([question for question in questions if id(question) not in own], now)
        savings.append(Saving(rule, len(own), whole - left))
    best = max(savings, key=lambda saving: (saving.seconds, saving.questions), default=None)
    return best if best is not None and best.seconds > 0 else None


def _waited(questions: Sequence[Question], now: float) -> float:
    """Return the seconds during which at least one of the questions waited."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for question in questions:
        spans.setdefault(question.process, []).append((question.asked, _end(question, now)))
    return sum(map(covered, spans.values()))


def _end(question: Question, now: float) -> float:
    return max(question.asked, now if question.resolved is None else question.resolved)
