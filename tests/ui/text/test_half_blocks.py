"""Pictures of half blocks: two pixels a cell, in colours that stay as they are."""

import base64

from textual.color import Color

from tests.support.table import table
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.text.terminal_output import output_style
from tui_agent.ui.transcript.transcript_parts import PicturePart, picture_rows

RED, BLUE = bytes((255, 0, 0)), bytes((0, 0, 255))


def thumbnail(size: str, pixels: bytes) -> str:
    return f"{size}:{base64.b64encode(pixels).decode()}"


def picture(small: str) -> ImageBlock:
    return ImageBlock(media_type="image/png", data="AAAA", thumbnail=small)


def test_a_cell_shows_two_pixels_and_equal_cells_are_one_run() -> None:
    rows = picture_rows(thumbnail("3x3", RED * 2 + BLUE + RED * 3 + BLUE * 3), 10)

    assert [[text for text, _ in row.runs] for row in rows] == [["▀▀", "▀"], ["▀▀▀"]]
    style = output_style(rows[0].runs[0][1].split(), None, Color(0, 0, 0), Color(0, 0, 0))
    assert style.color == style.bgcolor, "without more contrast, which a text would get"
    assert " sgr-b" not in rows[1].runs[0][1], "there is no pixel below"


@table(
    "damaged",
    ["", "3x3", "1x1:!", thumbnail("2x1", RED), thumbnail("0x1", b""), thumbnail("11x1", RED * 11), "999x999:AAAA"],
)
def test_a_thumbnail_that_is_damaged_or_too_wide_is_not_drawn(damaged: str) -> None:
    assert picture_rows(damaged, 10) == []
    assert len(PicturePart("[image]", picture(damaged)).layout(13)) == 1


def test_a_picture_stays_below_its_words_within_the_margin() -> None:
    part = PicturePart("[image image/png, 5 bytes]", picture(thumbnail("2x2", RED * 4)))

    assert [row.plain for row in part.layout(40)] == ["   [image image/png, 5 bytes]", "   ▀▀"]
    assert part.text == "[image image/png, 5 bytes]"
