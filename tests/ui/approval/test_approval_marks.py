"""Words that mark the dangers of a request."""

from tui_agent.protocol.permissions import ApprovalRequest, DecisionPart
from tui_agent.protocol.tool import Preview
from tui_agent.ui.approval.approval_reasons import danger_marks


def marks(command: str, **fields: object) -> tuple[str, ...]:
    asked = {"call_id": "c", "digest": "d", "tool": "bash", "args": {"command": command}, **fields}
    return danger_marks(ApprovalRequest.model_validate({**asked, "preview": Preview(kind="command", text=command)}))


def part(text: str, *dangers: str) -> DecisionPart:
    return DecisionPart(text=text, decision="ask", dangers=dangers)


def test_each_danger_of_the_parts_is_named_once() -> None:
    parts = (part("rm a", "deletes files"), part("rm ../b", "deletes files", "outside the workspace"), part("make"))

    assert marks("rm a; rm ../b; make", parts=parts) == ("deletes files", "outside the workspace")


def test_a_command_that_names_a_secret_is_marked() -> None:
    assert marks("cat .env") == marks("cat ~/.ssh/id_rsa") == ("may show secrets",)
    assert marks("ls form") == ()


def test_a_file_outside_the_workspace_is_marked() -> None:
    reason = "outside the workspace: /etc/hosts; no rule allows changing it"
    asked = ApprovalRequest(call_id="c", digest="d", tool="edit", args={"path": "/etc/hosts"}, reason=reason)

    assert danger_marks(asked) == ("outside the workspace",)


def test_a_private_file_is_marked() -> None:
    asked = ApprovalRequest(call_id="c", digest="d", tool="read", args={}, reason="~/x is private: it is ours")

    assert danger_marks(asked) == ("may hold secrets",)
