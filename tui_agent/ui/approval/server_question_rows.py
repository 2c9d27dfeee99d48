"""Rows of a question of a tool server, or of the agent. Pure."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from tui_agent.protocol.server_question import FormField, ServerQuestion
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import folded, wrapped
from tui_agent.ui.transcript.markdown_blocks import parse_markdown
from tui_agent.ui.transcript.markdown_layout import stacked

_NAME = 40
"""Cells of the name of a server in a title."""


def question_title(question: ServerQuestion) -> str:
    """Return the question as a sentence."""
    if not question.server and question.kind != "plan":
        return "The agent asks you"
    server = one_line(visible(question.server), _NAME)
    match question.kind:
        case "plan":
            return "Accept this plan?"
        case "form":
            return f"The server {server} asks you"
        case "url":
            return f"Open a page for the server {server}?"
        case "sign_in":
            return f"Sign in to the server {server}?"
        case "sampling":
            return f"Let the server {server} ask the model?"


def question_rows(question: ServerQuestion, width: int) -> list[Line]:
    """Return the question: its words, its page, and the fields of its form."""
    if question.kind == "plan":
        return stacked([unit.block for unit in parse_markdown(visible(question.message))], width)
    rows = wrapped([(visible(question.message), "")], width) if question.message else []
    if question.url:
        host = urlsplit(question.url).hostname or ""
        rows += [Line(), *folded([(visible(question.url), "strong")], width)]
        rows += wrapped([("a page of ", "muted"), (visible(host), "strong")], width)
    if not question.server:
        return [*rows, *_asked_rows(question.fields, width)]
    if question.kind == "form":
        rows.append(Line())
        for field in question.fields:
            runs: list[Run] = [("· ", "muted"), (visible(field.label), "strong"), (field_note(field), "muted")]
            rows += wrapped(runs, width)
        rows += wrapped([("The server receives your answer: no secrets of other services.", "muted")], width)
    return rows


def field_note(field: FormField) -> str:
    """Return the kind of a field and its limits, for the end of its label."""
    words = {"number": "number", "integer": "whole number", "flag": "yes or no", "choices": "several choices"}
    notes = [words[field.kind]] if field.kind in words else [field.format] if field.format else []
    if field.kind == "choice":
        notes.append(f"one of {len(field.choices)}")
    if field.kind in ("number", "integer"):
        limits = [f"from {field.least:g}"] if field.least is not None else []
        limits += [f"to {field.most:g}"] if field.most is not None else []
        notes += [" ".join(limits)] if limits else []
    notes += ["required"] if field.required else []
    notes += ["not saved"] if field.is_secret else []
    return f"  {', '.join(notes)}" if notes else ""


def _asked_rows(fields: Sequence[FormField], width: int) -> list[Line]:
    """Return questions with their choices, for front ends that only show them."""
    rows: list[Line] = []
    for number, field in enumerate(fields, 1):
        head = f"{number}. " if len(fields) > 1 else ""
        note = "  several answers" if field.kind == "choices" else ""
        rows += wrapped([(f"{head}{visible(field.label)}", "strong"), (note, "muted")], width)
        default = field.default if isinstance(field.default, tuple) else (field.default,)
        for place, choice in enumerate(field.choices, 1):
            runs: list[Run] = [(f"   {place}  ", "key"), (visible(choice.label or choice.value), "")]
            runs += [("  default", "muted")] if choice.value in default else []
            runs += [(f"  {visible(choice.description)}", "muted")] if choice.description else []
            rows += wrapped(runs, width)
    return rows
