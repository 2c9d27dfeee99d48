"""The screen of a fleet as a user drives it: open a unit, steer, approve, stop, filter, leave."""

from tests.ui.fleet.fleet_stage import FleetStage, fleet_stage
from tests.ui.fleet.still_fleet import NOW, MemoryFleet, asks, busy_fleet, row, status, timed
from tests.ui.still import notes
from tests.ui.story import working
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.events import PermissionModeChanged
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.approval.approval_pages import ApprovalListScreen
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen
from tui_agent.ui.dialogs.text_page import TextPage
from tui_agent.ui.fleet.fleet_app import UnitChat
from tui_agent.ui.fleet.fleet_state import InputRejected


def three() -> MemoryFleet:
    """Return a fleet of three units at work."""
    return MemoryFleet(status(row(1), row(2), row(3)), timed(working()))


async def asked(on: FleetStage) -> ApprovalScreen:
    """Wait for a dialog whose answers count."""
    on.clock.now += 1.0
    on.app.post_message(on.fleet.Updated())
    await on.until(lambda: isinstance(on.app.screen, ApprovalScreen) and on.app.screen.guard.was_drawn)
    on.clock.now += 1.0
    dialog = on.app.screen
    assert isinstance(dialog, ApprovalScreen)
    return dialog


def offered(on: FleetStage) -> set[str]:
    """Return the keys below the rows that are not dim."""
    return {text.strip() for line in on.fleet._key_rows(120) for text, style in line.runs if style == "key"}


async def answer(on: FleetStage, key: str) -> None:
    """Press an answer key, and wait until it has taken effect."""
    screen = on.app.screen
    await on.press(key)
    await on.until(lambda: on.app.screen is not screen)
    on.fleet.approvals.settle()
    on.app.chat.approvals.settle()


# --- conversations ----------------------------------------------------------------------------------------------------


async def test_what_a_user_does_in_a_conversation_becomes_commands_of_its_unit() -> None:
    async with fleet_stage(three()) as on:
        await on.press("down")
        await on.open()
        assert "unit 002" in on.text()
        assert "Good, then I only change the helper." in on.text()
        await on.type("keep the API")
        await on.press("enter")
        await on.type("then the docs")
        await on.press("alt+enter")
        assert on.files.sent == [
            ("002", {"type": "user", "text": "keep the API"}),
            ("002", {"type": "follow_up", "text": "then the docs"}),
        ]

        await on.press("ctrl+c")
        await on.type("/stop")
        await on.press("enter")
        assert on.files.sent[2:] == [("002", {"type": "interrupt"}), ("002", {"type": "stop"})]

        await on.press("shift+tab")
        assert on.files.sent[-1] == ("002", {"type": "mode", "mode": "accept_edits"})
        # The mode changes with the unit's events, not with the key.
        story = working()
        since = len(story.envelopes)
        story.tell(PermissionModeChanged(old=PermissionMode.ASK, new=PermissionMode.ACCEPT_EDITS, by="user"))
        on.files.tell(story, since)
        await on.until(lambda: on.chat.bridge.status.mode is PermissionMode.ACCEPT_EDITS)
        await on.press("shift+tab")
        assert on.files.sent[-1] == ("002", {"type": "mode", "mode": "plan"})

        await on.type("half a th")
        await on.press("escape")
        assert on.app.screen is on.fleet
        await on.press("down")
        await on.open()
        assert on.chat.entry.composer.text == ""
        await on.press("escape", "up")
        await on.open()
        assert on.chat.entry.composer.text == "half a th", "an unsent text stays with its unit"
        assert len(on.files.sent) == 6


async def test_a_message_that_waits_is_shown_without_actions_that_a_unit_refuses() -> None:
    story = working()
    story.sends("keep the API")
    async with fleet_stage(MemoryFleet(status(row(1)), timed(story))) as on:
        await on.open()
        await on.until(lambda: on.chat.entry.queue.display and "keep the API" in on.text())
        strip = on.chat.entry.queue
        shown = strip.render().plain
        for action in ("edit", "drop", "✕", "▴", "⇄"):
            assert action not in shown
        await on.press("up", "alt+up", "ctrl+x")
        await on.pilot.mouse_down(strip, offset=(6, 1))
        await on.pilot.click(strip, offset=(6, 1))
        await on.pilot.click(strip, offset=(strip.size.width - 2, 1))
        assert notes(on.app) == []
        assert on.files.sent == []


async def test_what_a_unit_cannot_do_is_refused_and_kept() -> None:
    async with fleet_stage(three()) as on:
        await on.open()
        for text in ("/rewind", "/compact", "/model", "/resume", "/permissions", "/export", "/init"):
            on.chat.entry.composer.clear()
            await on.type(text)
            await on.press("enter")
            words = f"{text} does not work for a unit"
            await on.until(lambda words=words: any(words in note for note in notes(on.app)))
        on.chat.entry.composer.clear()
        await on.type("!ls")
        await on.press("enter")
        await on.until(lambda: any("runs no commands of yours" in note for note in notes(on.app)))
        assert on.chat.entry.composer.text == "!ls"
        on.chat.entry.composer.clear()
        await on.type("@#3 stop that")
        await on.press("enter")
        await on.until(lambda: "reaches only a unit as a whole" in on.text())
        assert on.chat.entry.composer.text == "@#3 stop that"
        assert on.files.sent == []


async def test_a_unit_that_has_ended_takes_no_message() -> None:
    async with fleet_stage(MemoryFleet(status(row(1, "done")), timed(working()))) as on:
        await on.open()
        assert "This unit takes no messages: it does not run" in on.text()
        await on.type("more")
        await on.press("enter")
        await on.until(lambda: "has ended and takes no messages" in on.text())
        assert on.chat.entry.composer.text == "more"
        assert on.files.sent == []


async def test_a_unit_that_has_not_started_shows_its_task_and_one_that_failed_before_its_reason() -> None:
    rows = row(1, "queued"), row(2, "failed", step=0, reason="no such branch")
    async with fleet_stage(MemoryFleet(status(*rows))) as on:
        await on.press("enter")
        assert isinstance(on.app.screen, TextPage)
        assert "waits for a free worker" in on.text()
        await on.press("escape", "down", "enter")
        assert isinstance(on.app.screen, TextPage)
        assert "no such branch" in on.text()


# --- questions --------------------------------------------------------------------------------------------------------


async def test_questions_of_all_units_queue_in_one_dialog_and_an_answer_goes_to_its_unit() -> None:
    async with fleet_stage(three()) as on:
        on.files.change(row(2, "asking"), row(3, "asking"), questions=(asks("002"), asks("003", "rm x", rule=None)))
        dialog = await asked(on)
        assert "Run this command? · unit 002" in on.text()
        assert "1 of 2" in on.text()
        await answer(on, "y")
        assert on.files.sent == [
            ("002", {"type": "approval", "request_id": "ask_002", "decision": "approve", "scope": "once"})
        ]
        assert dialog is not await asked(on)
        assert "unit 003" in on.text()
        await answer(on, "n")
        assert on.files.sent[-1] == ("003", {"type": "approval", "request_id": "ask_003", "decision": "deny"})


async def test_an_answered_question_returns_only_if_its_answer_had_no_effect() -> None:
    async with fleet_stage(three()) as on:
        on.files.change(row(2, "asking"), questions=(asks("002"),))
        await asked(on)
        await answer(on, "y")
        on.files.change(row(1, step=9), questions=(asks("002"),))  # The driver still lists it.
        await on.until(lambda: on.fleet.state.rows["001"].step == 9)
        assert on.app.screen is on.fleet
        assert not len(on.fleet.questions)

        on.files.put(InputRejected("Unit 002 cannot be reached."))
        on.files.change(questions=(asks("002"),))
        await asked(on)
        assert "Unit 002 cannot be reached." in notes(on.app)

        on.files.change(row(2))  # It was answered elsewhere.
        await on.until(lambda: on.app.screen is on.fleet)

        on.files.change(row(3, "asking"), questions=(asks("003"),))
        await asked(on)
        on.files.put(TuiAgentError("the driver closed it"))
        await on.until(lambda: on.app.screen is on.fleet and "read only" in on.text())
        assert "The connection to the fleet was lost: the driver closed it." in on.text()
        assert "003" in on.text()


async def test_questions_with_one_rule_are_answered_together_and_each_unit_gets_the_rule() -> None:
    async with fleet_stage(three()) as on:
        on.files.change(questions=(asks("001"), asks("002"), asks("003", "rm x", rule=None)))
        await asked(on)
        assert "1 more like it" in on.text()
        await answer(on, "a")
        page = on.app.screen
        assert isinstance(page, ApprovalListScreen)
        await on.press("s")
        await on.until(lambda: page._offer is not None and page.guard.was_drawn and not page._unread)
        on.clock.now += 1.0
        await answer(on, "s")
        assert on.files.sent == [
            (unit, {"type": "approval", "request_id": f"ask_{unit}", "decision": "approve", "scope": "session"})
            for unit in ("001", "002")
        ]
        await asked(on)
        assert "unit 003" in on.text()


async def test_in_a_conversation_questions_of_other_units_are_asked_and_those_put_off_wait_for_a_key() -> None:
    async with fleet_stage(three()) as on:
        on.files.change(row(1, "asking"), questions=(asks("001"),))
        await asked(on)
        await on.press("escape")
        await on.until(lambda: on.app.screen is on.fleet)
        assert "▲ Run this command?" in on.text()
        await on.open()
        assert isinstance(on.app.screen, UnitChat)
        await on.press("ctrl+y")
        assert isinstance(on.app.screen, ApprovalScreen)
        await asked(on)
        await answer(on, "y")

        on.files.change(row(3, "asking"), questions=(asks("003"),))
        await asked(on)
        assert "unit 003" in on.text()
        await answer(on, "y")
        assert on.files.sent[1:] == [
            ("003", {"type": "approval", "request_id": "ask_003", "decision": "approve", "scope": "once"})
        ]
        assert on.app.screen is on.chat


# --- the list ---------------------------------------------------------------------------------------------------------


async def test_the_cursor_stays_on_its_unit_while_rows_change() -> None:
    async with fleet_stage(MemoryFleet(busy_fleet().model_copy(update={"questions": ()}))) as on:
        await on.press("o", "home")
        chosen = on.fleet.rows.selected
        assert chosen is not None
        assert chosen.id == "012"
        on.files.change(row(12, "done"))
        await on.until(lambda: on.fleet.state.rows["012"].state == "done")
        assert on.fleet.rows.selected is on.fleet.state.rows["012"]
        assert on.fleet.rows.cursor > 10


async def test_a_filter_and_a_search_leave_only_matching_units() -> None:
    async with fleet_stage(MemoryFleet(busy_fleet().model_copy(update={"questions": ()}))) as on:
        await on.press("tab", "tab")
        assert [one.id for one in on.fleet.rows.items] == ["012", "013"]
        await on.press("slash")
        await on.type("reports q")
        assert on.fleet.rows.items == []
        assert "No unit matches" in on.text()
        await on.press("backspace", "backspace", "enter")
        assert [one.id for one in on.fleet.rows.items] == ["013"]
        await on.open()
        await on.press("escape")
        await on.press("escape")
        assert len(on.fleet.rows.items) == 40


async def test_letters_are_text_in_the_search_and_leaving_says_that_the_fleet_continues() -> None:
    async with fleet_stage(three()) as on:
        await on.press("slash")
        await on.type("sS q?")
        assert on.fleet._input.value == "sS q?"
        await on.press("escape", "q")
        await on.until(lambda: not on.app.is_running)
        words = "".join(str(text) for text in on.app._exit_renderables)
        assert "The fleet continues. tui-agent fleet status --watch out shows it again." in words
        assert on.files.stopped == []


async def test_a_click_selects_a_unit_and_a_second_one_opens_it() -> None:
    async with fleet_stage(three()) as on:
        await on.pilot.click("#fleet-rows", offset=(10, 1))
        assert on.fleet.rows.cursor == 1
        await on.pilot.click("#fleet-rows", offset=(10, 1))
        await on.until(lambda: on.app.screen is on.app.chat)


# --- stopping and leaving ---------------------------------------------------------------------------------------------


async def test_a_unit_is_stopped_by_a_second_press_and_now_by_two_more() -> None:
    async with fleet_stage(three()) as on:
        # The second press is on another unit, or comes too late.
        await on.press("s", "down", "s")
        on.clock.now += 10.0
        await on.press("s")
        assert on.files.stopped == []
        assert "s again stops unit 002 after its step" in on.text()
        # A key that is held down does not confirm.
        for _ in range(20):
            on.clock.now += 0.05
            await on.pilot.press("s")
        assert on.files.stopped == []
        await on.press("s")
        assert on.files.stopped == [(("002",), False)]
        await on.press("s", "s")
        assert on.files.stopped[1:] == [(("002",), True)]

        on.files.stopped.clear()
        await on.press("S")
        assert isinstance(on.app.screen, ConfirmScreen)
        await on.press("n", "enter")
        assert on.files.stopped == []
        await on.press("S")
        question = on.app.screen
        assert isinstance(question, ConfirmScreen)
        await on.until(lambda: question.guard.was_drawn)
        on.clock.now += 1.0
        await on.press("y", "enter")
        await on.until(lambda: on.files.stopped == [((), False)])

        await on.press("ctrl+c")
        assert on.app.is_running
        await on.press("ctrl+c")
        await on.until(lambda: not on.app.is_running)


async def test_a_unit_that_has_ended_is_not_stopped_and_the_key_is_not_offered() -> None:
    async with fleet_stage(MemoryFleet(status(row(1, "done"), row(2)))) as on:
        await on.press("s", "s")
        assert on.files.stopped == []
        assert "Unit 001 has ended already" in on.text()
        assert offered(on) == {"enter", "/", "tab", "o", "i", "t", "?", "q"}
        await on.press("down")
        assert "s" in offered(on)


# --- without a driver -------------------------------------------------------------------------------------------------


async def test_without_a_driver_the_rows_stay_and_nothing_can_be_sent() -> None:
    async with fleet_stage(MemoryFleet(busy_fleet().without_driver(NOW), timed(working()))) as on:
        assert "no driver · read only" in on.text()
        assert not len(on.fleet.questions)
        await on.press("s")
        assert "no driver works on this fleet" in on.text()
        await on.press("S")
        assert on.app.screen is on.fleet
        await on.press(*("down",) * 8)
        await on.open()
        await on.type("hello")
        await on.press("enter")
        await on.until(lambda: "No driver works on this fleet" in on.text())
        assert on.files.sent == []
        assert on.files.stopped == []


async def test_when_the_driver_goes_no_row_says_that_its_unit_runs() -> None:
    rows = [row(number, state) for number, state in enumerate(("running", "verifying", "queued", "done"), 1)]
    async with fleet_stage(MemoryFleet(status(*rows))) as on:
        assert "◐ 2 running" in on.text()
        on.files.put(TuiAgentError("the driver was killed"))
        await on.until(lambda: "read only" in on.text())

        assert "running" not in on.text()
        assert "□ 2 interrupted" in on.text()
        assert on.text().count("the driver is gone; fleet retry continues it") == 2
        assert all(span.ended is not None for one in on.fleet.state.rows.values() for span in one.spans)
        await on.press("i")
        assert "□ interrupted" in on.text()
        await on.press("escape", "down", "down", "i")
        assert "the driver is gone; fleet retry starts it" in on.text()


async def test_a_fleet_that_never_answers_can_be_left() -> None:
    async with fleet_stage(MemoryFleet(None)) as on:
        assert "Connecting to the fleet" in on.text()
        await on.press("enter", "down", "i", "t", "n", "o", "tab", "s", "q")
        await on.until(lambda: not on.app.is_running)
