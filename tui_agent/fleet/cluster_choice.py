"""The cluster that a user chose for a fleet; without Dask, so that a start without a cluster does not pay for it."""

from pathlib import Path

from tui_agent.protocol.messages import FrozenModel


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
