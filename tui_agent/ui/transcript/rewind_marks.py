"""The conversation on the screen after a person went back: parts go with what they tell of, and may come again."""

from dataclasses import dataclass

from .transcript_model import Part, Transcript

_Mark = tuple[int, Part]
"""The number of an event, and the last part after it."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What was there right before a going back."""

    seq: int
    """Of the going back."""
    parts: tuple[Part, ...]
    marks: tuple[_Mark, ...]


class RewindMarks:
    """Knows after which event which part was the last one."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._marks: list[_Mark] = []
        self._before: list[_Before] = []

    def note(self, seq: int) -> None:
        """An event was taken; its parts are there."""
        parts = self._transcript.parts
        if parts and (not self._marks or self._marks[-1][1] is not parts[-1]):
            self._marks.append((seq, parts[-1]))

    def go_back(self, seq: int, to_seq: int) -> None:
        """Shows what was there after an earlier event.

        Args:
            seq: the event that says so.
            to_seq: the earlier one, maybe before another going back, which is undone by that.
        """
        now = _Before(seq, tuple(self._transcript.parts), tuple(self._marks))
        then = next((before for before in self._before if before.seq > to_seq), now)
        self._before.append(now)
        there = {id(part) for part in then.parts}
        self._marks = [mark for mark in then.marks if mark[0] <= to_seq and id(mark[1]) in there]
        last = self._marks[-1][1] if self._marks else None
        self._show(then.parts[: then.parts.index(last) + 1] if last is not None else ())

    def _show(self, parts: tuple[Part, ...]) -> None:
        """Has exactly these parts there; those at the beginning that are there already stay."""
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
