"""Forms of servers: the restricted JSON Schema of the protocol as fields, with every text sanitised."""

from collections.abc import Sequence

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.server_question import FieldChoice, FieldKind, FormField

from .tool_listing import clipped

MOST_FIELDS = 40
MOST_CHOICES = 200
_LONGEST_NAME = 100
_LONGEST_TEXT = 500
_FORMATS = ("email", "uri", "date", "date-time", "password", "secret")
_KINDS: dict[str, FieldKind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "flag"}


def fields_of(schema: JsonObject) -> tuple[FormField, ...]:
    """Return the fields of a form.

    Raises:
        ValueError: it is not a form of the protocol; the text has the reason.
    """
    properties: object = schema.get("properties", {})
    required: object = schema.get("required", [])
    if schema.get("type", "object") != "object" or not is_object(properties) or not is_array(required):
        raise ValueError("the form is not an object with properties")
    if len(properties) > MOST_FIELDS:
        raise ValueError(f"the form has more than {MOST_FIELDS} fields")
    return tuple(_field(name, value, required=name in required) for name, value in properties.items())


def _field(name: str, value: object, *, required: bool) -> FormField:
    if not is_object(value) or not name or len(name) > _LONGEST_NAME:
        raise ValueError("a field of the form is not described, or has no usable name")
    kind, choices = _kind_and_choices(name, value)
    written: object = value.get("format")
    least, most = {
        "text": ("minLength", "maxLength"),
        "choices": ("minItems", "maxItems"),
    }.get(kind, ("minimum", "maximum"))
    field = FormField(
        name=name,
        kind=kind,
        title=_text(value.get("title"), _LONGEST_NAME),
        description=_text(value.get("description"), _LONGEST_TEXT),
        required=required,
        choices=choices,
        format="password" if value.get("writeOnly") is True else str(written) if written in _FORMATS else "",
        least=_number(value.get(least)),
        most=_number(value.get(most)),
    )
    return field.model_copy(update={"default": _default(field, value.get("default"))})


def _kind_and_choices(name: str, value: JsonObject) -> tuple[FieldKind, tuple[FieldChoice, ...]]:
    items: object = value.get("items")
    if value.get("type") == "array" and is_object(items):
        choices = _choices(items)
        if not choices:
            raise ValueError(f"the list {clipped(name, _LONGEST_NAME)} has no choices")
        return "choices", choices
    if choices := _choices(value):
        return "choice", choices
    written: object = value.get("type")
    kind = _KINDS.get(written) if isinstance(written, str) else None
    if kind is None:
        raise ValueError(f"the field {clipped(name, _LONGEST_NAME)} is neither text, number, yes or no, nor a choice")
    return kind, ()


def _choices(value: JsonObject) -> tuple[FieldChoice, ...]:
    """Return the choices of `enum` (with `enumNames`), `oneOf` or `anyOf`; empty if there are none."""
    enum, names = value.get("enum"), value.get("enumNames")
    pairs: list[tuple[object, object]] = []
    if is_array(enum):
        labels: Sequence[object] = names if is_array(names) and len(names) == len(enum) else [""] * len(enum)
        pairs = list(zip(enum, labels, strict=True))
    else:
        several: object = value.get("oneOf", value.get("anyOf", []))
        entries = [one for one in several if is_object(one)] if is_array(several) else []
        pairs = [(one.get("const"), one.get("title")) for one in entries]
    if len(pairs) > MOST_CHOICES:
        raise ValueError(f"a field has more than {MOST_CHOICES} choices")
    if not all(isinstance(one, str) for one, _ in pairs):
        raise ValueError("a choice is not text")
    return tuple(FieldChoice(value=str(one), label=_text(label, _LONGEST_NAME)) for one, label in pairs)


def _default(field: FormField, value: object) -> str | int | float | bool | tuple[str, ...] | None:
    """Return the default of a field; None if it has none or a wrong one."""
    try:
        checked = None if value is None else field.check(value)
    except ValueError:
        return None
    return tuple(checked) if isinstance(checked, list) else checked


def _text(value: object, limit: int) -> str:
    return clipped(value, limit) if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
