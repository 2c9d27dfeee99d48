"""A key is hidden wherever a server repeats it, and a short placeholder leaves the words around it readable."""

import html
import json
import re
from urllib.parse import quote

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.secret_variables import HIDDEN, SHORTEST_MASKED, mask_secrets

KEY = "Zk91-vT_x77+q/W="
WORD = "[A-Za-z0-9]"

_KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
_TEXTS = st.text(max_size=40)


def _joins(left: str, right: str) -> bool:
    """Return True if two texts form one word where they meet."""
    return bool(re.search(f"{WORD}$", left) and re.match(WORD, right))


def _is_apart(text: str, key: str) -> bool:
    """Return True if the key occurs exactly once in the text, also if upper and lower case are equal."""
    return len(re.findall(f"(?={re.escape(key)})", text, re.IGNORECASE)) == 1


@given(_TEXTS, _KEYS.filter(lambda key: len(key) >= SHORTEST_MASKED), _TEXTS)
@example("", KEY, "")
@example("密钥", KEY, "无效")
@example("https://user:", KEY, "@host/")
@example('{"error": "', KEY, '"}')
@example("MY_", KEY, "_OLD")
def test_a_key_of_eight_characters_or_more_is_hidden_in_any_text_around_it(before: str, key: str, after: str) -> None:
    text = f"{before}{key}{after}"
    assume(not _joins(before, key) and not _joins(key, after) and _is_apart(text, key))

    shown = mask_secrets(text, [key])

    assert key not in shown
    assert HIDDEN in shown


@given(_TEXTS, _KEYS.filter(lambda key: len(key) < SHORTEST_MASKED), _TEXTS)
@example("ma", "x", "imum")
@example("run `", "ollama", " pull`")
def test_a_shorter_key_is_never_hidden(before: str, key: str, after: str) -> None:
    text = f"{before}{key}{after}"
    assume(not re.search(r"bearer|sk-", text, re.IGNORECASE))

    assert mask_secrets(text, [key]) == text


@given(_TEXTS, st.from_regex(r"[a-zA-Z0-9]{8,30}", fullmatch=True), _TEXTS)
@example("ma", "imummaxi", "mum")
def test_a_word_that_contains_the_key_stays_whole(before: str, key: str, after: str) -> None:
    text = f"{before}a{key}z{after}"
    assume(_is_apart(text, key) and not re.search(r"bearer|sk-", text, re.IGNORECASE))
    assume(not text.lower().startswith(key.lower()))

    assert key in mask_secrets(text, [key]) or re.search(r"[%\\\x1b]", before)


@table(
    "text",
    [
        f"https://user:{KEY}@host/v1",
        f"https://host/?key={quote(KEY, safe='')}&more=1",
        f"https://login/?next={quote(f'https://host/?key={KEY}&more=1', safe='')}",
        f"Authorization: Bearer {KEY}",
        f"x-api-key={KEY};",
        f"Illegal header value b'{KEY}'",
        json.dumps({"key": KEY}),
        json.dumps(f"first line\n{KEY}\tend"),
        repr(f"first line\n{KEY}"),
        html.escape(f'"{KEY}"'),
        f"\x1b[31m{KEY}\x1b[0m",
        f"host {KEY.lower()}.example",
        f"{KEY},{KEY}",
        f"({KEY})",
        f"密钥{KEY}无效",
    ],
)
def test_a_key_is_hidden_in_every_form_in_which_a_message_repeats_it(text: str) -> None:
    shown = mask_secrets(text, [KEY])

    assert HIDDEN in shown
    assert "vt_x77" not in shown.lower()


@table("key", ['quote"inside\\key', "-leading-and-trailing-", "base64Base64=="])
def test_a_key_with_punctuation_at_its_ends_or_inside_is_hidden(key: str) -> None:
    for text in (f"a {key} b", json.dumps(f"is {key}!"), quote(f"?{key}&", safe=""), f"<{key}>"):
        shown = mask_secrets(text, [key])

        assert HIDDEN in shown
        assert key not in shown
        assert json.dumps(key)[1:-1] not in shown


@table(
    ("text", "shown"),
    [
        ("Bearer authentication is required", None),
        ("The bearer token has expired.", None),
        ("Illegal header value b'Bearer x'", f"Illegal header value b'{HIDDEN}'"),
        ("Authorization: Bearer eyJhbGciOi.xyz", f"Authorization: {HIDDEN}"),
        ("Authorization: bearer abc123", f"Authorization: {HIDDEN}"),
    ],
)
def test_after_bearer_a_value_is_hidden_and_an_ordinary_word_is_not(text: str, shown: str | None) -> None:
    assert mask_secrets(text, ["x"]) == (shown or text)
    assert mask_secrets("abcdefgh-12345678", ["abcdefgh", "abcdefgh-12345678"]) == HIDDEN, (
        "the longer key is hidden whole"
    )
