"""Resize events carry the current size of the window."""

import re
from pathlib import Path

import pytest
from textual.events import Resize
from textual.geometry import Size

import tui_agent.ui
from tui_agent.ui.app.terminal_driver import with_current_size


def test_a_late_resize_event_gets_the_current_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "30")

    event = with_current_size(Resize(Size(1, 1), Size(1, 1)))

    assert (event.size, event.virtual_size, event.pixel_size) == (Size(100, 30), Size(100, 30), None)
    by_terminal = Resize.from_dimensions((80, 24), (800, 480))
    assert with_current_size(by_terminal) is by_terminal


def test_no_style_uses_window_units() -> None:
    """Textual caches such a measure, also of a window that was tiny for a moment only."""
    sources = [path for path in Path(tui_agent.ui.__file__).parent.rglob("*") if path.suffix in (".py", ".tcss")]

    assert len(sources) > 50
    assert [path.name for path in sources if re.search(r"\d(vh|vw)\b", path.read_text())] == []
