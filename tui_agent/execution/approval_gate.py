"""The gate: where a call waits for a person, as plain data by id (P51, P55).

A question is answered exactly once, by whoever is first: a decision given beforehand, an approver, a front end, the
policy after a rule or the mode changed, or the end of the call. Where nobody can answer, the answer is no (C19, P50).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, Warned
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionDecision
from tui_agent.protocol.value_checks import expect_flag, expect_function, expect_seconds

from .untrusted_calls import Crash, asked, copy_of

AnsweredBy: TypeAlias = Literal["user", "policy", "resume", "timeout", "cancel", "nobody"]
Approver = Callable[[ApprovalRequest], ApprovalDecision | Awaitable[ApprovalDecision]]
Judge = Callable[[], PermissionDecision]

NOBODY_TEXT = (
    "no approver is available: nobody can answer here, so the call was denied. A rule or another permission mode can "
    "allow it."
)


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A decision and who made it."""

    decision: ApprovalDecision
    by: AnsweredBy


class ApprovalGate:
    """Holds the questions that wait. One gate serves an agent and all its sub-agents (P55)."""

    def __init__(
        self, *, interactive: bool = False, approver: Approver | None = None, timeout: float | None = None
    ) -> None:
        """
        Raises:
            ConfigurationError: an argument is of the wrong kind; a timeout must be a number of seconds (P39).
        """
        expect_flag("ApprovalGate.interactive", interactive)
        expect_function("ApprovalGate.approver", approver, "a function (plain or async) or None", optional=True)
        if timeout is not None:
            expect_seconds("an approval's timeout", timeout)
        self.interactive = interactive
        """Whether a front end answers through `resolve`."""
        self.approver = approver
        """Asked for each question nobody decided beforehand; one that raises denies."""
        self.timeout = timeout
        """Seconds after which a question is answered with no; None: it waits."""
        self.on_request: Callable[[ApprovalRequest], Awaitable[None] | None] | None = None
        """Called once a question was told and before anything answers it: the moment for a checkpoint (S4-71)."""
        self._preparing: tuple[asyncio.AbstractEventLoop | None, asyncio.Lock] = (None, asyncio.Lock())
        self._waiting: dict[str, _Question] = {}
        self._prefed: dict[str, tuple[ApprovalDecision, str]] = {}

    @property
    def preparing(self) -> asyncio.Lock:
        """Held while a question is prepared, so that questions come in the order of their calls.

        The lock is new for each event loop: an agent may run in one loop after another.
        """
        loop = asyncio.get_running_loop()
        if self._preparing[0] is not loop:
            self._preparing = (loop, asyncio.Lock())
        return self._preparing[1]

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The questions that wait, oldest first."""
        return tuple(question.request for question in self._waiting.values())

    def prefeed(self, call_id: str, decision: ApprovalDecision, digest: str) -> None:
        """Decides a question before it is asked; used up by the first question about that call (S4-72).

        Args:
            call_id: the call.
            decision: what is decided.
            digest: what the decision was made about; a question about anything else is asked all the same (C43).
        """
        self._prefed[call_id] = (decision, digest)

    def resolve(self, request_id: str, decision: ApprovalDecision, by: Literal["user", "nobody"] = "user") -> bool:
        """A person's answer, or a front end's word that nobody can answer any more.

        True only for the first answer to a question that waits; all others change nothing.
        """
        question = self._waiting.get(request_id)
        return question is not None and question.answer(decision, by)

    def reconsider(self) -> None:
        """Judges every waiting call again; to be called after a rule, a grant or the mode changed (C46, P56)."""
        for question in tuple(self._waiting.values()):
            judgement = question.judge() if question.judge else None
            if judgement is None or judgement.decision == "ask":
                continue
            verdict = "approve" if judgement.decision == "allow" else "deny"
            question.answer(ApprovalDecision(decision=verdict, note=judgement.reason), "policy")

    async def ask(self, request: ApprovalRequest, publisher: Publisher, judge: Judge | None = None) -> ApprovalAnswer:
        """Asks one question and waits for its answer.

        The order is that of S4-71: pending < `approval.requested` < `on_request` < answer < no longer pending <
        `approval.resolved`. Cancelled while it waits, it is settled as denied and the cancellation goes on.

        Args:
            request: the question.
            publisher: where its events go.
            judge: judges the call anew, for `reconsider`.
        """
        question = _Question(request, judge)
        self._waiting[request.request_id] = question
        publisher.publish(ApprovalRequested(**{**dict(request), "args": copy_of(request.args)}))
        try:
            await self._checkpoint(request, publisher)
            await self._find_answer(question)
        finally:
            del self._waiting[request.request_id]
            answer = question.given or ApprovalAnswer(ApprovalDecision(decision="deny", note="cancelled"), "cancel")
            decision = answer.decision
            resolved = ApprovalResolved(
                request_id=request.request_id,
                call_id=request.call_id,
                decision=decision.decision,
                scope=decision.scope,
                by=answer.by,
                note=decision.note,
                rule=_rule_of(request, decision),
            )
            publisher.publish(resolved)
        return answer

    async def _checkpoint(self, request: ApprovalRequest, publisher: Publisher) -> None:
        if self.on_request is None:
            return
        crash = await asked(self.on_request, request, timeout=None)
        if isinstance(crash, Crash):
            text = (
                f"The state before this question could not be stored ({crash.text}). The question waits all the same."
            )
            publisher.publish(Warned(code="checkpoint_failed", text=text, context={"request_id": request.request_id}))

    async def _find_answer(self, question: "_Question") -> None:
        prefed = self._prefed.pop(question.request.call_id, None)
        if prefed is not None and prefed[1] == question.request.digest:
            question.answer(prefed[0], "resume")
        elif self.approver is None and not self.interactive:
            question.answer(ApprovalDecision(decision="deny", note=NOBODY_TEXT), "nobody")
        try:
            async with asyncio.timeout(self.timeout):
                await self._wait(question)
        except TimeoutError:
            note = f"nobody answered within {self.timeout:g} s"
            question.answer(ApprovalDecision(decision="deny", note=note), "timeout")

    async def _wait(self, question: "_Question") -> None:
        if self.approver is None or question.given:
            await question.answered.wait()
            return
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._ask_approver(question, self.approver))
            await question.answered.wait()
            asking.cancel()

    async def _ask_approver(self, question: "_Question", approver: Approver) -> None:
        answer = await asked(approver, question.request, timeout=None)
        if isinstance(answer, ApprovalDecision):
            question.answer(answer, "user")
        elif not self.interactive:
            why = answer.text if isinstance(answer, Crash) else f"it answered {answer!r}"
            note = f"no approver is available: the one there is failed ({why}), so the call was denied"
            question.answer(ApprovalDecision(decision="deny", note=note), "nobody")


def _rule_of(request: ApprovalRequest, decision: ApprovalDecision) -> str | None:
    """The rule an answer is to store; for a changed call it is found only once that was judged."""
    if decision.scope == "once" or decision.input is not None:
        return None
    if decision.rule is not None:
        return decision.rule if decision.rule in request.rules else None
    return request.session_rule


class _Question:
    """A question that waits, and its one answer."""

    def __init__(self, request: ApprovalRequest, judge: Judge | None) -> None:
        self.request = request
        self.judge = judge
        self.given: ApprovalAnswer | None = None
        self.answered = asyncio.Event()

    def answer(self, decision: ApprovalDecision, by: AnsweredBy) -> bool:
        if self.given is not None:
            return False
        self.given = ApprovalAnswer(decision, by)
        self.answered.set()
        return True
