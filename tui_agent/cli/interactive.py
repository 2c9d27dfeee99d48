"""The full-screen app: questions before it, the screen at once, and the engine behind it."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.prelude.early_start import early_terminal
from tui_agent.protocol.background import IMPORTING
from tui_agent.protocol.errors import SessionOpenError, TuiAgentError
from tui_agent.protocol.facts.screen_facts import HistoryTail
from tui_agent.settings import LoadedSettings, Locations, Settings
from tui_agent.ui.app.app_sessions import AppSessions
from tui_agent.ui.app.shutdown import exit_on_signals, run_and_exit, run_dialog
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.app_type import AnyScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.text.line_view import forget_drawn_styles
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import (
    DEMO_LABEL,
    PICK_SESSION,
    LaunchOptions,
    refuse_existing,
)
from tui_agent.workbench.configuration.named_endpoints import lacks_key, require_key
from tui_agent.workbench.configuration.project_trust import TrustStore, open_trust_request
from tui_agent.workbench.sessions.prompt_store import PromptStore
from tui_agent.workbench.sessions.session_launch import SessionLaunch

from .process.controlling_terminal import need_terminal, say, say_error
from .process.log_file import LOG_NAME, log_loop_stalls, log_to_file
from .process.process_setup import collect_at_rest, end_start
from .process.shortage import FAILED, is_group, memory_limit
from .screen_parts import apply_input, choices_of, screen_problems, use_on_screen

if TYPE_CHECKING:
    # Imported at run time only after the first paint.
    from tui_agent.ui.chat.chat_options import ChatOptions
    from tui_agent.ui.replay.replay_screen import ReplayScreen
    from tui_agent.workbench.sessions.replay_source import ReplaySource
    from tui_agent.workbench.workbench import Workbench

OPENING_SECONDS = 120.0
"""Seconds after which a start that has not opened its session ends. If memory runs out at the wrong moment, a thread
cannot even report its failure, and the start would wait for it without end."""

_REST_SECONDS = 5.0
"""Seconds without input or work after which garbage is collected."""
_MAX_UNSENT_WIDTH = 1_000
"""Most cells shown of an unsent message."""


def run_interactive(options: LaunchOptions) -> int:
    """Run the app and return the exit code.

    Raises:
        ConfigurationError: a standard stream is not a terminal, or the configuration is wrong.
    """
    need_terminal("use -p to run without one")
    locations, loaded = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    apply_input(loaded.settings)
    is_asked = not (options.trust or options.extras.is_safe)
    if is_asked and not _ask_for_trust(options.cwd, locations, loaded.settings.ui.theme):
        return 0
    if not (options.demo or options.prompt or options.continue_last or options.resume is not None):
        options = _offer_demo(options, loaded)
    _check_options(options, locations, loaded)
    if options.continue_last or options.resume is not None:
        return _resume(options, locations, loaded.settings)
    return run_and_exit(_run(options, locations, loaded.settings))


def _resume(options: LaunchOptions, locations: Locations, settings: Settings) -> int:
    # Imported here so that the first screen of a new session does not wait for it.
    from tui_agent.workbench.sessions.journal_options import read_glimpse

    chosen = _resolve_session_choice(options, locations, settings.ui.theme)
    if chosen is None:
        return 0
    try:
        return run_and_exit(_run(chosen, locations, settings, read_glimpse(chosen, locations)))
    except SessionOpenError as open_elsewhere:
        other = _resolve_session_in_use(open_elsewhere, chosen, locations, settings.ui.theme)
        if other is None:
            return 0
        return run_and_exit(_run(other, locations, settings, read_glimpse(other, locations)))


def _resolve_session_choice(options: LaunchOptions, locations: Locations, theme: str) -> LaunchOptions | None:
    """Return the options with the session's id, which the user picks if the command line has none; None to quit."""
    from tui_agent.session.store import SessionStore
    from tui_agent.ui.app.session_picker import SessionPicker
    from tui_agent.workbench.sessions.journal_options import find_session_to_resume, resolve_continue
    from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

    options = resolve_continue(options, locations)
    store = SessionStore(locations.sessions_dir)
    if options.resume != PICK_SESSION:
        session_id: str | None = find_session_to_resume(options, store)[0]
    else:
        session_id = run_dialog(SessionPicker(SessionCatalogue(store, options.cwd), theme=theme))
    return None if session_id is None else replace(options, resume=session_id)


def _resolve_session_in_use(
    error: SessionOpenError, options: LaunchOptions, locations: Locations, theme: str
) -> LaunchOptions | None:
    """Return options for a session that another program has open: a copy of it, or no saving; None to quit."""
    from tui_agent.session.store import SessionStore
    from tui_agent.ui.app.session_picker import SessionInUse

    answer = run_dialog(SessionInUse(error.session_id, theme=theme))
    if answer is None:
        return None
    if answer != "fork":
        return replace(options, keep_session=False)
    return replace(options, resume=SessionStore(locations.sessions_dir).fork(error.session_id).id)


def _check_options(options: LaunchOptions, locations: Locations, loaded: LoadedSettings) -> None:
    """Check options before the screen appears, and import what a check needs only if its option is used."""
    refuse_existing(options.extras.record)
    if not options.demo:
        require_key(loaded.settings, os.environ)
    if options.rules:
        from tui_agent.workbench.configuration.permission_rules import parse_rules

        parse_rules(loaded.rules)
    if options.session_id is not None:
        from tui_agent.session import SessionStore

        SessionStore(locations.sessions_dir).refuse_name(options.session_id)


def _offer_demo(options: LaunchOptions, loaded: LoadedSettings) -> LaunchOptions:
    """Without a key, offer the offline model; return the options with the user's choice."""
    if not lacks_key(loaded.settings, os.environ):
        return options
    # Imported here because most starts do not ask this question.
    from tui_agent.ui.app.session_picker import NoKey

    answer = run_dialog(NoKey(theme=loaded.settings.ui.theme))
    return replace(options, demo=True) if answer == "demo" else options


def _ask_for_trust(folder: Path, locations: Locations, theme: str) -> bool:
    """Ask the user to trust the folder's own settings, unless they have answered before; False to quit."""
    offer = open_trust_request(folder, locations)
    if offer is None:
        return True
    # Imported here because most starts do not ask this question.
    from tui_agent.ui.app.question_app import TrustPrompt, TrustQuestion

    prompt = TrustPrompt(str(offer.folder), offer.sections, offer.powers)
    answer = run_dialog(TrustQuestion(prompt, theme=theme))
    if answer is not None:
        TrustStore(locations).remember(offer, answer)
    return answer is not None


async def _run(
    options: LaunchOptions, locations: Locations, settings: Settings, glimpse: HistoryTail | None = None
) -> int:
    """Run the app with its engine and return the exit code; unsent messages are printed at the end."""
    app, sessions = _build_app(options, locations, settings, glimpse)
    try:
        with exit_on_signals(app):
            error = await _run_with_engine(app, sessions, settings)
    except BaseExceptionGroup as group:
        raise _first_error(group) from None
    finally:
        for text in app.chat.bridge.status.unsent:
            say_error(f"tui-agent: this message was not sent: {one_line(text, _MAX_UNSENT_WIDTH)}")
    if error is not None:
        raise error
    # The draft of a program that a signal ended, such as that of a closed terminal, is offered at the next start.
    if not app.return_code and (prompts := app.chat.bridge.prompts) is not None:
        prompts.forget_draft()
    # In a browser, standard output has no reader who could use it.
    if not app.return_code and app.chat.state.begun and app.chat.bridge.is_saved and sys.stdout.isatty():
        say(f"The session is saved: tui-agent --resume {app.chat.bridge.session_id}")
    if options.extras.at_end is not None and not app.return_code:
        await options.extras.at_end()
    return app.return_code or 0


def _build_app(
    options: LaunchOptions, locations: Locations, settings: Settings, glimpse: HistoryTail | None
) -> tuple[TuiAgentApp, AppSessions]:
    """Return the app, and its sessions."""
    prompts = PromptStore(locations.sessions_dir if options.keep_session else None, options.cwd)
    bridge = AgentBridge(mode=settings.permissions.mode, prompts=prompts)
    sessions = AppSessions(SessionLaunch(options, locations, settings), bridge)
    terminal = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    early = early_terminal()
    if early is not None and early.is_light:
        terminal = replace(terminal, light=True)
    app = TuiAgentApp(
        bridge,
        theme=settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        glimpse=glimpse,
        prompt=options.prompt,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        place=WorkingDirectory.of(options.cwd, Path.home()),
        surroundings=terminal,
        log_file=locations.log_dir / LOG_NAME,
        open_replay=partial(_open_replay, locations, options.cwd, sessions),
        sessions=sessions,
        notifications=settings.ui.notifications,
    )
    app.early = early
    app.themes.offer(partial(_plugin_themes, settings, options.cwd))
    app.use_choices(choices_of(settings))
    return app, sessions


def _plugin_themes(settings: Settings, folder: Path) -> Sequence[Path]:
    # Imported here because the first paint does not wait for it, unless it needs such a theme.
    from tui_agent.workbench.plugins.plugin_entries import theme_files

    return theme_files(settings, folder)


async def _open_replay(
    locations: Locations, folder: Path, sessions: AppSessions, name: str, options: "ChatOptions"
) -> "ReplayScreen":
    """Return the screen for `/replay`; without a name, that of the present session."""
    from tui_agent.ui.replay.replay_screen import replay_of
    from tui_agent.workbench.sessions.replay_source import find_journal, read_source

    def read() -> "ReplaySource":
        found = name or sessions.bridge.session_id
        return read_source(find_journal(found, folder, locations, is_current=not name))

    return replay_of(await asyncio.to_thread(read), options)


async def _run_with_engine(app: TuiAgentApp, sessions: AppSessions, settings: Settings) -> TuiAgentError | None:
    """Show the screen, then build the engine behind it; return the error if that failed.

    Messages that the user sends meanwhile wait for the engine.
    """
    async with asyncio.TaskGroup() as tasks:
        screen = tasks.create_task(app.run_async())
        painted = tasks.create_task(app.painted.wait())
        await asyncio.wait((screen, painted), return_when=asyncio.FIRST_COMPLETED)
        painted.cancel()
        if screen.done():
            return None
        engine = tasks.create_task(_serve_engines(app, sessions, screen, settings))
        await asyncio.wait((screen, engine), timeout=OPENING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not (screen.done() or engine.done()) and app.chat.bridge.status.pending:
            engine.cancel()
            app.exit(return_code=FAILED)
            await asyncio.wait((screen, engine))
            say_error(f"tui-agent: {_never_opened()}")
            return None
        await asyncio.wait((screen, engine), return_when=asyncio.FIRST_COMPLETED)
        if app.chat.bridge.status.pending and sessions.options.resume is not None:
            engine.cancel()  # A user who quits now does not wait until a long session is read.
        await asyncio.wait((engine,))
        return None if engine.cancelled() else engine.result()


def _never_opened() -> str:
    limit = memory_limit()
    cause = f" The address limit is {limit >> 20} MiB; raise it (`ulimit -v`)." if limit else ""
    kept = "Nothing was sent; your draft is kept."
    return f"the session did not open within {OPENING_SECONDS:g} s.{cause} {kept} Start again."


async def _serve_engines(
    app: TuiAgentApp, sessions: AppSessions, screen: asyncio.Task[None], settings: Settings
) -> TuiAgentError | None:
    """Load the engine and serve the screen until it is gone, one session after another.

    On an error in the first session, close the screen and return the error.
    """
    workbench = await asyncio.to_thread(_load_engine, settings)
    follows = False
    while not screen.done():
        try:
            end = partial(sessions.wait_for_end, screen)
            await _serve(workbench, app, sessions, end, follows=follows)
        except TuiAgentError as error:
            if not await sessions.go_back(app, str(error)):
                app.exit()
                return error
        await sessions.wait_for_next(screen)
        follows = True
    return None


def _load_engine(settings: Settings) -> "type[Workbench]":
    """Import the engine, which the first screen does not need, and begin to import the model's SDK. Blocks."""
    with IMPORTING:
        from tui_agent.workbench.build_provider import load_sdk_of
        from tui_agent.workbench.workbench import Workbench

    # While the engine opens its session. `AgentBridge.warm_up` waits for it, and reports an error.
    threading.Thread(target=load_sdk_of, args=(settings,), name="model-sdk", daemon=True).start()
    return Workbench


async def _serve(
    workbench: "type[Workbench]",
    app: TuiAgentApp,
    sessions: AppSessions,
    screen_gone: Callable[[], Awaitable[object]],
    *,
    follows: bool,
) -> None:
    """Open a session, connect the bridge to it, and keep it until the screen is gone; then end its run and save it."""
    options, bridge = sessions.options, sessions.bridge
    opened = workbench.open(
        options,
        watched=True,
        screen_problems=screen_problems,
        use_on_screen=partial(use_on_screen, app),
        examine=_examined,
        prompts=bridge.prompts,
    )
    async with log_loop_stalls(), opened as bench:
        bridge.open(bench)
        bench.hooks.begin("clear" if follows and options.resume is None else None)
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(_collect_garbage(bridge)), tasks.create_task(bench.symbols.keep())]
            await screen_gone()
            for task in beside:
                task.cancel()
        await bench.end_run()
        bench.hooks.end("clear" if bridge.is_detached else "prompt_input_exit")


def _examined(folder: Path) -> str:
    from .installation_checks import examined

    return examined(folder)


async def _collect_garbage(bridge: AgentBridge) -> None:
    """Begin to collect garbage, except in what is loaded; all that is new only while nothing happens.

    Looking through it delays frames and keys.
    """
    await bridge.warm.wait()  # The model's SDK is most of it.
    end_start()
    while True:
        await asyncio.sleep(_REST_SECONDS)
        if not bridge.is_busy and AnyScreen.pace.is_quiet(_REST_SECONDS):
            forget_drawn_styles()
            collect_at_rest()


def run_replay(name: str, options: LaunchOptions) -> int:
    """Replay a session, named by its id or file, and return the exit code; needs no key and no network.

    Raises:
        ConfigurationError: standard streams are not a terminal, or the file is not a journal.
        SessionError: no session has this id.
    """
    from tui_agent.ui.replay.replay_screen import ReplayApp, replay_of
    from tui_agent.workbench.sessions.replay_source import find_journal, read_source

    locations, loaded = prepare_settings(options)
    source = read_source(find_journal(name, options.cwd, locations))
    need_terminal("run tui-agent --replay in one")
    log_to_file(locations, verbose=options.verbose)
    apply_input(loaded.settings)
    app = ReplayApp(
        partial(replay_of, source),
        theme=loaded.settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        surroundings=TerminalEnvironment.of_environment(os.environ, reduced_motion=loaded.settings.ui.reduced_motion),
        log_file=locations.log_dir / LOG_NAME,
    )
    app.run()
    return app.return_code or 0


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group, however deeply nested: it caused the others, and callers expect no group."""
    first = group.exceptions[0]
    return _first_error(first) if is_group(first) else first
