"""The sessions of one running app: finds them, and passes one after another to the engine."""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_agent.protocol.engine_imports import IMPORTING
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.facts.first_page_data import FirstPage
from tui_agent.settings import Locations, Settings
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.app_requests import OpenedSession, SessionTarget
from tui_agent.workbench.launch_options import DEMO_LABEL, LaunchOptions
from tui_agent.workbench.sessions.first_pages import collect_first_page, is_first_run, keep_theme

if TYPE_CHECKING:
    from tui_agent.ui.app.session_screen import SessionScreen


@dataclass(frozen=True, slots=True)
class PreparedSession(OpenedSession):
    """A session that the engine can be built for."""

    options: LaunchOptions


class AppSessions:
    """The session on the screen, and the next one; implements `ui.chat.app_requests.SessionService`."""

    def __init__(self, options: LaunchOptions, locations: Locations, settings: Settings, bridge: AgentBridge) -> None:
        """Begin with the session that the command line names, and its bridge."""
        self.options = options
        """Options of the session on the screen."""
        self.bridge = bridge
        """Bridge of the session on the screen."""
        self._launch = options
        self._locations = locations
        self._settings = settings
        self._left: SessionTarget | None = None
        self._next: PreparedSession | None = None
        self._wanted = asyncio.Event()
        self._first_run = is_first_run(locations)
        self._kept_theme = ""

    # --- for the screen -----------------------------------------------------------------------------------------------

    async def first_page(self) -> FirstPage:
        """Return the content of the first page."""
        return await collect_first_page(self.options, self._locations, _age_text, first_run=self._first_run)

    async def keep_theme(self, name: str, /) -> str:
        """Write a theme into the user's new settings file and return its path."""
        path = await keep_theme(name, self._locations, self._kept_theme)
        self._kept_theme = name
        return path

    def list_screen(self, current: str, words: str, /) -> "SessionScreen":
        """Return the screen that lists the sessions."""
        # Imported here: the first screen does not need sessions.
        with IMPORTING:
            from tui_agent.session.store import SessionStore
            from tui_agent.ui.app.session_screen import SessionScreen
            from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

        store = SessionStore(self._locations.sessions_dir)
        return SessionScreen(SessionCatalogue(store, self.options.cwd), current=current, words=words)

    async def find(self, words: str, /) -> str | None:
        """Return the only session with this id or these words in its title; None if there are several.

        Raises:
            SessionError: there is none.
        """
        return await asyncio.to_thread(self._find, words)

    def _find(self, words: str) -> str | None:
        with IMPORTING:
            from tui_agent.session.store import SessionStore

        store = SessionStore(self._locations.sessions_dir)
        with suppress(SessionError):
            return store.find(words)
        wanted = words.casefold().split()
        here = os.path.realpath(self.options.cwd)
        found = [
            one
            for one in store.list()
            if one.said
            and os.path.realpath(one.cwd) == here
            and all(word in f"{one.id} {one.title}".casefold() for word in wanted)
        ]
        if not found:
            raise SessionError(f"No session of this folder has “{words}” in its id or title. /resume lists all.")
        return found[0].id if len(found) == 1 else None

    async def prepare(self, target: SessionTarget, /) -> OpenedSession:
        """Check that a session can be opened, and return it.

        Raises:
            ConfigurationError: no key is set.
            SessionError: the session does not exist, or another program has it open.
        """
        options = replace(
            self._launch,
            prompt=None,
            continue_last=False,
            resume=target.session_id,
            session_id=None,
            # The recording is that of the first session.
            record=None,
            notice="",
            # A session that is resumed from the tour continues with the model of the command line.
            demo=target.demo or (self.options.demo if target.session_id is None else self._launch.demo),
        )
        glimpse = None
        if target.session_id is not None:
            from tui_agent.workbench.sessions.resume import read_glimpse

            glimpse = await asyncio.to_thread(read_glimpse, options, self._locations)
        bridge = AgentBridge(mode=self._settings.permissions.mode, prompts=self.bridge.prompts)
        model, label = ("", DEMO_LABEL) if options.demo else (self._settings.model, "")
        return PreparedSession(bridge, glimpse, model, label, options)

    def start(self, opened: OpenedSession, /) -> None:
        """End the present engine, and build that of a prepared session, in the background."""
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
        from tui_agent.ui.app.session_rows import age_text

    return age_text(time, now)
