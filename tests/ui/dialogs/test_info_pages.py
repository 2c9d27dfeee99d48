"""The pages about the context window and about a run."""

from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.dialogs.help_page import help_text
from tui_agent.ui.dialogs.info_pages import MAX_LISTED_CALLS, context_text, run_text
from tui_agent.workbench.context_breakdown import CallShare, ContextBreakdown


def rows(breakdown: ContextBreakdown, window: int = 200_000, width: int = 80) -> list[str]:
    return [row.rstrip() for row in context_text(breakdown, window, {"c1": 7}.get, width).plain.split("\n")]


FULL = ContextBreakdown(
    layers=(("agentloop.system", 3_000), ("\x1b[31mevil", 1_000)),
    tools=(("bash", 500),),
    user=500,
    assistant=1_000,
    condensed=0,
    calls=(CallShare("c1", "read", 3_000), CallShare("c2", "grep", 1_000)),
)


def test_every_part_has_its_size_and_its_share_as_a_bar() -> None:
    assert rows(FULL) == [
        "  tokens in the window        10k of 200k (5 %)  █",
        "",
        "System prompt",
        "  instructions of the agent         3k  ███████",
        "  \\x1b[31mevil                      1k  ██",
        "",
        "Tools",
        "  bash                             500  █",
        "",
        "Messages",
        "  you                              500  █",
        "  the model                         1k  ██",
        "",
        "Calls and results  4k",
        "  read                              3k  ███████",
        "  grep                              1k  ██",
        "",
        "Largest calls",
        "  #7 read                           3k  ███████",
        "  grep                              1k  ██",
    ]


def test_an_empty_conversation_has_a_page_too() -> None:
    assert rows(ContextBreakdown((), (), 0, 0, 0, ()), 0) == ["  tokens in the window               0"]


def test_no_row_is_wider_than_the_page_and_only_the_largest_calls_are_named() -> None:
    calls = tuple(CallShare(f"x{number}", "read", 100) for number in range(50))
    narrow = rows(ContextBreakdown((("a" * 200, 1),), (), 0, 0, 0, calls), width=40)

    assert max(map(len, narrow)) <= 60
    assert sum(row.strip().startswith("read") for row in narrow) == 1 + MAX_LISTED_CALLS


def test_a_report_cannot_hide_anything() -> None:
    report = AgentRunReport(
        id="r",
        model="m",
        started_at=0,
        completed_at=1,
        total_ms=1,
        reason="done",
        user_message="a\u202eb",
        final_text="",
    )

    assert "asked: a\\u202eb" in run_text(report, None, 80).plain


def test_the_help_lists_the_commands_of_files() -> None:
    text = help_text(80, (PromptCommand("git:a", "[what]", "Commits."),)).plain

    assert "Your commands and skills\n  /git:a [what]         Commits." in text
    assert "Your commands" not in help_text(80).plain
