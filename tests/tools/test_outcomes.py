"""The one line that each built-in tool reports of a result, as the screen shows it beside the call."""

from pathlib import Path
from typing import Any

from tests.support.table import table
from tests.tools.calls import call, details_of
from tui_agent.tools import Workspace, default_tools

FAILED_TESTS = "printf 'two tests\\n\\033[31mFAILED\\033[0m test_a.py::test_b - assert 1\\n1 failed in 0.1s\\n'; exit 1"
TRACEBACK = "printf 'Traceback (most recent call last):\\n  File x\\nValueError: too small\\nbye\\n'; exit 2"


@table(
    ("tool", "arguments", "outcome"),
    [
        ("read", {"path": "a.py"}, "3 lines"),
        ("read", {"path": "a.py", "offset": 2, "limit": 1}, "lines 2–2 of 3"),
        ("read", {"path": "empty"}, "0 lines"),
        ("grep", {"pattern": "foo"}, "3 matches in 2 files"),
        ("grep", {"pattern": "bar", "path": "a.py"}, "1 match in 1 file"),
        ("grep", {"pattern": "foo", "output_mode": "files_with_matches"}, "2 files"),
        ("grep", {"pattern": "nowhere"}, "no matches"),
        ("glob", {"pattern": "*.py"}, "2 files"),
        ("write", {"path": "new.py", "content": "x\ny\n"}, "new file +2"),
        ("edit", {"path": "b.py", "old_string": "foo", "new_string": "one\ntwo"}, "+2 −1"),
        ("todo", {"items": [{"text": "a", "status": "done"}, {"text": "b", "status": "pending"}]}, "1 of 2 done"),
        ("bash", {"command": "true"}, "no output"),
        ("bash", {"command": "echo ready"}, "ready"),
        ("bash", {"command": "echo one; echo two"}, "two"),
        ("bash", {"command": "false"}, "exit 1"),
        ("bash", {"command": FAILED_TESTS}, "exit 1 · FAILED test_a.py::test_b - assert 1"),
        ("bash", {"command": TRACEBACK}, "exit 2 · ValueError: too small"),
        ("bash", {"command": "echo last words; exit 3"}, "exit 3 · last words"),
        ("bash", {"command": "kill -9 $$"}, "signal 9"),
        ("bash", {"command": "head -c 100 /dev/zero"}, "100 bytes of binary output"),
    ],
)
async def test_a_result_is_reported_in_one_line(
    workspace: Workspace, root: Path, tool: str, arguments: dict[str, Any], outcome: str
) -> None:
    (root / "a.py").write_text("foo = 1\nbar\nfoo\n")
    (root / "b.py").write_text("foo\n")
    (root / "empty").write_text("")
    tools = {one.name: one for one in default_tools(workspace, is_read_only_command=lambda command: False)}
    if tool == "edit":
        await call(tools["read"], path="b.py")

    assert details_of(await call(tools[tool], **arguments))["outcome"] == outcome
