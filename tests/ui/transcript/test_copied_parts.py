"""Parts of the conversation are chosen, copied and opened in full screen with keys."""

from typing import Any

from textual.pilot import Pilot

from tests.support.table import table
from tests.ui.row_kit import DIFF, FoldWithLedger, HostApp, Teller, answer, ended, queued, rows_of, user
from tests.ui.still import drawn, notes, pressing, still_app
from tests.ui.story import Story, working
from tests.ui.transcript.test_conversation import seen, tell
from tui_agent.protocol.messages import TextBlock
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.transcript.markdown_blocks import fenced_texts
from tui_agent.ui.transcript.transcript_layout import Transcript
from tui_agent.ui.transcript.transcript_view import PartCursor

SIZE = (90, 24)
TWO_BLOCKS = """Here:

```make
all:
\techo one
```

1. and in a list

   ```python
   def price():
       return 1
   ```

That is all."""


def output_of(call_id: str, name: str, text: str, **details: object) -> object:
    return ended(call_id, name, details=details or None).model_copy(update={"content": (TextBlock(text=text),)})


def messages(pilot: Pilot[None]) -> list[str]:
    """Return the short messages on the screen."""
    app: Any = pilot.app
    return notes(app) if isinstance(app, TuiAgentApp) else [note.message for note in app._notifications]


async def test_arrows_choose_messages_and_calls_and_say_what_is_chosen() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        events = [user("look\ncloser"), answer("I look."), queued("c1", "bash"), output_of("c1", "bash", "x")]
        conversation = await tell(pilot, *events)
        conversation.focus()
        await pilot.pause()
        assert seen(conversation)[-1].endswith("↑ chooses")

        await pilot.press("up")
        await pilot.pause()
        assert any(row.startswith("▎✔ bash") for row in seen(conversation))
        assert "#1 bash · " in seen(conversation)[-1]
        assert "alt+c copy · ctrl+o full screen" in seen(conversation)[-1]

        await pilot.press("up", "up")
        await pilot.pause()
        assert "message · 2 lines" in seen(conversation)[-1]

        await pilot.press("alt+c")
        await pilot.pause()
        assert pilot.app.clipboard == "look\ncloser"
        assert messages(pilot) == ["Copied 2 lines"]


async def test_each_code_block_is_copied_as_it_was_written() -> None:
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, answer(TWO_BLOCKS))
        conversation.focus()
        await pilot.press("up", "right", "alt+c")
        await pilot.pause()

        assert pilot.app.clipboard == "all:\n\techo one"
        assert "code 1 of 2 · 2 lines" in seen(conversation)[-1]
        marked = [row for row in seen(conversation) if row.startswith("▎")]
        assert [row.strip("▎ ") for row in marked] == ["all:", "echo one"]

        await pilot.press("right", "alt+c")
        await pilot.pause()
        assert pilot.app.clipboard == "def price():\n    return 1"

        await pilot.press("right", "alt+c")
        await pilot.pause()
        assert pilot.app.clipboard == TWO_BLOCKS

        await pilot.press("left", "alt+c")
        await pilot.pause()
        assert pilot.app.clipboard == "def price():\n    return 1"


async def test_input_output_and_diff_of_a_call_are_copied_by_themselves() -> None:
    fold = FoldWithLedger(Transcript())
    teller = Teller()
    coloured = output_of("c1", "bash", "\x1b[31mred\x1b[0m\nplain\n")
    edited = output_of("c2", "edit", "ok", diff=DIFF, path="src/price.py")
    run = queued("c1", "bash").model_copy(update={"args_raw": {"command": "ls\nls -l"}})
    for event in (run, coloured, queued("c2", "edit"), edited):
        fold.apply(teller.tell(event))  # type: ignore[arg-type]
    fold.flush()
    rows_of(fold.transcript)
    cursor = PartCursor(fold.transcript)

    copied: dict[str, str] = {}
    while cursor.step(backwards=True, opens=False):
        while cursor.step_piece(backwards=False) and cursor.piece is not None:
            copied[f"{cursor.part.title} {cursor.piece.name}"] = cursor.text  # type: ignore[union-attr]

    assert copied == {
        "#2 edit output": "ok",
        "#2 edit diff": DIFF.rstrip("\n"),
        "#1 bash input": "ls\nls -l",
        "#1 bash output": "red\nplain",
    }


async def test_a_part_higher_than_the_window_is_scrolled_before_it_is_left() -> None:
    text = "\n\n".join(f"point {number}" for number in range(40))
    async with HostApp().run_test(size=SIZE) as pilot:
        conversation = await tell(pilot, user("first"), answer(text))
        conversation.focus()
        await pilot.press("up")
        await pilot.pause()
        top = conversation.scroll_offset.y
        await pilot.press("down", "down")
        await pilot.pause()

        assert conversation.scroll_offset.y == top + 2
        assert "answer · 79 lines" in seen(conversation)[-1]


async def test_a_part_opens_in_full_screen_and_is_copied_there() -> None:
    async with still_app(working(), running=True).run_test(size=(100, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pressing()(pilot)
        app.chat.body.conversation.focus()
        await pilot.press("home", *["up"] * 9, "ctrl+o")
        await pilot.pause()
        assert isinstance(app.screen, PartPage)

        await pilot.press("c")
        await pilot.pause()

        assert app.clipboard == "fix the failing price test"
        assert messages(pilot) == ["Copied 1 line"]
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.chat


async def test_an_answer_in_any_script_is_shown_calmly_and_copied_exactly() -> None:
    words = "سلام، می\u200cخواهم \u200eREADME.md שלום\u200f! 葛\U000e0100城 नहीं\u200c क्\u200dष \u2066x\u2069"
    exact = f"{words} Donau\u00addampf 👍🏽 🇩🇪 10\u202f000"
    async with still_app(Story().run("go").step(0).answer(exact).end()).run_test(size=(150, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pressing()(pilot)
        rows = seen(app.chat.body.conversation)
        place = next(y for y, row in enumerate(rows) if "README" in row)
        assert "\\u200" not in rows[place]
        assert "Donaudampf" in rows[place]
        await pilot.mouse_down("#conversation", offset=(3, place))
        await pilot.hover("#conversation", offset=(120, place))
        await pilot.mouse_up("#conversation", offset=(120, place))
        await pilot.press("ctrl+c")
        await drawn(pilot)
        # Only what moves other text is an escape on the screen.
        assert app.clipboard.startswith(words.replace("\u2066", "\\u2066").replace("\u2069", "\\u2069"))

        app.chat.entry.composer.put_back("/copy")
        await pilot.press("enter")
        await drawn(pilot)
        assert app.clipboard == exact


SLASH_COPY = {
    "/copy": ("Now it is **done**.", "Copied 1 line"),
    "/copy 2": ("So:\n\n```py\na\nb\n```\n\nor\n\n```\nc\n```", "Copied 12 lines"),
    "/copy code": ("c", "Copied 1 line"),
    "/copy code 2": ("a\nb", "Copied 2 lines"),
    "/copy 9": ("", "Nothing was copied: this conversation has fewer than 9 answers."),
    "/copy all": ("", "/copy copies the last answer, /copy 2 the one before, /copy code the last code block."),
}


async def test_slash_copy_copies_an_answer_or_its_code() -> None:
    story = Story().run("explain").step(0).answer("So:\n\n```py\na\nb\n```\n\nor\n\n```\nc\n```")
    story.user("go").step(1).answer("Now it is **done**.").end()
    async with still_app(story).run_test(size=(100, 30)) as pilot:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pressing()(pilot)
        for command, (copied, said) in SLASH_COPY.items():
            app._clipboard = ""
            app.chat.entry.composer.load_text(command)
            await pilot.press("enter")
            await drawn(pilot)

            assert (command, app.clipboard, messages(pilot)[-1]) == (command, copied, said)


@table(
    ("source", "texts"),
    [
        ("```\na\n```", ["a"]),
        ("~~~py\na\n```\n~~~", ["a\n```"]),
        ("````\n```\nin\n```\n````", ["```\nin\n```"]),
        ("- x\n\n  ```\n  a\n    b\n  ```", ["a\n  b"]),
        ("> ```\n> a\n> ```", ["a"]),
        ("```\nnever closed", ["never closed"]),
        ("inline ```code``` only", []),
    ],
)
def test_fences_keep_what_is_between_them(source: str, texts: list[str]) -> None:
    assert fenced_texts(source) == texts
