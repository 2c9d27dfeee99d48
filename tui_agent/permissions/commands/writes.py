"""Option parser for commands that change files, by their entries in the table."""

from dataclasses import dataclass

from .argv import Arguments, is_remote
from .catalogue import CommandFacts


@dataclass(frozen=True, slots=True)
class Write:
    """A path that is changed."""

    path: str
    whole: bool = False
    """True if everything below it is changed, too."""
    below: bool = False
    """True if it may be a directory in which some files are changed."""


def writes_of(name: str, entry: CommandFacts, found: Arguments) -> list[Write]:
    """Return the changes of a command, by its role."""
    whole = found.has(*entry.whole)
    writes = [Write(path, whole) for path in found.written]
    if found.into is not None:
        writes.append(Write(found.into, whole))
    operands = found.operands
    if name == "sed" and not found.has("-e", "-f", "--expression", "--file"):
        operands = operands[1:]  # The first operand is the script.
    is_active = (not entry.needed or found.has(*entry.needed)) and not found.has(*entry.preventing)
    if not is_active or not operands:
        return writes
    if entry.writes == "ALL" or (name == "install" and found.has("-d", "--directory")):
        writes.extend(Write(operand, whole) for operand in operands)
    elif entry.writes == "FIRST":
        writes.append(Write(operands[0], whole))
    elif entry.writes == "SECOND":
        writes.extend(Write(operand, whole) for operand in operands[1:2])
    elif entry.writes in ("LAST", "MOVE"):
        if not is_remote(found.target):
            writes.extend(_into(found, whole))
        if entry.writes == "MOVE":
            writes.extend(Write(source, whole=True) for source in found.sources)
    return list(dict.fromkeys(writes))


def _into(found: Arguments, whole: bool) -> list[Write]:
    """Return the target and, in case it is a directory, the paths of the sources in it."""
    writes = [Write(found.target, whole)]
    for source in found.sources:
        keeps_path = found.has("--parents", "-R", "--relative")
        name = source.lstrip("/") if keeps_path else source.rstrip("/").rsplit("/", 1)[-1]
        if name not in ("", ".", ".."):
            writes.append(Write(f"{found.target}/{name}"))
    return writes
