"""Long pastes are folded on the screen and complete when sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.composer.paste_folding_area import FOLDED_CHARACTERS, PasteFolder


def lines(number: int) -> str:
    return "\n".join(f"line {index}" for index in range(number))


def test_two_pastes_of_one_size_keep_apart() -> None:
    folder = PasteFolder()
    first, second = folder.fold(lines(20)), folder.fold(lines(20).upper())

    assert (first, second) == ("[pasted 20 lines]", "[pasted 20 lines #2]")
    assert folder.unfold(f"{first} and {second}") == f"{lines(20)} and {lines(20).upper()}"


def test_a_typed_paste_label_is_only_text() -> None:
    assert PasteFolder().unfold("[pasted 20 lines]") == "[pasted 20 lines]"
    assert PasteFolder().labels("[pasted 20 lines]") == ()


def test_labels_are_found_where_they_stand() -> None:
    folder = PasteFolder()
    label = folder.fold(lines(20))

    (found,) = folder.labels(f"see {label}!")

    assert (found.span(), found[0]) == ((4, 4 + len(label)), label)
    assert folder.unfold(found[0]) == lines(20)


@pytest.mark.slow
@given(st.lists(st.text(min_size=FOLDED_CHARACTERS, max_size=FOLDED_CHARACTERS + 40), min_size=1, max_size=3))
def test_whatever_is_folded_comes_out_whole(pastes: list[str]) -> None:
    folder = PasteFolder()
    draft = " | ".join(folder.fold(paste) for paste in pastes)

    assert folder.unfold(draft) == " | ".join(pastes)
