"""`docs/behaviour.md` lists every requirement, with modules and tests that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table import table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "behaviour.md"
COUNTS = {"S0": 45, "S1": 28, "S2": 27, "S3": 29, "S4": 91}


def rows() -> dict[str, list[str]]:
    """Return requirement, module and test of the page by number."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| S\d-\d+ ", line)]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert len({number for number, *_ in cells}) == len(cells)
    return {number: rest for number, *rest in cells}


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "docs" / "make_behaviour_page.py"), "--stdout"]
    made = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=100).stdout

    assert made == PAGE.read_text("utf-8"), "run `python docs/make_behaviour_page.py`"


def test_every_requirement_is_listed_once_in_a_sentence() -> None:
    listed = rows()

    assert list(listed) == [f"{name}-{number}" for name, count in COUNTS.items() for number in range(1, count + 1)]
    for number, cells in listed.items():
        words, _, tests = cells
        assert words.endswith("."), number
        assert tests, number


@table("seed", ["S0", "S1", "S2", "S3"])
def test_every_requirement_about_calls_has_a_numbered_test(seed: str) -> None:
    missing = [number for number, (*_, tests) in rows().items() if number.startswith(f"{seed}-") and "::" not in tests]

    assert missing == []
