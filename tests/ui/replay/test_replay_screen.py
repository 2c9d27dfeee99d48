"""Watching a session: its keys, its row, and a screen that is always the one of the position."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.events import MouseDown, MouseEvent, MouseMove, MouseUp, Paste
from textual.pilot import Pilot

from tests.ui.stage import Clock
from tests.ui.story import Story
from tui_agent.ui.app.replay_app import ReplayApp
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.replay import replay_screen
from tui_agent.ui.replay.replay_screen import ReplayScreen
from tui_agent.ui.replay.replay_timeline import PlayState, ReplayTimeline, scrubber_row, speed_text, time_text

pytestmark = pytest.mark.slow


def story() -> Story:
    """Return a session of ten seconds with a question, which was answered after four."""
    told = Story().wait(1).run("fix it").step(0)
    call = told.wait(1).queued("edit", "a.py")
    request = told.asks(call, "edit", "a.py", "no rule allows it")
    told.wait(4).resolved(request, call).started(call, "edit", "a.py")
    told.wait(1).ended(call, "edit").wait(1).answer("It is fixed.").end_step(0).wait(2).end()
    return told


class Watched:
    """A replay at work."""

    def __init__(self, told: Story) -> None:
        self.clock = Clock()
        self.clock.now = 0.0
        timeline = ReplayTimeline(told.envelopes, [one.ts for one in told.envelopes], ("Line 2 is damaged.",))
        self.app = ReplayApp(
            lambda options: ReplayScreen(timeline, options, self.clock),
            surroundings=TerminalEnvironment(reduced_motion=True),
        )
        self.replay = self.app.replay
        self.pilot: Pilot[None]

    @property
    def text(self) -> str:
        return shown_text(self.app)

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, f"{self.replay.play_state}\n{self.text}"
            await self.pilot.pause(0.02)

    async def drawn(self) -> None:
        """Wait until nothing is left to draw."""
        for _ in range(3):
            await self.pilot.pause()
            self.replay.body.conversation.flush()
        await self.pilot.pause()

    async def at(self, at: float, *, playing: bool = False) -> None:
        """Wait until it is there."""
        wanted = PlayState(at, self.replay.timeline.length, self.replay.play_state.speed, playing)
        await self.until(lambda: self.replay.play_state == wanted)

    def mouse(self, kind: type[MouseEvent], x: int, y: int) -> None:
        self.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


def shown_text(app: ReplayApp) -> str:
    """Return the text of the screen."""
    drawn = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return "\n".join("".join(segment.text for strip in row for segment in strip) for row in drawn.strips)


@asynccontextmanager
async def watching(told: Story | None = None) -> AsyncIterator[Watched]:
    watched = Watched(told or story())
    async with watched.app.run_test(size=(100, 30), notifications=True) as pilot:
        watched.pilot = pilot
        await watched.at(0.0, playing=True)
        yield watched


async def test_it_plays_by_its_clock_and_stops_at_the_end() -> None:
    async with watching() as watched:
        await watched.until(lambda: "Line 2 is damaged." in watched.text)
        watched.clock.now = 1.0
        await watched.at(1.0, playing=True)
        await watched.until(lambda: "fix it" in watched.text)
        await watched.pilot.press("right_square_bracket")
        watched.clock.now = 1.5
        await watched.at(2.0, playing=True)
        watched.clock.now = 90.0
        await watched.at(10.0)
        await watched.until(lambda: "It is fixed." in watched.text)
        await watched.pilot.press("space")
        await watched.at(0.0, playing=True)
        await watched.until(lambda: "fix it" not in watched.text)


async def test_keys_seek() -> None:
    async with watching() as watched:
        await watched.pilot.press("space", "right")
        await watched.at(5.0)
        for key, at in (
            *(("full_stop", 6.0), ("full_stop", 7.0), ("comma", 6.0), ("comma", 2.0), ("comma", 1.0), ("comma", 0.0)),
            *(("comma", 0.0), ("left", 0.0), ("end", 10.0), ("full_stop", 10.0), ("home", 0.0)),
        ):
            await watched.pilot.press(key)
            await watched.at(at)


async def test_a_past_question_is_shown_and_closed_by_its_recorded_answer_and_takes_no_input() -> None:
    async with watching() as watched:
        watched.clock.now = 3.0
        await watched.until(lambda: isinstance(watched.app.screen, ApprovalScreen))
        await watched.pilot.press("space", "y", "n", "a")
        watched.app.post_message(Paste("yes"))
        dialog = watched.app.screen.query_one("#approval-keys").region
        watched.mouse(MouseDown, dialog.x + 2, dialog.y)
        watched.mouse(MouseUp, dialog.x + 2, dialog.y)
        await watched.drawn()
        assert isinstance(watched.app.screen, ApprovalScreen)
        assert watched.replay.entry.composer.text == ""
        await watched.pilot.press("full_stop")
        await watched.at(6.0)
        await watched.until(lambda: watched.app.screen is watched.replay)
        await watched.pilot.press("comma")
        await watched.until(lambda: isinstance(watched.app.screen, ApprovalScreen))
        await watched.pilot.press("home")
        await watched.until(lambda: watched.app.screen is watched.replay)
        await watched.pilot.press("right")
        await watched.until(lambda: isinstance(watched.app.screen, ApprovalScreen))
        await watched.pilot.press("q")
        await watched.until(lambda: not watched.app.is_running)


async def test_the_screen_at_a_position_does_not_depend_on_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching() as watched:
        await watched.pilot.press("space", "full_stop", "full_stop", "full_stop", "full_stop", "full_stop", "full_stop")
        await watched.drawn()
        stepped, at = watched.text, watched.replay.play_state.at
        await watched.pilot.press("end", "home")
        await watched.at(0.0)
        monkeypatch.setattr(replay_screen, "MAX_SHOWN", 0)
        monkeypatch.setattr(replay_screen, "SLICE", 0.0)
        watched.replay.seek(at)
        assert watched.replay.play_state.looking
        await watched.at(at)
        await watched.drawn()
        assert watched.text == stepped


async def test_a_click_and_a_drag_on_the_row_seek() -> None:
    async with watching() as watched:
        await watched.pilot.press("space")
        row = scrubber_row(watched.replay.scrubber.state, 100)
        watched.mouse(MouseDown, row.bar_start + row.bar_width - 1, 29)
        await watched.at(10.0)
        watched.mouse(MouseMove, 0, 29)
        await watched.at(0.0)
        watched.mouse(MouseUp, 0, 29)
        watched.mouse(MouseMove, 50, 29)
        watched.mouse(MouseDown, 50, 3)
        await watched.drawn()
        await watched.at(0.0)


async def test_the_row_can_be_hidden_and_q_leaves() -> None:
    async with watching() as watched:
        await watched.pilot.press("h")
        assert not watched.replay.scrubber.display
        await watched.pilot.press("h", "q")
        await watched.until(lambda: not watched.app.is_running)

    assert watched.app.return_code == 0


@pytest.mark.parametrize("width", [20, 40, 80, 120, 300])
def test_the_row_fits_and_begins_with_the_position(width: int) -> None:
    row = scrubber_row(PlayState(12.0, 100.0, 2.0, playing=True), width)
    text = "".join(part for part, _ in row.runs)

    assert text.startswith(" ▶ 0:12 ")
    assert "●" in text
    assert len(text) <= max(width, 20)
    if width >= 80:
        assert "space pause · q quit · ←/→ 5 s · ,/. step" in text


def test_the_ends_of_the_bar_are_the_ends_of_the_replay() -> None:
    row = scrubber_row(PlayState(0.0, 100.0), 80)

    places = [0, row.bar_start, row.bar_start + row.bar_width - 1, 79]
    assert [row.moment_at(x, 100.0) for x in places] == [0.0, 0.0, 100.0, 100.0]
    assert [time_text(seconds) for seconds in (0, 65.9, 3_605)] == ["0:00", "1:05", "1:00:05"]
    assert [speed_text(speed) for speed in (0.125, 0.5, 1.0, 64.0)] == ["1/8×", "1/2×", "1×", "64×"]
