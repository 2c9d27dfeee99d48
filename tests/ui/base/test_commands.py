"""The table of commands: ids, keys and slash names are unique, and each command has a label and a help text."""

from collections import Counter
from typing import get_args

import pytest

from tests.support.table import table
from tui_agent.protocol.prompt_references import RESERVED_COMMANDS
from tui_agent.ui.base.command_type import Where
from tui_agent.ui.base.commands import COMMANDS, commands_for

HELD_TOGETHER = (("app", "chat", "composer", "queue"), ("app", "chat", "panel"))
"""Parts of the screen whose keys are active at the same time."""
SHARED_ON_PURPOSE = {"escape", "pageup", "pagedown", "ctrl+z", "ctrl+o"}
"""Keys that act on the innermost part: `escape` closes suggestions before it interrupts, `ctrl+z` restores a dropped
message before it suspends, `ctrl+o` unfolds the paste under the cursor before it opens the newest call."""


@table("where", get_args(Where))
def test_no_key_means_two_things_in_one_place(where: Where) -> None:
    keys = Counter(key for entry in commands_for(where) for key in entry.keys)

    assert [key for key, number in keys.items() if number > 1] == []


@pytest.mark.parametrize("places", HELD_TOGETHER)
def test_no_key_means_two_things_in_places_that_are_live_together(places: tuple[Where, ...]) -> None:
    keys = Counter(key for where in places for entry in commands_for(where) for key in entry.keys)

    assert {key for key, number in keys.items() if number > 1} <= SHARED_ON_PURPOSE


@table("where", ["app", "chat", "composer", "queue", "panel", "conversation", "search"])
def test_in_the_chat_every_printable_key_is_text(where: Where) -> None:
    keys = [key for entry in commands_for(where) for key in entry.keys]

    assert [key for key in keys if len(key) == 1 or key in ("space", "slash", "comma", "full_stop")] == []


def test_files_cannot_replace_commands_of_the_screen() -> None:
    assert {one.slash for one in COMMANDS if one.slash} == RESERVED_COMMANDS
