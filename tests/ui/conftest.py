"""Tests of the screen wait for the app to be idle, not for time."""

import pytest

from tests.support.idle_loop import wait_until_idle


@pytest.fixture(autouse=True)
def quiet_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each press and pause of a pilot wait until the app is at rest."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", wait_until_idle)
    monkeypatch.setattr("textual.app.wait_for_idle", wait_until_idle)
