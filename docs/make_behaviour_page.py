"""Write `docs/behaviour.md`: each requirement, the modules that name it, and the tests with its number in their names.

`python docs/make_behaviour_page.py` writes the page; with `--stdout` it prints it. The requirements come from
`docs/requirements.toml`. A module serves a requirement if it names it (`S0-27`, `S4-18…S4-20`). A test checks it if its
name has the number (`test_s0_27_…`). The page also lists requirements without such a test.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "behaviour.md"

Number = tuple[int, int]
"""Document and requirement: S0-27 is `(0, 27)`."""

HEAD = """\
# Behaviour

The requirements of the engine, with the modules that implement each and the tests that check it.
`python docs/make_behaviour_page.py` writes this page from `docs/requirements.toml`, the numbers in modules and the
numbers in the names of tests; a test checks that it is up to date. "no numbered test yet" means that no test has the
number in its name, although other tests may check the behaviour.
"""

TITLES = (
    "three strategies, steering, hooks",
    "permissions, plan mode, streaming",
    "ordered parallel execution",
    "streaming executor",
    "the agent loop",
)

_MENTION = re.compile(r"\bS([0-4])-(\d+)(?:\s*(?:…|–|\.\.\.)\s*(?:S\1-)?(\d+))?")
_CARRIED = re.compile(r"(?<=_)s([0-4])_(\d+)(?=_|$)")


def page() -> str:
    """Return the whole page."""
    wanted, served, tested = requirements(), mentions(), numbered_tests()
    counted = sum(number in tested for number in wanted)
    lines = [HEAD, f"{counted} of {len(wanted)} requirements have a numbered test."]
    for document, title in enumerate(TITLES):
        lines += ["", f"## S{document}: {title}", "", "| | requirement | module | test |", "|---|---|---|---|"]
        for number, words in wanted.items():
            if number[0] == document:
                modules, tests = _listed(served.get(number, [])), _listed(tested.get(number, []))
                lines.append(f"| S{document}-{number[1]} | {words} | {modules} | {tests or 'no numbered test yet'} |")
    return "\n".join(lines) + "\n"


def requirements() -> dict[Number, str]:
    """Return every requirement as a sentence, in order."""
    record = tomllib.loads((ROOT / "docs" / "requirements.toml").read_text("utf-8"))
    return {
        (int(name.removeprefix("S")), int(number)): words
        for name, sentences in record.items()
        for number, words in sentences.items()
    }


def mentions() -> Mapping[Number, list[str]]:
    """Return the modules that name each requirement, by their paths in the package."""
    found: defaultdict[Number, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tui_agent").rglob("*.py")):
        name = path.relative_to(ROOT / "tui_agent").as_posix()
        for number in sorted(set(_named_in(path.read_text("utf-8")))):
            found[number].append(name)
    return found


def numbered_tests() -> Mapping[Number, list[str]]:
    """Return the tests with each number in their names, as `file::test`."""
    found: defaultdict[Number, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for document, number in _CARRIED.findall(node.name):
                    found[int(document), int(number)].append(f"{name}::{node.name}")
    return found


def _named_in(text: str) -> Iterator[Number]:
    for document, first, last in _MENTION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield int(document), number


def _listed(names: list[str]) -> str:
    return "<br>".join(f"`{name}`" for name in sorted(names))


def main() -> None:
    """Write or print the page."""
    arguments = argparse.ArgumentParser(description="Write docs/behaviour.md.")
    arguments.add_argument("--stdout", action="store_true", help="print the page instead of writing it")
    if arguments.parse_args().stdout:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
