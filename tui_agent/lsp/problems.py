"""Problems that a language server finds in a file, and the text that the model gets of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tui_agent.protocol.messages import JsonObject, is_array, is_object

MOST_LINES = 20
_LONGEST = 300
_ERROR, _WARNING, _INFORMATION = 1, 2, 3
_NAMES = {_ERROR: "error", _WARNING: "warning", _INFORMATION: "remark"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One diagnostic."""

    line: int
    """Line number, from 1."""
    column: int
    """Column from 1, in UTF-16 units."""
    severity: int
    """1: error, 2: warning, 3: remark."""
    message: str
    source: str
    """Program and rule, such as `ruff F401`."""

    @property
    def identity(self) -> tuple[object, ...]:
        """The problem without its place, which other changes move."""
        return self.severity, self.message, self.source


@dataclass(frozen=True, slots=True)
class Findings:
    """Problems of one file after a change."""

    new: Sequence[Problem] = ()
    """Problems that were not there before, errors first."""
    known: int = 0
    """Number of those that were."""
    late: Sequence[str] = ()
    """Servers that have not answered yet."""
    is_compared: bool = True
    """False if the text before is not known, so that every problem counts as new."""

    @property
    def counts(self) -> str:
        """The new problems as numbers, such as `2 errors`; empty if there are none."""
        found = Counter(problem.severity for problem in self.new)
        numbers = [(found[severity], name) for severity, name in _NAMES.items() if found[severity]]
        return ", ".join(f"{number} {name if number == 1 else f'{name}s'}" for number, name in numbers)

    def text(self, shown: str) -> str:
        """Return the findings for the model; empty if there is nothing to say."""
        lines = [
            f"{shown}:{one.line}:{one.column}: {_NAMES[one.severity]}: {one.message} ({one.source})"
            for one in self.new[:MOST_LINES]
        ]
        if lines:
            beside = f" ({self.known} that were there before are not listed)" if self.known else ""
            heading = f"New problems after this change{beside}" if self.is_compared else "Problems in this file"
            lines.insert(0, f"{heading}:")
        if len(self.new) > MOST_LINES:
            lines.append(f"… and {len(self.new) - MOST_LINES} more")
        if self.late:
            verb = "is" if len(self.late) == 1 else "are"
            lines.append(f"[{' and '.join(self.late)} {verb} still checking; new problems follow in a later step]")
        return "\n".join(lines)


def parse_problems(items: object, server: str) -> list[Problem]:
    """Return the problems of a list of diagnostics; what cannot be read, and hints, are left out."""
    found = (_problem(item, server) for item in (items if is_array(items) else ()))
    return [problem for problem in found if problem is not None]


def new_problems(before: Iterable[Problem], after: Iterable[Problem]) -> tuple[list[Problem], int]:
    """Return the problems that were not there before, errors first, and the number of those that were."""
    # Counted, because the same problem may be in a file several times.
    left = Counter(problem.identity for problem in before)
    new: list[Problem] = []
    known = 0
    for problem in sorted(after, key=lambda one: (one.severity, one.line, one.column)):
        if left[problem.identity] > 0:
            left[problem.identity] -= 1
            known += 1
        else:
            new.append(problem)
    return new, known


def _problem(item: object, server: str) -> Problem | None:
    if not is_object(item):
        return None
    line, column = start_of(item.get("range"))
    severity = item.get("severity", _ERROR)
    message = item.get("message")
    if not isinstance(severity, int) or severity not in _NAMES or not isinstance(message, str):
        return None
    # Servers put explanations below, and hard spaces into them.
    text = " ".join(message.partition("\n\n")[0].split())
    source, code = item.get("source"), item.get("code")
    origin = [source if isinstance(source, str) and source else server]
    origin += [str(code)] if isinstance(code, str | int) else []
    return Problem(line + 1, column + 1, severity, text[:_LONGEST], " ".join(" ".join(origin).split()))


def path_of(uri: object) -> Path | None:
    """Return the path of a `file:` URI, however it is encoded; None for anything else."""
    try:
        parts = urlsplit(uri if isinstance(uri, str) else "")
    except ValueError:  # Such as an open bracket of an IPv6 address.
        return None
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.path.startswith("/") else None


def start_of(extent: object) -> tuple[int, int]:
    """Return line and column, from 0, at which a range of the protocol starts; zeros if it is not a range."""
    start: object = extent.get("start") if is_object(extent) else None
    return position_of(start if is_object(start) else {})


def position_of(position: JsonObject) -> tuple[int, int]:
    """Return line and column of a position of the protocol, from 0, the column in UTF-16 units; 0 for a missing one."""
    line, column = position.get("line"), position.get("character")
    return (line if isinstance(line, int) else 0, column if isinstance(column, int) else 0)
