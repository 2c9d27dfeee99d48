"""The conversation as a file in the form that hooks know, for their `transcript_path`."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tui_agent.hook_files.tool_vocabulary import foreign_input, foreign_name
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
)
from tui_agent.protocol.regular_file import make_private_directories

FILE_NAME = "transcript.jsonl"


class HookTranscript:
    """Appends the messages of one session to a private file, one JSON object a line."""

    def __init__(self, path: Path, session_id: str, working_dir: Path) -> None:
        self.path = path
        """The file; it exists after the first `update`."""
        self._session_id = session_id
        self._working_dir = working_dir
        self._written: set[str] = set()
        self._last: str | None = None

    def update(self, messages: Sequence[Message]) -> None:
        """Append the messages that the file lacks. Blocks.

        Raises:
            OSError: the file cannot be written.
        """
        is_first = self._last is None
        new = [message for message in messages if message.id not in self._written]
        if not new and not is_first:
            return
        lines = [f"{json.dumps(self._line(message), ensure_ascii=False)}\n" for message in new]
        make_private_directories(self.path.parent)
        # A session that is resumed begins a new file: the old one may lack its end.
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if is_first else os.O_APPEND)
        with os.fdopen(os.open(self.path, flags, 0o600), "wb") as file:
            file.write("".join(lines).encode("utf-8", "replace"))
        self._written.update(message.id for message in new)
        self._last = new[-1].id if new else ""

    def _line(self, message: Message) -> JsonObject:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        own: JsonObject = {"role": role, "content": self._content(message)}
        if isinstance(message, AssistantMessage):
            usage = message.usage
            own |= {"id": message.id, "type": "message", "model": message.model, "stop_reason": message.stop_reason}
            own["usage"] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        parent, self._last = self._last or None, message.id
        return {
            "type": role,
            "uuid": message.id,
            "parentUuid": parent,
            "sessionId": self._session_id,
            "timestamp": datetime.fromtimestamp(message.timestamp / 1000, UTC).isoformat(timespec="milliseconds"),
            "cwd": str(self._working_dir),
            "isSidechain": False,
            "message": own,
        }

    def _content(self, message: Message) -> object:
        if isinstance(message, ToolResultMessage):
            result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
            return [result | ({"is_error": True} if message.is_error else {})]
        blocks = [self._block(block) for block in message.content]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        return texts[0] if message.role == "user" and len(texts) == len(blocks) == 1 else blocks

    def _block(self, block: object) -> JsonObject:
        match block:
            case TextBlock(text=text):
                return {"type": "text", "text": text}
            case ThinkingBlock(thinking=thinking):
                return {"type": "thinking", "thinking": thinking}
            case ToolCall(id=call_id, name=name, arguments=arguments):
                given = foreign_input(name, arguments, self._working_dir)
                return {"type": "tool_use", "id": call_id, "name": foreign_name(name), "input": given}
            case _:
                # The data of an image would make the file large.
                return {"type": str(getattr(block, "type", "other"))}
