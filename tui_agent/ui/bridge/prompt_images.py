"""Images that the user attaches to a message: a label in the text stands for each."""

import re
from collections.abc import Iterator

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import ImageBlock, TextBlock, UserBlock, UserMessage

from .exchange import Exchange, Query
from .services import PromptFiles

MAX_IMAGES = 10
"""Images of one message."""
MAX_KEPT = 40_000_000
"""Characters of image data that are kept for messages which are not sent yet; the oldest images go first."""

_LABEL = re.compile(r"\[image [^\[\]\n]{1,100} \d+×\d+(?: #\d+)?\]")
_NAME_LENGTH = 60


class PromptImages:
    """Reads images, and puts them into messages that contain their labels."""

    def __init__(self, exchange: Exchange, files: PromptFiles | None = None) -> None:
        """
        Args:
            exchange: passes the query on.
            files: reads the files; None: images cannot be attached.
        """
        self.exchange = exchange
        self._files = files
        self._blocks: dict[str, ImageBlock] = {}

    @Query("attach_image", "", about=("path",))
    async def attach(self, path: str, *, typed: bool) -> str:
        """Read an image, and return the label that stands for it; empty if the file does not exist.

        Args:
            path: its path, as the user gave it.
            typed: True if the user typed the path, so that the file may be outside the workspace.

        Raises:
            TuiAgentError: the file cannot be attached.
        """
        image = await self._files.image(path, typed=typed) if self._files is not None else None
        if image is None:
            return ""
        name = re.sub(r"[\[\]\s]+", " ", image.name)[-_NAME_LENGTH:].strip()
        size = f"{image.width}×{image.height}"
        label, number = f"[image {name} {size}]", 1
        while self._blocks.get(label, image.block) != image.block:
            number += 1
            label = f"[image {name} {size} #{number}]"
        self._blocks[label] = image.block
        while sum(len(block.data) for block in self._blocks.values()) > MAX_KEPT and len(self._blocks) > 1:
            del self._blocks[next(iter(self._blocks))]
        return label

    def message(self, text: str) -> str | UserMessage:
        """Return the message for a text: with the images whose labels it contains, or the text itself.

        Raises:
            TuiAgentError: it has too many images.
        """
        content = self.content(text)
        return UserMessage(content=content) if len(content) > 1 else text

    def content(self, text: str, before: UserMessage | None = None) -> tuple[UserBlock, ...]:
        """Return the text and the images whose labels it contains.

        Args:
            text: the text.
            before: the message that this one replaces; its images stay if their labels do.

        Raises:
            TuiAgentError: it has too many images.
        """
        known = dict(self._blocks)
        if before is not None:
            images = (block for block in before.content if isinstance(block, ImageBlock))
            known |= dict(zip(_labels(before.text), images, strict=False))
        found = [known[label] for label in _labels(text) if label in known]
        if len(found) > MAX_IMAGES:
            raise TuiAgentError(f"A message can have {MAX_IMAGES} images; this one has {len(found)}.")
        return (TextBlock(text=text), *found)

    def unknown_label(self, text: str) -> str | None:
        """Return a label in the text that stands for no image, such as that of an earlier session; None without one."""
        return next((label for label in _labels(text) if label not in self._blocks), None)


def _labels(text: str) -> Iterator[str]:
    """Yield the labels in a text, each once."""
    return iter(dict.fromkeys(_LABEL.findall(text)))
