"""`docs/events.md` is the current output of its script."""

import difflib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.envelope import event_classes

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "events.md"


def made_now(hash_seed: str) -> str:
    """Return the script's output; the seed decides the iteration order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(ROOT / "docs" / "make_events_page.py"), "--stdout"]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, env=environment, timeout=100
    ).stdout


@pytest.mark.slow
def test_the_page_is_up_to_date_and_does_not_depend_on_the_hash_seed() -> None:
    made, kept = made_now("1"), PAGE.read_text("utf-8")

    change = "\n".join(difflib.unified_diff(kept.splitlines(), made.splitlines(), "committed", "now", lineterm=""))
    assert made == kept, f"run `python docs/make_events_page.py`:\n{change}"
    assert made_now("2") == made


@table("name", event_classes())
def test_every_event_has_its_entry_with_every_field(name: str) -> None:
    page = PAGE.read_text("utf-8")
    entry = page.partition(f"#### `{name}`\n")[2].split("\n#")[0]

    assert entry.strip(), f"no entry for {name}"
    fields = [line.split("`")[1] for line in entry.splitlines() if line.startswith("- ")]
    assert fields == [field for field in event_classes()[name].model_fields if field != "type"]
