"""The keyboard's part of the conversation, and the piece of it that is chosen, such as a code block. Pure."""

from collections.abc import Sequence

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import folded

from .transcript_model import Part, Piece, Transcript


class PartCursor:
    """Points at a part, or at one of its pieces."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._part: Part | None = None
        self._number = 0
        self._key: tuple[object, ...] = ()
        self._known: Sequence[Piece] = ()
        self._label = ""

    @property
    def part(self) -> Part | None:
        """The keyboard's part; None if there is none any more."""
        return self._part if self._transcript.has(self._part) else None

    def select(self, part: Part | None) -> None:
        """Point at a whole part."""
        self._part, self._number = part, 0

    def step(self, *, backwards: bool, opens: bool) -> bool:
        """Go to the next part that can be copied, or with `opens` that opens; return False if there is none."""
        for part in self._transcript.from_part(self.part, backwards=backwards):
            if part.active if opens else part.copyable:
                self.select(part)
                return True
        return False

    def step_piece(self, *, backwards: bool) -> bool:
        """Go to the next piece of the part, after the last one back to the whole part; False if there are none."""
        count = len(self._pieces())
        self._number = (self._number + (-1 if backwards else 1)) % (count + 1)
        return count > 0

    @property
    def piece(self) -> Piece | None:
        """The chosen piece; None if the whole part is chosen."""
        pieces = self._pieces() if self._number else ()
        return pieces[self._number - 1] if 0 < self._number <= len(pieces) else None

    @property
    def image(self) -> ImageBlock | None:
        """Image of the part."""
        return self.part.image if self.part is not None else None

    @property
    def text(self) -> str:
        """Text to copy."""
        if (piece := self.piece) is not None:
            return piece.text
        return self.part.copied if self.part is not None else ""

    @property
    def label(self) -> str:
        """Name and size of what is chosen, such as `code 2 of 3 · 14 lines`."""
        pieces = self._pieces()  # Also keeps the label.
        if not self._label and self.part is not None:
            self._label = self._label_of(self.part, pieces)
        return self._label

    def covers(self, part: Part | None, row: int) -> bool:
        """Return True if a row of a part is in what is chosen."""
        if part is None or part is not self.part:
            return False
        piece = self.piece
        return piece is None or piece.first <= row < piece.last

    @property
    def first_row(self) -> int:
        """First row within the part of what is chosen."""
        if (piece := self.piece) is not None:
            return piece.first
        return int(self.part.gap) if self.part is not None else 0

    def page_rows(self, width: int) -> Sequence[Line]:
        """Return all rows of what is chosen, for a page."""
        piece = self.piece
        if piece is not None:
            return piece.rows(width) if piece.rows is not None else folded([(sanitise(piece.text), "")], width)
        return self.part.page_rows(width) if self.part is not None else ()

    def _label_of(self, part: Part, pieces: Sequence[Piece]) -> str:
        piece = self.piece
        text = part.text if piece is None else piece.text
        lines = count_text(text.rstrip("\n").count("\n") + 1, "line")
        if piece is None:
            return f"{part.title} · {lines}"
        alike = [one for one in pieces if one.name == piece.name]
        place = f" {alike.index(piece) + 1} of {len(alike)}" if len(alike) > 1 else ""
        return f"{piece.name}{place} · {lines}"

    def _pieces(self) -> Sequence[Piece]:
        """Return the pieces of the part, made once for each of its states."""
        part, width = self.part, self._transcript.width
        if part is None or not width:
            return ()
        key = (part, self._number, width, part.opened, part.height(width))
        if key != self._key:
            self._key, self._known, self._label = key, part.pieces(width), ""
            self._key = (part, self._number, width, part.opened, part.height(width))
        return self._known
