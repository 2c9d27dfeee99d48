"""Messages of the user: the files attached to them, and changes to those that are queued, in the queue of any agent."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.protocol.facts.screen_facts import Attachment, PromptAttachment, refuse_too_many
from tui_agent.protocol.file_mentions import file_mentions, mention_of
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, TextBlock, UserBlock, UserMessage

if TYPE_CHECKING:
    from tui_agent.workbench.sessions.prompt_files import PromptFiles

    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import AgentLoop, SteeringQueue

MAX_KEPT = 40_000_000
"""Characters of attachments that are kept for messages which are not sent yet; the oldest go first."""

_LABEL = re.compile(r"\[(?:image [^\[\]\n]{1,100} \d+×\d+|PDF [^\[\]\n]{1,100} [\d,]+ (?:pages?|bytes))(?: #\d+)?\]")
_NAME_LENGTH = 60


class PromptAttachments:
    """Reads files, and puts them into messages that contain their labels or mentions."""

    def __init__(self, files: "PromptFiles | None" = None) -> None:
        """Begin without attachments; without `files`, which reads them, there will be none."""
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
        return self._label(found)

    async def attach_clipboard(self) -> str:
        """Read the image in the clipboard of the desktop, and return the label that stands for it; empty without one.

        Raises:
            TuiAgentError: the image cannot be attached.
        """
        found = await self._files.pasted() if self._files is not None else None
        return "" if found is None else self._label(found)

    def _label(self, found: PromptAttachment) -> str:
        """Keep an image or a PDF under a label of its own, and return the label."""
        name = re.sub(r"[\[\]\s]+", " ", found.name)[-_NAME_LENGTH:].strip()
        kind = "image" if isinstance(found.block, ImageBlock) else "PDF"
        label, number = f"[{kind} {name} {found.size}]", 1
        # Two images may have the same name and size.
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
        # A file that is attached again is the newest one.
        self._blocks.pop(sign, None)
        self._blocks[sign] = block
        while sum(len(block.data) for block in self._blocks.values()) > MAX_KEPT and len(self._blocks) > 1:
            del self._blocks[next(iter(self._blocks))]


def _labels(text: str) -> Iterator[str]:
    """Yield the labels in a text, each once."""
    return iter(dict.fromkeys(_LABEL.findall(text)))


MAX_DROPPED = 20
"""Dropped messages that can be restored."""


class MessageEdits:
    """Changes to the queues of the agent and its sub-agents. Their effects are events."""

    def __init__(self, attachments: PromptAttachments, agent: "AgentLoop | None" = None) -> None:
        """Change the queues of an agent; without one, no message is queued yet."""
        self._attachments = attachments
        self._agent = agent
        self._dropped: list[tuple[SteeringQueue, UserMessage, int]] = []

    def hold(self, message_id: str) -> str | None:
        """Take a message out of the queue for an edit and return its text; None if it was delivered already.

        It keeps its place until `release` or `drop`.
        """
        queue = self._queue_of(message_id)
        message = queue.hold(message_id) if queue is not None else None
        return message.text if message is not None else None

    def release(self, message_id: str, text: str | None = None) -> bool:
        """Queue a message again after an edit, with another text if there is one; False if it is not being edited.

        Raises:
            TuiAgentError: it has too many attachments.
        """
        queue = self._queue_of(message_id)
        message = queue.find(message_id) if queue is not None else None
        if queue is None or message is None:
            return False
        if text is None or text == message.text:
            return queue.release(message_id) is not None
        return queue.release(message_id, self._attachments.content(text, message)) is not None

    def drop(self, message_id: str) -> str | None:
        """Remove a message from the queue and return its text; None if it was delivered already."""
        queue = self._queue_of(message_id)
        if queue is None:
            return None
        place = next(place for place, one in enumerate(_kin(queue, message_id)) if one.id == message_id)
        message = queue.drop(message_id)
        if message is None:
            return None
        self._dropped = [*self._dropped, (queue, message, place)][-MAX_DROPPED:]
        return message.text

    def undo_drop(self) -> bool:
        """Queue the message that was dropped last, in its old place; False if there is none."""
        if not self._dropped or self._agent is None:
            return False
        queue, message, place = self._dropped.pop()
        if queue in self._agent.message_queues:
            queue.insert(message, place)
        else:
            # Its sub-agent has ended: like the messages that it did not read, the agent gets it.
            self._agent.message_queues[0].put(message)
        return True

    def move(self, message_id: str, rows: int) -> bool:
        """Move a message down, or up if `rows` is negative, among those of its kind; False if it cannot move."""
        queue = self._queue_of(message_id)
        return queue is not None and queue.move(message_id, rows)

    def change_kind(self, message_id: str) -> bool:
        """Turn a steering message into a follow-up, or the reverse; False for a message to a sub-agent."""
        queue = self._queue_of(message_id)
        is_main = self._agent is not None and queue is self._agent.message_queues[0]
        return queue is not None and is_main and queue.change_kind(message_id) is not None

    def _queue_of(self, message_id: str) -> "SteeringQueue | None":
        """Return the queue that has a message, held or waiting."""
        queues = self._agent.message_queues if self._agent is not None else ()
        return next((queue for queue in queues if queue.find(message_id) is not None), None)


def _kin(queue: "SteeringQueue", message_id: str) -> tuple[UserMessage, ...]:
    """Return the messages of a queue that are of the same kind as one of them."""
    message = queue.find(message_id)
    follows = message is not None and message.kind == "follow_up"
    return tuple(one for one in queue.all if (one.kind == "follow_up") == follows)
