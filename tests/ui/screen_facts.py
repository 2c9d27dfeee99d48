"""Facts on a screen, counted from its text: `python -m tests.ui.screen_facts RECORDING [COLUMNSxROWS]` prints them.

A **fact** is what a reader takes in beside the conversation's own words: a mark (`✔`), a number with its unit (`6.0 s`,
`+2`, `4.9k`, `#7`), a bar of the time strip, a state in words (`needs you`), or a name (a tool, a file or command, the
model, the mode, the folder, the branch). `2.6k/200k tok (1 %)` are three, `✔ #1 read  README.md  0.20 s` five. A
heading is a name. A mark and the words for the same state on one row are one: `▲ #6 edit  cart.py  needs you` are four.
Not counted: messages, code, diffs, output of commands and the command that a question asks about, since they are what
the user came for; and keys with their words and signs that fold, since they are controls.

A fact is there **twice** if the same number or the same state in words is shown of the same thing: of a call (by its
`#` number, else by tool and argument), of a file, or of the run and session. Seconds are compared without their tenths.
Marks and names do not count twice: they say what a row is about.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textual.app import App
from textual.strip import Strip

from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    MessageEnded,
    RunEnded,
    RunStarted,
    SteeringQueued,
    ToolEnded,
    ToolQueued,
    ToolStarted,
)
from tui_agent.ui.app.replay_app import ReplayApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.replay.replay_screen import ReplayScreen
from tui_agent.ui.replay.replay_timeline import ReplayTimeline
from tui_agent.workbench.sessions.replay_source import read_source

RECORDINGS = Path(__file__).parents[2] / "docs" / "recordings"
MOMENTS: tuple[type[AgentEvent], ...] = (
    *(RunStarted, RunEnded, MessageEnded, SteeringQueued),
    *(ToolQueued, ToolStarted, ToolEnded, ApprovalRequested),
)
"""Events after which the screen is counted."""

MARKS = "✔✖▲◐◓◑◒◌⊘⤼■⏱●○»↳"
"""Signs that are facts."""
SAYS = {
    "✔": ("done",),
    "✖": ("failed",),
    "⏱": ("timed out",),
    "⊘": ("denied",),
    "▲": ("needs you", "waiting for you"),
    "◌": ("queued", "after"),
    "●": ("ready",),
}
"""States that these marks say, too: on one row both are one fact."""
OWN = tuple("✔✖▲◐◓◑◒◌⊘⤼■⏱»▸▾└↳─╭")
"""Signs at the start of the program's own rows in the conversation."""
_BAR = re.compile(r"[▆▄▚░▒▼·]+(?: *[▆▄▚░▒▼·]+)*")
_TOOLS = ("read", "grep", "glob", "edit", "write", "bash", "todo", "agent", "fetch")
_AMOUNT = re.compile(r"(?<![\w.])[+−]?\$?\d[\d.,]*(?:k|M)?(?: ?(?:ms|s|m|h|kB|MB|B|%|tok|tokens)\b|(?= ?%))?(?: %)?")
_NUMBER = re.compile(r"#\d+\b")
_SECONDS = re.compile(r"(\d+)\.\d+ s$")
_LABEL = 24
"""Most characters of words beside a number that belong to it, as `7 done` and `run 26 s`."""


@dataclass(frozen=True)
class Fact:
    """One fact, and the thing that it is about."""

    kind: str
    about: str
    text: str


def facts_of_row(row: str) -> Iterator[Fact]:
    """Yield the facts of a row of the program's own words."""
    row = row.replace("(", "  ").replace(")", "  ")
    # The name of a part of the conversation, or of a bar.
    is_named = row.startswith("▸") or bool(set(row) & set("▆▄▚░▒▼"))
    number = _NUMBER.search(row)
    for bar in _BAR.findall(row):
        if set(bar) & set("▆▄▚░▒▼"):
            yield Fact("bar", "", bar)
    row = re.sub(r"[▆▄▚░▒▼─╭╮╰╯│▃▁▂▅▇█]+", "  ", row)
    marks = [sign for sign in row if sign in MARKS]
    says = any(re.search(rf"\b{word}\b", row) for sign in marks for word in SAYS.get(sign, ()))
    yield from (Fact("mark", "", sign) for sign in marks if not (says and sign in SAYS))
    row = "".join(" " if sign in f"{MARKS}▸▾└▍❯" else sign for sign in row)
    cells = [cell.strip() for cell in re.split(r"  +| · ", _NUMBER.sub("  ", row)) if cell.strip(" ·…")]
    tool = next((cell.split()[0] for cell in cells[:1] if cell.split()[0] in _TOOLS), "") if marks else ""
    about = number[0] if number is not None else f"{tool} {cells[0]}" if tool else "run"
    if number is not None:
        yield Fact("number", "", number[0])
    if tool:
        yield Fact("name", "", tool)
        argument = cells[0].removeprefix(tool).strip()
        cells = [argument, *cells[1:]] if argument else cells[1:]
        # The argument may have digits of its own, as a command has.
        if cells:
            yield Fact("name", "", cells.pop(0))
    elif re.match(r"[\w./-]+\.\w+$", cells[0] if cells else ""):
        about = cells[0]
    for cell in cells:
        amounts = _AMOUNT.findall(cell)
        rest = " ".join(_AMOUNT.sub(" ", cell).replace("/", " ").split())
        for amount in amounts:
            words = rest if len(amounts) == 1 and len(rest) <= _LABEL else ""
            short = _SECONDS.sub(r"\1 s", amount.strip())
            yield Fact("amount", about, short if short.endswith(" s") else f"{short} {words}".strip())
        if rest and (not amounts or len(rest) > _LABEL):
            yield Fact("name", "", rest) if is_named and not marks else Fact("words", about, rest)


def own_rows(screen: Iterable[str]) -> Iterator[str]:
    """Yield the rows, and parts of rows, in which the program speaks itself, without its keys."""
    rows = list(screen)
    # The border of the right column is where most rows have a line.
    lines = Counter(place for row in rows for place, sign in enumerate(row) if sign == "│" and place > 60)
    border = lines.most_common(1)[0][0] if lines else 0
    for row in rows:
        if border and row[border : border + 1] == "│":
            left, right = row[:border], row[border + 1 :]
            if right.strip():
                yield right
            begin = left.strip(" │")
            if begin.startswith("▸ thinking"):
                yield "▸ thinking"
            elif re.match(r"[a-z]+  +\S", begin) if left.startswith("│") else begin.startswith(OWN):
                yield begin
        elif not row.startswith((" ›", " " * 20)):
            # Above and below: folder, model and mode, the queue, the status; the keys are at the right.
            yield re.split(r" {3,}(?=\S+ )", row.strip("─ "))[0].partition("  esc ")[0]


def facts_of(screen: Iterable[str]) -> list[Fact]:
    """Return all facts of a screen."""
    return [fact for row in own_rows(screen) for fact in facts_of_row(row)]


def repeated(facts: Iterable[Fact]) -> dict[Fact, int]:
    """Return the facts that are there more than once."""
    numbers = Counter(fact for fact in facts if fact.kind in ("amount", "words") and fact.about)
    return {fact: number for fact, number in numbers.items() if number > 1}


def rows_on(app: App[Any]) -> list[str]:
    """Return the text of an app's screen."""
    compositor: Any = app.screen._compositor
    drawn = compositor.render_update(full=True, screen_stack=app._background_screens)
    return [Strip.join(row).text.rstrip() for row in drawn.strips]


@asynccontextmanager
async def replayed(recording: str, size: tuple[int, int]) -> AsyncGenerator[AsyncIterator[tuple[str, list[str]]]]:
    """Replay a recorded session; the iterator yields the name of each moment and the text of the screen at it."""
    source = read_source(RECORDINGS / f"{recording}.jsonl")
    timeline = ReplayTimeline(source.envelopes, source.stamps)
    app = ReplayApp(
        lambda options: ReplayScreen(
            timeline, replace(options, place=WorkingDirectory("~/shop", "main")), clock=lambda: 0.0
        ),
        surroundings=TerminalEnvironment(reduced_motion=True),
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        app.replay.action_hide()

        async def screens() -> AsyncIterator[tuple[str, list[str]]]:
            chosen = [n for n in range(len(timeline)) if isinstance(timeline.event(n).event, MOMENTS)]
            for number in chosen:
                app.replay.seek(timeline.moments[number])
                while app.replay.play_state.looking:
                    await pilot.pause()
                await pilot.pause(0.3)
                yield f"{number} {timeline.event(number).event.type}", rows_on(app)

        yield screens()


async def _print(recording: str, size: tuple[int, int]) -> None:
    screen: list[str] = []
    facts: list[Fact] = []
    async with replayed(recording, size) as screens:
        async for moment, screen in screens:
            facts = facts_of(screen)
            twice = ", ".join(f"{one.about}: {one.text} x{number}" for one, number in repeated(facts).items())
            print(f"{len(facts):4} {moment:30} twice: {twice or '-'}")
    print(*screen, sep="\n")
    print(*(f"{one.kind:8} {one.about:20.20} {one.text}" for one in facts), sep="\n")


if __name__ == "__main__":
    columns, _, lines = (sys.argv[2] if len(sys.argv) > 2 else "120x40").partition("x")
    asyncio.run(_print(sys.argv[1], (int(columns), int(lines))))
