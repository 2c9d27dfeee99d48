"""Keeps: sessions on the disk, the journal writer, and what a stored session was."""

from .export import ExportFormat, export_session
from .journal import Disk, JournalFile
from .journal_reader import JournalContents, Problem, parse_journal, read_journal
from .recorder import Recorder
from .replay import OpenEnd, UnansweredCall, messages_of, open_end, unanswered_calls, waiting_messages
from .store import SessionStore, make_private_directory
from .stored_session import StoredSession
from .summary import SessionSummary
from .unfinished import ClosingEvent, Unfinished, UnfinishedCall, unfinished

__all__ = [
    "ClosingEvent",
    "Disk",
    "ExportFormat",
    "JournalContents",
    "JournalFile",
    "OpenEnd",
    "Problem",
    "Recorder",
    "SessionStore",
    "SessionSummary",
    "StoredSession",
    "UnansweredCall",
    "Unfinished",
    "UnfinishedCall",
    "export_session",
    "make_private_directory",
    "messages_of",
    "open_end",
    "parse_journal",
    "read_journal",
    "unanswered_calls",
    "unfinished",
    "waiting_messages",
]
