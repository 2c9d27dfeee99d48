"""`/report` as the user sees it."""

from tests.ui.open_bench import bench_of
from tests.ui.rule_stage import FakeRules
from tests.ui.stage import Stage, stage
from tests.ui.story import Story
from tests.ui.trial_story import formatted, settle, trial
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, RunEnded, RunStarted
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.reports import AgentRunReport, StepReport, ToolCallReport
from tui_agent.ui.dialogs.info_pages import ReportPage, kept_text
from tui_agent.ui.dialogs.permissions_screen import PermissionsScreen
from tui_agent.ui.dialogs.text_page import TextPage
from tui_agent.ui.state.call_records import CallTrial


def set_up(on_stage: Stage) -> FakeRules:
    rules = FakeRules()
    on_stage.chat.bridge.bench = bench_of(on_stage.loop, on_stage.bus, rules=rules)
    return rules


def text_of(on_stage: Stage) -> str:
    screen = on_stage.app.screen
    return screen.text_at(80).plain if isinstance(screen, TextPage) else ""


async def ask(on_stage: Stage, rule: str | None) -> None:
    """Ask one question and answer it at once; the bus gives the events the time of their publication."""
    asked = ApprovalRequested(call_id="c1", digest="d", tool="bash", args={"command": "make"}, session_rule=rule)
    on_stage.bus.publish(asked)
    on_stage.bus.publish(ApprovalResolved(request_id=asked.request_id, call_id="c1", decision="approve", by="user"))
    count = len(on_stage.chat.state.attention.questions)
    await on_stage.until(lambda: len(on_stage.chat.state.attention.questions) > count)
    on_stage.chat.state.attention.questions[-1].resolved = on_stage.chat.state.attention.questions[-1].asked + 12.0


async def open_report(on_stage: Stage) -> None:
    await on_stage.say("/report")
    await on_stage.until(lambda: isinstance(on_stage.app.screen, ReportPage))


async def test_the_report_has_the_time_that_questions_waited_and_a_key_shows_all_rules() -> None:
    async with stage(["hello"]) as on_stage:
        set_up(on_stage)
        await on_stage.say("/report")
        await on_stage.until(lambda: not on_stage.draft)
        assert not isinstance(on_stage.app.screen, TextPage), "without a run and a question there is none"

        await on_stage.say("go")
        await on_stage.settled()
        await ask(on_stage, "bash(git status:*)")
        on_stage.bus.publish(RunStarted(input="x", trigger="prompt", model="m", mode=PermissionMode.ASK))
        await on_stage.until(lambda: on_stage.chat.state.times.in_progress)
        await open_report(on_stage)

        text = text_of(on_stage)
        assert "this run      no questions" in text
        assert "session       12 s · 1 question · median answer after 12 s" in text
        assert "would have answered" not in text, "the rule is in force"
        assert "said: hello" in text
        assert "p shows all rules" in text
        await on_stage.pilot.press("ctrl+a", "p")
        await on_stage.until(lambda: isinstance(on_stage.app.screen, PermissionsScreen))
        await on_stage.pilot.press("escape")
        await on_stage.until(lambda: isinstance(on_stage.app.screen, ReportPage))


async def test_a_key_adds_what_is_missing_of_the_rule_that_would_have_saved_most() -> None:
    for asked, added in (
        ("bash(make:*)\nedit(/out/**)", ["bash(make:*)", "edit(/out/**)"]),
        ("bash(git status:*)\nbash(make:*)", ["bash(make:*)"]),
    ):
        async with stage() as on_stage:
            rules = set_up(on_stage)
            await ask(on_stage, asked)
            await open_report(on_stage)
            words = f"allow {' and '.join(asked.split(chr(10)))} would have answered 1 question and saved 12 s"
            assert words in text_of(on_stage)

            await on_stage.pilot.press("ctrl+a")
            await on_stage.until(lambda on=on_stage: "now applies for this session" in text_of(on))
            await on_stage.pilot.press("ctrl+a")
            assert [fact.text for fact in rules.facts.rules if fact.is_session] == added


def test_a_long_list_of_kept_files_is_cut() -> None:
    kept = CallTrial(kept=(".git", *(f"src/{number}.py" for number in range(30))), discarded=("other.py",))

    rows = kept_text([("black .", kept)]).plain.split("\n")

    assert rows[:4] == ["Kept from trials", "  black .", "    .git", "    src/0.py"]
    assert rows[-1] == "    11 more"
    assert "other.py" not in "".join(rows)


async def test_the_report_names_the_files_that_were_kept_from_trials() -> None:
    story = Story().run("format").step(0)
    call_id = trial(story)
    settle(story, call_id, formatted(), "src/cart.py")
    calls = (ToolCallReport(call_id=call_id, tool_name="bash", arguments={}, status="ok"),)
    report = AgentRunReport(
        id="r1", model="m", started_at=0, completed_at=1, total_ms=1.0, reason="done", user_message="format",
        final_text="", steps=(StepReport(index=0, type="initial", tool_calls=calls),),
    )  # fmt: skip
    story.tell(RunEnded(reason="done", report=report))
    async with stage() as on_stage:
        set_up(on_stage)
        for envelope in story.envelopes:
            on_stage.bus.publish(envelope.event)
        await on_stage.until(lambda: on_stage.chat.state.status.report is not None)
        await open_report(on_stage)

        assert "Kept from trials\n  black .\n    src/cart.py" in text_of(on_stage)
        assert "rates.py" not in text_of(on_stage).split("Kept from trials")[1].split("\n\n")[0]
