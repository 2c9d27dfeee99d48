"""The app as a whole: themes that come and go, sessions that are taken up again, screens that cover each other."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.screen import Screen

from tests.ui.stage import StageTool, stage
from tests.ui.still import FakeAgent, shown, still_app
from tests.ui.story import Story, working
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import SessionLoaded
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.ui.app.themes import ThemeProblem
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen

pytestmark = pytest.mark.slow

MINE = 'name = "mine"\n[colors]\nprimary = "{}"\n'


def app_with(folder: Path, theme: str = "mine") -> TuiAgentApp:
    return TuiAgentApp(
        AgentBridge(FakeAgent(), EventBus()),
        theme=theme,
        themes_dirs=(folder,),
        surroundings=TerminalEnvironment(reduced_motion=True),
    )


async def until(happened: Callable[[], bool]) -> None:
    """Waits for something the file system has to tell first."""
    async with asyncio.timeout(60):
        while not happened():
            await asyncio.sleep(0.01)


async def test_a_theme_of_the_user_is_used_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.format("#336699"))

    async with app_with(tmp_path).run_test() as pilot:
        assert pilot.app.theme == "mine"
        assert pilot.app.current_theme.primary == "#336699"


async def test_a_changed_theme_is_seen_at_once_and_a_broken_one_keeps_the_last(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.format("#336699"))
    app = app_with(tmp_path)
    async with app.run_test() as pilot:
        await until(lambda: len(app._shelf.names) == 5)

        def write_and_look() -> bool:
            # Written again and again: nothing says when the watcher begins to look.
            path.write_text(MINE.format("#993366"))
            return app.current_theme.primary == "#993366"

        await until(write_and_look)
        assert app.get_css_variables()["primary"].lower() == "#993366"

        path.write_text("colors = 3")
        await until(lambda: any("mine.toml" in note.message for note in app._notifications))
        await pilot.pause()
        assert app.current_theme.primary == "#993366"


async def test_a_folder_of_themes_may_be_made_while_the_app_runs(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "themes"
    app = app_with(folder, "dark")
    async with app.run_test():
        await until(lambda: len(app._shelf.names) == 4)

        def make_and_look() -> bool:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "mine.toml").write_text(MINE.format("#336699"))
            return "mine" in app._shelf.names

        await until(make_and_look)
        await until(lambda: "mine" in app.available_themes)


async def test_themes_that_are_no_longer_watched_are_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(tmp_path, "dark")

    async def fail() -> tuple[ThemeProblem, ...]:
        raise MemoryError

    monkeypatch.setattr(app._shelf, "read_all", fail)
    async with app.run_test() as pilot:
        await until(lambda: any("no longer watched (out of memory)" in note.message for note in app._notifications))
        assert app.is_running
        await pilot.press("a")


async def test_a_theme_file_that_stays_broken_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("a = " + "[" * 10_000)
    app = app_with(tmp_path)
    async with app.run_test():
        await until(lambda: any("nested too deeply" in note.message for note in app._notifications))
        (tmp_path / "yours.toml").write_text(MINE.format("#336699").replace("mine", "yours"))
        await until(lambda: "yours" in app.available_themes)
        assert sum("nested too deeply" in note.message for note in app._notifications) == 1


@pytest.mark.parametrize("fault", [MemoryError(), RecursionError("too deep"), ConfigurationError("there is none")])
async def test_a_recording_that_cannot_be_opened_is_a_notice(tmp_path: Path, fault: Exception) -> None:
    async def fail(_: str) -> Screen[None]:
        raise fault

    app = TuiAgentApp(AgentBridge(FakeAgent(), EventBus()), theme="dark", open_player=fail)
    async with app.run_test():
        app.watch_recording("x")
        await until(lambda: any("recording cannot be shown" in note.message for note in app._notifications))
        assert app.is_running


async def test_a_theme_nobody_knows_is_named(tmp_path: Path) -> None:
    app = app_with(tmp_path, "nowhere")
    async with app.run_test():
        assert app.theme == "dark"
        await until(lambda: any("no theme nowhere" in note.message for note in app._notifications))


async def test_a_session_is_taken_up_again_with_history_and_messages_that_waited() -> None:
    story = working()
    story.sends("also update the changelog")
    story.sends("then rest", "follow_up")
    story.tell(SessionLoaded(id="s1"))
    app = still_app(story, remembers=False)

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        assert app.chat.has_class("-begun")
        assert app.chat.panel.ledger.places["running"] == set()
        assert [(message.kind, message.text) for message in app.chat.bridge.waiting] == [
            ("steer", "also update the changelog"),
            ("follow_up", "then rest"),
        ]
        assert not app.chat.bridge.running

        await pilot.press("up")
        assert app.chat.entry.composer.text == "keep the public signature"


async def test_a_call_is_opened_from_the_panel_and_from_the_conversation() -> None:
    app = still_app(working(), running=True)

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+t", "up", "up", "enter")
        await pilot.pause()
        assert isinstance(app.screen, CallDetailScreen)

        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.chat


async def test_calls_chosen_in_the_conversation_are_shown_in_the_drawer() -> None:
    app = still_app(working(), running=True)

    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        conversation = app.chat.conversation
        conversation.post_message(conversation.CallsSelected(("c2",)))
        await pilot.pause()
        await pilot.pause()
        assert app.chat.drawer_open
        selected = app.chat.panel._list.selected
        assert selected is not None
        assert selected.view.call_id == "c2"

        await pilot.press("ctrl+t")
        assert not app.chat.drawer_open
        assert app.focused is app.chat.entry.composer


async def test_the_drawer_opens_with_a_click_and_closes_with_escape() -> None:
    app = still_app(working())

    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        await pilot.click("#strip")
        await pilot.pause()
        assert app.chat.drawer_open

        await pilot.press("escape")
        assert not app.chat.drawer_open


async def test_the_panel_key_goes_there_and_back() -> None:
    app = still_app(working())

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+t")
        assert app.chat.panel.has_focus_within
        await pilot.press("ctrl+t")
        assert app.focused is app.chat.entry.composer


async def test_tab_leaves_an_empty_composer() -> None:
    app = still_app(working())

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("tab")

        assert app.focused is not app.chat.entry.composer


async def test_what_has_no_meaning_in_the_panel_is_typed() -> None:
    app = still_app(working())

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("ctrl+t", "z")
        await pilot.pause()

        assert app.chat.entry.composer.text == "z"


async def test_the_paging_keys_scroll_the_conversation_while_typing() -> None:
    story = Story().run("x").step(0)
    story.answer("\n\n".join(f"paragraph {number}" for number in range(100)))
    app = still_app(story)

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        end = app.chat.conversation.scroll_y
        await pilot.press("pageup")
        assert app.chat.conversation.scroll_y < end
        await pilot.press("ctrl+home")
        assert app.chat.conversation.scroll_y == 0
        await pilot.press("pagedown")
        assert app.chat.conversation.scroll_y > 0
        await pilot.press("ctrl+end")
        assert app.chat.conversation.scroll_y == app.chat.conversation.max_scroll_y


async def test_a_question_waits_behind_the_palette_and_comes_when_it_closes() -> None:
    tool = StageTool("change", read_only=False)
    async with stage([reply(call("change", what="a")), "Changed."], [tool]) as on:
        on.chat.bridge.submit("change a")
        await on.pilot.press("ctrl+p")
        palette = on.app.screen
        on.clock.now += 5
        await on.until(lambda: on.chat.panel.ledger.places["needs_you"])
        await on.pilot.pause()
        assert on.app.screen is palette

        await on.pilot.press("escape")
        on.clock.now += 5
        await on.until(lambda: on.app.screen is not on.chat and on.app.screen is not palette)
        on.loop.set_mode(PermissionMode.ALLOW)
        await on.settled()


async def test_a_question_comes_over_the_page_about_a_call() -> None:
    tool, other = StageTool("change", read_only=False), StageTool("look", waits=True)
    async with stage([reply(call("look", what="b"), call("change", what="a")), "Changed."], [tool, other]) as on:
        on.chat.bridge.submit("both")
        await on.until(lambda: on.chat.attention.display or on.app.screen is not on.chat)
        on.loop.set_mode(PermissionMode.ALLOW)
        other.gate.set()
        await on.settled()

        assert on.app.screen is on.chat


async def test_the_palette_stays_closed_over_a_dialog() -> None:
    app = still_app(Story())

    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await pilot.press("f1")
        help_page = app.screen
        await pilot.press("ctrl+p")

        assert app.screen is help_page


async def test_a_crash_of_a_worker_is_told_and_served_on(monkeypatch: pytest.MonkeyPatch) -> None:
    app = still_app(Story())
    agent = app.chat.bridge._agent
    assert isinstance(agent, FakeAgent)
    agent.refusal = RuntimeError("boom")

    async with app.run_test(size=(120, 40)) as pilot:
        app.chat.bridge.submit("one")
        await shown(pilot)
        agent.refusal = None
        app.chat.bridge.submit("two")
        await shown(pilot)

        assert agent.asked == [("run", "one"), ("run", "two")]
        assert app.chat.has_class("-begun")


def test_colours_and_motion_follow_the_terminal() -> None:
    app = still_app(Story(), no_color=True, reduced_motion=True)

    assert app.no_color
    assert app.animation_level == "none"
    assert still_app(Story(), reduced_motion=False).animation_level != "none"
