"""Questions of an agent that go elsewhere, `[[notify]]`: to a command, a URL or a topic of ntfy; some may be answered.

An answer allows or denies one call and never stores a rule. It must repeat the token of its question: a random
one, good for one answer while the question waits.
"""

import asyncio
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path

from tui_agent.execution.process_hook import HookProcess
from tui_agent.protocol.background import run_service
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.secret_variables import HIDDEN, holds_secret, is_secret_variable, mask_secrets
from tui_agent.protocol.server_question import FormField
from tui_agent.protocol.setting_files import as_list
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import NotifySettings
from tui_agent.tools.processes.child_environment import child_environment

from .user_commands import marked_tree

MAX_ARGUMENTS = 32_000
"""Most characters of a call's input; a longer one is left out, and the call can only be denied from elsewhere."""
MAX_NOTE = 2_000
MAX_ANSWER_BYTES = 64 * 1024
MAX_PUSH_BYTES = 3_900
"""Most bytes of a text for ntfy, which makes a file of longer ones."""
CONNECT_SECONDS = 10.0
_ANSWER_FIELDS = frozenset(("token", "answer", "note", "input"))
_WORD = re.compile(r"\S+")


class NotifyError(Exception):
    """A question could not be sent, or its answer does not count; the text has the reason."""


class Tokens:
    """The tokens of one session's questions: random words, each with all that it is good for."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, str, float]] = {}
        """Notifier, question, and end on the monotonic clock, of each token that no answer has used."""

    def new(self, notifier: str, request: ApprovalRequest, seconds: float) -> str:
        """Return a token for one answer of a notifier to a question; it expires after `seconds`."""
        token = secrets.token_urlsafe(32)
        self._open[token] = notifier, request.request_id, time.monotonic() + seconds
        return token

    def use(self, token: object, notifier: str, request: ApprovalRequest) -> bool:
        """Return True for a token of this question that is neither used nor too old; it is used now."""
        known, question, end = self._open.get(str(token), ("", "", 0.0))
        # It stays open: the wrong notifier must not end the question of another one.
        if (known, question) != (notifier, request.request_id):
            return False
        # Also if it is too old: a second try must not find it.
        del self._open[str(token)]
        return time.monotonic() <= end

    def drop(self, token: str) -> None:
        """Withdraw a token, because its question is answered; one that is used or unknown is ignored."""
        self._open.pop(token, None)


@dataclass(frozen=True, slots=True)
class Question:
    """A question to send elsewhere."""

    request: ApprovalRequest
    fields: JsonObject
    answers: tuple[str, ...]
    """Answers that count."""


class Notifiers:
    """Sends the questions of one session; an approver of its gate."""

    def __init__(
        self,
        settings: Iterable[NotifySettings],
        session_id: str,
        working_dir: Path,
        bus: EventBus,
        *,
        watched: bool,
        programs: Callable[[ApprovalRequest], Coroutine[None, None, ApprovalDecision | None]] | None = None,
    ) -> None:
        self._programs = programs
        self._settings = tuple(settings)
        self._session = session_id
        self._working_dir = working_dir
        self._bus = bus
        self._watched = watched
        self._tokens = Tokens()

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Send a question to every notifier and other program, and return the first answer that counts.

        None if none counts and a user is there to answer. A notifier that fails is reported as a warning.

        Raises:
            NotifyError: no answer counts, and no user is there.
        """
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self._ask_one(one, request)) for one in self._settings]
            if self._programs is not None:
                asked.append(tasks.create_task(self._programs(request)))
            try:
                # The first answer ends the others: a phone must not ring for a question that is answered.
                for ended in asyncio.as_completed(asked):
                    if (decision := await ended) is not None:
                        return decision
            finally:
                for task in asked:
                    task.cancel()
        if not self._watched:
            raise NotifyError(f"no answer from {', '.join(one.label for one in self._settings if one.answers)}")
        return None

    async def _ask_one(self, notifier: NotifySettings, request: ApprovalRequest) -> ApprovalDecision | None:
        found: list[ApprovalDecision] = []

        async def ask() -> None:
            # A user who is at the screen answers there before anything is sent.
            if self._watched and notifier.after:
                await asyncio.sleep(notifier.after)
            question = question_of(request, self._session, self._working_dir, answers=notifier.answers)
            token = self._tokens.new(notifier.label, request, notifier.timeout) if question.answers else ""
            try:
                async with asyncio.timeout(notifier.timeout):
                    said = await self._send(notifier, question, token)
                if question.answers and said is not None:
                    found.append(decision_of(question, said, self._tokens, notifier.label))
            except TimeoutError:
                return
            except (NotifyError, ConfigurationError, OSError) as error:
                rest = " The question still waits for you." if self._watched else ""
                text = f"notify {notifier.label}: {str(error).rstrip('.')}.{rest}"
                self._bus.publish(Warned(code="hook_failed", text=text))
            finally:
                self._tokens.drop(token)

        await run_service("notify", ask())
        return found[0] if found else None

    async def _send(self, notifier: NotifySettings, question: Question, token: str) -> JsonObject | None:
        """Send a question and return what came back, if it is an answer."""
        signed = {"token": token, "expires": int(time.time() + notifier.timeout)} if token else {}
        content = json.dumps(question.fields | {"answers": question.answers} | signed).encode()
        if notifier.command:
            text = await self._run(notifier, content)
        elif notifier.ntfy:
            # Cut in bytes, as the service counts, and between two characters.
            body = str(question.fields["text"]).encode()[:MAX_PUSH_BYTES].decode("utf-8", "ignore").encode()
            headers = {"Title": str(question.fields["title"]), "Tags": "question"}
            text = await _post(notifier, notifier.ntfy, body, headers)
        else:
            text = await _post(notifier, notifier.url, content, {"Content-Type": "application/json"})
        return _answer_in(text) if question.answers else None

    async def _run(self, notifier: NotifySettings, content: bytes) -> str:
        process = HookProcess(notifier.command, self._working_dir, child_environment(os.environ), marked_tree)
        ended = await process.run(content)
        if ended.code != 0:
            reason = escaped(ended.err.strip()[:MAX_NOTE])
            raise NotifyError(": ".join(filter(None, (f"the command ended with exit code {ended.code}", reason))))
        return ended.out


def decision_of(question: Question, said: JsonObject, tokens: Tokens, label: str) -> ApprovalDecision:
    """Return the decision of an answer.

    Args:
        tokens: has the token that it must repeat.
        label: who answers, the `notifier` of `Tokens.new`.

    Raises:
        NotifyError: the answer does not count.
    """
    request = question.request
    answer, note, given = said.get("answer"), said.get("note", ""), said.get("input")
    if others := tuple(name for name in said if name not in _ANSWER_FIELDS):
        # Such as a rule for the future.
        raise NotifyError(f"its answer does not count: {as_list(others)} is not for answers from elsewhere")
    if answer not in question.answers or not isinstance(note, str):
        raise NotifyError(f"its answer does not count: {str(answer)[:60]!r} is not {' or '.join(question.answers)}")
    values: JsonObject | None = None
    if given is not None or (answer == "allow" and request.question is not None):
        values = _values(request, given)
    # Last, so that an answer with a mistake in it does not use the token up.
    if not tokens.use(said.get("token"), label, request):
        raise NotifyError("its answer does not count: the token is not that of this question, or was used")
    return ApprovalDecision(
        decision="approve" if answer == "allow" else "deny",
        note=escaped(note[:MAX_NOTE]),
        input=values if answer == "allow" else None,
        via=label,
    )


def question_of(request: ApprovalRequest, session: str, folder: Path, *, answers: bool) -> Question:
    """Return a question without credentials. If its call's input or changes cannot be sent whole, only "deny" counts.

    Args:
        answers: False if no answer counts.
    """
    # By value: a secret may be part of a command that names no variable.
    hidden = [value for name, value in os.environ.items() if value and is_secret_variable(name, value)]
    args = _masked(request.args, hidden)
    server = request.question
    changes = None if request.changes is None else request.changes.model_dump(mode="json", exclude_defaults=True)
    changes = _masked(changes, hidden)
    is_cut = request.changes is not None and any(file.has_more for file in request.changes.files)
    is_whole = not is_cut and len(json.dumps([args, changes])) <= MAX_ARGUMENTS
    fields: JsonObject = {
        "type": "question",
        "session": session,
        "folder": str(folder),
        "agent": request.agent,
        "request": request.request_id,
        "call": request.call_id,
        "tool": request.tool,
        "summary": _masked(request.summary, hidden),
        "reason": _masked(request.reason, hidden),
        "args": args if is_whole else None,
        "changes": changes if is_whole else None,
    }
    # A password must not travel through the service of a notifier.
    is_form = server is not None and server.kind == "form" and not any(field.is_secret for field in server.fields)
    if server is not None:
        fields["question"] = _masked(server.model_dump(mode="json", exclude_defaults=True), hidden)
    # What could not be shown whole cannot be allowed from elsewhere.
    counting = ("allow", "deny") if is_whole and (server is None or is_form) else ("deny",)
    fields["title"] = escaped(f"tui-agent: {(server.server if server is not None else '') or request.tool}")
    lines = (request.summary, request.reason) if server is None else (server.message, *map(_field_line, server.fields))
    fields["text"] = "\n".join((*(str(_masked(line, hidden)) for line in lines if line), str(folder)))
    return Question(request, fields, counting if answers else ())


def _field_line(field: FormField) -> str:
    choices = ", ".join(choice.label or choice.value for choice in field.choices)
    return f"{field.label} ({choices})" if choices else field.label


def _masked(value: object, hidden: list[str]) -> object:
    """Return a value of JSON without credentials in its texts."""
    if is_object(value):
        return {name: _masked(inner, hidden) for name, inner in value.items()}
    if is_array(value):
        return [_masked(inner, hidden) for inner in value]
    if not isinstance(value, str):
        return value
    text = mask_secrets(value, hidden)
    text = _WORD.sub(lambda word: HIDDEN if holds_secret(word[0]) else word[0], text)
    return HIDDEN if holds_secret(text) else text


def _values(request: ApprovalRequest, given: object) -> JsonObject:
    """Return the values for a form."""
    if request.question is None:
        raise NotifyError("its answer does not count: 'input' is only for forms")
    try:
        return dict(request.question.content(given if is_object(given) else {}))
    except ValueError as error:
        raise NotifyError(f"its answer does not count: {error}") from error


def _answer_in(text: str) -> JsonObject | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if is_object(found) and "answer" in found else None


async def _post(notifier: NotifySettings, url: str, content: bytes, headers: dict[str, str]) -> str:
    """Return the beginning of what a server answers; it may take its time."""
    import httpx2

    from tui_agent.providers.connection import network_for

    if notifier.token_env:
        if not (token := os.environ.get(notifier.token_env)):
            raise NotifyError(f"the variable {notifier.token_env} is not set")
        headers = headers | {"Authorization": f"Bearer {token}"}
    network = await asyncio.to_thread(network_for, url)
    proxy, limit = network.proxy and network.proxy.url, httpx2.Timeout(None, connect=CONNECT_SECONDS)
    # A redirect would take the question to another host, so none is followed.
    client = httpx2.AsyncClient(verify=network.context, proxy=proxy, timeout=limit, trust_env=False)
    try:
        async with client, client.stream("POST", url, content=content, headers=headers) as reply:
            body = b""
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    break
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotifyError(f"its server cannot be reached: {str(error) or type(error).__name__}") from error
    if not 200 <= reply.status_code < 300:
        words = escaped(body[:200].decode("utf-8", "replace").strip())
        raise NotifyError(": ".join(filter(None, (f"its server answers with status {reply.status_code}", words))))
    return body.decode("utf-8", "replace")
