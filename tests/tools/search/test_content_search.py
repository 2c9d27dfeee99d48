"""Search of many files in batches, in which both engines find the same."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.test_programs import program
from tests.support.examples import sample
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.search import content_search, search_worker
from tui_agent.tools.search.content_search import FileHits, SearchResult, find_unsearched, search_contents
from tui_agent.tools.search.search_engine import Ripgrep, SearchMode, SearchRequest, find_ripgrep


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


FILES: dict[str, bytes] = {
    "a.py": b"import os\nprint('foo')\n\nfoo = 1\nFOO = 2\n",
    "crlf.txt": b"foo\r\nbar foo\r\n\r\n",
    "last.txt": b"no end\nfoo",
    "mark.txt": b"\xef\xbb\xbffoo\nbar\n",
    "wide.txt": "foo\nä foo\n".encode("utf-16"),
    "latin.txt": "ä foo\n".encode("latin-1"),
    "utf8.txt": "äöü foo ß\n".encode(),
    "binary.bin": b"foo\0foo\nfoo\n",
    "late.bin": b"foo\n" + b"x\n" * 10_000 + b"\0 foo\n",
    "long.txt": b"x" * 5000 + b" foo " + b"y" * 5000 + b"\n",
    "empty.txt": b"",
    "-dash.txt": b"foo\n",
    "new\nline.txt": b"foo\n",
    os.fsdecode(b"caf\xe9.txt"): b"foo\n",
}

PATTERNS = [
    "foo",
    "^foo",
    "foo$",
    "^$",
    "foo|bar",
    r"\bfoo\b",
    r"f(o+) ",
    "[a-f]oo",
    "ä",
    "ß$",
    r"\bfoo\s+=\s+\d",
    ".",
    r"\.",
    "nothing at all",
    "-e",
    "(?i)FOO",
    "x{10,}",
]


LOOKS: list[tuple[SearchMode, bool, int]] = [
    *(("content", ignore_case, limit) for ignore_case in (False, True) for limit in (1, 10_000)),
    *(("files_with_matches", ignore_case, 10_000) for ignore_case in (False, True)),
    *(("count", ignore_case, 10_000) for ignore_case in (False, True)),
]
"""Mode, whether case is ignored, and limit."""


@pytest.fixture
def tree(root: Path) -> Path:
    for name, content in FILES.items():
        (root / name).write_bytes(content)
    return root


async def found(tree: Path, request: SearchRequest, ripgrep: Ripgrep | None) -> list[FileHits]:
    return (await search_contents(ResolvedPath(tree), sorted(FILES), request, ripgrep, CancellationToken())).hits


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_both_engines_find_the_same(tree: Path, ripgrep: Ripgrep, pattern: str) -> None:
    for mode, ignore_case, limit in sample(LOOKS, 3):
        request = SearchRequest(pattern, mode, ignore_case, limit)
        assert await found(tree, request, ripgrep) == await found(tree, request, None), request


async def test_ripgrep_ignores_the_users_settings(
    tree: Path, ripgrep: Ripgrep, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tree / "config"
    config.write_text("--pre=/bin/echo\n--ignore-case\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))

    hits = await found(tree, SearchRequest("FOO", "content", False, 100), ripgrep)

    assert [hit.name for hit in hits] == ["a.py"]


def test_a_ripgrep_inside_the_workspace_is_not_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program(root / "bin").parent))
    assert find_ripgrep(root) is None

    outside = program(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{outside.parent}")
    assert find_ripgrep(root) == Ripgrep(outside)


def worker_search(*files: Path, pattern: str = "foo", mode: str = "content", limit: int = 100) -> tuple[int, bytes]:
    written: list[bytes] = []
    options = {"pattern": pattern, "mode": mode, "ignore_case": False, "limit": limit}
    code = search_worker.main([json.dumps(options), *map(str, files)], written.append)
    return code, b"".join(written)


def test_only_the_start_of_an_endless_line_is_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "_LONGEST_LINE", 10)
    path = root / "f"
    path.write_bytes(b"x foo" + b"x" * 50 + b"\n" + b"x" * 50 + b"foo\nfoo\n")

    assert worker_search(path, mode="count") == (0, str(path).encode() + b"\0" + b"2\n")


def test_only_regular_files_are_opened_and_no_link_is_followed(root: Path, tmp_path: Path) -> None:
    file = root / "f"
    file.write_bytes(b"foo\nbar\na foo\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("foo\n")
    links = file.parent / "link", file.parent / "d"
    links[0].symlink_to(tmp_path / "outside" / "f")
    links[1].symlink_to(tmp_path / "outside")
    os.mkfifo(file.parent / "pipe")

    found = worker_search(
        links[0], links[1] / "f", file.parent / "pipe", Path("/dev/null"), file, mode="files_with_matches"
    )

    assert found == (0, str(file).encode() + b"\0")
