"""Encodings: text that was read can be written back byte for byte."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.text_format import SAMPLE_SIZE, TextFormat, format_of, is_binary, printable

SENTENCES = {
    "gbk": "# 读取配置文件并连接到数据库，如果失败则重试三次。\n",
    "big5": "# 讀取設定檔並連接到資料庫，如果失敗則重試三次。使用者登入\n",
    "cp932": "# 設定ファイルを読み込み、データベースに接続します。\n",
    "euc_jp": "# 設定ファイルを読み込み、データベースに接続します。失敗した場合\n",
    "euc_kr": "# 설정 파일을 읽고 데이터베이스에 연결합니다. 실패하면 다시\n",
    "cp1251": "# Настройки читаются из базы данных. Вернуть сумму двух чисел.\n",
    "koi8_r": "# Настройки читаются из базы данных. Вернуть сумму двух чисел.\n",
}


FOUND = set(SENTENCES) - {"euc_jp"}
"""Those that a short text is enough for; the others may be left open, but never taken for another."""


def test_encodings_are_told_apart_or_not_claimed() -> None:
    wrong: list[str] = []
    for encoding, sentence in SENTENCES.items():
        text = f"def f(x):\n    {sentence}    return x\n" + sentence * 3
        form = format_of(text.encode(encoding))
        is_right = form.is_certain and form.decode(text.encode(encoding)) == text
        if not is_right and (form.is_certain or encoding in FOUND):
            wrong.append(f"{encoding}: {form}")
        # Too few characters never make a guess certain.
        for length in range(1, 12):
            start = format_of(sentence[: 2 + length].encode(encoding))
            if start.is_certain and start.encoding != "utf-8":
                wrong.append(f"{encoding}, {length} characters: {start}")
    assert wrong == []


@given(st.binary())
def test_what_is_decoded_is_encoded_back_to_the_byte(data: bytes) -> None:
    form = format_of(data)
    try:
        text = form.decode(data)
    except ToolError:
        assert form.encoding.startswith("utf-16")
        return

    assert form.encode(text) == data


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_utf_8_is_always_recognised(text: str) -> None:
    form = format_of(text.encode())
    assert (form.encoding, form.is_certain) == ("utf-8", True)
    assert form.encode(form.decode(text.encode())) == text.encode()


def test_a_cut_character_is_valid_a_nul_near_the_start_is_binary_and_half_a_character_an_error() -> None:
    sample = b"a" * (SAMPLE_SIZE - 1) + "ä".encode()[:1]

    assert format_of(sample).encoding == "utf-8"
    assert format_of(sample[1:]).encoding == "cp1252"
    assert is_binary(b"abc\0def")
    assert not is_binary(b"abc" * 5000 + b"\0")
    assert not is_binary(codecs.BOM_UTF16_LE + b"a\0")
    assert is_binary("text".encode("utf-32"))
    with pytest.raises(ToolError, match="not valid UTF-16-LE"):
        TextFormat("utf-16-le", codecs.BOM_UTF16_LE).decode(codecs.BOM_UTF16_LE + b"a")


@table("encoding", ["iso2022_jp", "iso2022_jp_2", "iso2022_kr"])
def test_encodings_of_mails_are_not_taken_for_utf_8(encoding: str) -> None:
    before = ("한국어\n" if encoding.endswith("kr") else "日本語\n").encode(encoding) + b"abc = 1\n"
    form = format_of(before)

    assert form.encode_change(before, form.decode(before).replace("1", "2"), "1", "2") == before.replace(b"1", b"2")
    with pytest.raises(ToolError, match="nothing was written"):
        form.encode_change(before, form.decode(before).replace("1", "é"), "1", "é")


@given(st.text())
def test_printable_text_can_always_be_encoded(text: str) -> None:
    shown = printable(text)

    assert "\0" not in shown
    shown.encode()
