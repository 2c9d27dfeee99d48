"""Details in the error of a model server, whatever its form, and the part of the request that it names."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tui_agent.protocol.errors import RefusalSubject
from tui_agent.protocol.messages import JsonObject, is_array, is_object

_DEEPEST = 6
_MOST_PROBLEMS = 3
_LARGEST_PAGE = 100_000
_LONGEST_EXCERPT = 200
"""Characters of a page without a title that are quoted."""
# It bounds the time that the patterns below take for a text that the server chose.
_LONGEST_WORDS = 4_000
"""Characters of a message that are searched."""

_MESSAGE_KEYS = (
    *("message", "detail", "errormessage", "error_message", "error_description", "errordescription", "faultstring"),
    *("msg", "status_msg", "description", "reason", "title", "errors", "error", "fault", "error_msg", "errormsg"),
)
"""Keys in which servers put what went wrong, in lower case; the first one that has text counts."""

_TITLE = re.compile(r"<(title|h[1-3])\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_XML_MESSAGE = re.compile(r"<(?:\w+:)?(Message|faultstring|ErrorMessage)\b[^>]*>(.*?)</", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_UNSHOWN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """The contents of an error body."""

    kind: str = ""
    """Type of the error, as the server names it."""
    words: str = ""
    code: str = ""
    status: int | None = None
    """HTTP status that the body names."""
    request_id: str | None = None
    is_page: bool = False
    """True if a web page came instead; `words` is then its title."""

    @classmethod
    def of(cls, body: object) -> "ErrorDetails":
        """Parse the API's error format, those of other servers, plain text, and the pages of proxies."""
        if not is_object(body):
            text = body.strip().lstrip("\ufeff") if isinstance(body, str) else ""
            if text.startswith("<"):
                return cls._of_markup(text[:_LARGEST_PAGE])
            return cls(words=words_of(body))
        found: object = next((body[key] for key in ("error", "Error", "fault") if is_object(body.get(key))), body)
        error: JsonObject = found if is_object(found) else body
        details: object = error.get("details")
        code = details.get("error_code") if is_object(details) else None
        code = error.get("code") if code is None else code
        request_id = body.get("request_id")
        return cls(
            kind=str(error.get("type") or error.get("code") or ""),
            words=words_of(body) or json.dumps(body, ensure_ascii=False),
            code=code if isinstance(code, str) else "",
            status=next((one for key in ("code", "status", "statusCode") if (one := _status(error.get(key)))), None),
            request_id=request_id if isinstance(request_id, str) else None,
        )

    @classmethod
    def _of_markup(cls, text: str) -> "ErrorDetails":
        if message := _XML_MESSAGE.search(text):
            return cls(words=_plain(message.group(2)))
        title = _TITLE.search(text)
        return cls(
            words=_plain(title.group(2)) if title else _plain(_UNSHOWN.sub(" ", text))[:_LONGEST_EXCERPT], is_page=True
        )


def _status(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, int | str) else 0
    except ValueError:
        return None
    return number if 400 <= number < 600 else None


def _plain(markup: str) -> str:
    # It has the table of all 2,231 named characters.
    import html

    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())


def words_of(value: object, depth: int = 0) -> str:
    """Return what an error says; empty if it says nothing.

    Args:
        value: the error: text, or JSON in any form.
        depth: levels of the error above it; too deep ones are left out.
    """
    if isinstance(value, str):
        text = value.strip().lstrip("\ufeff")
        if text[:1] in ("{", "["):
            try:
                return words_of(json.loads(text), depth + 1) or text
            except (ValueError, RecursionError):
                pass
        return text
    if depth > _DEEPEST:
        return ""
    if is_array(value):
        return "; ".join(dict.fromkeys(filter(None, (words_of(one, depth + 1) for one in value[:_MOST_PROBLEMS]))))
    if not is_object(value):
        return ""
    keys = {key.lower(): key for key in value}
    inner = value.get(keys.get("error", ""))
    # An object is the error itself; a text is often only its class: `{"error": "Bad Request", "message": …}`.
    order = ("error", *_MESSAGE_KEYS) if is_object(inner) else _MESSAGE_KEYS
    known = (value[keys[key]] for key in order if key in keys)
    nested = (one for one in value.values() if is_object(one) or is_array(one))
    found = next((text for one in (*known, *nested) if (text := words_of(one, depth + 1))), "")
    metadata: object = value.get("metadata")
    # A router says only that its provider failed, and has the provider's own answer beside it.
    raw = words_of(metadata.get("raw"), depth + 1) if is_object(metadata) else ""
    return f"{found}: {raw}" if found and raw and raw not in found else found or raw


# --- the part of the request ------------------------------------------------------------------------------------------

_THING = r"(?:prompts?|inputs?|conversation|messages?|context|requests?|history|sequences?|body|payload|entity|content)"
_NEAR = r"(?:[^.]|\.(?=\d)){0,80}?"
"""Words of the same sentence."""
_TOO_LONG = re.compile(
    r"context[ _-]?(?:window|length|limit|size)"
    rf"|\b{_THING}\b{_NEAR}\btoo (?:long|large|big)|\btoo (?:long|large|big) for (?:the|this|our) (?:model|server)"
    r"|(?:prompt|input|context|conversation|request|messages?)_(?:is_)?(?:too_(?:long|large|big)|length|limit|overflow)"
    r"|too many (?:\w+ )?tokens|token[_ ]limit|tokens?_limit|(?:content|prompt|input|message)Length"
    r"|\bcontext (?:is|was) (?:full|exhausted)|(?:out of|not enough|insufficient|no more) context"
    rf"|\b{_THING}\b{_NEAR}\b(?:beyond|above|over) what (?:the|this|our) (?:model|server)"
    r"|max(?:imum)?[ _](?:model[ _]|allowed[ _])?(?:context|prompt|input|sequence|message|model|size|request)"
    r"[ _]?(?:len\w*|tokens|size)?"
    rf"|\b(?:{_THING}|tokens?)\b{_NEAR}\b(?:exceed|(?:longer|larger|greater|more) than\b)"
    rf"|\bexceed\w*\b{_NEAR}(?:\b{_THING}\b|(?<![a-z])tokens?\b|\bcontext\w*)"
    rf"|\b{_THING}\b{_NEAR}\b(?:(?:limit|maximum|allowed) (?:is|of|=)|(?:over|above|beyond|past) (?:the|its|a|our)\b)"
    r"|above[_ ]max[_ ]?length|\bmaxLength: \d+, actual|\bn_ctx\b|\bKV[ _-]cache\b"
    r"|(?:longer|larger|greater) than the (?:model|context|maximum)"
    r"|(?:reduce|shorten|trim|truncate|decrease)[^.]{0,30}?(?:prompt|input|messages?|conversation|context|tokens)"
    r"|tokens?\b[^.]{0,60}?(?:must|should|can(?:not)?) (?:be|have) (?:<=?|less|at most|under|within|more|over)"
    r"|must have less than \d+ tokens|input[_ ]length|max_(?:seq(?:uence)?|model)_len|max_tokens must be at least 1\b"
    r"|\bonly (?:supports?|allows?|accepts?|takes?) (?:up to |at most )?\d|only \d+ (?:\w+ )?(?:available|left)"
    r"|tokens?\b[^.]{0,60}?\bsupports? (?:up to |at most )?\d|\bsupports? (?:up to |at most )?\d+ tokens"
    r"|context the overflows|overflows?\b|(?:do(?:es)?(?: not|n.t)|cannot|can.t|won.t) fit"
    r"|超长|过长|上下文|超(?:过|出)[^。]{0,20}(?:长度|限制|上限|tokens?)|長すぎ|너무 (?:길|긴|깁)",
    re.IGNORECASE,
)
"""Texts about a conversation that is too long. Servers have dozens of wordings, so this matches what they share."""
_OTHER_LIMIT = re.compile(
    r"rate[ _-]?limit|quota|time[ -]?out|timed out|time limit|deadline|per[ _-](?:minute|hour|day|second)|concurren"
    r"|\b(?:hourly|daily|weekly|monthly|account|organi[sz]ation|plan)\b"
    r"|\b[tr]p[md]\b|credits?\b|billing|budget_tokens"
    r"|\b(?:output|completion)[ _]tokens|\bmax_(?:\w+_)?tokens\b(?! must be at least 1\b)|cache_control|\btools?\.\d",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"context|input|prompt|token|上下文|超长|过长", re.IGNORECASE)
_INPUT = re.compile(r"context|input|prompt|messages|conversation", re.IGNORECASE)
_SIZE = re.compile(r"token|length|size|\blong|large|\blimit|exceed|maxim", re.IGNORECASE)
_MEDIA = re.compile(
    r"(?<![a-z])(?:images?|pictures?|photos?|media|mime|pdfs?|documents?|vision|visual|multi-?modal|png|jpe?g|gif|webp"
    r"|base64|pixels?|attachments?|input_file)(?![a-z])|图片|图像",
    re.IGNORECASE,
)
_THINKING = re.compile(r"thinking|reasoning|thoughts?\b|thought[_ ]?signature|encrypted[ _]content", re.IGNORECASE)
_SIGNATURE = re.compile(r"signature", re.IGNORECASE)
_HISTORY = re.compile(
    r"\bmessages?\b|\bblocks?\b|\bcontent\b|\bassistant\b|\bitems?\b|\btags?\b|signature|passed back|history|decrypt",
    re.IGNORECASE,
)
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_PICTURES = frozenset({"image", "document", "image_url", "file", "input_image", "input_file"})
"""Kinds of blocks with pictures and documents, in the Messages API and in those of OpenAI."""
_PLACE = re.compile(r"messages\W{1,3}(\d+)\W{1,3}content\W{1,3}(\d+)", re.IGNORECASE)


def is_about_length(words: str, *, names_context: bool = False) -> bool:
    """True if an error says, in whatever words, that the conversation is longer than the model or the server takes.

    With `names_context`, it must name the context, the input or tokens.
    """
    words = words[:_LONGEST_WORDS]
    if names_context and not _CONTEXT.search(words):
        return False
    other = _OTHER_LIMIT.search(words)
    is_output = other is not None and other.group().lower().startswith(("output", "completion", "max_"))
    if other is not None and not (is_output and _INPUT.search(words)):
        return False
    # A picture has a size of its own.
    is_picture = _MEDIA.search(words) is not None and _CONTEXT.search(words) is None
    return not is_picture and _TOO_LONG.search(words) is not None


def is_about_media(words: str) -> bool:
    """True if an error mentions pictures or documents."""
    return _MEDIA.search(words[:_LONGEST_WORDS]) is not None


def refusal_subject(texts: Iterable[str], request: bytes) -> RefusalSubject:
    """Return the part of a request that an error, all of whose texts are given, is about; empty if it does not say."""
    text = "\n".join(texts)[:_LONGEST_WORDS]
    messages = _messages_of(request)
    sent = {kind for message in messages for block in _blocks_of(message) for kind in _kinds(block)}
    named = set(_kinds_at(text, messages))
    is_about_thinking = named & _THOUGHTS or (_THINKING.search(text) and _HISTORY.search(text))
    if (is_about_thinking and not named & _PICTURES) or (sent & _THOUGHTS and _SIGNATURE.search(text)):
        return "thinking"
    if sent & _PICTURES and (named & _PICTURES or _MEDIA.search(text)):
        return "media"
    return "size" if _SIZE.search(text) and not _OTHER_LIMIT.search(text) else ""


def _messages_of(request: bytes) -> list[JsonObject]:
    try:
        body: object = json.loads(request)
    except ValueError:
        return []
    messages: object = body.get("messages", body.get("input")) if is_object(body) else None
    return [message for message in messages if is_object(message)] if is_array(messages) else []


def _blocks_of(message: JsonObject) -> list[JsonObject]:
    content: object = message.get("content")
    return [block for block in content if is_object(block)] if is_array(content) else []


def _kinds(block: JsonObject) -> Iterator[str]:
    yield str(block.get("type"))
    if block.get("type") == "tool_result":
        for inner in _blocks_of(block):
            yield from _kinds(inner)


def _kinds_at(text: str, messages: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the kinds of the blocks whose places in the conversation an error names."""
    for found in _PLACE.finditer(text):
        place, index = int(found.group(1)), int(found.group(2))
        blocks = _blocks_of(messages[place]) if place < len(messages) else []
        if index < len(blocks):
            yield from _kinds(blocks[index])
