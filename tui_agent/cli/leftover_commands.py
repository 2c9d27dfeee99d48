"""Commands that a killed tui-agent left running: named when their session is resumed, ended on request."""

from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.session.lost_processes import LostProcess
from tui_agent.tools.process import GRACE
from tui_agent.tools.process_record import end_recorded, running_of
from tui_agent.tools.shielded_thread import run_shielded_in_thread

NOTHING = "No command of an earlier tui-agent is running."
_MOST_NAMED = 3
"""Most commands named, and most processes of each."""
_LONGEST_COMMAND = 60


@dataclass(frozen=True, slots=True)
class LeftoverCommand:
    """A command with processes that still run."""

    lost: LostProcess
    pids: tuple[int, ...]

    def __str__(self) -> str:
        words = " ".join(self.lost.command.split()) or "a command"
        shown = words if len(words) <= _LONGEST_COMMAND else f"{words[: _LONGEST_COMMAND - 1]}…"
        pids = [str(pid) for pid in self.pids[:_MOST_NAMED]]
        more = f" and {len(self.pids) - len(pids)} more" if len(self.pids) > len(pids) else ""
        return f"{shown} (pid {', '.join(pids)}{more})"


@dataclass(frozen=True)
class LeftoverCommands:
    """The commands of one session; implements `ui.bridge.services.LeftoverCommands`."""

    lost: Sequence[LostProcess]
    bus: EventBus
    offer: str
    """Command with which the user ends them, such as `/jobs kill`."""

    async def warn(self) -> None:
        """Publish one warning that names the commands that still run, if any."""
        if left := await self._look():
            self.bus.publish(Warned(code="left_running", text=self._words(left)))

    async def report(self) -> None:
        """Publish which commands still run, or that none does."""
        left = await self._look()
        self.bus.publish(Noticed(code="left_running", text=self._words(left) if left else NOTHING))

    async def end(self, pid: int | None) -> None:
        """End one command with everything it started, by the id of any of its processes; None: all of them."""
        left = [command for command in await self._look() if pid is None or pid in command.pids]
        if not left:
            text = NOTHING if pid is None else f"No process {pid} of an earlier tui-agent is running."
        else:
            text = f"Ended: {', '.join(await run_shielded_in_thread(lambda: end_all(left)))}."
        self.bus.publish(Noticed(code="left_ended", text=text))

    async def _look(self) -> list[LeftoverCommand]:
        return await run_shielded_in_thread(lambda: find_running_commands(self.lost)) if self.lost else []

    def _words(self, left: Sequence[LeftoverCommand]) -> str:
        named = ", ".join(str(command) for command in left[:_MOST_NAMED])
        more = f" and {len(left) - _MOST_NAMED} more commands" if len(left) > _MOST_NAMED else ""
        them = "it" if len(left) == 1 else "them"
        return f"Still running since tui-agent was killed: {named}{more}. {self.offer} ends {them}."


def find_running_commands(lost: Sequence[LostProcess]) -> list[LeftoverCommand]:
    """Return the commands that still have processes. Blocks."""
    found = ((one, tuple(process.pid for process in running_of(one.process))) for one in lost)
    return [LeftoverCommand(one, pids) for one, pids in found if pids]


def end_all(commands: Sequence[LeftoverCommand]) -> tuple[str, ...]:
    """End commands with everything they started; return name and id of each process. Blocks."""
    return end_recorded([command.lost.process for command in commands], grace=GRACE)
