"""The input of a call as a text for an editor. Pure.

A command, the content of a written file and the new text of an edit are edited as they are, anything else as JSON.
"""

import json
import re
from pathlib import PurePath

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.text.code_highlighter import language_of
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible

_NEW_TEXTS = {"content": "the content of", "new_string": "the new text in"}
"""Arguments with the new text of a file, and what the user edits."""
_LONGEST_NAME = 40
_SUFFIX = re.compile(r"\.\w{1,16}", re.ASCII)


class InputEdit:
    """The text to edit, and the input that an edited text describes."""

    def __init__(self, request: ApprovalRequest) -> None:
        self._args = request.args
        command = _command_name(request)
        is_plan = request.question is not None and request.question.kind == "plan"
        self._name = "plan" if is_plan else command or _new_text_name(request)
        path = request.args.get("path")
        file = PurePath(path).name if isinstance(path, str) else ""
        suffix = PurePath(file).suffix
        whole = json.dumps(request.args, ensure_ascii=False, indent=2, default=str)
        if not _SUFFIX.fullmatch(suffix):
            suffix = ".txt"
        self.text = str(request.args[self._name]) if self._name is not None else _UNSAFE.sub(_escaped, whole)
        """The text to be edited."""
        self.language = "json" if self._name is None else "bash" if command else language_of(file)
        """The language to highlight."""
        self.file_name = "input.json" if self._name is None else "command.sh" if command else f"text{suffix}"
        """A file name for another editor."""
        self.subject = "the input as JSON" if self._name is None else "the command"
        """Description of the edited text."""
        if is_plan:
            self.language, self.file_name, self.subject = "markdown", "plan.md", "the plan"
        if self._name in _NEW_TEXTS:
            self.subject = f"{_NEW_TEXTS[self._name]} {one_line(visible(str(path or file)), _LONGEST_NAME)}".strip()

    def read(self, text: str) -> JsonObject:
        """Return the input that an edited text describes.

        Raises:
            ValueError: the text is not valid; the error's text is for the user.
        """
        if self._name is not None:
            if not text.strip() and self._name not in _NEW_TEXTS:
                raise ValueError("nothing is left to run")
            return {**self._args, self._name: text}
        try:
            found: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"this is not valid JSON: {error}") from error
        if not is_object(found):
            raise ValueError("the input must be a JSON object: { … }")
        return found


_UNSAFE = re.compile(r"[^\n\x20-\x7e]")


def _command_name(request: ApprovalRequest) -> str | None:
    """Return the name of the argument that the preview shows as a command; None if part of it is invisible."""
    preview = request.preview
    if preview is None or preview.kind != "command" or visible(preview.text) != preview.text:
        return None
    return next((name for name, value in request.args.items() if value == preview.text), None)


def _new_text_name(request: ApprovalRequest) -> str | None:
    """Return the name of the argument with the new text of the file that the preview shows.

    None if an editor would not show all of it, or would change it: invisible characters, line ends other than LF.
    """
    if request.preview is None or request.preview.kind != "diff":
        return None
    for name in _NEW_TEXTS:
        value = request.args.get(name)
        if isinstance(value, str):
            plain = value.replace("\t", " ")
            return name if sanitise(plain) == plain else None
    return None


def _escaped(match: re.Match[str]) -> str:
    """Return a visible character as it is, an invisible one as JSON escapes it."""
    return match[0] if visible(match[0]) == match[0] else json.dumps(match[0])[1:-1]
