"""Markdown as blocks: structure is parsed, everything else is harmless text."""

from typing import Any

import pytest

from tests.support.table import table
from tui_agent.ui.transcript.markdown.markdown_blocks import (
    Block,
    CodeBlock,
    Heading,
    Item,
    Paragraph,
    Quote,
    Table,
    ThematicBreak,
    Unit,
    parse_markdown,
)


def blocks(source: str) -> list[Block]:
    return [unit.block for unit in parse_markdown(source)]


def text(source: str) -> str:
    block: Any = parse_markdown(source)[0].block
    return "".join(part for part, _ in block.runs)


def test_headings_have_levels() -> None:
    assert blocks("# A *b*\n\nC\n---") == [
        Heading(1, (("A ", ""), ("b", "emphasis"))),
        Heading(2, (("C", ""),)),
    ]


def test_emphasis_nests() -> None:
    assert blocks("a **b *c* `d`** ~~e~~") == [
        Paragraph(
            (
                ("a ", ""),
                ("b ", "strong"),
                ("c", "strong emphasis"),
                (" ", "strong"),
                ("d", "strong code"),
                (" ", ""),
                ("e", "struck"),
            )
        )
    ]


def test_line_ends_inside_a_paragraph_stay() -> None:
    assert text("one\ntwo\\\nthree") == "one\ntwo\nthree"


def test_links_show_their_address_and_images_their_words() -> None:
    assert text("see [here](https://a.b/c) and <https://d.e>") == "see here (https://a.b/c) and https://d.e"
    assert text("![a cat](cat.png) ![](dog.png)") == "a cat (cat.png) dog.png"
    assert text("<me@a.b>") == "me@a.b"


@table("source", ["<script>x</script>", "<b>bold</b>", "<!-- hidden -->", "[ref]: http://x", "[a][ref]"])
def test_html_and_references_are_shown_as_they_are(source: str) -> None:
    assert text(source) == source


def test_entities_cannot_restore_removed_characters() -> None:
    assert text("a&#x202e;b &lt;") == "a\\u202eb <"
    assert text("&#27;[31mred &#x9b;31mx") == "\ufffd[31mred \ufffd31mx"


def test_lists_are_items_that_belong_together() -> None:
    units = parse_markdown("- a\n- b\n  1. c\n\n* other")

    assert units == [
        Unit(Item(None, (Paragraph((("a", ""),)),)), 0),
        Unit(Item(None, (Paragraph((("b", ""),)), Item(1, (Paragraph((("c", ""),)),)))), 1, joined=True),
        Unit(Item(None, (Paragraph((("other", ""),)),)), 4),
    ]


def test_numbers_count_on_from_the_first_or_from_before() -> None:
    markers = [unit.block.marker for unit in parse_markdown("7. a\n1. b") if isinstance(unit.block, Item)]
    going_on = [unit.block.marker for unit in parse_markdown("1. a\n1. b", 4) if isinstance(unit.block, Item)]

    assert markers == ["7.", "8."]
    assert going_on == ["4.", "5."]


def test_code_keeps_its_lines_and_language() -> None:
    assert blocks("```python x\na\n\n  b\n```") == [CodeBlock("python x", ("a", "", "  b"), fenced=True)]
    assert blocks("    indented\n    code") == [CodeBlock("", ("indented", "code"))]
    assert blocks("```\n```") == [CodeBlock("", (), fenced=True)]


def test_tables_have_aligned_columns() -> None:
    assert blocks("| a | b | c |\n|--:|:-:|---|\n| 1 | `2` | 3 |") == [
        Table(
            (((("a", ""),), (("b", ""),), (("c", ""),)), ((("1", ""),), (("2", "code"),), (("3", ""),))),
            ("right", "center", "left"),
        )
    ]


def test_quotes_and_rules() -> None:
    assert blocks("> a\n> - b\n\n***") == [
        Quote((Paragraph((("a", ""),)), Item(None, (Paragraph((("b", ""),)),)))),
        ThematicBreak(),
    ]


@pytest.mark.parametrize(
    "source", ["".join("  " * depth + f"- {depth}\n" for depth in range(120)), ">" * 300 + " deep"]
)
def test_absurd_nesting_is_shown_as_its_source(source: str) -> None:
    units = parse_markdown(source)

    assert len(units) == 1
    assert text(source) == source.rstrip("\n")


def test_markup_of_other_kinds_is_text() -> None:
    assert text("[bold]x[/bold] [@click=app.quit]y[/] $primary") == "[bold]x[/bold] [@click=app.quit]y[/] $primary"
