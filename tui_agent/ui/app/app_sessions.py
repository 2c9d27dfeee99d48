"""The sessions of one running app: the one on the screen, the next one, and the one to return to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.facts.screen_facts import FirstPage
from tui_agent.ui.base.app_type import InputTaker
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions, OpenedSession, SessionService, SessionTarget
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.sessions.session_launch import SessionLaunch

if TYPE_CHECKING:
    # Imported at run time only when the user opens them.
    from tui_agent.workbench.sessions.replay_source import ReplaySource

    from .session_screen import SessionScreen

ReplayMaker: TypeAlias = "Callable[[ReplaySource, ChatOptions], InputTaker]"
"""Returns the screen that replays a session."""


@dataclass(frozen=True, slots=True)
class PreparedSession(OpenedSession):
    """A session that the engine can be built for."""

    options: LaunchOptions


class AppSessions(SessionService):
    """The session on the screen, and the next one."""

    def __init__(self, launch: SessionLaunch, bridge: AgentBridge, load_replays: Callable[[], ReplayMaker]) -> None:
        """Begin with the session that the command line names, and its bridge; `load_replays` is called for a replay."""
        self.options = launch.options
        """Options of the session on the screen."""
        self.bridge = bridge
        """Bridge of the session on the screen."""
        self._launch = launch
        self._load_replays = load_replays
        self._left: SessionTarget | None = None
        self._next: PreparedSession | None = None
        self._wanted = asyncio.Event()

    # --- for the screen -----------------------------------------------------------------------------------------------

    async def first_page(self) -> FirstPage:
        return await self._launch.first_page(self.options, _age_text)

    async def keep_theme(self, name: str, /) -> str:
        return await self._launch.keep_theme(name)

    def list_screen(self, current: str, words: str, /) -> "SessionScreen":
        # Imported here: the first screen does not need sessions.
        with IMPORTING:
            from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

            from .session_screen import SessionScreen

        catalogue = SessionCatalogue.of_directory(self._launch.sessions_dir, self.options.cwd)
        return SessionScreen(catalogue, current=current, words=words)

    async def replay(self, name: str, options: ChatOptions, /) -> InputTaker:
        replay_of = self._load_replays()
        session = name or self.bridge.session_id
        return replay_of(await self._launch.read_replay(session, self.options.cwd, is_current=not name), options)

    async def find(self, words: str, /) -> str | None:
        return await self._launch.find(words, self.options.cwd)

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        # A session that is resumed from the tour continues with the model of the command line.
        demo = self.options.demo if target.session_id is None else self._launch.options.demo
        found = await self._launch.prepare(target.session_id, demo=target.demo or demo)
        bridge = AgentBridge(mode=self._launch.mode, prompts=self.bridge.prompts)
        return PreparedSession(bridge, found.glimpse, found.model, found.label, found.options)

    def start(self, opened: OpenedSession, /) -> None:
        if isinstance(opened, PreparedSession):
            self._next = opened
            self._wanted.set()

    # --- for the engine -----------------------------------------------------------------------------------------------

    async def wait_for_end(self, screen: asyncio.Task[None]) -> None:
        """Return once the app has ended, or the user has left the session."""
        async with asyncio.TaskGroup() as tasks:
            wanted = tasks.create_task(self._wanted.wait())
            await asyncio.wait((screen, wanted), return_when=asyncio.FIRST_COMPLETED)
            wanted.cancel()

    async def wait_for_next(self, screen: asyncio.Task[None]) -> None:
        """Make the next session the one on the screen, once there is one; return if the app has ended."""
        await self.wait_for_end(screen)
        self._wanted.clear()
        if self._next is not None:
            if session_id := self.bridge.session_id:
                self._left = SessionTarget(session_id if self.bridge.is_saved else None)
            self.options, self.bridge = self._next.options, self._next.bridge
            self._next = None

    async def previous(self) -> OpenedSession | None:
        """Return the session before, because the present one could not be opened; None if there is none.

        Raises:
            TuiAgentError: it cannot be opened, either.
        """
        left, self._left = self._left, None
        return None if left is None else await self.prepare(left)


def _age_text(time: int, now: int) -> str:
    # Imported here, in the thread that reads the sessions: the first screen does not need their rows.
    with IMPORTING:
        from .session_rows import age_text

    return age_text(time, now)
