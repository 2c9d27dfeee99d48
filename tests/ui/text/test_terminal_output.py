"""Colours of programs' output: what is kept, and that the text stays exactly the sanitised one."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.support.table import table
from tui_agent.ui.text.sanitiser import sanitise, settle
from tui_agent.ui.text.styled_lines import hard_wrapped, width_of_runs
from tui_agent.ui.text.terminal_output import MAX_RUNS, OutputReader, output_lines, plain_output

BITS = st.sampled_from(
    [
        *("\x1b", "\x1b[", "\x9b", "\x1b]0;title\x07", "\x1b]52;c;eA==\x1b\\", "\x1b[2J", "\x1b[K", "\x1bP1$r\x1b\\"),
        *("\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[1;4;38;5;208m", "\x1b[48;2;1;2;3m", "\x1b[38:2::9:8:7m", "\x1b[3"),
        *("\r", "\n", "\r\n", "\t", "\b", "\x0b", "\x85", "\x00", "\x07", "m", "31m", "a", "word ", "é", "e\u0301"),
        *("\u0301", "\u200d", "\U0001f468\u200d\U0001f469", "\U0001f1e9", "\U0001f3fd", "\u202e", "漢", "\ufe0f"),
    ]
)
OUTPUTS = st.lists(BITS | st.text(max_size=4), max_size=24).map("".join)


@given(OUTPUTS)
def test_the_text_is_the_sanitised_one_whatever_the_bytes(text: str) -> None:
    assert plain_output(text) == sanitise(settle(text))


@given(OUTPUTS)
def test_cutting_an_output_into_lines_changes_nothing(text: str) -> None:
    reader = OutputReader()

    one_by_one = [runs for line in text.split("\n") for runs in reader.lines(line)]

    assert one_by_one == output_lines(text)


@given(OUTPUTS, st.integers(8, 40))
def test_rows_are_never_wider_than_the_window(text: str, width: int) -> None:
    for runs in output_lines(text):
        for row in hard_wrapped(runs, width):
            assert width_of_runs(row.runs) <= width
            assert cell_len(row.plain) == width_of_runs(row.runs)


@table(
    ("text", "runs"),
    [
        ("\x1b[31mred\x1b[0m not", (("red", "sgr-f1"), (" not", ""))),
        ("\x1b[1;92mok", (("ok", "sgr-bold sgr-f10"),)),
        ("\x1b[38;5;208mx\x1b[39my", (("x", "sgr-f208"), ("y", ""))),
        ("\x1b[38;2;255;0;128;4mx", (("x", "sgr-underline sgr-f#ff0080"),)),
        ("\x1b[38:2::255:0:128mx", (("x", "sgr-f#ff0080"),)),
        ("\x1b[38:5:9mx\x1b[4:3my\x1b[4:0mz", (("x", "sgr-f9"), ("y", "sgr-underline sgr-f9"), ("z", "sgr-f9"))),
        ("\x1b[41;97mx\x1b[49my", (("x", "sgr-f15 sgr-b1"), ("y", "sgr-f15"))),
        ("\x1b[7mx\x1b[27my", (("x", "sgr-reverse"), ("y", ""))),
        ("\x1b[1;2;3mx\x1b[22my\x1b[23mz", (("x", "sgr-bold sgr-dim sgr-italic"), ("y", "sgr-italic"), ("z", ""))),
        ("\x1b[8mhidden\x1b[5mblinks", (("hiddenblinks", ""),)),
        ("\x1b[38;5;999mx\x1b[38;2;1;2mx\x1b[99999mx", (("xxx", ""),)),
        ("\x1b[?25lx\x1b[2Ky\x1b[>4;1mz", (("xyz", ""),)),
    ],
)
def test_colours_and_attributes_become_styles(text: str, runs: object) -> None:
    assert output_lines(text) == [runs]


def test_a_progress_bar_shows_its_last_state_in_its_last_colour() -> None:
    assert output_lines(" 10%\r\x1b[32m 50%\r100%\x1b[0m\ndone\r") == [(("100%", "sgr-f2"),), (("done", ""),)]


def test_a_colour_lasts_until_it_is_ended_also_over_lines() -> None:
    assert output_lines("\x1b[33mone\ntwo\x1b[0m\nthree", "muted") == [
        (("one", "muted sgr-f3"),),
        (("two", "muted sgr-f3"),),
        (("three", "muted"),),
    ]


@table("text", ["x", "\r", "50%\r", "\x1b[31mx", "\x1b", "\x1b[", "\x1b[31;"])
def test_a_flood_without_a_line_feed_is_read_in_one_pass(text: str) -> None:
    (runs,) = output_lines(text * 200_000)

    assert len(runs) <= MAX_RUNS
