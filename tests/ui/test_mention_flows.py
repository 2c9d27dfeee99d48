"""The `@` menu: calls and sub-agents to aim at while something runs, and the first lines of a file."""

import asyncio
from pathlib import Path

import pytest

from tests.ui.open_bench import bench_of
from tests.ui.stage import Stage, stage, sub_agent_at_work
from tests.ui.test_chat_flows import FakeFiles, kinds
from tui_agent.protocol.facts.screen_facts import PromptAttachment
from tui_agent.ui.composer.notice_lines import MAX_LINES
from tui_agent.workbench.workspace_completion import SourceSymbol

pytestmark = pytest.mark.slow


class Heads:
    """Files with first lines; one of them takes its time."""

    def __init__(self) -> None:
        self.slow = asyncio.Event()
        self.cancelled: list[str] = []

    async def attachment(self, path: str, /, *, typed: bool) -> PromptAttachment | None:
        return None

    async def head(self, path: str, line: int = 1, /) -> str:
        if path == "docs/slower.md":
            try:
                await self.slow.wait()
            finally:
                self.cancelled += [] if self.slow.is_set() else [path]
        if line > 1:
            return f"line {line} of {path}"
        lines = ["def price():", "\t\x1b[31mreturn 1", "more"] * 3
        return "\n".join(lines) if path == "src/price.py" else ""


def menu_of(on: Stage) -> str:
    return on.chat.entry._suggestions.render().plain


async def test_the_highlighted_file_shows_its_first_lines_and_another_one_cancels_the_reading() -> None:
    async with stage() as on:
        heads = Heads()
        on.chat.bridge.open(bench_of(on.loop, on.bus, files=FakeFiles(), attachments=heads))
        preview = on.chat.entry.preview
        await on.pilot.press("at", *"price")
        await on.until(lambda: preview.display)
        lines = preview.render().plain.splitlines()
        assert lines[0].strip() == "src/price.py"
        assert "def price():" in lines[1]
        assert "\x1b" not in preview.render().plain
        assert len(lines) <= MAX_LINES + 1

        await on.pilot.press("escape")
        await on.until(lambda: not preview.display)

        heads.cancelled.clear()
        await on.pilot.press("ctrl+u", "at")
        await on.until(lambda: preview.place[0] == "docs/slower.md")
        await on.pilot.press("down")
        await on.until(lambda: preview.display)

        assert preview.place == ("src/price.py", 1)
        assert heads.cancelled == ["docs/slower.md"]


class Symbols:
    """An index that takes its time."""

    def __init__(self) -> None:
        self.built = asyncio.Event()

    async def find(self, text: str, /) -> tuple[SourceSymbol, ...]:
        await self.built.wait()
        return (SourceSymbol("price", "def", "src/my shop.py", 10, 40),) if text == "price" else ()


async def test_symbols_join_the_files_and_complete_to_their_lines() -> None:
    async with stage() as on:
        symbols = Symbols()
        on.chat.bridge.open(bench_of(on.loop, on.bus, files=FakeFiles(), symbols=symbols, attachments=Heads()))
        await on.pilot.press("at", *"price")
        await on.until(lambda: "src/price.py" in menu_of(on))
        symbols.built.set()
        await on.until(lambda: "src/my shop.py:10" in menu_of(on))
        await on.pilot.press("down")
        preview = on.chat.entry.preview
        await on.until(lambda: "line 10 of src/my shop.py" in preview.render().plain)
        assert preview.render().plain.splitlines()[0].strip() == "src/my shop.py:10"
        await on.pilot.press("tab")

        assert on.draft == '@"src/my shop.py:10-40" '


async def test_running_calls_and_sub_agents_are_offered_with_what_they_do(tmp_path: Path) -> None:
    async with sub_agent_at_work("Find the callers") as (on, _, agent_id):
        await on.pilot.press("at")
        await on.until(lambda: on.chat.entry._suggestions.display)
        shown = menu_of(on)
        assert "@#2" in shown
        assert "cancel look a, and say why" in shown
        assert f"@{agent_id.rpartition('-')[0]}" in shown
        assert "Find the callers" in shown

        await on.pilot.press("number_sign", "2")
        await on.until(lambda: "Find the callers" not in menu_of(on))
        await on.pilot.press("tab")
        assert on.draft == "@#2 "
        await on.type("use b")
        await on.pilot.press("enter")
        await on.until(lambda: kinds(on).get("cancelled"))
        await on.settled()
        assert "use b" in str(on.provider.requests[2].messages[-1]), "the model reads why"
