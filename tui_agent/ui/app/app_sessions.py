"""The sessions of one running app: the one on the screen, the next one, and the questions before it is shown."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, TypeAlias

from tui_agent.protocol.background import IMPORTING, run_service
from tui_agent.protocol.facts.screen_facts import FirstPage
from tui_agent.ui.base.app_type import InputTaker
from tui_agent.ui.bridge.agent_bridge import NOT_READY, AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions, OpenedSession, SessionRequested, SessionService, SessionTarget
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.workbench.sessions.session_launch import SessionLaunch

from .base_app import BaseApp

if TYPE_CHECKING:
    # Imported at run time only when the user opens them.
    from tui_agent.workbench.sessions.replay_source import ReplaySource

    from .session_screen import SessionScreen


ONE_SESSION = "Sessions cannot be switched here. Quit, and start tui-agent --resume."
MOST_MESSAGES = 9_999
"""Highest number for `/fork`."""


class SessionSwitcher:
    """Shows another session in place of the present one."""

    def __init__(
        self,
        app: BaseApp[None],
        service: SessionService | None,
        bridge: Callable[[], AgentBridge],
        options: Callable[[], ChatOptions],
        state: Callable[[], ScreenState],
        show: Callable[[OpenedSession, str, str], None],
    ) -> None:
        """Create it; an embedded app has no `service`. `show` gets a session with a note and a text to edit."""
        self._app = app
        self._service = service
        self._bridge = bridge
        self._options = options
        self._state = state
        self._show = show

    def receive(self, request: SessionRequested) -> None:
        """Do what the user asks for, or say why that is not possible."""
        bridge = self._bridge()
        if self._service is None:
            self._say(ONE_SESSION)
        elif bridge.status.pending:
            self._say(NOT_READY)
        elif request.kind == "resume" and request.argument:
            self._work(self._find(self._service, request.argument))
        elif request.kind == "resume":
            self._list(self._service, "")
        elif request.kind == "fork":
            self._work(self._fork(request.argument))
        elif request.kind == "demo" and self._options().label:
            self._say("This is the offline model already. Say: give me the tour")
        elif request.kind == "clear" and not self._state().begun:
            self._say("The conversation is empty already.")
        else:
            self._leave_for(SessionTarget(None, demo=request.kind == "demo"))

    # --- which session ------------------------------------------------------------------------------------------------

    def _list(self, service: SessionService, words: str) -> None:
        self._app.push_screen(service.list_screen(self._bridge().session_id, words), self._chosen)

    def _chosen(self, session_id: str | None) -> None:
        if session_id is None:
            return
        if session_id == self._bridge().session_id:
            self._say("You are in this session.")
        else:
            self._leave_for(SessionTarget(session_id))

    async def _find(self, service: SessionService, words: str) -> None:
        found = await service.find(words)
        if found is None:
            self._list(service, words)
        else:
            self._chosen(found)

    async def _fork(self, argument: str) -> None:
        bridge = self._bridge()
        if argument and not (argument.isascii() and argument.isdecimal() and 0 < int(argument) <= MOST_MESSAGES):
            self._say("/fork copies the whole session; /fork 2 leaves out your last two messages.")
        elif bridge.status.running:
            self._say("The agent is working. /fork copies the session when it is done.")
        elif (bench := bridge.bench) is None or bench.rewind is None:
            self._say("This session is not saved, so it cannot be copied.")
        else:
            at_seq, left_out = None, ""
            if argument:
                moments = [moment for moment in await bench.rewind.points() if moment.is_turn]
                if int(argument) > len(moments):
                    self._say(f"This session has only {len(moments)} messages of yours. Nothing was copied.")
                    return
                moment = moments[int(argument) - 1]
                at_seq, left_out = moment.seq, moment.text
            copy = await bench.commands.fork(at_seq)
            note = f"You are in a copy, session {copy}. /resume {bridge.session_id} returns to the original."
            await self._switch(SessionTarget(copy), note, left_out)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _leave_for(self, target: SessionTarget) -> None:
        """Switch, after a question if that ends or loses something."""
        bridge, state = self._bridge(), self._state()
        lost: list[str] = []
        if bridge.status.running:
            lost.append("The agent is working here. Its run is cancelled; results so far and queued messages are kept.")
        if (not bridge.is_saved or state.status.unsaved) and state.begun:
            lost.append("This session is not saved: its conversation is lost.")
        if not lost:
            self._work(self._switch(target))
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(self._switch(target))

        clock = self._options().surroundings.clock
        question = ConfirmScreen("Leave this session?", " ".join(lost), "leave it", clock=clock, no="stay")
        self._app.push_screen(question, answered)

    async def _switch(self, target: SessionTarget, note: str = "", draft: str = "") -> None:
        if self._service is None:
            return
        bridge = self._bridge()
        left, is_saved = bridge.session_id, bridge.is_saved and self._state().begun
        opened = await self._service.prepare(target)
        if not note and is_saved and target.session_id is None:
            note = f"New session. /resume {left} returns to the one before, which is saved."
        elif not note and is_saved:
            note = f"/resume {left} returns to the session before, which is saved."
        self._show(opened, note, draft)

    # --- reporting ----------------------------------------------------------------------------------------------------

    def _work(self, work: Coroutine[object, object, None]) -> None:
        self._app.run_worker(self._guarded(work), group="session", exclusive=True, exit_on_error=False)

    async def _guarded(self, work: Awaitable[None]) -> None:
        await run_service("switching sessions", work, self._say)

    def _say(self, text: str) -> None:
        self._app.notify(text, severity="warning")


ReplayMaker: TypeAlias = "Callable[[ReplaySource, ChatOptions], InputTaker]"
"""Returns the screen that replays a session."""


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
        self._next: OpenedSession | None = None
        self._wanted = asyncio.Event()

    # --- for the screen -----------------------------------------------------------------------------------------------

    async def first_page(self) -> FirstPage:
        return await self._launch.first_page(self.options)

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
        return OpenedSession(bridge, found)

    def start(self, opened: OpenedSession, /) -> None:
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
                # One that is not saved cannot be opened again: a new one takes its place.
                self._left = SessionTarget(session_id if self.bridge.is_saved else None)
            self.options, self.bridge = self._next.session.options, self._next.bridge
            self._next = None

    async def previous(self) -> OpenedSession | None:
        """Return the session before, because the present one could not be opened; None if there is none.

        Raises:
            TuiAgentError: it cannot be opened, either.
        """
        left, self._left = self._left, None
        return None if left is None else await self.prepare(left)
