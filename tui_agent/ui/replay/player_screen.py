"""The screen that plays a recording: its picture, and a row that shows the position and seeks."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.recording import Recording
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.commands import bindings_for
from tui_agent.ui.base.terminal_environment import Clock

from .scrubber import PlayState, Scrubber

FRAME = 1 / 20
"""Seconds between two updates."""
SLICE = 0.03
"""Seconds spent at a time on seeking a moment; keys are handled in between."""
YIELD_SECONDS = 0.005
"""Seconds left for everything else between two such slices."""
JUMP = 5.0
"""Seconds that one key press moves back or forward."""
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

Size = tuple[int, int]


class RecordingPlayer(Protocol):
    """A stage that plays a recording forward."""

    @property
    def now(self) -> float:
        """Seconds played so far."""
        ...

    def play_to(self, at: float, seconds: float = ...) -> bool:
        """Play up to a moment, for some seconds at most; False if those were not enough."""
        ...

    def strips(self) -> list[Strip]:
        """Return the lines of the screen."""
        ...

    def close(self) -> None:
        """Close the stage."""
        ...


OpenStage = Callable[[Size | None], RecordingPlayer]
"""Makes a stage at the start of the recording with these columns and rows; None: the recorded size."""


class StageView(Widget):
    """The picture of a recording: lines that its stage has drawn, from the upper left corner."""

    DEFAULT_CSS = """
    StageView {
        width: 1fr;
        height: 1fr;
        background: $background;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._strips: Sequence[Strip] = ()

    def show(self, strips: Sequence[Strip]) -> None:
        """Show these lines."""
        self._strips = strips
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width, base = self.size.width, self.rich_style
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(width, base)
        return strip.adjust_cell_length(width, base)


class PlayerScreen(Screen[None]):
    """Plays one recording. Pressed keys control the player; recorded ones go to the recorded screen."""

    app = getters.app(any_app)
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("player")]
    DEFAULT_CSS = """
    PlayerScreen {
        layers: picture controls;
        & StageView { layer: picture; }
        & Scrubber { layer: controls; dock: bottom; }
    }
    """

    def __init__(self, recording: Recording, open_stage: OpenStage, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.picture = StageView(id="picture")
        self.scrubber = Scrubber(recording.length, id="scrubber")
        self._recording = recording
        self._open_stage = open_stage
        self._clock = clock
        self._moments = sorted({entry.at for entry in recording.entries if entry.kind in ("event", "past", "input")})
        self._stage: RecordingPlayer | None = None
        self._stage_size: Size | None = None
        self._window: Size | None = None
        self._at = 0.0
        self._speed = 1.0
        self._playing = True
        self._last_tick = clock()
        self._catch_up_pending = False

    @property
    def state(self) -> PlayState:
        """The position and speed."""
        looking = self._stage is None or self._stage.now < self._at - 1e-6
        return PlayState(self._at, self._recording.length, self._speed, self._playing, looking)

    def compose(self) -> ComposeResult:
        """Yield the picture, and the row, which covers the picture's last line if the window has no room below."""
        yield self.picture
        yield self.scrubber

    def on_mount(self) -> None:
        """Start to play."""
        for notice in self._recording.notices:
            self.notify(notice, severity="warning", markup=False)
        self.set_interval(FRAME, self._tick)

    def on_resize(self, event: Resize) -> None:
        """Check again if the recorded size fits the window."""
        self._window = None

    def on_unmount(self) -> None:
        """Close the stage."""
        self._close_stage()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_play_or_pause(self) -> None:
        """Pause or resume; at the end, start again."""
        if not self._playing and self._at >= self._recording.length:
            self._at = 0.0
        self._playing = not self._playing
        self._show_state()

    def action_back(self) -> None:
        """Seek a little back."""
        self.seek(self._at - JUMP)

    def action_forward(self) -> None:
        """Seek a little forward."""
        self.seek(self._at + JUMP)

    def action_step_back(self) -> None:
        """Pause at the previous event or input."""
        place = bisect_left(self._moments, self._at) - 1
        self._step_to(self._moments[place] if place >= 0 else 0.0)

    def action_step_forward(self) -> None:
        """Pause at the next event or input."""
        place = bisect_right(self._moments, self._at)
        self._step_to(self._moments[place] if place < len(self._moments) else self._recording.length)

    def action_slower(self) -> None:
        """Halve the speed."""
        self._change_speed(-1)

    def action_faster(self) -> None:
        """Double the speed."""
        self._change_speed(+1)

    def action_first(self) -> None:
        """Seek the start."""
        self.seek(0.0)

    def action_last(self) -> None:
        """Seek the end."""
        self.seek(self._recording.length)

    def action_hide(self) -> None:
        """Hide or show the row."""
        self.scrubber.display = not self.scrubber.display

    def action_close(self) -> None:
        """Close the player."""
        self.dismiss()

    @on(Scrubber.Sought)
    def _sought(self, event: Scrubber.Sought) -> None:
        self.seek(event.at)

    def seek(self, at: float) -> None:
        """Move to another moment; playing or paused as before."""
        self._at = min(max(0.0, at), self._recording.length)
        self._catch_up()

    def _step_to(self, at: float) -> None:
        self._playing = False
        self.seek(at)

    def _change_speed(self, by: int) -> None:
        place = SPEEDS.index(self._speed) + by
        self._speed = SPEEDS[min(max(0, place), len(SPEEDS) - 1)]
        self._show_state()

    # --- playing ------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Advance by the time that has passed, unless the player is still seeking."""
        now = self._clock()
        passed, self._last_tick = now - self._last_tick, now
        if not self._is_in_order():
            return
        if self._playing and not self.state.looking:
            self._at = min(self._at + passed * self._speed, self._recording.length)
            self._playing = self._at < self._recording.length
        self._catch_up()

    def _is_in_order(self) -> bool:
        """True if the stage has the right size. It is made anew once the window kept its size for two updates."""
        window = (self.app.size.width, self.app.size.height)
        if window != self._window:
            self._window = window
            return False
        width, height = self._recording.largest
        fits = width <= window[0] and height <= window[1]
        wanted = None if fits else (window[0], max(1, window[1] - 1))
        if self._stage is None or wanted != self._stage_size:
            if wanted is not None and (self._stage is None or self._stage_size is None):
                text = f"Recorded in {width}×{height}; fitted into this smaller window, without what the mouse did."
                self.notify(text, severity="warning", markup=False)
            self._close_stage()
            self._stage_size = wanted
        return True

    def _catch_up(self) -> None:
        """Play towards the position for one slice; to get to an earlier moment, start again."""
        if self._window is None:
            return
        if self._stage is not None and self._stage.now > self._at + 1e-6:
            self._close_stage()
        if self._stage is None:
            self._stage = self._open_stage(self._stage_size)
        if self._stage.play_to(self._at, SLICE):
            self.picture.show(self._stage.strips())
        elif not self._catch_up_pending:
            self._catch_up_pending = True
            self.set_timer(YIELD_SECONDS, self._continue_catch_up)
        self._show_state()

    def _continue_catch_up(self) -> None:
        self._catch_up_pending = False
        self._catch_up()

    def _show_state(self) -> None:
        self.scrubber.show(self.state)

    def _close_stage(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()
