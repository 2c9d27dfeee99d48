"""Input and output of a headless program: neither blocks the event loop."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.pipes import BACKLOG, InputLine, LineReader, PipeWriter, read_everything


async def lines_of(descriptor: int, *, longest: int = 1_000) -> list[InputLine]:
    given_lines = LineReader(descriptor, longest=longest)
    given_lines.start()
    found: list[InputLine] = []
    async with asyncio.timeout(60):
        while (line := await given_lines.next()) is not None:
            found.append(line)
    return found


def a_file(path: Path, data: bytes) -> int:
    path.write_bytes(data)
    return os.open(path, os.O_RDONLY)


@table(
    ("data", "lines"),
    [
        (b"", []),
        (b"one", [b"one"]),
        (b"one\n", [b"one"]),
        (b"one\n\ntwo", [b"one", b"", b"two"]),
        ("a\u2028b\u0085c\rd\x0be".encode(), ["a\u2028b\u0085c\rd\x0be".encode()]),
        (b"\n", [b""]),
    ],
)
async def test_only_a_line_feed_ends_a_line(tmp_path: Path, data: bytes, lines: list[bytes]) -> None:
    descriptor = a_file(tmp_path / "input", data)
    assert await lines_of(descriptor) == lines
    os.close(descriptor)


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.lists(st.integers(1, 9)))
def test_lines_are_assembled_from_any_pieces(lines: list[bytes], pieces: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    read, write = os.pipe()

    async def talk() -> list[InputLine]:
        async with asyncio.TaskGroup() as tasks:
            heard = tasks.create_task(lines_of(read))
            rest = data
            for size in pieces:
                os.write(write, rest[:size])
                rest = rest[size:]
                await asyncio.sleep(0)
            os.write(write, rest)
            os.close(write)
        return heard.result()

    assert asyncio.run(talk()) == lines
    os.close(read)


async def test_a_line_that_is_too_long_is_truncated_and_marked(tmp_path: Path) -> None:
    descriptor = a_file(tmp_path / "input", b"x" * 200_000 + b"\nshort\n" + b"y" * 11)

    first, second, third = await lines_of(descriptor, longest=10)

    assert (first, first.too_long) == (b"x" * 10, True)
    assert (second, second.too_long) == (b"short", False)
    assert (third, third.too_long) == (b"y" * 10, True)
    os.close(descriptor)


async def test_an_unreadable_input_counts_as_ended() -> None:
    read, write = os.pipe()
    assert await lines_of(write) == []
    os.close(read)
    os.close(write)


async def test_descriptors_that_do_not_block_are_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    outlet = PipeWriter(write)
    outlet.start()
    async with asyncio.TaskGroup() as tasks:
        heard = tasks.create_task(lines_of(read, longest=1_000_000))
        # Give the reader time to find no data; the outcome does not depend on it.
        await asyncio.sleep(0.05)
        outlet.put(b"x" * 500_000 + b"\n")
        outlet.end()
        await outlet.drained()
        os.close(write)

    assert [len(line) for line in heard.result()] == [500_000]
    os.close(read)


async def test_a_slow_reader_makes_room_wait_and_put_never() -> None:
    read, write = os.pipe()
    outlet = PipeWriter(write)
    outlet.start()
    for _ in range(4):
        outlet.put(b"x" * (BACKLOG // 2))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await outlet.room()

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(asyncio.to_thread(read_everything, read))
        await outlet.room()
        outlet.end()
        await outlet.drained()
        os.close(write)

    assert len(reading.result()) == 2 * BACKLOG
    os.close(read)


def test_threads_outlive_their_loop_silently(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    out_read, out_write = os.pipe()

    async def start_both() -> None:
        LineReader(read).start()
        outlet = PipeWriter(out_write)
        outlet.start()
        outlet.put(b"x" * 2 * BACKLOG)
        outlet.end()

    asyncio.run(start_both())
    os.write(write, b"late\n")
    os.close(write)
    taken = 0
    while taken < 2 * BACKLOG:
        taken += len(os.read(out_read, BACKLOG))

    assert capsys.readouterr() == ("", "")
    for descriptor in (out_read, out_write):
        os.close(descriptor)
