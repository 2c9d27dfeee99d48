"""Pace of the frames: while only the agent changes the screen, they wait for one another.

A frame costs about the same, whether one row changed or ten. What the user types is shown at once, and before the rest.
"""

from collections.abc import Callable
from time import monotonic

FRAME_SECONDS = 0.05
"""Least seconds between two frames."""
IDLE_SHARE = 9
"""Pause after a frame, as a multiple of its duration."""
LONGEST_PAUSE = 0.12
"""Most seconds between two frames, however long they take."""
INPUT_SECONDS = 0.15
"""Seconds after an input in which no frame waits for the one before."""
HEAD_SECONDS = 0.005
"""Seconds after an input in which frames wait for its effect."""
TYPED_SECONDS = 0.004
"""Least seconds between two frames that show typed text before the rest."""
MESSAGE_SECONDS = 0.012
"""Seconds after the user sent a message in which no frame delays it."""


class FramePace:
    """Decides when the next frame is painted."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._next_frame = self._next_typed = self._held_until = self._input_until = 0.0

    def note_input(self) -> None:
        """Let the frames of the next moment follow one another without a pause."""
        now = self._clock()
        self._held_until, self._input_until = now + HEAD_SECONDS, now + INPUT_SECONDS

    def note_message(self) -> None:
        """Let a message that the user sent leave before the screen shows it."""
        self._held_until = self._next_typed = self._clock() + MESSAGE_SECONDS

    def paint(self, frame: Callable[[], object], *, always: bool = False) -> None:
        """Paint a frame unless it has to wait; then it is offered again. With `always`, none waits."""
        began = self._clock()
        waits = began < self._held_until or self._input_until <= began < self._next_frame
        if waits and not always:
            return
        frame()
        ended = self._clock()
        self._next_frame = ended + min(max(FRAME_SECONDS, IDLE_SHARE * (ended - began)), LONGEST_PAUSE)

    def paint_typed(self, frame: Callable[[], object]) -> None:
        """Paint a frame of typed text alone, unless there was one just now; then `paint` shows it."""
        if self._next_typed <= self._clock() < self._input_until:
            frame()
            self._next_typed = self._clock() + TYPED_SECONDS
