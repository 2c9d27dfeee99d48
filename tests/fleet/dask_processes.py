"""Schedulers and workers of Dask as its own commands start them, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Security

from tui_agent.fleet.backend import TlsFiles

ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class DaskProcesses:
    """Processes of one cluster; all end with it."""

    directory: Path
    tls: TlsFiles | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    scheduler: "subprocess.Popen[bytes] | None" = None
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start_scheduler(self) -> str:
        """Start a scheduler, at the same address if there was one, and return its address."""
        port = self.address.rpartition(":")[2] or "0"
        named = self.directory / "scheduler.json"
        named.unlink(missing_ok=True)
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--scheduler-file", str(named))
        while True:
            assert self.scheduler.poll() is None, (self.directory / "dask.log").read_text()
            with suppress(FileNotFoundError, ValueError):
                self.address = json.loads(named.read_text())["address"]
                return self.address
            time.sleep(0.02)

    def start_worker(self, name: str) -> "subprocess.Popen[bytes]":
        """Start a worker without a nanny, with one place."""
        options = ("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--name", name)
        scratch = str(self.directory / "scratch")
        worker = self._start("worker", self.address, *options, "--local-directory", scratch)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        """Kill all processes."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _start(self, command: str, *arguments: str) -> "subprocess.Popen[bytes]":
        tls: list[str] = []
        if self.tls is not None:
            tls = ["--tls-ca-file", str(self.tls.ca), "--tls-cert", str(self.tls.cert), "--tls-key", str(self.tls.key)]
            tls += ["--protocol", "tls"]
        argv = [sys.executable, "-m", "distributed.cli.dask_" + command, *arguments, "--no-dashboard", *tls]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}
        with (self.directory / "dask.log").open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, env=environment, cwd=self.directory)


@contextmanager
def dask_processes(directory: Path, **options: Any) -> Generator[DaskProcesses]:
    """Give a cluster without processes; kill those that were started."""
    cluster = DaskProcesses(directory, **options)
    try:
        yield cluster
    finally:
        cluster.end()


def write_certificates(directory: Path) -> TlsFiles:
    """Write a certificate that is its own authority, with its key."""
    directory.mkdir(parents=True)
    security: Any = Security.temporary()
    files = TlsFiles(ca=directory / "ca.pem", cert=directory / "cert.pem", key=directory / "key.pem")
    for path, text in ((files.ca, security.tls_ca_file), (files.cert, security.tls_client_cert)):
        assert path is not None
        path.write_text(text)
    assert files.key is not None
    files.key.write_text(security.tls_client_key)
    return files
