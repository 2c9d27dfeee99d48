"""Live output: complete if it is slow, bounded if it is fast."""

import asyncio

from tui_agent.tools.processes.captured_output import FLUSH_INTERVAL, LIVE_SIZE, CapturedOutput, LiveOutput
from tui_agent.tools.processes.spool_file import SpoolFile
from tui_agent.tools.workspace import Workspace


class Received:
    def __init__(self) -> None:
        self.chunks: list[str] = []
        self.totals: list[int] = []
        self.came = asyncio.Event()

    def __call__(self, chunk: str, bytes_total: int) -> None:
        self.chunks.append(chunk)
        self.totals.append(bytes_total)
        self.came.set()


def live_of(workspace: Workspace) -> tuple[CapturedOutput, LiveOutput, Received]:
    captured, received = CapturedOutput(SpoolFile(workspace.new_spool_file)), Received()
    return captured, LiveOutput(captured, received), received


async def test_the_first_output_is_shown_at_once_and_the_next_after_the_interval(workspace: Workspace) -> None:
    captured, live, received = live_of(workspace)
    loop = asyncio.get_running_loop()
    times: list[float] = []

    for data in (b"a", b"b", b"c"):
        received.came.clear()
        captured.feed(data)
        live.wake()
        live.wake()
        await received.came.wait()
        times.append(loop.time())

    assert received.chunks == ["a", "b", "c"]
    assert received.totals == [1, 2, 3]
    assert times[2] - times[0] >= FLUSH_INTERVAL * 2 * 0.9


async def test_characters_split_between_pieces_stay_whole(workspace: Workspace) -> None:
    captured, live, received = live_of(workspace)
    for byte in "ä€".encode():
        received.came.clear()
        captured.feed(bytes([byte]))
        live.wake()
        await asyncio.sleep(0)
    live.close()

    assert "".join(received.chunks) == "ä€"


async def test_a_flood_is_shown_in_small_pieces_that_count_what_is_missing(workspace: Workspace) -> None:
    captured, live, received = live_of(workspace)
    captured.feed("ä".encode() * 500_000)
    live.close()

    (chunk,) = received.chunks
    assert chunk.startswith("\n[… 995,904 bytes came too fast to be shown …]\n")
    assert chunk.endswith("ä" * (LIVE_SIZE // 2))
    assert "\ufffd" not in chunk
    assert received.totals == [1_000_000]
