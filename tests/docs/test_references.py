"""Links and file names in the documentation and in `.ci/long` point to existing files."""

import re
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
