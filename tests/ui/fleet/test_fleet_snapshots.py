"""Snapshots of the screen of a fleet: states and pages, small and large, dark and light."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
from textual.pilot import Pilot

from tests.support.table import table
from tests.ui.fleet.fleet_stage import fleet_app
from tests.ui.fleet.still_fleet import NOW, MemoryFleet, asks, busy_fleet, many_units, row, status, timed
from tests.ui.story import working
from tui_agent.protocol.fleet_records import FleetStatus
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.fleet.fleet_app import FleetApp, UnitChat

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]

HOSTILE = "[red]x[/] \x1b[2J\x07\u202egpj.exe\t日本語のとても長い説明" + " and on" * 200


def quiet() -> FleetStatus:
    """Return the fleet in all states, without questions."""
    return busy_fleet().model_copy(update={"questions": ()})


def hostile() -> FleetStatus:
    """Return units whose every text tries to break the screen."""
    task = {"id": "[b]1\x1b[31m", "repo": f"https://host/{HOSTILE}.git", "prompt": HOSTILE, "verify": HOSTILE}
    rows = [
        row(number, state, task={**task, "id": f"{number}{task['id']}"}, activity=HOSTILE, reason=HOSTILE)
        for number, state in enumerate(("queued", "running", "asking", "verifying", "failed", "stopped"), 1)
    ]
    worker = row(7, spans=[(HOSTILE, 10, None)])
    return status(*rows, worker, name=HOSTILE, notices=(HOSTILE,))


STATES: dict[str, Callable[[], FleetStatus | None]] = {
    "connecting": lambda: None,
    "empty": status,
    "one": lambda: status(row(1)),
    "busy": quiet,
    "thousand": many_units,
    "all_failed": lambda: status(*(row(number, "failed") for number in range(1, 13)), running=False),
    "rate_limited": lambda: quiet().model_copy(update={"paused_until": NOW + 23_000}),
    "no_driver": lambda: busy_fleet().without_driver(NOW),
    "asks": lambda: status(row(1), row(2, "asking"), row(3, "asking"), questions=(asks("002"), asks("003"))),
    "hostile": hostile,
}


def showing(*keys: str, dialog: bool = False) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Wait until the fleet is on the screen, press keys, and wait for what they open."""

    async def before(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, FleetApp)
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        while dialog and not isinstance(app.screen, ApprovalScreen):
            await pilot.pause()
        while keys[-1:] == ("enter",) and not (isinstance(app.screen, UnitChat) and app.screen.state.begun):
            await pilot.pause()
        for _ in range(3):
            await pilot.pause()

    return before


SMALL, LARGE = (80, 24), (120, 40)
AT_BOTH_SIZES = ("busy", "thousand", "asks", "hostile")
SHOWN = [
    *((name, SMALL, "light") for name in STATES if name in AT_BOTH_SIZES),
    *((name, LARGE, "dark") for name in STATES),
]


def named(name: str, size: tuple[int, int], theme: str) -> str:
    """Return the id of a picture."""
    return f"{name}-{size[0]}x{size[1]}-{theme}"


@pytest.mark.parametrize(("name", "size", "theme"), SHOWN, ids=[named(*one) for one in SHOWN])
def test_a_fleet(name: str, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    app = fleet_app(MemoryFleet(STATES[name]()), theme=theme)

    assert snap_compare(app, terminal_size=size, run_before=showing(dialog=name == "asks"))


PAGES: dict[str, Sequence[str]] = {
    "search": ("slash", "m", "a", "i", "l"),
    "failed_by_cost": ("tab", "tab", "tab", "o", "o"),
    "workers": ("t",),
    "keys": ("question_mark",),
    "stop": (*("down",) * 8, "s"),
    "stop_all": ("S",),
    "conversation": ("down",) * 8 + ("enter",),
}


PAGES_SHOWN = [(name, SMALL, "dark") if place % 2 else (name, LARGE, "light") for place, name in enumerate(PAGES)]


@pytest.mark.parametrize(("name", "size", "theme"), PAGES_SHOWN, ids=[named(*one) for one in PAGES_SHOWN])
def test_pages_of_a_fleet(name: str, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    app = fleet_app(MemoryFleet(quiet(), timed(working())), theme=theme)

    assert snap_compare(app, terminal_size=size, run_before=showing(*PAGES[name]))


@table("size", [(60, 20), (30, 8), (20, 6)])
async def test_small_windows_show_rows_and_crash_nowhere(size: tuple[int, int]) -> None:
    for first in (quiet(), hostile()):
        app = fleet_app(MemoryFleet(first, timed(working())))
        async with app.run_test(size=size) as pilot:
            for key in [
                "down",
                "tab",
                "shift+tab",
                "slash",
                "x",
                "escape",
                "t",
                "escape",
                "i",
                "escape",
                "n",
                "escape",
            ]:
                await pilot.press(key)
            await pilot.press("escape", "down", "enter")
            await pilot.pause()
            await pilot.resize_terminal(120, 40)
            await pilot.press("escape")
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert app.screen is app.fleet
            assert app.fleet.rows.row_count >= 1
