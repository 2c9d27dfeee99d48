"""Markdown as blocks and as rows: harmless text, never wider than the width, and nothing omitted without a note."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.ui.text.line import NARROWEST
from tui_agent.ui.text.styled_lines import width_of_runs
from tui_agent.ui.transcript.markdown_blocks import CodeBlock, Paragraph, Table, parse_markdown
from tui_agent.ui.transcript.markdown_layout import MAX_CODE_LINES, MAX_ROWS, layout_block

PIECES = [
    *(
        "# head",
        "para **bold** text that is longer",
        "- item",
        "  - nested",
        "1. one",
        "> quote",
        "```py",
        "```",
        "x = 1",
    ),
    *(
        "",
        "a | b",
        "--- | ---",
        "1 | 2 日本語日本語",
        "---",
        "===",
        "    code",
        "| a | b | c | d | e | f | g | h |",
        "\ttab",
    ),
    *("|---|---|---|---|---|---|---|---|", "> > - deep", "https://example.org/a/very/long/address/that/does/not/fit"),
]
sources = st.lists(st.sampled_from(PIECES), max_size=14).map("\n".join)


def rows(source: str, width: int) -> list[str]:
    return [line.plain for unit in parse_markdown(source) for line in layout_block(unit.block, width)]


@given(sources, st.integers(1, 60))
def test_no_row_is_wider_than_asked(source: str, width: int) -> None:
    for unit in parse_markdown(source):
        for line in layout_block(unit.block, width):
            assert width_of_runs(line.runs) <= max(width, NARROWEST)


@given(st.text("ab c", max_size=200), st.integers(8, 40))
def test_every_word_of_a_paragraph_is_there(text: str, width: int) -> None:
    shown = " ".join(line.plain for line in layout_block(Paragraph(((text, ""),)), width))

    assert "".join(shown.split()) == "".join(text.split())


def test_lists_hang_on_their_markers() -> None:
    source = "- one two three four five\n- six\n  1. seven eight nine ten"

    assert rows(source, 22) == ["• one two three four", "  five", "• six", "  1. seven eight nine", "     ten"]


def test_without_room_for_margins_the_text_comes_first() -> None:
    assert rows("- one two three four", 12) == ["• one two", "three four"]
    assert rows("> one two three", 12) == ["one two", "three"]
    assert rows("- > x\n\n- # y", 12) == ["•", "", "x", "•", "", "y"]


def test_tables_share_the_width() -> None:
    source = "| name | what it is |\n|--|--:|\n| a | b |\n| longer name | much longer words in it |"

    assert rows(source, 30) == [
        "name        │       what it is",
        "────────────┼─────────────────",
        "a           │                b",
        "longer name │      much longer",
        "            │      words in it",
    ]


def test_narrow_columns_break_their_words() -> None:
    source = "| abcdefg | bcdefgh | cdefghi | 日本語日本 |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |"

    assert rows(source, 30) == [
        "abcdef │ bcdef │ cdefg │ 日本 ",
        "g      │ gh    │ hi    │ 語日 ",
        "       │       │       │ 本   ",
        "───────┼───────┼───────┼──────",
        "1      │ 2     │ 3     │ 4    ",
    ]


def test_a_table_with_too_many_columns_becomes_records() -> None:
    source = "| name | size | kind |\n|---|---|---|\n| one | 1 | x |\n| two | 2 | y |"

    assert rows(source, 14) == ["name: one", "size: 1", "kind: x", "", "name: two", "size: 2", "kind: y"]
    assert rows("| name | size | kind |\n|---|---|---|", 14) == ["name size kind"]


def test_a_huge_table_says_how_much_is_left_out() -> None:
    table = Table(tuple(((("x", ""),),) for _ in range(MAX_ROWS + 11)), ("left",))

    shown = layout_block(table, 40)

    assert shown[-1].plain == "… 10 more rows"
    assert len(shown) == MAX_ROWS + 3


def test_huge_code_says_how_much_is_left_out() -> None:
    shown = layout_block(CodeBlock("", ("x",) * (MAX_CODE_LINES + 5)), 40)

    assert shown[-1].plain == "… 5 more lines"


def test_a_rule_goes_across() -> None:
    assert rows("***", 12) == ["─" * 12]


def text(source: str) -> str:
    block: Any = parse_markdown(source)[0].block
    return "".join(part for part, _ in block.runs)


def test_links_show_their_address_and_images_their_words() -> None:
    assert text("see [here](https://a.b/c) and <https://d.e>") == "see here (https://a.b/c) and https://d.e"
    assert text("![a cat](cat.png) ![](dog.png)") == "a cat (cat.png) dog.png"
    assert text("<me@a.b>") == "me@a.b"


@table(
    "source",
    [
        "[bold]x[/bold] [@click=app.quit]y[/] $primary",
        "<script>x</script>",
        "<b>bold</b>",
        "<!-- hidden -->",
        "[ref]: http://x",
        "[a][ref]",
    ],
)
def test_html_and_references_are_shown_as_they_are(source: str) -> None:
    assert text(source) == source


def test_entities_cannot_restore_removed_characters() -> None:
    assert text("a&#x202e;b &lt;") == "a\\u202eb <"
    assert text("&#27;[31mred &#x9b;31mx") == "\ufffd[31mred \ufffd31mx"


@table("source", ["".join("  " * depth + f"- {depth}\n" for depth in range(120)), ">" * 300 + " deep"])
def test_absurd_nesting_is_shown_as_its_source(source: str) -> None:
    units = parse_markdown(source)

    assert len(units) == 1
    assert text(source) == source.rstrip("\n")
