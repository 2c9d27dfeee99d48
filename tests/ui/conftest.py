"""Tests of the screen wait for the app to be idle, not for time, and share parsed style sheets."""

from collections.abc import Iterator
from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

from tests.support.idle_loop import wait_until_idle


@pytest.fixture(autouse=True)
def quiet_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each press and pause of a pilot wait until the app is at rest."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", wait_until_idle)
    monkeypatch.setattr("textual.app.wait_for_idle", wait_until_idle)
    # On a busy machine, the menu would close before the test has pressed the next key.
    monkeypatch.setattr("tui_agent.ui.composer.prompt_area.OPEN_SECONDS", 600.0)


@pytest.fixture(scope="session", autouse=True)
def shared_style_sheets() -> Iterator[None]:
    """Parse each style sheet once for each set of colours; for each app again, it would take an eighth of its start."""
    parse = Stylesheet._parse_rules
    parsed: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_once(sheet: Stylesheet, css: str, *place: Any, **options: Any) -> list[RuleSet]:
        key = (css, *place, *options.items(), frozenset(sheet._variables.items()))
        if key not in parsed:
            parsed[key] = parse(sheet, css, *place, **options)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield
