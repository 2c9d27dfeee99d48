"""The frame of the composer and the last line of the chat, which show the session's status."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.reactive import reactive
from textual.timer import Timer

from tui_agent.protocol.amounts import count_text, money_text, seconds_text, tokens_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.events import Status
from tui_agent.protocol.facts.screen_facts import STATUS, StatusItem
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import hint
from tui_agent.ui.base.steady_widgets import CoalescedRefresh
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.state.call_view_state import PLACE_MARKS
from tui_agent.ui.state.session_status import SessionStatus
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import joined_parts

_BADGES: dict[PermissionMode, str] = {
    PermissionMode.ASK: "$text-muted",
    PermissionMode.ACCEPT_EDITS: "$accent",
    PermissionMode.PLAN: "$primary",
    PermissionMode.ALLOW: "$background on $error bold",
    PermissionMode.DENY: "$warning",
}

ReadTree: TypeAlias = Callable[[], Awaitable[tuple[str, bool] | None]]
"""Returns the branch and True if files are changed; None if that is not known.

Raises:
    TuiAgentError: the agent is not ready.
"""
ReadOutput: TypeAlias = Callable[[JsonObject], Awaitable[str]]
"""Returns the first line that the command of the settings prints when it gets these facts.

Raises:
    TuiAgentError: the agent is not ready.
"""
OUTPUT_SECONDS = 1.0
"""Least seconds between two runs of the command for the status line."""
TREE_SECONDS = 1.0
"""Least seconds between two readings of branch and changes."""
CLOCK_SECONDS = 0.5
"""Seconds between two updates of the clock, as often as those of the calls, so that they show the same second."""
NOTICE_SECONDS = 10.0
"""Seconds for which a notice takes the place of the key hints."""
LONG_OPENING = 5.0
"""Seconds after which the line shows how long the agent has been loading."""
SILENT_SECONDS = 20.0
"""Seconds without a sign of the model after which the line says so."""
_NARROW = 80
"""Cells below which the mark for background commands is short."""
_LONGEST = 200
"""Cells of one part; more than any terminal shows."""

_SIGNS: dict[Status, tuple[str, str]] = {
    "idle": ("●", "$text-muted"),
    "thinking": ("◐", "$primary"),
    "streaming": ("◐", "$primary"),
    "running_tools": ("◐", "$primary"),
    "waiting_approval": ("▲", "$warning"),
    "waiting_user": ("▲", "$warning"),
    "compacting": ("◐", "$primary"),
    "retrying": ("◌", "$warning"),
    "stopping": ("■", "$warning"),
}


class FrameLine(CoalescedRefresh):
    """The rule over the composer: directory and branch on the left, model, label and mode on the right."""

    DEFAULT_CSS = """
    FrameLine {
        height: 1;
        color: $border-blurred;
    }
    """

    def __init__(
        self,
        place: WorkingDirectory,
        label: str,
        status: SessionStatus,
        read_tree: ReadTree,
    ) -> None:
        super().__init__(id="frame")
        self._place = place
        self._read_tree = read_tree
        self._is_changed: bool = False
        self._is_reading = False
        # No number of writes, so that the first look reads.
        self._writes_read = -1
        self._label = one_line(label, _LONGEST)
        self._status = status
        self._drawn = (status.model, status.mode)

    @property
    def place(self) -> WorkingDirectory:
        """Directory and branch as they are known now."""
        return self._place

    def show(self, status: SessionStatus) -> None:
        self._status = status
        self.changed()

    def settle(self) -> None:
        """Draw the line if the model or the mode has changed; after calls that write, read branch and changes again."""
        before, self._drawn = self._drawn, (self._status.model, self._status.mode)
        if self._drawn != before:
            self.refresh()
        if self._place.branch and self._status.progress.writes != self._writes_read and not self._is_reading:
            self._is_reading = True
            self.run_worker(self._follow_tree, group="work tree", exit_on_error=False)

    async def _follow_tree(self) -> None:
        """Read branch and changes until no call has written meanwhile, at most once in `TREE_SECONDS`."""
        try:
            while self._status.progress.writes != self._writes_read:
                self._writes_read = self._status.progress.writes
                tree = await self._read_tree()
                if tree is not None and tree != (self._place.branch, self._is_changed):
                    self._place = replace(self._place, branch=tree[0])
                    self._is_changed = tree[1]
                    self.refresh()
                await asyncio.sleep(TREE_SECONDS)
        except TuiAgentError:
            self._writes_read = -1  # The agent is not ready yet.
        finally:
            self._is_reading = False

    def render(self) -> Content:
        """Return the line; if the window is narrow, the model is left out first, then its label, never the mode."""
        width = self.size.width
        right = self._right(width)
        left = self._left(max(0, width - right.cell_length - 3))
        rule = max(0, width - left.cell_length - right.cell_length)
        return Content("").join([left, Content("─" * rule), right])

    def _left(self, room: int) -> Content:
        directory, branch = one_line(self._place.directory, _LONGEST), one_line(self._place.branch, _LONGEST)
        parts: list[Content | tuple[str, str]] = [(f" {directory}", "$text")]
        if branch:
            parts += [(" · ", "$text-muted"), (branch, "$text-muted"), (" ✱" if self._is_changed else "", "$warning")]
        left = Content.assemble(*parts, " ")
        return left if left.cell_length <= room else left.truncate(max(0, room - 1), ellipsis=True) + Content(" ")

    def _right(self, width: int) -> Content:
        mode = self._status.mode
        word = " ALLOW ALL " if mode is PermissionMode.ALLOW else mode.words
        badge = Content.assemble(" ", (word, _BADGES[mode]), " ")
        texts = [one_line(self._status.model, _LONGEST), self._label]
        for kept in (texts, texts[1:] if self._label else texts[:1], []):
            words = " · ".join(text for text in kept if text)
            right = Content.assemble((f" {words} ·", "$text-muted"), badge) if words else badge
            # The directory keeps almost a third of the line.
            if right.cell_length <= width * 0.7:
                return right
        return badge


class StatusLine(CoalescedRefresh):
    """The last line: the agent's status, tokens, cost, and the keys that matter now. Its clock runs during a run."""

    DEFAULT_CSS = """
    StatusLine {
        height: 1;
        color: $text-muted;
    }
    """

    typing = reactive(False)
    """True if the composer holds text."""
    waiting = reactive(0)
    """Number of queued messages."""
    agent_pending = reactive(False)
    """True until the agent is loaded."""
    unsent = reactive(0)
    """Number of messages that wait for the agent."""
    answers = reactive("")
    """Answers that the user may still recall, with the key for it; empty if there are none."""
    back = ""
    """Name of the screen that the interrupt key leads back to; empty if it interrupts."""

    items: tuple[StatusItem, ...] = STATUS
    """Facts after the state, the most important first."""
    place: Callable[[], WorkingDirectory] = WorkingDirectory
    """Returns directory and branch."""
    read_output: ReadOutput | None = None
    """Runs the command of the settings."""

    def __init__(self, surroundings: TerminalEnvironment, status: SessionStatus) -> None:
        super().__init__(id="status")
        self._surroundings = surroundings
        self._output = ""
        self._given: JsonObject = {}
        self._is_reading = False
        self._status = status
        self._created_at = surroundings.clock()
        self._timer: Timer | None = None
        self._mark_cells = range(0)

    def on_mount(self) -> None:
        self._timer = self.set_interval(CLOCK_SECONDS, self.settle, pause=True)

    def show(self, status: SessionStatus) -> None:
        self._status = status
        self.changed()

    def watch_agent_pending(self) -> None:
        """Start or stop the clock."""
        self.settle()

    def settle(self) -> None:
        """Draw the line, and start or stop its clock."""
        if self._timer is not None:
            # A clock that always ran would wake an idle program twice a second.
            runs = self._status.busy or self._notice or self.agent_pending
            (self._timer.resume if runs else self._timer.pause)()
        if self.read_output is not None and "command" in self.items and not self._is_reading:
            self._is_reading = True
            self.run_worker(self._follow_output(self.read_output), group="status command", exit_on_error=False)
        self.refresh()

    async def _follow_output(self, read: ReadOutput) -> None:
        """Run the command until no fact has changed meanwhile, at most once in `OUTPUT_SECONDS`."""
        try:
            # The command may be slow or costly: equal facts would make it print the same line.
            while (given := self._facts_for_command()) != self._given:
                self._output = one_line(await read(given), _LONGEST)
                self._given = given
                self.refresh()
                await asyncio.sleep(OUTPUT_SECONDS)
        except TuiAgentError:
            self._given = {}  # The agent is not ready yet.
        finally:
            self._is_reading = False

    def _facts_for_command(self) -> JsonObject:
        status, place = self._status, self.place()
        return {
            "state": status.shown,
            "step": None if status.step is None else status.step + 1,
            "model": status.model,
            "mode": status.mode.value,
            "folder": place.directory,
            "branch": place.branch,
            "context_tokens": status.tokens,
            "context_window": status.window,
            "cost_usd": status.cost,
        }

    async def on_click(self, event: Click) -> None:
        """Open the page of background commands if the mark was clicked."""
        if event.x in self._mark_cells:
            await self.run_action("screen.perform('chat.jobs')")

    def render(self) -> Content:
        """Return the line, and remember where the mark for background commands is."""
        line = self._line()
        # A line has no line feed, so without a mark nothing is found.
        before, mark, _ = line.plain.partition(self._mark or "\n")
        begin = cell_len(before)
        self._mark_cells = range(begin, begin + len(mark))
        return line

    def _line(self) -> Content:
        """Return as many facts and key hints as fit; hints are dropped first, but while it works, not the first one."""
        width = self.size.width
        facts, hints = self._facts(), self._hints()
        kept = len(hints[0]) + 4 if self._status.busy else 0
        left = joined_parts(facts, width - kept)
        if self._notice:
            room = max(0, width - min(left.cell_length, width // 2) - 2)
            notice = Content.styled(one_line(self._notice, room), "$text")
            left = joined_parts(facts, width - notice.cell_length - 2)
            gap = max(0, width - left.cell_length - notice.cell_length - 1)
            return Content("").join([left, Content(" " * gap), notice])
        while hints and left.cell_length + sum(len(text) + 3 for text in hints) + 1 > width:
            hints.pop()
        right = Content.styled(" · ".join(hints), "$text-muted")
        gap = max(0, width - left.cell_length - right.cell_length - 1)
        return Content("").join([left, Content(" " * gap), right])

    @property
    def _notice(self) -> str:
        """Newest short message, for some seconds; empty if there is none."""
        status = self._status
        is_new = 0 <= self._surroundings.clock() - status.notice.at < NOTICE_SECONDS
        return status.notice.text if is_new and not status.asking else ""

    @property
    def _mark(self) -> str:
        """Number of commands that run in the background; empty if none does."""
        number = len(self._status.progress.in_background)
        return f"{number} {'bg' if self.size.width < _NARROW else 'in background'}" if number else ""

    def _facts(self) -> list[Content]:
        """Return status, background commands, step, tokens, cost and time of the run, the most important first."""
        status = self._status
        sign, style = ("◌", "$text-muted") if self.agent_pending else _SIGNS[status.shown]
        words_style = "$text" if status.shown == "idle" else style
        words = ((self.answers, "$success"),) if self.answers else ((sign, style), " ", (self._words(), words_style))
        facts = [Content.assemble(" ", *words)]
        if status.unsaved:
            facts.append(Content.styled("not saved", "$error bold"))
        if self._mark:
            facts.append(Content.styled(self._mark, "$primary"))
        return [*facts, *filter(None, map(self._item, self.items))]

    def _item(self, item: StatusItem) -> Content | None:
        """Return one fact; None if there is nothing to say."""
        status = self._status
        asks = bool(status.asking)  # Then the question matters, and neither step nor cost moves.
        match item:
            case "step":
                number = status.step if status.busy and not asks else None
                return None if number is None else Content(f"step {number + 1}")
            case "context":
                full = status.tokens > 0.8 * status.window
                meter = f"{tokens_text(status.tokens)}/{tokens_text(status.window)} tok"
                return Content.styled(meter, "$warning" if full else "$text-muted") if status.window else None
            case "cost":
                return Content(money_text(status.cost)) if status.cost and not asks else None
            case "time":
                return self._run_time()
            case _:
                return Content(text) if (text := self._text_of(item)) else None

    def _text_of(self, item: StatusItem) -> str:
        """Return a fact that is only text."""
        status, place = self._status, self.place()
        total = status.usage.context_tokens + status.usage.output_tokens
        texts: dict[StatusItem, str] = {
            "tokens": f"{tokens_text(total)} tokens" if total else "",
            "model": status.model,
            "mode": status.mode.words,
            "folder": place.directory,
            "branch": place.branch,
            "command": self._output,
        }
        return one_line(texts.get(item, ""), _LONGEST)

    def _run_time(self) -> Content | None:
        """Return the time of the run that is in progress."""
        status = self._status
        began_at = status.progress.began_at
        # In the first state of a run, its clock would show the same seconds as that of the state, if that has one.
        has_none = status.shown in ("waiting_approval", "retrying")
        is_later = began_at is not None and (has_none or self._since - began_at >= 1)
        if began_at is None or not is_later or status.progress.ended_at is not None or self.agent_pending:
            return None
        return Content(f"run {seconds_text(self._surroundings.clock() - began_at, tenths=False)}")

    @property
    def _since(self) -> float:
        """Moment from which the clock of the status counts: the start of the oldest call that runs, or of the state."""
        running = self._status.running if self._status.status == "running_tools" else {}
        return next((call.since for call in running.values()), self._status.since)

    def _words(self) -> str:
        """Return the status in words, with the time it has lasted."""
        status, now = self._status, self._surroundings.clock()
        if self.agent_pending:
            waited = now - self._created_at
            words = "opening" if waited < LONG_OPENING else f"opening {seconds_text(waited, tenths=False)}"
            return f"{words} · {count_text(self.unsent, 'message')} to be sent" if self.unsent else words
        if status.shown == "idle":
            return "ready"  # The conversation says how the run ended.
        if status.shown == "retrying" and status.retry_at is not None:
            return f"retrying in {seconds_text(status.retry_at - now, tenths=False)}"
        if status.shown == "waiting_approval":
            changes = [status.progress.waiting_changes.get(request_id) for request_id in status.asking]
            if len(changes) < 2:
                return next(filter(None, changes), "waiting for you")
            return f"{len(changes)} wait for you"
        clock = _clock(now - status.since)
        if status.status == "running_tools" and status.running:
            oldest = next(iter(status.running.values()))
            clock = _clock(now - oldest.since)
            place = PLACE_MARKS.get(oldest.place)
            name = f"{one_line(oldest.name, 24)}{f' ({place})' if place else ''}"
            names = name if len(status.running) == 1 else count_text(len(status.running), "tool")
            return f"{names}{clock}"
        if status.status == "stopping" and status.detail:
            return f"stopping {status.detail}"
        words = {"running_tools": "tools", "waiting_user": "waiting for you"}.get(status.status, status.status)
        silence = now - status.progress.heard_at
        is_silent = status.status in ("thinking", "streaming") and silence >= SILENT_SECONDS
        return f"{words}{clock}{f' · nothing for {seconds_text(silence, tenths=False)}' if is_silent else ''}"

    def _hints(self) -> list[str]:
        """Return the keys that matter now, the most important first."""
        interrupt = hint("chat.interrupt", self.back or None)
        if self._status.busy:
            return [
                interrupt,
                *([hint("composer.submit", "steer"), hint("composer.follow_up")] if self.typing else []),
            ]
        if self.waiting:
            return [hint("chat.send_now", "send what waits"), hint("composer.submit")]
        if self.typing:
            return [hint("composer.submit"), hint("composer.new_line")]
        if self.back:
            return [interrupt, hint("chat.help")]
        return [hint("chat.help"), hint("chat.cycle_mode"), hint("app.quit")]


def _clock(duration: float) -> str:
    """Return a duration after its words; empty within the first second, so that quick steps change less."""
    return f" {seconds_text(duration, tenths=False)}" if duration >= 1 else ""


class StatusBars:
    """The frame of the composer and the last line of the chat."""

    def __init__(
        self,
        place: WorkingDirectory,
        label: str,
        surroundings: TerminalEnvironment,
        status: SessionStatus,
        read_tree: ReadTree,
        read_output: ReadOutput,
    ) -> None:
        self.frame = FrameLine(place, label, status, read_tree)
        """The rule over the composer."""
        self.line = StatusLine(surroundings, status)
        """The last line."""
        self.line.place = lambda: self.frame.place
        self.line.read_output = read_output

    def show(self, status: SessionStatus) -> None:
        self.frame.show(status)
        self.line.show(status)

    def show_answers(self, words: str) -> None:
        """Show the answers that the user may still recall; empty: there are none."""
        self.line.answers = words
