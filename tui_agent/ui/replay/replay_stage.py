"""The stage of a recording: the same app without a terminal, on the recording's own clock.

The screen at a moment depends on the recording alone. Moving forward plays everything up to that moment without
waiting; moving back needs a new stage.
"""

import asyncio
import contextvars
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rich.console import RenderableType
from rich.segment import Segment
from textual._compositor import Compositor
from textual.app import App
from textual.events import Resize
from textual.strip import Strip

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import JsonObject
from tui_agent.recording import Recording, RecordingEntry
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.commands import use_separate_keys
from tui_agent.ui.base.key_settings import check_keys
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.bridge.bridge_messages import AgentEvents, HistoryEvents

from .input_events import decode_input
from .player_screen import PlayerScreen, Size
from .recorded_exchange import STATUS, ReplayExchange
from .replay_loop import ReplayLoop

T = TypeVar("T")

LAST_FRAME = 2.0
"""Seconds before a moment in which everything is drawn: longer than the interval of any clock on the screen."""


class StageApp(TuiAgentApp):
    """The recorded app: it draws, and has no effect outside."""

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """Do nothing: when the recorded user quit, the last screen stays."""

    def leave_stage(self) -> None:
        """End the app."""
        App[None].exit(self)

    @property
    def shows_chat(self) -> bool:
        """True if no other screen covers the chat."""
        return self.screen is self.chat

    def take_size(self, width: int, height: int) -> None:
        """Set the size of the window."""
        driver: Any = self._driver
        driver._size = (width, height)

    def strips(self) -> list[Strip]:
        """Return the lines of the screen without click actions."""
        # Textual has no public way to read a screen but as a picture.
        app: Any = self
        drawn: Any = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        return [_plain(row) for row in drawn.strips]

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        """Do nothing."""

    async def _watch_themes(self) -> None:
        """Read all themes once."""
        await self.themes.read_now()

    def watch_recording(self, path: str) -> None:
        """Do nothing: a recording does not contain other recordings that the user watched."""


class Stage:
    """One app that plays a recording forward. The caller closes it."""

    def __init__(
        self,
        recording: Recording,
        *,
        size: tuple[int, int] | None = None,
        theme: str | None = None,
        themes_dirs: Sequence[Path] = (),
        surroundings: TerminalEnvironment | None = None,
        log_file: Path | None = None,
    ) -> None:
        """Start the app at the beginning of the recording.

        Args:
            recording: the recording.
            size: columns and rows that replace the recorded ones; recorded mouse events are left out then.
            theme: replaces the recorded theme.
            themes_dirs: additional folders of theme files.
            surroundings: colours and motion that the viewer's terminal asks for; its clock is not used.
            log_file: log for failures of the screen; None: they are raised.
        """
        head = recording.head
        wishes = surroundings or TerminalEnvironment()
        self._start = head.mono
        self._moves = _moments_of(recording.entries)
        self._is_own_size = size is not None
        self._hurries = False
        compositor: Any = Compositor
        drawing = (compositor, "render_update", self._drawing(compositor.render_update))
        self._loop = ReplayLoop(self._start, [drawing])
        self._context = contextvars.Context()
        self._exchange = ReplayExchange(recording.data_of("answer"))
        self._bridge = AgentBridge(exchange=self._exchange)
        # Hints then name the recorded user's keys, and recorded keys do what they did.
        self._inside(lambda: use_separate_keys(check_keys(head.keys).keys))
        self._app = self._inside(
            lambda: StageApp(
                self._bridge,
                theme=theme or head.theme,
                themes_dirs=themes_dirs,
                model=head.model,
                label=head.label,
                ideas=head.ideas,
                place=WorkingDirectory(head.directory, head.branch),
                surroundings=TerminalEnvironment(
                    no_color=wishes.no_color,
                    reduced_motion=wishes.reduced_motion or head.reduced_motion,
                    clock=self._loop.time,
                ),
                log_file=log_file,
            )
        )
        self._tasks = [self._begin(self._app.run_async(headless=True, size=size or head.size))]
        self._loop.run_slice(self._start)
        self._tasks.append(self._begin(self._play()))

    @property
    def now(self) -> float:
        """Seconds of the recording played so far."""
        return self._loop.time() - self._start

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the window at this moment."""
        return self._app.size.width, self._app.size.height

    def play_to(self, at: float, seconds: float = float("inf")) -> bool:
        """Play up to a moment, that one included.

        Args:
            at: seconds since the start.
            seconds: limit of the machine's time.

        Returns:
            True if the moment was reached.

        Raises:
            Exception: the screen failed.
        """
        deadline = time.perf_counter() + seconds
        if self.now < at - LAST_FRAME and self._fast_forward(at - LAST_FRAME, seconds):
            self._inside(self._app.strips)
        seconds = deadline - time.perf_counter()
        reached = seconds > 0 and self._loop.run_slice(self._start + at, seconds)
        for task in self._tasks:
            if task.done() and not task.cancelled() and (fault := task.exception()) is not None:
                raise fault
        return reached

    def strips(self) -> list[Strip]:
        """Return the lines of the screen without click actions."""
        return self._inside(self._app.strips)

    def text(self) -> str:
        """Return the text of the screen."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    def picture(self, title: str) -> str:
        """Return the screen as SVG."""
        return self._inside(lambda: self._app.export_screenshot(title=title))

    def close(self) -> None:
        """End the app and close its loop."""
        self._inside(self._app.leave_stage)
        self._loop.run_slice(self._loop.time())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_slice(self._loop.time())
        self._loop.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _inside(self, do: Callable[[], T]) -> T:
        """Call `do` in the context in which this app is Textual's active app."""
        return self._context.run(do)

    def _fast_forward(self, at: float, seconds: float) -> bool:
        """Play without drawing frames that are not shown."""
        self._hurries = True
        try:
            return self._loop.run_slice(self._start + at, seconds)
        finally:
            self._hurries = False

    def _drawing(self, draw: Callable[..., object]) -> Callable[..., object]:
        """Wrap the drawing function. While fast-forwarding it draws dialogs only: once drawn, they count as read."""

        def render_update(compositor: object, **options: object) -> object:
            return None if self._hurries and self._app.shows_chat else draw(compositor, **options)

        return render_update

    def _begin(self, work: Coroutine[object, object, object]) -> asyncio.Task[object]:
        return asyncio.Task(work, loop=self._loop, context=self._context)

    async def _play(self) -> None:
        """Hand over everything at its moment."""
        for move in self._moves:
            wait = self._start + move.at - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            for note in move.notes:
                self._exchange.receive(note)
            self._bridge.show_status(self._exchange.status)
            if move.events:
                kind = HistoryEvents if move.past else AgentEvents
                await self._bridge.hand_over(kind(move.events))
            if move.input is not None and not (self._is_own_size and _is_of_window(move.input)):
                self._take(move.input)

    def _take(self, data: JsonObject) -> None:
        """Post an input event of the terminal."""
        event = decode_input(data)
        if event is None:
            return
        if isinstance(event, Resize):
            self._app.take_size(event.size.width, event.size.height)
        self._app.post_message(event)


def player_of(
    recording: Recording,
    *,
    surroundings: TerminalEnvironment,
    theme: str | None = None,
    themes_dirs: Sequence[Path] = (),
    log_file: Path | None = None,
) -> PlayerScreen:
    """Return the screen that plays a recording.

    Args:
        recording: the recording.
        surroundings: colours and motion that the terminal asks for.
        theme: replaces the recorded theme.
        themes_dirs: additional folders of theme files.
        log_file: log for failures of the recorded screen; None: they are raised.
    """

    def open_stage(size: Size | None) -> Stage:
        return Stage(
            recording, size=size, theme=theme, themes_dirs=themes_dirs, surroundings=surroundings, log_file=log_file
        )

    return PlayerScreen(recording, open_stage)


@dataclass(slots=True)
class _Moment:
    """Everything that happens at one moment."""

    at: float
    events: list[Envelope] = field(default_factory=list[Envelope])
    past: bool = False
    """True if the events belong to the past of a resumed session."""
    input: JsonObject | None = None
    notes: list[JsonObject] = field(default_factory=list[JsonObject])
    """The agent's status, and answers that hold from this moment on."""


def _moments_of(entries: Iterable[RecordingEntry]) -> list[_Moment]:
    """Group events that were handed over together, and answers with the event or input that caused the query."""
    moves = [_Moment(0.0)]
    asked = moves[0]
    for entry in entries:
        last = moves[-1]
        if entry.kind == "answer" and entry.data.get("door") == STATUS:
            moves.append(_Moment(entry.at, notes=[entry.data]))
            continue
        if isinstance(entry.value, Envelope):
            past = entry.kind == "past"
            if last.at != entry.at or last.past != past or last.input is not None or last.notes:
                moves.append(last := _Moment(entry.at, past=past))
            last.events.append(entry.value)
        elif entry.kind == "input":
            moves.append(_Moment(entry.at, input=entry.value))
        elif entry.kind == "answer":
            asked.notes.append(entry.value)
            continue
        asked = moves[-1]
    return moves


def _is_of_window(data: JsonObject) -> bool:
    """True if the input makes sense in the recorded window only."""
    return data.get("kind") in ("mouse", "resize")


def _plain(row: Iterable[Strip]) -> Strip:
    """Join a row to one strip without click actions."""
    return Strip(
        Segment(text, style.clear_meta_and_links() if style is not None else None)
        for strip in row
        for text, style, _ in strip
    )
