"""What can be asked for by name: `/` commands and the entries of the palette."""

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from textual.content import Content

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.commands import Command
from tui_agent.ui.bridge.agent_bridge import NOT_READY, AgentBridge
from tui_agent.ui.composer.prompt_parser import UnknownSlash
from tui_agent.ui.status.session_status import SessionStatus
from tui_agent.ui.text.amounts import count_text, money_text, tokens_text

_KILL = re.compile(r"kill(?:[ \t]+([0-9]{1,9}))?")
UNDO = "undo"
"""What takes the last shortening of the conversation back, behind `/compact`."""


class CommandHost(Protocol):
    """The screen, as far as commands need it."""

    @property
    def theme_names(self) -> Sequence[str]:
        """The themes there are."""
        ...

    def choose_theme(self, name: str) -> None:
        """Changes the colours."""
        ...

    def watch_recording(self, path: str) -> None:
        """Shows a recording."""
        ...

    def run_command(self, command: Command) -> None:
        """Does what the command's key does."""
        ...

    def say(self, text: str, *, wrong: bool = False) -> None:
        """Shows a short text for a moment."""
        ...

    def show_page(self, title: str, text_at: Callable[[int], Content]) -> None:
        """Opens a page to read."""
        ...

    def announce_pending_agent(self) -> None:
        """Shows what is known of an agent that is not there yet."""
        ...

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        """Start work beside the screen."""
        ...

    def number_of(self, call_id: str) -> int | None:
        """A call's number in the panel."""
        ...


class CommandActions:
    """Runs commands by name."""

    def __init__(self, host: CommandHost, bridge: AgentBridge, view: SessionStatus) -> None:
        self._host = host
        self._bridge = bridge
        self._view = view

    def perform(self, command: Command, argument: str = "") -> bool:
        """Runs one command; False where its argument names nothing there is."""
        match command.id:
            case "chat.mode":
                return self._mode(argument)
            case "chat.theme":
                return self._theme(argument)
            case "chat.compact":
                return self._compact(argument)
            case "chat.rename":
                return self._rename(argument)
            case "chat.replay":
                return self._replay(argument)
            case "chat.jobs":
                return self._jobs(argument)
            case "chat.context":
                self._context()
            case "chat.report":
                self._report()
            case "chat.cost":
                self._host.say(self._cost())
            case "chat.stop":
                self._stop()
            case _:
                self._host.run_command(command)
        return True

    def explain(self, unknown: UnknownSlash) -> None:
        """Says that a command does not exist, and which one was perhaps meant."""
        near = f" Did you mean /{unknown.nearest}?" if unknown.nearest else " /help lists them all."
        self._host.say(f"There is no command /{unknown.name}.{near}", wrong=True)

    def choose_mode(self, mode: PermissionMode) -> None:
        """Sets the permission mode."""
        self._bridge.set_mode(mode)
        self._host.announce_pending_agent()

    def _mode(self, name: str) -> bool:
        wanted = name.replace("-", "_").replace(" ", "_").casefold()
        modes = {mode.value: mode for mode in PermissionMode}
        if wanted in modes:
            self.choose_mode(modes[wanted])
            return True
        asked = f"There is no mode {name}. " if name else ""
        self._host.say(f"{asked}The mode is {self._bridge.mode.value}; there are {', '.join(modes)}.", wrong=bool(name))
        return not name

    def _theme(self, name: str) -> bool:
        if name in self._host.theme_names:
            self._host.choose_theme(name)
            return True
        asked = f"There is no theme {name}. " if name else ""
        self._host.say(f"{asked}Themes: {', '.join(self._host.theme_names)}.", wrong=bool(name))
        return not name

    def _compact(self, focus: str) -> bool:
        if focus == UNDO:
            refused = self._bridge.undo_compaction()
            if refused:
                self._host.say(refused, wrong=True)
            return True
        begun = self._bridge.compact(focus)
        if not begun:
            busy = "The agent works; the conversation can be shortened when it is done."
            self._host.say(NOT_READY if self._bridge.agent_pending else busy, wrong=True)
        return begun

    def _rename(self, title: str) -> bool:
        if title:
            self._bridge.rename(title)
        else:
            self._host.say("What shall it be called? /rename NAME", wrong=True)
        return bool(title)

    def _replay(self, path: str) -> bool:
        if path:
            self._host.watch_recording(path)
        else:
            self._host.say("Which recording? /replay FILE; tui-agent --record FILE makes one.", wrong=True)
        return bool(path)

    def _jobs(self, argument: str) -> bool:
        wanted = _KILL.fullmatch(argument)
        if argument and wanted is None:
            self._host.say(
                "/jobs lists commands that a killed tui-agent left running; /jobs kill [PID] ends them.", wrong=True
            )
            return False
        status = self._bridge.status
        if not status.has_leftovers:
            self._host.say(
                NOT_READY if status.pending else "No command of an earlier tui-agent is running.", wrong=status.pending
            )
        elif wanted is None:
            self._host.start("jobs", self._bridge.report_leftovers())
        else:
            self._host.start("jobs", self._bridge.end_leftovers(int(wanted[1]) if wanted[1] else None))
        return status.has_leftovers or not status.pending

    def _context(self) -> None:
        # Brings the whole agent along, which the first screen does not wait for.
        from tui_agent.ui.dialogs.info_pages import context_text

        breakdown, window = self._bridge.context_breakdown(), self._view.window
        if breakdown is None:
            self._host.say(NOT_READY, wrong=True)
        else:
            self._host.show_page("Context", lambda width: context_text(breakdown, window, self._host.number_of, width))

    def _report(self) -> None:
        from tui_agent.ui.dialogs.info_pages import run_text

        report = self._view.report
        if report is None:
            self._host.say("No run has ended yet.")
        else:
            self._host.show_page("Report", lambda _: run_text(report))

    def _stop(self) -> None:
        if self._bridge.running:
            self._bridge.stop()
            self._host.say("The run ends after this step.")
        else:
            self._host.say("Nothing runs.")

    def _cost(self) -> str:
        usage = self._view.usage
        cached = f", {tokens_text(usage.cache_read_tokens)} of them from the cache" if usage.cache_read_tokens else ""
        read = (
            f"{tokens_text(usage.context_tokens)} {count_text(usage.context_tokens, 'token').split()[1]} read{cached}"
        )
        cost = money_text(self._view.cost) or "cost not known"
        return f"{read} · {tokens_text(usage.output_tokens)} written · {cost}"
