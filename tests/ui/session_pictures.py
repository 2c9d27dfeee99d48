"""Twelve short sessions as pictures: `python -m tests.ui.session_pictures DIRECTORY [NAME…]`.

Each is drawn at 80x24 and 120x40, dark and light, as SVG. A reader who sees only a picture must be able to say what
happened in the session.
"""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tests.ui.still import pressing, still_app
from tests.ui.story import Story
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.events import (
    ApprovalResolved,
    CompactionEnded,
    CompactionStarted,
    Failed,
    FileChanged,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    PermissionDecided,
    PlanProposed,
    StepRetry,
    SubagentEnded,
    SubagentStarted,
    TodoItem,
    TodoUpdated,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.messages import AssistantMessage, TextBlock, ThinkingBlock
from tui_agent.protocol.permissions import PermissionMode

SIZES = ((80, 24), (120, 40))
THEMES = ("dark", "light")

PYTEST = """\x1b[1m============ test session starts ============\x1b[0m
collected 12 items

tests/test_cart.py \x1b[32m......\x1b[0m
tests/test_price.py \x1b[32m..\x1b[0m\x1b[31mF\x1b[0m\x1b[32m...\x1b[0m

\x1b[31m\x1b[1mFAILED\x1b[0m tests/test_price.py::\x1b[1mtest_round\x1b[0m - assert 10.05 == 10.04
\x1b[31m========= 1 failed, 11 passed in 2.41s =========\x1b[0m
"""
SHORT_DIFF = """--- a/src/price.py
+++ b/src/price.py
@@ -8,5 +8,5 @@ class Price:
 from decimal import Decimal
 def total(items):
-    return round(sum(round(item.price, 2) for item in items), 2)
+    return sum((item.price for item in items), Decimal(0))
 def tax(amount):
     return amount * RATE
"""


@dataclass(frozen=True)
class Session:
    """A session to look at."""

    tell: Callable[[], Story]
    running: bool = False
    keys: Sequence[str] = ()
    """Keys pressed before the picture."""


def changed(story: Story, call_id: str, path: str, diff: str) -> None:
    """Report the change of a file."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    story.tell(
        FileChanged(call_id=call_id, path=path, change="modified", diff=Diff(diff), added=added, removed=removed)
    )


def bash(story: Story, command: str, text: str, outcome: str, status: str = "ok", seconds: float = 2.4) -> str:
    """Run a whole command."""
    call_id = story.queued("bash", command, command=command)
    story.started(call_id, "bash", command, command=command)
    story.output(call_id, text).wait(seconds)
    story.ended(call_id, "bash", status, text, latency_ms=seconds * 1000, details={"outcome": outcome})  # type: ignore[arg-type]
    return call_id


def calls() -> Story:
    """Reads in parallel, a failing test whose output is unfolded, an edit, and the test again."""
    story = Story().run("fix the failing price test").step(0).wait(1.2)
    story.answer("I look at the test and at both callers.")
    for name, what, outcome in (("read", "tests/test_price.py", ""), ("read", "src/price.py", "")):
        quick_read(story, name, what, outcome)
    quick_read(story, "grep", '"round(" in src', "3 matches in 2 files")
    bash(story, "pytest -q", PYTEST, "exit 1 · FAILED tests/test_price.py::test_round", "error")
    story.end_step(0).step(1).wait(0.8).answer("Each item is rounded, and then the sum again. I remove the inner one.")
    edit = story.queued("edit", "src/price.py")
    story.started(edit, "edit", "src/price.py")
    changed(story, edit, "src/price.py", SHORT_DIFF)
    story.ended(edit, "edit", "ok", "edited", latency_ms=20.0, details={"outcome": "+1 −1"})
    bash(story, "pytest -q", "12 passed", "12 passed in 2.38s")
    story.end_step(1).step(2).answer("All **12** tests pass. `total()` no longer rounds each item.")
    return story.end(total_ms=14_200.0, steps=3, tool_calls=6)


def quick_read(story: Story, name: str, what: str, outcome: str) -> str:
    """Read something at once."""
    call_id = f"r{len(story.envelopes)}"
    story.tell(ToolQueued(call_id=call_id, name=name, args_raw={}, index=0, summary=what, safe=True))
    story.tell(ToolStarted(call_id=call_id, name=name, args={}, summary=what, read_only=True))
    details: dict[str, object] = {"outcome": outcome} if outcome else {}
    story.ended(call_id, name, "ok", "text", latency_ms=10.0, details=details)
    return call_id


def answered(story: Story, request_id: str, call_id: str, decision: Literal["approve", "deny"], note: str = "") -> None:
    """Let the user answer a question."""
    story.tell(ApprovalResolved(request_id=request_id, call_id=call_id, decision=decision, by="user", note=note))


def denials() -> Story:
    """The user denies with a reason, a rule denies, the user edits a command before allowing it."""
    story = Story().run("clean up and publish").step(0).answer("I remove the build and push.")
    first = story.queued("bash", "rm -rf build dist", command="rm -rf build dist")
    asked = story.asks(first, "bash", "rm -rf build dist", "no rule allows `rm`, and the mode is ask")
    answered(story.wait(4), asked, first, "deny", "keep dist, only remove build")
    story.ended(first, "bash", "denied_user", "denied")
    second = story.queued("bash", "git push --force", command="git push --force")
    story.tell(
        PermissionDecided(
            call_id=second,
            decision="deny",
            source="rule",
            mode=PermissionMode.ASK,
            rule="bash(git push --force:*) (project)",
        )
    )
    story.ended(second, "bash", "denied_policy", "denied")
    third = story.queued("bash", "rm -rf build docs/_build", command="rm -rf build docs/_build")
    asked = story.asks(third, "bash", "rm -rf build docs/_build", "no rule allows `rm`")
    answered(story.wait(3), asked, third, "approve")
    story.started(third, "bash", "rm -rf build", command="rm -rf build")
    story.ended(third, "bash", "ok", "", latency_ms=30.0, details={"outcome": "no output"})
    story.end_step(0).step(1).answer("`build` is gone. I did not push: a rule of this project forbids forced pushes.")
    return story.end(total_ms=12_000.0, steps=2, tool_calls=3)


def errors() -> Story:
    """Three calls fail in their own ways, and then the provider refuses the key."""
    story = Story().run("bump the version").step(0).answer("I change the version and run the checks.")
    story.call(
        "edit", "setup.py", 0.01, "error", text="old_string was not found in setup.py", details={"outcome": "not found"}
    )
    bash(
        story, "make check", "make: *** No rule to make target 'check'.  Stop.\n", "exit 2 · make: *** No rule", "error"
    )
    story.call("bash", "sleep 500", 120.0, "timeout", text="stopped after 120 s")
    story.end_step(0).step(1)
    text = "The key was refused (401). Nothing was changed; set ANTHROPIC_API_KEY and send the message again."
    story.tell(Failed(code="run_failed", text=text))
    return story.end(reason="error", error=text)


def flood() -> Story:
    """A command writes very much while a progress bar runs."""
    story = Story().run("build it").step(0).answer("I build in the background of this answer.")
    build = story.queued("bash", "make -j8", command="make -j8")
    story.started(build, "bash", "make -j8", command="make -j8")
    story.output(build, "".join(f"\x1b[32mCC\x1b[0m src/module_{number}.c\n" for number in range(2_000)))
    fetch = story.queued("bash", "pip download torch", command="pip download torch")
    story.started(fetch, "bash", "pip download torch", command="pip download torch")
    bar = "".join(f"\r   \x1b[35m{'━' * (number // 4)}\x1b[0m {number} % of 800 MB" for number in range(63))
    story.output(fetch, f"Collecting torch\n{bar}")
    return story.wait(31)


def sub_agents() -> Story:
    """Two sub-agents search at the same time; one has ended."""
    story = Story().run("where is the price rounded?").step(0).answer("Two agents look: one in `src`, one in `web`.")
    ids = [story.queued("agent", task) for task in ("find callers of price() in src", "find callers of price() in web")]
    root = story.origin
    for number, call_id in enumerate(ids):
        task = ("find callers of price() in src", "find callers of price() in web")[number]
        story.started(call_id, "agent", task)
        story.tell(SubagentStarted(call_id=call_id, child_run_id=f"k{number}", agent=f"explore-{number}", task=task))
        story.origin = replace(root, agent_id=f"explore-{number}", run_id=f"k{number}", depth=1, parent_call_id=call_id)
        for _ in range(3):
            quick_read(story, "grep", '"price("', "4 matches in 2 files")
        story.origin = root
    story.wait(9)
    found = {"outcome": "2 steps, 3 calls"}
    story.tell(SubagentEnded(call_id=ids[0], child_run_id="k0", agent="explore-0", status="completed"))
    story.ended(ids[0], "agent", "ok", "cart.py:140 and price.py:12 round.", latency_ms=9_000.0, details=found)
    return story.wait(4)


def steers() -> Story:
    """A steer skips two calls; a follow-up waits."""
    story = Story().run("tidy the module").step(0).answer("I format, rename and run the tests.")
    bash(story, "ruff format src", "3 files reformatted\n", "3 files reformatted", seconds=1.1)
    edit, test = story.queued("edit", "src/price.py"), story.queued("bash", "pytest -q", command="pytest -q")
    message_id = story.sends("don't rename anything, only format")
    for call_id, name in ((edit, "edit"), (test, "bash")):
        story.ended(call_id, name, "skipped_steering", "skipped: the user steered")
    story.end_step(0).delivered(message_id, "don't rename anything, only format", "after step 1")
    story.step(1).answer("Understood: the names stay. I only run the tests.")
    run = story.queued("bash", "pytest -q", command="pytest -q")
    story.started(run, "bash", "pytest -q", command="pytest -q")
    story.sends("then write a changelog entry", "follow_up")
    return story.wait(6)


def retries() -> Story:
    """A cut answer was discarded and tried again; the next request waits for its turn."""
    story = Story().run("explain the rounding").step(0).wait(1)
    for attempt, wait in ((2, 1.0), (3, 8.0)):
        message_id = story.stream("The rounding happens tw")
        story.tell(MessageDiscarded(message_id=message_id, reason="the stream was cut"))
        story.tell(
            StepRetry(
                attempt=attempt,
                max=10,
                wait_s=wait,
                error_kind="overloaded",
                status=529,
                discarded=True,
                text="The model is overloaded (529).",
            )
        )
        story.status("retrying", f"{attempt}/10").wait(2)
    return story


def compaction() -> Story:
    """The conversation was shortened once, and is being shortened again."""
    story = Story().run("go through all modules").step(0).answer("Module by module.")
    story.tell(CompactionStarted(trigger="automatic", strategy="summary", tokens_before=182_000))
    story.wait(14)
    story.tell(CompactionEnded(ok=True, tokens_before=182_000, tokens_after=40_200, removed=86, strategy="summary"))
    story.answer("Next is `cart.py`.", tokens=40_200)
    quick_read(story, "read", "src/cart.py", "")
    story.end_step(0).step(1).wait(60)
    story.tell(CompactionStarted(trigger="automatic", strategy="summary", tokens_before=178_000))
    return story.status("compacting").wait(7)


def cut_answer() -> Story:
    """The answer reached the token limit in the middle; thinking came before it."""
    story = Story().run("write the whole manual").step(0).wait(2)
    name = story.stream("")
    story.tell(MessageDelta(message_id=name, kind="thinking", delta="The manual needs three chapters.\n\nFirst setup."))
    text = "# Manual\n\n## 1. Setup\n\n1. Install it\n2. Run `shop init`\n\n```sh\npip install shop\nshop init --dem"
    message = AssistantMessage(
        content=(ThinkingBlock(thinking="The manual needs three chapters.\n\nFirst setup."), TextBlock(text=text)),
        id=name,
        timestamp=0,
    )
    story.tell(MessageEnded(message_id=name, message=message))
    error = "The answer reached the limit of 8,192 tokens and is incomplete. Say “continue” to get the rest."
    story.tell(Failed(code="max_tokens", text=error))
    return story.end(reason="error", error=error)


def plan_mode() -> Story:
    """Plan mode refuses an edit; the model proposes a plan and keeps a list."""
    story = Story(mode=PermissionMode.PLAN).run("make prices exact").step(0).answer("I look first.")
    quick_read(story, "read", "src/price.py", "")
    edit = story.queued("edit", "src/price.py")
    story.tell(
        PermissionDecided(
            call_id=edit,
            decision="deny",
            source="floor",
            mode=PermissionMode.PLAN,
            reason="plan mode changes nothing: edit writes src/price.py",
        )
    )
    story.ended(edit, "edit", "denied_policy", "denied")
    story.end_step(0).step(1)
    states = ("done", "in_progress", "pending")
    texts = ("read the callers", "use Decimal in price.py", "adapt the tests")
    items = tuple(
        TodoItem.model_validate({"text": text, "status": state}) for text, state in zip(texts, states, strict=True)
    )
    story.tell(TodoUpdated(items=items))
    story.tell(
        PlanProposed(plan_id="p1", text="1. Use `Decimal` in `price.py`\n2. Adapt both callers\n3. Run the tests")
    )
    return story.status("waiting_user").wait(3)


def long_diff() -> Story:
    """An edit of many lines, unfolded."""
    story = Story().run("rename price to amount everywhere").step(0).answer("One edit in the largest module.")
    rows = "".join(f"-    price_{number} = {number}\n+    amount_{number} = {number}\n" for number in range(40))
    diff = f"--- a/src/price.py\n+++ b/src/price.py\n@@ -1,40 +1,40 @@\n{rows}"
    edit = story.queued("edit", "src/price.py")
    story.started(edit, "edit", "src/price.py")
    changed(story, edit, "src/price.py", diff)
    story.ended(edit, "edit", "ok", "edited", latency_ms=20.0, details={"outcome": "+40 −40"})
    return story.end(total_ms=4_000.0, tool_calls=1)


def interrupt() -> Story:
    """The user cancelled two running commands with esc; the session can be continued."""
    story = Story().run("run everything").step(0).answer("Tests and the type checker at the same time.")
    one, two = (
        story.queued("bash", "pytest -q", command="pytest -q"),
        story.queued("bash", "pyright", command="pyright"),
    )
    story.started(one, "bash", "pytest -q", command="pytest -q").started(two, "bash", "pyright", command="pyright")
    story.output(one, "tests/test_cart.py ....\n").wait(12)
    story.tell(Noticed(code="abort_requested", text="The run ends now: cancelled by the user."))
    for call_id in (one, two):
        story.ended(call_id, "bash", "cancelled", "Cancelled by the user after 12.0 s.", latency_ms=12_000.0)
    return story.end(reason="aborted", error="cancelled by the user", total_ms=14_000.0, tool_calls=2)


OPEN = ("tab", "shift+up")
SESSIONS: dict[str, Session] = {
    "calls": Session(calls),
    "denials": Session(denials),
    "errors": Session(errors),
    "flood": Session(flood, running=True),
    "sub-agents": Session(sub_agents, running=True),
    "steers": Session(steers, running=True),
    "retries": Session(retries, running=True),
    "compaction": Session(compaction, running=True),
    "cut-answer": Session(cut_answer),
    "plan-mode": Session(plan_mode, running=True),
    "long-diff": Session(long_diff),
    "interrupt": Session(interrupt),
}


async def draw(name: str, size: tuple[int, int], theme: str) -> str:
    """Return the picture of a session."""
    session = SESSIONS[name]
    app = still_app(session.tell(), running=session.running, theme=theme)
    async with app.run_test(size=size) as pilot:
        await pressing(*session.keys)(pilot)
        return app.export_screenshot(title=name)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(SESSIONS)}; without any, all")
    chosen = parser.parse_args()
    chosen.directory.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or SESSIONS:
        for size in SIZES:
            for theme in THEMES:
                picture = asyncio.run(draw(name, size, theme))
                (chosen.directory / f"{name}-{size[0]}x{size[1]}-{theme}.svg").write_text(picture, "utf-8")


if __name__ == "__main__":
    main()
