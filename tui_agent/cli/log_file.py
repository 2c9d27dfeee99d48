"""Where log lines go: never to the terminal, which belongs to the screen, but to a file of ours.

Errors always, so that there is something to send in; with `--verbose` everything.
"""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations

LOG_NAME = "tui-agent.log"
"""The file, in the directory of logs."""
LARGEST_FILE = 1_000_000
"""Bytes; then a new file is begun, and three old ones are kept."""


class PrivateFileHandler(RotatingFileHandler):
    """Makes file and directory with the first record, for nobody else to read."""

    def _open(self) -> TextIOWrapper:
        # Loaded when there is something to write down; the first screen does not wait for it.
        from tui_agent.session import make_private_directory

        make_private_directory(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, "a", encoding=self.encoding)


class _VisibleFormatter(logging.Formatter):
    """Escapes characters that a terminal acts on: records contain file names and answers of servers."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record))


def log_to_file(locations: Locations, *, verbose: bool) -> None:
    """Keeps log records and warnings of libraries off the terminal; errors, or with `verbose` all, go to a file.

    Where no file can be made, records are dropped: the screen is no place for them.
    """
    logging.captureWarnings(True)
    # Else a record that cannot be written is told on the terminal.
    logging.raiseExceptions = False
    handler = PrivateFileHandler(
        locations.log_dir / LOG_NAME, maxBytes=LARGEST_FILE, backupCount=3, encoding="utf-8", delay=True
    )
    handler.setFormatter(_VisibleFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for earlier in list(root.handlers):
        root.removeHandler(earlier)
        if isinstance(earlier, PrivateFileHandler):
            earlier.close()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.ERROR)
    # These write headers of requests, in which the key is.
    for name in ("httpcore2", "httpx2", "anthropic"):
        logging.getLogger(name).setLevel(logging.WARNING)
