"""Every scrollbar of every screen is one cell wide."""

from textual.screen import Screen

from tests.support.table import table
from tests.ui.open_bench import bench_of
from tests.ui.rule_stage import FakeRules
from tests.ui.stage import Stage, stage


def thick_bars(screen: Screen[object]) -> list[str]:
    """Return the widgets with a thicker scrollbar."""
    return [
        str(widget)
        for widget in (screen, *screen.walk_children())
        if widget.is_scrollable
        and (widget.styles.scrollbar_size_vertical > 1 or widget.styles.scrollbar_size_horizontal > 1)
    ]


async def show(on_stage: Stage, *keys: str) -> Screen[object]:
    await on_stage.pilot.press(*keys)
    await on_stage.until(lambda: not keys or on_stage.app.screen is not on_stage.chat)
    await on_stage.pilot.pause()
    return on_stage.app.screen


@table("keys", [(), ("f1",), ("ctrl+p",)])
async def test_scrollbars_are_thin(keys: tuple[str, ...]) -> None:
    async with stage() as on_stage:
        assert thick_bars(await show(on_stage, *keys)) == []


async def test_scrollbars_of_the_pages_are_thin() -> None:
    async with stage() as on_stage:
        on_stage.chat.bridge.bench = bench_of(on_stage.loop, on_stage.bus, rules=FakeRules())
        for typed in ("/permissions", "/tools", "/rewind"):
            await on_stage.say(typed)
            await on_stage.pilot.pause()
            assert thick_bars(on_stage.app.screen) == []
            await on_stage.pilot.press("escape")
            await on_stage.until(lambda: on_stage.app.screen is on_stage.chat)
