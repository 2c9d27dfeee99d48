"""Files that the user names in a prompt are read as the rules for `read` allow it."""

from pathlib import Path

import pytest

from tests.tools.test_read_images import image
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import DocumentBlock
from tui_agent.tools.media.image_files import SOURCE_LIMIT
from tui_agent.workbench.sessions.prompt_files import HEAD_BYTES, MOST_LISTED, PromptFiles


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "logo.png").write_bytes(image("PNG", (64, 48)))
    return tmp_path / "shop"


def files(root: Path, *rules: str) -> PromptFiles:
    return PromptFiles(root, PermissionPolicy(root, rules=rules))


async def test_an_image_outside_the_workspace_must_be_typed(shop: Path) -> None:
    outside = shop.parent / "shot.png"
    outside.write_bytes(image("PNG"))

    assert await files(shop).attachment(str(outside), typed=True) is not None
    with pytest.raises(TuiAgentError, match=r"is not attached: .* Type @ before it to send it"):
        await files(shop).attachment(str(outside), typed=False)


async def test_text_that_the_user_did_not_type_sends_only_what_the_agent_may_read(shop: Path) -> None:
    outside = shop.parent / "shot.png"
    outside.write_bytes(image("PNG"))
    text = f"@logo.png, @{outside}, @logo.png:3 and @none.png."

    found = await files(shop).attached(text, typed=False)
    assert [block.name for block in found] == ["logo.png"]
    with pytest.raises(TuiAgentError, match="not a text file"):
        await files(shop).attached(text, typed=True)


async def test_too_many_files_are_refused(shop: Path) -> None:
    text = " ".join(f"@logo{number}.png" for number in range(11))
    for number in range(11):
        (shop / f"logo{number}.png").write_bytes((shop / "logo.png").read_bytes())

    with pytest.raises(TuiAgentError, match="A message can have 10 attachments"):
        await files(shop).attached(text, typed=True)


async def test_an_image_that_a_rule_denies_is_never_attached(shop: Path) -> None:
    with pytest.raises(TuiAgentError, match=r"logo\.png is not attached"):
        await files(shop, "deny read(logo.png)").attachment("logo.png", typed=True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"text", "is not a PNG, JPEG, GIF or WebP image"),
        (image("PNG")[:-12], "damaged or incomplete"),
        (b"\x89PNG\r\n\x1a\n" + bytes(SOURCE_LIMIT), "the limit is 50,000,000: resize the image first"),
    ],
    ids=["text", "cut", "large"],
)
async def test_a_bad_image_is_refused_with_the_reason(shop: Path, content: bytes, reason: str) -> None:
    (shop / "bad.png").write_bytes(content)

    with pytest.raises(TuiAgentError, match=reason):
        await files(shop).attachment("bad.png", typed=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a b.py:2", "     2\t2"),
        ("a b.py:2-3", "     2\t2\n     3\t3"),
        ("a b.py#L3-L4", "     3\t3\n     4\t4"),
        ("a b.py#L4", "     4\t4"),
    ],
)
async def test_lines_are_attached_with_their_numbers(shop: Path, path: str, expected: str) -> None:
    (shop / "a b.py").write_text("1\n2\n3\n4\n")

    found = await files(shop).attachment(path, typed=True)

    assert found is not None
    assert found.block == DocumentBlock(media_type="text/plain", data=expected, name=path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.py:4", r"a\.py has only 3 lines; there is no line 4"),
        ("a.py:2-9", r"a\.py has only 3 lines; there is no line 9"),
        ("a.py:3-2", r"lines 3 to 2 are not a range"),
        ("a.py:0", r"lines 0 to 0 are not a range"),
        ("logo.png:1", r"logo\.png is not a text file"),
    ],
)
async def test_lines_that_do_not_exist_are_refused_with_the_reason(shop: Path, path: str, reason: str) -> None:
    (shop / "a.py").write_text("1\n2\n3\n")

    with pytest.raises(TuiAgentError, match=reason):
        await files(shop).attachment(path, typed=True)


async def test_a_directory_is_attached_as_a_listing_without_what_rules_deny(shop: Path) -> None:
    (shop / "src").mkdir()
    for number in range(MOST_LISTED + 2):
        (shop / "src" / f"{number:03}.py").touch()

    found = await files(shop, "deny read(src/000.py)").attachment("src/", typed=True)

    assert found is not None
    lines = found.block.data.splitlines()
    assert (lines[0], lines[-2]) == ("src/001.py", f"src/{MOST_LISTED:03}.py")
    assert lines[-1] == f"[the first {MOST_LISTED} of {MOST_LISTED + 2} files]"
    assert await files(shop).attachment("src", typed=True) is None, "without a slash it is text"
    assert await files(shop).attachment("src/000.py:1x", typed=True) is None


async def test_the_preview_shows_the_start_of_texts_only(shop: Path) -> None:
    (shop / "a.py").write_text("x = 1\n" * HEAD_BYTES)
    (shop / ".env").write_text("TOKEN=1")
    (shop.parent / "outside.txt").write_text("outside")
    read = files(shop)

    (shop / "b.py").write_text("a\nb\nc\n")

    assert len(await read.head("a.py")) == HEAD_BYTES
    assert len(await read.head("a.py", 2_000)) == HEAD_BYTES
    assert [await read.head("b.py", line) for line in (1, 3, 9)] == ["a\nb\nc\n", "c\n", ""]
    assert await read.head("logo.png") == ""
    assert await read.head("missing.py") == ""
    assert await read.head(".env") == ""
    assert await read.head("../outside.txt") == ""
