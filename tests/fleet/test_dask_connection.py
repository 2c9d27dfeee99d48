"""Addresses, certificates and versions of a cluster, before anything is sent to it."""

from pathlib import Path
from typing import Any

import pytest

from tests.fleet.dask_processes import write_certificates
from tests.support.table import table
from tui_agent.fleet import dask_connection
from tui_agent.fleet.backend import ClusterChoice, TlsFiles
from tui_agent.fleet.dask_connection import check_versions, open_cluster, security_for
from tui_agent.protocol.errors import ConfigurationError


@table(
    ("addresses", "reason"),
    [
        ("tcp://127.0.0.1:8786 tcp://[::1]:8786 tcp://localhost:8786 tcp://127.8.8.8:1", ""),
        ("tcp://10.0.0.1:8786 tcp://example.org:8786 tcp://127.0.0.1.example.org:8786", "not encrypted"),
        ("tcp://0.0.0.0:8786 tcp://localhost.localdomain:1 tcp://192.0.2.1:8786", "not encrypted"),
        ("127.0.0.1:8786 http://127.0.0.1:8786 tcp://127.0.0.1 tcp://h:x [", "is not the address of a scheduler"),
    ],
)
def test_only_loopback_needs_no_certificates(addresses: str, reason: str) -> None:
    for address in addresses.split():
        if not reason:
            assert security_for(address, TlsFiles()) is None
            continue
        with pytest.raises(ConfigurationError, match=reason):
            security_for(address, TlsFiles())


def test_encryption_needs_certificates(tmp_path: Path) -> None:
    files = write_certificates(tmp_path / "tls")
    wrong = tmp_path / "cert.pem"
    wrong.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        security_for("tls://10.0.0.1:8786", TlsFiles(ca=wrong, cert=wrong))
    with pytest.raises(ConfigurationError, match="needs --tls-ca and --tls-cert"):
        security_for("tls://10.0.0.1:8786", TlsFiles())
    with pytest.raises(ConfigurationError, match="needs --tls-ca and --tls-cert"):
        security_for("tls://10.0.0.1:8786", TlsFiles(ca=files.ca))
    with pytest.raises(ConfigurationError, match="write tls://127"):
        security_for("tcp://127.0.0.1:8786", files)
    security = security_for("tls://10.0.0.1:8786", files)
    assert security is not None
    assert security.require_encryption


async def test_an_own_cluster_that_cannot_start_says_so_and_names_a_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {**dask_connection._OWN_CLUSTER, "distributed.worker.preload": ["no_such_module_of_a_worker"]}
    monkeypatch.setattr(dask_connection, "_OWN_CLUSTER", broken)
    with pytest.raises(ConfigurationError) as raised:
        async with open_cluster(ClusterChoice(workers=1), tmp_path / "cluster"):
            raise AssertionError("it was opened")
    for words in ("--workers 1 cannot start here", "no_such_module_of_a_worker", "No unit was started", "--local N"):
        assert words in str(raised.value)
    assert not (tmp_path / "cluster").exists()


async def test_a_disk_that_takes_no_directory_for_the_cluster_is_named_with_a_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"--workers 1 cannot start here .*Not a directory.*--local N"):
        async with open_cluster(ClusterChoice(workers=1), tmp_path / "file" / "cluster"):
            raise AssertionError("it was opened")


def versions(**changed: str) -> dict[str, Any]:
    packages = {"python": "3.11.7.final.0", "distributed": "2026.8.0", "tui-agent": "0.1.0"}
    return {"packages": {**packages, **{name.replace("_", "-"): version for name, version in changed.items()}}}


def test_other_versions_of_a_worker_are_named() -> None:
    same = versions(python="3.11.9.final.0")
    check_versions({"client": versions(), "workers": {"tcp://127.0.0.1:1": same}})
    for changed, words in (
        ({"tui_agent": ""}, r"has tui-agent \(not installed\), this program 0.1.0"),
        ({"distributed": "2026.9.0"}, "has distributed 2026.9.0, this program 2026.8.0"),
        ({"python": "3.12.1.final.0"}, "has Python 3.12, this program 3.11"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            check_versions({"client": versions(), "workers": {"a": same, "b": versions(**changed)}})
