"""Fold of the model's responses: they stream, may be discarded, and end as one complete message."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tui_agent.protocol.amounts import bytes_text
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import AssistantMessage, TextBlock, ThinkingBlock

from .markdown_blocks import fenced_texts
from .markdown_part import MarkdownPart, ThinkingPart
from .transcript_layout import Part, Transcript
from .transcript_parts import BODY, MODEL_MARK, TextPart, WaitingPart


@dataclass(slots=True)
class Answer:
    """An assistant message that is streaming, and its parts in order."""

    parts: list[Part] = field(default_factory=list[Part])
    thinking: ThinkingPart | None = None
    text: MarkdownPart | None = None
    preparing: TextPart | None = None
    """Note that a call is being written, which may take a while."""
    waiting: WaitingPart | None = None
    """Caret until its first part arrives."""
    prepared: int = 0
    """Characters of calls received so far."""


class AnswerFold:
    """Open responses, in the order they began."""

    def __init__(self, transcript: Transcript, *, shows_thinking: bool = False) -> None:
        self.shows_thinking = shows_thinking
        """True if new thinking is shown, and not collapsed to one line."""
        self._transcript = transcript
        self._open: dict[str, Answer] = {}

    @property
    def newest(self) -> Answer | None:
        """Newest open response; None while none is open."""
        return next(reversed(self._open.values()), None)

    def growing(self) -> Iterator[MarkdownPart | ThinkingPart]:
        """Yield the parts that are receiving text."""
        for answer in self._open.values():
            yield from filter(None, (answer.thinking, answer.text))

    def begin(self, message_id: str) -> Answer:
        """Begin a response."""
        answer = self._open[message_id] = Answer()
        answer.waiting = WaitingPart()
        self._transcript.add(answer.waiting)
        answer.parts.append(answer.waiting)
        return answer

    def grow(self, event: MessageDelta) -> None:
        """Add streamed content to a response."""
        answer = self._open.get(event.message_id) or self.begin(event.message_id)
        if not event.delta:
            return  # A part without text would fix its place before the others.
        match event.kind:
            case "text":
                if answer.text is None:
                    answer.text = _spoken(MarkdownPart(gap=True, margin=BODY, live=True))
                    self.append(answer, answer.text)
                answer.text.feed(event.delta)
            case "thinking":
                if answer.thinking is None:
                    answer.thinking = ThinkingPart(gap=True, margin=BODY, live=True, opened=self.shows_thinking)
                    self.append(answer, answer.thinking)
                answer.thinking.feed(event.delta)
            case "toolcall":
                self._prepare(answer, len(event.delta))

    def end(self, message_id: str, message: AssistantMessage) -> None:
        """Complete a response; parts that differ from the final message are replaced."""
        answer = self._open.get(message_id) or self.begin(message_id)
        self.drop(answer, answer.preparing)
        thinking, text = _thinking_of(message), _text_of(message)
        if thinking and answer.thinking is None:
            answer.thinking = ThinkingPart(thinking, gap=True, margin=BODY, opened=self.shows_thinking)
            self._insert_first(answer, answer.thinking)
        # Mostly equal: then nothing is laid out again.
        if text != (answer.text.text if answer.text else ""):
            self._rewrite(answer, text)
        self._close(message_id)

    def discard(self, message_id: str) -> list[Part]:
        """Discard a response and return its parts, which are removed."""
        answer = self._open.pop(message_id, None)
        if answer is None:
            return []
        gone = list(answer.parts)
        for part in gone:
            self.drop(answer, part)
        return gone

    def close(self) -> None:
        """End streaming; open parts stay as they are."""
        for message_id in list(self._open):
            answer = self._open[message_id]
            self.drop(answer, answer.preparing)
            self._close(message_id)

    def append(self, answer: Answer, part: Part, after: Part | None = None) -> None:
        """Add a part below the other parts of its message, or below `after`."""
        place = len(answer.parts) if after is None else answer.parts.index(after) + 1
        self._transcript.add(part, answer.parts[place - 1] if place else None)
        answer.parts.insert(place, part)
        self.drop(answer, answer.waiting)

    def _insert_first(self, answer: Answer, part: Part) -> None:
        """Add a part above the other parts of its message."""
        above = self._transcript.before(answer.parts[0]) if answer.parts else None
        # Only if the user's message is missing: a transcript has no place before its first part.
        if above is None:
            self.append(answer, part)
            return
        self._transcript.add(part, above)
        answer.parts.insert(0, part)
        self.drop(answer, answer.waiting)

    def drop(self, answer: Answer, part: Part | None) -> None:
        """Remove a part of a response."""
        if part is not None:
            answer.parts.remove(part)
            self._transcript.remove(part)
        if part is answer.preparing:
            answer.preparing = None
        if part is answer.waiting:
            answer.waiting = None

    def _prepare(self, answer: Answer, length: int) -> None:
        answer.prepared += length
        text = f"… prepares a call ({bytes_text(answer.prepared)})"
        if answer.preparing is None:
            answer.preparing = TextPart(text, "muted", gap=True)
            self.append(answer, answer.preparing)
        else:
            answer.preparing.replace(text)
            self._transcript.refresh(answer.preparing)

    def _rewrite(self, answer: Answer, text: str) -> None:
        """Replace the text of a part by the final one, or add it above the calls, which may have begun before it."""
        old = answer.text
        answer.text = _spoken(MarkdownPart(text, gap=True, margin=BODY)) if text else None
        if answer.text is not None and (above := old or answer.thinking) is not None:
            self.append(answer, answer.text, after=above)
        elif answer.text is not None:
            self._insert_first(answer, answer.text)
        self.drop(answer, old)

    def _close(self, message_id: str) -> None:
        answer = self._open.pop(message_id)
        self.drop(answer, answer.waiting)
        for part in (answer.thinking, answer.text):
            if part is not None:
                part.finish()
                self._transcript.refresh(part)


def _spoken(part: MarkdownPart) -> MarkdownPart:
    """Return the part with the model's mark."""
    part.mark = MODEL_MARK
    return part


def _text_of(message: AssistantMessage) -> str:
    """Return the text of a message: its text blocks as paragraphs; a single block unchanged."""
    return "\n\n".join(block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip())


def _thinking_of(message: AssistantMessage) -> str:
    """Return the reasoning of a message, with a note in place of encrypted reasoning."""
    blocks = [block for block in message.content if isinstance(block, ThinkingBlock)]
    thoughts = [block.thinking or ("(encrypted)" if block.redacted else "") for block in blocks]
    return "\n\n".join(filter(None, thoughts))


def answer_texts(transcript: Transcript) -> Iterator[str]:
    """Yield the answers of the model, the newest first."""
    for part in reversed(transcript.parts):
        # A proposed plan and a pasted message are Markdown parts, too.
        if isinstance(part, MarkdownPart) and part.mark is MODEL_MARK and part.text.strip():
            yield part.copied


def code_texts(transcript: Transcript) -> Iterator[str]:
    """Yield the code blocks of the model's answers, the newest first."""
    for text in answer_texts(transcript):
        yield from reversed(fenced_texts(text))
