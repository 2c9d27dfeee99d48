"""The conversation after a rewind: parts disappear with their events, and may return."""

from dataclasses import dataclass

from .transcript_model import Part, Transcript

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
        if parts and (not self._marks or self._marks[-1][1] is not parts[-1]):
            self._marks.append((seq, parts[-1]))

    def go_back(self, seq: int, to_seq: int) -> None:
        """Show the parts that were there after an earlier event.

        Args:
            seq: the event of the rewind.
            to_seq: the earlier event, maybe before another rewind, which is thereby undone.
        """
        now = _Before(seq, tuple(self._transcript.parts), tuple(self._marks))
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
        for here, wanted in zip(transcript.parts, parts, strict=False):
            if here is not wanted:
                break
            same += 1
        while len(transcript.parts) > same:
            transcript.remove(transcript.parts[-1])
        for part in parts[same:]:
            transcript.add(part)
