"""The client of one connection, and questions to its user. An answer resolves only its own request, and only once."""

import asyncio
import logging
from collections.abc import Iterator, Sequence

from acp import RequestError
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    PermissionOption,
    PermissionOptionKind,
    SessionNotification,
    ToolCallUpdate,
)
from pydantic import ValidationError

from tui_agent.protocol.events import ApprovalRequested
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.server_question import FormField, ServerQuestion
from tui_agent.protocol.visible_text import escaped
from tui_agent.workbench.workbench import Workbench

from .rpc_transport import RpcTransport
from .session_updates import Update

_LOG = logging.getLogger(__name__)

NO_ANSWER = "the editor closed the question without an answer, so the call was denied."
NOT_KEPT = "the editor closed the question without an answer, so the changes were discarded."
OTHERWISE = "agent"
"""Option for none of the choices of a question of the agent."""
NOT_ANSWERED = "the editor closed the question without an answer."
CLIENT_GONE = "the editor is gone, so no one can approve; the call was denied."

_DECISIONS = {
    "once": ApprovalDecision(decision="approve"),
    "session": ApprovalDecision(decision="approve", scope="session"),
    "project": ApprovalDecision(decision="approve", scope="project"),
    "deny": ApprovalDecision(decision="deny"),
    "skip": ApprovalDecision(decision="skip"),
}


class EditorClient:
    """The client of one connection."""

    def __init__(self, transport: RpcTransport) -> None:
        self._transport = transport
        self._client: Client | None = None
        self.shows_terminals = False
        """True if it shows output in terminals of its own."""
        self.is_connected = True
        """False once the client is gone."""

    def connect(self, client: Client) -> None:
        """Use the library's connection for requests."""
        self._client = client

    def update(self, session_id: str, update: Update | AvailableCommandsUpdate | ConfigOptionUpdate) -> None:
        """Send an update; never waits."""
        params = SessionNotification(session_id=session_id, update=update)
        self._transport.notify("session/update", params.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def room(self) -> None:
        """Wait until the client has read most of the updates."""
        await self._transport.room()

    async def ask(self, session_id: str, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str | None:
        """Ask the user and return the id of the chosen option; None if there is no valid answer."""
        if self._client is None or not self.is_connected:
            return None
        try:
            answer = await self._client.request_permission(session_id=session_id, tool_call=call, options=list(options))
        except (RequestError, ConnectionError, ValidationError) as error:
            _LOG.warning("a question got no valid answer: %s", type(error).__name__)
            return None
        return answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else None


class PermissionQuestions:
    """The open questions of one session."""

    def __init__(self, session_id: str, client: EditorClient, bench: Workbench, tasks: asyncio.TaskGroup) -> None:
        """
        Args:
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
        if request.question is not None and not request.question.server:
            await self._ask_fields(request, request.question, call)
            return
        chosen = await self._client.ask(self._session_id, call, options_for(request))
        no_answer = NO_ANSWER if request.changes is None else NOT_KEPT
        self._resolve(request, chosen, no_answer if self._client.is_connected else CLIENT_GONE)

    async def _ask_fields(self, request: ApprovalRequested, question: ServerQuestion, call: ToolCallUpdate) -> None:
        """Put the questions of the agent to the user, one after another, with their choices as options."""
        values: JsonObject = {}
        for field in (field for field in question.fields if field.choices):
            shown = call.model_copy(update={"title": escaped(field.label)})
            is_plan = question.kind == "plan"
            otherwise = "No, keep planning" if is_plan else "Let the agent decide"
            chosen = await self._client.ask(self._session_id, shown, choices_of(field, otherwise))
            if is_plan and chosen == OTHERWISE:
                self._agent.resolve_approval(request.request_id, ApprovalDecision(decision="deny"))
                return
            if chosen is None:
                self._resolve(request, None, NOT_ANSWERED if self._client.is_connected else CLIENT_GONE)
                return
            place = int(chosen) if chosen.isdecimal() else 0
            if 0 < place <= len(field.choices):
                value = field.choices[place - 1].value
                values[field.name] = [value] if field.kind == "choices" else value
        # Without a choice, the agent decides.
        self._agent.resolve_approval(request.request_id, ApprovalDecision(decision="approve", input=values))

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


def choices_of(field: FormField, otherwise: str) -> Sequence[PermissionOption]:
    """Return the choices of a question of the agent, with ids from `1`, and last `OTHERWISE` for none of them."""
    names = [choice.label or choice.value for choice in field.choices]
    default = field.default if isinstance(field.default, tuple) else (field.default,)
    options = [
        PermissionOption(
            option_id=str(number),
            name=escaped(f"{name} (default)" if choice.value in default else name),
            kind="allow_once",
        )
        for number, (name, choice) in enumerate(zip(names, field.choices, strict=True), 1)
    ]
    return [*options, PermissionOption(option_id=OTHERWISE, name=otherwise, kind="reject_once")]


def _offered(request: ApprovalRequest) -> Iterator[str]:
    if "approve" in request.options:
        yield "once"
        if request.session_rule:
            yield from ("session", "project")
    # To skip changes is to discard them.
    refusals = ("deny",) if request.changes is not None else ("deny", "skip")
    yield from (name for name in refusals if name in request.options)
