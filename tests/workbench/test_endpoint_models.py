"""The models that an endpoint lists itself, asked for once a session through the real SDK."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.messages_server import ScriptedMessagesServer
from tests.ui.open_bench import bench_of
from tests.ui.stage import stage
from tests.workbench.quiet_bench import open_quietly
from tui_agent.ui.dialogs.chooser_page import ChooserPage
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.session_models import SessionModels
from tui_agent.workbench.workbench import Workbench

HELLO = {"blocks": [{"type": "text", "text": "Hello"}]}


@asynccontextmanager
async def models_of(
    server: ScriptedMessagesServer, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: object
) -> AsyncGenerator[tuple[SessionModels, Workbench]]:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", server.token)
    monkeypatch.setenv("LOCAL_KEY", server.token)
    options = replace(LaunchOptions.for_command(folder), settings={"model": "first", **settings}, keep_session=False)
    async with open_quietly(options) as bench:
        yield bench.models, bench


def names(models: SessionModels) -> list[tuple[str, bool]]:
    return [(fact.name, fact.is_current) for fact in models.list()]


async def test_what_the_endpoint_lists_is_added_once_and_a_chosen_model_works_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        ScriptedMessagesServer([HELLO]) as server,
        models_of(server, tmp_path, monkeypatch) as (models, bench),
    ):
        server.models = ["first", "second", "third-with-a-name", " ", "second"]
        assert names(models) == [("first", True)]
        told = await asyncio.gather(models.ask_endpoint(), models.ask_endpoint())

        assert set(told) == {server.base_url}
        assert server.listings == 1
        assert names(models) == [("first", True), ("second", False), ("third-with-a-name", False)]
        assert "model second" in [entry.slash for entry in models.commands]

        models.choose("second")
        await bench.agent.run("Hi")
        assert server.requests[-1].body["model"] == "second"
        assert ("second", True) in names(models)


async def test_models_of_a_named_endpoint_have_its_name_and_configured_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedMessagesServer([HELLO]) as server:
        box = {"base_url": server.base_url, "key_env": "LOCAL_KEY", "models": [{"name": "big", "window": 8_192}]}
        settings = {"model": "box/big", "providers": {"box": box}}
        async with models_of(server, tmp_path, monkeypatch, **settings) as (models, bench):
            server.models = ["big", "org/tiny"]
            assert await models.ask_endpoint() == "box"
            assert names(models)[:2] == [("box/big", True), ("box/org/tiny", False)]
            assert [(fact.window_text) for fact in models.list()[:2]] == ["8,192 tokens", "64,000 tokens (assumed)"]
            models.choose("box/org/tiny")
            await bench.agent.run("Hi")
            assert server.requests[-1].body["model"] == "org/tiny"


async def test_the_page_opens_at_once_and_shows_what_the_endpoint_lists_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        ScriptedMessagesServer() as server,
        models_of(server, tmp_path, monkeypatch) as (models, _),
        stage() as on,
    ):
        server.models = ["first", "second"]
        server.hold_models()
        on.chat.bridge.bench = bench_of(on.loop, on.bus, models=models)
        await on.say("/model")
        await on.until(lambda: isinstance(on.app.screen, ChooserPage))
        page = on.app.screen
        assert isinstance(page, ChooserPage)

        def state() -> str:
            line = page.query_one("#items-state", RowsView).line_at(0)
            return "" if line is None else line.plain

        await on.until(lambda: "Asking the endpoint" in state())
        assert [item.id for item in page.all_items] == ["first"]
        server.release("models")
        await on.until(lambda: server.base_url in state())
        assert [item.id for item in page.all_items] == ["first", "second"]
        await on.pilot.press(*"second", "enter")
        await on.until(lambda: ("second", True) in names(models))
