"""Option parser for commands that change files, by their entries in the table."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .argv import Arguments, is_remote
from .catalogue import CommandFacts

_CUTS = re.compile(r"[\s'\"`(),;:=<>|&+\[\]{}@#%^$]+")
_SHORT = re.compile(r"-\w")


@dataclass(frozen=True, slots=True)
class Write:
    """A path that is changed."""

    path: str
    whole: bool = False
    """True if everything below it is changed, too."""
    below: bool = False
    """True if it may be a directory in which some files are changed."""


def pieces_of(text: str) -> Iterator[str]:
    """Yield everything in a text that may be a path, split wherever a program may split it."""
    for piece in _CUTS.split(text):
        if piece:
            yield piece
            yield from (piece.lstrip("-+?0123456789"),) if piece[0] in "-+?0123456789" else ()
            if _SHORT.match(piece):
                yield from (piece[at:] for at in range(2, min(len(piece), 6)) if len(piece) - at > 3)


def attached_paths(found: Arguments) -> tuple[Write, ...]:
    """Return what may be a path in words with options that the facts do not explain."""
    return tuple(
        Write(piece) for piece in dict.fromkeys(one for word in found.attached for one in (word, *pieces_of(word)))
    )


def scripts_of(entry: CommandFacts, found: Arguments) -> list[str]:
    """Return the operands of a command that are programs."""
    operands = found.operands if entry.scripts == "ALL" else found.operands[1:] if entry.scripts == "REST" else []
    return [operand for operand in operands if not entry.is_plain("", operand)]


def writes_of(name: str, entry: CommandFacts, found: Arguments) -> list[Write]:
    """Return the changes of a command, by its role."""
    whole = found.has(*entry.whole)
    writes = [Write(path, whole) for path in found.written]
    if found.into is not None:
        writes.append(Write(found.into, whole))
    operands = found.operands
    if name == "sed" and not found.has("-e", "-f", "--expression", "--file"):
        operands = operands[1:]  # The first operand is the script.
    if found.has(*entry.removing):
        removed = found.sources if entry.writes == "LAST" else operands[entry.writes == "FIRST" :]
        writes.extend(Write(operand, whole=True) for operand in removed if not is_remote(operand))
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
