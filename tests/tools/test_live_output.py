"""Output told live: complete when slow, bounded when fast."""

import asyncio

from tui_agent.tools.captured_output import LIVE_SIZE, CapturedOutput
from tui_agent.tools.live_output import FLUSH_INTERVAL, LiveOutput
from tui_agent.tools.spool_file import SpoolFile
from tui_agent.tools.workspace import Workspace


class Told:
    def __init__(self) -> None:
        self.chunks: list[str] = []
        self.totals: list[int] = []
        self.came = asyncio.Event()

    def __call__(self, chunk: str, *, bytes_total: int) -> None:
        self.chunks.append(chunk)
        self.totals.append(bytes_total)
        self.came.set()


def live_of(workspace: Workspace) -> tuple[CapturedOutput, LiveOutput, Told]:
    captured, told = CapturedOutput(SpoolFile(workspace.new_spool_file)), Told()
    return captured, LiveOutput(captured, told), told


async def test_the_first_output_is_told_at_once_and_the_next_after_the_interval(workspace: Workspace) -> None:
    captured, live, told = live_of(workspace)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    for data in (b"a", b"b", b"c"):
        told.came.clear()
        captured.feed(data)
        live.wake()
        live.wake()
        await told.came.wait()
        times.append(loop.time())

    assert told.chunks == ["a", "b", "c"]
    assert told.totals == [1, 2, 3]
    assert times[2] - times[0] >= FLUSH_INTERVAL * 2 * 0.9


async def test_what_is_left_is_told_at_the_end(workspace: Workspace) -> None:
    captured, live, told = live_of(workspace)
    captured.feed(b"a")
    live.wake()
    captured.feed(b"b")

    live.close()

    assert told.chunks == ["ab"]
    live.close()
    assert told.chunks == ["ab"]


async def test_characters_cut_between_pieces_come_whole(workspace: Workspace) -> None:
    captured, live, told = live_of(workspace)
    for byte in "ä€".encode():
        told.came.clear()
        captured.feed(bytes([byte]))
        live.wake()
        await asyncio.sleep(0)
    live.close()

    assert "".join(told.chunks) == "ä€"


async def test_a_cut_character_at_the_end_is_shown_as_damaged(workspace: Workspace) -> None:
    captured, live, told = live_of(workspace)
    captured.feed("ä".encode()[:1])
    live.close()

    assert told.chunks == ["\ufffd"]


async def test_a_flood_is_told_in_small_pieces_that_say_what_is_missing(workspace: Workspace) -> None:
    captured, live, told = live_of(workspace)
    captured.feed("ä".encode() * 500_000)
    live.close()

    (chunk,) = told.chunks
    assert chunk.startswith("\n[… 995,904 bytes came too fast to be shown …]\n")
    assert chunk.endswith("ä" * (LIVE_SIZE // 2))
    assert "\ufffd" not in chunk
    assert told.totals == [1_000_000]
