"""A recording on its stage: the same app without a terminal, on the recording's own clock.

What it shows at a moment follows from the recording alone. Going forward plays everything up to there, at once; going
back means a new stage.
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
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.input_events import decode_input
from tui_agent.ui.bridge.queries import RecordedAnswers
from tui_agent.ui.bridge.replay_bridge import ReplayBridge

from .replay_loop import ReplayLoop

T = TypeVar("T")

LAST_FRAME = 2.0
"""Seconds before a moment from which everything is drawn: longer than between two looks of any clock on the screen."""


class StageApp(TuiAgentApp):
    """The app as it was recorded: it shows, and does nothing to the world."""

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """The recorded person left; what they saw last stays."""

    def leave_stage(self) -> None:
        """Ends the app."""
        App[None].exit(self)

    @property
    def shows_chat(self) -> bool:
        """Whether nothing lies over the chat."""
        return self.screen is self.chat

    def take_size(self, width: int, height: int) -> None:
        """The window is that large from now on."""
        driver: Any = self._driver
        driver._size = (width, height)

    def strips(self) -> list[Strip]:
        """What it shows, line by line, without what a click on it would do."""
        # Textual gives a screen away only as a picture.
        app: Any = self
        drawn: Any = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        return [_plain(row) for row in drawn.strips]

    def open_url(self, url: str, *, new_tab: bool = True) -> None:
        """Nothing is opened."""

    async def _watch_themes(self) -> None:
        """All themes are read once."""
        self._apply_themes(await self._shelf.read_all())

    def watch_recording(self, path: str) -> None:
        """What was watched then is no part of the recording."""


class Stage:
    """One app that plays a recording forward. To be closed."""

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
        """Raises the curtain at the recording's beginning.

        Args:
            recording: what is played.
            size: columns and rows, whatever the recorded window was; what was pointed at with the mouse is left out
                then. None: as recorded.
            theme: instead of the recorded one.
            themes_dirs: more folders of theme files.
            surroundings: what the terminal that shows it asks for; its clock is not used.
            log_file: where log records go; without it a fault of the screen is raised.
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
        self._answers = RecordedAnswers(recording.data_of("answer"))
        self._bridge = ReplayBridge(self._answers)
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
        """Seconds of the recording that were played."""
        return self._loop.time() - self._start

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of its window now."""
        return self._app.size.width, self._app.size.height

    def play_to(self, at: float, seconds: float = float("inf")) -> bool:
        """Plays up to a moment, that one included.

        Args:
            at: seconds since the beginning.
            seconds: of the machine's time after which it stops, wherever it is.

        Returns:
            Whether it got there.

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
        """The screen, line by line, without what a click on it would do."""
        return self._inside(self._app.strips)

    def text(self) -> str:
        """The screen's text."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    def picture(self, title: str) -> str:
        """The screen as SVG."""
        return self._inside(lambda: self._app.export_screenshot(title=title))

    def close(self) -> None:
        """Ends the app and its loop."""
        self._inside(self._app.leave_stage)
        self._loop.run_slice(self._loop.time())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_slice(self._loop.time())
        self._loop.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _inside(self, do: Callable[[], T]) -> T:
        """Does something where the app is the one that Textual asks for."""
        return self._context.run(do)

    def _fast_forward(self, at: float, seconds: float) -> bool:
        """Plays without drawing what nobody sees."""
        self._hurries = True
        try:
            return self._loop.run_slice(self._start + at, seconds)
        finally:
            self._hurries = False

    def _drawing(self, draw: Callable[..., object]) -> Callable[..., object]:
        """Draws, unless it hurries. Over the chat, what was drawn counts as read, and is always drawn."""

        def render_update(compositor: object, **options: object) -> object:
            return None if self._hurries and self._app.shows_chat else draw(compositor, **options)

        return render_update

    def _begin(self, work: Coroutine[object, object, object]) -> asyncio.Task[object]:
        return asyncio.Task(work, loop=self._loop, context=self._context)

    async def _play(self) -> None:
        """Hands everything over at its moment."""
        for move in self._moves:
            wait = self._start + move.at - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            for note in move.told:
                self._answers.heard(note)
            if move.events:
                await self._bridge.show(move.events, past=move.past)
            if move.input is not None and not (self._is_own_size and _is_of_window(move.input)):
                self._take(move.input)

    def _take(self, data: JsonObject) -> None:
        """Something came from the terminal."""
        event = decode_input(data)
        if event is None:
            return
        if isinstance(event, Resize):
            self._app.take_size(event.size.width, event.size.height)
        self._app.post_message(event)


@dataclass(slots=True)
class _Moment:
    """What happens at one moment."""

    at: float
    events: list[Envelope] = field(default_factory=list[Envelope])
    past: bool = False
    """Whether they are of an earlier life of the session."""
    input: JsonObject | None = None
    told: list[JsonObject] = field(default_factory=list[JsonObject])
    """What the screen was told because of it when it asked."""


def _moments_of(entries: Iterable[RecordingEntry]) -> list[_Moment]:
    """Events that were handed over together, together; answers with what made the screen ask."""
    moves = [_Moment(0.0)]
    for entry in entries:
        last = moves[-1]
        if isinstance(entry.value, Envelope):
            past = entry.kind == "past"
            if last.at != entry.at or last.past != past or last.input is not None or last.told:
                moves.append(last := _Moment(entry.at, past=past))
            last.events.append(entry.value)
        elif entry.kind == "input":
            moves.append(_Moment(entry.at, input=entry.value))
        elif entry.kind == "answer":
            last.told.append(entry.value)
    return moves


def _is_of_window(data: JsonObject) -> bool:
    """Whether it means something only in the recorded window."""
    return data.get("kind") in ("mouse", "resize")


def _plain(row: Iterable[Strip]) -> Strip:
    """A row in one piece, without what a click on it would do."""
    return Strip(
        Segment(text, style.clear_meta_and_links() if style is not None else None)
        for strip in row
        for text, style, _ in strip
    )
