"""The bridge between the chat and one unit of a fleet, whose agent runs in another process, perhaps on another machine.

Events are read from the fleet's files, and what the user does becomes commands of stream-json. The questions of all
units wait in one queue; an answer goes to the unit that asked.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tui_agent.protocol.background import run_service
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentCreated, PermissionModeChanged, RunStarted
from tui_agent.protocol.fleet_records import UnitQuestion
from tui_agent.protocol.messages import JsonObject, UserKind, now_ms
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.ui.approval.approval_summary import UNIT, request_in_short
from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.bridge.agent_bridge import AgentBridge, AgentEvents, AgentStatus, Post, StatusPublished
from tui_agent.ui.state.approval_folds import PendingApprovals

from .fleet_state import FleetFiles, FleetState

# --- questions --------------------------------------------------------------------------------------------------------


class UnitQuestions(PendingApprovals):
    """The questions in order of arrival. Changed by the driver's updates and by the user's answers."""

    def __init__(self) -> None:
        super().__init__()
        self._answered: set[str] = set()
        """Questions that were answered here; the driver may still list them."""

    def update(self, questions: Sequence[UnitQuestion]) -> bool:
        """Take the open questions; return False if nothing changed."""
        listed = {key_of(one): one for one in questions}
        # Once the driver no longer lists it, the same id may be asked again.
        self._answered &= listed.keys()
        gone = [key for key in self._requests if key not in listed]
        new = [key for key in listed if key not in self._requests and key not in self._answered]
        for key in gone:
            super().settle(key)
        for key in new:
            self._requests[key] = _request_of(key, listed[key])
        return bool(gone or new)

    def settle(self, request_id: str) -> bool:
        is_open = super().settle(request_id)
        if is_open:
            self._answered.add(request_id)
        return is_open

    def ask_again(self) -> None:
        """Let questions whose answers had no effect return with the next update."""
        self._answered.clear()

    def in_short(self, unit_id: str) -> str:
        """Return the oldest question of a unit without its name; empty if it has none."""
        asked = (one for key, one in self._requests.items() if key.startswith(f"{unit_id}/"))
        return next((request_in_short(one.model_copy(update={"agent": "main"})) for one in asked), "")


class UnitAnswers:
    """Sends answers to the units that asked."""

    shares_rules = False

    def __init__(self, files: FleetFiles) -> None:
        """Send answers to the units of a fleet."""
        self._files = files
        self.bench = None
        """A unit's session is open in another process: its rules last as long as it, and no browser opens here."""

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Send an answer to the unit of a question; return True. The first answer wins; a refusal follows later."""
        unit_id, _, own_id = request_id.partition("/")
        self._files.send(unit_id, approval_command(own_id, decision))
        return True


def key_of(question: UnitQuestion) -> str:
    """Return an id of a question that is unique in the fleet: a unit's id has no slash."""
    return f"{question.unit_id}/{question.request.request_id}"


def approval_command(request_id: str, decision: ApprovalDecision) -> JsonObject:
    """Return an answer as a command of stream-json."""
    command: JsonObject = {"type": "approval", "request_id": request_id, "decision": decision.decision}
    if decision.decision == "approve":
        # Units offer no rule for a user's file, so the scope is never `user`.
        command["scope"] = "session" if decision.scope != "once" else "once"
        if decision.input is not None:
            command["input"] = decision.input
    if decision.note:
        command["note"] = decision.note
    return command


def _request_of(key: str, question: UnitQuestion) -> ApprovalRequest:
    """Return a request with the name of its unit. It offers one rule: the command has no field for another one."""
    request = question.request
    agent = "" if request.agent == "main" else f" · {request.agent}"
    name = f"{UNIT}{question.unit_id}{agent}"
    return request.model_copy(update={"request_id": key, "agent": name, "rules": ()})


# --- the conversation of a unit ---------------------------------------------------------------------------------------

_MAX_BATCH = 1_000
"""Events handed over at once, so that the screen answers keys in between."""
_OTHER_PROCESS = "it runs in a process of its own"
_IMPOSSIBLE = frozenset(
    f"chat.{name}"
    for name in (
        *("rename", "export", "replay", "rewind", "resume", "clear", "fork", "demo", "compact", "init", "model"),
        *("effort", "settings", "permissions", "tools", "context", "doctor", "skills", "jobs", "background", "diff"),
        *("findings",),
        *("mcp", "hooks"),
    )
)
"""Commands that need the agent in this process."""


class UnitBridge(AgentBridge):
    """One unit as the chat sees it."""

    shares_rules = False

    def __init__(
        self,
        unit_id: str,
        files: FleetFiles,
        fleet: FleetState,
        tell: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = now_ms,
    ) -> None:
        self.unit_id = unit_id
        """Id of the unit."""
        self._files = files
        self._fleet = fleet
        self._tell = tell
        self._clock, self._now = clock, now
        self._answers = UnitAnswers(files)
        row = fleet.rows[unit_id]
        super().__init__(mode=row.unit.permissions.mode)

    def _current_status(self) -> AgentStatus:
        row = self._fleet.rows.get(self.unit_id)
        # Before its first start, no process could take its input.
        return AgentStatus(running=row is not None and not row.ended and row.epoch > 0, mode=self._mode)

    def row_changed(self) -> None:
        """Publish the status if the unit has begun or ended."""
        self.show_status(self._current_status())

    # --- what a unit cannot do ----------------------------------------------------------------------------------------

    def refusal(self, action: str) -> str:
        row = self._fleet.rows.get(self.unit_id)
        match action:
            case "send" if row is None or row.ended:
                return "This unit has ended and takes no messages. Your text is kept."
            case "send" if not self._fleet.running:
                return "No driver works on this fleet, so the unit takes no messages. Your text is kept."
            case "send" if row is not None and not row.epoch:
                return "This unit has not started and takes no messages yet. Your text is kept."
            case "shell":
                return f"A unit runs no commands of yours: {_OTHER_PROCESS}. Ask it to run the command."
            case "target":
                return "A message reaches only a unit as a whole, not its calls or sub-agents."
            case "queue":
                return "A message that was sent to a unit cannot be changed."
            case "call":
                stop = hint("app.escalate", "interrupts the unit")
                return f"Single calls of a unit cannot be cancelled or extended. {stop}."
            case _ if action in _IMPOSSIBLE:
                known = command(action)
                name = f"/{known.slash}" if known.slash else known.text
                return f"{name} does not work for a unit of a fleet: {_OTHER_PROCESS}."
            case _:
                return ""

    # --- commands -----------------------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Steer the unit with a text."""
        self._files.send(self.unit_id, {"type": "user", "text": text})

    def follow_up(self, text: str) -> None:
        self._files.send(self.unit_id, {"type": "follow_up", "text": text})

    def requeue(self, kind: UserKind, text: str) -> None:
        """Do nothing: the unit keeps its own queue."""

    def send_now(self) -> None:
        """Say that a unit reads messages between its calls."""
        self._tell(f"A unit reads messages when its running calls end. {hint('app.escalate', 'interrupts it')}.")

    def stop(self) -> None:
        self._command("stop")

    def cancel(self) -> None:
        """End the unit's run now."""
        self._command("interrupt")

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Answer a question of any unit, since all wait in one queue; return True."""
        return self._answers.decide(request_id, decision)

    def set_mode(self, mode: PermissionMode) -> None:
        """Set the unit's permission mode; its events report the change."""
        if reason := self.refusal("send"):
            self._tell(reason.partition(" Your text")[0])
        else:
            self._files.send(self.unit_id, {"type": "mode", "mode": mode.value})

    def _command(self, name: str) -> None:
        self._files.send(self.unit_id, {"type": name})

    # --- events -------------------------------------------------------------------------------------------------------

    async def relay(self, post: Post) -> None:
        self._post = post
        # The chat shows whether the unit takes messages before its first event is read.
        post(StatusPublished())
        await run_service("following a unit", self._hand_over_events(), self._report_loss)

    def _report_loss(self, reason: str) -> None:
        self._tell(f"The events of this unit cannot be read: {reason}.")

    async def _hand_over_events(self) -> None:
        # The times of another machine's monotonic clock mean nothing here.
        offset = self._clock() - self._now() / 1000
        async for batch in self._files.events(self.unit_id):
            for start in range(0, len(batch), _MAX_BATCH):
                part = batch[start : start + _MAX_BATCH]
                self._follow_mode(part)
                await self.hand_over(AgentEvents([replace(one, mono=offset + one.ts / 1000) for one in part]))

    def _follow_mode(self, events: Sequence[Envelope]) -> None:
        for envelope in events:
            event = envelope.event
            # A sub-agent has a mode of its own.
            if envelope.origin.depth:
                continue
            if isinstance(event, AgentCreated | RunStarted):
                self._mode = event.mode
            elif isinstance(event, PermissionModeChanged):
                self._mode = event.new
