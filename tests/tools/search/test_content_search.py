"""Search of many files in batches."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.search import content_search
from tui_agent.tools.search.content_search import SearchResult, find_unsearched, search_contents
from tui_agent.tools.search.search_engine import Ripgrep, SearchMode, SearchRequest


def request(pattern: str = "foo", mode: SearchMode = "content", limit: int = 100) -> SearchRequest:
    return SearchRequest(pattern, mode, False, limit)


async def search(root: Path, wanted: SearchRequest, ripgrep: Ripgrep | None = None) -> SearchResult:
    names = sorted(path.name for path in root.iterdir())
    return await search_contents(ResolvedPath(root), names, wanted, ripgrep, CancellationToken())


def grow(root: Path, count: int, content: str = "foo\nfoo\n") -> None:
    for number in range(count):
        (root / f"f{number:03}").write_text(content)


@pytest.mark.parametrize("batch", [1, 3, 4_000])
async def test_the_batch_size_does_not_change_the_result(
    root: Path, monkeypatch: pytest.MonkeyPatch, engine: Ripgrep | None, batch: int
) -> None:
    monkeypatch.setattr(content_search, "_FIRST_BATCH", batch)
    monkeypatch.setattr(content_search, "_BATCH_FILES", batch)
    grow(root, 7)

    result = await search(root, request(), engine)

    assert [(hit.name, sorted(hit.columns)) for hit in result.hits] == [(f"f{n:03}", [1, 2]) for n in range(7)]
    assert (result.more, result.complete) == (False, True)


async def test_a_frequent_word_needs_one_small_batch(
    root: Path, monkeypatch: pytest.MonkeyPatch, engine: Ripgrep | None
) -> None:
    searched: list[int] = []

    async def counting(spec: ProcessSpec, *arguments: Any) -> ProcessOutcome:
        searched.append(sum(word.startswith("./") for word in spec.argv))
        return await run_process(spec, *arguments)

    monkeypatch.setattr(content_search, "_FIRST_BATCH", 3)
    monkeypatch.setattr(content_search, "run_process", counting)
    grow(root, 12)

    assert (await search(root, request(limit=5), engine)).more
    assert searched == [3]
    assert len((await search(root, request(limit=100), engine)).hits) == 12
    assert searched == [3, 3, 6, 3]


@pytest.mark.slow
async def test_the_limit_is_exact_and_more_matches_are_reported(root: Path, engine: Ripgrep | None) -> None:
    grow(root, 3)

    exact = await search(root, request(limit=6), engine)
    within = await search(root, request(limit=3), engine)
    between = await search(root, request(limit=4), engine)
    files = await search(root, request(mode="files_with_matches", limit=2), engine)

    assert (sum(len(hit.columns) for hit in exact.hits), exact.more) == (6, False)
    assert ([sorted(hit.columns) for hit in within.hits], within.more) == ([[1, 2], [1]], True)
    assert (len(between.hits), between.more) == (2, True)
    assert ([hit.name for hit in files.hits], files.more) == (["f000", "f001"], True)


@pytest.mark.slow
async def test_python_handles_a_pattern_that_ripgrep_rejects(
    root: Path, ripgrep: Ripgrep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_search, "_BATCH_FILES", 1)
    grow(root, 3, "foobar\nfoobaz\n")

    result = await search(root, request("foo(?!bar)"), ripgrep)

    assert [sorted(hit.columns) for hit in result.hits] == [[2], [2], [2]]


@pytest.mark.slow
async def test_a_pattern_that_takes_for_ever_is_stopped_without_blocking_the_loop(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_search, "SEARCH_TIME", 0.5)
    (root / "a").write_text("a" * 60 + "b\n")
    ticks = 0

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(search(root, request("(a+)+$")))
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1

    assert not task.result().complete
    assert ticks > 5, "a loop that is not free has no time for any"


async def test_too_much_output_ends_the_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_search, "_OUTPUT_SIZE", 100)
    grow(root, 20)

    result = await search(root, request())

    assert not result.complete
    assert 0 < len(result.hits) < 20


def test_files_that_cannot_be_read_are_named_and_vanished_ones_are_not(root: Path) -> None:
    (root / "ok").write_text("text")
    (root / "link").symlink_to("ok")
    os.mkfifo(root / "pipe")

    found = find_unsearched(ResolvedPath(root), ["gone", "link", "ok", "pipe"], lambda: False, beyond_ascii=False)

    assert (found.unreadable, found.words()) == (["link", "pipe"], "2 unreadable files (link, pipe)")
