"""Searching the conversation: over everything, also what is folded away. Pure."""

import re
from collections.abc import Iterator
from itertools import chain

from .styled_lines import Line, styled_over
from .transcript import Part, Transcript


class TranscriptSearch:
    """One search: what is looked for, and which match the reader is at."""

    def __init__(self, transcript: Transcript, query: str) -> None:
        self.query = query
        """What is looked for."""
        self._transcript = transcript
        self._pattern = re.compile(re.escape(query), re.IGNORECASE)
        self._part: Part | None = None
        self._ordinal = 0
        self.count = sum(self._matches(part) for part in transcript.parts)
        """Matches there were when the search began."""

    def step(self, *, backwards: bool = False) -> Part | None:
        """Goes to the next match, around the end if need be; gives its part, or None where there is no match."""
        within = self._ordinal + (-1 if backwards else 1)
        if self._part is not None and self._part in self._transcript.parts and 0 <= within < self._matches(self._part):
            self._ordinal = within
            return self._part
        for part in self._around(backwards):
            count = self._matches(part)
            if count:
                self._part, self._ordinal = part, count - 1 if backwards else 0
                return part
        return None

    def row(self) -> int:
        """The row of the match within its part, which is laid out for that."""
        part, width = self._part, self._transcript.width
        if part is None:
            return 0
        part.settle(width, 0, 1_000_000)
        ends: list[int] = []
        text = ""
        for number in range(part.height(width)):
            line = part.line(width, number)
            text += ("\n" if line.joint is None else line.joint) + line.plain[line.indent :]
            ends.append(len(text))
        places = [match.start() for match in self._pattern.finditer(text)]
        if not places:
            return int(part.gap)
        place = places[min(self._ordinal, len(places) - 1)]
        return next(number for number, end in enumerate(ends) if place < end)

    def marked(self, line: Line, *, here: bool) -> Line:
        """A row with its matches marked; `here` is the row the reader was led to."""
        runs = line.runs
        for match in self._pattern.finditer(line.plain):
            runs = styled_over(runs, match.start(), match.end(), "found-here" if here else "found")
        return line if runs is line.runs else Line(tuple(runs), line.joint, line.indent, line.fill)

    def _matches(self, part: Part) -> int:
        return sum(1 for _ in self._pattern.finditer(part.text))

    def _around(self, backwards: bool) -> Iterator[Part]:
        """All parts, beginning after (or before) where the reader is."""
        at = self._part if self._part in self._transcript.parts else None
        return chain(
            self._transcript.from_part(at, backwards=backwards), self._transcript.from_part(None, backwards=backwards)
        )
