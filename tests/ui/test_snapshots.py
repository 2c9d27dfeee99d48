"""Snapshots of the main states at both sizes, and of each theme once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.examples import only_long
from tests.ui.still import pressing, still_app
from tests.ui.story import Story, working
from tui_agent.protocol.events import Failed, SessionLoaded

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]

SIZES = [(80, 24), (120, 40)]
both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])


def streaming() -> Story:
    """Text is streaming."""
    story = Story().run("what does price.py do?").step(0).wait(1.2)
    story.stream("It has **one** public function:\n\n```python\ndef price(net: Decimal) -> Decimal:\n    ret")
    return story.wait(0.6)


def needs_you() -> Story:
    """One call waits for approval, another is running, two messages are queued."""
    story = working()
    commit = story.queued("bash", "git commit -am 'Round once'")
    story.asks(commit, "bash", "git commit -am 'Round once'", "no rule allows `git commit`, and the mode is ask")
    story.sends("also update the changelog")
    story.sends("then write a summary", "follow_up")
    return story.wait(4)


def failed() -> Story:
    """The run failed."""
    story = Story().run("fix the failing price test").step(0).wait(1)
    text = "The key was refused (401). Nothing was changed; set ANTHROPIC_API_KEY and send the message again."
    story.tell(Failed(code="run_failed", text=text))
    return story.end(reason="error", error=text)


def finished() -> Story:
    """The run has ended: one call was denied, one failed."""
    story = working().wait(0.2)
    story.ended("c3", "bash", "ok", "2 passed", latency_ms=12_500.0, size_bytes=4_200)
    story.started("c4", "edit", "src/price.py").wait(0.1).ended("c4", "edit", "ok", latency_ms=100.0)
    story.end_step(1).step(2).wait(1.4)
    story.answer("Both tests pass now; the public signature is unchanged.")
    story.call("bash", "rm -rf build", 0.0, status="denied_user")
    story.call("grep", '"round(" in docs', 0.3, status="error")
    return story.end("Both tests pass now; the public signature is unchanged.")


def resumed() -> Story:
    """A resumed session whose program had died."""
    story = working()
    story.tell(SessionLoaded(id="s1", events=len(story.envelopes)))
    return story.status("idle")


STATES: dict[str, tuple[Callable[[], Story], bool, tuple[str, ...]]] = {
    "idle": (Story, False, ()),
    "streaming": (streaming, True, ()),
    "tools": (working, True, ()),
    "question": (needs_you, True, ()),
    "put_off": (needs_you, True, ("escape",)),
    "interrupt_menu": (needs_you, True, ("escape", "escape")),
    "failed": (failed, False, ()),
    "finished": (finished, False, ()),
    "resumed": (resumed, False, ()),
    "panel": (finished, False, ("ctrl+t", "up", "up")),
    "commands": (Story, False, ("slash",)),
    "help": (Story, False, ("f1",)),
    "search": (finished, False, ("ctrl+f", *"price")),
}


@both_sizes
@pytest.mark.parametrize("state", STATES)
def test_a_state_looks_as_it_should(snap_compare: Compare, state: str, size: tuple[int, int]) -> None:
    tell, running, keys = STATES[state]

    assert snap_compare(still_app(tell(), running=running), terminal_size=size, run_before=pressing(*keys))


@pytest.mark.parametrize("theme", ["dark", *only_long("light", "high-contrast", "ansi")])
def test_a_theme_looks_as_it_should(snap_compare: Compare, theme: str) -> None:
    app = still_app(needs_you(), running=True, theme=theme)

    assert snap_compare(app, terminal_size=(120, 40), run_before=pressing("escape"))


def test_no_meaning_depends_on_colour_alone(snap_compare: Compare) -> None:
    app = still_app(finished(), no_color=True)

    assert snap_compare(app, terminal_size=(120, 40), run_before=pressing("ctrl+t", "up"))


@pytest.mark.parametrize("size", [(60, 16), (40, 10), (20, 6)], ids=["60x16", "40x10", "20x6"])
@pytest.mark.parametrize("state", ["tools", "put_off"])
def test_a_small_window_stays_in_order(snap_compare: Compare, state: str, size: tuple[int, int]) -> None:
    tell, running, keys = STATES[state]
    fields: dict[str, Any] = {"terminal_size": size, "run_before": pressing(*keys)}

    assert snap_compare(still_app(tell(), running=running), **fields)


def test_without_colours_the_cursor_is_still_seen(snap_compare: Compare) -> None:
    app = still_app(Story(), no_color=True)

    assert snap_compare(app, terminal_size=(80, 10), run_before=pressing(*"hello", "left"))
