"""The full-screen app: an engine with a person in front of it."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tui_agent import __version__
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError, SessionOpenError, TuiAgentError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.messages import now_ms
from tui_agent.session.journal import with_lease
from tui_agent.session.journal_tail import read_tail
from tui_agent.session.store import SessionStore
from tui_agent.settings import Locations, Settings
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.bridge import AgentBridge
from tui_agent.ui.past_fold import Glimpse
from tui_agent.ui.screens.trust import TrustMatter
from tui_agent.ui.session_picker import OpenElsewhere, SessionPicker
from tui_agent.ui.surroundings import Place, Surroundings
from tui_agent.ui.trust_question import TrustQuestion

from .credentials import Credentials
from .launch_options import PICK, LaunchOptions
from .log_file import LOG_NAME, log_to_file
from .project_trust import TrustStore, offer_of
from .session_choice import session_to_go_on_with
from .settings_in_force import prepare_settings

DEMO_LABEL = "scripted demo, not a language model"
"""Said beside the model's name all the time."""


def run_interactive(options: LaunchOptions) -> int:
    """Runs the app; returns the exit code.

    Raises:
        ConfigurationError: there is no terminal, or something in the configuration is wrong.
    """
    # Textual draws on standard error.
    for name, stream in (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr)):
        if not stream.isatty():
            words = f"the full-screen app needs a terminal, and standard {name} is none; use -p for a run without one"
            raise ConfigurationError(words)
    locations, loaded = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    if not options.trust and not _settle_trust(options.cwd, locations, loaded.settings.ui.theme):
        return 0
    if options.resume == PICK:
        chosen = SessionPicker(SessionStore(locations.sessions_dir), theme=loaded.settings.ui.theme).run()
        if chosen is None:
            return 0
        options = replace(options, resume=chosen)
    try:
        return asyncio.run(_run(options, locations, loaded.settings))
    except SessionOpenError as open_elsewhere:
        asked = OpenElsewhere(open_elsewhere.session_id, theme=loaded.settings.ui.theme).run()
        if asked is None:
            return 0
        other = _beside(open_elsewhere.session_id, options, copied=asked == "fork")
        return asyncio.run(_run(other, locations, loaded.settings))


def _beside(session_id: str, options: LaunchOptions, *, copied: bool) -> LaunchOptions:
    """The options to go on beside the program that writes a session: with a copy, or without keeping anything."""
    if not copied:
        return replace(options, continue_last=False, resume=session_id, keep_session=False)
    copy = SessionStore(Locations.of_user(os.environ).sessions_dir).fork(session_id)
    return replace(options, continue_last=False, resume=copy.id)


def _settle_trust(folder: Path, locations: Locations, theme: str) -> bool:
    """Asks about a folder's own settings unless that was answered before; False if the person left instead."""
    store = TrustStore(locations)
    try:
        offer = offer_of(folder, locations)
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
    )
    shown = tuple((heading, entries) for heading, entries in sections if entries)
    answer = TrustQuestion(TrustMatter(str(offer.folder), shown, bool(offer.allows)), theme=theme).run()
    if answer is not None:
        store.remember(offer, answer)
    return answer is not None


async def _run(options: LaunchOptions, locations: Locations, settings: Settings) -> int:
    """Shows the screen first and puts the engine together behind it; what is typed meanwhile waits for it."""
    options, glimpse = _looked_up(options, locations, settings)
    bridge = AgentBridge.to_come(settings.permissions.mode)
    app = TuiAgentApp(
        bridge,
        theme=settings.ui.theme,
        themes_dirs=(locations.user_themes_dir,),
        glimpse=glimpse,
        prompt=options.prompt,
        model="" if options.demo else settings.model,
        label=DEMO_LABEL if options.demo else "",
        place=Place.of(options.cwd, Path.home()),
        surroundings=Surroundings.of_environment(os.environ, reduced_motion=settings.ui.reduced_motion),
        log_file=locations.log_dir / LOG_NAME,
    )
    refusal: TuiAgentError | None = None
    with _leaving_on_signals(app):
        async with asyncio.TaskGroup() as tasks:
            screen = tasks.create_task(app.run_async())
            painted = tasks.create_task(app.painted.wait())
            await asyncio.wait((screen, painted), return_when=asyncio.FIRST_COMPLETED)
            painted.cancel()
            if not screen.done():
                try:
                    serve = await asyncio.to_thread(_engine_room)
                    await serve(options, bridge, app.show_theme, lambda: asyncio.wait((screen,)))
                except TuiAgentError as error:
                    refusal = error
                    app.exit()
    if refusal is not None:
        raise refusal
    return app.return_code or 0


def _engine_room() -> Callable[..., Awaitable[None]]:
    """Loads the engine; nothing of it is needed to paint the first screen."""
    from .engine_room import serve

    return serve


def _looked_up(
    options: LaunchOptions, locations: Locations, settings: Settings
) -> tuple[LaunchOptions, Glimpse | None]:
    """The session to go on with by its id, and its end; with what can be refused before there is a screen. Blocks.

    Raises:
        ConfigurationError: there is no key, or no session to go on with.
        SessionError: there is no such session.
        SessionOpenError: another program has it open.
    """
    if not options.demo:
        Credentials.needed(os.environ, settings.base_url)
    if not options.continue_last and options.resume is None:
        return options, None
    session_id, journal = session_to_go_on_with(options, SessionStore(locations.sessions_dir))
    if options.keep_session:
        with_lease(journal, lambda: None)
    options = replace(options, continue_last=False, resume=session_id)
    tail = read_tail(journal)
    if tail is None:
        return options, None
    last = tail.envelopes[-1]
    events = tail.events_before + len(tail.envelopes)
    # As the engine will tell it: whatever the end of the past leaves open is over.
    loaded = SessionLoaded(id=session_id, path=str(journal), cwd=str(options.cwd), version=__version__, events=events)
    goes_on = Envelope(loaded, last.seq + 1, now_ms(), time.monotonic(), Origin(session_id=session_id))
    return options, Glimpse((*tail.envelopes, goes_on), tail.calls_before)


@contextmanager
def _leaving_on_signals(app: TuiAgentApp) -> Generator[None]:
    """Signals leave the app as its quit key does: what runs is cancelled, the terminal is restored.

    INT comes from outside only: on the terminal `ctrl+c` is a key of the app.
    """
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, app.exit, None, 128 + number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
