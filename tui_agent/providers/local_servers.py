"""Search for model servers on the usual ports of this machine, made only when the user asks for it."""

import http.client
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject, is_array, is_object

from .model_catalog import Profile, shipped_profiles

SECONDS = 1.0
_LARGEST_ANSWER = 1024 * 1024
_LONGEST_NAME = 100
_MOST_MODELS = 50


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server that answers."""

    profile: Profile
    address: str
    models: tuple[str, ...]
    needs_address: bool = False
    """True if its profile has another address."""


def found_servers(ports: Iterable[int] | None = None) -> tuple[LocalServer, ...]:
    """Return the servers that answer on ports of this machine, by default those of the profiles. Blocks for seconds."""
    usual = dict.fromkeys(profile.port for profile in shipped_profiles().values() if profile.port is not None)
    asked = list(usual if ports is None else ports)
    with ThreadPoolExecutor(max(len(asked), 1)) as threads:
        return tuple(server for server in threads.map(_server_at, asked) if server is not None)


def _server_at(port: int) -> LocalServer | None:
    """Return the server on a port; None if none answers, or it is none of the known ones."""
    listed, product = _get(port, "/v1/models")
    if listed is None:
        return None
    name = "ollama" if _get(port, "/api/version")[0] is not None else _name_of(listed, product, port)
    profile = shipped_profiles().get(name or "")
    if profile is None:
        return None
    return LocalServer(profile, f"http://localhost:{port}", _names(listed), needs_address=port != profile.port)


def _name_of(listed: object, product: str, port: int) -> str | None:
    """Return the profile of a server by what it says of itself, else by its port."""
    said = {product.casefold(), *(str(model.get("owned_by", "")).casefold() for model in _models(listed))}
    for name, words in _SAYS.items():
        if any(word in text for text in said for word in words):
            return name
    if _get(port, "/api/v0/models")[0] is not None:
        return "lmstudio"
    if _get(port, "/health/liveliness")[0] == "I'm alive!":
        return "litellm"
    return next((name for name, profile in shipped_profiles().items() if profile.port == port), None)


_SAYS = {"llamacpp": ("llama.cpp", "llamacpp"), "vllm": ("vllm",), "sglang": ("sglang",)}
"""Words of a server's `Server` header or of the owner of its models."""


def _models(listed: object) -> list[JsonObject]:
    models = listed.get("data") if is_object(listed) else None
    return [model for model in models if is_object(model)] if is_array(models) else []


def _names(listed: object) -> tuple[str, ...]:
    found = [model.get("id") for model in _models(listed)]
    names = [name[:_LONGEST_NAME] for name in found if isinstance(name, str) and name and name.isprintable()]
    return tuple(names[:_MOST_MODELS])


def _get(port: int, path: str) -> tuple[object, str]:
    """Return the JSON of an answer and the name of the product; None without a good answer.

    Uses no proxy, sends no key and follows no redirect.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            return None, ""
        value: object = json.loads(answer.read(_LARGEST_ANSWER))
        return value, answer.headers.get("Server", "")
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return None, ""
    finally:
        connection.close()
