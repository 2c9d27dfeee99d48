"""Questions of tool servers and of the agent to the user: forms, pages to open, and requests to the model.

Plain data, with checks.

A question travels as a request for approval (`ApprovalRequest.question`). An approval of a form has the values as its
`input`.
"""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal, TypeAlias

from .messages import FrozenModel, JsonObject, is_array

FieldValue: TypeAlias = str | int | float | bool | list[str] | None
FieldKind: TypeAlias = Literal["text", "number", "integer", "flag", "choice", "choices"]

_SECRET = re.compile(
    r"passw|passphrase|secret|token|credential|api[ _-]?key|private[ _-]?key|(?:^|[^a-z])(?:pin|otp|cvv)(?:$|[^a-z])",
    re.IGNORECASE,
)
_SECRET_FORMATS = ("password", "secret")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_TRUE, _FALSE = ("yes", "y", "true", "on", "1"), ("no", "n", "false", "off", "0")


class FieldChoice(FrozenModel):
    """One value to choose from."""

    value: str
    label: str = ""
    """The value in the server's words; empty: the value itself."""
    description: str = ""
    """Explanation for the user; empty for none."""


class FormField(FrozenModel):
    """One field of a form."""

    name: str
    """Name in the answer."""
    kind: FieldKind = "text"
    title: str = ""
    description: str = ""
    required: bool = False
    default: str | int | float | bool | tuple[str, ...] | None = None
    choices: tuple[FieldChoice, ...] = ()
    is_open: bool = False
    """True if another text than the choices is an answer, too."""
    format: str = ""
    """`email`, `uri`, `date`, `date-time`, `password` or empty."""
    least: float | None = None
    """Least number, length of a text, or number of choices."""
    most: float | None = None
    """Greatest number, length of a text, or number of choices."""

    @property
    def label(self) -> str:
        """The title or, without one, the name."""
        return self.title or self.name

    @property
    def is_secret(self) -> bool:
        """True if the value looks like a secret: it is masked, and never written to the journal."""
        if self.is_open:
            return False
        return self.format in _SECRET_FORMATS or any(_SECRET.search(text) for text in (self.name, self.title))

    def read(self, text: str) -> FieldValue:
        """Return the value of a typed text; None for an empty one.

        Raises:
            ValueError: the text is not a value of this kind.
        """
        if not text.strip():
            return None
        match self.kind:
            case "number" | "integer":
                return _number(text, whole=self.kind == "integer")
            case "flag":
                if (word := text.strip().lower()) not in (*_TRUE, *_FALSE):
                    raise ValueError("type yes or no")
                return word in _TRUE
            case "choice":
                return self._typed_choice(text.strip())
            case "choices":
                return [self._typed_choice(part.strip()) for part in text.split(",") if part.strip()]
            case "text":
                return text

    def check(self, value: object) -> FieldValue:
        """Return a value that an answer may have.

        Raises:
            ValueError: it may not; the text has the reason.
        """
        match self.kind, value:
            case "text", str():
                self._check_size(len(value), "characters")
                _check_format(self.format, value)
                return value
            case (("number" | "integer"), (int() | float())) if not isinstance(value, bool):
                if not _is_finite(value) or (self.kind == "integer" and value != int(value)):
                    raise ValueError("a whole number is expected" if self.kind == "integer" else "not a number")
                self._check_size(value, "")
                return int(value) if self.kind == "integer" else value
            case "flag", bool():
                return value
            case "choice", str():
                return self._choice(value)
            case "choices", _ if is_array(value):
                chosen = [self._choice(part) for part in value if isinstance(part, str)]
                if len(chosen) != len(value) or len(set(chosen)) != len(chosen):
                    raise ValueError("different texts are expected")
                self._check_size(len(chosen), "choices")
                return chosen
            case _:
                raise ValueError(f"{_EXPECTED[self.kind]} is expected")

    def _typed_choice(self, text: str) -> str:
        """Return the choice that a text names, also by its number from 1."""
        is_named = any(text in (choice.value, choice.label) for choice in self.choices)
        if not is_named and text.isdecimal() and 0 < int(text) <= len(self.choices):
            return self.choices[int(text) - 1].value
        return self._choice(text)

    def _choice(self, text: str) -> str:
        for choice in self.choices:
            if text in (choice.value, choice.label):
                return choice.value
        if self.is_open and text.strip():
            return text.strip()
        raise ValueError("it is not one of the choices")

    def _check_size(self, size: float, unit: str) -> None:
        if self.least is not None and size < self.least:
            raise ValueError(f"at least {self.least:g} {unit}".rstrip())
        if self.most is not None and size > self.most:
            raise ValueError(f"at most {self.most:g} {unit}".rstrip())


def _is_finite(value: float) -> bool:
    """True for a number that fits a float; an integer may be too long for one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


_EXPECTED = {
    "text": "text",
    "number": "a number",
    "integer": "a whole number",
    "flag": "true or false",
    "choice": "one of the choices",
    "choices": "a list of choices",
}


class ServerQuestion(FrozenModel):
    """A question of a tool server, or of the agent."""

    server: str
    """Name of the server; empty if the agent asks."""
    kind: Literal["form", "url", "sign_in", "sampling", "plan"]
    """A form to fill in; a page that the server wants the user to open; the sign-in page of the server, with a field
    for the address it leads to; a request to the model; a plan of the agent in Markdown, as the message."""
    message: str = ""
    """The question in the server's words, with escapes for hidden characters."""
    fields: tuple[FormField, ...] = ()
    url: str = ""
    """The page to open; nothing opens it by itself."""

    def content(self, values: Mapping[str, object]) -> dict[str, FieldValue]:
        """Return the values of an answer, checked; fields without a value that need none are left out.

        Raises:
            ValueError: a field is unknown or missing, or its value is wrong; the text names it.
        """
        fields = {field.name: field for field in self.fields}
        if unknown := next((name for name in values if name not in fields), None):
            raise ValueError(f"the form has no field {unknown}")
        found: dict[str, FieldValue] = {}
        for name, field in fields.items():
            value = values.get(name)
            if value is None:
                if field.required:
                    raise ValueError(f"{field.label}: a value is required")
                continue
            try:
                found[name] = field.check(value)
            except ValueError as error:
                raise ValueError(f"{field.label}: {error}") from error
        return found

    def public(self, values: Mapping[str, object]) -> JsonObject:
        """Return the values of an answer for the journal, without those of secret fields."""
        secret = {field.name for field in self.fields if field.is_secret}
        return {name: value for name, value in values.items() if name not in secret}


def _number(text: str, *, whole: bool) -> int | float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise ValueError("a whole number is expected" if whole else "a number is expected") from None


def _check_format(name: str, value: str) -> None:
    """Check the format of a text."""
    if name == "email" and not _EMAIL.fullmatch(value):
        raise ValueError("an e-mail address is expected")
    if name == "uri" and not _URI.fullmatch(value):
        raise ValueError("an address such as https://example.com is expected")
    try:
        if name == "date":
            date.fromisoformat(value)
        elif name == "date-time":
            datetime.fromisoformat(value)
    except ValueError:
        example = "2026-03-31" if name == "date" else "2026-03-31T12:00:00Z"
        raise ValueError(f"a {name.replace('-', ' and ')} such as {example} is expected") from None
