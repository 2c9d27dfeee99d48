"""`tui-agent models list` names the configured models and those that the endpoint lists."""

import json

import pytest

from tests.support.server_thread import ServerThread
from tui_agent.cli.command_line import run_program


def test_the_endpoint_is_asked_for_its_models(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TUI_AGENT_MODEL", "first")
    with ServerThread([]) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        assert run_program(["models", "list", "--json"]) == 0
        out, err = capsys.readouterr()
        assert [model["name"] for model in json.loads(out)] == ["first"]
        assert "The endpoint has no list of models (404). The configured models are listed." in err

        server.list_models("first", "second")
        assert run_program(["models", "list", "--json"]) == 0
        out, err = capsys.readouterr()
        listed = json.loads(out)
    assert [(model["name"], model["is_current"]) for model in listed] == [("first", True), ("second", False)]
    assert listed[1]["provider"] == server.base_url
    assert err == ""
