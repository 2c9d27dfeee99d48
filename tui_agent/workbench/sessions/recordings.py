"""`--record`: a copy of the session's journal in another file."""

import asyncio
import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError

if TYPE_CHECKING:
    # The check before the first screen does not need it.
    from tui_agent.session import StoredSession


def refuse_existing(path: Path | None) -> None:
    """Refuse a file to record to that exists already.

    Raises:
        ConfigurationError: it exists.
    """
    if path is not None and os.path.lexists(path):
        raise ConfigurationError(f"--record: {path} exists already; a recording never replaces a file")


async def record_journal(path: Path, session: "StoredSession", bus: EventBus, stack: AsyncExitStack) -> None:
    """Write a copy of the session's journal, with everything that `stack` sees published, to a new file.

    Raises:
        ConfigurationError: the file exists already, or cannot be created.
    """
    from tui_agent.session import JournalWriter

    await asyncio.to_thread(_begin_copy, path, session)
    await stack.enter_async_context(JournalWriter(bus, path))


def _begin_copy(path: Path, session: "StoredSession") -> None:
    """Create the file, readable only by its owner, with the past of a resumed session."""
    refuse_existing(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as copy:
            if session.resumed and session.path is not None:
                with session.path.open("rb") as journal:
                    shutil.copyfileobj(journal, copy)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--record: {path} cannot be created: {reason}") from error
