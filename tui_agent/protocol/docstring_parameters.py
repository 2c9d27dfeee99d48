"""Parameter descriptions in a docstring: Google, NumPy and reST style."""

import re
from textwrap import dedent

_GOOGLE_HEADER = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*\Z")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|\s*)\Z")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
_REST_ITEM = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)\Z")
_REST_FIELD = re.compile(r":\w+[^:]*:")


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its parameter descriptions, and the descriptions by parameter name.

    Args:
        docstring: a docstring as `inspect.getdoc` returns it, without common indentation.
    """
    found: dict[str, str] = {}
    kept: list[str] = []
    lines = docstring.expandtabs().splitlines()
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place
        if _GOOGLE_HEADER.match(line):
            end = _indented_end(lines, place + 1)
            found |= _google_items(lines[place + 1 : end])
        elif line.strip() == "Parameters" and place + 1 < len(lines) and _is_underline(lines[place + 1]):
            end = _numpy_end(lines, place + 2)
            found |= _numpy_items(lines[place + 2 : end])
        elif rest := _REST_ITEM.match(line):
            end = _indented_end(lines, place + 1)
            found[rest.group(1)] = _joined([rest.group(2), *lines[place + 1 : end]])
        elif line.startswith(":type ") and _REST_FIELD.match(line):
            end = _indented_end(lines, place + 1)
        if end == place:
            kept.append(line)
            end = place + 1
        place = end
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return text, {name: words for name, words in found.items() if words}


def _indented_end(lines: list[str], start: int) -> int:
    """Return the index after the indented lines that begin at `start`, blank lines included."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return end


def _google_items(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in dedent("\n".join(lines)).splitlines():
        item = _GOOGLE_ITEM.match(line)
        if item:
            current = found[item.group(1)] = [item.group(2) or ""]
        else:
            current.append(line)
    return {name: _joined(words) for name, words in found.items()}


def _numpy_end(lines: list[str], start: int) -> int:
    """Return the index of the next section's title, or the end."""
    for place in range(start, len(lines) - 1):
        if lines[place].strip() and not lines[place].startswith(" ") and _is_underline(lines[place + 1]):
            return place
    return len(lines)


def _numpy_items(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    words: list[str] = []
    for line in [*lines, "end_of_section"]:
        item = _NUMPY_ITEM.match(line)
        if item:
            found |= dict.fromkeys(names, _joined(words))
            names, words = [name.strip().lstrip("*") for name in item.group(1).split(",")], []
        else:
            words.append(line)
    return found


def _is_underline(line: str) -> bool:
    return len(line.strip()) > 2 and set(line.strip()) == {"-"}


def _joined(lines: list[str]) -> str:
    """Return wrapped lines as one text."""
    return " ".join(" ".join(lines).split())
