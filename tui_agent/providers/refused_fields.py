"""Optional fields of a request that an endpoint refuses, found in the text of its error.

Servers word it in many ways: `thinking: Extra inputs are not permitted`, `Unrecognized key(s) in object: 'thinking'`,
`"qwen" does not support thinking`, `json: cannot unmarshal array into Go struct field …system of type string`.
"""

import json
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import is_array, is_object

VERSION_FIELD = "anthropic-version"
"""The header with the version of the API, by the name it has among the fields."""
BETA_FIELD = "anthropic-beta"
SYSTEM_BLOCKS = "system_blocks"
"""The system prompt as a list of blocks; without it, it is one text."""
ANSWER_FORMAT = "output_config.format"
"""The JSON schema of the answer."""
IS_ERROR = "is_error"
CACHE_CONTROL = "cache_control"
CACHE_LIFETIME = "cache_lifetime"
"""The lifetime in `cache_control`."""

LONGEST_TEXT = 100_000
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that the server calls invalid."""

    failure: ProviderError
    body: object


_REFUSAL = re.compile(
    r"extra (?:inputs|fields|field)|extra_forbidden|additional ?propert|un(?:known|expected|supported)"
    r"|un(?:recogni[sz]ed|permitted)"
    r"|not (?:currently )?(?:supported|permitted|allowed|recogni[sz]ed|implemented|available|exist"
    r"|a (?:valid|known) \w+)"
    r"|(?:does|do|did)(?: not|n.t) (?:support|accept|allow)|deprecated|cannot unmarshal"
    r"|(?:should|must) be (?:a |of type )?(?:valid )?string|expected (?:a |type )?string|type must be string"
    r"|string_type|invalid[ _](?:type|union|enum|literal|option|discriminator|value|field|key|version"
    r"|param\w*|argument|propert\w+|beta|flag|header|.{0,3}signature)|no such|extraneous"
    r"|literal_error|union_tag_invalid|does not match any|expected one of|input should be '",
    re.IGNORECASE,
)
_TYPE_MISMATCH = re.compile(r"string|unmarshal|invalid_type|invalid type", re.IGNORECASE)
_SIGNATURE = re.compile(r"signature", re.IGNORECASE)

_NAMES: dict[str, re.Pattern[str]] = {
    "thinking": re.compile(r"(?<![\w.])(?:thinking|think)(?!_?blocks?\b)\b", re.IGNORECASE),
    "output_config": re.compile(r"\b(?:output_config(?!\.format)|effort)\b", re.IGNORECASE),
    ANSWER_FORMAT: re.compile(r"\boutput_config\.format\b|\bjson_schema\b|\bstructured output", re.IGNORECASE),
    CACHE_CONTROL: re.compile(r"\bcache[_ ]control\b|\bprompt[_ ]caching\b", re.IGNORECASE),
    CACHE_LIFETIME: re.compile(r"\bttl\b|\bcache[-_ ]?ttl\b", re.IGNORECASE),
    "include": re.compile(r"\binclude\b|\bencrypted[ _]content\b", re.IGNORECASE),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    IS_ERROR: re.compile(r"\bis_error\b", re.IGNORECASE),
    SYSTEM_BLOCKS: re.compile(r"\bsystem\b", re.IGNORECASE),
    VERSION_FIELD: re.compile(r"\banthropic[-_]version\b", re.IGNORECASE),
    BETA_FIELD: re.compile(r"\banthropic[-_]beta\b|\bbeta (?:header|flag|feature)", re.IGNORECASE),
}
DROPPABLE = frozenset(_NAMES)
"""Fields that are left out once the endpoint refuses them."""

_SHOWN = {
    CACHE_LIFETIME: "a cache of an hour",
    SYSTEM_BLOCKS: "`system` as blocks",
    VERSION_FIELD: "the newest `anthropic-version`",
}

_IN_MESSAGES = re.compile(r"\bmessages\b[.\[\"', ()]*\d", re.IGNORECASE)


def refused_fields(body: object, sent: Set[str], betas: Iterable[str] = ()) -> frozenset[str]:
    """Return the fields of a request that an error names as refused; none if the error is about something else.

    The error is JSON or text; `sent` are the optional fields that the request had, with those that the user added.
    """
    found: set[str] = set()
    for text in statements(body):
        # Whatever the server dislikes about the schema: the answer is checked here, too.
        is_schema = ANSWER_FORMAT in sent and "output_config.format" in text
        if _REFUSAL.search(text) is None and not is_schema:
            continue
        in_messages = _IN_MESSAGES.search(text) is not None
        found |= {name for name in sent & DROPPABLE if _names(name, text, in_messages=in_messages)}
        found |= {name for name in sent - DROPPABLE if re.search(rf"\b{re.escape(name)}\b", text)}
        if BETA_FIELD in sent and any(beta in text for beta in betas):
            found.add(BETA_FIELD)
    # Without its lifetime, the mark may be welcome.
    return frozenset(found - {CACHE_CONTROL} if CACHE_LIFETIME in found else found)


def dropped_text(model: str, fields: Iterable[str]) -> str:
    """Return the notice that requests leave out fields from now on."""
    names = ", ".join(sorted(_SHOWN.get(name, f"`{name}`") for name in fields))
    return f"The endpoint of {model} refuses {names}. Requests do without for the rest of this session."


def _names(name: str, text: str, *, in_messages: bool) -> bool:
    if _NAMES[name].search(text) is None:
        return False
    if name == SYSTEM_BLOCKS:
        return not in_messages and _TYPE_MISMATCH.search(text) is not None
    if name in (CACHE_CONTROL, CACHE_LIFETIME, IS_ERROR, VERSION_FIELD, BETA_FIELD):
        return True
    return not in_messages and _SIGNATURE.search(text) is None


def statements(body: object) -> Iterable[str]:
    """Return the texts of an error, so that one is about one field; lists of problems become several texts."""
    for whole in _texts(body, 0):
        text = whole[:LONGEST_TEXT]
        stripped = text.lstrip()
        if stripped[:1] in ("[", "{"):
            try:
                yield from _texts(json.loads(stripped), 0)
                continue
            except (ValueError, RecursionError):
                pass
        # Python's form of a list of problems, and problems joined by line breaks or semicolons.
        parts = re.split(r"(?<=\})\s*,\s*(?=\{)|;\s+|\n(?=\S)", text)
        yield from parts
        # "1 validation error for Request\nthinking\n  Extra inputs …": the name is in the line before.
        yield from re.findall(r"^(\S+\n +\S[^\n]*)", text, re.MULTILINE)


def _texts(value: object, depth: int) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif depth > _DEEPEST:
        return
    elif is_array(value):
        for item in value:
            yield from _texts(item, depth + 1)
    elif is_object(value):
        place = next((value[key] for key in ("loc", "path", "param") if value.get(key)), None)
        message = next((value[key] for key in ("msg", "message") if isinstance(value.get(key), str)), None)
        if message is not None:
            yield f"{_path(place)} {_path(value.get('keys'))} {value.get('code') or ''}: {message}"
        for key, item in value.items():
            # The refused value may contain anything.
            if key not in ("input", "msg"):
                yield from _texts(item, depth + 1)


def _path(place: object) -> str:
    return ".".join(str(part) for part in place) if is_array(place) else str(place or "")
