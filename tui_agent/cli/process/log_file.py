"""The log: a private file, because the terminal belongs to the screen.

It gets errors always, so that a bug report can include them, and with `--verbose` everything, stalls of the event loop
among it.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations

LOG_NAME = "tui-agent.log"
"""Name of the file in the log directory."""
LARGEST_FILE = 1_000_000
"""Size in bytes at which a new file is started; three old ones are kept."""
STALL = 0.1
"""Shortest stall of the event loop that is logged, in seconds."""
_STALL_CHECK_INTERVAL = 0.05
"""Seconds between two checks for stalls."""

_log = logging.getLogger(__name__)


class PrivateFileHandler(RotatingFileHandler):
    """Creates the file and its directory with the first record, readable for the user only."""

    def _open(self) -> TextIOWrapper:
        # Imported with the first record, so that the first screen does not wait for it.
        from tui_agent.session import make_private_directory

        make_private_directory(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, "a", encoding=self.encoding)


class _VisibleFormatter(logging.Formatter):
    """Escapes characters that a terminal acts on: records contain file names and answers of servers."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record))


def log_to_file(locations: Locations, *, verbose: bool) -> None:
    """Send log records and warnings of libraries to the file: errors, or with `verbose` all of them.

    If the file cannot be written, records are dropped rather than shown on the screen.
    """
    logging.captureWarnings(True)
    # Otherwise logging reports a record that it cannot write on the terminal.
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
    # Their debug records contain request headers and addresses, and with them keys.
    for name in ("httpcore2", "httpx2", "anthropic", "mcp", "aiohttp"):
        logging.getLogger(name).setLevel(logging.WARNING)


@asynccontextmanager
async def log_loop_stalls() -> AsyncGenerator[None]:
    """Log each time the event loop stalls for more than `STALL`, which delays keys and events; debug logs only."""
    if not _log.isEnabledFor(logging.DEBUG):
        yield
        return
    loop = asyncio.get_running_loop()

    def check() -> None:
        nonlocal timer
        late = loop.time() - timer.when()
        if late > STALL:
            _log.debug("the event loop stalled for %.0f ms", late * 1000)
        timer = loop.call_later(_STALL_CHECK_INTERVAL, check)

    timer = loop.call_later(_STALL_CHECK_INTERVAL, check)
    try:
        yield
    finally:
        timer.cancel()
