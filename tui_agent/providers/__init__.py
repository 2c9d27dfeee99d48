"""Model providers: the Messages API through its SDK, a scripted model for tests, and the offline demo.

The demo (`tui_agent.providers.demo`) is not imported here, so that it costs nothing unless it is used.
"""

from .anthropic_provider import AnthropicProvider
from .model_catalog import DEMO_MODEL, model_info
from .scripted_provider import Call, Fail, Reply, Say, ScriptedProvider, Think, Wait, call, fail, reply

__all__ = [
    "DEMO_MODEL",
    "AnthropicProvider",
    "Call",
    "Fail",
    "Reply",
    "Say",
    "ScriptedProvider",
    "Think",
    "Wait",
    "call",
    "fail",
    "model_info",
    "reply",
]
