"""The start of the full-screen app: the screen at once, and the engine behind it."""

import asyncio
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeGuard

from tui_agent.prelude.early_start import early_terminal
from tui_agent.protocol.errors import SessionOpenError, TuiAgentError
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.workbench.sessions.prompt_store import PromptStore
from tui_agent.workbench.sessions.session_launch import NextSession, SessionLaunch

from .app_sessions import AppSessions, ReplayMaker
from .engine_runner import AppProcess, EngineRunner
from .screen_settings import apply_input, choices_of, plugin_themes, use_on_screen
from .shutdown import exit_on_signals, run_and_exit
from .start_questions import ask_about_open_session, ask_before_start
from .tui_agent_app import TuiAgentApp

OPENING_SECONDS = 120.0
"""Seconds after which a start that has not opened its session ends. If memory runs out at the wrong moment, a thread
cannot even report its failure, and the start would wait for it without end."""

_MAX_UNSENT_WIDTH = 1_000
"""Most cells shown of an unsent message."""


def run_app(launch: SessionLaunch, process: AppProcess) -> int:
    """Ask what has to be known first, run the app and return the exit code.

    Raises:
        ConfigurationError: the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    apply_input(launch.settings)
    chosen = ask_before_start(launch)
    if chosen is None:
        return 0
    try:
        return run_and_exit(_run(chosen, chosen.first_session(), process))
    except SessionOpenError as open_elsewhere:
        if chosen.options.resume is None:
            raise
        other = ask_about_open_session(open_elsewhere, chosen)
        return 0 if other is None else run_and_exit(_run(other, other.first_session(), process))


async def _run(launch: SessionLaunch, first: NextSession, process: AppProcess) -> int:
    """Run the app with its engine and return the exit code; unsent messages are printed at the end."""
    app, sessions = _build_app(launch, first, process.log_file)
    try:
        with exit_on_signals(app):
            error = await _run_with_engine(app, sessions, launch, process)
    except BaseExceptionGroup as group:
        raise _first_error(group) from None
    finally:
        for text in app.chat.bridge.status.unsent:
            process.say_error(f"tui-agent: this message was not sent: {one_line(text, _MAX_UNSENT_WIDTH)}")
    if error is not None:
        raise error
    # The draft of a program that a signal ended, such as that of a closed terminal, is offered at the next start.
    if not app.return_code and (prompts := app.chat.bridge.prompts) is not None:
        prompts.forget_draft()
    # In a browser, standard output has no reader who could use it.
    if not app.return_code and app.chat.state.begun and app.chat.bridge.is_saved and sys.stdout.isatty():
        process.say(f"The session is saved: tui-agent --resume {app.chat.bridge.session_id}")
    if (at_end := launch.options.extras.at_end) is not None and not app.return_code:
        await at_end()
    return app.return_code or 0


def _build_app(launch: SessionLaunch, first: NextSession, log_file: Path) -> tuple[TuiAgentApp, AppSessions]:
    """Return the app, and its sessions."""
    settings, options = launch.settings, launch.options
    prompts = PromptStore(launch.sessions_dir if options.keep_session else None, options.cwd)
    bridge = AgentBridge(mode=launch.mode, prompts=prompts)
    sessions = AppSessions(launch, bridge, _load_replays)
    terminal = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    early = early_terminal()
    if early is not None and early.is_light:
        terminal = replace(terminal, light=True)
    chat = ChatOptions(
        WorkingDirectory.of(options.cwd, Path.home()),
        first.model,
        first.label,
        sessions=sessions,
        surroundings=terminal,
        glimpse=first.glimpse,
        prompt=options.prompt,
        choices=choices_of(settings),
    )
    app = TuiAgentApp(
        bridge,
        chat,
        theme=settings.ui.theme,
        themes_dirs=(launch.locations.user_themes_dir,),
        log_file=log_file,
        notifications=settings.ui.notifications,
    )
    app.early = early
    app.themes.offer(partial(plugin_themes, settings, options.cwd))
    return app, sessions


def _load_replays() -> ReplayMaker:
    # Imported here because the first screen does not need it.
    from tui_agent.ui.replay.replay_screen import replay_of

    return replay_of


async def _run_with_engine(
    app: TuiAgentApp, sessions: AppSessions, launch: SessionLaunch, process: AppProcess
) -> TuiAgentError | None:
    """Show the screen, then build the engine behind it; return the error if that failed.

    Messages that the user sends meanwhile wait for the engine.
    """
    runner = EngineRunner(sessions, process, app.show_session, partial(use_on_screen, app, app.use_choices))
    async with asyncio.TaskGroup() as tasks:
        screen = tasks.create_task(app.run_async())
        # Imports of the engine would take the processor from the first paint.
        painted = tasks.create_task(app.painted.wait())
        await asyncio.wait((screen, painted), return_when=asyncio.FIRST_COMPLETED)
        painted.cancel()
        if screen.done():
            return None
        engine = tasks.create_task(runner.run(launch.settings, screen))
        await asyncio.wait((screen, engine), timeout=OPENING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not (screen.done() or engine.done()) and app.chat.bridge.status.pending:
            engine.cancel()
            app.exit(return_code=1)
            await asyncio.wait((screen, engine))
            process.say_error(f"tui-agent: {_never_opened(process.address_limit)}")
            return None
        await asyncio.wait((screen, engine), return_when=asyncio.FIRST_COMPLETED)
        if not screen.done():
            app.exit()  # The first session could not be opened.
        if app.chat.bridge.status.pending and sessions.options.resume is not None:
            engine.cancel()  # A user who quits now does not wait until a long session is read.
        await asyncio.wait((engine,))
        return None if engine.cancelled() else engine.result()


def _never_opened(limit: int | None) -> str:
    cause = f" The address limit is {limit >> 20} MiB; raise it (`ulimit -v`)." if limit else ""
    kept = "Nothing was sent; your draft is kept."
    return f"the session did not open within {OPENING_SECONDS:g} s.{cause} {kept} Start again."


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, however deeply nested: it caused the others, and callers expect no group."""
    first = group.exceptions[0]
    return _first_error(first) if _is_group(first) else first


def _is_group(error: BaseException) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    return isinstance(error, BaseExceptionGroup)
