"""The list of sessions: search, preview, resume, rename, copy, delete; honest about empty and damaged journals."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.ui.app.saved_sessions import NOW, save
from tests.ui.stage import Clock
from tui_agent.session.journal import JournalFile
from tui_agent.session.store import SessionStore
from tui_agent.ui.app.question_app import QuestionApp
from tui_agent.ui.app.session_screen import SessionScreen
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue


class ListApp(QuestionApp[str | None]):
    """Shows only the list."""

    def __init__(self, screen: SessionScreen) -> None:
        super().__init__("dark")
        self.list = screen

    def on_mount(self) -> None:
        self.push_screen(self.list, self.exit)


@dataclass
class Listed:
    """The list on the screen."""

    app: ListApp
    pilot: Pilot[str | None]
    clock: Clock
    root: Path

    async def until(self, holds: Callable[[], object]) -> None:
        for _ in range(500):
            if holds():
                return
            await self.pilot.pause(0.01)
        raise AssertionError("it never came: " + "\n".join((*self.rows, *self.side, self.state)))

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    def _rows_of(self, name: str) -> list[str]:
        view = self.app.list.query_one(f"#sessions-{name}", RowsView)
        return [line.plain for row in range(view.total) if (line := view.line_at(row)) is not None]

    @property
    def rows(self) -> list[str]:
        return self._rows_of("body") if self.app.list.rows.items else []

    @property
    def columns(self) -> list[str]:
        return " ".join(self._rows_of("heading")).split()

    @property
    def side(self) -> list[str]:
        return self._rows_of("detail")

    @property
    def state(self) -> str:
        return self._rows_of("state")[0].strip()


@asynccontextmanager
async def listed(
    root: Path, folder: Path, *, size: tuple[int, int] = (120, 40), current: str = "", words: str = ""
) -> AsyncIterator[Listed]:
    clock = Clock()
    shelf = SessionCatalogue(SessionStore(root), folder)
    app = ListApp(SessionScreen(shelf, current=current, words=words, clock=clock, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        found = Listed(app, pilot, clock, root)
        await found.until(lambda: not app.list.is_reading)
        yield found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three sessions of the folder `here`, one of `there`."""
    root, here, there = tmp_path / "sessions", tmp_path / "here", tmp_path / "there"
    save(root, "price", here, "fix the failing price test", "Rounded once.", minutes=5, files={"src/price.py": (2, 1)})
    save(root, "docs", here, "write the docs", "Written.", minutes=180, branch="docs")
    save(root, "old", here, "explain this project", "A shop.", minutes=60 * 24 * 3)
    save(root, "other", there, "price of tea", "Much.", minutes=1)
    return root


async def test_sessions_are_listed_with_their_facts_and_a_preview_and_tab_shows_all_folders(
    root: Path, tmp_path: Path
) -> None:
    async with listed(root, tmp_path / "here", size=(140, 40)) as shown:
        assert [row.split()[:3] for row in shown.rows] == [
            ["›", "5", "min"],
            ["3", "h", "write"],
            ["3", "d", "explain"],
        ]
        assert "fix the failing price test" in shown.rows[0]
        assert " main " in shown.rows[0]
        assert " docs " in shown.rows[1]
        assert "kB" in shown.rows[0]
        assert "$0.04" in shown.rows[0]
        await shown.until(lambda: shown.rows[0].split()[-4:-2] == ["1", "$0.04"])
        # The heading has its row after the layout that first displays it.
        await shown.until(lambda: shown.columns == ["age", "session", "branch", "msgs", "cost", "size"])
        assert shown.state == "3 in this folder · tab all folders"

        await shown.until(lambda: "Rounded once." in shown.side)
        assert "fix the failing price test" in shown.side
        await shown.until(lambda: any("1 message · 2" in row for row in shown.side))
        assert "+2 −1  src/price.py" in shown.side
        await shown.pilot.press("down")
        await shown.until(lambda: "Written." in shown.side)
        assert "It changed no files." in shown.side

        await shown.pilot.press("tab")
        await shown.until(lambda: len(shown.rows) == 4)
        assert "price of tea" in shown.rows[0]
        await shown.pilot.press("up", "up")
        await shown.until(lambda: "from another folder" in " ".join(shown.side))
        await shown.pilot.press("tab")
        await shown.until(lambda: len(shown.rows) == 3)
    async with listed(root, tmp_path / "nowhere") as shown:
        assert len(shown.rows) == 4, "a folder without sessions shows those of all"


async def test_empty_damaged_and_unreadable_journals_are_shown_as_what_they_are(root: Path, tmp_path: Path) -> None:
    (root / "broken.jsonl").write_bytes(b"\x00\xff not an event\n" * 50)
    (root / "empty.jsonl").write_bytes(b"")
    (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
    async with listed(root, tmp_path / "here") as shown:
        assert "1 without a message not listed" in shown.state
        await shown.pilot.press("tab")
        await shown.until(lambda: len(shown.rows) == 5)
        assert any("(damaged: nothing can b" in row for row in shown.rows)


async def test_a_session_that_is_open_elsewhere_is_marked_and_offers_a_copy(root: Path, tmp_path: Path) -> None:
    journal = JournalFile(root / "price.jsonl")
    try:
        async with listed(root, tmp_path / "here") as shown:
            assert "  open  main" in shown.rows[0]
            await shown.pilot.press("enter")
            assert "open in another tui-agent; ctrl+f resumes a copy" in shown.state
            await shown.pilot.press("ctrl+x")
            assert "Close it there first" in shown.state
            await shown.pilot.press("ctrl+f")
            await shown.until(lambda: shown.app.return_value)
    finally:
        journal.close()

    assert shown.app.return_value not in (None, "price")
    assert (root / f"{shown.app.return_value}.jsonl").exists()


async def test_rename_puts_the_name_into_the_field_and_the_search_comes_back(root: Path, tmp_path: Path) -> None:
    async with listed(root, tmp_path / "here", words="price") as shown:
        field = shown.app.list.query_one(Input)
        await shown.pilot.press("ctrl+r")
        assert field.value == "fix the failing price test"
        await shown.type("the price of rounding")
        await shown.pilot.press("enter")
        await shown.until(lambda: shown.rows and "the price of rounding" in shown.rows[0])
        assert field.value == "price"

        await shown.pilot.press("ctrl+r", "escape")
        assert field.value == "price"

    assert SessionStore(root).list("the price of rounding")[0].id == "price"


async def test_delete_asks_once_and_says_what_is_removed(root: Path, tmp_path: Path) -> None:
    async with listed(root, tmp_path / "here") as shown:
        await shown.pilot.press("ctrl+x")
        question = shown.app.screen
        assert isinstance(question, ConfirmScreen)
        await shown.until(lambda: question.guard.was_drawn)
        await shown.pilot.press("y")
        assert shown.app.screen is question, "too early: the question was not read"
        shown.clock.now += 1
        await shown.pilot.press("n", "enter")
        assert (root / "price.jsonl").exists()

        await shown.pilot.press("ctrl+x")
        again = shown.app.screen
        assert isinstance(again, ConfirmScreen)
        await shown.until(lambda: again.guard.was_drawn)
        shown.clock.now += 1
        await shown.pilot.press("y", "enter")
        await shown.until(lambda: len(shown.rows) == 2)

    assert not (root / "price.jsonl").exists()


async def test_the_session_on_the_screen_is_marked_and_cannot_be_deleted_here(root: Path, tmp_path: Path) -> None:
    async with listed(root, tmp_path / "here", current="price") as shown:
        assert "  here  main" in shown.rows[0]
        await shown.until(lambda: "this is the session on the screen" in " ".join(shown.side))
        await shown.pilot.press("ctrl+x")
        assert "on the screen" in shown.state
        await shown.pilot.press("ctrl+r")
        assert "/rename NAME" in shown.state


async def test_a_thousand_sessions_are_listed_and_only_visible_rows_are_built(tmp_path: Path) -> None:
    for number in range(1_000):
        save(tmp_path / "many", f"s{number:04}", tmp_path, f"prompt {number}", minutes=number + 1)
    async with listed(tmp_path / "many", tmp_path) as shown:
        view = shown.app.list.query_one("#sessions-body", RowsView)
        assert view.virtual_size.height == 1_000
        assert len(view._lines._built) <= 40
        await shown.pilot.press("pagedown", "pagedown")
        assert len(view._lines._built) <= 40
        await shown.type("prompt 999")
        await shown.until(lambda: len(shown.rows) == 1)


async def test_hostile_titles_and_answers_stay_text(tmp_path: Path) -> None:
    evil = "[red]x[/red]\x1b]0;owned\x07\u202eabc"
    save(tmp_path / "s", "evil", tmp_path, evil, evil, branch=evil)
    async with listed(tmp_path / "s", tmp_path) as shown:
        await shown.until(lambda: "Last answer" in shown.side)
        assert "[red]x[/red]" in shown.rows[0]
        for text in (*shown.rows, *shown.side):
            assert "\x1b" not in text
            assert "\u202e" not in text
