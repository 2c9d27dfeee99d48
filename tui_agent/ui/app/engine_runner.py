"""Loads the engine behind the screen, and serves the screen with it, one session after another."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.settings import LoadedSettings, Settings
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import OpenedSession
from tui_agent.ui.text.line_view import forget_drawn_styles

from .app_sessions import AppSessions
from .screen_settings import screen_problems

if TYPE_CHECKING:
    # Imported at run time only after the first paint.
    from tui_agent.workbench.workbench import Workbench

_REST_SECONDS = 5.0
"""Seconds without input or work after which garbage is collected."""


@dataclass(frozen=True, slots=True)
class AppProcess:
    """Services of the process for the app that runs in it."""

    log_file: Path
    """Gets the errors of failed widgets."""
    say: Callable[[str], None]
    """Writes a line to standard output, once the screen is gone."""
    say_error: Callable[[str], None]
    """Writes a line to standard error, once the screen is gone."""
    end_start: Callable[[], None]
    """Called once all that the session needs is loaded."""
    collect_garbage: Callable[[], None]
    """Called while nothing happens."""
    watch_loop: Callable[[], AbstractAsyncContextManager[None]]
    """Logs stalls of the event loop while a session is open."""
    examine: Callable[[Path], str]
    """Returns the report of `doctor` for a folder. Blocks."""
    address_limit: int | None
    """Bytes of addresses that the process may use; None if there is no limit."""


class EngineRunner:
    """Runs the engine of one session after another, until the screen is gone."""

    def __init__(
        self,
        sessions: AppSessions,
        process: AppProcess,
        show_session: Callable[[OpenedSession, str], None],
        use_on_screen: Callable[[Settings, LoadedSettings], tuple[str, ...]],
    ) -> None:
        """Prepare to run; nothing is loaded yet.

        Args:
            sessions: the session on the screen, and those that follow.
            process: garbage collection and diagnosis.
            show_session: shows a session on the screen, with a note.
            use_on_screen: applies changed settings of the screen, and returns warnings.
        """
        self._sessions = sessions
        self._process = process
        self._show_session = show_session
        self._use_on_screen = use_on_screen

    async def run(self, settings: Settings, screen: asyncio.Task[None]) -> TuiAgentError | None:
        """Load the engine and serve the screen until it is gone, then return None.

        If a session cannot open and there is no other to return to, return the error at once.
        """
        workbench = await asyncio.to_thread(load_engine, settings)
        sessions, follows = self._sessions, False
        while not screen.done():
            try:
                await self._serve(workbench, partial(sessions.wait_for_end, screen), follows=follows)
            except TuiAgentError as error:
                before = await sessions.previous()
                if before is None:
                    return error
                self._show_session(before, str(error))
            await sessions.wait_for_next(screen)
            follows = True
        return None

    async def _serve(
        self, workbench: "type[Workbench]", screen_gone: Callable[[], Awaitable[object]], *, follows: bool
    ) -> None:
        """Open a session, connect the bridge to it, and keep it until the screen is gone; then end and save it."""
        options, bridge = self._sessions.options, self._sessions.bridge
        opened = workbench.open(
            options,
            watched=True,
            screen_problems=screen_problems,
            use_on_screen=self._use_on_screen,
            examine=self._process.examine,
            prompts=bridge.prompts,
        )
        async with self._process.watch_loop(), opened as bench:
            bridge.open(bench)
            bench.hooks.begin("clear" if follows and options.resume is None else None)
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(self._collect_garbage(bridge)), tasks.create_task(bench.symbols.keep())]
                await screen_gone()
                for task in beside:
                    task.cancel()
            await bench.end_run()
            bench.hooks.end("clear" if bridge.is_detached else "prompt_input_exit")

    async def _collect_garbage(self, bridge: AgentBridge) -> None:
        """Begin to collect garbage, except in what is loaded; all that is new only while nothing happens.

        Looking through it delays frames and keys.
        """
        await bridge.warm.wait()  # The model's SDK is most of it.
        self._process.end_start()
        while True:
            await asyncio.sleep(_REST_SECONDS)
            if not bridge.is_busy and AnyScreen.pace.is_quiet(_REST_SECONDS):
                forget_drawn_styles()
                self._process.collect_garbage()


def load_engine(settings: Settings) -> "type[Workbench]":
    """Import the engine, which the first screen does not need, and begin to import the model's SDK. Blocks."""
    with IMPORTING:
        from tui_agent.workbench.build_provider import load_sdk_of
        from tui_agent.workbench.workbench import Workbench

    # While the engine opens its session. `AgentBridge.warm_up` waits for it, and reports an error.
    threading.Thread(target=load_sdk_of, args=(settings,), name="model-sdk", daemon=True).start()
    return Workbench
