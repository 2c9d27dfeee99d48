"""Vim keys: each command against a text with a marked cursor, then the composer with both modes."""

from tests.ui.composer.test_composer import Desk
from tests.ui.stage import Stage, StageTool, stage
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.ui.composer.composer import Composer

KEYS = [
    # Motions move the cursor.
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
    # Commands change the text.
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
]
"""Text with a mark at the cursor, keys in normal mode (`⎋` is escape), and what they lead to."""
INSERTING = [
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
]
"""The same for commands that lead to insert mode."""


def typed(composer: Composer, marked: str, keys: str) -> tuple[str, str]:
    """Return text and mode after keys in normal mode."""
    before = marked[: marked.index("|")]
    composer.load_text(marked.replace("|", ""))
    composer.move_cursor((before.count("\n"), len(before) - before.rfind("\n") - 1))
    composer.use_vim_keys(False)
    composer.use_vim_keys(True)
    vim = composer.vim
    assert vim is not None
    vim.mode = "normal"
    for key in keys:
        if key == "⎋":
            vim.press("escape", None)
        elif not vim.press("space" if key == " " else key, key) and vim.mode == "insert":
            composer.insert(key)
    (row, column), rows = composer.cursor_location, composer.text.split("\n")
    rows[row] = f"{rows[row][:column]}|{rows[row][column:]}"
    return "\n".join(rows), vim.mode


async def test_keys_of_vim_move_the_cursor_and_change_the_text() -> None:
    async with Desk().run_test() as pilot:
        wrong = [
            (before, keys, found)
            for mode, rows in (("normal", KEYS), ("insert", INSERTING))
            for before, keys, after in rows
            if (found := typed(pilot.app.composer, before, keys)) != (after, mode)
        ]

        assert wrong == []


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
