"""Lists of commands in `tests/permissions`, for tests that judge them and for tests that run them."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "permissions"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


@cache
def corpus(name: str) -> tuple[str, ...]:
    """Return the commands of one list, such as `hostile_commands`."""
    text = (FOLDER / f"{name}.txt").read_bytes().decode("utf-8")
    return tuple(text.rstrip("\n").split("\n%%\n")[1:])


def all_commands() -> tuple[str, ...]:
    """Return the commands of all lists, each once."""
    return tuple(dict.fromkeys(command for name in NAMES for command in corpus(name)))
