"""Vim keys: each command against a text with a marked cursor, then the composer with both modes."""

from typing import Any, cast

from tests.support.table import table
from tests.ui.stage import Stage, StageTool, stage
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.ui.composer.vim_keys import VimKeys


class Field:
    """A text with a cursor, in which `|` marks the cursor."""

    def __init__(self, marked: str) -> None:
        before = marked[: marked.index("|")]
        self.cursor_location = (before.count("\n"), len(before) - before.rfind("\n") - 1)
        self.rows = marked.replace("|", "").split("\n")
        self.past: list[tuple[list[str], tuple[int, int]]] = []
        self.stepped: list[int] = []

    def move_cursor(self, location: tuple[int, int]) -> None:
        assert 0 <= location[0] < len(self.rows)
        assert 0 <= location[1] <= len(self.rows[location[0]])
        self.cursor_location = location

    def change(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        assert start <= end
        self.past.append((self.rows, self.cursor_location))
        head = "\n".join((*self.rows[: start[0]], self.rows[start[0]][: start[1]]))
        last = self.rows[end[0]] if end[0] < len(self.rows) else ""
        tail = "\n".join((last[end[1] :], *self.rows[end[0] + 1 :]))
        self.rows = (head + text + tail).split("\n")
        before = head + text
        self.cursor_location = (before.count("\n"), len(before) - before.rfind("\n") - 1)

    def action_earlier(self) -> None:
        self.step_rows(-1)

    def action_later(self) -> None:
        self.step_rows(1)

    def step_rows(self, rows: int) -> None:
        row = self.cursor_location[0] + rows
        if 0 <= row < len(self.rows):
            self.cursor_location = (row, min(self.cursor_location[1], len(self.rows[row])))
        else:
            self.stepped.append(rows)

    def undo(self) -> None:
        if self.past:
            self.rows, self.cursor_location = self.past.pop()

    @property
    def marked(self) -> str:
        row, column = self.cursor_location
        return "\n".join(
            (*self.rows[:row], f"{self.rows[row][:column]}|{self.rows[row][column:]}", *self.rows[row + 1 :])
        )


def vim_of(field: Field) -> VimKeys:
    return VimKeys(cast(Any, field), field.action_earlier, field.action_later)


def typed(marked: str, keys: str) -> tuple[str, str]:
    """Return text and mode after keys in normal mode; `⎋` is escape."""
    field = Field(marked)
    vim = vim_of(field)
    vim.mode = "normal"
    for key in keys:
        if key == "⎋":
            vim.press("escape", None)
        elif not vim.press("space" if key == " " else key, key) and vim.mode == "insert":
            field.change(key, field.cursor_location, field.cursor_location)
    return field.marked, vim.mode


@table(
    ("before", "keys", "after"),
    [
        ("a|bc", "h", "|abc"),
        ("|abc", "h", "|abc"),
        ("|abc", "l", "a|bc"),
        ("ab|c", "l", "ab|c"),
        ("|abc", "9l", "ab|c"),
        ("|abc", " ", "a|bc"),
        ("ab|c", "0", "|abc"),
        ("  ab|c", "^", "  |abc"),
        ("|abc", "$", "ab|c"),
        ("|one two", "w", "one |two"),
        ("|one two three", "2w", "one two |three"),
        ("|one.two", "w", "one|.two"),
        ("|one\n\ntwo", "w", "one\n\n|two"),
        ("one |two", "w", "one tw|o"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("one two|", "b", "one |two"),
        ("one |two", "b", "|one two"),
        ("a\nb\n|c", "gg", "|a\nb\nc"),
        ("|a\nb\nc", "G", "a\nb\n|c"),
        ("|a\nb", "j", "a\n|b"),
        ("a\n|b", "k", "|a\nb"),
        ("abc\n|", "k", "|abc\n"),
    ],
)
def test_motions_move_the_cursor(before: str, keys: str, after: str) -> None:
    assert typed(before, keys) == (after, "normal")


@table(
    ("before", "keys", "after"),
    [
        ("a|bc", "x", "a|c"),
        ("ab|c", "x", "a|b"),
        ("|abc", "2x", "|c"),
        ("a|bc", "X", "|bc"),
        ("|", "x", "|"),
        ("|one two", "dw", "|two"),
        ("one |two", "dw", "one| "),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("|one two", "de", "| two"),
        ("one tw|o", "db", "one |o"),
        ("one |two", "d0", "|two"),
        ("one |two", "d$", "one| "),
        ("one |two", "D", "one| "),
        ("a|bc", "dh", "|bc"),
        ("a\n|b\nc", "dd", "a\n|c"),
        ("a\nb\n|c", "dd", "a\n|b"),
        ("|a", "dd", "|"),
        ("|a\nb\nc", "2dd", "|c"),
        ("|a\nb\nc", "dj", "|c"),
        ("a\nb\n|c", "dk", "|a"),
        ("a\n|b\nc", "dG", "|a"),
        ("a\n|b\nc", "dgg", "|c"),
        ("|abc", "rx", "|xbc"),
        ("|abc", "3rx", "xx|x"),
        ("|abc", "4rx", "|abc"),
        ("|one two", "yyp", "one two\n|one two"),
        ("|one two", "yyP", "|one two\none two"),
        ("a\n|b", "ddP", "|b\na"),
        ("|ab", "xp", "b|a"),
        ("|one two", "ywP", "one| one two"),
        ("|one two", "dwp", "tone| wo"),
        ("|abc", "xu", "|abc"),
        ("|abc", "xx2u", "|abc"),
        ("|abc", "d⎋x", "|bc"),
        ("|abc", "2⎋x", "|bc"),
        ("|abc", "dz", "|abc"),
        ("|abc", "qzQ", "|abc"),
    ],
)
def test_commands_change_the_text(before: str, keys: str, after: str) -> None:
    assert typed(before, keys) == (after, "normal")


@table(
    ("before", "keys", "after"),
    [
        ("a|bc", "ix", "ax|bc"),
        ("a|bc", "ax", "abx|c"),
        ("  a|bc", "Ix", "  x|abc"),
        ("a|bc", "Ax", "abcx|"),
        ("a|b\nc", "ox", "ab\nx|\nc"),
        ("a|b", "Ox", "x|\nab"),
        ("|one two", "cwx", "x| two"),
        ("one |two", "ccx", "x|"),
        ("one |two", "Cx", "one x|"),
        ("one |two", "Sx", "x|"),
        ("|abc", "sx", "x|bc"),
        ("a\n|b\nc", "ccx", "a\nx|\nc"),
        ("|", "/m", "/m|"),
        ("|", "@a", "@a|"),
    ],
)
def test_commands_lead_to_insert_mode(before: str, keys: str, after: str) -> None:
    assert typed(before, keys) == (after, "insert")


# --- composer ---------------------------------------------------------------------------------------------------------


def sign(on: Stage) -> str:
    return str(on.chat.entry._marker.render())


async def test_escape_leads_to_normal_mode_and_enter_sends_from_there() -> None:
    async with stage(["Fine."]) as on:
        on.app.use_choices(ScreenChoices(vim_keys=True))
        await on.type("one two")
        assert (on.draft, sign(on)) == ("one two", " › ")
        await on.pilot.press("escape")
        assert sign(on) == "[N]"
        await on.type("bcw")
        await on.type("three")
        await on.pilot.press("escape")
        await on.pilot.press("enter")
        await on.settled()
        assert on.told() == ["one three"]
        assert sign(on) == " › "


async def test_a_second_escape_interrupts_from_normal_mode() -> None:
    tool = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a"))], [tool]) as on:
        on.app.use_choices(ScreenChoices(vim_keys=True))
        await on.say("look")
        await on.until(lambda: tool.ran)
        await on.pilot.press("escape")
        assert not on.chat.entry.menu.is_open
        await on.pilot.press("escape")
        assert on.chat.entry.menu.is_open
        await on.pilot.press("escape")
        await on.settled()
        assert on.loop.reports[-1].reason == "aborted"


async def test_text_over_a_question_is_text_also_in_normal_mode() -> None:
    tool = StageTool("make", read_only=False)
    async with stage([reply(call("make", what="all")), "Made."], [tool]) as on:
        on.app.use_choices(ScreenChoices(vim_keys=True))
        await on.say("make all")
        await on.pilot.press("escape")
        on.clock.now += 5
        await on.until(lambda: on.app.screen is not on.chat)
        await on.type("no dd")
        await on.until(lambda: on.draft == "no dd")


async def test_undo_and_put_act_on_the_text_of_the_composer() -> None:
    async with stage() as on:
        on.app.use_choices(ScreenChoices(vim_keys=True))
        await on.type("one")
        await on.pilot.press("ctrl+j")
        await on.type("two")
        await on.pilot.press("escape")
        await on.type("dd")
        assert on.draft == "one"
        await on.type("p")
        assert on.draft == "one\ntwo"
        await on.type("uu")
        assert on.draft == "one\ntwo"
