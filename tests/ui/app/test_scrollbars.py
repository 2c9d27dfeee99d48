"""Every scrollbar of every screen is one cell wide."""

from textual.screen import Screen

from tests.ui.open_bench import bench_of
from tests.ui.rule_stage import FakeRules
from tests.ui.stage import stage


def thick_bars(screen: Screen[object]) -> list[str]:
    """Return the widgets with a thicker scrollbar."""
    return [
        str(widget)
        for widget in (screen, *screen.walk_children())
        if widget.is_scrollable
        and (widget.styles.scrollbar_size_vertical > 1 or widget.styles.scrollbar_size_horizontal > 1)
    ]


async def test_scrollbars_are_thin() -> None:
    async with stage() as on:
        on.chat.bridge.bench = bench_of(on.loop, on.bus, rules=FakeRules())
        assert thick_bars(on.app.screen) == []
        for opened in ("f1", "ctrl+p", "/permissions", "/tools"):
            await (on.say(opened) if opened.startswith("/") else on.pilot.press(opened))
            await on.until(lambda: on.app.screen is not on.chat)
            await on.pilot.pause()
            assert thick_bars(on.app.screen) == []
            await on.pilot.press("escape")
            await on.until(lambda: on.app.screen is on.chat)
