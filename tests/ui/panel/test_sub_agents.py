"""Sub-agents in the panel: one line each under their name, unfolding to their calls."""

from dataclasses import replace

from tests.ui.panel.test_call_list import Bench
from tests.ui.story import Story
from tui_agent.protocol.events import SubagentStarted, UsageUpdated
from tui_agent.protocol.messages import Usage
from tui_agent.ui.panel.panel_rows import PanelRows, RowContext
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.styled_lines import text_of_runs


class Delegation(Story):
    """A session with sub-agents that work at the same time."""

    def delegate(self, task: str, name: str = "explore") -> str:
        call_id = self.queued("agent", task)
        self.started(call_id, "agent", task)
        self.tell(SubagentStarted(child_run_id=f"run-{call_id}", call_id=call_id, agent=f"{name}-a1b2", task=task))
        return call_id

    def works(self, parent: str, tool: str, summary: str) -> str:
        root = self.origin
        self.origin = replace(
            root, run_id=f"run-{parent}", agent_id="explore-a1b2", parent_call_id=parent, depth=1, step=0
        )
        call_id = self.call(tool, summary)
        usage = Usage(input_tokens=8_000, output_tokens=100)
        self.tell(UsageUpdated(delta=usage, total=usage))
        self.origin = root
        return call_id


def two_agents() -> tuple[Delegation, str, str]:
    story = Delegation()
    story.run("x").step(0)
    one, other = story.delegate("find callers of price()"), story.delegate("read the tests", "agent")
    story.works(one, "grep", "price")
    story.works(other, "read", "tests/test_price.py")
    story.works(one, "read", "src/price.py")
    return story, one, other


def fold(story: Story) -> PanelRows:
    rows = PanelRows(CallLedger())
    rows.rebuild("all")
    for envelope in story.envelopes:
        if changed := rows.ledger.apply(envelope):
            rows.update(changed)
    return rows


def texts(rows: PanelRows, story: Story) -> list[str]:
    context = RowContext(80, story.now, find=rows.ledger.find)
    return [" ".join(text_of_runs(rows.runs(row, context)).split()) for row in range(len(rows))]


def unfold(rows: PanelRows, call_id: str | None) -> None:
    """Fold or unfold a call, or without one those that ended well."""
    call = rows.ledger.find(call_id) if call_id is not None else None
    assert rows.toggle(call)
    rows.rebuild("all")


def test_a_sub_agent_is_one_line_and_unfolded_its_calls_are_under_it_also_those_that_follow() -> None:
    story, one, other = two_agents()
    rows = fold(story)
    assert texts(rows, story) == [
        "▸✔ 3 done",
        "▸◐ #1 agent explore · find callers of price() 0.06 s",
        "▸◐ #2 agent read the tests 0.06 s",
    ]
    seen = len(story.envelopes)
    story.works(other, "read", "b.py")
    changes = [rows.update(changed) for one in story.envelopes[seen:] if (changed := rows.ledger.apply(one))]
    assert {change.moved for change in changes} == {False}
    assert {row for change in changes for row in change.rows} == {0, 2}, "its calls draw its line alone"

    unfold(rows, one)
    seen = len(story.envelopes)
    story.works(one, "read", "c.py")
    story.call("read", "d.py")
    for envelope in story.envelopes[seen:]:
        if changed := rows.ledger.apply(envelope):
            rows.update(changed)

    shown = [" ".join(row.split()[:4]) for row in texts(rows, story)]
    assert shown == [
        "▸✔ 6 done",
        "▾◐ #1 agent explore",
        "✔ #3 grep price",
        "✔ #5 read src/price.py",
        "✔ #7 read c.py",
        "▸◐ #2 agent read",
    ]
    unfold(rows, one)
    assert [row.split()[1] for row in texts(rows, story)] == ["6", "#1", "#2"]
    unfold(rows, None)
    assert [row.split()[1] for row in texts(rows, story)] == ["6", "#1", "#2", "#8"]


async def test_keys_unfold_a_sub_agent_and_the_cursor_stays_on_its_call() -> None:
    story, one, _ = two_agents()
    async with Bench(story).run_test(size=(80, 20)) as pilot:
        await pilot.press("home", "down", "right", "down", "down")
        assert pilot.app.selected == 5

        pilot.app.tell_more(lambda: story.works(one, "read", "c.py"))
        await pilot.pause()
        assert pilot.app.selected == 5

        await pilot.press("home", "down", "left", "down")
        assert pilot.app.selected == 2
        pilot.app.panel.select("c5")
        assert pilot.app.selected == 5, "going to a call of a folded sub-agent unfolds it"


def test_a_question_of_a_sub_agent_is_in_its_row_and_in_the_row_of_the_call_that_started_it() -> None:
    story, one, other = two_agents()
    root = story.origin
    story.origin = replace(root, run_id=f"run-{other}", agent_id="agent-b6aefc", parent_call_id=other, depth=1, step=1)
    command = story.queued("bash", "pytest -q")
    asked = story.asks(command, "bash", "pytest -q", "no rule", agent="agent-b6aefc")
    rows = fold(story)

    assert rows.ledger.asker(command) == "#2 read the tests"
    assert rows.ledger.asker(one) == ""
    asking = texts(rows, story)
    assert next(text for text in asking if "read the tests" in text).startswith("▸▲ #2")
    assert next(text for text in asking if "read the tests" in text).endswith("needs you")
    assert not next(text for text in asking if "find callers" in text).startswith("▸▲")
    status = SessionStatus()
    for envelope in story.envelopes:
        status.apply(envelope)
    status.status = "running_tools"  # So the agent reports it: its own call runs.
    assert status.shown == "waiting_approval"

    story.resolved(asked, command).origin = root
    assert not any("▲" in text for text in texts(fold(story), story))
