"""Writes `docs/behaviour.md`: each requirement, the modules that name it, and the tests that carry its number.

`python docs/make_behaviour_page.py` writes the page; with `--stdout` it is only printed. Requirements stand in
`docs/requirements.toml`. A module serves a requirement when it names it (`S0-27`, `S4-18…S4-20`); a test checks it when
its name carries the number (`test_s0_27_…`). A requirement without such a test is listed as what it is.
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

What is required of the engine, which module does it, and which test holds it. This page is written by
`python docs/make_behaviour_page.py` from `docs/requirements.toml`, from the numbers that modules name, and from the
numbers in the names of tests; a test compares it with what the script writes now. "no numbered test yet" means that no
test carries the number, not that nothing tests the behaviour.
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
    """The whole page."""
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
    """Every requirement in short words, in order."""
    record = tomllib.loads((ROOT / "docs" / "requirements.toml").read_text("utf-8"))
    return {
        (int(name.removeprefix("S")), int(number)): words
        for name, sentences in record.items()
        for number, words in sentences.items()
    }


def mentions() -> Mapping[Number, list[str]]:
    """The modules that name each requirement, by their place in the package."""
    found: defaultdict[Number, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tui_agent").rglob("*.py")):
        name = path.relative_to(ROOT / "tui_agent").as_posix()
        for number in sorted(set(_named_in(path.read_text("utf-8")))):
            found[number].append(name)
    return found


def numbered_tests() -> Mapping[Number, list[str]]:
    """The tests that carry each number, as `file::test`."""
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
    """Writes or prints the page."""
    arguments = argparse.ArgumentParser(description="Writes docs/behaviour.md.")
    arguments.add_argument("--stdout", action="store_true", help="print the page instead of writing it")
    if arguments.parse_args().stdout:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
