"""Links and file names in the documentation and in `.ci/long` point to existing files."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.table import table

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tui_agent"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@table("page", PAGES)
def test_every_link_points_to_an_existing_file(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text("utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


@table("page", PAGES)
def test_every_file_named_on_a_page_exists(page: Path) -> None:
    """Names are relative to the package or the repository; names without a directory are examples."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"`((?:[\w.]+/)+\w+\.(?:py|md|toml))`", text)

    places = (ROOT, PACKAGE, ROOT / "tests") if page.name == "behaviour.md" else (ROOT, PACKAGE)
    assert [name for name in names if not any((place / name).is_file() for place in places)] == []


def test_the_long_check_runs_every_benchmark_and_tests_that_exist() -> None:
    text = ROOT.joinpath(".ci/long").read_text("utf-8")
    loop = re.findall(r"for name in (.*); do", text)[0].split()
    benchmarks = {*loop, *re.findall(r"tests\.benchmarks\.(\w+)", text)}
    tests = re.findall(r"\btests/[\w/]+(?:\.\w+)?", text)

    assert {path.stem for path in (ROOT / "tests/benchmarks").glob("[a-z]*.py")} == benchmarks | {"tool_servers"}
    assert [name for name in tests if not (ROOT / name).exists()] == []


ROOM = re.compile(r"^ ?\d? +(\w+)/ +(.*)$")


def chains(diagram: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the room of each chain of the diagram, and its names: those beside each other between two arrows."""
    room = ""
    for line in diagram.splitlines():
        room = found[1] if (found := ROOM.match(line)) else room if line.startswith(" " * 20) else ""
        names = re.split(r"  +", (found[2] if found else line).strip())[0]
        for chain in names.rstrip(";").split("; ") if room and "→" in names else ():
            yield room, [re.findall(r"\w+", group) for group in chain.split("→")]


def imported_by(room: str, name: str) -> set[str]:
    """Return the files and folders of a room that a file or folder of it imports."""
    place = PACKAGE / room / name
    files = [place.with_suffix(".py")] if place.with_suffix(".py").is_file() else sorted(place.rglob("*.py"))
    assert files, f"{room}/{name} does not exist"
    text = "\n".join(path.read_text("utf-8") for path in files)
    lines = re.findall(
        r"^ *from (?:tui_agent\.\w+)?\.(\w*).* import (.*)|import_module\(f?\"\.(\w+)", text, re.MULTILINE
    )
    return {name for module, names, late in lines for name in (module, late, *("" if module else names).split(", "))}


def test_every_arrow_of_the_diagram_is_an_import() -> None:
    diagram = (ROOT / "docs/dev/architecture.md").read_text("utf-8").split("```")[1]
    found = list(chains(diagram))

    assert len(found) > 20
    for room, groups in found:
        for importers, imported in itertools.pairwise(groups):
            known = set[str]().union(*(imported_by(room, name) for name in importers))
            assert set(imported) <= known, f"{room}: {importers} → {set(imported) - known}"
        assert all(imported_by(room, name) is not None for name in groups[-1])
