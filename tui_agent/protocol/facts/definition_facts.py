"""Skills, command files and sub-agents."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DefinitionFact:
    """One definition, or the reason why one is not used."""

    kind: str
    """`skill`, `command` or `sub-agent`."""
    name: str
    description: str = ""
    file: str = ""
    problem: str = ""
    """The reason with file and line; empty if it is used."""
