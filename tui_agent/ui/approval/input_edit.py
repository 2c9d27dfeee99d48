"""A call's input as text that a person may change before it runs. Pure."""

import json
import re

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.text.sanitiser import visible


class InputEdit:
    """One input: a command as it is where everything in it can be seen, anything else as JSON."""

    def __init__(self, request: ApprovalRequest) -> None:
        self._args = request.args
        self._name = _command_name(request)
        self.is_json = self._name is None
        """Whether the text is JSON."""
        whole = json.dumps(request.args, ensure_ascii=False, indent=2, default=str)
        self.text = str(request.args[self._name]) if self._name is not None else _UNSAFE.sub(_escaped, whole)
        """What is to be changed."""

    def read(self, text: str) -> JsonObject:
        """The input that a changed text means.

        Raises:
            ValueError: it means none; with words for a person.
        """
        if self._name is not None:
            if not text.strip():
                raise ValueError("nothing is left to run")
            return {**self._args, self._name: text}
        try:
            found: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is no JSON: {error}") from error
        if not is_object(found):
            raise ValueError("the input is a JSON object: { … }")
        return found


_UNSAFE = re.compile(r"[^\n\x20-\x7e]")


def _command_name(request: ApprovalRequest) -> str | None:
    """The argument that is the command the preview shows; None also where not everything in it can be seen."""
    preview = request.preview
    if preview is None or preview.kind != "command" or visible(preview.text) != preview.text:
        return None
    return next((name for name, value in request.args.items() if value == preview.text), None)


def _escaped(match: re.Match[str]) -> str:
    """A character of a JSON text as it is where it can be seen, else as JSON escapes it."""
    return match[0] if visible(match[0]) == match[0] else json.dumps(match[0])[1:-1]
