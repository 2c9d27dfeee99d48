"""The pages that scripts make from the program show its commands, options and keys."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_manual_page_is_up_to_date() -> None:
    made = script("make_man_page").page()

    assert made == (DOCS / "tui-agent.1").read_text("utf-8"), "run `python docs/make_man_page.py`"
    assert not [line for line in made.splitlines() if line.startswith("'")]


def test_the_pages_of_keys_and_commands_are_up_to_date() -> None:
    for name, page in script("make_reference_pages").PAGES.items():
        assert page() == (DOCS / name).read_text("utf-8"), "run `python docs/make_reference_pages.py`"
