"""Parts of a change, and texts to edit: a choice makes an answer of its own, and the model reads the rest."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tests.ui.question_page import ComposerKeys, empty_app, page_in
from tests.ui.stage import Clock
from tests.ui.trial_story import CART, NEW_CART, PRICE, changed, everything, formatted
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.protocol.trial import KeepSelection, ProposedChanges
from tui_agent.tools.unified_diff import diff_of
from tui_agent.ui.approval.approval_pages import ChangePartsScreen
from tui_agent.ui.approval.change_parts import (
    ChangeParts,
    InputEdit,
    ProposedParts,
    can_choose,
    change_parts,
    editable,
    keep_all,
    new_texts,
    proposed_parts,
)
from tui_agent.ui.text.sanitiser import sanitise

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


# --- the page of the parts --------------------------------------------------------------------------------------------

CHANGE = ApprovalRequest(
    request_id="q1", call_id="c1", digest="d", tool="write", args={"path": "src/x.py", "content": NEW},
    preview=Preview(kind="diff", text=diff_of(OLD, NEW, "a/x", "b/x"), path="/w/src/x.py"),
)  # fmt: skip


@pytest.mark.slow
async def test_a_yes_is_for_the_accepted_parts_and_needs_the_end_of_the_page() -> None:
    parts = change_parts(CHANGE)
    assert parts is not None
    yes, some = ApprovalDecision(decision="approve"), parts.decision({0, 2})
    none = ApprovalDecision(decision="deny", note="I accept none of the 3 parts of this change.")
    wide = (80, 40)
    async with empty_app() as pilot:
        for size, steps, answers in (
            (wide, [("down space", "[ ] part 2 of 3  +0 −1  left out"), ("", "y yes to 2 of 3"), ("y", "")], [some]),
            (wide, [("a", "y no to all"), ("y", "")], [none]),
            ((40, 10), [("n", "")], [none]),
            ((40, 10), [("y", "more row")], []),
            ((20, 6), [("y", "more row"), ("end", ""), ("y", "")], [yes]),
            ((60, 12), [("down " * 12, "› [x] part 3 of 3"), ("up " * 5, "› [x] part 1 of 3")], []),
            (wide, [("escape", "")], [None]),
        ):
            async with page_in(
                pilot, ChangePartsScreen(CHANGE, parts, keys=ComposerKeys(Clock())), Clock(), size
            ) as page:
                for keys, words in steps:
                    await page.press(*keys.split())
                    assert words in page.text(), (size, keys)
                assert page.answers == answers, (size, steps)


@pytest.mark.slow
async def test_text_and_pastes_answer_nothing_and_a_request_answered_elsewhere_closes_the_page() -> None:
    parts = change_parts(CHANGE)
    assert parts is not None
    async with empty_app((80, 40)) as pilot:
        for way in ("text", "paste", "elsewhere"):
            screen = ChangePartsScreen(CHANGE, parts, keys=ComposerKeys(Clock()))
            async with page_in(pilot, screen, Clock()) as page:
                match way:
                    case "text":
                        await pilot.press("x", "y")
                        screen.settle()
                    case "paste":
                        await page.paste("y")
                    case _:
                        screen.keep_only({"q1", "q2"})
                        assert screen.is_current
                        screen.keep_only({"q2"})
                        await pilot.pause()
                assert (way, page.answers) == (way, [None])


# --- parts of what a command changed ----------------------------------------------------------------------------------

TEXT_LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "c d\r\n", "  e\n", "-- f\n", "+g\n"]), min_size=1, max_size=60
)


def shop(directory: Path) -> Path:
    """Write the files that the formatter has changed, as they were before."""
    (directory / "src").mkdir()
    (directory / "src/cart.py").write_text(CART, "utf-8")
    (directory / "src/price.py").write_text(PRICE, "utf-8")
    return directory


def proposed_of(changes: ProposedChanges, root: Path) -> ProposedParts:
    return proposed_parts(changes, new_texts(root, changes))


def test_hunks_of_a_text_and_whole_files_are_parts(tmp_path: Path) -> None:
    parts = proposed_of(formatted(), shop(tmp_path))

    names = [part.name for part in parts.parts]
    assert names == ["src/shop/rates.py", "src/cart.py, part 1 of 2", "src/cart.py, part 2 of 2", "src/price.py"]
    assert parts.decision(parts.initial) == ApprovalDecision(decision="approve"), "all: no selection is needed"
    assert parts.decision(()) == ApprovalDecision(decision="deny")

    some = parts.decision({1, 3})
    assert some.input is not None
    chosen = KeepSelection.model_validate(some.input)
    assert chosen.paths == ("src/cart.py", "src/price.py")
    assert chosen.texts == {"src/cart.py": CART.replace("step_2()", "step_two()")}
    assert some.note.startswith("I left out these parts of files:\nsrc/cart.py\n@@ -18,4 +18,4 @@")


def test_a_text_that_changed_meanwhile_or_whose_diff_is_cut_is_kept_as_a_whole(tmp_path: Path) -> None:
    root = shop(tmp_path)
    (root / "src/cart.py").write_text(CART.replace("step_1()", "mine()"), "utf-8")
    cut = ProposedChanges(layer="l", files=(changed("src/cart.py", CART, NEW_CART, has_more=True),))

    assert [part.name for part in proposed_of(formatted(), root).parts].count("src/cart.py") == 1
    assert [part.name for part in proposed_of(cut, root).parts] == ["src/cart.py"]
    assert not can_choose(cut)
    assert editable(cut) == ()


def test_a_conflict_is_kept_only_if_it_is_chosen_and_what_is_refused_never() -> None:
    changes = everything()
    parts = proposed_parts(changes, {})
    kept = KeepSelection.model_validate(keep_all(changes))

    assert keep_all(formatted()) is None
    assert "src/cart.py" not in kept.paths
    assert kept.overwrite == ()
    assert {".git", "build/", ".venv/", ".husky/pre-commit"} <= set(kept.paths)
    assert "/etc/hosts" not in kept.paths

    everything_chosen = parts.decision(range(len(parts.parts))).input
    assert everything_chosen is not None
    assert everything_chosen["overwrite"] == ["src/cart.py"]


def test_an_edited_text_is_kept_with_the_chosen_parts(tmp_path: Path) -> None:
    parts = proposed_of(formatted(), shop(tmp_path))
    edit = parts.edit(1, {0, 2})

    assert edit is not None
    assert (edit.text, edit.language, edit.file_name) == (NEW_CART, "python", "text.py")
    chosen = KeepSelection.model_validate(edit.read(edit.text + "# mine\n"))
    assert chosen.paths == ("src/shop/rates.py", "src/cart.py")
    assert chosen.texts == {"src/cart.py": NEW_CART + "# mine\n"}
    assert KeepSelection.model_validate(edit.read(edit.text)).texts == {}, "all of it, as the command left it"


@given(TEXT_LINES, TEXT_LINES, st.sets(st.integers(0, 20)))
def test_some_hunks_are_the_old_text_with_only_their_lines(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], wanted: set[int]
) -> None:
    before, after = "".join(old), "".join(new)
    changes = ProposedChanges(layer="l", files=(changed("a.txt", before, after),))
    directory = tmp_path_factory.mktemp("w")
    (directory / "a.txt").write_bytes(before.encode())
    texts = new_texts(directory, changes)
    parts = proposed_parts(changes, texts)
    accepted = {index for index in wanted if index < len(parts.parts)}

    assert texts.get("a.txt", after) == after
    chosen = KeepSelection.model_validate(parts.selection(accepted))
    if not accepted:
        assert chosen == KeepSelection()
    elif len(accepted) == len(parts.parts):
        assert chosen.paths == ("a.txt",)
        assert chosen.texts == {}
    else:
        left = sum(
            part.text.count("\n+") - part.text.count("\n-") for i, part in enumerate(parts.parts) if i in accepted
        )
        assert chosen.texts["a.txt"].count("\n") == before.count("\n") + left


# --- texts to edit ----------------------------------------------------------------------------------------------------

SHOWN = Preview(kind="diff", text="--- a/x\n+++ b/x\n")


def edit_of(args: JsonObject, preview: Preview | None = None) -> InputEdit:
    return InputEdit(ApprovalRequest(call_id="c1", digest="d", tool="t", args=args, preview=preview))


def test_a_command_is_edited_as_it_is_unless_something_in_it_hides() -> None:
    found = edit_of({"timeout": 5, "command": "ls\nmake"}, Preview(kind="command", text="ls\nmake"))

    assert (found.text, found.language) == ("ls\nmake", "bash")
    assert found.read("ls") == {"timeout": 5, "command": "ls"}
    with pytest.raises(ValueError, match="nothing is left"):
        found.read(" \n")

    hiding = edit_of({"command": "ls \u202e"}, Preview(kind="command", text="ls \u202e"))
    assert hiding.text == '{\n  "command": "ls \\u202e"\n}'
    for text in ("", "{", "[1]", "null", "[" * 100_000):
        with pytest.raises(ValueError, match="JSON"):
            hiding.read(text)


hiding = st.text(st.sampled_from('ab "\\\t\n\x1b\x9b\u202e\u200b日\ud800{}[]'), max_size=40)


@given(st.dictionaries(hiding, hiding | st.integers() | st.none() | st.lists(hiding, max_size=2), max_size=3))
def test_unchanged_it_is_what_it_was_and_nothing_in_it_hides(args: JsonObject) -> None:
    found = edit_of(args)

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
    found = edit_of(args, SHOWN)

    assert (found.text, found.subject) == ("a\n\tb\n", subject)
    assert (found.language, found.file_name) == ("python", "text.py")
    assert found.read("") == {**args, name: ""}


@table("text", ["a\r\nb", "a\u202eb", "a\u200bb", "a\u00a0b", "\x1b[1m", "\ud800"])
def test_a_text_that_an_editor_would_change_or_hide_is_json(text: str) -> None:
    found = edit_of({"path": "x.py", "content": text}, SHOWN)

    assert (found.language, found.subject) == ("json", "the input as JSON")
    assert found.read(found.text) == {"path": "x.py", "content": text}


@table("path", ["..", "x", "a/.bashrc", "x.p y", "x." + "y" * 40, "x.\x00", 5, None])
def test_the_file_for_another_editor_has_a_plain_name(path: object) -> None:
    assert edit_of({"path": path, "content": "a"}, SHOWN).file_name == "text.txt"
