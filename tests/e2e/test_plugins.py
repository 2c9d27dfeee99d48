"""The example package of the documentation, installed by pip beside the program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server_process import ROOT
from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .user_machine import UserMachine

PAGE = "251;247;238"
"""Background of its theme, `#fbf7ee`."""
EXAMPLE = ROOT / "docs" / "examples" / "tui-agent-words"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example into a directory of its own, without a network."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "-q", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=True, capture_output=True)
    return folder


def variables(site: Path, server: ServerThread | None = None, **more: str) -> dict[str, str]:
    """Return the variables of a program that finds the example."""
    return {"PYTHONPATH": os.fspath(site), **(server.environment if server else {}), **more}


def test_the_tool_runs_and_the_hook_denies(machine: UserMachine, site: Path) -> None:
    words, filler = call("count_words", text="one two three"), call("write", path="a.txt", content="Lorem ipsum dolor")
    with ServerThread([calls(words, filler), says("Three.")]) as server:
        options = ("-p", "--permission-mode", "allow", "--output-format", "json")
        done = machine.run(*options, "Count.", variables=variables(site, server))
        results = results_in(bodies_of(server)[-1])

    assert json.loads(done.stdout)["result"] == "Three.", done.stderr
    assert "3 words" in str(results)
    assert "write the real text instead of lorem ipsum" in str(results)
    assert not (machine.work / "a.txt").exists()


def test_the_list_names_version_and_place_and_the_settings_turn_it_off(machine: UserMachine, site: Path) -> None:
    listed = machine.run("plugins", "list", "--json", variables=variables(site))
    with ServerThread([says("Nothing to count with.")]) as server:
        off = variables(site, server, TUI_AGENT_PLUGINS__DISABLED="tui-agent-words")
        done = machine.run("-p", "Count.", variables=off)
        offered = {tool["name"] for tool in bodies_of(server)[-1]["tools"]}

    rows = [(row["kind"], row["name"], row["package"], row["version"]) for row in json.loads(listed.stdout)]
    package = ("tui-agent-words", "1.0")
    assert rows == [
        ("hook", "no_filler", *package),
        ("provider", "echo", *package),
        ("theme", "paper", *package),
        ("tool", "count_words", *package),
    ]
    assert {(row["location"], row["state"]) for row in json.loads(listed.stdout)} == {(str(site), "used")}
    assert done.returncode == 0
    assert "read" in offered
    assert "count_words" not in offered


def test_the_app_has_its_theme_and_its_model_and_says_that_it_is_new(machine: UserMachine, site: Path) -> None:
    app = machine.app("--theme", "paper", "--model", "echo/one", variables=variables(site))
    app.ready()
    app.say("A prompt that comes back")
    app.wait_for(lambda screen: screen.text.count("A prompt that comes back") == 2)
    app.wait_for_words("Plugins that are new or have changed")
    assert PAGE in (app.screen.look_of("A prompt that comes back") or "")
    app.quit()
