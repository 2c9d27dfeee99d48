"""Watching a recording: the keys, the row, and a picture that is always the one of the moment."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.strip import Strip

from tests.support.table import table
from tui_agent.recording import Recording, RecordingEntry, RecordingHeader
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.replay.player_app import PlayerApp
from tui_agent.ui.replay.player_screen import PlayerScreen, Size
from tui_agent.ui.replay.scrubber import PlayState, scrubber_row, speed_text, time_text

pytestmark = pytest.mark.slow


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeStage:
    """A stage that shows the current moment after a chosen number of looks."""

    def __init__(self, size: Size | None, looks: int = 1) -> None:
        self.now, self.size, self.left, self.closed = 0.0, size, looks, False

    def play_to(self, at: float, seconds: float = 1.0) -> bool:
        self.left -= 1
        if self.left <= 0:
            self.now = at
        return self.left <= 0

    def strips(self) -> list[Strip]:
        return []

    def close(self) -> None:
        self.closed = True


class Watched:
    """A player at work."""

    def __init__(self, size: Size = (100, 30)) -> None:
        entries = tuple(RecordingEntry(at, "input", {"kind": "focus"}) for at in (2.0, 7.0, 7.0, 60.0))
        self.stages: list[FakeStage] = []
        self.clock = Clock()
        self.looks = 1
        recording = Recording(RecordingHeader(size=size), entries, ("1 damaged line of the recording left out.",))
        self.player = PlayerScreen(recording, self.open, self.clock)
        self.app = PlayerApp(self.player, "dark", surroundings=TerminalEnvironment())
        self.pilot: Pilot[None]

    def open(self, size: Size | None) -> FakeStage:
        self.stages.append(FakeStage(size, self.looks))
        return self.stages[-1]

    async def until(self, at: float, *, playing: bool) -> None:
        """Waits until it is there."""
        wanted = PlayState(at, 60.0, self.player.state.speed, playing)
        deadline = time.monotonic() + 60
        while self.player.state != wanted:
            assert time.monotonic() < deadline, f"{self.player.state} is not {wanted}"
            await self.pilot.pause(0.02)


@asynccontextmanager
async def watching(window: Size = (100, 30), size: Size = (100, 30)) -> AsyncIterator[Watched]:
    watched = Watched(size)
    async with watched.app.run_test(size=window, notifications=True) as pilot:
        watched.pilot = pilot
        await watched.until(0.0, playing=True)
        yield watched


async def test_it_plays_by_its_clock_and_stops_at_the_end() -> None:
    async with watching() as watched:
        watched.clock.now = 3.0
        await watched.until(3.0, playing=True)
        await watched.pilot.press("right_square_bracket")
        watched.clock.now = 8.0
        await watched.until(13.0, playing=True)
        watched.clock.now = 90.0
        await watched.until(60.0, playing=False)
        assert len(watched.stages) == 1
        await watched.pilot.press("space")
        await watched.until(0.0, playing=True)

        assert [stage.closed for stage in watched.stages] == [True, False]


async def test_keys_go_to_other_moments() -> None:
    async with watching() as watched:
        await watched.pilot.press("space", "right")
        await watched.until(5.0, playing=False)
        for key, at in (
            *(("full_stop", 7.0), ("full_stop", 60.0), ("full_stop", 60.0), ("comma", 7.0), ("comma", 2.0)),
            *(("comma", 0.0), ("left", 0.0), ("end", 60.0), ("home", 0.0)),
        ):
            await watched.pilot.press(key)
            await watched.until(at, playing=False)

        assert all(stage.closed for stage in watched.stages[:-1])


async def test_while_it_is_on_its_way_time_stands_and_keys_count() -> None:
    async with watching() as watched:
        await watched.pilot.press("space", "end")
        await watched.until(60.0, playing=False)
        watched.looks = 10_000
        await watched.pilot.press("left")
        assert watched.player.state.looking
        watched.clock.now = 50.0
        watched.looks = 1
        await watched.pilot.press("home")
        watched.stages[-1].left = 1

        await watched.until(0.0, playing=False)


async def test_a_click_and_a_drag_go_there() -> None:
    async with watching() as watched:
        await watched.pilot.press("space")
        row = scrubber_row(watched.player.scrubber.state, 100)
        await watched.pilot.click(watched.player.scrubber, (row.bar_start + row.bar_width - 1, 0))
        await watched.until(60.0, playing=False)
        await watched.pilot.mouse_down(watched.player.scrubber, (row.bar_start + 5, 0))
        await watched.pilot.hover(watched.player.scrubber, (0, 0))
        await watched.pilot.mouse_up(watched.player.scrubber, (0, 0))

        await watched.until(0.0, playing=False)


async def test_a_window_that_is_too_small_gets_a_stage_of_its_size_and_says_so() -> None:
    async with watching((80, 24)) as watched:
        assert watched.stages[-1].size == (80, 23)
        while not any("without what the mouse did" in note.message for note in watched.app._notifications):
            await watched.pilot.pause()
        await watched.pilot.resize_terminal(120, 40)
        await watched.pilot.pause(0.2)
        await watched.until(0.0, playing=True)

        assert watched.stages[-1].size is None


async def test_the_row_can_be_hidden_and_q_leaves() -> None:
    async with watching() as watched:
        await watched.pilot.press("h")
        assert not watched.player.scrubber.display
        await watched.pilot.press("h", "q")
        await watched.pilot.pause()

    assert watched.stages[-1].closed
    assert watched.app.return_code == 0


@table("width", [20, 40, 80, 120, 300])
def test_the_row_fits_and_begins_with_the_moment(width: int) -> None:
    row = scrubber_row(PlayState(12.0, 100.0, 2.0, playing=True), width)
    text = "".join(part for part, _ in row.runs)

    assert text.startswith(" ▶ 0:12 ")
    assert "● " in text.replace("─", "") or "●" in text
    assert len(text) <= max(width, 20)
    if width >= 80:
        assert "space pause · q quit · ←/→ 5 s · ,/. step" in text


def test_the_ends_of_the_bar_are_the_ends_of_the_recording() -> None:
    row = scrubber_row(PlayState(0.0, 100.0), 80)

    places = [0, row.bar_start, row.bar_start + row.bar_width - 1, 79]
    assert [row.moment_at(x, 100.0) for x in places] == [0.0, 0.0, 100.0, 100.0]
    assert [time_text(seconds) for seconds in (0, 65.9, 3_605)] == ["0:00", "1:05", "1:00:05"]
    assert [speed_text(speed) for speed in (0.125, 0.5, 1.0, 64.0)] == ["1/8×", "1/2×", "1×", "64×"]
