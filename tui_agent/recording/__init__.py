"""Recordings: files with everything that made up the screen, which play back without a key or network."""

from .recording_format import (
    EntryKind,
    Recording,
    RecordingEntry,
    RecordingHeader,
    RecordingSink,
    parse_recording,
    read_recording,
)
from .recording_writer import RecordingWriter, record_bus

__all__ = [
    "EntryKind",
    "Recording",
    "RecordingEntry",
    "RecordingHeader",
    "RecordingSink",
    "RecordingWriter",
    "parse_recording",
    "read_recording",
    "record_bus",
]
