"""Files that the user names in a prompt are read as the rules for `read` allow it."""

from pathlib import Path

import pytest

from tests.tools.test_read_images import image
from tui_agent.cli.sessions.prompt_files import HEAD_BYTES, PromptFiles
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.tools.read_tool import IMAGE_LIMIT


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "logo.png").write_bytes(image("PNG", (64, 48)))
    return tmp_path / "shop"


def files(root: Path, *rules: str) -> PromptFiles:
    return PromptFiles(root, PermissionPolicy(root, rules=rules))


async def test_an_image_of_the_workspace_is_attached(shop: Path) -> None:
    found = await files(shop).image("logo.png", typed=False)

    assert found is not None
    assert (found.name, found.width, found.height, found.block.media_type) == ("logo.png", 64, 48, "image/png")


async def test_a_path_without_a_file_is_text(shop: Path) -> None:
    assert await files(shop).image("other.png", typed=True) is None
    (shop / "folder.png").mkdir()
    assert await files(shop).image("folder.png", typed=True) is None


async def test_an_image_outside_the_workspace_must_be_typed(shop: Path) -> None:
    outside = shop.parent / "shot.png"
    outside.write_bytes(image("PNG"))

    assert await files(shop).image(str(outside), typed=True) is not None
    with pytest.raises(TuiAgentError, match=r"is not attached: .* Type @ before it to send it"):
        await files(shop).image(str(outside), typed=False)


async def test_an_image_that_a_rule_denies_is_never_attached(shop: Path) -> None:
    with pytest.raises(TuiAgentError, match=r"logo\.png is not attached"):
        await files(shop, "deny read(logo.png)").image("logo.png", typed=True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"text", "is not a PNG, JPEG, GIF or WebP image"),
        (image("PNG")[:-12], "damaged or incomplete"),
        (b"\x89PNG\r\n\x1a\n" + bytes(IMAGE_LIMIT), "an image can have 3,750,000. Resize it first"),
    ],
    ids=["text", "cut", "large"],
)
async def test_a_bad_image_is_refused_with_the_reason(shop: Path, content: bytes, reason: str) -> None:
    (shop / "bad.png").write_bytes(content)

    with pytest.raises(TuiAgentError, match=reason):
        await files(shop).image("bad.png", typed=True)


async def test_the_preview_shows_the_start_of_texts_only(shop: Path) -> None:
    (shop / "a.py").write_text("x = 1\n" * HEAD_BYTES)
    (shop / ".env").write_text("TOKEN=1")
    (shop.parent / "outside.txt").write_text("outside")
    read = files(shop)

    assert len(await read.head("a.py")) == HEAD_BYTES
    assert await read.head("logo.png") == ""
    assert await read.head("missing.py") == ""
    assert await read.head(".env") == ""
    assert await read.head("../outside.txt") == ""
