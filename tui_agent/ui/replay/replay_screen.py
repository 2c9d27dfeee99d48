"""The screen that replays a session: the chat, fed with past events at their times, above a row that seeks."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Event, Key, MouseEvent, MouseScrollDown, MouseScrollUp

from tui_agent.ui.base.app_type import InputTaker
from tui_agent.ui.base.commands import bindings_for, command, commands_for
from tui_agent.ui.base.terminal_environment import Clock, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge, AgentEvents, AgentStatus
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.chat_screen import ChatScreen
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.workbench.sessions.replay_source import ReplaySource

from .replay_timeline import PlayState, ReplayTimeline, Scrubber

FRAME = 1 / 20
"""Seconds between two updates."""
SLICE = 0.03
"""Seconds spent at a time on folding events for another position; keys are handled in between."""
YIELD_SECONDS = 0.005
"""Seconds left for everything else between two such slices."""
MAX_SHOWN = 200
"""Events shown one after another; more of them are folded off-screen."""
WHEEL_ROWS = 3
"""Rows that one turn of the mouse wheel scrolls."""
JUMP = 5.0
"""Seconds that one key press moves back or forward."""
SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_APP_COMMANDS = ("app.suspend_process", "app.repaint", "app.toggle_mouse")
"""Commands of the app whose keys work over a replay."""


class ReplayBridge(AgentBridge):
    """A bridge without an agent: nothing runs, and nothing is asked or written."""

    is_running = False
    """True if a run was in progress at the position."""

    def _current_status(self) -> AgentStatus:
        return AgentStatus(running=self.is_running)

    def follow(self, state: ScreenState) -> None:
        """Publish the status at the position of a state."""
        progress = state.status.progress
        self.is_running = progress.began_at is not None and progress.ended_at is None
        self.show_status(self._current_status())


@dataclass(slots=True)
class _Fold:
    """A state that is folded off-screen."""

    state: ScreenState
    count: int = 0
    """Number of events it has."""


class ReplayScreen(ChatScreen, InputTaker, inherit_bindings=False):
    """Replays one session. Keys and clicks control the replay; they answer no question and send no message."""

    # No widget has the focus: all keys belong to the replay.
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("player")]

    def __init__(self, timeline: ReplayTimeline, options: ChatOptions, clock: Clock = time.monotonic) -> None:
        """Create the screen; the clock of the chat is replaced by that of the replay."""
        self.timeline = timeline
        """The events with their positions."""
        self._clock = clock
        self._at = 0.0
        self._speed = 1.0
        self._playing = True
        self._last_tick = clock()
        self._shown = 0
        self._fold: _Fold | None = None
        self._fold_pending = False
        surroundings = replace(options.surroundings, clock=lambda: self.timeline.time_at(self._at))
        self.replay_bridge = ReplayBridge()
        super().__init__(self.replay_bridge, replace(options, surroundings=surroundings))
        self.scrubber = Scrubber(timeline.length)
        """Shows the position, and seeks."""
        self.entry.rows_below = 1

    @property
    def play_state(self) -> PlayState:
        """The position and speed."""
        return PlayState(self._at, self.timeline.length, self._speed, self._playing, self._fold is not None)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.scrubber

    def on_mount(self) -> None:
        for notice in self.timeline.notices:
            self.notify(notice, severity="warning", markup=False)
        self._last_tick = self._clock()
        self.set_interval(FRAME, self._tick)

    # --- input --------------------------------------------------------------------------------------------------------

    async def take(self, event: Event) -> bool:
        """Handle input of the user, whatever dialog of the session is shown; return False for keys of the app."""
        if isinstance(event, Key):
            for known in commands_for("player"):
                if event.key in known.keys:
                    await self.run_action(known.action_name)
            return not any(event.key in command(name).keys for name in _APP_COMMANDS)
        if isinstance(event, MouseScrollUp | MouseScrollDown):
            rows = -WHEEL_ROWS if isinstance(event, MouseScrollUp) else WHEEL_ROWS
            self.body.conversation.scroll_relative(y=rows, animate=False)
        elif isinstance(event, MouseEvent):
            self.scrubber.follow_mouse(event)
        return True

    def action_play_or_pause(self) -> None:
        """Pause or resume; at the end, start again."""
        if not self._playing and self._at >= self.timeline.length:
            self.seek(0.0)
        self._playing = not self._playing
        self._show_position()

    def action_jump(self, by: int) -> None:
        """Seek a little back or forward."""
        self.seek(self._at + by * JUMP)

    def action_step_back(self) -> None:
        """Pause at the previous event."""
        place = bisect_left(self.timeline.moments, self._at) - 1
        self._step_to(self.timeline.moments[place] if place >= 0 else 0.0)

    def action_step_forward(self) -> None:
        """Pause at the next event."""
        place = bisect_right(self.timeline.moments, self._at)
        self._step_to(self.timeline.moments[place] if place < len(self.timeline) else self.timeline.length)

    def action_speed(self, by: int) -> None:
        """Double the speed, or halve it."""
        place = SPEEDS.index(self._speed) + by
        self._speed = SPEEDS[min(max(0, place), len(SPEEDS) - 1)]
        self._show_position()

    def action_first(self) -> None:
        self.seek(0.0)

    def action_last(self) -> None:
        self.seek(self.timeline.length)

    def action_hide(self) -> None:
        """Hide or show the row."""
        self.scrubber.display = not self.scrubber.display
        self.entry.rows_below = int(self.scrubber.display)

    def action_close(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the dialog of the session, if one is shown, and the replay."""
        # Without open questions the controller closes its dialog.
        self.approvals.show(self._new_state().approvals)
        self.approvals.changed()
        self.dismiss()

    @on(Scrubber.Sought)
    def _sought(self, event: Scrubber.Sought) -> None:
        self.seek(event.at)

    def seek(self, at: float) -> None:
        """Move to a position in seconds from the start, at most to an end; playing or paused as before."""
        self._at = min(max(0.0, at), self.timeline.length)
        self._catch_up()

    def _step_to(self, at: float) -> None:
        self._playing = False
        self.seek(at)

    # --- playing ------------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Advance by the time that has passed, unless the replay is still seeking."""
        now = self._clock()
        passed, self._last_tick = now - self._last_tick, now
        if self._playing and self._fold is None:
            self._at = min(self._at + passed * self._speed, self.timeline.length)
            self._playing = self._at < self.timeline.length
            self._catch_up()

    def _catch_up(self) -> None:
        """Show the events up to the position, or begin to fold them off-screen."""
        wanted = self.timeline.count_until(self._at)
        # A state only grows: for an earlier position, all events are folded again.
        if self._fold is None and 0 <= wanted - self._shown <= MAX_SHOWN:
            if wanted > self._shown:
                self.receive_events(AgentEvents([self.timeline.event(place) for place in range(self._shown, wanted)]))
                self._shown = wanted
                self.replay_bridge.follow(self.state)
        else:
            if self._fold is None or self._fold.count > wanted:
                self._fold = _Fold(self._new_state())
            self._fold_slice()
        self._show_position()

    def _fold_slice(self) -> None:
        """Fold events for one slice of time; show the state once it has all of them."""
        fold, wanted = self._fold, self.timeline.count_until(self._at)
        if fold is None or self._fold_pending:
            return
        # The replay's own clock stands still while it seeks.
        deadline = time.perf_counter() + SLICE
        for place in self._places(fold.count, wanted, deadline):
            fold.state.apply(self.timeline.event(place))
            fold.count = place + 1
        if fold.count < wanted:
            self._fold_pending = True
            self.set_timer(YIELD_SECONDS, self._continue_fold)
            return
        self._fold, self._shown = None, fold.count
        self.show_state(fold.state)
        # It may hold a prompt that was refused at the position before.
        self.entry.composer.load_text("")
        self.approvals.changed()
        self.approvals.look()
        self.replay_bridge.follow(fold.state)

    def _continue_fold(self) -> None:
        self._fold_pending = False
        self._catch_up()

    @staticmethod
    def _places(start: int, end: int, deadline: float) -> Iterator[int]:
        for place in range(start, end):
            yield place
            if time.perf_counter() >= deadline:
                return

    def _show_position(self) -> None:
        self.scrubber.show(self.play_state)


def replay_of(source: ReplaySource, options: ChatOptions) -> ReplayScreen:
    """Return the screen that replays a journal, with the title of its beginning."""
    place = WorkingDirectory(source.directory, source.branch)
    settings = replace(
        options, place=place, model=source.model, label=source.label, sessions=None, glimpse=None, prompt=None
    )
    return ReplayScreen(ReplayTimeline(source.envelopes, source.stamps, source.problems), settings)
