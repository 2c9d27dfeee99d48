"""Inert Markdown, checked with two real parsers."""

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.support.table import table
from tui_agent.session.export import code_span, escape_label, sanitise_markdown

PIECES = (
    "<script>", "</pre>", "<!--", "<?x", "<https://a.b>", "<javascript:x>", "<a href='", "'>", "![i](http://e/x)",
    "![", "[x](javascript:x)", "[x](java&#115;cript:x)", "[x](<javascript:x>)", "[x](https://a.b)", "[x](\n",
    "[r]: data:x", "\n[r]:\n", "javascript:x", "[r]", "`", "``", "```", "\n```\n", "\n~~~\n", "\n````py\n", "\\",
    "\\`", "\n", "\n\n", "> ", "- ", "    ", "  ", "1. ", "words ", "&lt;", "# ", "\n---\n", "| a | b |", "\t", "(",
    ")", "]", ":", "[[", '"',
)  # fmt: skip
SAFE = ("https:", "http:", "mailto:", "#", "/", "./", "../")


def tokens_of(text: str) -> list[Token]:
    found: list[Token] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        found += [token, *(token.children or [])]
    return found


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("- a\n  ```\nb <script>\n```\n<script>")
@example("`a\n\n<b>` `x` <script>`")
@example("```\ncode\n  ```\n<script>")
def test_markdown_has_no_html_and_no_images(text: str) -> None:
    for token in tokens_of(f"{sanitise_markdown(text)}\n\n## You\n"):
        assert token.type not in ("html_block", "html_inline", "image")
        if token.type == "link_open":
            target = str(token.attrs["href"])
            assert target.startswith(SAFE) or ":" not in target, target
    assert [
        token.content for token in tokens_of(f"{sanitise_markdown(text)}\n\n# The end\n") if token.type == "inline"
    ][-1] == "The end"


@table(
    "text",
    [
        "Plain *words*, a [link](https://example.org/x?y#z) and [another](docs/undo.md), `Vec<T>` and `a![b](c)`.",
        "```cpp\n#include <vector>\n![x](y)\n```",
        "1 < 2, a <- b\n\n| a | b |\n|---|---|\n\n~~~\n<html>\n~~~",
        "ä, 日本, 👩\u200d💻, e\u0301, ü\tx",
    ],
)
def test_harmless_markdown_is_unchanged(text: str) -> None:
    assert sanitise_markdown(text) == text


def test_an_open_code_block_is_closed() -> None:
    assert sanitise_markdown("````py\nx\n```") == "````py\nx\n```\n````"


def test_text_with_an_ambiguous_code_block_is_quoted() -> None:
    assert sanitise_markdown("1. do\n   ```sh\n   ls") == "> 1. do\n>    ```sh\n>    ls"


@table("text", ["a`b", "``", "x", "`", " a ", "\x1b[2J", "a\nb<script>"])
def test_a_code_span_is_one_token(text: str) -> None:
    types = [token.type for token in tokens_of(code_span(text)) if token.type not in ("inline", "text")]
    assert types == ["paragraph_open", "code_inline", "paragraph_close"]


def test_a_label_is_one_line_without_markdown() -> None:
    assert escape_label("mcp__a__b") == "mcp__a__b"
    assert escape_label("x**\n# <b>\x1b") == "x____ _b__"
    assert escape_label("a\u3164b\U000e0100c\u034f") == "a_b_c_"
