"""Settings for the page that lists and changes them."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

SettingKind: TypeAlias = Literal["switch", "choice", "number", "text", "list", "table"]
"""Form of a value; a table is changed only in the file."""
SettingSource: TypeAlias = Literal["default", "your file", "project", "environment", "option"]
"""Layer that a value comes from."""


@dataclass(frozen=True, slots=True)
class SettingFact:
    """One setting; no text in it has a secret."""

    key: str
    """Its dotted key."""
    kind: SettingKind
    value: str
    """The value in force, for reading."""
    default: str
    """The value without any file, for reading."""
    source: SettingSource = "default"
    origin: str = ""
    """File with line, or the variable, that sets the value; empty for a default and an option."""
    meaning: str = ""
    choices: tuple[str, ...] = ()
    """All values of a choice."""
    typed: str = ""
    """The value as the user would type it; empty for a secret."""
    is_stored: bool = False
    """True if the user's file sets it."""
    is_late: bool = False
    """True if a change takes effect at the next start."""
    refusal: str = ""
    """Reason why it cannot be changed here, and where instead; empty if it can."""


@dataclass(frozen=True, slots=True)
class SettingFacts:
    """All settings at one moment."""

    settings: tuple[SettingFact, ...]
    file: str
    """The user's settings file."""
    content: bytes = field(repr=False)
    """Its content at that moment; empty if it does not exist."""
