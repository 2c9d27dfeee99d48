"""Choosers and lists of facts as the user sees and drives them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.question_page import open_page
from tests.ui.stage import Stage, stage
from tests.ui.still import still_app
from tests.ui.story import Story
from tests.ui.test_page_snapshots import typing
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.events import FileChanged
from tui_agent.protocol.facts.page_facts import DefinitionFact, ModelFact
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.dialogs.chooser_page import ChooserPage, definition_items, file_items, model_items

DIFF = Diff("--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n-round(x)\n+x\n")


async def opened(on: Stage, command: str) -> ChooserPage:
    """Type a command and return the page that it opens."""
    page = await open_page(on, command, ChooserPage)
    await on.until(lambda: page.selected)
    return page


async def test_each_theme_shows_as_the_cursor_moves_and_esc_brings_the_first_one_back() -> None:
    async with stage() as on:
        await on.until(lambda: len(on.chat.commands.settings.theme_names) == 5)
        before = on.app.theme
        await opened(on, "/theme")
        await on.pilot.press(*"light")
        await on.until(lambda: on.app.theme == "light")
        await on.pilot.press("escape", "escape")
        await on.until(lambda: on.app.screen is on.chat and on.app.theme == before)

        await opened(on, "/theme")
        await on.pilot.press(*"light", "enter")
        await on.until(lambda: on.app.screen is on.chat)
        assert on.app.theme == "light"


async def test_letters_search_in_a_chooser_and_the_keys_of_every_list_work() -> None:
    async with stage() as on:
        page = await opened(on, "/mode")
        assert page.selected is not None
        assert page.selected.id == on.policy.mode.value, "the cursor is on the mode in force"
        await on.pilot.press("end")
        await on.until(lambda: page.rows.cursor == len(page.rows.items) - 1)
        await on.pilot.press("home")
        await on.until(lambda: page.rows.cursor == 0)
        await on.pilot.press("pagedown", "pageup", *"nowhere", "enter")
        assert on.app.screen is page
        assert page.selected is None
        await on.pilot.press("escape", "slash", *"plan", "enter")
        await on.until(lambda: on.policy.mode is PermissionMode.PLAN)


def test_models_say_window_and_price_and_which_one_is_in_force() -> None:
    items = model_items((ModelFact("Anthropic", "sonnet", 200_000, 3.0, 15.0, is_current=True), ModelFact("x", "y", 1)))

    assert [item.sign[0] for item in items] == ["●", ""]
    assert items[0].note.split("  ")[-1] == "$3.00 in, $15.00 out"
    assert items[1].note.endswith("no price")


def test_definitions_show_files_and_the_reason_why_one_is_not_used() -> None:
    facts = (
        DefinitionFact("sub-agent", "b", problem=".claude/agents/b.md:2: not valid YAML"),
        DefinitionFact("command", "git:a", "Commits.", ".claude/commands/git/a.md"),
        DefinitionFact("skill", "pdf", "Fills \x1b[2J forms.", "~/.claude/skills/pdf/SKILL.md"),
    )

    items = definition_items(facts)

    assert [(item.name, item.sign[0]) for item in items] == [("pdf", ""), ("/git:a", ""), ("b", "▲")]
    assert [row.plain for row in items[0].rows(60)] == [
        *("pdf  skill", "~/.claude/skills/pdf/SKILL.md", "Fills \\x1b[2J forms.")
    ]


def edited() -> Story:
    """Return a session in which three calls changed two files."""
    story = Story().run("x").step(0)
    for path, added in (("a.py", 1), ("b.py", 1), ("a.py", 1)):
        call_id = story.queued("edit", path)
        story.tell(FileChanged(call_id=call_id, path=path, change="modified", added=added, removed=1, diff=DIFF))
        story.started(call_id, "edit", path).ended(call_id, "edit", latency_ms=1.0)
    return story.end("Done.")


def test_a_changed_file_shows_the_differences_of_each_call_without_its_path() -> None:
    story = edited()
    call_id = story.queued("bash", "sed -i s/1−1/0/ *.py")
    story.tell(FileChanged(call_id=call_id, path="a.py", change="modified", added=1, removed=1, diff=DIFF))
    state = still_app(story).chat.state
    for envelope in story.envelopes:
        state.apply(envelope)

    items = file_items(state.files, state.ledger)

    assert [(item.name, item.note) for item in items] == [("a.py", "+3 −3  #1 #3 #4"), ("b.py", "+1 −1  #2")]
    rows = [row.plain.strip() for row in items[0].rows(60)]
    assert [row for row in rows if row.startswith("#")] == ["#4 bash sed -i s/1−1/0/ *.py", "#3 edit", "#1 edit"]
    assert sum("round(x)" in row for row in rows) == 3


@pytest.mark.slow
@pytest.mark.parametrize("command", ["mode", "theme", "files"])
def test_a_page_looks_as_it_should(snap_compare: Callable[..., Any], command: str) -> None:
    size = (120, 40) if command == "theme" else (80, 24)
    assert snap_compare(still_app(edited()), terminal_size=size, run_before=typing(command, "down"))
