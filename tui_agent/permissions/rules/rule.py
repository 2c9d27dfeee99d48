"""A permission rule: a verdict, a tool, and a pattern for the tool's calls."""

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, cast, get_args

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import Verdict
from tui_agent.protocol.value_checks import wrong_kind

Intent = Literal["read", "write", "search"]
"""Reads of a path by a call."""

_RULE = re.compile(r"\s*([\w*][\w.*:-]*)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_COVERS = {"edit": frozenset(("edit", "write")), "read": frozenset(("read", "grep", "glob", "lookup"))}
"""Other tools that a tool's rules cover."""
_INTENTS: dict[str, frozenset[Intent]] = {
    "edit": frozenset(("write",)),
    "write": frozenset(("write",)),
    "read": frozenset(("read", "search")),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as written."""

    verdict: Verdict
    tool: str
    """A tool's name; `*` matches any text."""
    pattern: str | None
    """Pattern for the call's subject; None for every call."""
    text: str
    """Text as written, without the verdict."""
    origin: str = ""
    """Source of the rule, such as `config.toml:12`."""

    @classmethod
    def parse(cls, verdict: str, text: str, origin: str = "") -> "Rule":
        """Parse `tool` or `tool(pattern)`.

        Raises:
            ConfigurationError: the verdict or the text has another form.
        """
        if verdict not in get_args(Verdict):
            raise ConfigurationError(f"{_at(origin)}a rule must say allow, ask or deny, not {verdict!r}")
        match = _RULE.match(text)
        if match is None:
            raise ConfigurationError(f"{_at(origin)}a rule must be `tool` or `tool(pattern)`, not {text!r}")
        tool, pattern = match.group(1), match.group(2)
        if pattern is not None and (not pattern.strip() or "\x00" in pattern):
            raise ConfigurationError(f"{_at(origin)}the pattern of {text!r} is empty; write `{tool}` for every call")
        if tool == "fetch" and pattern is not None and not re.match(r"domain:[^\s/:]+\Z", pattern.strip()):
            raise ConfigurationError(f"{_at(origin)}a pattern for fetch must be `domain:HOST`, not {pattern!r}")
        return cls(cast(Verdict, verdict), tool, pattern, text.strip(), origin)

    @classmethod
    def of(cls, rule: "RuleLike", origin: str = "") -> "Rule":
        """Return a `Rule` from one, from `"allow bash(make:*)"` or from `("allow", "bash(make:*)")`.

        Raises:
            ConfigurationError: it has another form; the text names the right one.
        """
        if isinstance(rule, Rule):
            return rule
        if isinstance(rule, str):
            verdict, _, text = rule.strip().partition(" ")
        elif isinstance(rule, list | tuple) and len(rule) == 2 and all(isinstance(part, str) for part in rule):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may be untyped
            verdict, text = rule
        else:
            wanted = 'a text such as "allow bash(ls:*)", a pair such as ("allow", "bash(ls:*)") or a Rule'
            raise wrong_kind(f"{_at(origin)}a rule", wanted, cast(object, rule))
        if verdict not in get_args(Verdict):
            written = f"{verdict} {text}".strip()
            near = difflib.get_close_matches(verdict.lower().rstrip(":"), get_args(Verdict), 1)
            right = f"{near[0]} {text}" if near else f"allow {written}"
            raise ConfigurationError(
                f"{_at(origin)}a rule must begin with allow, ask or deny, and {written!r} does not; "
                f"did you mean {right.strip()!r}?"
            )
        return cls.parse(verdict, text, origin)

    @property
    def is_unbounded(self) -> bool:
        """True if the rule covers every call of its tool."""
        return self.pattern is None or self.pattern.strip() in ("*", ":*")

    @property
    def cited(self) -> str:
        """The rule as written, with its source."""
        return f"{self.text} ({self.origin})" if self.origin else self.text

    @property
    def shown(self) -> str:
        """The rule with its verdict and its source, for display."""
        return f"{self.verdict} {self.cited}"

    def require_tool(self, names: Collection[str]) -> None:
        """Check that the rule can apply to a call: a deny rule that never applies is worse than none.

        Rules may also name `mcp__SERVER__TOOL` and names with a `*`.

        Raises:
            ConfigurationError: no tool has the rule's name; the text has the closest one.
        """
        if self.tool in names or "*" in self.tool or self.tool.startswith("mcp__"):
            return
        near = difflib.get_close_matches(self.tool, names, n=1)
        known = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise ConfigurationError(f"{_at(self.origin)}the rule {self.text!r} names no tool; {known}")

    def applies_to(self, tool: str) -> bool:
        """True if the rule covers a tool of this name."""
        if "*" in self.tool:
            return fnmatchcase(tool, self.tool)
        return self.tool == tool or tool in _COVERS.get(self.tool, ())

    def applies_to_path(self, tool: str | None, intent: Intent) -> bool:
        """True if the rule covers this use of a path by `tool`.

        A rule that forbids covers every tool with that intent, an `allow` only the tools of its name. None stands for
        a shell command's effect, which only rules for the file tools cover.
        """
        by_intent = intent in _INTENTS.get(self.tool, ())
        if tool is None:
            return by_intent
        return self.applies_to(tool) or (by_intent and self.verdict != "allow")


RuleLike: TypeAlias = Rule | str | Sequence[str]


def _at(origin: str) -> str:
    return f"{origin}: " if origin else ""
