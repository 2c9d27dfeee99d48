"""Tests of the screen wait for what the app has to do, not for the machine."""

import pytest

from tests.support.quiet_loop import wait_for_quiet


@pytest.fixture(autouse=True)
def quiet_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each press and pause of a pilot wait until the app is at rest."""
    monkeypatch.setattr("textual.pilot.wait_for_idle", wait_for_quiet)
    monkeypatch.setattr("textual.app.wait_for_idle", wait_for_quiet)
