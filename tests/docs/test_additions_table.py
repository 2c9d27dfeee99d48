"""The table "I want to …" names exactly the files that its existing examples touch."""

import re
from functools import cache
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dev" / "contributing.md").read_text("utf-8")
ROW = re.compile(r"^\| (an? [^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE)
PAGES_WITHOUT_FILES = {"behaviour.md", "commands.md", "keys.md"}
"""Pages that may mention an example without being part of the work."""


@cache
def sources() -> dict[str, str]:
    """Return the text of each file in which an addition may need a line, by its name in the table."""
    package = {
        str(path.relative_to(ROOT / "tui_agent")): path
        for path in (ROOT / "tui_agent").rglob("*")
        if path.suffix in (".py", ".toml")
    }
    themes = {str(path.relative_to(ROOT)): path for path in (ROOT / "themes").iterdir()}
    pages = {
        str(path.relative_to(ROOT)): path
        for path in (ROOT / "docs").glob("*.md")
        if path.name not in PAGES_WITHOUT_FILES
    }
    return {name: f"{name}\n{path.read_text('utf-8')}" for name, path in {**package, **themes, **pages}.items()}


@table(("goal", "examples", "files"), ROWS)
def test_the_files_are_those_that_mention_the_example(goal: str, examples: str, files: str) -> None:
    named = set(re.findall(r"`([\w/.-]+\.(?:py|md|toml))`", files))
    words = [re.escape(word) for word in re.findall(r"`([^`]+)`", examples)]
    mentions = re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])")

    assert named == {name for name, text in sources().items() if mentions.search(text)}, goal
