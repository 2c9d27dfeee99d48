"""Calls are judged by the subject that their tool declares."""

from tests.support.sample_tools import SampleFetch, SamplePlainTool
from tests.support.table import table
from tui_agent.permissions import PermissionMode
from tui_agent.permissions.policy import subject_of
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import PathSubject, Subject

from .conftest import Desk


class Confused(SamplePlainTool):
    """A tool whose predicates raise."""

    def __init__(self, error: Exception, *, only_reading: bool = False) -> None:
        super().__init__("confused")
        self._error = error
        self._only_reading = only_reading

    def subject(self, arguments: JsonObject) -> Subject | None:
        if self._only_reading:
            return PathSubject("README.md", "read")
        raise self._error

    def is_read_only(self, arguments: JsonObject) -> bool:
        raise self._error


@table("error", [KeyError("path"), TypeError("no"), OSError("gone"), ToolError("x"), RecursionError()])
def test_a_tool_that_cannot_declare_a_subject_is_refused(desk: Desk, error: Exception) -> None:
    decision = desk.policy(mode="allow").check(Confused(error), {})

    assert (decision.decision, decision.source) == ("deny", "invalid")
    assert subject_of(Confused(error), {}) is None


def test_a_tool_whose_read_only_check_fails_counts_as_writing(desk: Desk) -> None:
    tool = Confused(ValueError("x"), only_reading=True)

    assert desk.policy().check(tool, {}).decision == "ask"
    assert desk.policy(mode="plan").check(tool, {}).decision == "deny"


@table(
    ("mode", "reading", "writing"),
    [
        ("ask", "allow", "ask"),
        ("allow", "allow", "allow"),
        ("deny", "allow", "deny"),
        ("plan", "allow", "deny"),
        ("accept_edits", "allow", "ask"),
    ],
)
def test_a_tool_without_a_subject(desk: Desk, mode: str, reading: str, writing: str) -> None:
    policy = desk.policy(mode=mode)

    assert policy.check(SamplePlainTool("look", read_only=True), {}).decision == reading
    assert policy.check(SamplePlainTool("change"), {}).decision == writing


def test_a_servers_tool_cannot_loosen_its_own_decision(desk: Desk) -> None:
    tool = SamplePlainTool("mcp__files__list", read_only=True)

    assert desk.policy().check(tool, {}).decision == "ask"
    assert desk.policy("allow mcp__files__*").check(tool, {}).decision == "allow"
    assert desk.policy(mode="deny").check(tool, {}).decision == "deny"


@table(
    ("url", "mode", "decision"),
    [
        ("https://python.org/x", "ask", "ask"),
        ("https://python.org/x", "plan", "ask"),
        ("https://python.org/x", "allow", "allow"),
        ("file:///etc/passwd", "ask", "ask"),
        ("https://docs.python.org", "ask", "allow"),
        ("https://docs.python.org@evil.org", "ask", "ask"),
    ],
)
def test_fetching_is_judged_by_its_host(desk: Desk, url: str, mode: str, decision: str) -> None:
    policy = desk.policy("allow fetch(domain:docs.python.org)", mode=mode)

    assert policy.check(SampleFetch("fetch"), {"url": url}).decision == decision


def test_a_path_with_a_nul_is_invalid(desk: Desk) -> None:
    assert desk.file("read", "a\x00b", mode="allow").source == "invalid"


def test_paths_are_in_the_decision(desk: Desk) -> None:
    decision = desk.file("write", "links/out/x")

    assert decision.targets == (f"{desk.root.parent}/outside/x",)
    assert decision.parts == ()
    assert decision.trace[0] == f"mode {PermissionMode.ASK.value}"
