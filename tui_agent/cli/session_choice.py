"""Which session the command line means."""

from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.session.store import SessionStore

from .launch_options import LaunchOptions


def find_session_to_resume(options: LaunchOptions, store: SessionStore) -> tuple[str, Path]:
    """The id and the journal of the session that `--continue` or `--resume` means; blocks.

    Raises:
        ConfigurationError: there is none of this directory.
        SessionError: there is none of this name.
    """
    if not options.continue_last:
        session_id = store.find(options.resume or "")
    elif (last := store.latest(options.cwd)) is not None:
        session_id = last.id
    else:
        raise ConfigurationError(f"there is no session of {options.cwd} to continue")
    return session_id, store.journal_path(session_id)
