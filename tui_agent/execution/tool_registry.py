"""Registry of tools by name (S1-27)."""

import difflib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import Tool, ToolSpec
from tui_agent.protocol.value_checks import expect_items

from .tool_adapters import ToolLike, as_tool


class ToolRegistry:
    """Tools by their exact name, in the order they were added."""

    def __init__(self, tools: Iterable[ToolLike] | None = None) -> None:
        """
        Raises:
            ConfigurationError: an item is not a tool, two have the same name, or two work in different directories.
        """
        self._all: dict[str, Tool] = {}
        self._directory: tuple[Path, str] | None = None
        self.only: Callable[[str], bool] | None = None
        """Returns True for the names of the tools that may be used for now; the others are hidden. None: all may."""
        for tool in () if tools is None else expect_items("tools", tools, None, "a list of tools and functions"):
            self.add(tool)

    def add(self, tool: ToolLike) -> Tool:
        """Add a tool, or anything that `as_tool` takes, at any time (S4-82); return it as a `Tool`.

        Raises:
            ConfigurationError: it is not a tool, its name is taken (with two tools of one name every request would
                fail), or it works in another directory than the agent.
        """
        added = as_tool(tool)
        if added.name in self._all:
            raise ConfigurationError(f"there is already a tool named {added.name}; rename or remove one of them")
        self.expect_directory(added.working_directory, f"the tool {added.name}")
        self._all[added.name] = added
        return added

    @property
    def working_directory(self) -> Path | None:
        """Directory in which the tools work and the policy judges; None while no part has one."""
        return None if self._directory is None else self._directory[0]

    def expect_directory(self, directory: object, owner: str) -> None:
        """Check that a part of the agent works in the directory of the other parts; the first one determines it.

        Args:
            directory: the directory of this part; anything but a path has no effect.
            owner: the part, for the error.

        Raises:
            ConfigurationError: the directories differ: a call would be judged in one and executed in the other.
        """
        if not isinstance(directory, Path):
            return
        resolved = directory.resolve()
        if self._directory is None:
            self._directory = resolved, owner
        elif self._directory[0] != resolved:
            first, first_owner = self._directory
            both = f"{first} of {first_owner}, and {resolved} of {owner}"
            raise ConfigurationError(f"two working directories: {both}; pass the same one to both")

    def remove(self, name: str) -> None:
        """Remove a tool; calls of it that still wait are refused. An unknown name is ignored."""
        self._all.pop(name, None)

    def find(self, name: str) -> Tool | None:
        """Return the tool with exactly this name, or None (S2-16)."""
        return self._tools.get(name)

    def nearest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Return at most `count` names similar to `name`, ignoring case, closest first."""
        folded = {known.casefold(): known for known in self._tools}
        close = difflib.get_close_matches(name.casefold(), folded, n=count, cutoff=0.4)
        return tuple(folded[known] for known in close)

    @property
    def _tools(self) -> dict[str, Tool]:
        only = self.only
        return self._all if only is None else {name: tool for name, tool in self._all.items() if only(name)}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Specifications that the model receives, in order."""
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tools, in order."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools
