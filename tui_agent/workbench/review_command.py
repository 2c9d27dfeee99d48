"""The `/review` command beside skills and command files: its prompt is that of a file `review.md`, else built in."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop, AgentTool
from tui_agent.context import ContextLayer
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.facts.page_facts import REPORT_TOOL
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.settings import Settings
from tui_agent.tools import PresentPlanTool

from .configuration.found_files import own_definitions
from .configuration.project_trust import FolderTrust
from .launch import Launch
from .sessions.side_requests import SideRequests

if TYPE_CHECKING:
    # Imported at run time only by a program that has such files.
    from tui_agent.definitions.records import Definitions
    from tui_agent.protocol.facts.page_facts import DefinitionFact

    from .typed_definitions import TypedDefinitions

REVIEW = PromptCommand("review", "[BRANCH or COMMIT]", "Review the work tree, a branch or a commit")
BUSY = "The agent is working. A review needs a run of its own; it is kept, send it when the agent is done."

_TYPED = re.compile(r"/review(?:\s+(.*))?\Z", re.DOTALL)
_CHANGING_TOOLS = ("write", "edit")
_REPORT = f"\n\nReport what you find with the tool `{REPORT_TOOL}`, once, at the end."
_PROMPT = """\
Review {subject}. Change nothing.

{how}

Read the changed code in its files, and what calls it, before you judge it. Look for, in this order: wrong results and \
lost data, unsafe input and leaked secrets, missing errors and clean-up, races, broken callers, tests that are missing \
for what can break, and names or structure that will mislead the next reader. Verify each finding in the code; leave \
out what you cannot show, what a linter says, and matters of taste.

Report all findings with the tool `report_findings`, once, at the end: file, line, severity, and in the text the \
problem in one sentence, why it matters, and how to fix it. If there are none, report an empty list. Then say in one \
or two sentences how good the change is."""
_WORK_TREE = (
    "the changes of the work tree that are not committed",
    "`git status --short` and `git diff HEAD` show them; new files that git does not know belong to it. If nothing "
    "differs from HEAD, review the last commit (`git show HEAD`) and say so. Without git, review the files that this "
    "session has changed.",
)
_NAMED = (
    "`{name}`",
    "It is the name of a branch, a tag, a commit, a range of commits, or a path; find out with git. Of a branch, "
    "review what it adds to the branch it came from (`git diff $(git merge-base HEAD {name})...{name}`; if it is the "
    "present branch, against the main one). Of a commit, `git show {name}`. If it is none of these, say so and stop.",
)
_NAME = re.compile(r"[\w./@{}^~:+-]+")


class PromptDefinitions:
    """Commands that the user runs by typing `/NAME`: skills and command files, and `/review`."""

    def __init__(self, loop: AgentLoop, files: "TypedDefinitions | None") -> None:
        self._loop = loop
        self._files = files

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The `/` commands for menus, sorted by name."""
        own = () if self._files is None else self._files.commands
        return own if self._has_file else tuple(sorted((*own, REVIEW), key=lambda command: command.slash))

    def facts(self) -> "tuple[DefinitionFact, ...]":
        """Return all definitions of files for a page, those in force first."""
        return () if self._files is None else self._files.facts()

    def knows(self, text: str) -> bool:
        """True if a text runs a command or loads a skill."""
        return _is_review(text) or (self._files is not None and self._files.knows(text))

    def asks_what_to_review(self, text: str) -> bool:
        """True if a text is the built-in `/review` without an argument."""
        return text.strip() == f"/{REVIEW.slash}" and not self._has_file

    def needs_own_run(self, text: str) -> bool:
        """True if a text cannot be a message to a run: it has commands to run, other tools, or another model."""
        return _is_review(text) or (self._files is not None and self._files.needs_own_run(text))

    def expanded(self, text: str) -> str:
        """Return the message for a text that needs no run of its own; other texts as they are.

        Raises:
            ConfigurationError: it needs a run of its own.
        """
        if _is_review(text):
            raise ConfigurationError(BUSY)
        return text if self._files is None else self._files.expanded(text)

    async def run(self, text: str, message: Callable[[str], str | UserMessage] | None = None) -> AgentRunReport | None:
        """Run a text that `knows` to its end.

        Returns:
            The report; None if one of the command's shell commands was cancelled, which ends all of it.

        Raises:
            ConfigurationError: the model that it names cannot be used, or the command has no text.
            AlreadyRunningError: the agent is running.
        """
        if not _is_review(text):
            return None if self._files is None else await self._files.run(text, message)
        self._offer_report()
        if self._files is not None and self._has_file:
            return await self._files.run(text, lambda prompt: _as_message(prompt + _REPORT, message), (REPORT_TOOL,))
        match = _TYPED.match(text.strip())
        prompt = review_prompt((match[1] or "").strip() if match is not None else "")
        return await self._loop.run(_as_message(prompt, message), allowed_tools=_may_review)

    @property
    def _has_file(self) -> bool:
        return self._files is not None and self._files.knows(f"/{REVIEW.slash}")

    def _offer_report(self) -> None:
        """Give the agent the tool for findings, from the first review on: no other request pays for it."""
        from tui_agent.tools.findings_tool import FindingsTool

        if all(tool.name != REPORT_TOOL for tool in self._loop.tools):
            self._loop.add_tool(FindingsTool())


def open_definitions(
    loop: AgentLoop, found: "Definitions | None", settings: Settings, side: SideRequests
) -> PromptDefinitions:
    """Give the agent its tools for skills, sub-agents and plans, and return the definitions as the user types them."""
    typed, profiles = None, ()
    if found is not None:
        from .typed_definitions import NamedModels, TypedDefinitions, give_definitions

        models = NamedModels(loop, settings, side)
        typed, profiles = TypedDefinitions(loop, found, models), give_definitions(loop, found, models)
    loop.add_tool(AgentTool(loop, profiles))
    loop.add_tool(PresentPlanTool(lambda: loop.policy.mode, partial(loop.set_mode, by="user")))
    return PromptDefinitions(loop, typed)


def find_definitions(launch: Launch, folder: FolderTrust) -> "tuple[Definitions | None, tuple[ContextLayer, ...]]":
    """Return the skills, commands and sub-agents in force, and the instructions with the list of skills. Blocks.

    None in place of the former if there are no such files.
    """
    found = (*(() if launch.options.extras.is_safe else own_definitions(launch.locations)), *folder.definitions)
    if not found:
        return None, folder.instructions
    from .typed_definitions import catalogue_layers, definitions_in_force

    definitions = definitions_in_force(found)
    return definitions, (*folder.instructions, *catalogue_layers(definitions))


def review_prompt(argument: str) -> str:
    """Return the built-in prompt for a work tree, or for what an argument names."""
    if not argument:
        subject, how = _WORK_TREE
    elif _NAME.fullmatch(argument) and not argument.startswith("-"):
        subject, how = (part.format(name=argument) for part in _NAMED)
    else:
        subject, how = f"this: {argument}", _WORK_TREE[1]
    return _PROMPT.format(subject=subject, how=how)


def _may_review(tool: str) -> bool:
    return tool not in _CHANGING_TOOLS


def _is_review(text: str) -> bool:
    return _TYPED.match(text.strip()) is not None


def _as_message(prompt: str, message: Callable[[str], str | UserMessage] | None) -> str | UserMessage:
    return prompt if message is None else message(prompt)
