"""Token estimates: four characters to a token, and a constant for each image (S4-19)."""

from tests.support.table import table
from tui_agent.context import estimate_content
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, TextBlock, ThinkingBlock, ToolCall


def test_every_block_counts_what_the_model_reads() -> None:
    content = (
        TextBlock(text="abcd"),
        ImageBlock(media_type="image/png", data="AAAA" * 1_000),
        ThinkingBlock(thinking="abcd"),
        ThinkingBlock(thinking="", redacted="abcd"),
        ToolCall(id="c", name="read", arguments={"path": "x"}),
    )

    assert estimate_content(content) == 250 + (4 + 4 + 4 + len("read") + len('{"path": "x"}') + 3) // 4


@table(
    ("document", "tokens"),
    [
        (DocumentBlock(media_type="application/pdf", data="AAAA", pages=3), 6_000),
        (DocumentBlock(media_type="application/pdf", data="A" * 4 * 50_000), 2_000 * 4),
        (DocumentBlock(media_type="text/plain", data="x" * 400, name="a.py"), 101),
    ],
)
def test_a_document_counts_by_its_pages_or_its_text(document: DocumentBlock, tokens: int) -> None:
    assert estimate_content([document]) == tokens
