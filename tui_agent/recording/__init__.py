"""Recordings: everything that made a screen in one file, from which it comes again without key or network."""

from .tape import Entry, EntryKind, Head, Recording, Tape
from .tape_reader import parse_recording, read_recording
from .tape_writer import TapeWriter, with_bus_on_tape

__all__ = [
    "Entry",
    "EntryKind",
    "Head",
    "Recording",
    "Tape",
    "TapeWriter",
    "parse_recording",
    "read_recording",
    "with_bus_on_tape",
]
