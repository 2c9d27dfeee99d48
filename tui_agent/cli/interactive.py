"""The full-screen app: an engine with a person in front of it."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError, SessionOpenError, TuiAgentError
from tui_agent.settings import LoadedSettings, Locations, Settings
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.bridge import AgentBridge
from tui_agent.ui.past_fold import Glimpse
from tui_agent.ui.surroundings import Place, Surroundings
from tui_agent.ui.text import one_line

from .credentials import Credentials
from .launch_options import LaunchOptions
from .leaving import answer_to, leaving_on_signals, run_to_the_end
from .log_file import LOG_NAME, log_to_file
from .project_trust import TrustStore, offer_of
from .settings_in_force import prepare_settings

DEMO_LABEL = "scripted demo, not a language model"
"""Said beside the model's name all the time."""
_LONGEST_UNSENT = 1_000
"""Cells shown of a message that nothing came of."""


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
    _refuse_at_once(options, locations, loaded)
    if options.continue_last or options.resume is not None:
        return _run_on(options, locations, loaded.settings)
    return run_to_the_end(_run(options, locations, loaded.settings))


def _run_on(options: LaunchOptions, locations: Locations, settings: Settings) -> int:
    """Goes on with an earlier session."""
    # Loaded only here: a new session's first screen does not wait for it.
    from .going_on import chosen, glimpse_of, going_on_beside

    wanted = chosen(options, locations, settings.ui.theme)
    if wanted is None:
        return 0
    try:
        return run_to_the_end(_run(wanted, locations, settings, glimpse_of(wanted, locations)))
    except SessionOpenError as open_elsewhere:
        other = going_on_beside(open_elsewhere, wanted, locations, settings.ui.theme)
        if other is None:
            return 0
        return run_to_the_end(_run(other, locations, settings, glimpse_of(other, locations)))


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
    # A question that most starts do not ask.
    from tui_agent.ui.screens.trust import TrustMatter
    from tui_agent.ui.trust_question import TrustQuestion

    answer = answer_to(TrustQuestion(TrustMatter(str(offer.folder), shown, bool(offer.allows)), theme=theme))
    if answer is not None:
        store.remember(offer, answer)
    return answer is not None


async def _run(options: LaunchOptions, locations: Locations, settings: Settings, glimpse: Glimpse | None = None) -> int:
    """Shows the screen first and puts the engine together behind it; what is typed meanwhile waits for it."""
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
    with leaving_on_signals(app):
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
    for text in bridge.unsent:
        print(f"tui-agent: left before this was sent: {one_line(text, _LONGEST_UNSENT)}", file=sys.stderr)
    if refusal is not None:
        raise refusal
    return app.return_code or 0


def _engine_room() -> Callable[..., Awaitable[None]]:
    """Loads the engine; nothing of it is needed to paint the first screen."""
    from .engine_room import serve

    return serve
