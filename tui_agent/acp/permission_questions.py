"""Requests for approval as questions of the protocol; each answer counts for its own question, once."""

import asyncio
from collections.abc import Iterator, Sequence

from acp.schema import PermissionOption, PermissionOptionKind, ToolCallUpdate

from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.workbench.workbench import Workbench

from .editor_client import EditorClient

NO_ANSWER = "the editor closed the question without an answer, so the call was denied."
NOT_KEPT = "the editor closed the question without an answer, so the changes were discarded."
CLIENT_GONE = "the editor is gone, so no one can approve; the call was denied."

_DECISIONS = {
    "once": ApprovalDecision(decision="approve"),
    "session": ApprovalDecision(decision="approve", scope="session"),
    "project": ApprovalDecision(decision="approve", scope="project"),
    "deny": ApprovalDecision(decision="deny"),
    "skip": ApprovalDecision(decision="skip"),
}


class PermissionQuestions:
    """The open questions of one session."""

    def __init__(self, session_id: str, client: EditorClient, bench: Workbench, tasks: asyncio.TaskGroup) -> None:
        """
        Args:
            session_id: the session.
            client: shows the questions.
            bench: the session whose agent waits for the answers.
            tasks: has a task for each open question.
        """
        self._session_id = session_id
        self._client = client
        self._agent = bench.agent
        self._tasks = tasks
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    def ask(self, request: ApprovalRequested, call: ToolCallUpdate) -> None:
        """Ask the user; the answer resolves the request, unless something else did before."""
        if self._is_closed:
            self._resolve(request, None, CLIENT_GONE)
            return
        task = self._tasks.create_task(self._ask(request, call))
        self._asking[request.request_id] = task
        task.add_done_callback(lambda _: self._asking.pop(request.request_id, None))

    def withdraw(self, request_id: str) -> None:
        """Wait no longer for an answer: the request is resolved."""
        if (task := self._asking.pop(request_id, None)) is not None:
            task.cancel()

    def close(self) -> None:
        """Deny every request from now on, open ones included."""
        self._is_closed = True
        for request in self._agent.gate.pending:
            self._resolve(request, None, CLIENT_GONE)

    async def _ask(self, request: ApprovalRequested, call: ToolCallUpdate) -> None:
        chosen = await self._client.ask(self._session_id, call, options_for(request))
        no_answer = NO_ANSWER if request.changes is None else NOT_KEPT
        self._resolve(request, chosen, no_answer if self._client.is_connected else CLIENT_GONE)

    def _resolve(self, request: ApprovalRequest, chosen: str | None, otherwise: str) -> None:
        decision = _DECISIONS[chosen] if chosen is not None and chosen in _offered(request) else None
        if decision is None:
            denial = ApprovalDecision(decision="deny", note=otherwise)
            self._agent.resolve_approval(request.request_id, denial, by="nobody")
        else:
            self._agent.resolve_approval(request.request_id, decision)


def options_for(request: ApprovalRequest) -> Sequence[PermissionOption]:
    """Return the answers to choose from."""
    rule = ", ".join((request.session_rule or "").split("\n"))
    names: dict[str, tuple[str, PermissionOptionKind]] = {
        "once": ("Allow once", "allow_once"),
        "session": (f"Allow for this session: {rule}", "allow_always"),
        "project": (f"Always allow in this project: {rule}", "allow_always"),
        "deny": ("Deny", "reject_once"),
        "skip": ("Skip this call", "reject_once"),
    }
    if request.changes is not None:
        names |= {
            "once": ("Keep the changes", "allow_once"),
            "session": (f"Keep such changes for this session: {rule}", "allow_always"),
            "project": (f"Always keep such changes in this project: {rule}", "allow_always"),
            "deny": ("Discard the changes", "reject_once"),
        }
    return [PermissionOption(option_id=key, name=names[key][0], kind=names[key][1]) for key in _offered(request)]


def _offered(request: ApprovalRequest) -> Iterator[str]:
    if "approve" in request.options:
        yield "once"
        if request.session_rule:
            yield from ("session", "project")
    # To skip changes is to discard them.
    refusals = ("deny",) if request.changes is not None else ("deny", "skip")
    yield from (name for name in refusals if name in request.options)
