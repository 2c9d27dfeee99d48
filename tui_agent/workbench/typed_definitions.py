"""Skills and command files that the user runs by typing `/NAME`, and what an agent gets of all definitions."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop
from tui_agent.agent.command_run import NEVER_RAN
from tui_agent.agent.delegation import AgentProfile
from tui_agent.context import ContextLayer
from tui_agent.definitions.definition_text import Arguments, PromptTemplate, framed_output
from tui_agent.definitions.records import CommandFile, Definitions, Kind, Skill, is_allowed, shortened
from tui_agent.definitions.skill_tool import SkillTool, skill_catalogue, skill_text
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import RunEnded, ToolEnded
from tui_agent.protocol.facts.page_facts import DefinitionFact
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.prompt_references import RESERVED_COMMANDS, PromptCommand
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.providers.model_catalog import model_of_family
from tui_agent.settings import Settings

from .configuration.named_endpoints import target_of
from .sessions.side_requests import SMALL, SideRequests

if TYPE_CHECKING:
    from tui_agent.definitions.records import Found

CATALOGUE_LAYER = "skills"
CATALOGUE_PRIORITY = 62
"""Position of the list of skills: after the instruction files."""
BUSY = "The agent is working. This command needs a run of its own; it is kept, send it when the agent is done."
_TYPED = re.compile(r"/(\S+)(?:\s+(.*))?\Z", re.DOTALL)


def definitions_in_force(found: "Sequence[Found]") -> Definitions:
    """Return the definitions in force; no file replaces a built-in `/` command."""
    return Definitions.of(found, sorted(RESERVED_COMMANDS))


def catalogue_layers(definitions: Definitions) -> tuple[ContextLayer, ...]:
    """Return the list of skills as a layer of the system prompt, if there are some."""
    if not any(skill.for_model for skill in definitions.skills):
        return ()
    layer = ContextLayer(
        name=CATALOGUE_LAYER,
        content=skill_catalogue([skill for skill in definitions.skills if skill.for_model]),
        priority=CATALOGUE_PRIORITY,
        tags=("system",),
        owner="definitions",
    )
    return (layer,)


class NamedModels:
    """Models that definitions name, with a provider for each."""

    def __init__(self, loop: AgentLoop, settings: Settings, side: SideRequests) -> None:
        self._loop = loop
        self._settings = settings
        self._side = side

    def provider(self, name: str) -> ModelProvider | None:
        """Return the provider of a model; None for the agent's own, which an empty name means, and in the demo.

        Raises:
            ConfigurationError: no key is set, or the settings do not configure its endpoint.
        """
        if name == SMALL:
            return self._side.small()
        present = self._loop.provider.model.name
        full = model_of_family(name, present) if name else present
        if full == present or not self._side.has_others:
            return None
        endpoint, slash, _ = full.partition("/")
        if slash and endpoint not in self._settings.providers and target_of(self._side.settings_for(full), os.environ):
            # A file of a project may name it, so it must be an endpoint that the user uses.
            raise ConfigurationError(f"{full}: your settings have no [providers.{endpoint}]")
        return self._side.provider(full)


def give_definitions(loop: AgentLoop, definitions: Definitions, models: NamedModels) -> tuple[AgentProfile, ...]:
    """Give an agent the tool for skills, if there are some, and return the kinds of sub-agents."""
    if skills := [skill for skill in definitions.skills if skill.for_model]:
        loop.add_tool(SkillTool([_in_session(skill, loop) for skill in skills]))
    return tuple(
        AgentProfile(
            agent.name,
            agent.description,
            agent.body,
            None if agent.tools is None else partial(is_allowed, patterns=agent.tools),
            lambda model=agent.model: models.provider(model) or loop.provider,
            agent.max_steps,
        )
        for agent in definitions.agents
    )


class TypedDefinitions:
    """The command files and skills of one engine, as the user types them."""

    def __init__(self, loop: AgentLoop, definitions: Definitions, models: NamedModels) -> None:
        self._loop = loop
        self._definitions = definitions
        self._models = models
        skills = [skill for skill in definitions.skills if skill.for_user]
        by_name: dict[str, Skill | CommandFile] = {skill.folder.name: skill for skill in skills}
        by_name |= {skill.name: skill for skill in skills}
        self._by_name = {name: skill for name, skill in by_name.items() if name not in RESERVED_COMMANDS}
        self._by_name |= {command.name: command for command in definitions.commands}

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The `/` commands for menus, sorted by name."""
        return tuple(_command(name, one) for name, one in sorted(self._by_name.items()) if name == one.name)

    def facts(self) -> tuple[DefinitionFact, ...]:
        """Return all definitions for a page, those in force first."""
        found = self._definitions
        used = (*found.skills, *found.commands, *found.agents)
        return (
            *(DefinitionFact(_label(one.kind), one.name, one.description, one.source.shown) for one in used),
            *(DefinitionFact(_label(one.kind), one.name, problem=note) for one in used for note in one.source.notes),
            *(DefinitionFact(_label(one.kind), one.name, problem=one.text) for one in found.problems),
        )

    def knows(self, text: str) -> bool:
        """True if a text runs a command file or loads a skill."""
        return self._find(text) is not None

    def needs_own_run(self, text: str) -> bool:
        """True if a text cannot be a message to a run: it has commands to run, other tools, or another model."""
        one, _ = self._find(text) or (None, None)
        if one is None:
            return False
        return bool(one.tools is not None or one.model or PromptTemplate.of(one.body).commands)

    def expanded(self, text: str) -> str:
        """Return the message for a text that needs no run of its own; other texts as they are. Reads a skill's folder.

        Raises:
            ConfigurationError: it needs a run of its own.
        """
        if self.needs_own_run(text):
            raise ConfigurationError(BUSY)
        found = self._find(text)
        if found is None:
            return text
        return _prompt_of(*found)

    async def run(
        self,
        text: str,
        message: Callable[[str], str | UserMessage] | None = None,
        more_tools: Sequence[str] = (),
    ) -> AgentRunReport | None:
        """Run a text that `knows` to its end.

        Args:
            message: makes the message to send from the prompt; None: the prompt as it is.
            more_tools: names of tools that the run may use besides those that the file lists.

        Returns:
            The report; None if one of the command's shell commands was cancelled, which ends all of it.

        Raises:
            ConfigurationError: the model that it names cannot be used, or the command has no text.
            AlreadyRunningError: the agent is running.
        """
        found = self._find(text)
        if found is None:
            prompt, tools, provider = text, None, None
        else:
            one, arguments = found
            provider, tools = self._models.provider(one.model), one.tools
            outputs: list[str] = []
            for shell in PromptTemplate.of(one.body).commands_with(arguments):
                output = await self._output(shell, one.name)
                if output is None:
                    return None
                outputs.append(output)
            prompt = _prompt_of(one, arguments, outputs)
        if not prompt.strip():
            raise ConfigurationError("the command has no text")
        return await self._loop.run(
            message(prompt) if message is not None else prompt,
            allowed_tools=None if tools is None else lambda name: name in more_tools or is_allowed(name, tools),
            provider=provider,
        )

    async def _output(self, shell: str, name: str) -> str | None:
        """Run a shell command as a call of the user and return its output for the prompt; None if it was cancelled."""
        with self._loop.bus.subscribe() as subscription:
            result = await self._loop.run_command("bash", {"command": shell}, f"/{name}: {shell}", shared=False)
            events = [envelope.event for envelope in subscription.drain()]
        if any(isinstance(event, RunEnded) and event.reason == "aborted" for event in events):
            return None
        ran = not any(isinstance(event, ToolEnded) and event.status in NEVER_RAN for event in events)
        return framed_output(shell, result.text if ran else f"(This command was not run: {result.text})")

    def _find(self, text: str) -> tuple[Skill | CommandFile, Arguments] | None:
        match = _TYPED.match(text.strip())
        found = self._by_name.get(match[1]) if match is not None else None
        if found is None or match is None:
            return None
        return found, Arguments((match[2] or "").strip(), places=_places(found, self._loop))


def _places(one: Skill | CommandFile, loop: AgentLoop) -> dict[str, str]:
    """Return the values of `PLACES`."""
    values = {
        "CLAUDE_SESSION_ID": loop.config.session_id,
        "CLAUDE_PROJECT_DIR": os.path.realpath(loop.config.workspace or "."),
    }
    return values | ({"CLAUDE_SKILL_DIR": str(one.folder)} if isinstance(one, Skill) else {})


def _in_session(skill: Skill, loop: AgentLoop) -> Skill:
    """Return a skill that the model loads, with the values of its placeholders."""
    body = skill.body
    for name, value in _places(skill, loop).items():
        body = body.replace(f"${{{name}}}", value)
    return replace(skill, body=body)


def _prompt_of(one: Skill | CommandFile, arguments: Arguments, outputs: Sequence[str] = ()) -> str:
    """Return the message for a command file or a skill that the user typed. Reads a skill's folder."""
    prompt = PromptTemplate.of(one.body).prompt(arguments, outputs)
    return prompt if isinstance(one, CommandFile) else f"Use this skill.\n\n{skill_text(replace(one, body=prompt))}"


def _label(kind: Kind) -> str:
    return "sub-agent" if kind == "agent" else kind


def _command(name: str, one: Skill | CommandFile) -> PromptCommand:
    help_text = shortened(one.description) or f"Run {Path(one.source.shown).name}"
    hint = one.hint or ("[task]" if isinstance(one, Skill) else "")
    return PromptCommand(name, hint, help_text)
