"""Snapshots of the pages about rules, tools, background commands and the report, at three sizes."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.open_bench import bench_of
from tests.ui.rule_stage import FakeRules
from tests.ui.still import drawn, shown, still_app
from tests.ui.story import Story
from tui_agent.protocol.events import ApprovalResolved, BackgroundEnded, BackgroundStarted, PermissionDecided
from tui_agent.protocol.facts.page_facts import JobFact, RuleFact
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.ui.app.tui_agent_app import TuiAgentApp

pytestmark = pytest.mark.slow

Compare = Callable[..., bool]

OWN = RuleFact("allow", "bash(make test:*)", "granted for the session", is_session=True)

JOBS = (
    JobFact("bash_1", "npm run dev -- --port 5173", "running", True, 754.0, 48_300),
    JobFact("bash_2", "pytest -q --looponfail", "running", True, 62.0, 0),
    JobFact("bash_3", "cargo build --release", "ended with exit code 101", False, 93.0, 8_200),
    JobFact("bash_4", "make docs", "ended with exit code 0", False, 12.0, 310),
    JobFact(
        "bash_5",
        "python -m http.server",
        "was detached by the user and runs on without tui-agent (pid 7)",
        False,
        40.0,
        120,
    ),
    JobFact("bash_6", "tail -f /var/log/nginx/access.log", "was stopped", False, 31.0, 2_400),
)


class FakeJobs:
    """Background commands that never change."""

    def __init__(self, *facts: JobFact) -> None:
        self.facts = facts

    def list(self) -> tuple[JobFact, ...]:
        return self.facts


def decided_run() -> Story:
    """Return a run whose calls were decided by rules, by the mode, and by the user after some time."""
    story = Story().run("fix the failing price test").step(0).wait(2)
    calls = (
        ("read", "src/price.py", None, "read_only"),
        ("bash", "pytest -q", "bash(pytest:*) (--allow)", "rule"),
        ("bash", "make test", OWN.cited, "grant"),
        ("bash", "make test V=1", OWN.cited, "grant"),
    )
    for tool, summary, rule, source in calls:
        call_id = story.queued(tool, summary)
        part = DecisionPart(text=summary, decision="allow", rule=rule)
        values = {"decision": "allow", "source": source, "mode": PermissionMode.ASK, "rule": rule, "parts": (part,)}
        story.tell(PermissionDecided.model_validate({"call_id": call_id, **values}))
        story.started(call_id, tool, summary).wait(0.4).ended(call_id, tool, latency_ms=400.0)
    for seconds in (9.0, 14.0, 4.0):
        call_id = story.queued("bash", "git commit -m 'Round once'")
        story.tell(
            PermissionDecided(call_id=call_id, decision="ask", source="mode", mode=PermissionMode.ASK, reason="no rule")
        )
        request = story.asks(call_id, "bash", "git commit", "no rule allows it", session_rule="bash(git commit:*)")
        story.wait(seconds)
        story.tell(ApprovalResolved(request_id=request, call_id=call_id, decision="approve", by="user"))
        story.started(call_id, "bash", "git commit").wait(0.2).ended(call_id, "bash", latency_ms=200.0)
    return story.end("Done.")


def typing(command: str, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Type a command, then press keys on its page."""

    async def before(pilot: Pilot[None]) -> None:
        await shown(pilot)
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        app.chat.bridge.bench = bench_of(None, rules=FakeRules(OWN))
        await pilot.press("slash", *command.removeprefix("/"), "enter")
        while app.screen is app.chat:
            await pilot.pause()
        await drawn(pilot)
        for key in keys:
            await pilot.press(key)
            await drawn(pilot)

    return before


PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "permissions": ("/permissions", ("down",) * 6),
    "adding": ("/permissions", ("a", *"deny")),
    "calls": ("/permissions", (*("down",) * 6, "enter")),
    "report": ("/report", ()),
    "tools": ("/tools", ()),
    "timeline": ("/timeline", ()),
    "zoomed": ("/timeline", ("plus", "plus", "left")),
}


SHOWN = [
    *((page, (40, 10)) for page in ("permissions", "timeline")),
    *((page, (80, 24)) for page in ("adding", "calls", "permissions", "report", "timeline", "tools")),
    *((page, (120, 40)) for page in ("permissions", "report", "zoomed")),
]


@pytest.mark.parametrize(("page", "size"), SHOWN, ids=[f"{page}-{size[0]}x{size[1]}" for page, size in SHOWN])
def test_a_page_looks_as_it_should(snap_compare: Compare, page: str, size: tuple[int, int]) -> None:
    command, keys = PAGES[page]
    fields: dict[str, Any] = {"terminal_size": size, "run_before": typing(command, *keys)}

    assert snap_compare(still_app(decided_run()), **fields)


JOBS_SHOWN = [("jobs", (40, 10)), ("jobs", (80, 24)), ("jobs", (120, 40)), ("mark", (120, 40)), ("no-jobs", (80, 24))]


@pytest.mark.parametrize(("page", "size"), JOBS_SHOWN, ids=[f"{page}-{size[0]}x{size[1]}" for page, size in JOBS_SHOWN])
def test_background_commands_look_as_they_should(snap_compare: Compare, page: str, size: tuple[int, int]) -> None:
    facts = () if page == "no-jobs" else JOBS
    story = Story().run("start the server, and watch the tests").step(0).wait(2)
    for fact in facts:
        story.tell(BackgroundStarted(task_id=fact.task_id, kind="shell", command=fact.command))
        story.wait(1)
    for fact in (fact for fact in facts if not fact.is_running):
        code = 101 if fact.task_id == "bash_3" else 0
        story.tell(BackgroundEnded(task_id=fact.task_id, kind="shell", status="exited", code=code))
    story.answer("Both run in the background.").end("Both run in the background.")

    async def before(pilot: Pilot[None]) -> None:
        await shown(pilot)
        app = pilot.app
        assert isinstance(app, TuiAgentApp)
        app.chat.bridge.bench = bench_of(None, jobs=FakeJobs(*facts))
        await pilot.press("slash", *"jobs", "enter")
        await drawn(pilot)
        if page == "mark":
            await pilot.press("escape")
            await drawn(pilot)

    assert snap_compare(still_app(story), terminal_size=size, run_before=before)
