"""Questions of a start, before the app appears: trust in the folder, the offline model without a key, which session.

Each imports its dialog when it is asked: most starts ask nothing.
"""

import asyncio
import os
from dataclasses import replace

from tui_agent.protocol.errors import SessionOpenError
from tui_agent.workbench.configuration.launch_options import PICK_SESSION
from tui_agent.workbench.configuration.named_endpoints import lacks_key, require_key
from tui_agent.workbench.configuration.project_trust import TrustStore, open_trust_request
from tui_agent.workbench.sessions.session_launch import SessionLaunch

from .shutdown import run_dialog


def ask_before_start(launch: SessionLaunch) -> SessionLaunch | None:
    """Ask for trust, for a model without a key, and for the session; return the start that follows, None to quit.

    Raises:
        ConfigurationError: there is no key and the offline model is not wanted, or the folder has no session.
    """
    options = launch.options
    if not (options.trust or options.extras.is_safe) and not _ask_for_trust(launch):
        return None
    # A prompt or a session of the command line is for a model, which the tour is not.
    if not (options.demo or options.prompt or options.continue_last or options.resume is not None):
        launch = _offer_demo(launch)
    if not launch.options.demo:
        require_key(launch.settings, os.environ)
    return _ask_for_session(launch) if options.continue_last or options.resume is not None else launch


def _ask_for_trust(launch: SessionLaunch) -> bool:
    """Ask the user to trust the folder's own settings, unless they have answered before; False to quit."""
    offer = open_trust_request(launch.options.cwd, launch.locations)
    if offer is None:
        return True
    from .question_app import TrustQuestion

    theme = launch.settings.ui.theme
    answer = run_dialog(TrustQuestion(str(offer.folder), offer.sections, offer.powers, theme=theme))
    if answer is not None:
        TrustStore(launch.locations).remember(offer, answer)
    return answer is not None


def _offer_demo(launch: SessionLaunch) -> SessionLaunch:
    """Without a key, offer the offline model."""
    if not lacks_key(launch.settings, os.environ):
        return launch
    from .question_app import NoKey

    answer = run_dialog(NoKey(theme=launch.settings.ui.theme))
    return launch.with_options(replace(launch.options, demo=True)) if answer == "demo" else launch


def _ask_for_session(launch: SessionLaunch) -> SessionLaunch | None:
    """Return the start that names the session, which the user picks if the command line has none; None to quit."""
    from tui_agent.workbench.sessions.journal_options import resolve_continue

    options = resolve_continue(launch.options, launch.locations)
    if options.resume == PICK_SESSION:
        from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

        from .question_app import SessionPicker

        sessions = SessionCatalogue.of_directory(launch.sessions_dir, options.cwd)
        picked = run_dialog(SessionPicker(sessions, theme=launch.settings.ui.theme))
        if picked is None:
            return None
        options = replace(options, resume=picked)
    return launch.with_options(options)


def ask_about_open_session(error: SessionOpenError, launch: SessionLaunch) -> SessionLaunch | None:
    """Return a start with a copy of a session that another program has open, or without saving; None to quit."""
    from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

    from .question_app import SessionInUse

    answer = run_dialog(SessionInUse(error.session_id, theme=launch.settings.ui.theme))
    if answer is None:
        return None
    # Two programs must never write one journal.
    if answer != "fork":
        return launch.with_options(replace(launch.options, keep_session=False))
    sessions = SessionCatalogue.of_directory(launch.sessions_dir, launch.options.cwd)
    return launch.with_options(replace(launch.options, resume=asyncio.run(sessions.fork(error.session_id))))
