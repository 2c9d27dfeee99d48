"""A bare `/review` asks what to review, from a real repository; an argument and a folder without git ask nothing."""

import subprocess
from pathlib import Path

import pytest

from tests.rewind.sessions import GIT, git_work_tree
from tests.ui.open_bench import bench_of
from tests.ui.stage import Stage, stage
from tui_agent.ui.dialogs.chooser_page import ChooserPage
from tui_agent.workbench.review_command import PromptDefinitions
from tui_agent.workbench.session_diff import SessionDiff

pytestmark = pytest.mark.slow


def make_repository(root: Path) -> None:
    """Make a repository with two commits and two branches."""
    git_work_tree(root, a_py="1\n")
    for command in (("branch", "other"), ("commit", "-q", "--allow-empty", "-m", "second [b]one[/b]")):
        subprocess.run((*GIT, *command), cwd=root, check=True)


def open_in(on: Stage, root: Path) -> None:
    """Open a session in a folder behind the screen."""
    changes = SessionDiff(root, None, is_trusted=True)
    on.chat.bridge.open(bench_of(on.loop, on.bus, definitions=PromptDefinitions(on.loop, None), diff=changes))


async def test_a_bare_review_asks_and_an_argument_does_not(tmp_path: Path) -> None:
    make_repository(tmp_path)
    async with stage(["Good.", "Fine.", "Well."]) as on:
        open_in(on, tmp_path)
        await on.say("/review")
        await on.until(lambda: isinstance(on.app.screen, ChooserPage) and on.app.screen.rows.items)
        page = on.app.screen
        assert isinstance(page, ChooserPage)
        names = [(item.name.split()[0], item.note) for item in page.rows.items]
        assert names == [
            ("work", "what is not committed"),
            ("last", "second [b]one[/b]"),
            ("branch", "first"),
            ("commit", "first"),
        ]
        await on.pilot.press("escape")
        await on.until(lambda: on.draft == "/review")
        assert not on.told()

        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.app.screen, ChooserPage))
        await on.pilot.press("down", "down", "enter")
        await on.until(lambda: on.told())
        await on.settled()
        assert on.told()[0].startswith("Review `other`.")

        await on.say("/review main")
        await on.until(lambda: len(on.told()) == 2)
        await on.settled()
        assert on.told()[1].startswith("Review `main`.")


async def test_without_git_the_review_begins_at_once(tmp_path: Path) -> None:
    async with stage(["Good."]) as on:
        open_in(on, tmp_path)
        await on.say("/review")
        await on.until(lambda: on.told())
        await on.settled()
        assert "Without git" in on.told()[0]
