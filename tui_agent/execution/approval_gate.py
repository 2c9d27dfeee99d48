"""Approval gate: calls wait here for the user's decision, as plain data by id; and what an approval covers.

An approval is bound to the call's digest and to the files at its targets. The user approves files, not their names:
each is identified by device and inode, one that does not exist yet by the nearest directory above it.

The first answer counts: a decision made beforehand, an approver, a front end, the policy after a rule or the mode
changed, or the end of the call. If no one can answer, the call is denied.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, ChangesDecision, PermissionDecision
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.tool import JudgedTarget
from tui_agent.protocol.trial import Place, ProposedChanges
from tui_agent.protocol.value_checks import expect_flag, expect_function, expect_seconds

from .contained_calls import Crash, asked

AnsweredBy: TypeAlias = Literal["user", "policy", "resume", "timeout", "cancel", "nobody"]
Approver = Callable[[ApprovalRequest], ApprovalDecision | Awaitable[ApprovalDecision | None]]
Judge = Callable[[], PermissionDecision | ChangesDecision]

NO_ANSWER_TEXT = "no one can answer here, so the question was declined."
"""Note on a question of a tool server without a user."""
AGENT_DECIDES_TEXT = "no one can answer here, so the agent decides itself."
"""Note on a question of the agent without a user."""
PLAN_RESULTS_TEXT = "no one can answer here, so the plan is the result."
"""Note on a plan without a user."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A decision and its origin."""

    decision: ApprovalDecision
    by: AnsweredBy


class ApprovalGate:
    """Questions that wait for an answer. One gate serves an agent and all its sub-agents."""

    def __init__(
        self, *, interactive: bool = False, approver: Approver | None = None, timeout: float | None = None
    ) -> None:
        """
        Raises:
            ConfigurationError: an argument is of the wrong kind; a timeout must be a number of seconds.
        """
        expect_flag("ApprovalGate.interactive", interactive)
        expect_function("ApprovalGate.approver", approver, "a function (plain or async) or None", optional=True)
        if timeout is not None:
            expect_seconds("an approval's timeout", timeout)
        self.interactive = interactive
        """True if a front end answers through `resolve`."""
        self.approver = approver
        """Function that answers each question not decided beforehand; if it raises, the call is denied."""
        self.timeout = timeout
        """Seconds after which a call is denied; None: no limit."""
        self.on_request: Callable[[ApprovalRequest], Awaitable[None] | None] | None = None
        """Function called between the publication of a question and its answer, to save a checkpoint (S4-71)."""
        self._preparing: tuple[asyncio.AbstractEventLoop | None, asyncio.Lock] = (None, asyncio.Lock())
        self._waiting: dict[str, _Question] = {}
        self._prefed: dict[str, tuple[ApprovalDecision, str]] = {}

    @property
    def preparing(self) -> asyncio.Lock:
        """Lock held while a question is prepared, so that questions come in call order.

        Each event loop has its own, because an agent may run in one loop after another.
        """
        loop = asyncio.get_running_loop()
        if self._preparing[0] is not loop:
            self._preparing = (loop, asyncio.Lock())
        return self._preparing[1]

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """Open questions, oldest first; an answered one stays until its call has received the answer."""
        return tuple(question.request for question in self._waiting.values())

    def prefeed(self, call_id: str, decision: ApprovalDecision, digest: str) -> None:
        """Decide a question before it is asked; only the first question about that call uses the decision (S4-72).

        Args:
            call_id: the call.
            decision: the decision.
            digest: digest of the call that it covers; a question with another digest is asked all the same.
        """
        self._prefed[call_id] = (decision, digest)

    def resolve(
        self, request_id: str, decision: ApprovalDecision, by: Literal["user", "nobody", "policy"] = "user"
    ) -> bool:
        """Answer a question for the user, for a front end that can no longer ask the user, or for a hook.

        Args:
            request_id: the question.
            decision: the answer.
            by: `user`; `nobody` for a front end that has lost its user; `policy` for a hook.

        Returns:
            True if the answer counts. False, and nothing changes: the question is unknown or already answered, an
            approver answers in place of `nobody`, or a hook answers what only the user may.
        """
        if by == "nobody" and self.approver is not None and not self.interactive:
            # The approver is being asked instead, and the call is denied if it has no answer.
            return False
        question = self._waiting.get(request_id)
        if question is None or (by == "policy" and question.is_for_user_alone):
            return False
        return question.answer(decision, by)

    def reconsider(self) -> None:
        """Judge every waiting call again. Call this after a rule, a grant or the mode changed."""
        for question in tuple(self._waiting.values()):
            judgement = question.judge() if question.judge else None
            if judgement is None or judgement.decision == "ask":
                continue
            verdict = "approve" if judgement.decision == "allow" else "deny"
            question.answer(ApprovalDecision(decision=verdict, note=judgement.reason), "policy")

    async def ask(
        self,
        request: ApprovalRequest,
        publisher: Publisher,
        judge: Judge | None = None,
        may_store: Callable[[str], bool] = lambda _: False,
    ) -> ApprovalAnswer:
        """Ask one question and wait for its answer.

        The order is that of S4-71: pending < `approval.requested` < `on_request` < answer < no longer pending <
        `approval.resolved`. After `timeout` seconds, or if no one can answer, the answer is `deny`. If the wait is
        cancelled, the question is resolved as denied and the cancellation raised.

        Args:
            request: the question.
            publisher: publishes its events.
            judge: judges the call again, for `reconsider`; None: only an answer ends the wait.
            may_store: returns True if a rule that the request does not offer may be stored.
        """
        question = _Question(request, judge)
        self._waiting[request.request_id] = question
        publisher.publish(ApprovalRequested(**dict(request)))
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
                rule=rule_to_store(request, decision, may_store),
                answers=_public_answers(request, decision),
                via=decision.via,
            )
            publisher.publish(resolved)
        return answer

    async def _checkpoint(self, request: ApprovalRequest, publisher: Publisher) -> None:
        if self.on_request is None:
            return
        crash = await asked(self.on_request, request, timeout=None)
        if isinstance(crash, Crash):
            text = f"Could not save a checkpoint before this question ({crash.text}). The question can be answered."
            publisher.publish(Warned(code="checkpoint_failed", text=text, context={"request_id": request.request_id}))

    async def _find_answer(self, question: "_Question") -> None:
        prefed = self._prefed.pop(question.request.call_id, None)
        if prefed is not None and prefed[1] == question.request.digest:
            question.answer(prefed[0], "resume")
        elif self.approver is None and not self.interactive:
            asked_by, note = question.request.question, _nobody(question.request, " here")
            if asked_by is not None:
                note = NO_ANSWER_TEXT if asked_by.server else AGENT_DECIDES_TEXT
                note = PLAN_RESULTS_TEXT if asked_by.kind == "plan" else note
            question.answer(ApprovalDecision(decision="deny", note=note), "nobody")
        try:
            async with asyncio.timeout(self.timeout):
                await self._wait(question)
        except TimeoutError:
            note = f"no answer within {self.timeout:g} s"
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
            note = _nobody(question.request, f", because the only one failed ({why})")
            question.answer(ApprovalDecision(decision="deny", note=note), "nobody")


def _nobody(request: ApprovalRequest, why: str) -> str:
    """Return why a call was denied that no one could approve, with the reason why it needed that."""
    if request.changes is not None:
        return f"no one can answer{why}"
    reason = f" It needs approval: {request.reason.rstrip('.')}." if request.reason else ""
    text = f"no approver is available{why}, so the call was denied.{reason}"
    return f"{text} A rule or another permission mode can allow it."


def rule_to_store(request: ApprovalRequest, decision: ApprovalDecision, may_store: Callable[[str], bool]) -> str | None:
    """Return the rule that an answer stores; None if it is for once only, or names a rule that may not be stored.

    None also for an edited call, whose rule is known only after a new judgement.
    """
    rule = decision.rule
    is_edited = decision.input is not None and request.changes is None
    if decision.scope == "once" or is_edited:
        return None
    if rule is None:
        return request.session_rule
    return rule if rule in request.rules or may_store(rule) else None


def _public_answers(request: ApprovalRequest, decision: ApprovalDecision) -> JsonObject | None:
    """Return the values of a form, or the kept part of a command's changes, for the journal."""
    if request.changes is not None:
        return decision.input
    if request.question is None or not request.question.fields or decision.input is None:
        return None
    return request.question.public(decision.input)


class _Question:
    """A question and its only answer."""

    def __init__(self, request: ApprovalRequest, judge: Judge | None) -> None:
        self.request = request
        self.judge = judge
        self.given: ApprovalAnswer | None = None
        self.answered = asyncio.Event()

    @property
    def is_for_user_alone(self) -> bool:
        """True for a question or a plan of the agent, which no rule and no hook answers."""
        asked_by = self.request.question
        return asked_by is not None and not asked_by.server

    def answer(self, decision: ApprovalDecision, by: AnsweredBy) -> bool:
        if self.given is not None:
            return False
        self.given = ApprovalAnswer(decision, by)
        self.answered.set()
        return True


Identity = tuple[int, int]
"""Device and inode."""


def call_digest(
    tool_name: str,
    arguments: JsonObject,
    targets: Iterable[str] = (),
    schema: JsonObject | None = None,
    scripts: Iterable[str] = (),
    place: Place = "outside",
) -> str:
    """Return a hash that is the same exactly if tool, arguments, resolved targets, scripts and place are the same.

    Args:
        tool_name: the tool's name.
        arguments: arguments in effect; the order of keys does not matter.
        targets: resolved paths that the call would touch; their order does not matter.
        schema: input schema of the tool, which counts as another tool if it changes; None: any tool of that name.
        scripts: paths of files that the call runs; their contents count. Blocks for the time to read them.
        place: place in which the call runs.

    Returns:
        64 hexadecimal digits.
    """
    bound = [tool_name, arguments, sorted(targets), *([] if schema is None else [schema])]
    bound += [{"place": place}] if place != "outside" else []
    bound += [[(path, _content_mark(path)) for path in sorted(scripts)]] if scripts else []
    canonical = json.dumps(bound, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def changes_digest(call: str, changes: ProposedChanges) -> str:
    """Return a hash that is the same exactly if the digest of the call and everything it proposes are the same."""
    return hashlib.sha256(f"{call} {changes.model_dump_json()}".encode("utf-8", "surrogatepass")).hexdigest()


def _content_mark(path: str) -> str:
    """Return a hash of a file's content; of one that is large or unreadable, its times and size."""
    try:
        return hashlib.sha256(read_regular_file(path)).hexdigest()
    except OSError:
        pass
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def with_identities(paths: Iterable[str]) -> tuple[JudgedTarget, ...]:
    """Return resolved paths with the identities of what is there now."""
    return tuple(JudgedTarget(path, _path_identities(path)) for path in paths)


def replaced_paths(targets: Iterable[JudgedTarget]) -> list[str]:
    """Return the paths whose file, as it was identified, has been replaced or removed since."""
    return [
        path for target in targets for path, device, inode in target.identities if identity_of(path) != (device, inode)
    ]


def without_paths(targets: Iterable[JudgedTarget], paths: Collection[str]) -> tuple[JudgedTarget, ...]:
    """Return the targets without the identities at `paths`, so that any file is accepted there."""
    return tuple(
        replace(target, identities=tuple(known for known in target.identities if known[0] not in paths))
        for target in targets
    )


def identity_of(path: str) -> Identity | None:
    """Return the identity of what is at a path, links not followed; None if there is nothing or it is unreadable."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _path_identities(path: str) -> tuple[tuple[str, int, int], ...]:
    """Return the identities of the target, if it exists, and of the nearest directory above it."""
    found_at = [(path, identity_of(path))]
    directory: str = os.path.dirname(path)
    while (found := identity_of(directory)) is None and directory not in ("", "/"):
        directory = os.path.dirname(directory)
    found_at.append((directory, found))
    return tuple((name, *identity) for name, identity in dict(found_at).items() if identity is not None)
