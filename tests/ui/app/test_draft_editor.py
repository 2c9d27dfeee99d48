"""The draft in the user's editor, with real programs as editors, and in a real pty."""

import os
import sys
from pathlib import Path

import pytest

import tui_agent
from tests.support.table import table
from tests.support.terminal import Terminal
from tests.ui.stage import stage
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.app.outside_programs import edit_text, editor_command

ROOT = Path(tui_agent.__file__).parent.parent


def script(tmp_path: Path, text: str) -> str:
    """Return the path of an editor that runs a shell script."""
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_visual_counts_before_editor_and_may_have_arguments() -> None:
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ("code", "--wait")
    assert editor_command({"VISUAL": " ", "EDITOR": "vi"}) == ("vi",)
    with pytest.raises(TuiAgentError, match="Set VISUAL or EDITOR"):
        editor_command({})
    with pytest.raises(TuiAgentError, match="VISUAL is not a command"):
        editor_command({"VISUAL": "'vi"})


def test_the_text_goes_to_the_editor_and_comes_back(tmp_path: Path) -> None:
    assert edit_text((script(tmp_path, 'echo "and more" >> "$1"'),), "first\n") == "first\nand more"


def test_the_text_of_a_file_keeps_its_last_line_end_and_its_name(tmp_path: Path) -> None:
    editor = (script(tmp_path, 'echo "$(basename "$1")" >> "$1"'),)

    assert edit_text(editor, "first\n", "text.py") == "first\ntext.py\n"
    assert edit_text(editor, "first", "text.py") == "firsttext.py"
    with pytest.raises(TuiAgentError, match="Your text was kept"):
        edit_text((script(tmp_path, "exit 3"),), "first", "text.py")


@table(
    ("text", "reason"),
    [("exit 3", "ended with exit code 3"), ('rm "$1"', "No such file"), ('printf "\\377" > "$1"', "could not edit")],
)
def test_an_editor_that_fails_says_so(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(TuiAgentError, match=f"{reason}.*Your draft was kept"):
        edit_text((script(tmp_path, text),), "draft")
    with pytest.raises(TuiAgentError, match="could not edit the draft: No such file"):
        edit_text((str(tmp_path / "none"),), "draft")


@pytest.mark.slow
async def test_without_an_editor_the_draft_stays_and_the_line_above_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with stage() as on:
        await on.type("draft")
        await on.pilot.press("ctrl+g")
        await on.until(lambda: on.chat.entry.refusal.display)

        assert on.draft == "draft"
        assert on.chat.entry.refusal.reason.startswith("No editor is set.")


@pytest.mark.pty
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["exit 0", "exit 1"])
def test_ctrl_g_opens_the_editor_in_the_terminal_and_the_screen_returns(tmp_path: Path, ending: str) -> None:
    editor = script(tmp_path, f'echo in the editor; read answer; echo "$answer" >> "$1"; {ending}')
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "EDITOR": editor}
    with Terminal([sys.executable, "-m", "tests.ui.program"], cwd=ROOT, environment=environment) as terminal:
        terminal.wait_for("Ask for something")
        terminal.write("draft")
        terminal.wait_for("› draft")
        terminal.write("\x07")
        terminal.wait_for("in the editor")
        terminal.write("answer\r")
        terminal.wait_for("› draft" if ending == "exit 0" else "ended with exit code 1")
        terminal.wait_for("answer" if ending == "exit 0" else "› draft")
        terminal.write("!\r")
        terminal.wait_for("heard 'draftanswer!'" if ending == "exit 0" else "heard 'draft!'")
