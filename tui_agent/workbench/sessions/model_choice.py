"""The model and the effort that the user chose in a session: they last as long as the session, also when it resumes."""

from collections.abc import Callable

from tui_agent.agent import AgentLoop
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers.request_builder import EFFORTS
from tui_agent.settings import Settings

BUDGETS: dict[str, int | None] = {"off": 0, **{name: limit for limit, name in EFFORTS}, "max": 49_152, "default": None}
"""Tokens of reasoning for each effort; None leaves it to the provider."""


class ModelChoice:
    """Model and effort of the next requests of one engine."""

    def __init__(
        self, loop: AgentLoop, bus: EventBus, settings: Settings, make_provider: Callable[[Settings], ModelProvider]
    ) -> None:
        self._loop = loop
        self._bus = bus
        self._settings = settings
        self._make_provider = make_provider
        self.effort = "default"
        """Effort in force, a key of `BUDGETS`."""

    @property
    def model(self) -> str:
        """Name of the model in force."""
        return self._loop.provider.model.name

    def begin(self, model: str, effort: str) -> None:
        """Use what the settings or the session say, without a notice; an empty name changes nothing.

        Raises:
            ConfigurationError: no key is set.
        """
        if model and model != self.model:
            self._loop.provider = self._make_provider(self._settings.model_copy(update={"model": model}))
        self.limit_effort(effort if effort in BUDGETS else self.effort)

    def use_model(self, name: str) -> None:
        """Use another model of the same endpoint from the next request on.

        Raises:
            ConfigurationError: no key is set.
        """
        self._loop.provider = self._make_provider(self._settings.model_copy(update={"model": name}))
        # Another model may have another limit.
        self.limit_effort(self.effort)
        self._publish()

    def use_effort(self, name: str) -> None:
        """Let the model think more or less from the next request on."""
        self.limit_effort(name)
        self._publish()

    def limit_effort(self, name: str) -> None:
        """Set the effort, within the longest output of the model, without a notice."""
        model, tokens = self._loop.provider.model, BUDGETS[name]
        if tokens and model.thinking == "budget":
            # The budget and the answer share the model's longest output.
            tokens = min(tokens, model.max_output_tokens // 2)
        self.effort = name
        self._loop.config.thinking_tokens = tokens

    def _publish(self) -> None:
        chosen = {"model": self.model, "effort": self.effort}
        self._bus.publish(
            Noticed(code="model_chosen", text=f"model {self.model}, effort {self.effort}", context=chosen)
        )
