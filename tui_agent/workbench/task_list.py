"""The sessions of the user in one list: those that run, that wait for an answer, that are open, and the last closed."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.facts.page_facts import TaskFact, TaskQuestion, TaskState
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.session.journal import is_journal_open
from tui_agent.session.store import LIVE_SUFFIX, SessionStore
from tui_agent.session.summary import SessionSummary, summarise

from .live_session import LONGEST_ANSWER

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
        """Return the sessions, those that wait for an answer first, and the newest of each state first.

        Raises:
            SessionError: the directory of the sessions cannot be read.
        """
        return await asyncio.to_thread(self._list)

    async def answer(self, task: TaskFact, question: TaskQuestion, answer: str, note: str = "") -> None:
        """Answer a question of another session.

        Raises:
            SessionError: the answer does not count, or no program takes it.
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
