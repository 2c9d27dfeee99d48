"""Parts of what a command changed: chosen ones make a selection that keeps exactly those."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ui.trial_story import CART, NEW_CART, PRICE, changed, everything, formatted
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.trial import KeepSelection, ProposedChanges
from tui_agent.ui.approval.change_parts import (
    ProposedParts,
    can_choose,
    editable,
    keep_all,
    new_texts,
    proposed_parts,
)

LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c d\r\n", "  e\n", "-- f\n", "+g\n"]), min_size=1, max_size=60)


def shop(directory: Path) -> Path:
    """Write the files that the formatter has changed, as they were before."""
    (directory / "src").mkdir()
    (directory / "src/cart.py").write_text(CART, "utf-8")
    (directory / "src/price.py").write_text(PRICE, "utf-8")
    return directory


def parts_of(changes: ProposedChanges, root: Path) -> ProposedParts:
    return proposed_parts(changes, new_texts(root, changes))


def test_hunks_of_a_text_and_whole_files_are_parts(tmp_path: Path) -> None:
    parts = parts_of(formatted(), shop(tmp_path))

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

    assert [part.name for part in parts_of(formatted(), root).parts].count("src/cart.py") == 1
    assert [part.name for part in parts_of(cut, root).parts] == ["src/cart.py"]
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
    parts = parts_of(formatted(), shop(tmp_path))
    edit = parts.edit(1, {0, 2})

    assert edit is not None
    assert (edit.text, edit.language, edit.file_name) == (NEW_CART, "python", "text.py")
    chosen = KeepSelection.model_validate(edit.read(edit.text + "# mine\n"))
    assert chosen.paths == ("src/shop/rates.py", "src/cart.py")
    assert chosen.texts == {"src/cart.py": NEW_CART + "# mine\n"}
    assert KeepSelection.model_validate(edit.read(edit.text)).texts == {}, "all of it, as the command left it"


@given(LINES, LINES, st.sets(st.integers(0, 20)))
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
