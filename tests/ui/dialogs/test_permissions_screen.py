"""`/permissions` as the user sees and drives it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.ui.open_bench import bench_of
from tests.ui.rule_stage import FakeRules
from tests.ui.stage import Stage, stage
from tui_agent.protocol.events import ApprovalRequested, PermissionDecided, ToolEnded, ToolQueued
from tui_agent.protocol.facts.page_facts import RuleFact
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.protocol.tool_events import ToolStarted
from tui_agent.ui.dialogs.permissions_screen import PermissionsScreen
from tui_agent.ui.text.rows_view import RowsView

OWN = RuleFact("allow", "bash(make:*)", "granted for the session", is_session=True)


@asynccontextmanager
async def page(
    rules: FakeRules | None = None, *, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[tuple[Stage, PermissionsScreen, FakeRules]]:
    service = rules or FakeRules(OWN)
    async with stage(size=size) as on_stage:
        on_stage.chat.bridge.bench = bench_of(on_stage.loop, on_stage.bus, rules=service)
        await on_stage.say("/permissions")
        await on_stage.until(lambda: isinstance(on_stage.app.screen, PermissionsScreen))
        screen = on_stage.app.screen
        assert isinstance(screen, PermissionsScreen)
        await on_stage.until(lambda: screen.selected)
        yield on_stage, screen, service


def text_of(screen: PermissionsScreen, name: str) -> str:
    view = screen.query_one(f"#permissions-{name}", RowsView)
    rows = [view.line_at(row) for row in range(view.total)]
    return "\n".join(row.plain for row in rows if row is not None)


def opened(on_stage: Stage) -> str:
    """Return the rows of the page with the calls of a rule; empty if it is not open."""
    found = on_stage.app.screen.query(RowsView)
    rows = [found.first().line_at(row) for row in range(found.first().total)] if len(found) == 1 else []
    return "\n".join(row.plain for row in rows if row is not None)


def decide(on_stage: Stage, call_id: str, rule: str | None, **fields: object) -> None:
    on_stage.bus.publish(ToolQueued(call_id=call_id, name="bash", args_raw={}, index=0, summary=f"make {call_id}"))
    values = {"decision": "allow", "source": "rule" if rule else "mode", "mode": PermissionMode.ASK, "rule": rule}
    on_stage.bus.publish(PermissionDecided.model_validate({"call_id": call_id, **values, **fields}))


async def test_hits_count_calls_live_and_enter_lists_them() -> None:
    async with page(size=(80, 30)) as (on_stage, screen, _):
        decide(on_stage, "c1", OWN.cited)
        decide(on_stage, "c2", None, parts=(DecisionPart(text="make all", decision="allow", rule=OWN.cited),))
        decide(on_stage, "c1", OWN.cited)
        on_stage.bus.publish(ToolStarted(call_id="c1", name="bash", args={}, summary="make c1"))
        on_stage.bus.publish(ToolEnded(call_id="c1", name="bash", index=0, status="ok", is_error=False, content=()))
        await on_stage.until(lambda: "2 calls" in text_of(screen, "body"))

        await on_stage.pilot.press("down", "down", "down", "down", "down", "down")
        assert screen.selected is not None
        assert screen.selected.text == OWN.text
        assert "newest: #1 #2" in text_of(screen, "detail")
        await on_stage.pilot.press("enter")
        await on_stage.until(lambda: "#1 bash make c1" in opened(on_stage))
        assert "#2 bash make c2" in opened(on_stage)
        await on_stage.pilot.press("escape")
        await on_stage.until(lambda: on_stage.app.screen is screen)


async def test_a_rule_of_the_session_is_removed_and_added_and_any_other_says_where_it_comes_from() -> None:
    reasons = {1: "built in", 2: "delete it from /home/you", 5: "option --allow", 8: "/mode changes the mode"}
    async with page() as (on_stage, screen, service):
        before = service.facts
        for downs, why in reasons.items():
            await on_stage.pilot.press("home", *["down"] * downs, "ctrl+x")
            await on_stage.until(lambda why=why: why in text_of(screen, "state"))
            assert service.facts == before

        await on_stage.pilot.press("home", *["down"] * 6, "ctrl+x")
        await on_stage.until(lambda: "Removed: allow bash(make:*)" in text_of(screen, "state"))
        assert OWN not in service.facts.rules
        assert "make" not in text_of(screen, "body")

        await on_stage.pilot.press("a")
        await on_stage.type("bash(make)")
        await on_stage.pilot.press("enter")
        await on_stage.until(lambda: "did you mean" in text_of(screen, "state"))
        assert OWN not in service.facts.rules
        await on_stage.pilot.press(*["backspace"] * 10, *"deny", "space", *"edit(x)", "enter")
        await on_stage.until(lambda: "Added for this session: deny edit(x)" in text_of(screen, "state"))
        assert service.facts.rules[-1].text == "edit(x)"
        assert screen.selected is not None
        assert screen.selected.text == "edit(x)"
        assert on_stage.draft == ""


async def test_the_page_follows_the_mode_and_announces_a_question() -> None:
    async with page() as (on_stage, screen, _):
        on_stage.chat.bridge.set_mode(PermissionMode.PLAN)
        await on_stage.until(lambda: "mode plan" in text_of(screen, "heading"))
        assert "every other change" in text_of(screen, "body")

        decide(on_stage, "c1", None, decision="ask")
        on_stage.bus.publish(
            ApprovalRequested(request_id="q1", call_id="c1", digest="d", tool="bash", args={"command": "make"})
        )
        await on_stage.until(lambda: "▲ 1 call needs you · esc, then ctrl+y" in text_of(screen, "state"))
        assert isinstance(on_stage.app.screen, PermissionsScreen)


async def test_the_page_works_at_any_size() -> None:
    hostile = RuleFact("allow", "bash(echo [red]\x1b[31m\u202e:*)", "granted for the session", is_session=True)
    async with page(FakeRules(hostile), size=(20, 6)) as (on_stage, screen, service):
        for size in ((20, 6), (40, 10), (200, 60)):
            await on_stage.pilot.resize_terminal(*size)
            await on_stage.pilot.press("a")
            await on_stage.type("deny edit(y)")
            await on_stage.pilot.press("enter")
            await on_stage.until(lambda: len(service.facts.rules) == 6)
            assert "\x1b" not in text_of(screen, "body")
            await on_stage.pilot.press("enter", "escape", "ctrl+x")
            await on_stage.until(lambda: len(service.facts.rules) == 5)
            for name in ("body", "detail", "state", "keys"):
                assert all(len(row) <= size[0] for row in text_of(screen, name).splitlines())
