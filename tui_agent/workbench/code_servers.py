"""The language servers of a session: where they run, and what they add to the results of edits."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.lsp.language_servers import LanguageServers
from tui_agent.lsp.server_keeper import KeeperParts
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import FileChanged, FileState, ToolQueued
from tui_agent.protocol.hooks import AfterTool
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import LanguageServer, LaunchedProgram
from tui_agent.protocol.tool import ToolResult
from tui_agent.protocol.trial import WalledCommand
from tui_agent.tools.file_states import ContentStore, content_of
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.command_launcher import HelperTree
from tui_agent.trial.trials import Trials

from .launch import Launch
from .opened_session import OpenedSession

NAME = "language servers"
"""Name of the hook in events."""
_EDITS = frozenset(("edit", "write"))
_LARGEST_FILE = 1024 * 1024
_MOST_REMEMBERED = 100
_HOOK_SECONDS = 30.0


@asynccontextmanager
async def code_servers(launch: Launch, session: OpenedSession, trials: Trials) -> AsyncGenerator["CodeServers"]:
    """Let the servers of the settings start when they are first needed; end them when the context closes."""
    root = Path(os.path.realpath(launch.cwd))

    def start(server: LanguageServer, directory: Path) -> LaunchedProgram:
        return _launched(server, directory, root, trials)

    parts = KeeperParts(root, start, session.bus.publish)
    async with LanguageServers(launch.settings.lsp, parts).running() as servers:
        yield CodeServers(servers, session.contents)


class CodeServers:
    """Language servers that answer questions about code, and check the files that an agent edits."""

    def __init__(self, servers: LanguageServers, contents: ContentStore | None) -> None:
        """
        Args:
            contents: contents of files before their changes; without them every problem counts as new.
        """
        self.look_up = servers.look_up
        """Answers a question about code."""
        self._servers = servers
        self._contents = contents
        self._before: dict[str, FileState | None] = {}
        """State of a file before its change, by the call that changed it."""

    def check_edits(self, loop: AgentLoop) -> None:
        """Let the servers check the files that an agent edits from now on, and add what they find to the results.

        Does nothing for an agent without a hook bus.
        """
        hooks = loop.config.hooks
        if hooks is None:
            return
        self._servers.notify = loop.notify
        loop.bus.on((ToolQueued, FileChanged), self.note)
        # After the other hooks: one may format the file.
        hooks.add(
            "after_tool",
            self.add_to_result,
            name=NAME,
            timeout=_HOOK_SECONDS,
            fail_open=True,
            applies=self.is_about,
            needs_effects=False,
        )

    def note(self, event: ToolQueued | FileChanged) -> None:
        """Start servers for a call that is going to change a file, and let them know of changed files."""
        if isinstance(event, FileChanged):
            self._servers.file_changed(Path(event.path), event.change)
            if event.call_id is not None and event.known:
                # Taken from the event: by the time the hook runs, the file has its new content.
                self._before[event.call_id] = event.before
                for old in list(self._before)[:-_MOST_REMEMBERED]:
                    del self._before[old]
        elif event.name in _EDITS and isinstance(path := event.args_raw.get("path"), str):
            self._servers.prepare_named(path)

    def is_about(self, question: AfterTool) -> bool:
        """Return True if a call changed a file for which there is a server."""
        path = _changed_path(question)
        return path is not None and self._servers.has_server_for(path)

    async def add_to_result(self, question: AfterTool) -> ToolResult | None:
        """Return the result of a call with what the servers found; None if that is nothing."""
        path, result = _changed_path(question), question.result
        after = None if path is None else await asyncio.to_thread(_text_of, path)
        if path is None or after is None:
            return None
        before = "" if (result.details or {}).get("change") == "created" else None
        state = self._before.pop(question.call.id, None)
        if state is not None and self._contents is not None:
            before = await asyncio.to_thread(_decoded, state, self._contents)
        findings = await self._servers.check(path, before, after)
        if not (text := findings.text(self._servers.shown(path))):
            return None
        details: JsonObject = dict(result.details or {})
        if counts := findings.counts:
            details |= {
                "outcome": " · ".join(filter(None, (str(details.get("outcome", "")), counts))),
                "problems": counts,
            }
        return result.model_copy(update={"content": (*result.content, TextBlock(text=text)), "details": details})


def _changed_path(question: AfterTool) -> Path | None:
    """Return the file that a call changed; None if it changed none."""
    details = question.result.details or {}
    path = details.get("path")
    if question.call.name not in _EDITS or question.result.is_error or not isinstance(path, str):
        return None
    return Path(path) if details.get("change") in ("created", "modified") else None


def _text_of(path: Path) -> str | None:
    """Return the text of a file; None if it is none for a server. Blocks."""
    try:
        return read_regular_file(str(path), _LARGEST_FILE).decode("utf-8")
    except (OSError, ValueError):
        return None


def _decoded(state: FileState, contents: ContentStore) -> str | None:
    content = content_of(state, contents)
    try:
        return None if content is None or len(content) > _LARGEST_FILE else content.decode("utf-8")
    except ValueError:
        return None


def _launched(server: LanguageServer, directory: Path, root: Path, trials: Trials) -> LaunchedProgram:
    """Prepare the start of a server: behind the walls of commands that only read, where walls work. Blocks."""
    facts = trials.facts
    # A server runs code of the project, as a command does.
    if facts.place == "nowhere":
        raise ConfigurationError(f'sandbox = "required" is set and no trial works here: {facts.problem}')
    if not directory.is_dir():
        raise ConfigurationError(f"its `root` {directory} is not a directory")
    program = os.path.expanduser(server.command[0])
    # A name with a `/` is one in the server's directory.
    found = shutil.which(os.path.join(directory, program) if os.sep in program else program)
    if found is None:
        raise ConfigurationError(f"there is no program {program}; install it, or name another `command`")
    found = os.path.abspath(found)
    argv, environment = (found, *server.command[1:]), child_environment(os.environ, is_confined=facts.is_available)
    # Walls show the installations that this path leads to.
    environment["PATH"] = os.pathsep.join((os.path.dirname(found), environment.get("PATH", os.defpath)))
    layer = trials.open_view() if facts.is_available else None
    try:
        walled = WalledCommand(argv, environment) if layer is None else layer.walled(argv, environment)
        tree = HelperTree(root)
        marked, variables = tree.prepare(tuple(walled.argv), walled.environment)
    # Also if the start is cancelled, since the layer has mounts and files.
    except BaseException:
        if layer is not None:
            layer.discard()
        raise

    def end(pid: int | None) -> None:
        try:
            tree.end(pid)
        finally:
            if layer is not None:
                layer.discard()

    return LaunchedProgram(marked, variables, walled.descriptors, tree.started, end)
