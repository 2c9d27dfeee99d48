"""What a person sent before, to be had again with the arrow keys."""

from collections.abc import Iterable
from itertools import groupby

MAX_HISTORY_ENTRIES = 1_000


class PromptHistory:
    """Sent texts, newest last, and the draft that was on the way when a person began to look back."""

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._past = 0
        self._place: int | None = None
        self._draft = ""

    @property
    def browsing(self) -> bool:
        """Whether an earlier text is shown in place of the draft."""
        return self._place is not None

    def add(self, text: str) -> None:
        """Notes a sent text; the same one twice in a row counts once."""
        if text.strip() and (not self._entries or self._entries[-1] != text):
            self._entries.append(text)
            self._limit()
        self.leave()

    def begin_with(self, texts: Iterable[str]) -> None:
        """Puts what was sent in earlier lives of the session in the place of what was known of them."""
        past = [text for text, _ in groupby(texts) if text.strip()]
        if self._place is not None:
            self._place = max(0, self._place + len(past) - self._past)
        self._entries[: self._past] = past
        self._past = len(past)
        self._limit()

    def _limit(self) -> None:
        """Forgets the oldest texts where there are too many."""
        gone = max(0, len(self._entries) - MAX_HISTORY_ENTRIES)
        del self._entries[:gone]
        self._past = max(0, self._past - gone)
        if self._place is not None:
            self._place = max(0, self._place - gone)

    def leave(self) -> None:
        """The text shown is a draft of its own from now on."""
        self._place = None

    def earlier(self, current: str) -> str | None:
        """The text sent before the one shown; None where there is none. `current` is kept as the draft."""
        if self._place is None:
            self._draft = current
        place = (len(self._entries) if self._place is None else self._place) - 1
        if place < 0:
            return None
        self._place = place
        return self._entries[place]

    def later(self) -> str | None:
        """The text sent after the one shown, in the end the draft; None while no earlier one is shown."""
        if self._place is None:
            return None
        if self._place + 1 < len(self._entries):
            self._place += 1
            return self._entries[self._place]
        self._place = None
        return self._draft
