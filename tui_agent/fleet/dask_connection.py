"""Connections to Dask: which addresses are safe, the certificates, and a cluster of this machine for one run."""

import asyncio
import ipaddress
import logging
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask.config
from distributed import Client, LocalCluster, Security

from tui_agent.protocol.errors import ConfigurationError

from .backend import ClusterChoice, TlsFiles

CONNECT_SECONDS = 10
_PACKAGES = ("distributed", "tui-agent")
"""Packages of which caller and workers need the same version."""
_OWN_CLUSTER: Mapping[str, Any] = {
    "distributed.scheduler.worker-ttl": "60s",
    # A fleet has a screen of its own: the ports that Dask opens for its page answer nothing.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Units get the environment of the user, not one that limits the threads of their commands.
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.worker.profile.enabled": False,
    "distributed.worker.preload": ["tui_agent.fleet.dask_worker"],
}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler to connect to."""

    address: str
    security: Security | None


@asynccontextmanager
async def open_cluster(choice: ClusterChoice, scratch: Path) -> AsyncGenerator[Scheduler]:
    """Yield the chosen scheduler; start a cluster if none was chosen, with its files in `scratch`, and end it on exit.

    Raises:
        ConfigurationError: the address is not safe, the certificates are missing, or the cluster cannot start.
    """
    if choice.scheduler:
        yield Scheduler(choice.scheduler, security_for(choice.scheduler, choice.tls))
        return
    # With certificates of its own even on loopback: other users of this machine can reach it, too.
    security: Any = Security.temporary()  # pyright: ignore[reportUnknownMemberType] - its options have no types
    options: dict[str, Any] = {
        "n_workers": choice.workers,
        # A unit waits for its process, so that more threads would only hide how many units run.
        "threads_per_worker": 1,
        "processes": True,
        # Events of units pass through a worker, and Dask would pause or kill one that has many of them.
        "memory_limit": 0,
        "host": "127.0.0.1",
        "protocol": "tls://",
        # A free port even though the page is off: Dask binds it all the same, and a second fleet would find it taken.
        "dashboard_address": "127.0.0.1:0",
        "worker_dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        # The driver reports lost workers in its own words.
        "silence_logs": logging.CRITICAL + 1,
    }
    # What a driver left that was killed goes, too.
    await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
    try:
        with dask.config.set({**_OWN_CLUSTER, "temporary-directory": str(scratch)}):
            async with AsyncExitStack() as stack:
                try:
                    await asyncio.to_thread(scratch.mkdir, mode=0o700, parents=True)
                    cluster: Any = await stack.enter_async_context(
                        LocalCluster(asynchronous=True, security=security, **options)
                    )
                except (RuntimeError, OSError) as error:
                    raise ConfigurationError(
                        f"the cluster of --workers {choice.workers} cannot start here ({_reason(error)}). No unit was "
                        "started, and what was saved before is kept. Try fewer workers, or --local N without a cluster"
                    ) from error
                yield Scheduler(str(cluster.scheduler_address), security)
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


def _reason(error: BaseException) -> str:
    """Return the first cause of an error in one line."""
    # Dask wraps what happened in errors of its own start-up, which do not say what it was.
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def security_for(address: str, tls: TlsFiles) -> Security | None:
    """Return the certificates for a scheduler's address; None for an unencrypted connection to this machine.

    Raises:
        ConfigurationError: the address is not safe, or the certificates are missing.
    """
    parts = urlsplit(address)
    try:
        complete = parts.scheme in ("tcp", "tls") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        complete = False
    if not complete:
        raise ConfigurationError(
            f"{address!r} is not the address of a scheduler: write tcp://HOST:PORT or tls://HOST:PORT"
        )
    # A client of Dask sends pickles, and unpickles what comes back: both can run code.
    if parts.scheme == "tcp":
        if any((tls.ca, tls.cert, tls.key)):
            raise ConfigurationError(f"certificates are only for an encrypted connection: write tls:{address[4:]}")
        if not is_loopback(address):
            raise ConfigurationError(
                f"{address} is another machine and the connection is not encrypted: everyone on the way could run "
                "commands there and here. Start the cluster with TLS and write tls://HOST:PORT with --tls-ca, "
                "--tls-cert and --tls-key"
            )
        return None
    return _certificates(tls)


def is_loopback(address: str) -> bool:
    """Return True if only this machine can be reached by the address."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Other names are looked up, and what they mean can change between the check and the connection.
        return host == "localhost"


def _certificates(tls: TlsFiles) -> Security:
    chosen = {"tls_ca_file": tls.ca, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
    security: Any = Security(
        require_encryption=True, **{name: str(path) for name, path in chosen.items() if path is not None}
    )
    if not security.tls_ca_file or not security.tls_client_cert:
        raise ConfigurationError(
            "a scheduler at tls:// needs --tls-ca and --tls-cert (and --tls-key, if the certificate's file does not "
            "hold the key), or the same in Dask's configuration (distributed.comm.tls)"
        )
    try:
        security.get_connection_args("client")
    except OSError as error:
        raise ConfigurationError(f"the certificates for the scheduler cannot be used: {error}") from None
    return security


async def connect(scheduler: Scheduler) -> Any:
    """Return a client of a scheduler whose workers are safe and run the same versions.

    Raises:
        ConfigurationError: there is no scheduler, or a worker does not fit.
    """
    client: Any = Client(
        scheduler.address,
        security=scheduler.security,
        asynchronous=True,
        timeout=CONNECT_SECONDS,
        # A default client would be used by whatever else of this process imports Dask.
        set_as_default=False,
    )
    try:
        await client
        check_versions(await client.get_versions(packages=["tui-agent"]))
    except OSError as error:
        await client.close(timeout=1)
        raise ConfigurationError(
            f"no scheduler answers at {scheduler.address} ({error}). Start one with `dask scheduler`, or leave out "
            "--scheduler"
        ) from None
    # Also if the wait is cancelled: an open client keeps its connection.
    except BaseException:
        await client.close(timeout=1)
        raise
    return client


def check_versions(versions: Mapping[str, Any]) -> None:
    """Compare the caller's packages with those of every worker, as `Client.get_versions` has them.

    Raises:
        ConfigurationError: a worker has other versions.
    """
    own = _versions_of(versions["client"])
    for address, worker in sorted(versions["workers"].items()):
        theirs = _versions_of(worker)
        for package, version in own.items():
            if theirs[package] != version:
                raise ConfigurationError(
                    f"the worker at {address} has {package} {theirs[package] or '(not installed)'}, this program "
                    f"{version}: install the same version there"
                )


def _versions_of(found: Mapping[str, Any]) -> dict[str, str]:
    packages = found["packages"]
    named = {package: str(packages.get(package) or "") for package in _PACKAGES}
    # The third number of Python changes no pickle.
    return {"Python": ".".join(str(packages["python"]).split(".")[:2]), **named}
