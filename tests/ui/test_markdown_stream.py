"""Text that streams in: the outcome does not depend on how it was cut, and a flush costs what is open."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.code_colours import PIECE_MOST
from tui_agent.ui.markdown_blocks import CodeBlock, Item, Paragraph, Unit
from tui_agent.ui.markdown_layout import layout_block
from tui_agent.ui.markdown_stream import LONGEST_LINE, MarkdownStream
from tui_agent.ui.styled_lines import Line

PIECES = [
    *(
        "# head",
        "para text **bold**",
        "- item",
        "  - nested",
        "1. one",
        "2. two",
        "3) x",
        "> quote",
        "```py",
        "```",
        "~~~",
    ),
    *("def f():", "    return 1", "", "", "a | b", "--- | ---", "1 | 2", "---", "===", "* * *", "    code", "text `x`"),
    *(
        "\ttab",
        "  cont",
        "+ plus",
        "lazy",
        "   1. deep",
        "\x1b[1mx",
        "a\rb",
        "&#27;&lt;",
        "[x]: y",
        "|a|",
        "#",
        "#x",
        "-",
    ),
]
sources = st.lists(st.sampled_from(PIECES), max_size=14).map("\n".join)
cuts = st.lists(st.integers(1, 12), min_size=1, max_size=40)


def rows(units: list[Unit], width: int = 30) -> list[Line]:
    shown: list[Line] = []
    for number, unit in enumerate(units):
        if number and not unit.joined:
            shown.append(Line())
        shown.extend(layout_block(unit.block, width))
    return shown


def at_once(text: str, **options: int) -> list[Unit]:
    stream = MarkdownStream(**options)
    stream.feed(text)
    stream.finish()
    return stream.finished


def in_pieces(text: str, lengths: list[int], **options: int) -> list[Unit]:
    stream = MarkdownStream(**options)
    place = turn = 0
    while place < len(text):
        length = lengths[turn % len(lengths)]
        stream.feed(text[place : place + length])
        place, turn = place + length, turn + 1
        if length % 3:
            stream.flush()
    stream.finish()
    return stream.finished


@given(sources, cuts, st.sampled_from(["\n", "\r\n"]))
def test_any_cutting_gives_the_same_rows(text: str, lengths: list[int], end: str) -> None:
    text = text.replace("\n", end)

    assert rows(in_pieces(text, lengths)) == rows(at_once(text))


@given(sources, cuts, st.sampled_from([10, 30, 60]))
def test_any_cutting_gives_the_same_rows_where_blocks_are_too_long(text: str, lengths: list[int], longest: int) -> None:
    assert rows(in_pieces(text, lengths, longest_block=longest)) == rows(at_once(text, longest_block=longest))


CODE_LINES = [
    "class A:",
    "    def f(self):",
    '        """doc',
    "",
    '        more"""',
    "        return 1",
    "",
    "x = 1",
    "```",
]


@given(
    st.lists(st.sampled_from(CODE_LINES[:-1]), min_size=20, max_size=200),
    cuts,
    st.sampled_from(["", "```", "```\nafter"]),
)
def test_long_code_is_the_same_however_it_came(lines: list[str], lengths: list[int], end: str) -> None:
    text = "\n".join(["before", "", "```python", *lines, end])

    assert rows(in_pieces(text, lengths)) == rows(at_once(text))


def test_finished_blocks_are_not_read_again() -> None:
    stream = MarkdownStream()
    stream.feed("first\n\nsecond\n\nthi")
    stream.flush()
    finished = list(stream.finished)

    stream.feed("rd\n\n- a\n- b\n- c\n")
    stream.flush()

    assert [unit.block for unit in finished] == [Paragraph((("first", ""),))]
    assert stream.finished[0] is finished[0]
    assert isinstance(stream.finished[-1].block, Item)
    assert len(stream.open) == 1


def test_a_half_written_line_finishes_nothing() -> None:
    stream = MarkdownStream()
    stream.feed("text\n#")
    stream.flush()
    assert stream.finished == []

    stream.feed("hashtag")
    stream.finish()

    assert [unit.block for unit in stream.finished] == [Paragraph((("text", ""), ("\n", ""), ("#hashtag", "")))]


def test_open_code_is_finished_piece_by_piece() -> None:
    stream = MarkdownStream()
    stream.feed("```python\n" + "    x = 1\n" * (3 * PIECE_MOST))
    stream.flush()

    assert len(stream.finished) == 3
    assert [unit.joined for unit in stream.finished] == [False, True, True]
    assert all(isinstance(unit.block, CodeBlock) for unit in stream.finished)


def test_numbers_go_on_over_finished_items() -> None:
    stream = MarkdownStream()
    for line in ("1. a\n", "1. b\n", "1. c\n", "1. d"):
        stream.feed(line)
        stream.flush()
    stream.finish()

    assert [unit.block.number for unit in stream.finished if isinstance(unit.block, Item)] == [1, 2, 3, 4]


def test_an_endless_line_is_cut() -> None:
    units = at_once("x" * (3 * LONGEST_LINE))

    assert sum(len(line.plain) for line in rows(units)) == 3 * LONGEST_LINE
    assert rows(in_pieces("x" * (3 * LONGEST_LINE), [7_001])) == rows(units)


def test_escape_sequences_cut_in_two_do_not_show() -> None:
    stream = MarkdownStream()
    for piece in ("a\x1b", "[3", "1mb\x1b]0;ti", "tle\x07c"):
        stream.feed(piece)
        stream.flush()
    stream.finish()

    assert [line.plain for line in rows(stream.finished)] == ["abc"]


def test_nothing_gives_nothing() -> None:
    assert at_once("") == []
    assert at_once("\n\n  \n") == []
