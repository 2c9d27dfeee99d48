"""Open questions of all units, in one queue; answers go to the unit that asked."""

from collections.abc import Sequence

from tui_agent.protocol.fleet_records import UnitQuestion
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.ui.approval.approval_rows import UNIT
from tui_agent.ui.state.approval_folds import PendingApprovals

from .fleet_files import FleetFiles


class UnitQuestions(PendingApprovals):
    """The questions in order of arrival. Changed by the driver's updates and by the user's answers."""

    def __init__(self) -> None:
        super().__init__()
        self._answered: set[str] = set()
        """Questions that were answered here; the driver may still list them."""

    def update(self, questions: Sequence[UnitQuestion]) -> bool:
        """Take the open questions; return False if nothing changed."""
        listed = {key_of(one): one for one in questions}
        self._answered &= listed.keys()
        gone = [key for key in self._requests if key not in listed]
        new = [key for key in listed if key not in self._requests and key not in self._answered]
        for key in gone:
            super().settle(key)
        for key in new:
            self._requests[key] = _request_of(key, listed[key])
        return bool(gone or new)

    def settle(self, request_id: str) -> bool:
        """Remove a question that was answered here; return False if it was not open."""
        is_open = super().settle(request_id)
        if is_open:
            self._answered.add(request_id)
        return is_open

    def ask_again(self) -> None:
        """Let questions whose answers had no effect return with the next update."""
        self._answered.clear()

    def oldest_of(self, unit_id: str) -> ApprovalRequest | None:
        """Return the oldest question of a unit; None if it has none."""
        return next((one for key, one in self._requests.items() if key.startswith(f"{unit_id}/")), None)


class UnitAnswers:
    """Sends answers to the units that asked."""

    shares_rules = False

    def __init__(self, files: FleetFiles) -> None:
        """Send answers to the units of a fleet."""
        self._files = files
        self.bench = None
        """A unit's session is open in another process: its rules last as long as it, and no browser opens here."""

    def decide(self, request_id: str, decision: ApprovalDecision) -> bool:
        """Send an answer to the unit of a question. The first answer wins; a refusal follows as an update."""
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
