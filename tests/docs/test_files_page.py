"""The page about files: its table says what is attached."""

import re
from pathlib import Path

from tests.docs.programs import DOCS
from tests.tools.test_pdf_files import pdf
from tests.tools.test_read_images import image
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.prompt_references import file_mentions
from tui_agent.workbench.sessions.prompt_files import PromptFiles

PAGE = DOCS / "files.md"
ROWS = re.findall(r"^\| (`@.+?) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)


async def test_the_table_says_what_is_attached(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text("a\nb\nc\n")
    (tmp_path / "logo.png").write_bytes(image("PNG"))
    (tmp_path / "report.pdf").write_bytes(pdf(1))
    files = PromptFiles(tmp_path, PermissionPolicy(tmp_path))
    found: list[str] = []
    for mentions, _ in ROWS:
        for mention in re.findall(r"`(@[^`]+)`", mentions):
            blocks = [await files.attachment(path, typed=True) for path in file_mentions(mention).values()]
            found += [
                f"{mention} {one.block.type} {getattr(one.block, 'label', '')}" for one in blocks if one is not None
            ]

    assert found == [
        "@src/shop.py:2-3 document [src/shop.py:2-3]",
        "@src/shop.py#L2-L3 document [src/shop.py#L2-L3]",
        "@src/shop.py:2 document [src/shop.py:2]",
        "@src/ document [src/]",
        "@logo.png image ",
        "@report.pdf document [PDF report.pdf, 1 page]",
    ]
