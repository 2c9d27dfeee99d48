"""The findings of a review: the page, the code of one, and how it opens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.dialogs.test_diff_screen import pressing
from tests.ui.row_kit import HostApp
from tui_agent.protocol.facts.page_facts import Finding
from tui_agent.ui.app.outside_programs import file_arguments
from tui_agent.ui.base.app_type import FileEditRequested
from tui_agent.ui.dialogs.review_findings_screen import FindingsScreen
from tui_agent.workbench.workspace_completion import WorkspaceFiles

FINDINGS = (
    Finding(file="src/price.py", line=30, severity="high", text="A price of [b]zero[/b] is sold.\n\nCheck it first."),
    Finding(file="src/price.py", line=3, severity="medium", text="The rate is rounded twice, which loses a cent."),
    Finding(file="gone.py", severity="low", text="The name misleads."),
)


class Host(HostApp):
    """Shows the page, and notes what is to be edited."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        (root / "src").mkdir()
        code = "".join(f"value_{number} = {number}\n" for number in range(1, 61))
        (root / "src/price.py").write_text(code)
        self.root = root
        self.edited: list[FileEditRequested] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.push_screen(FindingsScreen(FINDINGS, WorkspaceFiles(self.root)))

    def on_file_edit_requested(self, event: FileEditRequested) -> None:
        self.edited.append(event)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "size"), [("down", (120, 40)), ("enter", (80, 24))], ids=["list", "code"])
def test_the_pages_look_as_they_should(
    snap_compare: Callable[..., Any], tmp_path: Path, key: str, size: tuple[int, int]
) -> None:
    assert snap_compare(Host(tmp_path), terminal_size=size, run_before=pressing(key))


@pytest.mark.slow
async def test_a_finding_opens_its_code_and_the_editor_at_its_line(tmp_path: Path) -> None:
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pressing("down", "ctrl+g", "enter", "down", "ctrl+g", "escape", "down", "enter")(pilot)
        assert [(Path(one.path).name, one.line) for one in app.edited] == [("price.py", 3), ("price.py", 4)]
        assert isinstance(app.screen, FindingsScreen)
        assert "gone.py cannot be read" in str(app.screen._message)  # pyright: ignore[reportPrivateUsage]


def test_editors_take_a_line_in_their_own_form() -> None:
    assert file_arguments("/usr/bin/vim", "/a.py", 3) == ("+3", "/a.py")
    assert file_arguments("code", "/a.py", 3) == ("--goto", "/a.py:3")
    assert file_arguments("hx", "/a.py", 3) == ("/a.py:3",)
    assert file_arguments("nano", "/a.py", 0) == ("/a.py",)
