"""The note that a question of a tool server and its answer leave in the conversation. Pure."""

from tui_agent.protocol.events import ApprovalResolved
from tui_agent.protocol.messages import is_array
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.ui.text.sanitiser import joined_lines, one_line, visible

_LONGEST_MESSAGE = 100
_LONGEST_ANSWER = 60
_WORDS = {
    "form": ("You answered", "You did not answer"),
    "url": ("You agreed to open a page for", "You opened no page for"),
    "sign_in": ("You finished the sign-in to", "You did not sign in to"),
    "sampling": ("You let the model answer", "You let no model answer"),
}


def server_answer_note(question: ServerQuestion, event: ApprovalResolved) -> str:
    """Return the question and its answer in one line."""
    yes, no = _WORDS[question.kind]
    words = yes if event.decision == "approve" else no
    if event.by != "user":
        words = "No one answered" if event.by == "nobody" else "The end of the call closed a question of"
    said = f"{words} the server {visible(question.server)}: {_short(question.message, _LONGEST_MESSAGE)}"
    if question.kind != "form" or event.decision != "approve":
        return said
    labels = {field.name: field.label for field in question.fields}
    values = [f"{labels.get(name, name)} = {_text(value)}" for name, value in (event.answers or {}).items()]
    hidden = [f"{field.label} (not saved)" for field in question.fields if field.is_secret]
    return " · ".join([said, *map(visible, values), *map(visible, hidden)])


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "no answer"}[value]
    return _short(", ".join(map(str, value)) if is_array(value) else str(value), _LONGEST_ANSWER)


def _short(text: str, cells: int) -> str:
    return one_line(joined_lines(visible(text)), cells)
