"""The sessions of one running app: passes one after another to the engine."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.facts.screen_facts import FirstPage
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.app_requests import OpenedSession, SessionService, SessionTarget
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.sessions.session_launch import SessionLaunch

from .tui_agent_app import TuiAgentApp

if TYPE_CHECKING:
    from .session_screen import SessionScreen


@dataclass(frozen=True, slots=True)
class PreparedSession(OpenedSession):
    """A session that the engine can be built for."""

    options: LaunchOptions


class AppSessions(SessionService):
    """The session on the screen, and the next one."""

    def __init__(self, launch: SessionLaunch, bridge: AgentBridge) -> None:
        """Begin with the session that the command line names, and its bridge."""
        self.options = launch.options
        """Options of the session on the screen."""
        self.bridge = bridge
        """Bridge of the session on the screen."""
        self._launch = launch
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

    async def go_back(self, app: TuiAgentApp, reason: str) -> bool:
        """Show the session before again, because the present one could not be opened.

        Returns False if there is none.

        Raises:
            TuiAgentError: it cannot be opened, either.
        """
        left, self._left = self._left, None
        if left is None:
            return False
        app.show_session(await self.prepare(left), reason)
        return True


def _age_text(time: int, now: int) -> str:
    # Imported here, in the thread that reads the sessions: the first screen does not need their rows.
    with IMPORTING:
        from .session_rows import age_text

    return age_text(time, now)
