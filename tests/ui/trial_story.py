"""Sessions with commands that ran in a trial, and proposals of all kinds, for tests and pictures."""

from typing import Any

from tests.ui.story import Story
from tui_agent.protocol.events import ChangesDiscarded, ChangesKept, ChangesProposed, FileChanged, ToolStarted
from tui_agent.protocol.trial import ProposedChanges, ProposedFile, ProposedTree
from tui_agent.tools.unified_diff import diff_of

CART = "def total(items):\n" + "".join(f"    step_{number}()\n" for number in range(1, 20)) + "    return sum(items)\n"
NEW_CART = CART.replace("step_2()", "step_two()").replace("sum(items)", "round(sum(items), 2)")
PRICE = "def tax( amount ):\n    return amount * RATE\n"


def changed(path: str, old: str, new: str, **fields: Any) -> ProposedFile:
    """Return a changed, new or deleted text; None stands for an absent file."""
    kind = "added" if not old else "deleted" if not new else "changed"
    diff = diff_of(old, new, f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
    values: dict[str, Any] = {"kind": kind, "sort": "workspace", "diff": diff, "is_text": bool(new)}
    return ProposedFile(path=path, added=diff.added, removed=diff.removed, **{**values, **fields})


def formatted() -> ProposedChanges:
    """Return what a formatter changed: two texts, one of them with two hunks, and a new file."""
    return ProposedChanges(
        layer="l1",
        files=(
            changed("src/shop/rates.py", "", "RATE = 19\nBULK = 10\n"),
            changed("src/cart.py", CART, NEW_CART),
            changed("src/price.py", PRICE, PRICE.replace("( amount )", "(amount)")),
        ),
    )  # fmt: skip


def everything() -> ProposedChanges:
    """Return changes of all kinds."""
    hook = "#!/bin/sh\nexec make lint\n"
    return ProposedChanges(
        layer="l2",
        files=(
            changed("old_rates.py", "RATE = 16\n", ""),
            changed(
                ".husky/pre-commit", "", hook, sort="protected", note="mode 755", runs_later="git runs it as a hook"
            ),
            changed("src/cart.py", CART, NEW_CART, conflict="you changed it in your editor meanwhile"),
            ProposedFile(path="logo.png", kind="changed", sort="workspace", note="binary, 1,204 → 1,310 bytes"),
            ProposedFile(path="run.sh", kind="mode", sort="workspace", note="mode 644 → 755"),
            ProposedFile(path="latest", kind="added", sort="workspace", note="link to releases/3"),
            changed("data.csv", "a\n", "b\n", has_more=True),
            ProposedFile(path="/etc/hosts", kind="changed", sort="refused", note="outside the workspace"),
        ),
        trees=(
            ProposedTree(path="build/", sort="ignored", files=214, size=1_234_567),
            ProposedTree(path=".venv/", sort="packages", files=1_204, size=45_000_000),
        ),
        repository=("1 commit on main: Fix add", "branch release created"),
    )


def asking(changes: ProposedChanges, command: str = "black .", **fields: Any) -> Story:
    """Return a session in which the changes of a command wait."""
    story = Story().run("format the code").step(0).wait(1.2)
    story.answer("I'll format everything, then look at what changed.")
    propose(story, changes, command, **fields)
    return story.wait(4)


def propose(story: Story, changes: ProposedChanges, command: str = "black .", **fields: Any) -> tuple[str, str]:
    """Run a command in a trial and ask about its changes; return the ids of the call and of the request."""
    call_id = trial(story, command)
    story.tell(ChangesProposed(call_id=call_id, changes=changes))
    rule = "edit(/src/**)"
    values: dict[str, Any] = {
        "reason": "no rule keeps these files",
        "session_rule": rule,
        "rules": (rule, "edit(/**)"),
        **fields,
    }
    return call_id, story.asks(call_id, "bash", command, values.pop("reason"), changes=changes, **values)


def trial(story: Story, command: str = "black .", seconds: float = 2.5) -> str:
    """Let a command run in a trial; return the id of its call."""
    call_id = story.queued("bash", command, command=command)
    story.tell(ToolStarted(call_id=call_id, name="bash", args={"command": command}, summary=command, place="trial"))
    story.status("running_tools", "bash").output(call_id, "reformatted src/cart.py\n")
    story.wait(seconds)
    return call_id


def settle(
    story: Story, call_id: str, changes: ProposedChanges, *kept: str, reason: str = "", request_id: str = ""
) -> Story:
    """Keep some paths of a proposal, discard the others, and end the call."""
    if request_id:
        story.resolved(request_id, call_id)
    files = {file.path: file for file in changes.files}
    others = tuple(path for path in files if path not in kept)
    if kept:
        story.tell(ChangesKept(call_id=call_id, layer=changes.layer, paths=kept, count=sum(p in files for p in kept)))
        for path in filter(files.__contains__, kept):
            file = files[path]
            kinds = {"added": "created", "deleted": "deleted"}
            change: Any = kinds.get(file.kind, "modified")
            values: dict[str, Any] = {"diff": file.diff, "added": file.added, "removed": file.removed}
            story.tell(FileChanged(call_id=call_id, path=path, change=change, **values))
    if others:
        story.tell(
            ChangesDiscarded(call_id=call_id, layer=changes.layer, paths=others, count=len(others), reason=reason)
        )
    return story.ended(call_id, "bash", latency_ms=2500.0, details={"outcome": "exit 0"})
