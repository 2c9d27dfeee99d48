"""From the command line to the screen: starts the app, a replay or the view of a fleet, and checks their settings.

The only file of the command line that imports the screen, and it imports Textual only where a command needs it: that
takes longer than most commands run.
"""

from collections.abc import Callable
from pathlib import Path

from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.settings import LoadedSettings, Locations
from tui_agent.ui.app.screen_settings import (
    examine_plugins,
    refuse_unknown_theme,
    screen_problems,
    theme_names,
    wrong_key_settings,
    wrong_theme_setting,
)
from tui_agent.workbench.configuration.effective_settings import prepare_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions

from .process.controlling_terminal import need_terminal, say, say_error
from .process.log_file import LOG_NAME, log_loop_stalls, log_to_file
from .process.process_setup import collect_at_rest, end_start
from .process.shortage import memory_limit

__all__ = [
    "examine_plugins",
    "question_lines",
    "refuse_unknown_theme",
    "run_interactive",
    "run_replay",
    "screen_problems",
    "show_fleet",
    "theme_names",
    "wrong_key_settings",
    "wrong_theme_setting",
]

QUESTION_WIDTH = 100
"""Cells of a row of a question in plain mode and in an editor."""


def run_interactive(options: LaunchOptions, examine: Callable[[Path], str]) -> int:
    """Run the app and return the exit code; `examine` returns the report of `doctor` for a folder.

    Raises:
        ConfigurationError: a standard stream is not a terminal, or the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    need_terminal("use -p to run without one")
    locations, loaded = prepare_settings(options)
    log_to_file(locations, verbose=options.verbose)
    _check_options(options, locations, loaded)
    from tui_agent.ui.app.app_start import run_app
    from tui_agent.ui.app.engine_runner import AppProcess
    from tui_agent.workbench.sessions.session_launch import SessionLaunch

    process = AppProcess(
        locations.log_dir / LOG_NAME,
        say=say,
        say_error=say_error,
        end_start=end_start,
        collect_garbage=collect_at_rest,
        watch_loop=log_loop_stalls,
        examine=examine,
        address_limit=memory_limit(),
    )
    return run_app(SessionLaunch(options, locations, loaded.settings), process)


def _check_options(options: LaunchOptions, locations: Locations, loaded: LoadedSettings) -> None:
    """Check options before the screen appears, and import what a check needs only if its option is used."""
    if options.extras.record is not None:
        from tui_agent.workbench.configuration.launch_options import refuse_existing

        refuse_existing(options.extras.record)
    if options.rules:
        from tui_agent.workbench.configuration.permission_rules import parse_rules

        parse_rules(loaded.rules)
    if options.session_id is not None:
        from tui_agent.session import SessionStore

        SessionStore(locations.sessions_dir).refuse_name(options.session_id)


def run_replay(name: str, options: LaunchOptions) -> int:
    """Replay a session, named by its id or file, and return the exit code; needs no key and no network.

    Raises:
        ConfigurationError: standard streams are not a terminal, or the file is not a journal.
        SessionError: no session has this id.
    """
    from tui_agent.ui.app.replay_app import show_replay
    from tui_agent.workbench.sessions.replay_source import find_journal, read_source

    locations, loaded = prepare_settings(options)
    source = read_source(find_journal(name, options.cwd, locations))
    need_terminal("run tui-agent --replay in one")
    log_to_file(locations, verbose=options.verbose)
    return show_replay(source, locations, loaded.settings, locations.log_dir / LOG_NAME)


async def show_fleet(out: Path) -> int:
    """Show the screen of a fleet until the user leaves; return 1 if it has ended and a unit is not done, else 0."""
    from tui_agent.ui.fleet.fleet_app import show_fleet

    locations = Locations.of_user()
    return await show_fleet(out, locations.user_themes_dir, locations.log_dir / LOG_NAME)


def question_lines(request: ApprovalRequest) -> list[str]:
    """Return the question as a sentence, then the reason and the exact input with every character visible."""
    from tui_agent.ui.approval.approval_rows import ApprovalRows, request_title
    from tui_agent.ui.approval.approval_summary import why_rows

    rows = [*why_rows(request, QUESTION_WIDTH), *ApprovalRows(request).rows(QUESTION_WIDTH, spaced=False)]
    return [request_title(request), *(row.plain.rstrip() for row in rows)]
