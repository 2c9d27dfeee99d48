"""The input that the user may edit: all of it is visible, and unedited text gives the same input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.input_edit import InputEdit
from tui_agent.ui.text.sanitiser import sanitise

texts = st.text(st.sampled_from('ab "\\\t\n\x1b\x9b\u202e\u200b日\ud800{}[]'), max_size=40)


def edit(args: JsonObject, command: str | None = None) -> InputEdit:
    preview = None if command is None else Preview(kind="command", text=command)
    return InputEdit(ApprovalRequest(call_id="c1", digest="d", tool="t", args=args, preview=preview))


def test_a_command_in_which_nothing_hides_is_changed_as_it_is() -> None:
    found = edit({"timeout": 5, "command": "ls\nmake"}, "ls\nmake")

    assert (found.text, found.language) == ("ls\nmake", "bash")
    assert found.read("ls") == {"timeout": 5, "command": "ls"}
    with pytest.raises(ValueError, match="nothing is left"):
        found.read(" \n")


def test_a_command_in_which_something_hides_is_json() -> None:
    assert edit({"command": "ls \u202e"}, "ls \u202e").text == '{\n  "command": "ls \\u202e"\n}'


@table("text", ["", "{", "[1]", "null", "[" * 100_000])
def test_input_other_than_a_json_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        edit({"a": "b"}).read(text)


@given(st.dictionaries(texts, texts | st.integers() | st.none() | st.lists(texts, max_size=2), max_size=3))
def test_unchanged_it_is_what_it_was_and_nothing_in_it_hides(args: JsonObject) -> None:
    found = edit(args)

    assert found.read(found.text) == args
    assert sanitise(found.text) == found.text


def change(args: JsonObject) -> InputEdit:
    preview = Preview(kind="diff", text="--- a/x\n+++ b/x\n")
    return InputEdit(ApprovalRequest(call_id="c1", digest="d", tool="t", args=args, preview=preview))


@pytest.mark.parametrize(
    ("args", "name", "subject"),
    [
        ({"path": "src/x.py", "content": "a\n\tb\n"}, "content", "the content of src/x.py"),
        ({"path": "src/x.py", "old_string": "a", "new_string": "a\n\tb\n"}, "new_string", "the new text in src/x.py"),
    ],
)
def test_the_new_text_of_a_file_is_edited_as_it_is(args: JsonObject, name: str, subject: str) -> None:
    found = change(args)

    assert (found.text, found.subject) == ("a\n\tb\n", subject)
    assert (found.language, found.file_name) == ("python", "text.py")
    assert found.read("") == {**args, name: ""}


@table("text", ["a\r\nb", "a\u202eb", "a\u200bb", "a\u00a0b", "\x1b[1m", "\ud800"])
def test_a_text_that_an_editor_would_change_or_hide_is_json(text: str) -> None:
    found = change({"path": "x.py", "content": text})

    assert found.language == "json"
    assert found.subject == "the input as JSON"
    assert found.read(found.text) == {"path": "x.py", "content": text}


@table("path", ["..", "x", "a/.bashrc", "x.p y", "x." + "y" * 40, "x.\x00", 5, None])
def test_the_file_for_another_editor_has_a_plain_name(path: object) -> None:
    assert change({"path": path, "content": "a"}).file_name == "text.txt"
