"""Sessions on disk: the store, the journal and its recorder, and reading a session back."""

from .export import ExportFormat, export_session
from .history_fold import (
    ResumableConversation,
    UnansweredCall,
    messages_of,
    resumable_conversation,
    unanswered_calls,
    waiting_messages,
)
from .interrupted_run import ClosingEvent, InterruptedCall, InterruptedRun, unfinished
from .journal import Disk, JournalFile
from .journal_reader import JournalContents, Problem, parse_journal, read_journal
from .journal_writer import JournalWriter
from .store import SessionStore, make_private_directory
from .stored_session import StoredSession
from .summary import SessionSummary

__all__ = [
    "ClosingEvent",
    "Disk",
    "ExportFormat",
    "InterruptedCall",
    "InterruptedRun",
    "JournalContents",
    "JournalFile",
    "JournalWriter",
    "Problem",
    "ResumableConversation",
    "SessionStore",
    "SessionSummary",
    "StoredSession",
    "UnansweredCall",
    "export_session",
    "make_private_directory",
    "messages_of",
    "parse_journal",
    "read_journal",
    "resumable_conversation",
    "unanswered_calls",
    "unfinished",
    "waiting_messages",
]
