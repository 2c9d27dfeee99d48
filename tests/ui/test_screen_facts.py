"""The screen says a thing once: facts counted at each moment of a recorded session, `fix the failing test`.

`screen_facts.py` defines a fact, and prints those of a recording.
"""

import pytest

from tests.ui.screen_facts import Fact, facts_of, repeated, replayed

pytestmark = pytest.mark.slow

MOST = 48
"""Most facts on a screen of 120x40."""
MOST_AT_REST = 36
"""Most facts once the session has ended."""


async def test_at_no_moment_of_a_session_the_screen_has_too_many_facts() -> None:
    counts: dict[str, int] = {}
    twice: dict[str, dict[Fact, int]] = {}
    async with replayed("wide", (120, 40)) as screens:
        async for moment, screen in screens:
            facts = facts_of(screen)
            counts[moment] = len(facts)
            twice[moment] = repeated(facts)

    assert len(counts) > 30
    assert {moment: number for moment, number in counts.items() if number > MOST} == {}
    assert counts.popitem()[1] <= MOST_AT_REST
    assert {moment: found for moment, found in twice.items() if found} == {}


def test_the_count_of_facts() -> None:
    screen = [
        " ● The tests of 3 files fail; I run `pytest -q` again.                     │ TOOLS   7 done · 1 failed",
        " ✔ bash pytest -q tests/test_1.py                              6.0 s  #7   │ ✔ #7 bash  pytest…   6.2 s",
        "   21 -         if quantity > BULK:                                        │ cart.py              +2 −1",
        " ~/shop · main ──────────────────────────────────────────────────────────────── offline-demo · ask",
        " › Ask for something, or type / for commands",
        " ● ready · 4.9k/200k tok (2 %) · run 26 s                   f1 help · / commands · shift+tab mode",
    ]
    facts = facts_of(screen)

    assert [fact.text for fact in facts] == [
        *("TOOLS", "7 done", "1 failed"),
        *("✔", "#7", "bash", "pytest…", "6 s", "✔", "#7", "bash", "pytest -q tests/test_1.py", "6 s"),
        *("cart.py", "+2", "−1", "~ shop", "main", "offline-demo", "ask"),
        *("ready", "4.9k", "200k tok", "2 %", "26 s"),
    ]
    assert [(fact.about, fact.text) for fact in repeated(facts)] == [("#7", "6 s")]
