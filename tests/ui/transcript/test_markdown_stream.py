"""Streaming text: the result does not depend on how it was cut, and a flush costs as much as the open end."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pathological_texts import pathological_texts
from tests.support.table import table
from tui_agent.ui.text.line import Line
from tui_agent.ui.transcript import markdown_stream
from tui_agent.ui.transcript.markdown_blocks import Paragraph, PlainText, Unit
from tui_agent.ui.transcript.markdown_layout import layout_block
from tui_agent.ui.transcript.markdown_stream import (
    BLOCK_COST,
    LINE_COST,
    LONGEST_LINE,
    SLICE_COST,
    TEXT_COST,
    MarkdownStream,
    reading_cost,
)

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
    return to_the_end(stream)


def to_the_end(stream: MarkdownStream) -> list[Unit]:
    stream.finish()
    while stream.waits:
        stream.finish()
    return [*stream.finished, *stream.unread]


def in_pieces(text: str, lengths: list[int], **options: int) -> list[Unit]:
    stream = MarkdownStream(**options)
    place = turn = 0
    while place < len(text):
        length = lengths[turn % len(lengths)]
        stream.feed(text[place : place + length])
        place, turn = place + length, turn + 1
        if length % 3:
            stream.flush()
    return to_the_end(stream)


LIMITS = [
    *({} for _ in range(4)),
    *({"longest_block": longest} for longest in (10, 30, 60)),
    *({"block_cost": block, "text_cost": whole} for block in (30, 60, 200) for whole in (0, 100, 300)),
]
"""Limits of blocks and texts, by which a text is too long or too expensive at other places."""


@given(sources, cuts, st.sampled_from(["\n", "\r\n"]), st.sampled_from(LIMITS))
def test_any_cutting_gives_the_same_rows(text: str, lengths: list[int], end: str, limits: dict[str, int]) -> None:
    text = text.replace("\n", end)

    assert rows(in_pieces(text, lengths, **limits)) == rows(at_once(text, **limits))


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


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(CODE_LINES[:-1]), min_size=20, max_size=200),
    cuts,
    st.sampled_from(["", "```", "```\nafter"]),
)
def test_long_code_is_the_same_however_it_came(lines: list[str], lengths: list[int], end: str) -> None:
    text = "\n".join(["before", "", "```python", *lines, end])

    assert rows(in_pieces(text, lengths)) == rows(at_once(text))


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


class Reader:
    """Counts the text that the Markdown parser gets; hidden lines cost nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._read = markdown_stream.parse_markdown
        self.cost = 0
        monkeypatch.setattr(markdown_stream, "parse_markdown", self)

    def __call__(self, source: str, number: int | None = None, hidden: Collection[int] = ()) -> list[Unit]:
        shown = (line for place, line in enumerate(source.split("\n")) if place not in hidden)
        self.cost += sum(map(reading_cost, shown))
        return self._read(source, number, hidden)

    def taken(self) -> int:
        cost, self.cost = self.cost, 0
        return cost


@pytest.mark.slow
@table("name", pathological_texts(1))
def test_no_text_makes_a_flush_expensive(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = pathological_texts(20_000)[name]
    reader, stream = Reader(monkeypatch), MarkdownStream()

    stream.feed(text)
    dearest, flushes = 0, 0
    while flushes == 0 or stream.waits:
        stream.flush()
        dearest, flushes = max(dearest, reader.taken()), flushes + 1
    stream.finish()

    # The open block with a slice, then the full block, then the rest.
    assert max(dearest, reader.taken()) <= 2 * (BLOCK_COST + LINE_COST) + SLICE_COST
    assert flushes <= stream.cost // (SLICE_COST // 4) + 2
    assert not stream.open


@table("before", ["", "text\n", "- item\n  ", "```\n", "# head\n", "> quote\n", "|a|b|\n|-|-|\n", "[a](\n"])
def test_an_expensive_line_stays_in_place(before: str) -> None:
    line = "[" * 300

    shown = "".join(line.plain.strip(" ▎") for line in rows(at_once(f"{before}{line}\n)\n\nafter **it**"), width=400))

    assert line in shown
    assert shown.endswith("after **it**" if before == "```\n" else "after it")


def test_entities_cannot_spell_the_sign_of_a_hidden_line() -> None:
    shown = "".join(line.plain for line in rows(at_once("[" * 300 + "\n&#1; 0 &#2; \x01 0 \x02"), width=400))

    assert shown.count("[") == 300


@pytest.mark.slow
def test_the_rest_of_an_endless_text_is_not_read() -> None:
    text = "a **b** c\n\n" * (TEXT_COST // 10)
    stream = MarkdownStream()

    stream.feed(text)
    flushes = 0
    while flushes == 0 or stream.waits:
        stream.flush()
        flushes += 1

    assert TEXT_COST <= stream.cost <= TEXT_COST + LINE_COST
    assert flushes <= TEXT_COST // SLICE_COST + 1
    assert stream.open == []
    read = sum(isinstance(unit.block, Paragraph) for unit in stream.finished)
    pieces = [unit.block.text for unit in stream.unread if isinstance(unit.block, PlainText)]
    assert read + "".join(pieces).count("a **b** c") == TEXT_COST // 10
