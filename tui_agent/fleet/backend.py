"""Interface of what runs the units of a fleet: processes of this machine, or a Dask cluster; the choice of one.

It is without Dask, so that a start without a cluster does not pay for it.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import FrozenModel

from .worker_messages import DriverMessage, WorkerMessage


class TlsFiles(FrozenModel):
    """Files in PEM format for the connections to a cluster; None for those of Dask's configuration."""

    ca: Path | None = None
    """Certificate of the authority that signed all certificates of the cluster."""
    cert: Path | None = None
    key: Path | None = None


class ClusterChoice(FrozenModel):
    """A cluster for one run of a fleet."""

    scheduler: str = ""
    """Address of a scheduler; empty to start a cluster on this machine."""
    workers: int = 1
    """Processes of a cluster that is started; each runs one unit at a time."""
    tls: TlsFiles = TlsFiles()


MOST_MESSAGES = 64
"""Messages of units that wait for the driver; while there are more, the units wait. Their processes merge deltas then,
and keep their facts."""


class Backend(Protocol):
    """Places units on workers and carries messages. It decides nothing about a unit."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Connect, or start workers; on exit end every unit that runs.

        Raises:
            ConfigurationError: the cluster cannot be reached, or its address is not safe.
        """
        ...

    @property
    def places(self) -> int:
        """Units that can run at the same time now."""
        ...

    async def submit(self, unit_id: str) -> None:
        """Queue a unit. A worker claims it when it has room; again if its worker dies."""
        ...

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        """Send a message to the worker that claimed the unit last; without one, or if it died, do nothing."""
        ...

    def messages(self) -> AsyncIterator[WorkerMessage]:
        """Yield the messages of all workers, those of one unit in order. The caller's pace limits the units.

        Raises:
            BackendLostError: the scheduler is gone.
        """
        ...


class BackendLostError(TuiAgentError):
    """The scheduler is gone: no unit runs any more, and what was reported is kept."""
