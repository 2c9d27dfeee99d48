"""The subject `rules`: lists, adds and removes a session's permission rules, and lists its tools."""

import asyncio
from collections.abc import Sequence
from copy import copy
from pathlib import Path

from tui_agent.agent import AgentLoop
from tui_agent.execution.contained_calls import Crash, try_call
from tui_agent.permissions import SECRET_FILES, PermissionPolicy, Rule
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.facts.page_facts import RuleFact, RulesInForce, ToolFact
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionMode, Verdict
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import TrialFacts
from tui_agent.settings import Locations
from tui_agent.trial.trials import Trials

from .built_in_tools import tool_finder
from .configuration.permission_rules import RULE_TOOL_NAMES, RuleImpact, RuleStore, kept_folders
from .launch import Launch
from .opened_session import OpenedSession


class SessionRules:
    """Lists the rules of the policy, and adds and removes rules of the session.

    Each change is published as a notice, from which a resumed session restores it.
    """

    def __init__(self, loop: AgentLoop, policy: PermissionPolicy, *, strictest_wins: bool) -> None:
        self._loop = loop
        self._policy = policy
        self._strictest_wins = strictest_wins

    def in_force(self) -> RulesInForce:
        """Return the rules in the order in which they are checked."""
        return RulesInForce(
            rules=tuple(RuleFact(rule.verdict, rule.text, rule.origin, is_own) for rule, is_own in self._rules()),
            strictest_wins=self._strictest_wins,
            sandbox=trial_fact(self._policy.trial),
            folders=tuple(map(str, self._policy.folders)),
        )

    def add(self, rule: str, /) -> str:
        """Add a rule for the session, and judge waiting calls again.

        Args:
            rule: a verdict and a rule, such as `deny bash(rm *)`.

        Returns:
            Empty if it was added; else the reason: it is not a rule, names an unknown tool, or is in force already.
        """
        try:
            parsed = Rule.of(rule.strip())
            parsed.require_tool((*RULE_TOOL_NAMES, *(tool.name for tool in self._loop.tools)))
            added = self._policy.add_session_rule(parsed.verdict, parsed.text)
        except ConfigurationError as error:
            return str(error)
        if added is None:
            return f"{parsed.verdict} {parsed.text} is in force already."
        text = f"Added for this session: {added.verdict} {added.text}."
        self._publish(Noticed(code="session_rule_added", text=text, context=_context(added)))
        return ""

    def remove(self, verdict: Verdict, text: str, /) -> bool:
        """Remove a rule that was added in this session, and judge waiting calls again; False if it is unknown."""
        if not self._policy.remove_session_rule(verdict, text):
            return False
        notice = f"Removed from this session: {verdict} {text}."
        removed = Rule.parse(verdict, text)
        self._publish(Noticed(code="session_rule_removed", text=notice, context=_context(removed)))
        return True

    def narrowest(self, tool: str, arguments: JsonObject) -> str:
        """Return the narrowest rules that would allow a call, a line each; empty if none can be stored for it."""
        found = next((one for one in self._loop.tools if one.name == tool), None)
        # Rules are offered for calls that ask.
        asking = copy(self._policy)
        asking.set_mode(PermissionMode.ASK)
        choices = try_call(asking.grant_choices, found, arguments) if found is not None else ()
        return "" if isinstance(choices, Crash) or not choices else choices[0]

    def tools(self) -> tuple[ToolFact, ...]:
        """Return the tools that the model can call, with the rules that apply to some of their calls."""
        rules = [rule for rule, _ in self._rules()]
        return tuple(_tool_fact(tool, rules) for tool in self._loop.tools)

    def _rules(self) -> list[tuple[Rule, bool]]:
        """Return each rule in the order in which it is checked, with True if it ends with the session."""
        own = self._policy.session_rules
        # Ask and deny rules of the session are among the policy's rules; grants are checked after all of them.
        found = [(rule, rule in own) for rule in self._policy.rules]
        grants = [(rule, True) for rule in own if rule.verdict == "allow"]
        return [*found, *grants, *((rule, False) for rule in self._policy.secret_rules)]

    def _publish(self, notice: Noticed) -> None:
        self._loop.bus.publish(notice)
        self._loop.gate.reconsider()


async def open_policy(
    launch: Launch,
    session: OpenedSession,
    trials: Trials,
    given: Sequence[Path],
    *,
    is_trusted: bool,
) -> PermissionPolicy:
    """Return the policy that the settings ask for, with the rules and folders that the session still has.

    Publishes notices that name these.

    Args:
        given: the folders of the command line, which a resumed session had not.
        is_trusted: True if the user trusts everything that the workspace brings.
    """
    root, chosen, temporary = launch.cwd, launch.settings.permissions, trials.temporary
    kept = await asyncio.to_thread(kept_folders, session.bus, root, given, session.stored.folders(root))
    policy = PermissionPolicy(
        root,
        layers=launch.rules,
        mode=chosen.mode,
        resolution=chosen.rule_resolution,
        secret_files=SECRET_FILES if chosen.secret_files is None else chosen.secret_files,
        private_paths=(launch.locations.config_dir, launch.locations.state_dir),
        readable_paths=(session.archive,) if temporary is None else (session.archive, temporary),
        folders=(*launch.options.folders, *kept),
        store_grant=RuleStore(launch.locations, root).store,
        is_trusted=is_trusted,
        trial=trials.facts,
    )
    session.restore_rules(policy, root)
    return policy


def grants_of(loop: AgentLoop, policy: PermissionPolicy, root: Path) -> RuleImpact:
    """Return the effects of rules that an approval would store."""
    find = tool_finder(root, loop.tools)
    return RuleImpact(loop, policy, RuleStore(Locations.of_user(), root), find)


def trial_fact(facts: TrialFacts) -> str:
    """Return in words where commands run, and why no better place works."""
    if facts.setting == "off":
        return "off: every command runs with your own rights"
    better = f". A trial would need: {facts.problem}" if facts.problem else ""
    network = "with network" if facts.network else "no network"
    if facts.place == "trial":
        return f"a command runs in a trial first, and you keep or discard what it changed; {network}"
    if facts.place == "read_only":
        return f"commands run behind walls and change nothing, {network}{better}"
    outcome = "no command runs" if facts.place == "nowhere" else "commands ask before they run"
    return f"not available, so {outcome}: {facts.problem or 'no backend works'}"


def _context(rule: Rule) -> dict[str, str]:
    return {"verdict": rule.verdict, "rule": rule.text}


def _tool_fact(tool: Tool, rules: list[Rule]) -> ToolFact:
    lines = tool.spec.description.strip().splitlines()
    return ToolFact(
        name=tool.name,
        description=lines[0] if lines else "",
        is_read_only=try_call(tool.is_read_only, {}) is True,
        is_parallel=try_call(tool.is_concurrency_safe, {}) is True,
        rules=tuple(f"{rule.verdict} {rule.text}" for rule in rules if rule.applies_to(tool.name)),
    )
