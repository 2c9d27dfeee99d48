"""The chat with a simulated user, a real agent loop behind the bridge, and a scripted model."""

import asyncio
from collections import Counter

import pytest
from rich.console import RenderableType
from textual.command import CommandList
from textual.events import Key
from textual.screen import Screen

from tests.support.table import table
from tests.ui.bridge.test_agent_bridge import FakeDefinitions
from tests.ui.open_bench import bench_of
from tests.ui.stage import Stage, StageTool, stage, sub_agent_at_work
from tests.ui.still import notes
from tui_agent.agent.guardrails import PromptCheck
from tui_agent.protocol.errors import ConfigurationError, TuiAgentError
from tui_agent.protocol.messages import JsonObject, UserMessage
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.providers.scripted_provider import Wait, call, reply
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.dialogs.answer_rules import SEEN_SECONDS
from tui_agent.ui.dialogs.list_page import ListPage
from tui_agent.ui.dialogs.text_page import TextPage
from tui_agent.ui.panel.call_list import CONFIRM_SECONDS

pytestmark = pytest.mark.slow


def kinds(on: Stage) -> dict[str, int]:
    """Return the number of calls of each kind in the panel."""
    return {kind: len(places) for kind, places in on.chat.state.ledger.places.items() if places}


async def dialog_of(on: Stage) -> ApprovalScreen:
    """Wait until an approval dialog is open and its answers count."""
    await on.until(lambda: isinstance(on.app.screen, ApprovalScreen))
    await on.pilot.pause()
    on.clock.now += 1
    screen = on.app.screen
    assert isinstance(screen, ApprovalScreen)
    return screen


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_prompt_that_a_hook_refuses_or_the_user_withdraws_returns_to_the_composer(is_slow: bool) -> None:
    class Refusing:
        async def check_prompt(self, message: UserMessage, /) -> PromptCheck:
            if is_slow:
                on.loop.abort("interrupted")
                await asyncio.sleep(60)
            return PromptCheck("no secrets", "a hook")

    async with stage() as on:
        # The other questions of a run are not asked.
        on.loop.config.run_hooks = Refusing()  # pyright: ignore[reportAttributeAccessIssue]
        await on.say("the secret is")
        await on.until(lambda: on.draft)

        assert (on.draft, on.told()) == ("the secret is", [])


async def test_a_follow_up_gets_a_turn_of_its_own() -> None:
    tool = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Done with a.", "Done with b.", "Done with c."], [tool]) as on:
        await on.say("look at a")
        await on.until(lambda: kinds(on) == {"running": 1})
        for text, key in (("then b", "alt+enter"), ("then c", "tab")):
            await on.type(text)
            await on.pilot.press(key)
            await on.until(lambda text=text: [one.text for one in on.chat.entry.queue.messages][-1:] == [text])
        assert all(message.follows_up for message in on.chat.entry.queue.messages)

        tool.gate.set()
        await on.settled()

        assert on.told() == ["look at a", "then b", "then c"]
        assert len(on.provider.requests) == 4


async def test_keys_of_an_idle_composer() -> None:
    async with stage(["Fine."]) as on:
        on.chat.set_focus(None)
        for key in "hello":
            on.app.post_message(Key(key, key))
        await on.until(lambda: on.draft == "hello")
        await on.pilot.press("tab")
        assert on.draft == "hello"
        assert not on.loop.running

        await on.pilot.press("alt+enter")
        await on.type("there")
        assert on.draft == "hello\nthere"
        await on.pilot.press("shift+home", "ctrl+c")
        await on.pilot.pause()
        assert on.app.clipboard == "there"
        assert on.draft == "hello\nthere"
        await on.pilot.press("end", "enter")
        await on.settled()
        assert on.told() == ["hello\nthere"]

        await on.type("half a thought")
        await on.pilot.press("ctrl+c")
        assert on.draft == ""
        await on.type("/t")
        await on.pilot.press("down")
        await on.pilot.press("tab")
        assert on.draft == "/thinking "
        await on.pilot.press("ctrl+u")
        await on.type("/")
        await on.pilot.press("escape")
        assert on.draft == "/"


# --- brakes -----------------------------------------------------------------------------------------------------------


async def test_n_in_the_menu_sends_what_waits_now() -> None:
    tool = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Looking at b."], [tool]) as on:
        await on.say("look at a")
        await on.until(lambda: kinds(on) == {"running": 1})
        await on.say("look at b instead")
        await on.until(lambda: on.chat.entry.queue.messages)
        await on.pilot.press("escape", "n")
        await on.until(lambda: len(on.loop.reports) == 2)

        assert [report.reason for report in on.loop.reports] == ["aborted", "done"]
        assert on.told() == ["look at a", "look at b instead"]


async def test_escape_shows_the_consequences_a_second_one_cancels_and_messages_that_wait_survive() -> None:
    tool = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Fine."], [tool]) as on:
        await on.say("look at a")
        await on.until(lambda: kinds(on) == {"running": 1})
        await on.say("and b")
        await on.until(lambda: on.chat.entry.queue.messages)
        await on.pilot.press("escape")
        assert on.chat.entry.menu.is_open
        assert "esc again: cancel 1 tool and stop" in on.chat.entry.menu.render().plain
        await on.pilot.press("escape")
        await on.settled()
        assert on.loop.reports[-1].reason == "aborted"
        assert kinds(on) == {"cancelled": 1}
        assert not on.chat.entry.menu.is_open
        assert on.app.focused is on.chat.entry.composer
        assert [message.text for message in on.chat.entry.queue.messages] == ["and b"]

        await on.pilot.press("ctrl+s")
        await on.until(lambda: len(on.loop.reports) == 2)

        assert on.told() == ["look at a", "and b"]
        assert not on.chat.entry.queue.messages


# --- questions --------------------------------------------------------------------------------------------------------


async def test_questions_are_allowed_denied_put_off_and_settled_elsewhere() -> None:
    tool = StageTool("change", read_only=False)
    steps = [*(reply(call("change", what=name)) for name in "abcde"), "Changed."]
    async with stage(steps, [tool]) as on:
        await on.say("change all")
        on.clock.now += 5
        dialog = await dialog_of(on)
        assert dialog.request.summary == "a", "it opens by itself"
        await on.pilot.press("y")
        await on.until(lambda: tool.ran == ["a"])

        await on.until(lambda: on.app.screen is not dialog)
        on.clock.now += 5
        dialog = await dialog_of(on)
        assert dialog.request.summary == "b"
        await on.pilot.press("n")

        await on.until(lambda: on.app.screen is not dialog)
        on.clock.now += 5
        dialog = await dialog_of(on)
        assert dialog.request.summary == "c"
        await on.pilot.press("escape")
        await on.until(lambda: on.app.screen is on.chat)
        on.clock.now += 60
        await on.pilot.pause()
        assert on.app.screen is on.chat, "put off, it stays closed"
        assert on.chat.approvals.line.display
        assert kinds(on)["needs_you"] == 1
        await on.pilot.press("ctrl+y")
        dialog = await dialog_of(on)
        await on.pilot.press("escape")
        await on.until(lambda: on.app.screen is on.chat)
        await on.pilot.click("#attention")
        dialog = await dialog_of(on)
        await on.pilot.press("y")
        await on.until(lambda: tool.ran == ["a", "c"])

        await on.until(lambda: on.app.screen is not dialog)
        on.clock.now += 5
        dialog = await dialog_of(on)
        on.loop.set_mode(PermissionMode.ALLOW, "elsewhere")
        await on.settled()

        assert on.app.screen is on.chat
        assert tool.ran == ["a", "c", "d", "e"]
        assert not on.chat.approvals.line.display
        assert on.loop.reports[-1].reason == "done"


@pytest.mark.parametrize("key", ["escape", "n"])
async def test_the_conversation_moves_once_when_the_dialog_closes(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, heights = StageTool("change", read_only=False), list[int]()
    async with stage([reply(call("change", what="a")), "Changed."], [tool], size=(100, 30)) as on:
        await on.say("change a")
        on.clock.now += 5
        await dialog_of(on)
        display = on.app._display

        def note_frame(screen: Screen[object], renderable: RenderableType | None) -> None:
            if on.app.screen is on.chat:
                heights.append(on.chat.body.conversation.region.height)
            display(screen, renderable)

        monkeypatch.setattr(on.app, "_display", note_frame)
        await on.pilot.press(key)
        await on.until(lambda: on.app.screen is on.chat and heights)
        await on.pilot.pause()

        assert len(set(heights)) == 1


@table(("text", "gap"), [("no, use pytest", 0.0), ("yes and no", 0.1)])
async def test_a_text_typed_over_a_question_is_a_message_and_the_question_opens_again_after_it(
    text: str, gap: float
) -> None:
    tool, running = StageTool("change", read_only=False), StageTool("look", waits=True)
    steps = [reply(call("look", what="b"), call("change", what="a")), reply(call("change", what="c")), "Done."]
    async with stage(steps, [tool, running]) as on:
        await on.say("change a")
        on.clock.now += 5
        await dialog_of(on)
        for letter in text:
            on.app.post_message(Key({" ": "space"}.get(letter, letter), letter))
            await asyncio.sleep(gap)
        await on.until(lambda: on.draft == text)
        assert on.app.screen is on.chat
        assert on.chat.approvals.line.display
        assert on.chat.entry.composer.has_focus

        on.clock.now += 60
        on.chat.approvals.look()
        await on.pilot.pause()
        assert on.app.screen is on.chat, "it stays folded while the text waits"
        assert tool.ran == []

        await on.pilot.press("enter")
        await on.until(lambda: on.draft == "")
        on.clock.now += 5
        running.gate.set()
        second = await dialog_of(on)
        assert second.request.summary == "c"
        assert on.told() == ["change a", text]
        await on.pilot.press("y")
        await on.settled()
        assert tool.ran == ["c"]


async def test_no_question_opens_over_a_page_which_says_that_one_waits() -> None:
    tool = StageTool("change", read_only=False)
    async with stage([reply(call("change", what="a")), "Changed."], [tool]) as on:
        await on.say("change a")
        on.clock.now += 5
        await dialog_of(on)
        await on.type("/theme")
        await on.until(lambda: on.draft == "/theme" and on.app.screen is on.chat)
        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.app.screen, ListPage))
        page = on.app.screen
        await on.until(lambda: "Use change? a" in "".join(shown_rows(on)[-1:]))
        assert "close this page to answer" in shown_rows(on)[-1]
        on.clock.now += 60
        on.chat.approvals.look()
        await on.pilot.press("down", "right", "enter")
        await on.pilot.pause()
        assert tool.ran == []
        assert not isinstance(on.app.screen, ApprovalScreen)

        if on.app.screen is page:
            await on.pilot.press("escape")
        await on.until(lambda: on.app.screen is on.chat)
        on.clock.now += 5
        on.chat.approvals.look()
        await on.until(lambda: isinstance(on.app.screen, ApprovalScreen) and on.app.screen.guard.was_drawn)
        dialog = on.app.screen
        assert isinstance(dialog, ApprovalScreen)
        assert not dialog.guard.armed, "the user did not ask for it"
        on.clock.now += SEEN_SECONDS
        await on.pilot.press("y")
        await on.settled()
        assert tool.ran == ["a"]


# --- the rest of the keys ---------------------------------------------------------------------------------------------


SAID = {
    "/mode bold": "Unknown mode bold",
    "/theme nowhere": "Unknown theme nowhere",
    "/theme lite": "Unknown theme lite",
    "/cost": "0 tokens read · 0 written · cost unknown",
    "/stop": "Nothing is running",
    "/hlep": "There is no command /hlep. Did you mean /help? \\/hlep sends the text.",
}
"""Answers to commands."""

REFUSED = ("/mode bold", "/theme nowhere", "/theme lite", "/hlep")
"""Commands that stay in the composer because they cannot be done."""


async def test_commands_by_name_do_what_they_say_and_answer_in_words() -> None:
    async with stage() as on:
        seen = []
        for _ in range(4):
            await on.pilot.press("shift+tab")
            seen.append(on.policy.mode.value)
        assert seen == ["accept_edits", "plan", "ask", "accept_edits"]
        await on.until(lambda: "accept edits" in on.chat.bars.frame.render().plain)

        await on.say("/mode plan")
        await on.until(lambda: on.policy.mode is PermissionMode.PLAN)
        await on.say("/help")
        await on.until(lambda: isinstance(on.app.screen, TextPage))
        await on.pilot.press("pagedown", "down", "up", "pageup", "end", "home", "escape")
        await on.until(lambda: on.app.screen is on.chat)
        await on.until(lambda: len(on.chat.commands.settings.theme_names) == 5)
        await on.say("/theme light")
        await on.until(lambda: on.app.theme == "light")

        for typed, answer in SAID.items():
            await on.say(typed)
            await on.until(lambda answer=answer: any(answer in note for note in notes(on.app)))
            await on.until(lambda typed=typed: on.draft == (typed if typed in REFUSED else ""))
            if on.draft:
                await on.pilot.press("ctrl+c")

        await on.say("!")
        await on.pilot.pause()
        assert kinds(on) == {}
        assert not on.loop.running
        await on.pilot.press("ctrl+u")

        await on.say("/rename")
        await on.until(lambda: on.draft == "/rename")
        await on.pilot.press("space", "m", "y", "space", "w", "enter")
        parts = on.chat.body.conversation.transcript.parts
        await on.until(lambda: any("This session is called my w now" in part.text for part in parts))

        assert on.told() == []
        await on.say("/quit")
        await on.until(lambda: on.app.return_code == 0)


async def test_after_an_answer_the_next_question_takes_its_key_at_once() -> None:
    tool = StageTool("act", read_only=False)
    steps = [reply(*(call("act", what=word) for word in "abcde")), reply("done")]
    async with stage(steps, [tool]) as on:
        on.chat.bridge.submit("go")
        first = await dialog_of(on)
        await on.until(lambda: first.total == 5 and first.guard.was_drawn)
        dialog = first
        for _ in range(4):
            await on.pilot.press("n")
            await on.until(
                lambda dialog=dialog: isinstance(on.app.screen, ApprovalScreen) and on.app.screen is not dialog
            )
            shown = on.app.screen
            assert isinstance(shown, ApprovalScreen)
            await on.until(lambda shown=shown: shown.guard.was_drawn)
            assert shown.guard.armed, "no time has passed"
            dialog = shown
            on.clock.now += 0.3
        await on.pilot.press("n")
        await on.settled()

        assert tool.ran == []
        assert on.draft == ""


async def test_the_status_shows_answers_that_can_be_recalled_and_the_key_for_it() -> None:
    tool = StageTool("act", read_only=False)
    steps = [reply(*(call("act", what=word) for word in "ab")), reply("done")]
    async with stage(steps, [tool]) as on:
        on.chat.bridge.submit("go")
        first = await dialog_of(on)
        await on.until(lambda: first.total == 2 and first.guard.was_drawn)
        shown: list[str] = []
        on.app.watch(on.chat.bars.line, "answers", lambda words: shown.append(words), init=False)
        await on.pilot.press("n")
        await on.until(lambda: shown)
        await on.pilot.press("escape")
        await on.until(lambda: not on.chat.bars.line.answers)
        assert shown[:2] == ["⊘ no · esc takes it back", ""]
        on.loop.set_mode(PermissionMode.ALLOW, "elsewhere")
        await on.settled()


def shown_rows(on: Stage) -> list[str]:
    """Return the rows of the whole screen."""
    rows = on.app.screen._compositor.render_strips(on.app.size)
    return ["".join(segment.text for segment in row) for row in rows]


async def test_the_row_of_the_call_stays_in_sight_above_its_question() -> None:
    tool = StageTool("act", read_only=False)
    story = "\n\n".join(f"paragraph {number}" for number in range(60))
    steps = [reply(story, call("act", what="here")), reply("done")]
    async with stage(steps, [tool], size=(80, 24)) as on:
        on.chat.bridge.submit("go")
        dialog = await dialog_of(on)
        await on.until(lambda: dialog.guard.was_drawn)
        await on.until(lambda: any("▲ act here" in row for row in shown_rows(on)))
        rows = shown_rows(on)
        (asked,) = [place for place, row in enumerate(rows) if "▲ act here" in row]
        assert asked < dialog.dialog.region.y
        assert any("paragraph 59" in row for row in rows)
        assert on.chat.body.conversation.region.bottom <= dialog.dialog.region.y

        await on.pilot.press("n")
        await on.settled()
        await on.until(lambda: not on.chat.body.conversation.styles.margin.bottom)


async def test_the_palette_shows_the_most_used_first_and_runs_commands() -> None:
    async with stage(size=(80, 24)) as on:
        await on.pilot.press("ctrl+p")
        await on.until(lambda: on.app.screen is not on.chat)
        entries = on.app.screen.query_one(CommandList)
        await on.until(lambda: entries.option_count)
        rows = [str(option.prompt) for option in entries.options]

        assert rows[0].startswith("search")
        assert rows[0].endswith("ctrl+f")
        assert rows[-1].startswith("quit")
        assert {"\n" in row or len(row) > 80 for row in rows} == {False}
        await on.pilot.press("enter")
        await on.until(lambda: on.app.screen is on.chat)
        assert on.app.is_running, "enter does not quit"

        await on.pilot.press("escape", "ctrl+p")
        await on.until(lambda: on.app.screen is not on.chat)
        await on.type("mode: plan")
        await on.pilot.pause(0.2)
        await on.pilot.press("enter")
        await on.until(lambda: on.policy.mode is PermissionMode.PLAN)


# --- commands of the user ---------------------------------------------------------------------------------------------


def bash() -> StageTool:
    """A shell tool that returns its command."""
    return StageTool("bash", text="one file")


async def test_a_shell_command_runs_at_once_and_the_model_reads_it_later_unless_it_is_private() -> None:
    async with stage(["I see one file.", "Hello."], [bash()]) as on:
        await on.say("!ls")
        await on.until(lambda: kinds(on) == {"done": 1})
        assert on.loop.reports == ()
        await on.say("what is there")
        await on.settled()
        assert on.told() == ["I ran this myself: !ls\n\none file", "what is there"]

        await on.say("!!ls")
        await on.until(lambda: kinds(on) == {"done": 2})
        await on.say("hello")
        await on.until(lambda: len(on.loop.reports) == 2)
        assert on.told()[2:] == ["hello"]


async def test_a_shell_command_while_the_agent_works_stays_in_the_composer() -> None:
    tool = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Done."], [tool, bash()]) as on:
        await on.say("look at a")
        await on.until(lambda: kinds(on) == {"running": 1})
        await on.say("!ls")
        await on.until(lambda: on.draft == "!ls")

        assert kinds(on) == {"running": 1}
        tool.gate.set()
        await on.settled()


# --- what fills the window, what a run came to ------------------------------------------------------------------------


ANSWERS = [f"{name} {'word ' * 800}" for name in ("one", "two", "three", "four", "five", "six", "seven", "eight")]


async def talked(on: Stage) -> None:
    """Send messages until the conversation is long enough to be compacted."""
    for number in range(len(ANSWERS)):
        await on.say(f"go on {number}")
        await on.until(lambda number=number: len(on.loop.reports) == number + 1 and not on.chat.bridge.status.running)


async def test_compact_shortens_the_conversation_and_keeps_what_is_named() -> None:
    async with stage([*ANSWERS, "It was about words."]) as on:
        await talked(on)
        await on.say("/compact the numbers")
        parts = on.chat.body.conversation.transcript.parts
        await on.until(lambda: any("Conversation shortened" in part.text for part in parts))
        await on.say("/compact undo")
        await on.until(lambda: any("Shortening undone" in part.text for part in parts))
        await on.say("/compact undo")
        await on.pilot.pause()

        assert on.draft == ""
        assert on.told() == [f"go on {number}" for number in range(len(ANSWERS))]
        assert "the numbers" in str(on.provider.requests[-1].messages)


async def test_shortening_can_be_cancelled_and_a_message_that_came_meanwhile_is_sent() -> None:
    async with stage([*ANSWERS, reply(Wait(asyncio.Event()), "never"), "Hello."]) as on:
        await talked(on)
        before = on.loop.history.messages()
        await on.say("/compact")
        await on.until(lambda: on.chat.state.status.status == "compacting")
        await on.say("still there?")
        await on.pilot.press("escape", "escape")
        await on.until(lambda: len(on.loop.reports) == len(ANSWERS) + 1)

        assert list(on.loop.history.messages())[: len(before)] == list(before)
        assert on.told()[-1] == "still there?"


class LeftoverCommands:
    """Leftover commands that record their calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def report(self) -> None:
        self.asked.append("report")

    async def end(self, pid: int | None) -> None:
        self.asked.append(f"end {pid}")


async def test_what_an_earlier_program_left_running_is_shown_and_ended_by_command() -> None:
    left = LeftoverCommands()
    async with stage([]) as on:
        on.chat.bridge.open(bench_of(on.loop, on.bus))
        await on.say("/jobs kill all of them")
        await on.until(lambda: on.draft == "/jobs kill all of them")
        await on.pilot.press("ctrl+c")
        await on.say("/jobs")
        await on.until(lambda: on.draft == "")
        on.chat.bridge.open(bench_of(on.loop, on.bus, leftovers=left))
        await on.say("/jobs")
        await on.until(lambda: left.asked)
        await on.say("/jobs kill 12")
        await on.until(lambda: len(left.asked) == 2)
        await on.say("/jobs kill")
        await on.until(lambda: len(left.asked) == 3)

        assert left.asked == ["report", "end 12", "end None"]
        assert on.told() == []


# --- one call alone ---------------------------------------------------------------------------------------------------


async def test_a_row_of_the_panel_is_cancelled_by_its_key_which_asks_once() -> None:
    slow = StageTool("look", waits=True)
    async with stage([reply(call("look", what="a")), "Then not."], [slow]) as on:
        await on.say("look")
        await on.until(lambda: kinds(on) == {"running": 1})
        await on.pilot.press("ctrl+t", "end", "ctrl+x")
        await on.until(lambda: any("again cancels #1 look" in note for note in notes(on.app)))
        on.clock.now += CONFIRM_SECONDS + 0.1
        await on.pilot.press("ctrl+x")
        await on.pilot.pause()
        assert kinds(on) == {"running": 1}, "the first press was long ago"

        await on.pilot.press("delete")
        await on.settled()

        assert [entry.view.status for entry in on.chat.state.ledger.calls] == ["cancelled"]


async def test_a_wrong_name_after_an_at_sign_steers_nothing_and_skips_nothing() -> None:
    async with sub_agent_at_work() as (on, slow, agent_id):
        name = agent_id.rpartition("-")[0]
        await on.say("@#9 no such call")
        await on.until(lambda: on.draft == "@#9 no such call")
        await on.pilot.press("ctrl+c")
        await on.say("@explorer hello")
        await on.until(lambda: on.draft == "@explorer hello")

        assert on.chat.entry.refusal.reason == (
            f"No sub-agent is named explorer. Running: @{name}. A blank before @ sends it to the agent."
        )
        assert not on.loop.waiting_messages
        await on.pilot.press("ctrl+c")
        await on.say(f"@{name} hello")
        await on.until(lambda: on.loop.children[agent_id].waiting_messages)
        slow.gate.set()
        await on.settled()

        assert on.told() == ["go"]
        assert [entry.view.status for entry in on.chat.state.ledger.calls] == ["ok", "ok"]


class FakeFiles:
    """Files that are found at once, except for `slow`, which waits forever."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    async def find(self, text: str) -> tuple[str, ...]:
        self.asked.append(text)
        if text == "slow":
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(text)
        return tuple(name for name in ("docs/slower.md", "src/price.py") if text in name)


async def test_files_are_completed_and_the_next_key_cancels_a_search() -> None:
    async with stage(["Read."]) as on:
        found = FakeFiles()
        on.chat.bridge.open(bench_of(on.loop, on.bus, files=found))
        await on.type("see ")
        await on.pilot.press("at", *"slow")
        await on.until(lambda: "slow" in found.asked)
        await on.pilot.press("e")
        await on.until(lambda: found.cancelled)
        await on.until(lambda: on.chat.entry._suggestions.display)
        await on.pilot.press("tab", "enter")
        await on.settled()

        assert on.told() == ["see @docs/slower.md "]


# --- earlier prompts and drafts ---------------------------------------------------------------------------------------


class FakePrompts:
    """Prompts in memory, the newest first, and a draft."""

    def __init__(self, *prompts: str, draft: str = "") -> None:
        self.prompts = list(prompts)
        self.draft = draft
        self.saved: list[str] = []
        self.counted: list[str] = []

    async def command_uses(self) -> dict[str, int]:
        return dict(Counter(self.counted))

    async def count_command(self, name: str) -> None:
        self.counted.append(name)

    async def find(self, text: str) -> tuple[str, ...]:
        return tuple(prompt for prompt in self.prompts if text in prompt)

    async def all(self) -> tuple[str, ...]:
        return tuple(reversed(self.prompts))

    async def add(self, text: str, session_id: str) -> None:
        self.prompts.insert(0, text)

    async def earlier_draft(self) -> str:
        return self.draft

    async def save_draft(self, text: str) -> None:
        self.saved.append(text)

    def forget_draft(self) -> None:
        self.saved.clear()


async def test_ctrl_r_finds_an_earlier_prompt_enter_takes_it_and_leaving_returns_the_draft() -> None:
    async with stage(["Done."]) as on:
        prompts = on.chat.bridge.prompts = FakePrompts("fix the docs", "run tests", "fix price\nand rice")
        on.chat.bridge.bench = bench_of(on.loop, on.bus, prompt_history=prompts)
        menu = on.chat.entry._suggestions
        await on.type("half")
        for key in ("escape", "ctrl+c"):
            await on.pilot.press("ctrl+r", "x")
            await on.until(lambda: "No earlier prompt" in menu.render().plain)
            await on.pilot.press("enter", key)
            await on.until(lambda: on.draft == "half")
            assert not menu.display
        await on.pilot.press("ctrl+u", "ctrl+r")
        await on.until(lambda: menu.display)
        title, *rows = menu.render().plain.splitlines()
        assert title.strip().startswith("Earlier prompts")
        assert len(rows) == 3
        assert on.chat.entry._marker.render().plain == " / "
        assert on.chat.entry.composer.placeholder == "search"
        await on.type("fix")
        await on.until(lambda: len(menu.render().plain.splitlines()) == 3)
        await on.pilot.press("ctrl+r", "enter")
        assert on.draft == "fix price\nand rice"
        assert on.told() == []
        assert not menu.display
        await on.pilot.press("enter")
        await on.settled()
        assert on.told() == ["fix price\nand rice"]
        assert prompts.prompts[0] == "fix price\nand rice"


async def test_a_slash_and_enter_are_harmless_and_the_menu_learns_what_is_used() -> None:
    async with stage() as on:
        prompts = on.chat.bridge.prompts = FakePrompts()
        on.chat.bridge.bench = bench_of(on.loop, on.bus, prompt_history=prompts)
        await on.pilot.press("slash", "enter")
        await on.until(lambda: isinstance(on.app.screen, TextPage))
        assert on.told() == []
        await on.pilot.press("escape", *"/cost", "enter")
        await on.until(lambda: prompts.counted == ["help", "cost"])

        await on.pilot.press("slash", *"co")
        await on.until(lambda: on.chat.entry._suggestions.display)
        assert on.chat.entry._suggestions.render().plain.split()[1] == "/cost"


async def test_a_misspelt_command_is_never_sent_and_a_path_or_an_escaped_slash_is() -> None:
    sent = {"\\/modle opus": "/modle opus", "/etc/hosts is empty": "/etc/hosts is empty"}
    async with stage(["Done."] * len(sent)) as on:
        for text in ("/modle opus", "/modle", "/Model opus", "/clear all of it", "/help\nme"):
            await on.say(text)
            await on.until(lambda text=text: on.draft == text and any("sends" in note for note in notes(on.app)))
            if "odel" in text or "odle" in text:
                assert "Did you mean /model?" in notes(on.app)[-1]
            await on.pilot.press("ctrl+c")
        assert on.told() == []
        for number, text in enumerate(sent, start=1):
            await on.say(text)
            await on.until(lambda number=number: len(on.loop.reports) == number)
        assert on.told() == list(sent.values())


async def test_a_question_mark_shows_keys_until_more_is_typed_and_enter_shows_all() -> None:
    async with stage(["Done."]) as on:
        menu = on.chat.entry._suggestions
        await on.pilot.press("question_mark")
        await on.until(lambda: menu.display)
        text = menu.render().plain
        assert "Keys" in text.splitlines()[0]
        assert "ctrl+r" in text
        await on.type("what")
        await on.until(lambda: not menu.display)
        assert on.draft == "?what"
        await on.pilot.press("ctrl+c", "question_mark", "escape")
        await on.until(lambda: on.draft == "" and not menu.display)
        await on.pilot.press("question_mark", "enter")
        await on.until(lambda: isinstance(on.app.screen, TextPage))
        assert on.draft == ""
        assert on.told() == []


async def test_a_draft_is_kept_while_it_is_typed_and_offered_again() -> None:
    async with stage() as on:
        kept = on.chat.bridge.prompts = FakePrompts("half a sentence", draft="half a sentence")
        await on.chat.input.load_prompts()
        await on.pilot.pause()
        line = on.chat.entry.refusal
        assert line.render().plain.strip() == "▲ ctrl+r brings back your unsent draft: half a sentence"
        await on.pilot.press("ctrl+r")
        await on.until(lambda: on.chat.entry._suggestions.display)
        await on.pilot.press("enter")
        await on.until(lambda: kept.saved[-1:] == ["half a sentence"])
        assert on.draft == "half a sentence"
        assert not line.display
        await on.pilot.press("ctrl+c")
        await on.until(lambda: kept.saved[-1] == "")


class FakeCommands:
    """Commands of the program that only note what they were asked."""

    def __init__(self) -> None:
        self.chosen: list[str] = []

    async def export(self, file: str) -> str:
        if file == "taken.md":
            raise TuiAgentError("taken.md exists.")
        return f"/shop/{file or 'session.md'}"

    commands = ()

    async def doctor(self) -> str:
        return "ok    git        works"

    def list(self) -> tuple[()]:
        return ()

    def choose(self, name: str) -> None:
        self.chosen.append(name)

    def choose_effort(self, name: str) -> str:
        if name == "wild":
            raise ConfigurationError("Unknown effort wild")
        return f"effort {name}"

    async def keep_default(self, setting: str) -> str:
        return f"/home/me/{setting}.toml"


async def test_commands_of_the_program_answer_in_words() -> None:
    async with stage() as on:
        await on.say("/doctor")
        await on.until(lambda: any("does not have this command" in note for note in notes(on.app)))
        told = "New sessions begin with this model: saved in /home/me/model.toml."
        for typed, answer in {
            "/export": "The session was exported to /shop/session.md.",
            "/export taken.md": "taken.md exists.",
            "/model": "/model NAME uses another one",
            "/model claude-test": "The next request uses claude-test. /model --default makes it",
            "/model claude-test --default": told,
            "/model --default": told,
            "/effort HIGH": "effort high",
            "/effort wild": "Unknown effort wild",
        }.items():
            commands = FakeCommands()
            on.chat.bridge.open(bench_of(on.loop, on.bus, commands=commands, models=commands))
            before = notes(on.app)
            await on.say(typed)
            await on.until(lambda before=before: notes(on.app) != before)
            assert answer in notes(on.app)[-1]
            assert commands.chosen == (["claude-test"] if "claude" in typed else [])
            if on.draft:
                await on.pilot.press("ctrl+c")

        assert on.told() == []
        await on.say("/doctor")
        await on.until(lambda: isinstance(on.app.screen, TextPage))


class LimitedTool(StageTool):
    """A tool with a time limit."""

    def timeout(self, arguments: JsonObject) -> float | None:
        return 100.0 if arguments.get("what") == "a" else None


async def test_a_key_gives_the_selected_call_sixty_seconds_more() -> None:
    look = LimitedTool("look", waits=True)
    async with stage([reply(call("look", what="a"), call("look", what="b")), "Done."], [look]) as on:
        await on.say("look")
        await on.until(lambda: len(look.ran) == 2)
        shown = lambda: " ".join(notes(on.app))  # noqa: E731
        await on.pilot.press("ctrl+t", "home", "ctrl+e")
        await on.until(lambda: "#1 may run 60 s longer, 2:40 in all." in shown())
        await on.until(lambda: on.chat.state.ledger.calls[0].view.timing.timeout_s == 160.0)
        await on.pilot.press("down", "ctrl+e")
        await on.until(lambda: "#2 has no time limit." in shown())

        look.gate.set()
        await on.settled()
        await on.pilot.press("home", "enter", "end", "ctrl+e")
        await on.until(lambda: "#2 has already ended." in shown())
        assert on.draft == ""


async def test_commands_of_files_complete_and_run_and_others_keep_their_message() -> None:
    files = FakeDefinitions()
    async with stage([]) as on:
        on.chat.bridge.open(bench_of(on.loop, on.bus, definitions=files))
        await on.until(lambda: on.chat.entry.composer.own_commands)
        await on.type("/lo")
        await on.until(lambda: on.chat.entry._suggestions.display)
        await on.pilot.press("enter")
        await on.until(lambda: files.runs == ["/look"])
        await on.say("/lokk")
        await on.until(lambda: notes(on.app))

        assert notes(on.app) == ["There is no command /lokk. Did you mean /look? \\/lokk sends the text."]
        assert on.draft == "/lokk"
