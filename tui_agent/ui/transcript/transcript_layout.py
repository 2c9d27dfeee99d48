"""The conversation as stacked parts, also after a rewind. Pure: parts are laid out only when they are visible.

A part that was never visible has an estimated height and no rows; others have their exact height and, beyond a budget,
no rows either. So ten thousand messages cost as much as ten.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.text.height_index import HeightIndex
from tui_agent.ui.text.line import NARROWEST, Line, Run
from tui_agent.ui.text.sanitiser import ends_of, sanitise, without_controls
from tui_agent.ui.text.styled_lines import wrapped

CARET: Run = ("▍", "caret")
"""Sign of text that is about to arrive."""
MAX_PAGE_CHARACTERS = 400_000
"""Most characters of a part shown on a page; of a longer one both ends."""
MAX_CACHED_ROWS = 4_000
"""Most rows of laid-out parts kept in memory."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a part that can be copied by itself, such as a code block or the output of a call."""

    name: str
    text: str
    first: int
    """Its first row within the part."""
    last: int
    """The row after its last one."""
    rows: Callable[[int], Sequence[Line]] | None = field(default=None, compare=False)
    """Builds its rows for a page; None: they are its text."""


def shifted(piece: Piece, rows: int) -> Piece:
    """Return a piece some rows further down."""
    return replace(piece, first=piece.first + rows, last=piece.last + rows)


class Part(ABC):
    """A part of the conversation with its own rows."""

    name = "note"
    """Name of its kind for the user."""
    pinned = False
    """True if its rows stay in memory, because it is still streaming."""
    opened = True
    """True if all of it is shown."""
    sought: str = ""
    """Text of a search that its rows must show, also where they leave something out."""
    mark: Run | None = None
    """Sign of the speaker in the margin of its first row."""
    image: ImageBlock | None = None
    """Image that it shows."""

    def __init__(self, *, gap: bool = False) -> None:
        self.gap = gap
        """True if there is an empty row above it."""
        self.dirty_row = 0
        """First row that has changed since the last drawing."""
        self._rows: list[Line] = []
        self._width = 0
        self._measured = (0, 0)

    @property
    def text(self) -> str:
        """Its complete raw text, also of closed parts, for the search."""
        return ""

    @property
    def call_ids(self) -> tuple[str, ...]:
        """Ids of its calls."""
        return ()

    @property
    def title(self) -> str:
        """Its name for the user."""
        return self.name

    @property
    def copyable(self) -> bool:
        """True if the user may want to copy it."""
        return bool(self.text)

    @property
    def copied(self) -> str:
        """Text for the clipboard: as it was written, but without characters that control a terminal."""
        return without_controls(self.text)

    def pieces(self, width: int) -> Sequence[Piece]:
        """Return the pieces of it that can be copied by themselves, with their rows for a width."""
        return ()

    def page_rows(self, width: int) -> Sequence[Line]:
        """Return all of it as rows for a page."""
        return wrapped([(sanitise(ends_of(self.text, MAX_PAGE_CHARACTERS)).rstrip("\n"), "")], width)

    @property
    def cached_rows(self) -> int:
        """Number of rows it keeps in memory."""
        return len(self._rows)

    @abstractmethod
    def layout(self, width: int) -> list[Line]:
        """Return its rows for a width, without the gap. A part without rows has no gap either."""

    def estimate(self, width: int) -> int:
        """Return about how many rows `layout` will return, without cost."""
        text = self.text
        return 1 + text.count("\n") + len(text) // max(width, NARROWEST)

    @property
    def active(self) -> bool:
        """True if selecting it has an effect: it opens, or shows calls."""
        return bool(self.call_ids)

    def toggle(self) -> bool:
        """Open or close it; return False if it cannot be opened."""
        return False

    def has_unread_at(self, width: int, last: int) -> bool:
        """Return True if a row up to `last` is shown unparsed because its slice was not read yet."""
        return False

    def read_on(self, width: int, first: int) -> int:
        """Read the next slice of such a text; return by how many rows the content at `first` moved."""
        return 0

    def height(self, width: int) -> int:
        """Return the number of its rows with the gap; an estimate until it is laid out for this width."""
        if self._measured[0] == width:
            return self._measured[1]
        return self.gap + self.estimate(width)

    def settle(self, width: int, first: int, last: int) -> int:
        """Lay out at least the rows from `first` to `last`; return by how many rows the content at `first` moved."""
        before = self.height(width)
        if self._width != width:
            rows = self.layout(width)
            # A hidden plan must not leave its empty row behind.
            self._rows = [*([Line()] if self.gap and rows else []), *rows]
            self._width, self._measured = width, (width, len(self._rows))
        # Rows above `first` push the content there; a part that begins at it stays where it is.
        return len(self._rows) - before if first > 0 else 0

    def line(self, width: int, row: int) -> Line:
        """Return a row that is already laid out; an empty one if there is none."""
        # A selection asks for rows of parts that were never in sight.
        if self._width != width:
            self.settle(width, 0, row)
        return self._rows[row] if 0 <= row < len(self._rows) else Line()

    def changed(self) -> None:
        """Drop everything that depends on its content."""
        self._rows, self._width, self._measured, self.dirty_row = [], 0, (0, 0), 0

    def forget(self) -> None:
        """Drop its rows and keep their number."""
        self._rows, self._width = [], 0


class Transcript:
    """Parts in order, and their rows."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        """Parts from the oldest to the newest. Changed by the methods below only."""
        self.width = 0
        """Cells of a row; 0 until it is known."""
        self._heights = HeightIndex()
        self._places: dict[Part, int] = {}
        """Index of each part; those from `_placed` on are out of date."""
        self._placed = 0
        self._recently_used: OrderedDict[Part, int] = OrderedDict()
        self._cached_rows = 0
        self._dirty: int | None = 0

    @property
    def total(self) -> int:
        """Number of all rows, as far as it is known."""
        return self._heights.total

    def set_width(self, width: int) -> bool:
        """Lay out everything for a width; return False if it is the same."""
        if width == self.width:
            return False
        self.width = width
        self.measure_all()
        return True

    def measure_all(self) -> None:
        """Take over the heights of all parts, of which many have changed."""
        self._heights = HeightIndex(self._height(part) for part in self.parts)
        self._dirty = 0

    def add(self, part: Part, after: Part | None = None) -> None:
        """Add a part at the end, or after another one."""
        place = len(self.parts) if after is None else self._index_of(after) + 1
        self.parts.insert(place, part)
        self._places[part] = place
        # Those before it keep their index; those behind it are counted when one is asked for.
        if place <= self._placed:
            self._placed = place + 1
        self._heights.insert(place, self._height(part))
        self._mark(place, 0)

    def before(self, part: Part) -> Part | None:
        """Return the part above another one; None above the first."""
        place = self._index_of(part)
        return self.parts[place - 1] if place else None

    def remove(self, part: Part) -> None:
        """Remove a part."""
        place = self._index_of(part)
        self._mark(place, 0)
        del self.parts[place]
        del self._places[part]
        self._placed = min(self._placed, place)
        self._heights.remove(place)
        self._cached_rows -= self._recently_used.pop(part, 0)

    def refresh(self, part: Part) -> None:
        """Register a change of a part, from its `dirty_row` on."""
        place = self._index_of(part)
        self._heights.set(place, self._height(part))
        self._mark(place, part.dirty_row)

    @property
    def is_dirty(self) -> bool:
        """True if a row has changed since the last `take_dirty`."""
        return self._dirty is not None

    def take_dirty(self) -> int | None:
        """Return the first row that has changed since the last call; None if no row has."""
        dirty, self._dirty = self._dirty, None
        return dirty

    def settle(self, first: int, last: int) -> int:
        """Lay out the rows between two; return by how many rows the content at `first` moved."""
        shift, place = 0, self._heights.find(first)
        above = place
        row = self._heights.start(place) if place < len(self.parts) else last + 1
        # A part that turns out higher pushes the wanted rows down, so the end moves with them.
        while row <= last + shift and place < len(self.parts):
            part = self.parts[place]
            moved = part.settle(self.width, max(0, first - row), last + shift - row)
            if row < first:
                shift += moved
            self._mark_used(part)
            if self._heights.set(place, part.height(self.width)):
                self._mark(place, part.dirty_row)
            row += self._heights.height(place)
            place += 1
        # What was just laid out is in sight: without it the same frame would lay it out again.
        self._evict(place - above)
        return shift

    def has_unread_at(self, first: int, last: int) -> bool:
        """Return True if a row between two is shown unparsed because its slice was not read yet."""
        return any(part.has_unread_at(self.width, last - row) for part, row in self._between(first, last))

    def read_on(self, first: int, last: int) -> int:
        """Read a slice of the text between two rows; return by how many rows the content at `first` moved."""
        for part, row in self._between(first, last):
            if part.has_unread_at(self.width, last - row):
                shift = part.read_on(self.width, first - row)
                self.refresh(part)
                return shift if row < first else 0
        return 0

    def _between(self, first: int, last: int) -> Iterator[tuple[Part, int]]:
        """Yield the parts with rows between two, each with its first row."""
        place = self._heights.find(first)
        while place < len(self.parts) and (row := self._heights.start(place)) <= last:
            yield self.parts[place], row
            place += 1

    def line(self, row: int) -> Line:
        """Return a row; an empty one below the last."""
        place = self._heights.find(row)
        if row < 0 or place >= len(self.parts):
            return Line()
        part, within = self.parts[place], row - self._heights.start(place)
        line = part.line(self.width, within)
        return _marked(line, part.mark) if part.mark is not None and within == part.gap else line

    def find(self, row: int) -> Part | None:
        """Return the part at a row; None below the last."""
        place = self._heights.find(row)
        return self.parts[place] if place < len(self.parts) else None

    def start(self, part: Part) -> int:
        """Return the first row of a part, its gap included."""
        return self._heights.start(self._index_of(part))

    def from_part(self, part: Part | None, *, backwards: bool = False) -> Iterator[Part]:
        """Yield the parts after (or before) one, without wrapping around; all parts if there is none."""
        if backwards:
            place = len(self.parts) if part is None else self._index_of(part)
            yield from reversed(self.parts[:place])
        else:
            place = -1 if part is None else self._index_of(part)
            yield from self.parts[place + 1 :]

    def has(self, part: Part | None) -> bool:
        """Return True if a part is one of this transcript."""
        return part in self._places

    def _index_of(self, part: Part) -> int:
        """Return the index of a part. After a change in the middle, the next call counts the parts below once."""
        place = self._places.get(part)
        if place is None:
            raise ValueError("not a part of this transcript")
        if place < self._placed and self.parts[place] is part:
            return place
        for number in range(self._placed, len(self.parts)):
            self._places[self.parts[number]] = number
        self._placed = len(self.parts)
        return self._places[part]

    def _height(self, part: Part) -> int:
        return part.height(self.width) if self.width else 0

    def _mark(self, place: int, row: int) -> None:
        """Mark rows as changed, from a row of a part on."""
        changed = self._heights.start(place) + row
        self._dirty = changed if self._dirty is None else min(self._dirty, changed)

    def _mark_used(self, part: Part) -> None:
        """Mark a part as recently used."""
        rows = part.cached_rows
        self._cached_rows += rows - self._recently_used.pop(part, 0)
        self._recently_used[part] = rows

    def _evict(self, looked_at: int) -> None:
        """Drop rows of the least recently used parts, except the last `looked_at` ones."""
        for _ in range(len(self._recently_used) - looked_at):
            if self._cached_rows <= MAX_CACHED_ROWS:
                return
            part = next(iter(self._recently_used))
            # A part that streams is drawn again with the next flush.
            if part.pinned:
                self._recently_used.move_to_end(part)
            else:
                self._cached_rows -= self._recently_used.pop(part)
                part.forget()


def _marked(line: Line, mark: Run) -> Line:
    """Return a row with a sign in its margin."""
    if not line.runs:
        return line
    (text, style), *others = line.runs
    return (
        replace(line, runs=(mark, (text[len(mark[0]) :], style), *others)) if text[: len(mark[0])].isspace() else line
    )


_Mark = tuple[int, Part]
"""Number of an event, and the last part after it."""


@dataclass(frozen=True, slots=True)
class _Before:
    """State right before a rewind."""

    seq: int
    """Number of the rewind's event."""
    parts: tuple[Part, ...]
    marks: tuple[_Mark, ...]


class RewindMarks:
    """Last part after each event."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._marks: list[_Mark] = []
        self._before: list[_Before] = []

    def note(self, seq: int) -> None:
        """Note the last part after an event, once its parts are there."""
        parts = self._transcript.parts
        # Most events add no part, so one mark for each last part finds it again.
        if parts and (not self._marks or self._marks[-1][1] is not parts[-1]):
            self._marks.append((seq, parts[-1]))

    def go_back(self, seq: int, to_seq: int) -> None:
        """Show the parts that were there after an earlier event.

        Args:
            seq: the event of the rewind.
            to_seq: the earlier event, maybe before another rewind, which is thereby undone.
        """
        now = _Before(seq, tuple(self._transcript.parts), tuple(self._marks))
        # A rewind to before another one undoes it: its parts are those that were there then.
        then = next((before for before in self._before if before.seq > to_seq), now)
        self._before.append(now)
        there = {id(part) for part in then.parts}
        self._marks = [mark for mark in then.marks if mark[0] <= to_seq and id(mark[1]) in there]
        last = self._marks[-1][1] if self._marks else None
        self._show(then.parts[: then.parts.index(last) + 1] if last is not None else ())

    def _show(self, parts: tuple[Part, ...]) -> None:
        """Show exactly these parts; those at the beginning that are already shown stay."""
        transcript = self._transcript
        same = 0
        # Parts that stay keep their layout, and the cursor that points at them.
        for here, wanted in zip(transcript.parts, parts, strict=False):
            if here is not wanted:
                break
            same += 1
        while len(transcript.parts) > same:
            transcript.remove(transcript.parts[-1])
        for part in parts[same:]:
            transcript.add(part)
