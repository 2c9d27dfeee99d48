"""Parts of a change: those that are accepted make an input of their own, and the model reads the others."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.approval.change_parts import ChangeParts, change_parts

OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = OLD.replace("line 2\n", "line two\n").replace("line 15\n", "").replace("line 29\n", "line 29\nmore\n")


def parts_of(args: JsonObject, old: str, new: str) -> ChangeParts | None:
    preview = Preview(kind="diff", text=diff_of(old, new, "a/x", "b/x"), path="/w/x")
    return change_parts(ApprovalRequest(call_id="c", digest="d", tool="t", args=args, preview=preview))


def write(old: str = OLD, new: str = NEW) -> ChangeParts | None:
    return parts_of({"path": "x", "content": new}, old, new)


def edit(old: str = OLD, new: str = NEW, around: str = "") -> ChangeParts | None:
    args: JsonObject = {"path": "x", "old_string": old, "new_string": new}
    return parts_of(args, around + old, around + new)


def test_all_parts_are_a_plain_yes_none_a_no_and_the_model_reads_which_were_left_out() -> None:
    parts = write()
    assert parts is not None

    assert parts.decision({0, 1, 2}) == ApprovalDecision(decision="approve")
    none = parts.decision(())
    assert none == ApprovalDecision(decision="deny", note="I accept none of the 3 parts of this change.")
    some = parts.decision({0, 2})
    assert (some.decision, some.input) == ("approve", parts.input_with({0, 2}))
    assert some.note.startswith("I left out 1 of the 3 parts of this change:\n@@ -12,7 +12,6 @@\n line 12")
    assert "\n-line 15\n" in some.note
    assert "line two" not in some.note


@table(
    ("old", "new"),
    [
        (OLD, OLD.replace("line 2\n", "line two\n")),
        ("", NEW),
        (OLD.replace("\n", "\r\n"), NEW.replace("\n", "\r\n")),
        (OLD, NEW + "\ud800"),
    ],
)
def test_a_change_that_cannot_be_cut_has_no_parts(old: str, new: str) -> None:
    assert write(old, new) is None


def test_a_cut_diff_or_another_call_has_no_parts() -> None:
    whole = diff_of(OLD, NEW, "a/x", "b/x")
    cut = Preview(kind="diff", text=whole.shortened(len(whole) // 2))
    request = ApprovalRequest(call_id="c", digest="d", tool="t", args={"content": NEW}, preview=cut)

    assert change_parts(request) is None
    assert change_parts(request.model_copy(update={"preview": None})) is None
    assert change_parts(request.model_copy(update={"preview": Preview(kind="command", text="ls")})) is None
    assert parts_of({"path": "x", "content": OLD}, OLD, NEW) is None, "the diff shows another text"


LINES = ["a", "b", "c", "", "\\ No newline at end of file", "@@ -1 +1 @@", "--- x", "+++ y"]
lines = st.lists(st.sampled_from(LINES), min_size=30, max_size=60)
changes = st.dictionaries(st.integers(0, 59), st.lists(st.sampled_from(["x", "y", "a"]), max_size=2), max_size=5)


def patched(old: str, parts: ChangeParts, chosen: set[int]) -> str:
    """Return the old text with some hunks applied at the places in their headers."""
    found = re.findall(r"[^\n]*\n|[^\n]+", old)
    for index in sorted(chosen, reverse=True):
        (hunk,) = parts.parts[index].hunks
        start = int(re.findall(r"\d+", hunk.header)[0]) - bool(hunk.old)
        assert tuple(found[start : start + len(hunk.old)]) == hunk.old
        found[start : start + len(hunk.old)] = hunk.new
    return "".join(found)


@given(lines, changes, st.booleans(), st.booleans(), st.sets(st.integers(0, 5)))
def test_any_accepted_parts_are_what_a_patch_with_them_makes(
    before: list[str], changed: dict[int, list[str]], old_ends: bool, new_ends: bool, accepted: set[int]
) -> None:
    after = [line for index, kept in enumerate(before) for line in changed.get(index, [kept])]
    old, new = "\n".join(before) + "\n" * old_ends, "\n".join(after) + "\n" * new_ends
    for parts, name in ((write(old, new), "content"), (edit(old, new), "new_string")):
        if parts is None:
            continue
        chosen = {index for index in accepted if index < len(parts.parts)}
        assert parts.input_with(range(len(parts.parts)))[name] == new
        assert parts.input_with(())[name] == old
        assert parts.input_with(chosen)[name] == patched(old, parts, chosen)
