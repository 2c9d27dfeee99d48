"""The pages about the context window and about a run."""

from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.dialogs.info_pages import MAX_LISTED_CALLS, context_text, run_text
from tui_agent.ui.dialogs.text_page import help_text
from tui_agent.workbench.context_breakdown import CallShare, ContextBreakdown

FULL = ContextBreakdown(
    layers=(("agentloop.system", 3_000), ("\x1b[31mevil", 1_000)),
    tools=(("bash", 500),),
    user=500,
    assistant=1_000,
    condensed=0,
    calls=(CallShare("c1", "read", 3_000), CallShare("c2", "grep", 1_000)),
)


def test_only_the_largest_calls_are_named_and_no_row_is_much_wider_than_the_page() -> None:
    calls = tuple(CallShare(f"x{number}", "read", 100) for number in range(50))
    page = context_text(ContextBreakdown((("a" * 200, 1),), (), 0, 0, 0, calls), 200_000, {}.get, 40)
    rows = [row.rstrip() for row in page.plain.split("\n")]

    assert max(map(len, rows)) <= 60
    assert sum(row.strip().startswith("read") for row in rows) == 1 + MAX_LISTED_CALLS
    empty = context_text(ContextBreakdown((), (), 0, 0, 0, ()), 0, {}.get, 80).plain
    assert empty.rstrip() == "  tokens in the window               0"


def test_a_report_cannot_hide_anything() -> None:
    report = AgentRunReport(
        id="r", model="m", started_at=0, completed_at=1, total_ms=1, reason="done", user_message="a\u202eb",
        final_text="",
    )  # fmt: skip

    assert "asked: a\\u202eb" in run_text(report, None, 80).plain


def test_the_help_lists_the_commands_of_files() -> None:
    text = help_text(80, (PromptCommand("git:a", "[what]", "Commits."),)).plain

    assert "Your commands and skills\n  /git:a [what]         Commits." in text
    assert "Your commands" not in help_text(80).plain
