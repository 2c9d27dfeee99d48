"""Reading of lines equals splitting the whole text, at any piece size."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.protocol.regular_file import open_for_reading
from tui_agent.tools import line_pages
from tui_agent.tools.line_pages import LinePage, LineRequest, read_lines
from tui_agent.tools.text_format import SAMPLE_SIZE, format_of

RANGES = st.lists(st.integers(1, 40), max_size=6, unique=True).map(
    lambda numbers: [(first, first) for first in sorted(numbers)]
)


def page_of(
    path: Path,
    ranges: list[tuple[int, int]],
    width: int = 1000,
    budget: int = 100_000,
    overhead: int = 1,
    column: int = 1,
) -> LinePage:
    return asyncio.run(_page_of(path, LineRequest(ranges, width, budget, overhead, column), lambda: False))


async def _page_of(path: Path, request: LineRequest, stopped: Callable[[], bool]) -> LinePage:
    async with open_for_reading(str(path), os.open) as file:
        form = format_of(path.read_bytes()[:SAMPLE_SIZE])
        return await read_lines(file, os.stat(path), form, await file.read(line_pages.PIECE), request, stopped)


def texts(page: LinePage) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in page.lines]


@pytest.mark.parametrize("piece", [1, 3, 256 * 1024])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.lists(st.text("aä\n\r€", max_size=9), max_size=12).map("\n".join),
    ranges=RANGES,
    width=st.integers(1, 12),
    column=st.integers(1, 6),
)
def test_reading_equals_splitting_the_whole_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    piece: int,
    text: str,
    ranges: list[tuple[int, int]],
    width: int,
    column: int,
) -> None:
    monkeypatch.setattr(line_pages, "PIECE", piece)
    path = tmp_path / "f"
    path.write_bytes(text.encode())
    lines = text.split("\n" if "\n" in text else "\r")
    if not lines[-1]:
        lines.pop()

    page = page_of(path, ranges, width, column=column)

    assert page.total == len(lines)
    assert [line.number for line in page.lines] == [number for number, _ in ranges if number <= len(lines)]
    for place, line in enumerate(page.lines):
        whole = lines[line.number - 1]
        skipped = min(column - 1, len(whole)) if place == 0 else 0
        rest = whole[skipped:]
        bare = rest.removesuffix("\r") if len(rest) <= width + 1 else rest
        assert (line.skipped, line.text) == (skipped, bare[:width])
        assert line.left_out == len(bare) - len(line.text)


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(50_000_000)

    page = page_of(path, [(1, 5)], width=100)

    assert [(len(line.text), line.left_out) for line in page.lines] == [(100, 49_999_900)]


def test_reading_a_huge_file_ends_when_the_page_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_pages, "WHOLE_LIMIT", 1_000_000)
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.write(b"a\nb\n")
        file.truncate(10_000_000)

    page = page_of(path, [(1, 1)])

    assert texts(page) == [(1, "a")]
    assert page.total is None
    assert page.version.digest is None
