"""Markdown as blocks: structure is parsed, everything else is harmless text."""

from typing import Any

import pytest

from tests.support.table import table
from tui_agent.ui.transcript.markdown_blocks import (
    Block,
    parse_markdown,
)


def blocks(source: str) -> list[Block]:
    return [unit.block for unit in parse_markdown(source)]


def text(source: str) -> str:
    block: Any = parse_markdown(source)[0].block
    return "".join(part for part, _ in block.runs)


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


@pytest.mark.parametrize(
    "source", ["".join("  " * depth + f"- {depth}\n" for depth in range(120)), ">" * 300 + " deep"]
)
def test_absurd_nesting_is_shown_as_its_source(source: str) -> None:
    units = parse_markdown(source)

    assert len(units) == 1
    assert text(source) == source.rstrip("\n")


def test_markup_of_other_kinds_is_text() -> None:
    assert text("[bold]x[/bold] [@click=app.quit]y[/] $primary") == "[bold]x[/bold] [@click=app.quit]y[/] $primary"
