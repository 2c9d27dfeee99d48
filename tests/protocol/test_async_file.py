"""Files are read without blocking the event loop, and closed whatever happens."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tui_agent.protocol.regular_file import AHEAD, open_for_reading


class HeldOpener:
    """An opener that waits in its thread until it is released, as on a slow disk."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()
        self.thread: threading.Thread | None = None
        self.descriptor = -1

    def __call__(self, path: str, flags: int) -> int:
        self.thread = threading.current_thread()
        self.entered.set()
        assert self.released.wait(60)
        self.descriptor = os.open(path, flags)
        return self.descriptor


def is_open(descriptor: int) -> bool:
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


async def is_ended(thread: threading.Thread | None) -> None:
    assert thread is not None
    await asyncio.to_thread(thread.join, 60)
    assert not thread.is_alive()


async def test_the_opener_decides_what_is_opened_and_the_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"real")
    (tmp_path / "large").write_bytes(b"x" * AHEAD + b"real")
    asked: dict[str, int] = {}

    def opener(path: str, flags: int) -> int:
        assert flags & os.O_ACCMODE == os.O_RDONLY
        asked[path] = os.open(tmp_path / path, flags)
        return asked[path]

    async with open_for_reading("a", opener) as file:
        assert not is_open(asked["a"])
        assert [await file.read(100), await file.read(1)] == [b"real", b""]
        await file.seek(1)
        assert await file.read(100) == b"eal"
    async with open_for_reading("large", opener) as file:
        assert is_open(asked["large"])
        assert await file.read(AHEAD + 1) == b"x" * AHEAD + b"r"
        await file.seek(AHEAD - 1)
        assert [await file.read(2), await file.read(100)] == [b"xr", b"eal"]

    assert not is_open(asked["large"])


async def test_a_cancelled_caller_does_not_wait_and_a_file_that_is_opened_later_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    opener = HeldOpener()

    async def read() -> None:
        async with open_for_reading(str(tmp_path / "a"), opener):
            raise AssertionError("the caller was cancelled before")

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read())
        while not opener.entered.is_set():
            await asyncio.sleep(0)
        reading.cancel()

    assert reading.cancelled()
    assert opener.descriptor == -1
    opener.released.set()
    await is_ended(opener.thread)
    assert opener.descriptor != -1
    assert not is_open(opener.descriptor)


async def test_a_cancelled_read_ends_before_its_descriptor_is_closed() -> None:
    """A descriptor closed during a read could become that of another file."""
    end, other_end = os.pipe()
    threads: list[threading.Thread] = []

    def opener(path: str, flags: int) -> int:
        threads.append(threading.current_thread())
        return end

    async def read() -> None:
        async with open_for_reading("pipe", opener) as file:
            await file.read(100)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read())
        while not threads:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0.001)
        reading.cancel()

    assert reading.cancelled()
    assert is_open(end)
    os.close(other_end)
    await is_ended(threads[0])
    assert not is_open(end)


async def test_an_error_closes_the_file_and_ends_the_thread(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * AHEAD)
    descriptors: list[int] = []
    threads: list[threading.Thread] = []

    def opener(path: str, flags: int) -> int:
        threads.append(threading.current_thread())
        if path == "name":
            raise KeyError(path)
        descriptors.append(os.open(path, flags))
        return descriptors[0]

    async def fail(path: str) -> None:
        async with open_for_reading(path, opener):
            assert is_open(descriptors[0])
            raise ValueError("wrong")

    for path, error in (
        ("name", KeyError),
        (str(tmp_path / "missing"), FileNotFoundError),
        (str(tmp_path / "a"), ValueError),
    ):
        with pytest.raises(error):
            await fail(path)
        await is_ended(threads[-1])

    assert not is_open(descriptors[0])


async def test_a_thread_that_cannot_be_started_is_an_error_and_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def opener(path: str, flags: int) -> int:
        opened.append(path)
        return os.open(path, flags)

    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def read() -> None:
        async with open_for_reading("/dev/null", opener):
            raise AssertionError("no thread could open it")

    await read_nothing()
    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        await read()

    assert opened == []


async def read_nothing() -> None:
    """Load `aiofiles`, which happens with the first file that is not small."""
    async with open_for_reading("/dev/null", os.open) as file:
        assert await file.read(1) == b""
