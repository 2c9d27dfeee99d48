"""The watch notices every change of its files, whatever else the directory contains."""

import asyncio
import importlib
import os
import resource
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tui_agent.protocol import file_watch
from tui_agent.protocol.file_watch import WatchedFiles, watch_files


@pytest.fixture(autouse=True)
def fast_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch, "POLL_SECONDS", 0.05)


class Watch:
    """Record of the changes that a watch of one file reported."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.slower: list[str] = []
        self.content: str | None = None
        """Content of the file after the last change; None if it is missing."""
        self.count = 0

    async def changed(self) -> None:
        self.count += 1
        self.content = self.file.read_text("utf-8") if self.file.is_file() else None

    async def sees(self, content: str | None) -> None:
        await self.until(lambda: self.content == content)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def watch_of(file: Path, files: WatchedFiles | None = None) -> AsyncGenerator[Watch]:
    watch = Watch(file)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch_files(files or WatchedFiles((file,)), watch.changed, watch.slower.append))
        await watch.until(lambda: watch.count > 0)
        yield watch
        assert not watching.done()
        watching.cancel()


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


async def test_a_file_in_a_directory_that_appears_vanishes_and_appears_again(tmp_path: Path) -> None:
    file = tmp_path / "own" / "deep" / "config.toml"
    async with watch_of(file) as watch:
        for text in ("one", "two"):
            put(file, text)
            await watch.sees(text)
            put(file, text * 2)
            await watch.sees(text * 2)
            file.unlink()
            file.parent.rmdir()
            await watch.sees(None)


async def test_links_that_are_redirected_and_their_targets(tmp_path: Path) -> None:
    put(tmp_path / "a" / "config.toml", "a")
    put(tmp_path / "b" / "config.toml", "b")
    own = tmp_path / "own"
    own.symlink_to("a")
    async with watch_of(own / "config.toml") as watch:
        put(tmp_path / "a" / "config.toml", "aa")
        await watch.sees("aa")
        (tmp_path / "other").symlink_to("b")
        (tmp_path / "other").rename(own)
        await watch.sees("b")
        put(tmp_path / "b" / "config.toml", "bb")
        await watch.sees("bb")


async def test_a_file_that_is_replaced_within_one_tick_of_the_clock(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    put(file, "1")
    times = os.stat(file).st_mtime_ns
    async with watch_of(file) as watch:
        for number in range(2, 8):
            file.write_text(str(number))
            os.utime(file, ns=(times, times))
            await watch.sees(str(number))


async def test_without_a_free_descriptor_the_files_are_still_checked(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    importlib.import_module("watchfiles")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    watch = Watch(file)
    async with asyncio.TaskGroup() as tasks:
        await asyncio.to_thread(int)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        try:
            watching = tasks.create_task(watch_files(WatchedFiles((file,)), watch.changed, watch.slower.append))
            await watch.until(lambda: bool(watch.slower))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        put(file, "two")
        await watch.sees("two")
        watching.cancel()


class CountingFiles(WatchedFiles):
    """Files that count how often they are checked."""

    looks = 0

    def look(self) -> frozenset[file_watch.Mark]:
        self.looks += 1
        return super().look()


async def test_without_a_directory_nothing_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[bool] = []

    def load() -> object:
        loads.append(True)
        return importlib.import_module("watchfiles")

    monkeypatch.setattr(file_watch, "_load_watchfiles", load)
    files = CountingFiles((tmp_path / "own" / "config.toml",))
    async with watch_of(tmp_path / "own" / "config.toml", files) as watch:
        await watch.until(lambda: files.looks > 3)
        assert loads == []
        put(watch.file, "one")
        await watch.sees("one")
        await watch.until(lambda: loads == [True])
