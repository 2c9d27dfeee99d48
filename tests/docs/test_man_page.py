"""`docs/tui-agent.1` shows the commands and options of the program."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_man_page", ROOT / "docs" / "make_man_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    made = module.page()

    assert made == (ROOT / "docs" / "tui-agent.1").read_text("utf-8"), "run `python docs/make_man_page.py`"
    assert not [line for line in made.splitlines() if line.startswith("'")]
