"""All thinking of the model is shown and folded by one key, also what comes later."""

from tests.ui.row_kit import HostApp, answer, user
from tests.ui.still import drawn, pressing, still_app
from tests.ui.story import Story
from tests.ui.transcript.test_conversation import many, seen, tell
from tui_agent.protocol.messages import AssistantMessage, TextBlock, ThinkingBlock
from tui_agent.ui.app.tui_agent_app import TuiAgentApp

SIZE = (60, 12)


def story() -> Story:
    told = Story().run("why?").step(0)
    blocks = (ThinkingBlock(thinking="first\n\nthen"), TextBlock(text="Because."))
    message = AssistantMessage(content=blocks, id="a1", timestamp=0)
    told.tell(answer("").model_copy(update={"message_id": "a1", "message": message}))
    return told.end()


async def test_one_key_shows_all_thinking_and_folds_it_again() -> None:
    async with still_app(story()).run_test(size=(80, 24)) as pilot:
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        await pressing()(pilot)
        assert any("▸ thinking  first then" in row for row in seen(app.chat.body.conversation))

        await pilot.press("f5")
        await drawn(pilot)
        shown = "\n".join(seen(app.chat.body.conversation))
        assert "▾ thinking" in shown
        assert "▏ then" in shown

        await pilot.press("f5")
        await drawn(pilot)
        assert any("▸ thinking  first then" in row for row in seen(app.chat.body.conversation))


async def test_a_reader_further_up_keeps_the_text_in_sight() -> None:
    thoughts = "\n\n".join(f"thought {number}" for number in range(9))
    async with HostApp().run_test(size=SIZE) as pilot:
        events = [event for n in range(20) for event in (user(f"q {n}", f"u{n}"), answer("A.", f"a{n}", thoughts))]
        conversation = await tell(pilot, *events, *many(10))
        conversation.scroll_to(y=40, animate=False)
        await pilot.pause()
        top = next(row for row in seen(conversation) if "q " in row)

        conversation.show_thinking(True)
        conversation.flush()
        await pilot.pause()

        assert not conversation.following
        assert top in seen(conversation)[:6]
