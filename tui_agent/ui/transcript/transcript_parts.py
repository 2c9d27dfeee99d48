"""Other parts of the conversation: the user's messages and commands, pictures, notes, dividers and the plan."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.events import TodoItem, ToolStatus
from tui_agent.protocol.messages import ImageBlock
from tui_agent.protocol.report_text import STATUS_WORDS
from tui_agent.protocol.visible_text import whole_count, without_sequences
from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import ends_of, one_line, sanitise, with_controls
from tui_agent.ui.text.styled_lines import clipped, prefixed_lines, wrapped
from tui_agent.ui.text.terminal_output import PICTURE, SGR, OutputReader, plain_output

from .transcript_layout import CARET, Part, Piece, shifted

HEAD = " "
"""Margin of headings and of notes about the run as a whole."""
BODY = "   "
"""Margin of messages and calls."""
USER_MARK: Run = (" ❯ ", "you")
"""Sign of the user's messages."""
STEER_MARK: Run = (" ↳ ", "steer")
"""Sign of messages that were sent while the model worked."""
MODEL_MARK: Run = (" ● ", "assistant")
"""Sign of the model's texts."""
MAX_OUTPUT_ROWS = 24
"""Most rows shown of a command's output; the call's detail page shows all."""
MAX_STORED_OUTPUT = 256 * 1024
"""Most characters kept of a running command's output, the newest ones."""
MAX_CHARACTERS = 10_000
"""Most characters shown of a note; of a longer one both ends."""
MAX_COMMAND_CHARACTERS = 2_000
"""Most characters shown of a command; of a longer one both ends."""
MAX_TODO_CHARACTERS = 500
"""Most characters shown of one item of the plan."""
MAX_TODO_ITEMS = 100
"""Most items shown; others are counted."""

_SIGNS = {"notice": "·", "success": "✔", "warning": "!", "error": "✖", "retry": "↻", "denied": "⊘", "steer": "↳"}
_SIGNS["retried"] = _SIGNS["retry"]
_STYLES = {"retry": "warning", "denied": "warning", "retried": "muted"}
_TODO_SIGNS = {"pending": "○", "in_progress": "◐", "done": "●"}


class WaitingPart(Part):
    """The caret of an answer of which nothing has arrived yet."""

    def __init__(self) -> None:
        super().__init__(gap=True)

    @property
    def copyable(self) -> bool:
        """False: it has no text."""
        return False

    def layout(self, width: int) -> list[Line]:
        return [Line(clipped((MODEL_MARK, CARET), width))]


class TextPart(Part):
    """Plain text of the user: no Markdown, line ends as typed."""

    name = "message"

    def __init__(self, text: str, style: str = "", *, gap: bool = False, shows_controls: bool = False) -> None:
        super().__init__(gap=gap)
        self._text = text
        self._style = style
        self._shows_controls = shows_controls

    @property
    def text(self) -> str:
        return self._text

    @property
    def copyable(self) -> bool:
        """True for what the user wrote, not for a remark about it."""
        return bool(self._text) and not self._style

    def replace(self, text: str) -> None:
        """Replace the text."""
        self._text = text
        self.changed()

    def layout(self, width: int) -> list[Line]:
        # What the user sent is shown whole; `sanitise` alone drops control characters.
        text = with_controls(self._text) if self._shows_controls else self._text
        rows = wrapped([(sanitise(text).rstrip("\n"), self._style)], width - len(BODY))
        return [row.prefixed((BODY, "")) for row in rows]


class PicturePart(TextPart):
    """An image of the user or of a result: a line of facts, and a small picture if the terminal has colours."""

    name = "picture"

    def __init__(self, text: str, image: ImageBlock) -> None:
        super().__init__(text, "muted")
        self.image = image

    @property
    def copyable(self) -> bool:
        """True: the keys that copy a message also open a picture."""
        return True

    @property
    def active(self) -> bool:
        """True: it opens in full screen."""
        return True

    def page_rows(self, width: int) -> Sequence[Line]:
        return self.layout(width)

    def layout(self, width: int) -> list[Line]:
        rows = picture_rows(self._thumbnail, width - len(BODY))
        return [*super().layout(width), *(row.prefixed((BODY, "")) for row in rows)]

    def estimate(self, width: int) -> int:
        return super().estimate(width) + (LARGEST // 8 if self._thumbnail else 0)

    @property
    def _thumbnail(self) -> str:
        return self.image.thumbnail if self.image is not None else ""


class NotePart(Part):
    """A note about the run: the sign of its kind, and text."""

    def __init__(self, kind: str, text: str, *, gap: bool = False) -> None:
        super().__init__(gap=gap)
        self.kind = kind
        """A key of the signs above; also its style."""
        self._text = text

    @property
    def text(self) -> str:
        return self._text

    def replace(self, text: str) -> None:
        """Replace the text."""
        self._text = text
        self.changed()

    def layout(self, width: int) -> list[Line]:
        style = _STYLES.get(self.kind, self.kind)
        rows = wrapped([(sanitise(ends_of(self._text, MAX_CHARACTERS)).rstrip("\n"), style)], width - len(HEAD) - 2)
        sign = f"{HEAD}{_SIGNS[self.kind]} "
        margins = (sign, *[" " * len(sign)] * len(rows))
        return [row.prefixed((margin, style)) for row, margin in zip(rows, margins, strict=False)]


class DividerPart(Part):
    """A horizontal line with text: the end of a run, or the resumption of a session."""

    def __init__(self, text: str, style: str = "muted") -> None:
        super().__init__(gap=True)
        self._text = text
        self._style = style

    @property
    def text(self) -> str:
        return self._text

    @property
    def copyable(self) -> bool:
        """False: it only divides."""
        return False

    def layout(self, width: int) -> list[Line]:
        shown = one_line(self._text, width - 6)
        runs: tuple[Run, ...] = ((f"{HEAD}── ", "rule"), (f"{shown} ", self._style))
        used = sum(len(text) for text, _ in runs)
        return [Line(clipped((*runs, ("─" * max(0, width - used - 1), "rule")), width))]


class CommandPart(Part):
    """A shell command of the user and its live output."""

    name = "command"

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command
        self._call_id = ""
        self._output = ""
        self._lines_gone = 0
        self._end = ""

    @property
    def text(self) -> str:
        return f"{self._command}\n{without_sequences(self._output)}"

    @property
    def copied(self) -> str:
        return f"{self._command}\n{plain_output(self._output)}"

    def pieces(self, width: int) -> Sequence[Piece]:
        """Return command and output."""
        rows = len(self._command_rows(width - len(BODY)))
        last = self.height(width) - self.gap
        output = plain_output(self._output).strip("\n")
        made = (Piece("command", self._command, 0, rows), Piece("output", output, rows, last))
        return [shifted(piece, self.gap) for piece in made if piece.text]

    @property
    def call_ids(self) -> tuple[str, ...]:
        return (self._call_id,) if self._call_id else ()

    def begin(self, call_id: str) -> None:
        """Set the call of the command."""
        self._call_id = call_id

    def grow(self, output: str) -> None:
        """Add output."""
        self._output += output
        # At twice the limit, so that not every chunk copies all of it.
        if len(self._output) > 2 * MAX_STORED_OUTPUT:
            least = len(self._output) - MAX_STORED_OUTPUT
            # At a line end, so that the number of hidden lines stays exact.
            cut = self._output.find("\n", least) + 1 or least
            self._lines_gone += self._output.count("\n", 0, cut)
            self._output = self._output[cut:]
        self.changed()

    def end(self, status: ToolStatus, output: str) -> None:
        """Set the final output."""
        self._output, self._lines_gone = output, 0
        self._end = "" if status == "ok" else STATUS_WORDS[status]
        self.changed()

    def estimate(self, width: int) -> int:
        return min(super().estimate(width), MAX_OUTPUT_ROWS + 2)

    def layout(self, width: int) -> list[Line]:
        """Return the command, then the last rows of its output."""
        rows = self._command_rows(width - len(BODY))
        output = self._output.strip("\n\r")
        before, *last = output.rsplit("\n", MAX_OUTPUT_ROWS) if output else [""]
        if output and len(last) < MAX_OUTPUT_ROWS:
            before, last = "", [before, *last]
        reader = OutputReader("muted")
        # The colours that the hidden lines leave behind.
        reader.skip(before)
        # A line that redraws itself shows its end; of others the beginning fits the row.
        cut = [line[-width * 8 :] if "\r" in line else line[: width * 8] for line in last]
        lines = [runs for line in cut for runs in reader.lines(line)]
        hidden = self._lines_gone + (whole_count(before) if before else 0)
        if hidden > 0:
            above = f"… {count_text(hidden, 'more line')} above; {hint('conversation.open_part', 'opens all of it')}"
            rows.append(Line(clipped(((f"{BODY}{above}", "muted"),), width)))
        rows.extend(Line(clipped(((BODY, ""), *runs), width), indent=len(BODY)) for runs in lines[-MAX_OUTPUT_ROWS:])
        if self._end:
            rows.append(Line(clipped(((f"{BODY}{self._end}", "warning"),), width)))
        return rows

    def _command_rows(self, room: int) -> list[Line]:
        shown = sanitise(ends_of(self._command, MAX_COMMAND_CHARACTERS))
        return [row.prefixed((BODY, "")) for row in wrapped([(shown, "strong")], room)]


class TodoPart(Part):
    """The model's plan. Has no rows while the right column shows the items; the row of the call has its progress."""

    name = "plan"

    def __init__(self, items: Sequence[TodoItem], is_whole: Callable[[], bool] = lambda: True) -> None:
        """Create the plan; `is_whole` returns True while no other place shows its items."""
        super().__init__(gap=True)
        self._items = tuple(items)
        self._is_whole = is_whole

    @property
    def text(self) -> str:
        """Its items as lines, while they are shown."""
        return "\n".join(item.text for item in self._items) if self._is_whole() else ""

    def replace(self, items: Sequence[TodoItem]) -> None:
        """Show other items."""
        self._items = tuple(items)
        self.changed()

    def layout(self, width: int) -> list[Line]:
        if not self._is_whole():
            return []
        rows: list[Line] = []
        for item in self._items[:MAX_TODO_ITEMS]:
            style = {"done": "muted", "in_progress": "strong", "pending": ""}[item.status]
            lines = wrapped([(sanitise(ends_of(item.text, MAX_TODO_CHARACTERS)), style)], width - len(BODY) - 2)
            sign = f"{BODY}{_TODO_SIGNS[item.status]} "
            rows.extend(prefixed_lines(lines, ((sign, style or "muted"),), ((" " * len(sign), ""),)))
        if (left := len(self._items) - MAX_TODO_ITEMS) > 0:
            rows.append(Line(((f"{BODY}… {count_text(left, 'more item')}", "muted"),)))
        return rows


LARGEST = 64
"""Most pixels per side; larger ones are not from here."""

_THUMBNAIL = re.compile(r"(\d{1,3})x(\d{1,3}):([A-Za-z0-9+/=]+)\Z")
_STEP = 16
"""Colours are rounded to multiples of it, so that few styles are needed."""


def picture_rows(thumbnail: str, width: int) -> list[Line]:
    """Return the rows of a thumbnail as `ImageBlock.thumbnail` has it; none if it is damaged or wider than `width`."""
    match = _THUMBNAIL.match(thumbnail)
    if match is None:
        return []
    columns, rows = int(match[1]), int(match[2])
    try:
        pixels = base64.b64decode(match[3], validate=True)
    except (binascii.Error, ValueError):
        return []
    # A journal is text from outside: its numbers must agree before a pixel is read.
    if len(pixels) != columns * rows * 3 or max(columns, rows) > LARGEST or not 0 < columns <= width:
        return []
    return [Line(_row(pixels, columns, rows, top)) for top in range(0, rows, 2)]


def _row(pixels: bytes, columns: int, rows: int, top: int) -> tuple[Run, ...]:
    """Return two rows of pixels as one of cells; equal neighbours are one run."""
    runs: list[Run] = []
    for column in range(columns):
        upper = _colour(pixels, top * columns + column)
        lower = f" {SGR}b{_colour(pixels, (top + 1) * columns + column)}" if top + 1 < rows else ""
        style = f"{SGR}{PICTURE} {SGR}f{upper}{lower}"
        if runs and runs[-1][1] == style:
            runs[-1] = (f"{runs[-1][0]}▀", style)
        else:
            runs.append(("▀", style))
    return tuple(runs)


def _colour(pixels: bytes, place: int) -> str:
    parts = (min(255, value // _STEP * _STEP + _STEP // 2) for value in pixels[place * 3 : place * 3 + 3])
    return "#" + "".join(f"{part:02x}" for part in parts)
