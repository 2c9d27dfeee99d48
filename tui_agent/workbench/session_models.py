"""The subject `models`: lists the models that a session can use, and changes its model and effort."""

import asyncio
import difflib
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Literal

from tui_agent.agent import AgentLoop
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.facts.page_facts import ModelFact
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.request_builder import EFFORTS
from tui_agent.settings import Locations, Settings

from .build_provider import ProviderBuilder
from .configuration.model_list import endpoint_name, endpoint_title, listed_models
from .configuration.named_endpoints import plugin_of
from .configuration.user_settings import store_setting
from .launch import Launch
from .opened_session import OpenedSession

BUDGETS: dict[str, int | None] = {"off": 0, **{name: limit for limit, name in EFFORTS}, "max": 49_152, "default": None}
"""Tokens of reasoning for each effort; None leaves it to the provider."""


async def ask_for_models(settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Ask the endpoint of the settings' model for its models; nothing without a key, or for the model of a plugin.

    Returns:
        Their names by the name of the endpoint, empty for the default one.

    Raises:
        ProviderError: it does not list them.
    """
    if plugin_of(settings, os.environ) is not None:
        return {}
    async with AsyncExitStack() as stack:
        try:
            provider = ProviderBuilder(stack).build(settings)
        except ConfigurationError:
            return {}
        if not isinstance(provider, AnthropicProvider):
            return {}
        return {endpoint_name(settings, settings.model): await provider.list_models()}


def open_models(launch: Launch, session: OpenedSession, loop: AgentLoop) -> "SessionModels":
    """Return the models, with those chosen in the session in force, unless `--model` names another one."""
    launch.providers.bus = session.bus
    options, settings = launch.options, launch.settings
    models = SessionModels(loop, settings, launch.providers.build, demo=options.demo)
    if not options.demo:
        model, effort = session.stored.chosen_model
        given = options.settings
        models.begin("" if "model" in given else model, (effort if "effort" not in given else "") or settings.effort)
    return models


class SessionModels:
    """Lists the models, and chooses model and effort of the next requests; a resumed session still has them."""

    def __init__(
        self, loop: AgentLoop, settings: Settings, make_provider: Callable[[Settings], ModelProvider], *, demo: bool
    ) -> None:
        """
        Args:
            make_provider: returns the provider for other settings; raises ConfigurationError if no key is set.
            demo: True for the offline model, which is the only one.
        """
        self.effort = "default"
        """The effort in force, a key of `BUDGETS`."""
        self._loop = loop
        self._settings = settings
        self._make_provider = make_provider
        self._demo = demo
        self._offered: dict[str, tuple[str, ...]] = {}
        """Names that endpoints list themselves; each endpoint is asked once a session."""
        self._asking = asyncio.Lock()
        self._commands: tuple[int, tuple[PromptCommand, ...]] | None = None

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The models as completions of `/model`, the present one first."""
        # Kept, because the menu asks with each key.
        if self._commands is None or self._commands[0] != len(self._offered):
            listed = sorted(self.list(), key=lambda model: not model.is_current)
            facts = ((f"model {one.name}", f"{one.provider} · {one.window_text} · {one.price}") for one in listed)
            self._commands = len(self._offered), tuple(PromptCommand(name, "", about) for name, about in facts)
        return self._commands[1]

    @property
    def model(self) -> str:
        """Name of the model in force."""
        return self._loop.provider.model.name

    @property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """Names of the models (`model`) and efforts (`effort`), the present model first; empty for the offline demo."""
        if self._demo:
            return {}
        models = dict.fromkeys((self.model, self._settings.model, *(one.name for one in self.list())))
        return {"model": tuple(models), "effort": tuple(BUDGETS)}

    def begin(self, model: str, effort: str) -> None:
        """Use what the session or the settings say, without a notice; an empty name or unknown effort changes nothing.

        Raises:
            ConfigurationError: no key is set, or the model's endpoint is unknown.
        """
        if model and model != self.model:
            self._loop.provider = self._make_provider(self._settings.model_copy(update={"model": model}))
        self._limit_effort(effort if effort in BUDGETS else self.effort)

    def use_settings(self, before: Settings, after: Settings) -> None:
        """Use model and effort of changed settings.

        Raises:
            ConfigurationError: no key is set for another model.
        """
        if self._demo:
            return
        if after.model != before.model:
            self._loop.provider = self._make_provider(after)
        # Only then: a change of the theme must not undo the effort that the user chose in the session.
        if (after.model, after.effort) != (before.model, before.effort):
            self._limit_effort(after.effort if after.effort != before.effort else self.effort)

    def list(self) -> tuple[ModelFact, ...]:
        """Return the models that the user can choose, grouped by endpoint; the offline demo has one.

        Those that only the endpoint lists are among them once it was asked.
        """
        model = self._loop.provider.model
        if self._demo:
            return (ModelFact("Built in", model.name, model.context_window, 0.0, 0.0, is_current=True),)
        return listed_models(self._settings, model, self._offered)

    async def ask_endpoint(self) -> str:
        """Ask the endpoint of the present model for its models, once a session, and return its name.

        Returns:
            The name of the endpoint; empty if it cannot be asked, as that of a plugin or of the offline demo.

        Raises:
            ProviderError: it does not list them; the configured ones are listed anyway.
            ConfigurationError: the endpoint of the environment is not a URL.
        """
        settings, provider = self._settings, self._loop.provider
        if self._demo or not isinstance(provider, AnthropicProvider):
            return ""
        endpoint = endpoint_name(settings, provider.model.name)
        # One request for a menu and a page that open at the same time.
        async with self._asking:
            if endpoint not in self._offered:
                self._offered[endpoint] = await provider.list_models()
        return endpoint_title(settings, endpoint)

    def choose(self, name: str, /) -> None:
        """Use another model from the next request on, for the rest of the session, and publish a notice.

        Args:
            name: its name, as in the settings.

        Raises:
            ConfigurationError: this is the offline demo, no key is set, or the model's endpoint is unknown.
        """
        if self._demo:
            raise ConfigurationError("The offline demo has one model. Start without --demo to choose another.")
        self._loop.provider = self._make_provider(self._settings.model_copy(update={"model": name}))
        # Another model may have another limit.
        self._limit_effort(self.effort)
        self._publish()

    def effort_text(self) -> str:
        """Return the effort in force, as a sentence.

        Raises:
            ConfigurationError: this is the offline demo.
        """
        self._refuse_demo()
        return f"The {self._effort_in_force()}"

    def choose_effort(self, name: str, /) -> str:
        """Change how much the model thinks from the next request on, for the rest of the session; return what applies.

        Raises:
            ConfigurationError: no effort has this name, the model cannot stop thinking, or this is the offline demo.
        """
        self._refuse_demo()
        if name not in BUDGETS:
            near = difflib.get_close_matches(name, BUDGETS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BUDGETS)}."
            raise ConfigurationError(f"Unknown effort {name}; {hint}")
        model = self._loop.provider.model
        if name == "off" and model.thinking == "always":
            raise ConfigurationError(f"{model.name} always thinks. The least effort is low.")
        if name not in ("off", "default") and model.thinking == "none":
            raise ConfigurationError(f"{model.name} does not think, as the settings say.")
        self._limit_effort(name)
        self._publish()
        return f"From the next request on, the {self._effort_in_force()}"

    def _refuse_demo(self) -> None:
        if self._demo:
            raise ConfigurationError("The offline demo does not think. Start without --demo to choose an effort.")

    def _effort_in_force(self) -> str:
        model, tokens = self._loop.provider.model, self._loop.config.thinking_tokens
        limit = f", up to {tokens:,} tokens" if tokens and model.thinking == "budget" else ""
        state = {"off": "is off", "default": "is left to the provider"}.get(self.effort, f"is {self.effort}{limit}")
        return f"model's effort {state}."

    async def keep_default(self, setting: Literal["model", "effort"], /) -> str:
        """Store the model or the effort in force in the user's settings, for new sessions, and return their file.

        Raises:
            ConfigurationError: the file cannot be written; nothing was changed.
        """
        file = Locations.of_user().user_file
        await asyncio.to_thread(store_setting, file, setting, self.model if setting == "model" else self.effort)
        return str(file)

    def _limit_effort(self, name: str) -> None:
        """Set the effort, within the longest output of the model, without a notice."""
        model, tokens = self._loop.provider.model, BUDGETS[name]
        if tokens and model.thinking == "budget":
            # The budget and the answer share the model's longest output.
            tokens = min(tokens, model.max_output_tokens // 2)
        self.effort = name
        self._loop.config.thinking_tokens = tokens

    def _publish(self) -> None:
        chosen = {"model": self.model, "effort": self.effort}
        text = f"model {self.model}, effort {self.effort}"
        self._loop.bus.publish(Noticed(code="model_chosen", text=text, context=chosen))
