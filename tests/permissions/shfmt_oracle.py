"""A second bash parser (`shfmt`), for comparison with ours.

Both results are converted to one form: nested tuples of words, reduced to the parts that matter for judging.
"""

import json
import re
import subprocess
from functools import cache, partial
from typing import Any

from tests.support.programs import development_program
from tui_agent.permissions.shell.syntax import (
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
)

_shfmt = cache(partial(development_program, "shfmt"))

Form = tuple[Any, ...]

NOTHING: Form = ("nothing",)
"""Form of a statement without words to compare."""

_GRAMMAR_COMMANDS = {"[[", "export", "declare", "typeset", "readonly", "local", "unset", "let", "nameref"}


def parse(text: str) -> dict[str, Any] | None:
    """Return shfmt's tree of a text, or None if it rejects it."""
    done = subprocess.run([_shfmt(), "--to-json", "-ln", "bash"], input=text.encode(), capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def our_form(statement: Statement) -> Form:
    """Convert our statements."""
    match statement:
        case SimpleCommand():
            return _call([word.text or word.value for word in statement.words])
        case Sequence():
            return _several([our_form(part) for part in statement.parts])
        case Conditional():
            parts = [our_form(statement.first)]
            for operator, part in statement.rest:
                parts += [(operator,), our_form(part)]
            return ("chain", *parts)
        case Pipeline():
            return ("pipe", *(our_form(part) for part in statement.parts))
        case Subshell():
            return ("apart", our_form(statement.body))
        case Branches():
            return _several([our_form(part) for part in statement.parts])
        case ForEach():
            return our_form(statement.body)
        case Definition():
            return ("function", our_form(statement.body))
        case Unsupported():
            return NOTHING


def their_form(text: str, tree: dict[str, Any]) -> Form:
    """Convert shfmt's tree."""
    return _Theirs(text).several(tree.get("Stmts", []))


class _Theirs:
    def __init__(self, text: str) -> None:
        self._source = text.encode("utf-8")

    def several(self, statements: list[Any]) -> Form:
        return _several([self.statement(statement) for statement in statements])

    def statement(self, statement: dict[str, Any]) -> Form:
        command = statement.get("Cmd")
        form = self.command(command) if command else NOTHING
        return ("apart", form) if statement.get("Background") else form

    def command(self, command: dict[str, Any]) -> Form:
        match command["Type"]:
            case "CallExpr":
                return _call([self.text(word) for word in command.get("Args", [])])
            case "BinaryCmd":
                return self.binary(command)
            case "Subshell":
                return ("apart", self.several(command.get("Stmts", [])))
            case "Block":
                return self.several(command.get("Stmts", []))
            case "TimeClause":
                return self.statement(command["Stmt"]) if command.get("Stmt") else NOTHING
            case "FuncDecl":
                return ("function", self.statement(command["Body"]))
            case "DeclClause" | "TestClause" | "LetClause":
                return NOTHING
            case "ArithmCmd":
                return NOTHING
            case _:
                return _several([self.several(found) for found in self.bodies(command)])

    def bodies(self, command: dict[str, Any]) -> list[list[Any]]:
        """Yield every list of statements of an `if`, a loop or a `case`, in the order of the text."""
        found: list[list[Any]] = []
        for name in ("Cond", "Then", "Else", "Do"):
            value = command.get(name)
            if isinstance(value, list):
                found.append(value)
            elif isinstance(value, dict):
                found.extend(self.bodies(value))
        found.extend(item.get("Stmts", []) for item in command.get("Items", []))
        return found

    def binary(self, command: dict[str, Any]) -> Form:
        at = command["OpPos"]["Offset"]
        operator = self._source[at : at + 2].decode("latin-1")
        left, right = self.statement(command["X"]), self.statement(command["Y"])
        if operator in ("&&", "||"):
            return ("chain", *(left[1:] if left[0] == "chain" else (left,)), (operator,), right)
        return ("pipe", *(left[1:] if left[0] == "pipe" else (left,)), *(right[1:] if right[0] == "pipe" else (right,)))

    def text(self, word: dict[str, Any]) -> str:
        return self._source[word["Pos"]["Offset"] : word["End"]["Offset"]].decode("utf-8", "replace")


def _several(forms: list[Form]) -> Form:
    """Flatten statements in a row, whatever braces, loops and branches group them."""
    row: list[Form] = []
    for form in forms:
        row.extend(form[1:] if form[0] == "several" else [form])
    row = [form for form in row if form != NOTHING]
    if not row:
        return NOTHING
    return row[0] if len(row) == 1 else ("several", *row)


def _call(words: list[str]) -> Form:
    words = [word.replace("\\\n", "") for word in words]
    while words and words[0] in ("time", "-p", "--") and "time" in (words[0], *words[:1]):
        words = words[1:]
        while words and (words[0] in ("-p", "--") or re.match(r"[A-Za-z_]\w*\+?=", words[0])):
            words = words[1:]
    if not words or words[0] in _GRAMMAR_COMMANDS or "=" in words[0]:
        return NOTHING
    return ("call", *words)
