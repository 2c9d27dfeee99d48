"""The app as a whole: changing themes, resumed sessions, screens above each other."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ui.still import FakeAgent, drawn, notes, shown, still_app
from tests.ui.story import Story, working
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.facts.screen_facts import ScreenChoices
from tui_agent.settings import Settings
from tui_agent.ui.app.screen_settings import choices_of
from tui_agent.ui.app.themes import ThemeCatalogue, ThemeProblem
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions, ReplayRequested

from .fake_sessions import FakeService

pytestmark = pytest.mark.slow

MINE = 'name = "mine"\n[colors]\nprimary = "{}"\n'


def app_with(folder: Path, theme: str = "mine") -> TuiAgentApp:
    return TuiAgentApp(
        AgentBridge(FakeAgent(), EventBus()),
        ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True)),
        theme=theme,
        themes_dirs=(folder,),
    )


async def until(happened: Callable[[], bool]) -> None:
    """Wait for a condition that depends on a report of the file system."""
    async with asyncio.timeout(60):
        while not happened():
            await asyncio.sleep(0.01)


async def test_a_changed_theme_applies_at_once_and_a_broken_one_keeps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.format("#336699"))
    app = app_with(tmp_path)
    async with app.run_test() as pilot:
        await until(lambda: len(app.themes.names) == 5)

        def write_and_look() -> bool:
            # Written repeatedly, because nothing shows when the watcher starts.
            path.write_text(MINE.format("#993366"))
            return app.current_theme.primary == "#993366"

        await until(write_and_look)
        assert app.get_css_variables()["primary"].lower() == "#993366"

        path.write_text("colors = 3")
        await until(lambda: any("mine.toml" in note for note in notes(app)))
        await pilot.pause()
        assert app.current_theme.primary == "#993366"


async def test_an_offered_theme_is_used_from_the_first_frame_and_its_problems_are_named(tmp_path: Path) -> None:
    paths = [tmp_path / "more" / "mine.toml", tmp_path / "more" / "broken.toml"]
    paths[0].parent.mkdir()
    paths[0].write_text(MINE.format("#993366"))
    paths[1].write_text("colors = 3")
    app = app_with(tmp_path, "mine")
    assert app.theme == "dark"

    app.themes.offer(lambda: paths)

    assert app.theme == "mine"
    async with app.run_test():
        await until(lambda: any("broken.toml" in note for note in notes(app)))
        assert app.current_theme.primary == "#993366"
        assert not any("No theme" in note for note in notes(app))


async def test_a_failed_watch_of_themes_is_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(tmp_path, "dark")

    async def fail() -> tuple[ThemeProblem, ...]:
        raise MemoryError

    monkeypatch.setattr(ThemeCatalogue, "read_all", lambda _: fail())
    async with app.run_test() as pilot:
        await until(lambda: any("no longer watched (out of memory)" in note for note in notes(app)))
        assert app.is_running
        await pilot.press("a")


async def test_an_unknown_theme_is_named_and_a_file_that_stays_broken_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("a = " + "[" * 10_000)
    app = app_with(tmp_path)
    async with app.run_test():
        await until(lambda: any("nested too deeply" in note for note in notes(app)))
        assert app.theme == "dark"
        app.show_theme("nowhere")
        await until(lambda: any("No theme 'nowhere'" in note for note in notes(app)))
        (tmp_path / "yours.toml").write_text(MINE.format("#336699").replace("mine", "yours"))
        await until(lambda: "yours" in app.available_themes)
        assert sum("nested too deeply" in note for note in notes(app)) == 1


async def test_a_session_that_cannot_be_replayed_is_a_notice() -> None:
    service = FakeService()
    service.replay_faults = [MemoryError(), RecursionError("too deep"), ConfigurationError("there is none")]
    app = TuiAgentApp(AgentBridge(FakeAgent(), EventBus()), ChatOptions(sessions=service))
    async with app.run_test():
        for number in range(len(service.replay_faults)):
            app.post_message(ReplayRequested(str(number)))
            await until(
                lambda number=number: sum("session cannot be replayed" in note for note in notes(app)) == number + 1
            )
        assert app.is_running


async def test_a_resumed_session_shows_its_history_and_queued_messages() -> None:
    story = working()
    story.sends("also update the changelog")
    story.sends("then rest", "follow_up")
    story.tell(SessionLoaded(id="s1"))
    app = still_app(story, remembers=False)

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        assert app.chat.body.has_class("-begun")
        assert app.chat.state.ledger.places["running"] == set()
        agent = app.chat.bridge.agent
        assert isinstance(agent, FakeAgent)
        assert [(message.kind, message.text) for message in agent.waiting_messages] == [
            ("steer", "also update the changelog"),
            ("follow_up", "then rest"),
        ]
        assert not app.chat.bridge.status.running

        await pilot.press("up")
        assert app.chat.entry.composer.text == "keep the public signature"


async def test_the_drawer_shows_selected_calls_and_opens_and_closes_with_keys_and_clicks() -> None:
    app = still_app(working())

    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        conversation = app.chat.body.conversation
        conversation.post_message(conversation.CallsSelected(("c2",)))
        await pilot.pause()
        await pilot.pause()
        assert app.chat.body.drawer_open
        selected = app.chat.body.panel._list.selected
        assert selected is not None
        assert selected.view.call_id == "c2"

        await pilot.press("ctrl+t")
        assert not app.chat.body.drawer_open
        assert app.focused is app.chat.entry.composer

        await drawn(pilot)
        await pilot.click("#strip")
        await drawn(pilot)
        assert app.chat.body.drawer_open
        await pilot.press("escape")
        assert not app.chat.body.drawer_open


async def test_the_paging_keys_scroll_the_conversation_while_typing() -> None:
    story = Story().run("x").step(0)
    story.answer("\n\n".join(f"paragraph {number}" for number in range(100)))
    app = still_app(story)

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        end = app.chat.body.conversation.scroll_y
        await pilot.press("pageup")
        assert app.chat.body.conversation.scroll_y < end
        await pilot.press("ctrl+home")
        assert app.chat.body.conversation.scroll_y == 0
        await pilot.press("pagedown")
        assert app.chat.body.conversation.scroll_y > 0
        await pilot.press("ctrl+end")
        assert app.chat.body.conversation.scroll_y == app.chat.body.conversation.max_scroll_y


def test_the_choices_of_the_screen_are_the_settings_of_the_same_names() -> None:
    assert choices_of(Settings()) == ScreenChoices()

    chosen = {"vim_keys": True, "status": ["cost"], "title": ["model"], "status_command": "date"}
    settings = Settings.model_validate({"ui": chosen})
    assert choices_of(settings) == ScreenChoices(vim_keys=True, status=("cost", "command"), title=("model",))
