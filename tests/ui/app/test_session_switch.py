"""/resume, /clear, /fork and /demo: refusals, questions, and the screen of the other session."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from textual.pilot import Pilot

from tests.ui.app.fake_sessions import FakeList, FakeService
from tests.ui.still import FakeAgent, bridge_to, drawn, notes
from tests.ui.story import Story
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.chat.chat_options import ChatOptions, SessionTarget
from tui_agent.ui.dialogs.confirm_screen import ConfirmScreen


@dataclass
class Switching:
    """The app in session `one`."""

    app: TuiAgentApp
    pilot: Pilot[None]
    service: FakeService
    agent: FakeAgent

    async def say(self, text: str) -> None:
        self.app.chat.entry.composer.put_back(text)
        await self.pilot.press("enter")
        await self.pilot.pause()

    async def until(self, holds: Callable[[], object]) -> None:
        for _ in range(300):
            if holds():
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"it never came: {self.notes}")

    @property
    def notes(self) -> list[str]:
        return notes(self.app)


class SavedRewinds:
    """The service of a session that is saved."""

    async def points(self) -> tuple[Any, ...]:
        return ()


@asynccontextmanager
async def switching(*, running: bool = False, begun: bool = True, can_switch: bool = True) -> AsyncIterator[Switching]:
    service, agent = FakeService(), FakeAgent(running=running)
    story = Story().run("the first question").step(0) if begun else Story()
    if begun and not running:
        story = story.answer("The first answer.") or story
        story.end("The first answer.")
    rewinding: Any = SavedRewinds()
    bridge = bridge_to(agent, EventBus(Origin(session_id="one")), past=story.envelopes, rewind=rewinding)
    app = TuiAgentApp(
        bridge,
        ChatOptions(
            sessions=service if can_switch else None,
            surroundings=TerminalEnvironment(reduced_motion=True, clock=lambda: story.now),
        ),
    )
    async with app.run_test(size=(100, 30)) as pilot:
        await drawn(pilot)
        stage = Switching(app, pilot, service, agent)
        await stage.until(lambda: app.chat.state.begun is begun)
        yield stage


async def test_clear_shows_an_empty_session_and_says_how_to_return() -> None:
    async with switching() as stage:
        before = stage.app.chat
        stage.app.use_choices(ScreenChoices(vim_keys=True, status=("cost",)))
        await stage.say("/clear")
        await stage.until(lambda: stage.service.started)
        assert stage.app.chat is not before
        assert stage.app.screen is stage.app.chat
        assert not stage.app.chat.state.begun
        assert stage.app.chat.entry.refusal.reason == (
            "New session. /resume one returns to the one before, which is saved."
        )
        assert stage.service.prepared == [SessionTarget(None)]
        assert any(isinstance(one, tuple) and one[0] == "abort" for one in stage.agent.asked)
        assert stage.app.chat.entry.composer.vim is not None, "the user's choices hold"
        assert stage.app.chat.bars.line.items == ("cost",)


async def test_the_draft_and_text_typed_meanwhile_stay_in_the_composer() -> None:
    async with switching() as stage:
        await stage.say("/resume two")
        await stage.pilot.press("h", "e", "y")
        await stage.until(lambda: stage.service.started)
        await stage.pilot.press("!")
        assert stage.app.chat.entry.composer.text == "hey!"
        assert stage.service.prepared == [SessionTarget("two")]


async def test_leaving_a_running_agent_asks_first_and_esc_stays_and_it_is_not_copied() -> None:
    async with switching(running=True) as stage:
        await stage.say("/fork")
        await stage.until(lambda: "The agent is working. /fork copies the session when it is done." in stage.notes)
        await stage.say("/clear")
        question = stage.app.screen
        assert isinstance(question, ConfirmScreen)
        await stage.pilot.press("escape")
        assert stage.app.screen is stage.app.chat
        assert stage.service.prepared == []


async def test_resume_without_words_or_with_several_matches_opens_the_list() -> None:
    async with switching() as stage:
        await stage.say("/resume")
        opened = stage.app.screen
        assert isinstance(opened, FakeList)
        assert opened.asked == ("one", "")
        opened.dismiss(None)
        await stage.pilot.pause()
        await stage.say("/resume price")
        await stage.until(lambda: isinstance(stage.app.screen, FakeList))
        again = stage.app.screen
        assert isinstance(again, FakeList)
        assert again.asked == ("one", "price")
        again.dismiss("two")
        await stage.until(lambda: stage.service.started)
        assert stage.service.prepared == [SessionTarget("two")]


async def test_a_refusal_gives_its_reason_and_the_session_stays() -> None:
    async with switching() as stage:
        chat = stage.app.chat
        for text, answer in (
            ("/resume nothing", "No session of this folder has “nothing”."),
            ("/resume one", "You are in this session."),
            ("/fork x", "/fork copies the whole session; /fork 2 leaves out your last two messages."),
            ("/fork 3", "This session has only 0 messages of yours. Nothing was copied."),
        ):
            await stage.say(text)
            await stage.until(lambda answer=answer: answer in stage.notes)
        stage.service.refusal = "Session two is open in another tui-agent."
        await stage.say("/resume two")
        await stage.until(lambda: "Session two is open in another tui-agent." in stage.notes)
        assert stage.app.chat is chat


async def test_an_empty_conversation_is_not_cleared() -> None:
    async with switching(begun=False) as stage:
        await stage.say("/clear")
        assert stage.notes == ["The conversation is empty already."]


async def test_an_embedded_app_keeps_to_its_session() -> None:
    async with switching(can_switch=False) as stage:
        for text in ("/resume", "/clear", "/fork", "/demo"):
            await stage.say(text)
            await stage.pilot.pause()
            assert ["cannot be switched here" in note for note in stage.notes] == [True]
            stage.app.chat.entry.notices.on_click()
