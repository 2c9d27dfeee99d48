"""The page of changes and that of one file: views, differences, undo of files and of parts."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.rewind.sessions import git_work_tree, kept_session
from tests.ui.question_page import WorkPage
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.diffs import Diff, hunks_between, split_lines
from tui_agent.protocol.facts.change_facts import ChangedFile, ChangedFileList, DiffView, FileDifference, RewindOutcome
from tui_agent.providers.scripted_provider import call
from tui_agent.ui.dialogs.diff_screen import BUSY, DiffScreen
from tui_agent.workbench.session_diff import SessionDiff

LINES = "".join(f"line {number}\n" for number in range(1, 41))
CHANGED = LINES.replace("line 3\n", "line three\n").replace("line 30\n", "")


@asynccontextmanager
async def opened(
    changes: Any,
    *,
    size: tuple[int, int] = (120, 40),
    busy: Callable[[], bool] = lambda: False,
    version: Callable[[], object] = lambda: None,
) -> AsyncGenerator[WorkPage]:
    clock = Clock()
    async with HostApp().run_test(size=size) as pilot:
        page = WorkPage(pilot, clock)
        await pilot.app.push_screen(DiffScreen(changes, busy, clock, version))
        await page.settle()
        yield page


@pytest.mark.slow
async def test_parts_and_files_are_undone_after_a_second_press(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, price_py=LINES, cart_py="two\n")
    (root / "mine.py").write_text("mine\n")
    async with kept_session(root, tmp_path / "sessions") as kept:
        await kept.ask("work", call("bash", command="sed -i 's/line 3$/line three/; 30d' price.py; echo x > new.py"))
        is_busy = False
        async with opened(SessionDiff(root, kept.rewinder, is_trusted=True), busy=lambda: is_busy) as page:
            assert "[this session]" in page.rows("#diff-heading")
            assert page.rows("#diff-body").split() == ["›", "A", "new.py", "+1", "−0", "M", "price.py", "+1", "−2"]
            await page.press("tab")
            assert "? mine.py" in page.rows("#diff-body")
            await page.press("tab", "down")
            assert "line three" in page.rows("#diff-detail")
            is_busy = True
            await page.press("ctrl+u")
            assert page.rows("#diff-state") == BUSY
            is_busy = False

            await page.press("enter", "down", "ctrl+u")
            assert (root / "price.py").read_text() == CHANGED
            assert page.rows("#hunks-state") == "ctrl+u again undoes part 2."
            await page.press("ctrl+u")
            assert (root / "price.py").read_text() == LINES.replace("line 3\n", "line three\n")
            assert page.rows("#hunks-state") == "Undone in price.py. /rewind undoes it."
            await page.press("escape", "up", "ctrl+u", "ctrl+u")
            assert not (root / "new.py").exists()
            assert page.rows("#diff-body").split() == ["›", "M", "price.py", "+1", "−1"]

            (root / "price.py").write_text("mine\n")
            await page.press("ctrl+u", "ctrl+u")
            assert (root / "price.py").read_text() == "mine\n"
            assert "it changed after its differences were shown" in page.rows("#diff-state")


@pytest.mark.slow
async def test_kept_files_are_hidden_until_they_change_and_the_list_follows_the_run(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    git_work_tree(root, price_py=LINES, cart_py="two\n")
    version = 0
    async with kept_session(root, tmp_path / "sessions") as kept:
        await kept.ask("work", call("bash", command="echo 1 > a.py; echo 2 > b.py; rm cart.py; echo x >> price.py"))
        changes = SessionDiff(root, kept.rewinder, is_trusted=True)
        async with opened(changes, version=lambda: version) as page:

            async def follow() -> None:
                screen = page.pilot.app.screen
                assert isinstance(screen, DiffScreen)
                screen._follow()  # pyright: ignore[reportPrivateUsage]
                await page.settle()

            names = lambda: [one for one in page.rows("#diff-body").split() if one.endswith(".py")]  # noqa: E731
            assert names() == ["a.py", "b.py", "cart.py", "price.py"]
            await page.press("down", "space")
            assert names() == ["a.py", "cart.py", "price.py"]
            await page.press("space")
            assert names() == ["a.py", "price.py"]
            assert "2 kept" in page.rows("#diff-state")
            await page.press("tab")
            assert names() == ["a.py", "b.py", "cart.py", "price.py"], "each view keeps its own"

            await page.press("tab", "end", "slash", *"py", "up")
            (root / "b.py").write_text("3\n")
            await follow()
            assert "b.py" not in names(), "nothing has happened yet"
            version = 1
            await follow()
            assert names() == ["a.py", "b.py", "price.py"]
            assert "› A a.py" in page.rows("#diff-body")
            await page.press("a")
            assert names() == ["a.py", "b.py", "cart.py", "price.py"]

        async with opened(changes) as page:
            await page.press("space", "space", "space", "space")
            assert "All 4 changes are kept." in page.rows("#diff-body")


class Shown:
    """Changes for pictures."""

    def __init__(self) -> None:
        text = LINES.replace("line", "value =")
        new = text.replace("value = 3\n", "value = three\n").replace("value = 30\n", "")
        hunks = hunks_between(split_lines(text), split_lines(new))
        lines = "".join(f"{hunk.text}\n" for hunk in hunks)
        self.diffs = {
            "src/shop/price.py": Diff(f"--- a/src/shop/price.py\n+++ b/src/shop/price.py\n{lines}"),
            "src/shop/vat.py": Diff("--- /dev/null\n+++ b/src/shop/vat.py\n@@ -0,0 +1,2 @@\n+RATE = 0.19\n+FREE = 0\n"),
        }
        base = ChangedFile(Path("/shop/x"), "x", "changed", "session")
        self.files_: dict[DiffView, tuple[ChangedFile, ...]] = {
            "session": (
                replace(base, shown="README.md", change="deleted", counts=(0, 120)),
                replace(base, shown="assets/[b]logo[/b].png"),
                replace(base, shown="src/shop/a/folder/with/a/very/long/name/to/cut/module.py", counts=(3, 0)),
                replace(base, shown="src/shop/price.py", counts=(1, 2)),
                replace(base, shown="src/shop/vat.py", change="added", counts=(2, 0)),
            ),
            "tree": (),
        }

    async def files(self, view: DiffView, /) -> ChangedFileList:
        return ChangedFileList(view, self.files_[view], "" if view == "session" else "Nothing differs from HEAD.")

    async def difference(self, file: ChangedFile, /) -> FileDifference:
        diff = self.diffs.get(file.shown, Diff())
        problem = "" if diff else "it is too large to be saved, so an undo could not be undone"
        return FileDifference(file, diff, notes=("mode 644 → 755",), problem=problem, has_parts=len(diff.hunks) > 1)

    async def undo(self, shown: FileDifference, parts: Collection[int] | None, /) -> RewindOutcome:
        return RewindOutcome((shown.file.shown,))


def pressing(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def before(pilot: Pilot[None]) -> None:
        await pilot.app.workers.wait_for_complete()
        for key in ("", *keys):
            await (pilot.press(key) if key else pilot.pause())
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
        for _ in range(3):
            await pilot.pause()

    return before


PICTURES = {
    "list": ((80, 24), ("down", "down", "down")),
    "problem": ((120, 40), ("down",)),
    "parts": ((80, 24), ("down", "down", "down", "enter", "down", "space")),
}


@pytest.mark.slow
@pytest.mark.parametrize("state", PICTURES)
def test_a_page_looks_as_it_should(snap_compare: Callable[..., Any], state: str) -> None:
    class Showing(HostApp):
        def on_mount(self) -> None:
            super().on_mount()
            self.push_screen(DiffScreen(Shown(), lambda: False, Clock()))  # pyright: ignore[reportArgumentType]

    size, keys = PICTURES[state]
    assert snap_compare(Showing(), terminal_size=size, run_before=pressing(*keys))
