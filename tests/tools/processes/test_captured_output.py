"""Head, tail and file of an output are the same, whatever pieces it arrives in, and files are bounded."""

import errno
import os
import threading
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.tools.processes import captured_output
from tui_agent.tools.processes.captured_output import (
    LIVE_SIZE,
    LIVE_WHOLE,
    CapturedOutput,
    LiveOutput,
    is_binary_output,
)
from tui_agent.tools.processes.spool_file import SpoolBudget, SpoolFile
from tui_agent.tools.workspace import Workspace


def fed(workspace: Workspace, pieces: Iterable[bytes]) -> CapturedOutput:
    output = CapturedOutput(SpoolFile(workspace.new_spool_file))
    for piece in pieces:
        assert output.feed(piece)
    return output


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.text("abc\n", max_size=60).map(str.encode), max_size=12))
def test_head_and_tail_are_those_of_the_whole(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]
) -> None:
    monkeypatch.setattr(captured_output, "HEAD_SIZE", 20)
    monkeypatch.setattr(captured_output, "TAIL_SIZE", 10)
    whole = b"".join(pieces)

    captured = fed(workspace, pieces).close()

    assert captured.total == len(whole)
    if len(whole) <= 30:
        assert (captured.head, captured.tail, captured.path) == (whole, b"", None)
    else:
        assert (captured.head, captured.tail) == (whole[:20], whole[-10:])
        assert captured.path is not None
        assert captured.path.read_bytes() == whole
    assert captured.left_out == len(whole) - len(captured.head) - len(captured.tail)


@given(sizes=st.lists(st.integers(1, LIVE_WHOLE), max_size=8), look=st.lists(st.booleans(), min_size=8, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_byte_is_shown_live_or_counted_as_skipped(
    workspace: Workspace, sizes: list[int], look: list[bool]
) -> None:
    output = CapturedOutput(SpoolFile(workspace.new_spool_file))
    seen = 0
    for size, take in zip(sizes, look, strict=False):
        output.feed(b"x" * size)
        if take:
            piece = output.take_live()
            seen += len(piece.data) + piece.skipped
            assert piece.total == seen
    piece = output.take_live()

    assert seen + len(piece.data) + piece.skipped == sum(sizes)
    output.close()


@table(
    ("sample", "binary"),
    [
        (b"", False),
        (b"plain\ttext\r\n\x1b[31mred\x1b[0m", False),
        ("äöü€".encode(), False),
        (b"a\0b\0c\0", True),
        (b"name\0other name\0", False),
        (b"f/a\0f/b\0", False),
        (b"\x01\0\0\0\x02\0\0\0", True),
        (bytes(range(256)), True),
        (b"\xff\xfe\xfd", True),
    ],
)
def test_binary_output_is_recognised(sample: bytes, binary: bool) -> None:
    assert is_binary_output(sample) is binary


@given(
    pieces=st.lists(
        st.sampled_from([b"a", b"bc\n", b"\r", b"12%", b"\x1b[K", b"\x1b[1A", "é".encode()[:1]]), max_size=30
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_readers_get_every_row_in_its_last_state(workspace: Workspace, pieces: list[bytes]) -> None:
    output = CapturedOutput(SpoolFile(workspace.new_spool_file))
    output.keep_unread()
    seen = b""
    for piece in pieces:
        output.feed(piece)
        seen += output.take_unread("often").head
    output.close()
    seen += output.take_unread("often").head
    whole = output.take_unread("once").head

    assert whole == output.peek().head
    rows = iter(seen.split(b"\n"))
    assert all(any(row in given for given in rows) for row in whole.split(b"\n") if row)


def test_a_reader_gets_only_what_is_new_or_has_changed(workspace: Workspace) -> None:
    output = CapturedOutput(SpoolFile(workspace.new_spool_file))
    output.feed(b"begun ")
    output.keep_unread()
    texts = (b"now\n", b"10%", b"\r20%", b"\r30%\nname? ", b"yes\n")
    seen = [output.take_unread().head for text in texts if output.feed(text)]

    assert seen == [b"now\n", b"10%", b"20%", b"30%\nname? ", b"yes\n"]


async def test_a_flood_is_shown_in_small_pieces_that_count_what_is_missing(workspace: Workspace) -> None:
    output, chunks = CapturedOutput(SpoolFile(workspace.new_spool_file)), list[tuple[str, int]]()
    live = LiveOutput(output, lambda chunk, total: chunks.append((chunk, total)))
    output.feed("ä".encode() * 500_000)
    live.close()

    ((chunk, total),) = chunks
    assert chunk.startswith("\n[… 995,904 bytes came too fast to be shown …]\n")
    assert chunk.endswith("ä" * (LIVE_SIZE // 2))
    assert "\ufffd" not in chunk
    assert total == 1_000_000


def test_bytes_that_could_not_be_written_are_not_counted(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = SpoolBudget(workspace.spool_dir, limit=10)
    spool = SpoolFile(workspace.new_spool_file, budget=budget)

    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    spool.write(b"123456")
    monkeypatch.undo()

    assert spool.problem == "No space left on device"
    assert budget.take(100) == 10


def test_threads_together_never_exceed_the_limit(workspace: Workspace) -> None:
    budget = SpoolBudget(workspace.spool_dir, limit=100_000)
    spools = [SpoolFile(workspace.new_spool_file, budget=budget) for _ in range(5)]

    def flood(spool: SpoolFile) -> None:
        for _ in range(100):
            spool.write(b"y\n" * 500)
        spool.close()

    threads = [threading.Thread(target=flood, args=(spool,)) for spool in spools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(file.stat().st_size for file in workspace.spool_dir.iterdir()) == 100_000
    assert any(spool.problem for spool in spools)
