"""Inputs of the user: prompts as typed, with the skills, command files (`/NAME`) and files (`@PATH`) they name, and the
commands that need the whole session: export, copy, checks of the installation, state of the work tree.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.messages import JsonObject, TextBlock, UserMessage
from tui_agent.protocol.regular_file import branch_of
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.session import SessionStore
from tui_agent.session.export import ExportFormat, export_session
from tui_agent.session.journal_counts import UsageStatistics, read_statistics
from tui_agent.tools.processes.child_environment import child_environment

from .review_command import PromptDefinitions
from .sessions.prompt_files import PromptFiles
from .sessions.session_facts import has_changes
from .user_commands import run_line

_FORMATS: dict[str, ExportFormat] = {".md": "md", ".html": "html", ".jsonl": "jsonl"}
_FILE_MODE = 0o600
STATUS_SECONDS = 5.0
"""Longest time that the command for the status line may take."""


class SessionPrompts:
    """Passes inputs on to the agent, with skills and command files expanded, and the files of prompts attached."""

    def __init__(self, agent: AgentLoop, definitions: PromptDefinitions, files: PromptFiles) -> None:
        self._agent = agent
        self._definitions = definitions
        self._files = files

    async def run(self, text: str, *, typed: bool) -> AgentRunReport | None:
        """Run an input to its end, with the files that it names, and return the report as `run_message` does.

        Args:
            typed: True if the user typed it: a mention in other text must not send what the agent may not read.

        Raises:
            ConfigurationError: a rule denies reading a file, or as for `run_message`.
            ToolError: a file cannot be sent.
            AlreadyRunningError: the agent is running.
        """
        files = await self._files.attached(text, typed=typed)
        return await self.run_message(
            text, lambda prompt: UserMessage(content=(TextBlock(text=prompt), *files)) if files else prompt
        )

    async def run_message(self, text: str, message: Callable[[str], str | UserMessage]) -> AgentRunReport | None:
        """Run an input to its end and return the report; None if a shell command of its command file was cancelled.

        Args:
            text: a prompt, or `/NAME ARGUMENTS` for a skill, a command file or `/review`.
            message: makes the message to send from the prompt: `text`, or the expanded text of the skill or command.

        Raises:
            ConfigurationError: the command has no text or names a model that cannot be used, or the message is empty.
            AlreadyRunningError: the agent is running.
        """
        if self._definitions.knows(text):
            return await self._definitions.run(text, message)
        return await self._agent.run(message(text))

    def steer(self, text: str) -> UserMessage:
        """Queue a steering message for the current run, or for the start of the next one; return it as queued.

        Raises:
            ConfigurationError: the text needs a run of its own, or is empty.
        """
        return self._agent.steer(self._definitions.expanded(text))

    def follow_up(self, text: str) -> UserMessage:
        """Queue a message for a turn of its own, and return it as queued.

        Raises:
            ConfigurationError: the text needs a run of its own, or is empty.
        """
        return self._agent.follow_up(self._definitions.expanded(text))


class SessionCommands:
    """Export and copy of the session, checks of the installation, and the state of the work tree."""

    def __init__(
        self,
        loop: AgentLoop,
        policy: PermissionPolicy,
        root: Path,
        sessions: Path,
        save: Callable[[], Awaitable[None]] | None,
        status_command: str = "",
    ) -> None:
        """
        Args:
            save: returns once every event so far is saved; None: the session is not saved.
            status_command: the user's command for the status line; empty: none.
        """
        self._loop = loop
        self._policy = policy
        self._root = root
        self._store = SessionStore(sessions)
        self._save = save
        self._status_command = status_command
        self.examine: Callable[[Path], str] | None = None
        """Returns the checks of the installation for a folder; None: the front end has none."""
        self._session_id = loop.bus.origin.session_id

    async def export(self, file: str, /) -> str:
        """Write the session to a new file, in the format that its suffix names, and return the file's path.

        Args:
            file: path relative to the working directory; empty for `session-ID.md`.

        Raises:
            ConfigurationError: the suffix names no format.
            SessionError: the session is not saved, or the file exists or cannot be written.
        """
        session_id = self._session_id
        path = self._root / Path(file or f"session-{session_id}.md").expanduser()
        form = _FORMATS.get(path.suffix)
        if form is None:
            raise ConfigurationError(f"{path.name} ends in none of {', '.join(_FORMATS)}. Nothing was written.")
        if self._save is None:
            raise SessionError("This session is not saved, so it cannot be exported.")
        await self._save()
        await asyncio.to_thread(self._write, session_id, form, path)
        return str(path)

    async def work_tree(self) -> tuple[str, bool] | None:
        """Return the branch and True if files are changed; None if git may not be asked or does not answer.

        The branch is the start of the commit's hash if none is checked out; empty if it cannot be read.
        """
        root, tools = self._root, self._loop.config.tools
        is_changed = await asyncio.to_thread(has_changes, root, self._policy, tools)
        return None if is_changed is None else (branch_of(root), is_changed)

    async def status_output(self, facts: JsonObject, /) -> str:
        """Run the user's command for the status line and return the first line of its output.

        Empty without such a command, and if it cannot be started, as in a removed directory, fails or takes longer
        than `STATUS_SECONDS`.

        Args:
            facts: what it reads as JSON, besides the session's id and directory.
        """
        command = self._status_command
        if not command:
            return ""
        given = {**facts, "session_id": self._session_id, "cwd": str(self._root)}
        text, environment = json.dumps(given).encode(), child_environment(os.environ)
        try:
            code, out, _ = await run_line(
                command, STATUS_SECONDS, given=text, folder=self._root, environment=environment
            )
        except OSError:  # A timeout is one, too.
            return ""
        return "" if code else out.partition("\n")[0].strip()

    def _write(self, session_id: str, form: ExportFormat, path: Path) -> None:
        session = self._store.load(session_id)
        content = export_session(session, form).encode("utf-8", "replace")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
            with os.fdopen(descriptor, "wb") as target:
                target.write(content)
        except FileExistsError as error:
            raise SessionError(f"{path} exists. Nothing was written; name another file: /export FILE") from error
        except OSError as error:
            raise SessionError(f"{path} could not be written: {error.strerror or error}.") from error

    async def fork(self, at_seq: int | None, /) -> str:
        """Copy the session and return the id of the copy.

        Args:
            at_seq: number of the last event to copy; None: all.

        Raises:
            SessionError: the session is not saved, no event has this number or a lower one, or the copy cannot be
                written.
        """
        if self._save is None:
            raise SessionError("This session is not saved, so it cannot be copied.")
        await self._save()
        return (await asyncio.to_thread(self._store.fork, self._session_id, at_seq)).id

    async def statistics(self) -> UsageStatistics:
        """Return tokens and cost of all saved sessions.

        Raises:
            SessionError: the directory of the sessions cannot be read.
        """
        store = self._store
        return await asyncio.to_thread(lambda: read_statistics(store.root, store.newest_paths()))

    async def doctor(self) -> str:
        """Return the checks of `tui-agent doctor`, a line each; empty if the front end has none."""
        return "" if self.examine is None else await asyncio.to_thread(self.examine, self._root)
