"""Streaming Markdown: finished units are parsed once, only the open end is parsed again.

A block is finished once a later one begins on a complete line, an item of a list once the next does, a piece of code
once the next piece does. So a flush costs as much as the open end, and the result does not depend on how the text was
cut on its way.

No text blocks the event loop: `reading_cost` estimates how long the parser needs for a line, from its characters and
not by the clock, so that the same text always looks the same. A flush reads at most `SLICE_COST`, a block ends at
`BLOCK_COST`, a line beyond `LINE_COST` is shown unparsed, and so is everything after the first `TEXT_COST`.
"""

from collections.abc import Sequence
from itertools import pairwise

from tui_agent.ui.text.code_highlighter import MAX_PIECE_LINES, piece_length
from tui_agent.ui.text.sanitiser import sanitise_for_copies

from .markdown_blocks import CodeBlock, Item, PlainText, Unit, parse_markdown

LONGEST_LINE = 16_000
"""Characters after which a line counts as ended."""
LONGEST_BLOCK = 32_000
"""Characters after which an open block ends with its line; code has pieces instead."""
SLICE_COST = 12_000
"""Cost of new lines read by one flush; the rest is shown unparsed until the next one."""
BLOCK_COST = 20_000
"""Cost after which an open block ends with its line."""
LINE_COST = 8_000
"""Cost beyond which a line is not parsed as Markdown."""
TEXT_COST = 1_000_000
"""Cost beyond which the rest of a text is not parsed as Markdown."""
MAX_OTHER_ENDS = 100
"""Most carriage returns and other line ends within one line; if it has more, they become blanks."""
PLAIN_PIECE = 4_000
"""Characters of a piece of unparsed text."""

_MIN_LINE_COST = 24
_BEGINNING_COST = 20
_BEGINNINGS = frozenset("-+*#>0123456789")
_COSTS = (("[", 40), ("*", 7), ("_", 7), ("~", 7), ("|", 6), *((sign, 2) for sign in "!#$%&+-:<=>@\\]^`{}("))
_LETTERS_FREE = 8


def reading_cost(line: str) -> int:
    """Return about how many microseconds the Markdown parser takes for a line in any context.

    The weights are the most that texts made of one sign cost in `tests/benchmarks/screen_floods.py`.
    """
    text = line.lstrip(" ")
    cost = _MIN_LINE_COST + len(line) // _LETTERS_FREE + (len(line) - len(text)) // 4
    if text[:1] in _BEGINNINGS:
        cost += _BEGINNING_COST
    for sign, weight in _COSTS:
        if found := line.count(sign):
            cost += found * weight
    return cost


class MarkdownStream:
    """Units of a text that is still streaming."""

    def __init__(
        self, longest_block: int = LONGEST_BLOCK, *, block_cost: int = BLOCK_COST, text_cost: int = TEXT_COST
    ) -> None:
        """Prepare an empty text.

        Args:
            longest_block: characters after which an open block ends with its line.
            block_cost: cost after which an open block ends with its line.
            text_cost: cost up to which the text is parsed; 0: none of it is.
        """
        self.finished: list[Unit] = []
        """Units that do not change any more."""
        self.open: list[Unit] = []
        """Units of the end, as of the last flush."""
        self.unread: list[Unit] = []
        """Unparsed pieces of the text that no flush has read yet."""
        self.cost = 0
        """Cost of all lines read so far."""
        self._longest_block = longest_block
        self._block_cost = block_cost
        self._text_cost = text_cost
        self._lines: list[str] = []
        self._costs: list[int] = []
        self._raw = ""
        self._at = 0
        self._settled = 0
        self._fence = ""
        self._joined = False
        self._number: int | None = None

    @property
    def waits(self) -> bool:
        """True if the next flush would read more of what was fed."""
        return bool(self.unread) and not self._spent

    def feed(self, text: str) -> None:
        """Add text; nothing is parsed before the next flush."""
        # What was read is dropped here and not line by line, which would copy the rest each time.
        self._raw = self._raw[self._at :] + text
        self._at = 0

    def flush(self) -> None:
        """Bring `finished`, `open` and `unread` up to date, by at most `SLICE_COST` of new lines."""
        self._take_lines()
        last = None
        if len(self._lines) != self._settled:
            again = True
            while again:
                again, last = self._finish_some()
            self._settled = len(self._lines)
        rest = self._partial_line()
        if rest or last is None:
            lines = [*self._lines, *rest]
            self.open = self._read(lines, [*self._costs, *map(reading_cost, rest)]) if lines else []
        else:
            self.open = [last]
        self.unread = [] if rest else self._plain_pieces()
        if self._spent:
            self._end()

    def finish(self) -> None:
        """Take the text as complete; call this again while it `waits`."""
        if self._at < len(self._raw) and not self._raw.endswith("\n"):
            self.feed("\n")
        self.flush()
        if not self.waits:
            self._end()

    # --- reading ------------------------------------------------------------------------------------------------------

    @property
    def _spent(self) -> bool:
        return self.cost >= self._text_cost

    def _take_lines(self) -> None:
        """Take complete lines up to the cost of a slice, or until the open block must end; at least one."""
        raw, new = self._raw, SLICE_COST
        # Each flush parses an open block again, so its cost is limited; code in a fence is finished piece by piece.
        if not self._fence:
            new = min(new, self._block_cost - sum(map(_cost_of, self._lines, self._costs)))
        stop = min(self.cost + max(1, new), self._text_cost)
        while self.cost < stop:
            end = raw.find("\n", self._at, self._at + LONGEST_LINE + 1)
            if end < 0 and len(raw) - self._at <= LONGEST_LINE:
                return
            line = raw[self._at : end if end >= 0 else self._at + LONGEST_LINE]
            self._at += len(line) + (end >= 0)
            self.cost += len(line) // _LETTERS_FREE
            for clean in _cleaned(line):
                cost = reading_cost(clean)
                self._lines.append(clean)
                self._costs.append(cost)
                self.cost += _cost_of(clean, cost)

    def _partial_line(self) -> list[str]:
        """Return the incomplete last line if everything before it was read."""
        raw = self._raw
        if self._spent or len(raw) - self._at > LONGEST_LINE or raw.find("\n", self._at) >= 0:
            return []
        return _cleaned(raw[self._at :]) if self._at < len(raw) else []

    def _plain_pieces(self) -> list[Unit]:
        """Return the unread text, in pieces that end with a line."""
        raw, place = self._raw, self._at
        pieces: list[Unit] = []
        while place < len(raw):
            end = place + PLAIN_PIECE
            if end < len(raw):
                end = raw.rfind("\n", place, end) + 1 or end
            pieces.append(Unit(PlainText(raw[place:end]), 0, joined=True))
            place = end
        return pieces

    def _end(self) -> None:
        """Take the open lines as finished."""
        self.finished.extend(self.open)
        self.open = []
        self._begin_after(len(self._lines))
        self._settled = 0

    def _read(self, lines: Sequence[str], costs: Sequence[int]) -> list[Unit]:
        """Return the units of the open lines, parsed in the context of the text before them."""
        hidden = {place for place, cost in enumerate(costs) if cost > LINE_COST}
        if not self._fence:
            units = parse_markdown("\n".join(lines), self._number, hidden)
            if units and self._joined:
                units[0] = Unit(units[0].block, units[0].start, joined=True)
            return units
        # The fence went with an earlier piece of the code; the parser needs it again.
        first, *others = parse_markdown("\n".join([self._fence, *lines]), None, {place + 1 for place in hidden})
        return [Unit(first.block, 0, joined=True), *(Unit(it.block, it.start - 1, it.joined) for it in others)]

    def _finish_some(self) -> tuple[bool, Unit | None]:
        """Move finished units out of the open lines; return True if the rest must be read again, else the last unit."""
        units = self._read(self._lines, self._costs)
        if not units:
            self._lines, self._costs = [], []
            return False, None
        for unit, following in pairwise(units):
            if (cut := self._cut_of(unit, following.start)) is not None:
                self._begin_with(unit)
                return self._end_at(cut - unit.start), None
            self.finished.append(unit)
        last = units[-1]
        self._begin_with(last)
        is_whole = not self._finish_code(last)
        cut = self._cut_of(Unit(last.block, 0), len(self._lines))
        again = cut is not None and self._end_at(cut)
        return again, Unit(last.block, 0, last.joined) if is_whole and not again else None

    def _cut_of(self, unit: Unit, end: int) -> int | None:
        """Return the line before which a unit must end because it is too long; None if it need not."""
        if isinstance(unit.block, CodeBlock) and unit.block.fenced:
            return None
        length = cost = 0
        for place in range(unit.start, end - 1):
            length += len(self._lines[place]) + 1
            cost += _cost_of(self._lines[place], self._costs[place])
            if length >= self._longest_block or cost >= self._block_cost:
                return place + 1
        return None

    def _finish_code(self, unit: Unit) -> bool:
        """Finish the complete pieces of open code; return False if there is none."""
        block = unit.block
        if not isinstance(block, CodeBlock) or not block.fenced:
            return False
        done, joined = 0, unit.joined
        while length := piece_length(block.lines[done : done + MAX_PIECE_LINES + 1]):
            piece = CodeBlock(block.language, block.lines[done : done + length], fenced=True)
            self.finished.append(Unit(piece, 0, joined))
            done, joined = done + length, True
        if done:
            opener = self._fence or self._lines[0]
            taken = done if self._fence else done + 1
            self._lines, self._costs = self._lines[taken:], self._costs[taken:]
            self._fence = opener
        return done > 0

    # --- where the open lines begin -----------------------------------------------------------------------------------

    def _begin_with(self, unit: Unit) -> None:
        """Make the open lines begin with one of their units."""
        if unit.start:
            self._begin_after(unit.start)
            self._joined = unit.joined
            self._number = unit.block.number if unit.joined and isinstance(unit.block, Item) else None

    def _begin_after(self, lines: int) -> None:
        """Drop open lines, and the context of the text before them."""
        self._lines, self._costs = self._lines[lines:], self._costs[lines:]
        self._fence, self._joined, self._number = "", False, None

    def _end_at(self, cut: int) -> bool:
        """End the text before an open line, and begin anew there."""
        self.finished.extend(self._read(self._lines[:cut], self._costs[:cut]))
        self._begin_after(cut)
        return True


def _cost_of(line: str, cost: int) -> int:
    """Return the cost of a line; one that is too expensive is not parsed and costs little."""
    return cost if cost <= LINE_COST else _MIN_LINE_COST + len(line) // _LETTERS_FREE


def _cleaned(line: str) -> list[str]:
    """Return a raw line as sanitised lines."""
    clean = sanitise_for_copies(line.removesuffix("\r"))
    return clean.split("\n") if clean.count("\n") <= MAX_OTHER_ENDS else [clean.replace("\n", " ")]
