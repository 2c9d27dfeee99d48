"""Recalling sent texts, and returning to the draft."""

from tui_agent.ui.composer.composer import MAX_HISTORY_ENTRIES, PromptHistory


def history(*texts: str) -> PromptHistory:
    found = PromptHistory()
    for text in texts:
        found.add(text)
    return found


def test_the_same_text_twice_in_a_row_counts_once() -> None:
    sent = history("one", "one", " ", "")

    assert [sent.earlier(""), sent.earlier("one")] == ["one", None]


def test_only_so_many_texts_are_kept() -> None:
    sent = history(*(str(number) for number in range(MAX_HISTORY_ENTRIES + 5)))
    seen = [text for _ in range(MAX_HISTORY_ENTRIES + 5) if (text := sent.earlier("")) is not None]

    assert (len(seen), seen[-1]) == (MAX_HISTORY_ENTRIES, "5")


def test_prompts_of_earlier_sessions_come_before_new_ones_however_often_they_are_loaded() -> None:
    sent = history("now")

    sent.begin_with(["old", "old", " ", "newer"])
    assert sent.earlier("") == "now"
    sent.begin_with(["oldest", "old", "newer"])

    assert [sent.earlier(""), sent.earlier(""), sent.earlier(""), sent.earlier("")] == ["newer", "old", "oldest", None]
    sent.begin_with(str(number) for number in range(MAX_HISTORY_ENTRIES + 5))
    sent.leave()
    assert [sent.earlier(""), sent.earlier("")] == ["now", str(MAX_HISTORY_ENTRIES + 4)]
