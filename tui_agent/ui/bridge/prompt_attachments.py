"""Files that the user attaches to a message: a label or a mention in the text stands for each."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.protocol.facts.prompt_attachment import Attachment, refuse_too_many
from tui_agent.protocol.file_mentions import file_mentions, mention_of
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, TextBlock, UserBlock, UserMessage

if TYPE_CHECKING:
    from tui_agent.workbench.sessions.prompt_files import PromptFiles

MAX_KEPT = 40_000_000
"""Characters of attachments that are kept for messages which are not sent yet; the oldest go first."""

_LABEL = re.compile(r"\[(?:image [^\[\]\n]{1,100} \d+×\d+|PDF [^\[\]\n]{1,100} [\d,]+ (?:pages?|bytes))(?: #\d+)?\]")
_NAME_LENGTH = 60


class PromptAttachments:
    """Reads files, and puts them into messages that contain their labels or mentions."""

    def __init__(self, files: "PromptFiles | None" = None) -> None:
        """
        Args:
            files: reads the files; None: nothing can be attached.
        """
        self._files = files
        self._blocks: dict[str, Attachment] = {}

    async def attach(self, path: str, *, typed: bool) -> str:
        """Read a file, and return the text that stands for it: a label, or a mention of lines or of a directory.

        It is empty if the file does not exist.

        Args:
            path: its path, as the user gave it, with the lines if there are any.
            typed: True if the user typed the path, so that the file may be outside the workspace.

        Raises:
            TuiAgentError: the file cannot be attached.
        """
        found = await self._files.attachment(path, typed=typed) if self._files is not None else None
        if found is None:
            # The lines that an earlier message had are gone.
            self._blocks.pop(mention_of(path), None)
            return ""
        if isinstance(found.block, DocumentBlock) and found.block.is_text:
            sign = mention_of(path)
            self._keep(sign, found.block)
            return sign
        name = re.sub(r"[\[\]\s]+", " ", found.name)[-_NAME_LENGTH:].strip()
        kind = "image" if isinstance(found.block, ImageBlock) else "PDF"
        label, number = f"[{kind} {name} {found.size}]", 1
        while self._blocks.get(label, found.block) != found.block:
            number += 1
            label = f"[{kind} {name} {found.size} #{number}]"
        self._keep(label, found.block)
        return label

    def message(self, text: str) -> str | UserMessage:
        """Return the message for a text: with the attachments that it stands for, or the text itself.

        Raises:
            TuiAgentError: they are too many or too large.
        """
        content = self.content(text)
        return UserMessage(content=content) if len(content) > 1 else text

    def content(self, text: str, before: UserMessage | None = None) -> tuple[UserBlock, ...]:
        """Return the text and the attachments whose labels and mentions it contains.

        Args:
            text: the text.
            before: the message that this one replaces; its attachments stay if what stands for them does.

        Raises:
            TuiAgentError: they are too many or too large.
        """
        known = dict(self._blocks)
        if before is not None:
            attached = [block for block in before.content if not isinstance(block, TextBlock)]
            media = [block for block in attached if isinstance(block, ImageBlock) or not block.is_text]
            known |= {mention_of(block.name): block for block in attached if isinstance(block, DocumentBlock)}
            known |= dict(zip(_labels(before.text), media, strict=False))
        found = [known[sign] for sign in (*_labels(text), *file_mentions(text)) if sign in known]
        refuse_too_many(found)
        return (TextBlock(text=text), *found)

    def unknown_label(self, text: str) -> str | None:
        """Return a label in the text that stands for no file, such as that of an earlier session; None without one."""
        return next((label for label in _labels(text) if label not in self._blocks), None)

    def _keep(self, sign: str, block: Attachment) -> None:
        self._blocks.pop(sign, None)
        self._blocks[sign] = block
        while sum(len(block.data) for block in self._blocks.values()) > MAX_KEPT and len(self._blocks) > 1:
            del self._blocks[next(iter(self._blocks))]


def _labels(text: str) -> Iterator[str]:
    """Yield the labels in a text, each once."""
    return iter(dict.fromkeys(_LABEL.findall(text)))
