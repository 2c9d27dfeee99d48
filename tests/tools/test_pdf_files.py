"""PDF files: their pages are counted, and what the API would refuse is refused before it is sent."""

import io
import zlib
from pathlib import Path

import pytest
from PIL import Image

from tests.support.table import table
from tests.tools.calls import call
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import DocumentBlock
from tui_agent.tools.media.media_blocks import PAGE_LIMIT, PDF_LIMIT, count_pages, pdf_block
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace


def pdf(pages: int) -> bytes:
    """Return a PDF with blank pages, as a program writes it."""
    sheets = [Image.new("1", (8, 8)) for _ in range(pages)]
    file = io.BytesIO()
    sheets[0].save(file, "PDF", save_all=True, append_images=sheets[1:])
    return file.getvalue()


def packed_pdf(tree: bytes) -> bytes:
    """Return a PDF whose objects are in a compressed stream, as in version 1.5."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", tree]
    offsets = b"1 0 2 %d " % (len(objects[0]) + 1)
    stream = zlib.compress(offsets + b" ".join(objects))
    facts = b"<</Type/ObjStm/N 2/First %d/Filter/FlateDecode/Length %d>>" % (len(offsets), len(stream))
    return b"%PDF-1.5\n9 0 obj\n" + facts + b"\nstream\r\n" + stream + b"\nendstream\nendobj\n%%EOF\n"


@table(
    ("content", "pages"),
    [
        (pdf(1), 1),
        (pdf(3), 3),
        (packed_pdf(b"<</Type /Pages/Kids[4 0 R]/Count 7>>"), 7),
        (b"%PDF-1.0\n1 0 obj <</Type/Page>> endobj 2 0 obj <</Type /Page /Parent 3 0 R>> endobj\n%%EOF", 2),
        (b"%PDF-1.7\n/ObjStm obj <</Type/ObjStm/N 3/First 9999>> stream\nnot packed\n%%EOF", 0),
    ],
)
def test_pages_are_counted(content: bytes, pages: int) -> None:
    assert count_pages(content) == pages


@pytest.mark.parametrize(
    "content",
    [
        b"%PDF-1.5\n" + b"/ObjStm stream\nx" * 2_000 + b" " * 5_000_000,
        b"%PDF-1.5\n9 0 obj <</Type/ObjStm/N 9/First 12000>> stream\n"
        + zlib.compress(b"1 0 2 99999999 " * 800 + b" " * 30_000_000),
    ],
    ids=["many streams", "places back and forth"],
)
def test_a_hostile_file_is_read_once(content: bytes) -> None:
    """Reading it again for each of its parts would take far longer than the time of a test."""
    assert count_pages(content) == 0


@table(
    ("content", "reason"),
    [
        (pdf(1)[:-20], "damaged or incomplete"),
        (pdf(1).replace(b"trailer\n<<", b"trailer\n<</Encrypt 7 0 R "), "is encrypted"),
        (packed_pdf(b"<</Type/Pages/Count %d>>" % (PAGE_LIMIT + 1)), "has 101 pages; the limit is 100"),
    ],
)
def test_a_file_that_the_api_would_refuse_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        pdf_block(content, "a.pdf", "a.pdf")


async def test_read_returns_a_pdf_as_a_document(root: Path, workspace: Workspace) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "a.pdf").write_bytes(pdf(2))

    result = await call(ReadTool(workspace), path="docs/a.pdf")

    assert result.text.startswith("docs/a.pdf: PDF, 2 pages, ")
    assert isinstance(result.content[1], DocumentBlock)
    assert result.content[1].label == "[PDF a.pdf, 2 pages]"
    with (root / "docs" / "a.pdf").open("ab") as file:
        file.truncate(PDF_LIMIT + 1)
    with pytest.raises(ToolError, match="the limit is 20,000,000"):
        await call(ReadTool(workspace), path="docs/a.pdf")
