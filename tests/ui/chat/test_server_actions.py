"""`/mcp`: without servers the reason differs in the demo, which starts none; with servers the page follows them."""

from dataclasses import replace

import pytest

from tests.ui.open_bench import bench_of
from tests.ui.stage import stage
from tests.ui.still import notes, pressing, still_app
from tests.ui.story import Story
from tui_agent.protocol.facts.page_facts import ServerFact
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.ui.dialogs import chooser_page, text_page
from tui_agent.ui.dialogs.chooser_page import ServersPage
from tui_agent.ui.dialogs.text_page import TextPage


@pytest.mark.slow
@pytest.mark.parametrize(("label", "words"), [("demo", "The demo starts no tool servers."), ("", "mcp add NAME")])
async def test_the_command_says_why_there_are_no_servers(label: str, words: str) -> None:
    app = still_app(Story(), label=label)
    async with app.run_test() as pilot:
        await pressing(*"/mcp", "enter")(pilot)

        assert words in notes(app)[-1]


class Servers:
    """One server, whose state the test changes."""

    commands: tuple[PromptCommand, ...] = ()

    def __init__(self) -> None:
        self.fact = ServerFact("docs", "config.toml:1", "run docs", "connecting", "", "", (), (), (), ())
        self.lines = "started"

    def list(self) -> tuple[ServerFact, ...]:
        return (self.fact,)

    def log(self, name: str, /) -> str:
        return self.lines

    def restart(self, name: str, /) -> str:
        return ""

    login = logout = restart

    async def expand(self, text: str, /) -> str:
        return text

    open_page = expand


@pytest.mark.slow
async def test_the_open_pages_follow_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text_page, chooser_page):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.02)
    servers = Servers()
    async with stage([]) as on:
        on.chat.bridge.open(bench_of(on.loop, on.bus, servers=servers))

        def shown() -> str:
            views = on.pilot.app.screen.query("PageBody, RowsView")
            return "\n".join(row.text for view in views for row in view.render_lines(view.size.region))

        await on.type("/mcp")
        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.pilot.app.screen, ServersPage) and "connecting" in shown())
        servers.fact = replace(servers.fact, state="failed", error="exit code 1", left_out=("find: no schema",))
        await on.until(lambda: "exit code 1" in shown() and "find: no schema" in shown())

        await on.pilot.press("enter")
        await on.until(lambda: isinstance(on.pilot.app.screen, TextPage) and "started" in shown())
        servers.lines += "\nended"
        await on.until(lambda: "ended" in shown())


@pytest.mark.slow
async def test_resources_of_a_server_complete_behind_its_name() -> None:
    servers = Servers()
    servers.fact = replace(servers.fact, state="ready", resources=("@docs:memo://one", "@docs:memo://two"))
    async with stage([]) as on:
        on.chat.bridge.open(bench_of(on.loop, on.bus, servers=servers))
        await on.type("see @docs:tw")
        menu = on.chat.entry._suggestions
        await on.until(lambda: "@docs:memo://two" in menu.render().plain and "memo://one" not in menu.render().plain)
        await on.pilot.press("enter")

        assert on.chat.entry.composer.text == "see @docs:memo://two "
