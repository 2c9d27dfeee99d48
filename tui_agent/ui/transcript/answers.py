"""Answers of the model and their code, the newest first. Pure."""

from collections.abc import Iterator

from .markdown.markdown_blocks import fenced_texts
from .markdown.markdown_part import MarkdownPart
from .transcript_model import Transcript
from .transcript_parts import MODEL_MARK


def answer_texts(transcript: Transcript) -> Iterator[str]:
    """Yield the answers of the model, the newest first."""
    for part in reversed(transcript.parts):
        if isinstance(part, MarkdownPart) and part.mark is MODEL_MARK and part.text.strip():
            yield part.copied


def code_texts(transcript: Transcript) -> Iterator[str]:
    """Yield the code blocks of the model's answers, the newest first."""
    for text in answer_texts(transcript):
        yield from reversed(fenced_texts(text))
