"""Points and plans for tests of the rewind page, and a fake service that returns them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.facts.change_facts import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope

POINTS = (
    RewindPoint(40, 3_000, "add a discount", is_turn=False, files=1, added=3),
    RewindPoint(20, 2_000, "fix the failing price test\nand keep the signature", files=3, added=12, removed=4),
    RewindPoint(5, 1_000, "what does [b]price.py[/b] do?", files=5, added=40, removed=12),
)

STATE = FileState(digest="d", size=3, mode=0o644)
RESTORED = FileStep(
    Path("/shop/src/price.py"),
    "src/price.py",
    "restore",
    STATE,
    STATE,
    Diff("--- a/src/price.py\n+++ b/src/price.py\n@@ -8,2 +8,2 @@\n import decimal\n-round(total)\n+total\n"),
)
CONFLICT = FileStep(
    Path("/shop/src/cart.py"),
    "src/cart.py",
    "restore",
    STATE,
    STATE,
    Diff("--- a/src/cart.py\n+++ b/src/cart.py\n@@ -1,1 +1,2 @@\n import price\n+mine\n"),
    problem="somebody else changed it since",
)
STUCK = FileStep(
    Path("/shop/data.bin"),
    "data.bin",
    "stuck",
    STATE,
    None,
    problem="its content from then was not kept: the file was too large, or there were too many",
)
PLAN = RewindPlan(
    to_seq=20,
    text=POINTS[1].text,
    steps=(
        RESTORED,
        FileStep(Path("/shop/notes.txt"), "notes.txt", "delete", STATE, None, Diff(counts=(0, 7))),
        FileStep(Path("/shop/old.py"), "old.py", "create", None, STATE, Diff(counts=(4, 0))),
        CONFLICT,
        STUCK,
    ),
    messages=6,
    draft=POINTS[1].text,
)


class FakeRewinding:
    """Returns a plan, and records what it carries out."""

    def __init__(self, plan: RewindPlan = PLAN, points: Sequence[RewindPoint] = POINTS) -> None:
        self._plan = plan
        self._points = points
        self.done: list[tuple[str, Scope, AbstractSet[Path]]] = []
        self.refusal: SessionError | None = None

    async def points(self) -> Sequence[RewindPoint]:
        if self.refusal is not None:
            raise self.refusal
        return self._points

    async def plan(self, point: RewindPoint, /) -> RewindPlan:
        return self._plan

    async def plan_for_call(self, call_id: str, text: str, /) -> RewindPlan:
        return RewindPlan(to_seq=40, text=text, steps=self._plan.steps, call_id=call_id)

    async def carry_out(self, plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], /) -> RewindOutcome:
        self.done.append((plan.text, scope, overwritten))
        chosen = plan.chosen(scope, overwritten)
        left = tuple(step.shown for step in plan.steps if step not in chosen)
        return RewindOutcome(tuple(step.shown for step in chosen), left, draft=plan.draft if scope != "files" else "")
