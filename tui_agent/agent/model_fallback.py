"""The model that answers the rest of a run while the chosen one is overloaded."""

from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.events import Warned
from tui_agent.protocol.provider import ModelProvider

from .agent_state import AgentState

FALLBACK_ATTEMPTS = 3
"""Attempts that an overloaded model gets if another one can answer."""

_UNAVAILABLE = 503


class ModelFallback:
    """The fallback of one run. The next run asks the chosen model again."""

    def __init__(self, agent: AgentState) -> None:
        self._agent = agent
        self._replaced: tuple[ModelProvider, ModelProvider] | None = None
        """The chosen model and the fallback in its place."""
        self._was_tried = False

    def takes_over(self, problem: ProviderError, attempt: int) -> bool:
        """Use the fallback from now on if the model stays overloaded; return False if it recovers or no other is set.

        Args:
            problem: the failure of the last attempt.
            attempt: the number of that attempt in its step, from 1.
        """
        agent, make = self._agent, self._agent.config.fallback_provider
        is_overloaded = problem.kind == "overloaded" or problem.status == _UNAVAILABLE
        if make is None or self._was_tried or not is_overloaded:
            return False
        if attempt < FALLBACK_ATTEMPTS and agent.config.retry.wait_before(attempt + 1, problem) is not None:
            return False
        self._was_tried = True
        try:
            other = make()
        except (ConfigurationError, ProviderError) as error:
            self._warn(f"The fallback model cannot be used: {error}")
            return False
        name = agent.provider.model.name
        if other.model.name == name:
            return False
        self._replaced, agent.provider = (agent.provider, other), other
        agent.publish_context_usage()
        self._warn(
            f"{name} is overloaded: {other.model.name} answers until this run ends, and the next message asks {name} "
            "again."
        )
        return True

    def end(self) -> None:
        """Use the chosen model again, unless the user chose another one meanwhile."""
        replaced, self._replaced = self._replaced, None
        if replaced is not None and self._agent.provider is replaced[1]:
            self._agent.provider = replaced[0]
            self._agent.publish_context_usage()

    def _warn(self, text: str) -> None:
        self._agent.publisher.publish(Warned(code="model_fallback", text=text))
