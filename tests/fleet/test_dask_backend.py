"""Units on real clusters on loopback: workers die, stop and come back, schedulers die, drivers are slow."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.dask_fleets import SmallDriver, run_waiting_unit
from tests.fleet.dask_processes import dask_processes, write_certificates
from tui_agent.fleet import dask_backend
from tui_agent.fleet.backend import MOST_MESSAGES, BackendLostError, ClusterChoice
from tui_agent.fleet.dask_backend import DaskBackend
from tui_agent.protocol.errors import ConfigurationError


async def holds(fact: Callable[[], object]) -> None:
    """Wait until a fact holds."""
    while not fact():
        await asyncio.sleep(0.02)


def numbers(lines: list[bytes]) -> list[int]:
    return [int(line.split()[0]) for line in lines]


def queues_of(dask_scheduler: Any) -> list[str]:
    """Return the names of the queues that a scheduler keeps."""
    return list(dask_scheduler.extensions["queues"].queues)


def process_of(line: bytes) -> int:
    return int(line.split()[1])


@pytest.mark.slow
async def test_units_on_an_encrypted_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "sk-canary-7f3a"
    monkeypatch.setenv("ANTHROPIC_API_KEY", canary)
    files = write_certificates(tmp_path / "tls")
    with dask_processes(tmp_path, tls=files) as cluster:
        address = cluster.start_scheduler()
        cluster.start_worker("first")
        strangers = ClusterChoice(scheduler=address, tls=write_certificates(tmp_path / "others"))
        with pytest.raises(ConfigurationError, match="no scheduler answers"):
            async with DaskBackend(strangers, run_waiting_unit, tmp_path / "cluster").opened():
                raise AssertionError("a stranger was let in")
        backend = DaskBackend(ClusterChoice(scheduler=address, tls=files), run_waiting_unit, tmp_path / "cluster")
        async with backend.opened():
            await holds(lambda: backend.places)
            driver = SmallDriver(backend, {"lines": "2"})
            await driver.run(["a", "b"])
            assert driver.ended == {"a": "", "b": ""}
            failing = SmallDriver(backend, {"crash": "yes"})
            await failing.run(["c"])
            assert failing.ended == {"c": "the worker could not run it: this unit cannot run"}
            client: Any = backend._client
            await client.dump_cluster_state(str(tmp_path / "state"), format="yaml")
            queue = backend._queue.name
        assert queue in "".join(path.read_text() for path in tmp_path.glob("state*"))
        for path in tmp_path.rglob("*"):
            assert path.is_dir() or canary.encode() not in path.read_bytes(), path
        again = DaskBackend(ClusterChoice(scheduler=address, tls=files), run_waiting_unit, tmp_path / "cluster")
        async with again.opened():
            assert queue not in repr(await again._client.run_on_scheduler(queues_of))


@pytest.mark.slow
async def test_a_stopped_worker_is_replaced_and_ends_its_unit_when_it_wakes(tmp_path: Path) -> None:
    limits = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "2s"}
    with dask_processes(tmp_path, environment=limits) as cluster:
        address = cluster.start_scheduler()
        workers = {name: cluster.start_worker(name) for name in ("first", "second")}
        backend = DaskBackend(ClusterChoice(scheduler=address), run_waiting_unit, tmp_path / "cluster")
        async with backend.opened():
            await holds(lambda: backend.places == 2)
            traces = tmp_path / "traces"
            traces.mkdir()
            driver = SmallDriver(backend, {"lines": "100000", "pause": "0.1", "trace": str(traces)})
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(driver.run(["a"]))
                await holds(lambda: driver.lines["a"])
                stopped = workers[driver.workers["a"]]
                stopped.send_signal(signal.SIGSTOP)
                await holds(lambda: driver.epochs["a"] == 2 and process_of(driver.lines["a"][-1]) != stopped.pid)
                assert not list(traces.iterdir())
                stopped.send_signal(signal.SIGCONT)
                await holds((traces / "a-1").exists)
                await asyncio.to_thread(stopped.wait)
                running.cancel()
            assert numbers(driver.lines["a"]) == list(range(len(driver.lines["a"])))
        assert (traces / "a-2").exists(), "the unit still ran when the fleet had left"


@pytest.mark.slow
async def test_units_continue_with_a_new_scheduler_and_end_without_one(tmp_path: Path) -> None:
    with dask_processes(tmp_path) as cluster:
        address = cluster.start_scheduler()
        cluster.start_worker("first")
        backend = DaskBackend(
            ClusterChoice(scheduler=address), run_waiting_unit, tmp_path / "cluster", reconnect_seconds=15
        )
        async with backend.opened():
            driver = SmallDriver(backend, {"lines": "100000", "pause": "0.1"})

            async def drive() -> None:
                with pytest.raises(BackendLostError, match="the connection to the cluster is lost"):
                    await driver.run(["a"])

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(drive())
                await holds(lambda: driver.lines["a"])
                assert cluster.scheduler is not None
                cluster.scheduler.kill()
                cluster.scheduler.wait()
                cluster.start_scheduler()
                cluster.start_worker("second")
                await holds(lambda: driver.epochs["a"] == 2 and numbers(driver.lines["a"])[-1] > 2)
                assert driver.lost == ["first"]
                cluster.scheduler.kill()
                backend._reconnect_seconds = 0
            await backend.submit("b")


@pytest.mark.slow
async def test_a_unit_whose_workers_die_is_submitted_again_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_backend, "MOST_SUBMISSIONS", 2)
    with dask_processes(tmp_path, environment={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as cluster:
        address = cluster.start_scheduler()
        workers = [cluster.start_worker("first"), cluster.start_worker("second")]
        backend = DaskBackend(ClusterChoice(scheduler=address), run_waiting_unit, tmp_path / "cluster")
        async with backend.opened():
            await holds(lambda: backend.places == 2)
            driver = SmallDriver(backend, {"kill": "yes"})
            await driver.run(["a"])
            assert driver.ended == {"a": "workers died 2 times while they had it"}
            assert driver.epochs["a"] == 2
            assert sorted(driver.lost) == ["first", "second"]
            assert [await asyncio.to_thread(worker.wait) for worker in workers] == [-signal.SIGKILL] * 2


@pytest.mark.slow
async def test_a_slow_driver_slows_the_units_and_large_messages_pass(tmp_path: Path) -> None:
    backend = DaskBackend(ClusterChoice(workers=1), run_waiting_unit, tmp_path / "cluster")
    async with backend.opened():
        driver = SmallDriver(backend, {"lines": "300", "size": "50000"}, pace=0.005)
        held: list[int] = []

        def hold(_: SmallDriver) -> bool:
            held.append(backend._incoming.qsize())
            return False

        await driver.run(["a"], until=hold)
        assert numbers(driver.lines["a"]) == list(range(300))
        assert max(held) <= MOST_MESSAGES
        driver.fields = {"size": str(20 * 1024 * 1024)}
        await driver.run(["b"])
        assert [len(line) for line in driver.lines["b"]] == [20 * 1024 * 1024]
        driver.fields = {}
        await driver.run(["c"], until=lambda small: "c" in small.workers)
        await holds(lambda: backend._units["c"].future is None)
        await driver.drive(["c"])
        assert driver.ended["c"] == ""
