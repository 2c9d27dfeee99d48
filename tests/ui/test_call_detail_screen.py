"""The page about a call: its parts, its keys, and that it follows the call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.containers import Vertical
from textual.pilot import Pilot

from tests.ui.row_kit import HostApp, Teller
from tests.ui.state.test_call_view_state import QUEUED, STARTED, ended, seen
from tests.ui.still import still_app
from tests.ui.story import Story
from tui_agent.protocol.events import ToolOutput
from tui_agent.protocol.messages import TextBlock
from tui_agent.ui.panel.call_detail_screen import FULL_OUTPUT_LIMIT, CallDetailScreen
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.rows_view import RowsView


@asynccontextmanager
async def opened(
    view: CallViewState, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Pilot[None], CallDetailScreen]]:
    async with HostApp().run_test(size=size) as pilot:
        screen = CallDetailScreen(view, clock=lambda: 50.0)
        await pilot.app.push_screen(screen)
        await pilot.pause()
        yield pilot, screen


def rows(screen: CallDetailScreen, name: str = "#detail-page") -> list[str]:
    view = screen.query_one(name, RowsView)
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def long_call() -> CallViewState:
    return seen(QUEUED, STARTED, ended(content=(TextBlock(text="\n".join(f"line {n}" for n in range(100))),)))


@pytest.mark.slow
async def test_keys_go_from_part_to_part_and_copy_it_at_every_size() -> None:
    async with opened(long_call()) as (pilot, screen):
        page = screen.query_one("#detail-page", RowsView)
        places = []
        for key in ("tab", "tab", "tab", "shift+tab", "shift+tab"):
            await pilot.press(key)
            await pilot.pause()
            places.append(page.scroll_offset.y)

        end = page.max_scroll_y
        assert places == [end, end, 0, end, end]
        await pilot.press("c")
        assert pilot.app.clipboard == "command  ls", "the part in sight is copied"
        for size in ((20, 6), (40, 12), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.press("end", "tab", "home")
            await pilot.pause()
            assert rows(screen)


@pytest.mark.slow
async def test_it_follows_a_running_call_and_stays_at_its_end() -> None:
    teller, view = Teller(), seen(QUEUED, STARTED)
    view.apply(teller.tell(ToolOutput(call_id="c1", stream="stdout", chunk="start\n" + "x\n" * 60, bytes_total=6)))
    async with opened(view) as (pilot, screen):
        await pilot.press("end")
        view.apply(teller.tell(ToolOutput(call_id="c1", stream="stdout", chunk="the newest\n", bytes_total=20)))
        page = screen.query_one("#detail-page", RowsView)
        while page.total < 70 or "the newest" not in "\n".join(
            line.plain for row in range(page.total) if (line := page.line_at(row))
        ):
            await pilot.pause(0.05)
        await pilot.pause()

        assert page.rows_below == 0
        view.apply(teller.tell(ended()))
        while "ok" not in str(screen.query_one("Vertical").border_title):
            await pilot.pause(0.05)


@pytest.mark.slow
async def test_the_whole_output_is_read_from_its_file_a_huge_one_at_both_ends(tmp_path: Path) -> None:
    file = tmp_path / "c1.txt"
    file.write_text("first\n" + "x" * FULL_OUTPUT_LIMIT + "\nlast\n")
    view = seen(QUEUED, STARTED, ended(content=(TextBlock(text="cut"),), persisted_path=str(file)))
    async with opened(view) as (pilot, screen):
        while "first" not in rows(screen):
            await pilot.pause(0.02)
        page = screen.query_one("#detail-page", RowsView)
        text = "\n".join(line.plain for row in range(page.total) if (line := page.line_at(row)))
        assert "B not shown" in text
        assert "\nlast\n" in text
        assert "cut" not in rows(screen)

    view = seen(QUEUED, STARTED, ended(content=(TextBlock(text="head"),), persisted_path=str(tmp_path / "gone")))
    async with opened(view) as (pilot, screen):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "head" in rows(screen), "a file that is gone leaves what the model saw"
        assert any("No such file" in str(note.message) for note in pilot.app._notifications)


@pytest.mark.slow
async def test_a_key_opens_the_newest_call_from_the_composer() -> None:
    story = Story().run("go").step(0)
    story.call("bash", "make")
    story.call("bash", "pytest -q")
    story.queued("edit", "waits.py")
    app = still_app(story, running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert isinstance(app.screen, CallDetailScreen)
        assert "pytest -q" in str(app.screen.query_one(Vertical).border_title)

        await pilot.press("escape")
        app.chat.entry.composer.show("\n".join("line" for _ in range(20)))
        await pilot.press("ctrl+o")
        await pilot.pause()
        assert app.screen is app.chat
        assert app.chat.entry.composer.text.count("line") == 20
