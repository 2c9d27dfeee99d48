"""README's pictures are what the replayed sessions of `docs/recordings` show."""

import html
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


def script(name: str) -> ModuleType:
    """One of the scripts in docs."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screenshots: Any = script("make_screenshots")


def test_the_pictures_are_what_the_recordings_show() -> None:
    names: list[str] = []
    for name, picture, text in list(screenshots.pictures()):
        committed = (DOCS / "images" / f"{name}.svg").read_text("utf-8")
        assert words_of(committed) == words_of(picture), f"{name}: python docs/make_screenshots.py takes it anew"
        assert text.split()[0] in "".join(words_of(committed))
        names.append(name)

    # One more moves, and its looks are taken by time.
    assert sorted([*names, "tour-moves"]) == sorted(path.stem for path in (DOCS / "images").glob("*.svg"))


def words_of(svg: str) -> list[str]:
    """Return the texts of a picture."""
    return [html.unescape(text).replace("\xa0", " ") for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg)]
