"""The input that the user may edit: all of it is visible, and unedited text gives the same input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.change_parts import InputEdit
from tui_agent.ui.text.sanitiser import sanitise

CHANGE = Preview(kind="diff", text="--- a/x\n+++ b/x\n")


def edit(args: JsonObject, preview: Preview | None = None) -> InputEdit:
    return InputEdit(ApprovalRequest(call_id="c1", digest="d", tool="t", args=args, preview=preview))


def test_a_command_is_edited_as_it_is_unless_something_in_it_hides() -> None:
    found = edit({"timeout": 5, "command": "ls\nmake"}, Preview(kind="command", text="ls\nmake"))

    assert (found.text, found.language) == ("ls\nmake", "bash")
    assert found.read("ls") == {"timeout": 5, "command": "ls"}
    with pytest.raises(ValueError, match="nothing is left"):
        found.read(" \n")

    hiding = edit({"command": "ls \u202e"}, Preview(kind="command", text="ls \u202e"))
    assert hiding.text == '{\n  "command": "ls \\u202e"\n}'
    for text in ("", "{", "[1]", "null", "[" * 100_000):
        with pytest.raises(ValueError, match="JSON"):
            hiding.read(text)


texts = st.text(st.sampled_from('ab "\\\t\n\x1b\x9b\u202e\u200b日\ud800{}[]'), max_size=40)


@given(st.dictionaries(texts, texts | st.integers() | st.none() | st.lists(texts, max_size=2), max_size=3))
def test_unchanged_it_is_what_it_was_and_nothing_in_it_hides(args: JsonObject) -> None:
    found = edit(args)

    assert found.read(found.text) == args
    assert sanitise(found.text) == found.text


@table(
    ("args", "name", "subject"),
    [
        ({"path": "src/x.py", "content": "a\n\tb\n"}, "content", "the content of src/x.py"),
        ({"path": "src/x.py", "old_string": "a", "new_string": "a\n\tb\n"}, "new_string", "the new text in src/x.py"),
    ],
)
def test_the_new_text_of_a_file_is_edited_as_it_is(args: JsonObject, name: str, subject: str) -> None:
    found = edit(args, CHANGE)

    assert (found.text, found.subject) == ("a\n\tb\n", subject)
    assert (found.language, found.file_name) == ("python", "text.py")
    assert found.read("") == {**args, name: ""}


@table("text", ["a\r\nb", "a\u202eb", "a\u200bb", "a\u00a0b", "\x1b[1m", "\ud800"])
def test_a_text_that_an_editor_would_change_or_hide_is_json(text: str) -> None:
    found = edit({"path": "x.py", "content": text}, CHANGE)

    assert (found.language, found.subject) == ("json", "the input as JSON")
    assert found.read(found.text) == {"path": "x.py", "content": text}


@table("path", ["..", "x", "a/.bashrc", "x.p y", "x." + "y" * 40, "x.\x00", 5, None])
def test_the_file_for_another_editor_has_a_plain_name(path: object) -> None:
    assert edit({"path": path, "content": "a"}, CHANGE).file_name == "text.txt"
