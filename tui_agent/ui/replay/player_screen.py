"""Watching a recording: its picture, and a row that tells where it is and takes it elsewhere."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import ClassVar, Protocol

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.strip import Strip

from tui_agent.recording import Recording
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.commands import bindings_for
from tui_agent.ui.base.terminal_environment import Clock

from .scrubber import Scrubber
from .scrubber_row import PlayState
from .stage_view import StageView

FRAME = 1 / 20
"""Seconds between two looks."""
SLICE = 0.03
"""Seconds that are spent at once on getting to a moment; keys are answered in between."""
YIELD_SECONDS = 0.005
"""Seconds for everything else, between two times of that."""
JUMP = 5.0
"""Seconds that one key goes back or on."""
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

Size = tuple[int, int]


class RecordingPlayer(Protocol):
    """A stage on which a recording is played forward."""

    @property
    def now(self) -> float:
        """Seconds that were played."""
        ...

    def play_to(self, at: float, seconds: float = ...) -> bool:
        """Plays up to a moment, for some seconds at most; False where those were not enough."""
        ...

    def strips(self) -> list[Strip]:
        """What is to be seen."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


OpenStage = Callable[[Size | None], RecordingPlayer]
"""Makes a stage at the beginning, of that many columns and rows; None: as recorded."""


class PlayerScreen(Screen[None]):
    """Plays one recording. The keys are the player's; those that were recorded go to the recorded screen."""

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
        """Where it is."""
        looking = self._stage is None or self._stage.now < self._at - 1e-6
        return PlayState(self._at, self._recording.length, self._speed, self._playing, looking)

    def compose(self) -> ComposeResult:
        """The picture, and the row over its lower end where there is no other place for it."""
        yield self.picture
        yield self.scrubber

    def on_mount(self) -> None:
        """Begins to play."""
        for notice in self._recording.notices:
            self.notify(notice, severity="warning", markup=False)
        self.set_interval(FRAME, self._tick)

    def on_resize(self, event: Resize) -> None:
        """The picture may fit now, or no longer."""
        self._window = None

    def on_unmount(self) -> None:
        """Ends the stage."""
        self._close_stage()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_play_or_pause(self) -> None:
        """Pauses or goes on; at the end, from the beginning."""
        if not self._playing and self._at >= self._recording.length:
            self._at = 0.0
        self._playing = not self._playing
        self._show_state()

    def action_back(self) -> None:
        """A little back."""
        self.seek(self._at - JUMP)

    def action_forward(self) -> None:
        """A little on."""
        self.seek(self._at + JUMP)

    def action_step_back(self) -> None:
        """To what happened before, and stays there."""
        place = bisect_left(self._moments, self._at) - 1
        self._step_to(self._moments[place] if place >= 0 else 0.0)

    def action_step_forward(self) -> None:
        """To what happens next, and stays there."""
        place = bisect_right(self._moments, self._at)
        self._step_to(self._moments[place] if place < len(self._moments) else self._recording.length)

    def action_slower(self) -> None:
        """Half the speed."""
        self._change_speed(-1)

    def action_faster(self) -> None:
        """Twice the speed."""
        self._change_speed(+1)

    def action_first(self) -> None:
        """To the beginning."""
        self.seek(0.0)

    def action_last(self) -> None:
        """To the end."""
        self.seek(self._recording.length)

    def action_hide(self) -> None:
        """Hides the row, or shows it."""
        self.scrubber.display = not self.scrubber.display

    def action_close(self) -> None:
        """Leaves."""
        self.dismiss()

    @on(Scrubber.Sought)
    def _sought(self, event: Scrubber.Sought) -> None:
        self.seek(event.at)

    def seek(self, at: float) -> None:
        """To another moment; goes on from there as before."""
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
        """Goes on by the time that passed; time in which it was not where it should be does not count."""
        now = self._clock()
        passed, self._last_tick = now - self._last_tick, now
        if not self._is_in_order():
            return
        if self._playing and not self.state.looking:
            self._at = min(self._at + passed * self._speed, self._recording.length)
            self._playing = self._at < self._recording.length
        self._catch_up()

    def _is_in_order(self) -> bool:
        """Whether the stage is of the right size; it is made anew once the window was the same for two looks."""
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
        """Gets as far as it can in a moment; a moment further back is reached from the beginning."""
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
