"""Hooks as people publish them, run by real processes: the page's example, a formatter, a log of prompts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.hook_files.test_contract import PAGE, results_of
from tui_agent.providers import call

FORMATTER = """\
#!/bin/bash
# Sort the lines of each list that was edited.
file=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tool_input"]["file_path"])')
case "$file" in
*.list) sort -o "$file" "$file" && echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "sorted"}}' ;;
esac
"""  # noqa: E501 — one line of a script


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def example(tmp_path: Path) -> dict[str, Any]:
    """The page's example, without the formatter, which may not be installed."""
    settings, script = re.findall(r"```(?:json|python)\n(.*?)```", PAGE, re.DOTALL)
    written(tmp_path / ".claude/hooks/guard.py", script)
    return {"PreToolUse": json.loads(settings)["hooks"]["PreToolUse"]}


async def test_the_guard_of_the_page_denies_what_it_names(tmp_path: Path, example: dict[str, Any]) -> None:
    (tmp_path / "data").mkdir()
    calls = (
        call("bash", command="rm -rf data"),
        call("write", path="conf/.env", content="x"),
        call("write", path="a.txt", content="x"),
        call("bash", command="echo fine"),
    )

    removed, secret, text, echoed = await results_of(tmp_path, example, *calls)

    assert "Delete files one by one." in removed
    assert "Secrets are edited by hand." in secret
    assert (tmp_path / "data").is_dir()
    assert (tmp_path / "a.txt").exists()
    assert "enied" not in text + echoed


async def test_what_a_formatter_changed_is_known_to_the_next_edit(tmp_path: Path) -> None:
    (tmp_path / "x.list").write_text("d\nc\n")
    script = written(tmp_path / "format.sh", FORMATTER)
    hooks = {"PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": str(script)}]}]}

    _, first, second, third = await results_of(
        tmp_path,
        hooks,
        call("read", path="x.list"),
        call("edit", path="x.list", old_string="d", new_string="e"),
        call("edit", path="x.list", old_string="e", new_string="a"),
        call("write", path="x.list", content="z\na\n"),
    )

    assert (tmp_path / "x.list").read_text() == "a\nz\n"
    assert all("x.list was changed after this call, by a hook" in text for text in (first, second, third))
    assert "+c\n e\n-c" in first
    assert "Changed x.list" in second
