"""The full-screen app: an engine with a person in front of it."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from tui_agent.protocol.errors import ConfigurationError, SessionOpenError, TuiAgentError
from tui_agent.settings import LoadedSettings, Locations, Settings
from tui_agent.ui.app.tui_agent_app import OpenPlayer, TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.screen_state import HistoryTail
from tui_agent.ui.text.sanitiser import one_line

from .controlling_terminal import need_terminal, say_error
from .credentials import Credentials
from .effective_settings import prepare_settings
from .launch_options import DEMO_LABEL, LaunchOptions
from .log_file import LOG_NAME, log_to_file
from .project_trust import TrustStore, trust_request_for
from .record_option import open_recording_writer, recording_header
from .shutdown import exit_on_signals, run_and_exit, run_dialog

if TYPE_CHECKING:
    # Loaded where something is recorded only.
    from tui_agent.recording import RecordingWriter

_LONGEST_UNSENT = 1_000
"""Cells shown of a message that nothing came of."""


def run_interactive(options: LaunchOptions) -> int:
    """Runs the app; returns the exit code.

    Raises:
        ConfigurationError: there is no terminal, or something in the configuration is wrong.
    """
    need_terminal("use -p for a run without one")
    locations, loaded = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    if not options.trust and not _ask_for_trust(options.cwd, locations, loaded.settings.ui.theme):
        return 0
    _refuse_at_once(options, locations, loaded)
    if options.continue_last or options.resume is not None:
        return _run_on(options, locations, loaded.settings)
    return run_and_exit(_run(options, locations, loaded.settings))


def _run_on(options: LaunchOptions, locations: Locations, settings: Settings) -> int:
    """Goes on with an earlier session."""
    # Loaded only here: a new session's first screen does not wait for it.
    from .resume import chosen, read_glimpse, resolve_session_in_use

    wanted = chosen(options, locations, settings.ui.theme)
    if wanted is None:
        return 0
    try:
        return run_and_exit(_run(wanted, locations, settings, read_glimpse(wanted, locations)))
    except SessionOpenError as open_elsewhere:
        other = resolve_session_in_use(open_elsewhere, wanted, locations, settings.ui.theme)
        if other is None:
            return 0
        return run_and_exit(_run(other, locations, settings, read_glimpse(other, locations)))


def _refuse_at_once(options: LaunchOptions, locations: Locations, loaded: LoadedSettings) -> None:
    """Refuses what was given wrong before anything is shown. What is loaded for it is loaded only where it was given.

    Raises:
        ConfigurationError: there is no key, a rule cannot be read, or a name cannot be a new session's.
    """
    if not options.demo:
        Credentials.needed(os.environ, loaded.settings.base_url)
    if options.rules:
        from .rules_and_tools import parse_rules

        parse_rules(loaded.rules)
    if options.session_id is not None:
        from tui_agent.session import SessionStore

        SessionStore(locations.sessions_dir).refuse_name(options.session_id)


def _ask_for_trust(folder: Path, locations: Locations, theme: str) -> bool:
    """Asks about a folder's own settings unless that was answered before; False if the person left instead."""
    store = TrustStore(locations)
    try:
        offer = trust_request_for(folder, locations)
    except ConfigurationError:
        return True  # What cannot be read is not applied, and `config check` says why.
    if offer is None or store.knows(offer):
        return True
    sections = (
        ("settings it would change", offer.settings),
        ("rules that deny or ask", offer.tightening),
        ("rules that allow calls without a question", offer.allows),
        ("never taken from a project, whatever you answer", offer.refused),
        ("files with instructions for the model", offer.instructions),
        ("links that lead out of this repository, not used", offer.links),
    )
    shown = tuple((heading, entries) for heading, entries in sections if entries)
    # A question that most starts do not ask.
    from tui_agent.ui.app.trust_question import TrustQuestion
    from tui_agent.ui.dialogs.trust_screen import TrustPrompt

    answer = run_dialog(TrustQuestion(TrustPrompt(str(offer.folder), shown, bool(offer.allows)), theme=theme))
    if answer is not None:
        store.remember(offer, answer)
    return answer is not None


async def _run(
    options: LaunchOptions, locations: Locations, settings: Settings, glimpse: HistoryTail | None = None
) -> int:
    """Shows the screen first and puts the engine together behind it; what is typed meanwhile waits for it."""
    async with open_recording_writer(options.record) as sink:
        return await _run_app(options, locations, settings, glimpse, sink)


async def _run_app(
    options: LaunchOptions,
    locations: Locations,
    settings: Settings,
    glimpse: HistoryTail | None,
    sink: "RecordingWriter | None",
) -> int:
    bridge, note_input = AgentBridge.for_pending_agent(settings.permissions.mode), None
    if sink is not None:
        from tui_agent.ui.bridge.exchange import RecordingExchange
        from tui_agent.ui.bridge.input_events import input_recorder

        bridge = AgentBridge.for_pending_agent(settings.permissions.mode, RecordingExchange(sink))
        note_input = input_recorder(sink)
    surroundings = TerminalEnvironment.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion)
    app = TuiAgentApp(
        bridge,
        theme=settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        glimpse=glimpse,
        prompt=options.prompt,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        place=WorkingDirectory.of(options.cwd, Path.home()),
        surroundings=surroundings,
        log_file=locations.log_dir / LOG_NAME,
        note_input=note_input,
        open_player=_opener(locations, options.cwd, surroundings),
    )
    if sink is not None:
        sink.begin(recording_header(options, settings), lambda text: app.notify(text, severity="warning"))

    async def behind() -> TuiAgentError | None:
        try:
            serve = await asyncio.to_thread(_engine_room)
            if not screen.done():
                await serve(options, bridge, app.show_theme, lambda: asyncio.wait((screen,)), sink)
        except TuiAgentError as error:
            if sink is not None and bridge.agent_pending:
                sink.forget()
            app.exit()
            return error
        return None

    refusal: TuiAgentError | None = None
    try:
        with exit_on_signals(app):
            async with asyncio.TaskGroup() as tasks:
                screen = tasks.create_task(app.run_async())
                painted = tasks.create_task(app.painted.wait())
                await asyncio.wait((screen, painted), return_when=asyncio.FIRST_COMPLETED)
                painted.cancel()
                if not screen.done():
                    engine = tasks.create_task(behind())
                    await asyncio.wait((screen, engine), return_when=asyncio.FIRST_COMPLETED)
                    if bridge.agent_pending and options.resume is not None:
                        engine.cancel()  # Whoever leaves meanwhile does not wait until a long past is read.
                    await asyncio.wait((engine,))
                    refusal = None if engine.cancelled() else engine.result()
    except BaseExceptionGroup as failed:
        raise _first_of(failed) from None
    finally:
        for text in bridge.unsent:
            say_error(f"tui-agent: left before this was sent: {one_line(text, _LONGEST_UNSENT)}")
    if refusal is not None:
        raise refusal
    return app.return_code or 0


def _first_of(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """What failed first: the rest of a group comes of it, and nobody above knows groups."""
    first = failed.exceptions[0]
    return _first_of(first) if _is_group(first) else first


def _is_group(error: BaseException) -> TypeGuard[BaseExceptionGroup[BaseException]]:
    return isinstance(error, BaseExceptionGroup)


def _opener(locations: Locations, folder: Path, surroundings: TerminalEnvironment) -> OpenPlayer:
    """Opens recordings for `/replay`; what that needs is loaded by then."""

    async def open_player(name: str):
        from .replay_option import open_recording

        return await open_recording(folder / Path(name).expanduser(), locations, surroundings)

    return open_player


def _engine_room() -> Callable[..., Awaitable[None]]:
    """Loads the engine; nothing of it is needed to paint the first screen."""
    from .engine_host import serve

    return serve
