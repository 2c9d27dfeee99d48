"""Amounts look the same everywhere and never grow wide."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.amounts import bytes_text, count_text, money_text, seconds_text, share_text, tokens_text


@table(
    ("shown", "amounts"),
    [
        (
            seconds_text,
            {-1.0: "0.00 s", 0.04: "0.04 s", 0.994: "0.99 s", 0.996: "1.0 s", 12.34: "12.3 s", 59.94: "59.9 s",
             59.96: "1:00", 125.0: "2:05", 3725.0: "1:02:05"},
        ),
        (lambda seconds: seconds_text(seconds, tenths=False), {0.9: "0 s", 12.9: "12 s", 61.0: "1:01"}),
        (tokens_text, {0: "0", 980: "980", 12_345: "12.3k", 200_000: "200k", 1_250_000: "1.2M"}),
        (bytes_text, {812: "812 B", 1_234: "1.2 kB", 999_960: "1 MB", 3_400_000: "3.4 MB"}),
        (money_text, {None: "", 0.0: "$0.00", 0.004: "<$0.01", 0.04: "$0.04", 1234.5: "$1,234.50"}),
    ],
)  # fmt: skip
def test_an_amount_has_a_useful_precision_and_its_unit(shown: Callable[[Any], str], amounts: dict[Any, str]) -> None:
    assert {amount: shown(amount) for amount in amounts} == amounts


def test_shares_and_counts_have_their_words() -> None:
    assert share_text(12_300, 200_000) == "6 %"
    assert share_text(1, 0) == ""
    assert [count_text(number, "tool") for number in (0, 1, 2)] == ["0 tools", "1 tool", "2 tools"]
    assert count_text(2, "reply", "replies") == "2 replies"


@given(st.integers(0, 10**15))
def test_no_number_of_tokens_or_bytes_takes_more_than_eight_cells(amount: int) -> None:
    assert len(tokens_text(amount)) <= 8
    assert len(bytes_text(amount)) <= 8
