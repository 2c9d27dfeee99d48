"""An open session as other programs of the user see it: a file beside its journal, and a socket that takes answers.

Both are in the directory of the sessions, which only the user may enter. The file has the state and the open questions,
each with a token; an answer over the socket repeats the token, allows or denies one call and never stores a rule.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.execution import ApprovalGate
from tui_agent.protocol.background import run_service
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import RunEnded, RunStarted
from tui_agent.protocol.facts.page_facts import TaskFact, TaskQuestion, TaskState
from tui_agent.protocol.messages import JsonObject, is_array, is_object, now_ms
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.report_text import ANOTHER_PROGRAM
from tui_agent.session.journal import is_journal_open
from tui_agent.session.store import LIVE_SUFFIX, SOCKET_SUFFIX, SessionStore
from tui_agent.session.summary import SessionSummary, summarise
from tui_agent.tools.atomic_write import write_atomically

from .launch import Launch
from .opened_session import OpenedSession

if TYPE_CHECKING:
    # Imported at run time by the first question: a start must not wait for it.
    from .notifiers import Question, Tokens


LONGEST_SOCKET_PATH = 100
"""Bytes of a path that every system takes for a socket."""
LONGEST_ANSWER = 64 * 1024


def open_gate(launch: Launch, session: OpenedSession, *, watched: bool) -> "tuple[ApprovalGate, LiveSession | None]":
    """Return the approval gate, and the session as the user's other programs see it; None without a journal or a user.

    The gate also puts its questions to `[[notify]]` and to these programs; without a user, only to notifiers that may
    answer.

    Args:
        watched: True if a user can answer.
    """
    gate, live, stored, root = ApprovalGate(interactive=watched), None, session.stored, launch.cwd
    if watched and stored.path is not None:
        live = LiveSession(stored.path, stored.id, root, session.bus)
        gate.approver = live.ask
    notifiers = [one for one in launch.settings.notify if watched or one.answers]
    if notifiers:
        # Imported here so that a start without notifiers does not wait for it.
        from .notifiers import Notifiers

        programs = live.ask if live is not None else None
        gate.approver = Notifiers(notifiers, stored.id, root, session.bus, watched=watched, programs=programs).ask
    return gate, live


class LiveSession:
    """Announces one session from its first run on, and lets its questions be answered from elsewhere."""

    def __init__(self, journal: Path, session_id: str, folder: Path, bus: EventBus) -> None:
        """
        Args:
            journal: the journal, beside which the file is.
            bus: has the starts and ends of its runs.
        """
        self._file = journal.with_suffix(LIVE_SUFFIX)
        self._session = session_id
        self._folder = folder
        self._bus = bus
        self._tokens: Tokens | None = None
        self._runs = 0
        self._since = now_ms()
        self._open: dict[str, tuple[Question, str, asyncio.Future[ApprovalDecision]]] = {}
        self._changed = asyncio.Event()

    async def serve(self) -> None:
        """Announce the session until cancelled.

        Raises:
            OSError: the file or the socket cannot be made.
        """
        ends = (self._bus.on(RunStarted, self._count(1)), self._bus.on(RunEnded, self._count(-1)))
        try:
            # A session without a run is not listed before.
            await self._changed.wait()
            await self._announce()
        finally:
            for end in ends:
                end()

    async def ask(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Show a question to other programs and wait for an answer, never None; cancelled once it is answered here."""
        from .notifiers import Tokens, question_of

        question = question_of(request, self._session, self._folder, answers=True)
        if request.question is not None:
            # Its values are given in its own window.
            question = replace(question, answers=("deny",))
        tokens = self._tokens = self._tokens or Tokens()
        token = tokens.new(ANOTHER_PROGRAM, request, float("inf"))
        answer: asyncio.Future[ApprovalDecision] = asyncio.get_running_loop().create_future()
        self._open[request.request_id] = question, token, answer
        self._touch()
        try:
            return await answer
        finally:
            tokens.drop(token)
            del self._open[request.request_id]
            self._touch()

    def _count(self, change: int) -> Callable[[object], None]:
        def count(_: object) -> None:
            self._runs += change
            self._touch()

        return count

    def _touch(self) -> None:
        self._since = now_ms()
        self._changed.set()

    async def _announce(self) -> None:
        socket = await asyncio.to_thread(_socket_path, self._file)
        try:
            async with asyncio.TaskGroup() as tasks:

                def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    tasks.create_task(run_service("answer from elsewhere", self._serve(reader, writer)))

                server = await asyncio.start_unix_server(connected, socket, limit=LONGEST_ANSWER)
                try:
                    while True:
                        self._changed.clear()
                        text = json.dumps(self._state(socket)).encode()
                        await asyncio.to_thread(write_atomically, self._file, text)
                        await self._changed.wait()
                finally:
                    server.close()
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, self._file, socket))

    def _state(self, socket: Path) -> JsonObject:
        state = "waiting" if self._open else "running" if self._runs > 0 else "idle"
        questions = [
            {**question.fields, "answers": question.answers, "token": token}
            for question, token, _ in self._open.values()
        ]
        about: JsonObject = {"pid": os.getpid(), "state": state, "since": self._since, "socket": str(socket)}
        return {**about, "questions": questions}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one answer, and reply why it does not count; an empty reason if it does."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                reason = self._take(await reader.readuntil(b"\n"))
                writer.write(json.dumps({"refused": reason}).encode() + b"\n")
                await writer.drain()
            finally:
                writer.close()

    def _take(self, line: bytes) -> str:
        try:
            said: object = json.loads(line)
        except (ValueError, RecursionError):
            return "the answer was not understood"
        request = said.pop("request", None) if is_object(said) else None
        found = self._open.get(request) if isinstance(request, str) else None
        if not is_object(said) or found is None or found[2].done() or self._tokens is None:
            return "the question is answered already"
        from .notifiers import NotifyError, decision_of

        question, _, answer = found
        try:
            answer.set_result(decision_of(question, said, self._tokens, ANOTHER_PROGRAM))
        except NotifyError as error:
            return str(error)
        return ""


def _socket_path(file: Path) -> Path:
    """Return a path for the socket, which does not exist; its directory is private."""
    socket = file.with_suffix(SOCKET_SUFFIX)
    if len(os.fsencode(socket)) > LONGEST_SOCKET_PATH:
        return Path(tempfile.mkdtemp(prefix="tui-agent-live-")) / "answers.sock"
    socket.unlink(missing_ok=True)
    return socket


def _remove(file: Path, socket: Path) -> None:
    file.unlink(missing_ok=True)
    socket.unlink(missing_ok=True)
    if socket.parent != file.parent:
        socket.parent.rmdir()


MOST = 40
"""Sessions in the list, those written last."""
ANSWER_SECONDS = 10.0
"""Seconds that another session may take to accept an answer."""
_ORDER: tuple[TaskState, ...] = ("waiting", "running", "idle", "closed")
_LIVE_STATES: dict[str, TaskState] = {"waiting": "waiting", "running": "running"}
_ABOUT = ("args", "changes", "question")


class TaskList:
    """Lists the sessions, and answers their questions."""

    def __init__(self, sessions: Path) -> None:
        """Store the directory of the sessions."""
        self._store = SessionStore(sessions)
        self._summaries: dict[Path, tuple[int, SessionSummary | None]] = {}

    async def list(self) -> tuple[TaskFact, ...]:
        """Return the sessions with messages among the `MOST` written last.

        Those that wait for an answer come first, then running, idle and closed ones, the newest of each state first.

        Raises:
            SessionError: the directory of the sessions cannot be read.
        """
        return await asyncio.to_thread(self._list)

    async def answer(self, task: TaskFact, question: TaskQuestion, answer: str, note: str = "") -> None:
        """Answer a question of another session; return once that session has accepted the answer.

        Args:
            answer: one of `question.answers`.
            note: a text for the model; empty for none.

        Raises:
            SessionError: the answer does not count, or no program accepts it within `ANSWER_SECONDS`.
        """
        said = {"request": question.request, "token": question.token, "answer": answer, "note": note}
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(task.socket, limit=LONGEST_ANSWER)
                try:
                    writer.write(json.dumps(said).encode() + b"\n")
                    reply: object = json.loads(await reader.readline())
                finally:
                    writer.close()
        except (OSError, ValueError) as error:
            raise SessionError(f"Session {task.id} takes no answer: {error or 'it has closed'}.") from error
        if is_object(reply) and (reason := reply.get("refused")):
            raise SessionError(f"Nothing was answered: {reason}.")

    def _list(self) -> tuple[TaskFact, ...]:
        paths = self._store.newest_paths()[:MOST]
        self._summaries = {path: self._summary(path) for path in paths}
        found = [self._fact(path, one) for path, (_, one) in self._summaries.items() if one is not None and one.said]
        return tuple(sorted(found, key=lambda task: (_ORDER.index(task.state), -task.since)))

    def _summary(self, path: Path) -> tuple[int, SessionSummary | None]:
        written = 0
        with suppress(OSError):
            written = path.stat().st_mtime_ns
        known = self._summaries.get(path)
        return known if known is not None and known[0] == written else (written, summarise(path))

    def _fact(self, path: Path, one: SessionSummary) -> TaskFact:
        if not is_journal_open(path):
            return TaskFact(one.id, one.title, one.cwd, one.branch, "closed", one.updated)
        live = _read(path.with_suffix(LIVE_SUFFIX))
        state = _LIVE_STATES.get(str(live.get("state")), "idle")
        since, pid, questions = live.get("since"), live.get("pid"), live.get("questions")
        return TaskFact(
            one.id,
            one.title,
            one.cwd,
            one.branch,
            state,
            since if isinstance(since, int) else one.updated,
            pid if isinstance(pid, int) else 0,
            str(live.get("socket", "")),
            tuple(_question(fields) for fields in questions if is_object(fields)) if is_array(questions) else (),
        )


def _read(file: Path) -> JsonObject:
    """Return what a session says about itself; nothing if it does not."""
    try:
        found: object = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if is_object(found) else {}


def _question(fields: JsonObject) -> TaskQuestion:
    answers = fields.get("answers")
    return TaskQuestion(
        str(fields.get("request", "")),
        str(fields.get("title", "")),
        str(fields.get("text", "")),
        {name: fields[name] for name in _ABOUT if fields.get(name)},
        tuple(map(str, answers)) if is_array(answers) else (),
        str(fields.get("token", "")),
    )
