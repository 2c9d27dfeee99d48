"""Nothing from outside acts on a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.headless.visible_text import visible


def test_what_would_act_is_shown() -> None:
    assert visible("a\x1b[2Jb\x9bc\r\nd\re\u202ef\u200bg\u2028h\ud83di") == (
        "a\\x1b[2Jb\\x9bc\nd\\re\\u202ef\\u200bg\\u2028h\\ud83di"
    )


def test_plain_text_stays_as_it_is() -> None:
    assert visible("plain") == "plain"
    assert visible("ü 漢字 🙂\n\tindented") == "ü 漢字 🙂\n\tindented"


@given(st.text())
def test_no_control_or_format_character_is_left(text: str) -> None:
    left = [character for character in visible(text) if character not in "\n\t"]

    assert not [character for character in left if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
