"""The full-screen app: an engine with a person in front of it."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import PROGRAM_LEFT
from tui_agent.protocol.errors import ConfigurationError, SessionOpenError
from tui_agent.session import SessionStore
from tui_agent.settings import Locations
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.bridge import AgentBridge
from tui_agent.ui.screens.trust import TrustMatter
from tui_agent.ui.session_picker import OpenElsewhere, SessionPicker
from tui_agent.ui.surroundings import Place, Surroundings
from tui_agent.ui.trust_question import TrustQuestion

from .assembly import assembled, prepare_settings
from .grant_record import GrantRecord
from .launch_options import PICK, LaunchOptions
from .live_settings import with_live_settings
from .log_file import LOG_NAME, log_to_file
from .project_trust import TrustStore, offer_of

RUN_PATIENCE = 4.0
"""Seconds that a run gets to end when the app is left in the middle of it."""


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
        return asyncio.run(_run(options))
    except SessionOpenError as open_elsewhere:
        asked = OpenElsewhere(open_elsewhere.session_id, theme=loaded.settings.ui.theme).run()
        if asked is None:
            return 0
        other = _beside(open_elsewhere.session_id, options, copied=asked == "fork")
        return asyncio.run(_run(other))


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


async def _run(options: LaunchOptions) -> int:
    async with assembled(options, watched=True, takes_up=True) as engine:
        chosen = engine.loaded.settings.ui
        app = TuiAgentApp(
            AgentBridge(engine.loop, engine.bus),
            theme=chosen.theme,
            themes_dirs=(engine.locations.user_themes_dir,),
            past=engine.past,
            prompt=options.prompt,
            label=engine.label,
            place=Place.of(options.cwd, Path.home()),
            surroundings=Surroundings.of_environment(os.environ, reduced_motion=chosen.reduced_motion),
            log_file=engine.locations.log_dir / LOG_NAME,
            rewinding=engine.rewinder,
            grants=GrantRecord(engine.loop, engine.policy, engine.locations, options.cwd),
        )
        gc.freeze()  # What is loaded by now stays; looking through it again and again would cost every call and frame.
        with _leaving_on_signals(app):
            await with_live_settings(engine, options, app.run_async, app.show_theme)
            await _run_over(engine.loop, engine.bus)
    return app.return_code or 0


async def _run_over(loop: AgentLoop, bus: EventBus) -> None:
    """Ends the run that the app left behind and waits for its end, so that the journal tells how it ended."""
    if not loop.running:
        return
    with bus.subscribe() as heard:
        loop.abort(PROGRAM_LEFT)
        try:
            async with asyncio.timeout(RUN_PATIENCE):
                async for _ in heard.batches():
                    if not loop.running:
                        return
        except TimeoutError:
            logging.getLogger(__name__).warning("a run did not end within %g s", RUN_PATIENCE)


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
