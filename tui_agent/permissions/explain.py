"""`permissions check` and `permissions explain`: decisions on calls without running them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import PermissionDecision, PermissionMode
from tui_agent.protocol.tool import CommandSubject, Subject, Tool, ToolContext, ToolResult, ToolSpec, UrlSubject
from tui_agent.protocol.trial import NO_TRIAL, Place, TrialFacts

from .policy import SECRET_FILES, PermissionPolicy, subject_of
from .rules.rule import Rule

_PLACES: dict[Place, str] = {"outside": "outside", "trial": "trial", "read_only": "trial", "nowhere": "nowhere"}
"""Name of each place in the answer to a record."""
_PLACE_WORDS: dict[Place, str] = {
    "outside": "outside, with your own rights",
    "trial": "trial: a copy of the workspace, whose changes are kept afterwards",
    "read_only": "behind walls, where the workspace cannot be changed",
    "nowhere": "nowhere: it does not run",
}

FindTool = Callable[[str], Tool | None]


@dataclass(frozen=True, slots=True)
class PermissionDefaults:
    """Defaults for records that leave a field out."""

    workspace: Path
    layers: Sequence[Sequence[Rule]] = ()
    mode: PermissionMode = PermissionMode.ASK
    private_paths: Sequence[Path] = ()
    is_trusted: bool = True
    """True if the user trusts the contents of the workspace. Ignored for a record that names another workspace."""
    tool_names: Collection[str] = ()
    """Tools that the rules of a record may name, beside the tool of the call."""
    trial: TrialFacts = NO_TRIAL
    secret_files: Sequence[str] = SECRET_FILES


def check_record(record: object, *, find_tool: FindTool, defaults: PermissionDefaults) -> JsonObject:
    """Decide one call, given as `{"tool", "input", "mode"?, "rules"?, "cwd"?}` from JSON; never raises.

    Return `{"decision", "source", "reason", "parts": [{"text", "decision", "rule"}], "place"?}`, the place for a shell
    command; source `invalid` for a record that does not describe a call.
    """
    try:
        request = _read(record, find_tool, defaults)
    except ConfigurationError as error:
        return {"decision": "deny", "source": "invalid", "reason": _clean(str(error)), "parts": []}
    decision = request.decide()
    return {
        "decision": decision.decision,
        "source": decision.source,
        "reason": _clean(decision.reason),
        "parts": [{"text": _clean(part.text), "decision": part.decision, "rule": part.rule} for part in decision.parts],
        **({"place": _PLACES[decision.place]} if request.is_command else {}),
    }


def explain_record(record: object, *, find_tool: FindTool, defaults: PermissionDefaults) -> str:
    """Explain how one call is decided: every rule and check in order, and what would change the decision.

    Takes the same record as `check_record`; never raises.
    """
    try:
        request = _read(record, find_tool, defaults)
    except ConfigurationError as error:
        return f"deny (invalid): {_clean(str(error))}"
    decision = request.decide()
    lines = [f"{decision.decision} ({decision.source}): {decision.reason}"]
    parts = [f"{part.decision}  {part.text!r}: {part.reason}" for part in decision.parts]
    lines += [f"Place: {_PLACE_WORDS[decision.place]}"] if request.is_command else []
    for title, items in (
        ("Parts:", parts),
        ("Paths it would touch:", decision.targets),
        ("Checked, in order:", decision.trace),
        ("What would change it:", _alternatives(request, decision)),
    ):
        lines += [title, *(f"  {item}" for item in items)] if items else []
    return _clean("\n".join(lines))


@dataclass(frozen=True, slots=True)
class _Request:
    """A parsed record."""

    tool: Tool
    arguments: JsonObject
    policy_with: Callable[..., PermissionPolicy]
    """Returns the policy for the record, also with other arguments than its own."""

    @property
    def is_command(self) -> bool:
        """True if the call runs a shell command."""
        return isinstance(subject_of(self.tool, self.arguments), CommandSubject)

    def decide(self, **changes: object) -> PermissionDecision:
        """Return the decision, also with other arguments of the policy."""
        return self.policy_with(**changes).check(self.tool, self.arguments)


class _UnknownTool(Tool):
    """Placeholder for a tool that is not available, judged by its name, and by its URL if it is `fetch`."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name=name, description="", input_schema={})

    def subject(self, arguments: JsonObject) -> Subject | None:
        url: object = arguments.get("url")
        return UrlSubject(url) if self.name == "fetch" and isinstance(url, str) else None

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise NotImplementedError


def _read(record: object, find_tool: FindTool, defaults: PermissionDefaults) -> _Request:
    """Parse a record."""
    if not is_object(record):
        raise ConfigurationError('a record must be an object such as {"tool":"bash","input":{"command":"ls"}}')
    name: object = record.get("tool")
    arguments: object = record.get("input")
    if not isinstance(name, str) or not name:
        raise ConfigurationError("`tool` must be the name of a tool")
    if not is_object(arguments):
        raise ConfigurationError("`input` must be an object with the tool's arguments")
    tool = find_tool(name) or _UnknownTool(name)
    if tool.arguments_model is not None:
        try:
            tool.arguments_model.model_validate(arguments)
        except (ValidationError, RecursionError) as error:
            raise ConfigurationError(f"`input` does not fit {name}: {_first_problem(error)}") from error
    cwd: object = record.get("cwd")
    rules: object = record.get("rules")
    policy_with = partial(
        PermissionPolicy,
        defaults.workspace if cwd is None else _workspace(cwd),
        layers=defaults.layers if rules is None else (_rules(rules, (name, *defaults.tool_names)),),
        mode=defaults.mode if record.get("mode") is None else _mode(record["mode"]),
        private_paths=defaults.private_paths,
        is_trusted=defaults.is_trusted or cwd is not None,
        trial=defaults.trial,
        secret_files=defaults.secret_files,
    )
    return _Request(tool, arguments, policy_with)


def _workspace(cwd: object) -> Path:
    if not isinstance(cwd, str) or not cwd.startswith("/") or "\x00" in cwd or not _is_text(cwd):
        raise ConfigurationError("`cwd` must be an absolute path")
    return Path(cwd)


def _mode(mode: object) -> PermissionMode:
    if not isinstance(mode, str) or mode not in {known.value for known in PermissionMode}:
        raise ConfigurationError(f"`mode` must be one of {', '.join(known.value for known in PermissionMode)}")
    return PermissionMode(mode)


def _rules(rules: object, tool_names: Collection[str]) -> list[Rule]:
    if not is_array(rules):
        raise ConfigurationError('`rules` must be a list such as [["allow","bash(ls:*)"]]')
    found: list[Rule] = []
    for number, rule in enumerate(rules, start=1):
        if not is_array(rule) or len(rule) != 2 or not all(isinstance(part, str) for part in rule):
            raise ConfigurationError(f"rule {number} must be a [verdict, rule] pair")
        parsed = Rule.parse(rule[0], rule[1])
        parsed.require_tool(tool_names)
        found.append(parsed)
    return found


def _first_problem(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _alternatives(request: _Request, decision: PermissionDecision) -> list[str]:
    """Return the modes and rules that would change the decision. Each is tried, none is guessed."""
    policy = request.policy_with()
    others = {mode: request.decide(mode=mode).decision for mode in PermissionMode if mode is not policy.mode}
    lines = [f"mode {mode.value}: {other}" for mode, other in others.items() if other != decision.decision]
    if decision.rule:
        lines.append(f"without the rule {decision.rule}: the rules after it, then the mode")
    rule = policy.grant_rule(request.tool, request.arguments)
    if rule:
        lines.extend(f'rule ["allow", "{line}"]: allow' for line in rule.split("\n"))
    elif decision.decision == "ask":
        lines.append("no single rule is narrow enough to offer; you can approve the call once")
    if decision.decision == "ask":
        trial = TrialFacts(setting="auto", backend="overlay")
        if request.is_command and request.decide(trial=trial).decision == "allow":
            lines.append("where a trial works: it runs there, and its changes are kept afterwards")
    if decision.source == "floor" and not rule:
        lines.append("no rule and no grant: the floor holds under all of them")
    return lines or ["nothing: the decision is the same in every mode"]


def _clean(text: str) -> str:
    """Return text with lone surrogates replaced, so that it can be encoded."""
    return text if _is_text(text) else text.encode("utf-8", "replace").decode("utf-8")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
