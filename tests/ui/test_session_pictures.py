"""Twelve short sessions: a reader who sees only the screen can say what happened."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.table import table
from tests.ui.session_pictures import SESSIONS
from tests.ui.still import drawn, pressing, still_app
from tui_agent.ui.app.tui_agent_app import TuiAgentApp

SAYS: dict[str, tuple[str, ...]] = {
    "calls": ("FAILED tests/test_price.py::test_round", "12 passed", "done · 14.2 s · 3 steps · 6 calls"),
    "denials": ("you denied it: keep dist", "denied: bash(git push --force:*)", "you changed it; the model asked for"),
    "errors": ("not found", "exit 2 · make: *** No rule", "timed out", "The key was refused (401)"),
    "flood": ("CC src/module_1999.c", "62 % of 800 MB", "2 tools 31 s"),
    "sub-agents": ("2 steps, 3 calls", "cart.py:140 and price.py:12 round.", '3 calls · grep "price("'),
    "steers": (
        "skipped: you steered",
        "steered after step 1 · skipped #2 edit, #3 bash",
        "“then write a change",
        "a turn of its own after this one",
    ),
    "retries": ("again in 8.0 s (attempt 3 of 10)", "retrying in 6 s"),
    "compaction": ("182k → 40.2k tokens; 86 messages summarised", "compacting 7 s · step 2 · 178k/200k tok"),
    "cut-answer": ("thinking  The manual needs three chapters.", "reached the limit of 8,192 tokens", "failed"),
    "plan-mode": ("plan mode changes nothing", "1 of 3 done", "Proposed plan", "waiting for you"),
    "long-diff": ("+40 −40", "price_0 = 0", "68 more rows"),
    "interrupt": ("cancelled  ", "── cancelled by you", "ready"),
}


@table("name", SESSIONS)
async def test_the_screen_says_what_happened(name: str) -> None:
    """The same app is shown at both sizes in a dark and a light theme: another start for each would take long."""
    session = SESSIONS[name]
    grounds: list[set[str]] = []
    async with still_app(session.tell(), running=session.running).run_test(size=(80, 24)) as pilot:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pressing(*session.keys)(pilot)
        for size, theme in (((80, 24), "dark"), ((80, 24), "light"), ((120, 40), "light"), ((120, 40), "dark")):
            app.theme = theme
            await pilot.resize_terminal(*size)
            await drawn(pilot)
            screen: Any = app.screen
            strips = screen._compositor.render_strips()
            shown = "\n".join("".join(segment.text for segment in strip) for strip in strips)
            assert [words for words in SAYS[name] if words not in shown] == [], (size, theme)
            assert len(strips) == size[1]
            grounds.append({str(segment.style.bgcolor) for strip in strips for segment in strip if segment.style})

    assert grounds[0].isdisjoint(grounds[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_looks_as_it_should(snap_compare: Callable[..., bool], name: str) -> None:
    session = SESSIONS[name]
    app = still_app(session.tell(), running=session.running)

    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing(*session.keys))
