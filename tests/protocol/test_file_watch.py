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

NOT_UTF_8 = os.fsdecode(b"\xff\xfe.toml")


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


async def test_a_directory_that_is_replaced_by_another(tmp_path: Path) -> None:
    file = tmp_path / "own" / "config.toml"
    put(file, "old")
    put(tmp_path / "next" / "config.toml", "new")
    async with watch_of(file) as watch:
        (tmp_path / "own").rename(tmp_path / "before")
        (tmp_path / "next").rename(tmp_path / "own")
        await watch.sees("new")
        put(file, "newer")
        await watch.sees("newer")


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


async def test_names_outside_the_directory_that_are_not_utf_8_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".tui-agent" / "config.toml"
    put(file, "one")
    async with watch_of(file) as watch:
        for name in (b"\xff\xfe.txt", b"a\nb", b"x" * 255):
            (tmp_path / os.fsdecode(name)).touch()
        put(file, "two")
        await watch.sees("two")
        assert watch.slower == []


async def test_a_name_that_is_not_utf_8_in_the_directory_disables_only_the_reports(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    put(file, "one")
    async with watch_of(file) as watch:
        # Reports begin once the watch is set up, and nothing signals that moment.
        number = 0
        while not watch.slower:
            number += 1
            (tmp_path / f"{NOT_UTF_8}{number}").touch()
            await asyncio.sleep(0.05)
        put(file, "two")
        await watch.sees("two")
        assert ["decode" in reason for reason in watch.slower] == [True]


async def test_a_directory_whose_own_name_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / NOT_UTF_8 / "config.toml"
    put(file, "one")
    async with watch_of(file) as watch:
        await watch.until(lambda: bool(watch.slower))
        put(file, "two")
        await watch.sees("two")


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


async def test_files_of_one_ending_in_directories(tmp_path: Path) -> None:
    directory = tmp_path / "themes"
    file = directory / "mine.toml"
    async with watch_of(file, WatchedFiles(directories=(directory,))) as watch:
        put(file, "mine")
        await watch.sees("mine")
        count = watch.count
        put(directory / "notes.txt", "nothing")
        put(directory / "yours.toml", "yours")
        await watch.until(lambda: watch.count > count)


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


async def test_an_error_in_the_callback_ends_the_watch(tmp_path: Path) -> None:
    async def changed() -> None:
        raise MemoryError

    with pytest.raises(ExceptionGroup) as raised:
        await watch_files(WatchedFiles((tmp_path / "x",)), changed, str)

    assert raised.group_contains(MemoryError)
