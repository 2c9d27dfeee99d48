"""Sessions on disk: the store, the journal and its recorder, and reading a session back."""

from .history_fold import messages_of
from .interrupted_run import unfinished
from .journal import Disk
from .journal_reader import parse_journal, read_journal
from .journal_writer import JournalWriter
from .store import SessionStore, make_private_directory
from .stored_session import StoredSession

__all__ = [
    "Disk",
    "JournalWriter",
    "SessionStore",
    "StoredSession",
    "make_private_directory",
    "messages_of",
    "parse_journal",
    "read_journal",
    "unfinished",
]
