"""Imports of the SDK without the parts that are not needed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.providers.lean_import import load_names

NAMES = """
import json, sys
{first}
before = len([name for name in sys.modules if name.startswith("anthropic")])
import anthropic
from anthropic._error_classes import ERROR_CLASSES
errors = {{str(key): [one.__name__ for one in kind.__mro__] for key, kind in ERROR_CLASSES.items()}}
from anthropic import *
public = sorted(name for name in anthropic.__all__ if hasattr(anthropic, name))
types = sorted(name for name in dir(anthropic.types.beta) if name[0].isupper() and hasattr(anthropic.types.beta, name))
print(json.dumps([before, public, types, errors]))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a package that modules can be written to."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "made_up"]:
        del sys.modules[name]


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        path = folder / f"{name.replace('_of_', '/').replace('init', '__init__')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def loaded() -> set[str]:
    return {name.removeprefix("made_up.") for name in sys.modules if name.startswith("made_up.")}


def test_the_sdk_loads_no_web_client_of_its_own_choice() -> None:
    script = "import sys, tui_agent.providers.anthropic_sdk; print('aiohttp' in sys.modules); import aiohttp"

    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert printed == "False\n"


def test_what_cannot_be_loaded_lazily_is_loaded_as_always(package: Path) -> None:
    """The child expects a name that `__init__` sets before it imports the child."""
    write(
        package,
        init="READY = True\nfrom .child import Child\n",
        child="from . import READY\nChild = READY",
    )

    assert not load_names("made_up", ["Child"])
    assert loaded() == set()
    assert "made_up" not in sys.modules

    import made_up  # pyright: ignore[reportMissingImports]

    assert made_up.Child


def test_the_sdk_has_all_its_names_and_errors_although_most_of_it_is_loaded_later() -> None:
    lean, whole = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", NAMES.format(first=first)], capture_output=True, text=True, check=True
            ).stdout
        )
        for first in ("import tui_agent.providers.anthropic_sdk", "import anthropic")
    )

    assert lean[0] < whole[0] / 20
    assert lean[1:] == whole[1:]
