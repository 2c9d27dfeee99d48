"""A rule service without an engine, for tests of the pages about rules."""

from dataclasses import replace

from tui_agent.permissions import Rule
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.page_facts import RuleFact, RulesInForce, ToolFact
from tui_agent.protocol.permissions import Verdict

SETTINGS = (
    RuleFact("deny", "bash(git push:*)", "/home/you/.config/tui-agent/config.toml:12"),
    RuleFact("allow", "bash(git status:*)", "/home/you/.config/tui-agent/config.toml:13"),
    RuleFact("ask", "edit(docs/**)", ".tui-agent/config.toml:4"),
    RuleFact("allow", "bash(pytest:*)", "--allow"),
)
TOOLS = (
    ToolFact("read", "Read a text file, a picture, or list a directory.", True, True),
    ToolFact("edit", "Replace text in a file.", False, False, ("ask edit(docs/**)",)),
    ToolFact("bash", "Run a shell command.", False, False, ("deny bash(git push:*)", "allow bash(pytest:*)")),
)


class FakeRules:
    """Keeps rules in memory; implements `RuleService`."""

    def __init__(self, *own: RuleFact) -> None:
        self.facts = RulesInForce((*SETTINGS, *own))

    def in_force(self) -> RulesInForce:
        return self.facts

    def add(self, rule: str) -> str:
        try:
            parsed = Rule.of(rule)
        except ConfigurationError as error:
            return str(error)
        fact = RuleFact(parsed.verdict, parsed.text, "granted for the session", is_session=True)
        self.facts = replace(self.facts, rules=(*self.facts.rules, fact))
        return ""

    def remove(self, verdict: Verdict, text: str) -> bool:
        kept = tuple(
            fact for fact in self.facts.rules if not (fact.is_session and (fact.verdict, fact.text) == (verdict, text))
        )
        removed = kept != self.facts.rules
        self.facts = replace(self.facts, rules=kept)
        return removed

    def tools(self) -> tuple[ToolFact, ...]:
        return TOOLS
