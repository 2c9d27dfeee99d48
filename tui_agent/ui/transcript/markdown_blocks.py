"""Markdown as blocks of styled text: parsed once, laid out for any width.

Everything becomes text: links show their address, images their description, HTML itself. Leaves are sanitised after
parsing, because entities can spell any character.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import sanitise_for_copies

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Align = Literal["left", "right", "center"]
Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that wraps."""

    runs: Runs


@dataclass(frozen=True, slots=True)
class Heading:
    """Heading of level 1 to 6."""

    level: int
    runs: Runs


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Code, line by line."""

    language: str
    """Info string of the fence."""
    lines: tuple[str, ...]
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted blocks."""

    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list."""

    number: int | None
    """None: it has a bullet."""
    blocks: tuple["Block", ...]

    @property
    def marker(self) -> str:
        """Bullet or number before it."""
        return "•" if self.number is None else f"{self.number}."


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first row is its header."""

    rows: tuple[tuple[Runs, ...], ...]
    aligns: tuple[Align, ...]


@dataclass(frozen=True, slots=True)
class ThematicBreak:
    """A horizontal line."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """Raw text that is not parsed as Markdown; layout makes it safe."""

    text: str


Block = Paragraph | Heading | CodeBlock | Quote | Item | Table | ThematicBreak | PlainText


@dataclass(frozen=True, slots=True)
class Unit:
    """A block at the top level of a text; each item of a list is one."""

    block: Block
    start: int
    """First line in the source, from 0."""
    joined: bool = False
    """True if it follows the unit above without a blank row."""


def parse_markdown(source: str, number: int | None = None, hidden: Collection[int] = ()) -> list[Unit]:
    """Return the units of a text, in order.

    Args:
        source: sanitised Markdown.
        number: the number of the first item if the text begins with an ordered list that continues an earlier one.
        hidden: numbers, from 0, of lines that are plain text: the parser never sees their content.
    """
    lines = source.split("\n")
    if not hidden:
        return list(_units(_tree(_reader().parse(source)), number, lines))
    shown = [_sign_of(place, line) if place in hidden else line for place, line in enumerate(lines)]
    tokens = _reader().parse("\n".join(shown))
    _put_back(tokens, lines)
    return list(_units(_tree(tokens), number, lines))


def code_blocks(block: Block) -> Iterator[CodeBlock]:
    """Yield the fenced code in a block, also in lists and quotes."""
    if isinstance(block, CodeBlock) and block.fenced:
        yield block
    elif isinstance(block, Quote | Item):
        for inner in block.blocks:
            yield from code_blocks(inner)


_FENCE = re.compile(
    r"(?P<before>[ \t]*(?:(?:[-+*]|[0-9]{1,9}[.)])[ \t]+|>[ \t]?)*)(?P<sign>`{3,}|~{3,})(?P<info>[^\n]*)"
)


def fenced_texts(source: str) -> list[str]:
    """Return the content of each code fence as it was written, with its tabs, but without the margin of its list."""
    texts: list[str] = []
    inside: list[str] | None = None
    sign = margin = ""
    for line in source.split("\n"):
        fence = _FENCE.match(line)
        if inside is None:
            if fence is not None and not (fence["sign"][0] == "`" and "`" in fence["info"]):
                inside, sign, margin = [], fence["sign"], " " * len(fence["before"])
                quote = fence["before"] if ">" in fence["before"] else ""
                margin = quote or margin
        elif fence is not None and fence["sign"].startswith(sign) and not fence["info"].strip():
            texts.append("\n".join(inside))
            inside = None
        else:
            blanks = len(line) - len(line.lstrip(" "))
            inside.append(line.removeprefix(margin) if ">" in margin else line[min(blanks, len(margin)) :])
    return [*texts, "\n".join(inside)] if inside is not None else texts


_DEEPEST = 60
"""Most levels of nesting; the parser leaves out deeper ones."""
_HIDDEN = re.compile("\x01 ([0-9]+) \x02")
"""Placeholder of a hidden line. Sanitised text has no such characters, and no entity spells them; because of its blanks
it is never an address.
"""

_MAX_INDENT = 2 * _DEEPEST
"""Most blanks before a hidden line that the parser sees, so that the line stays in its list."""


def _sign_of(place: int, line: str) -> str:
    blanks = min(len(line) - len(line.lstrip()), _MAX_INDENT)
    return f"{' ' * blanks}\x01 {place} \x02"


def _put_back(tokens: "Sequence[Token]", lines: Sequence[str]) -> None:
    """Replace the placeholders by their hidden lines."""
    for token in tokens:
        if "\x01" in token.content:
            token.content = _HIDDEN.sub(lambda match: lines[int(match[1])].lstrip(), token.content)
        _put_back(token.children or (), lines)


@cache
def _reader() -> "MarkdownIt":
    """Return the parser, imported with the first text, so that an empty screen does not wait for it."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
    # A definition further down could change the target of a link that was read already.
    return reader.disable("reference")


_INLINE_STYLES = {"strong": "strong", "em": "emphasis", "s": "struck", "link": "link"}


@dataclass(frozen=True, slots=True)
class _Node:
    """A token with the tokens inside it."""

    token: "Token"
    children: tuple["_Node", ...] = ()

    @property
    def kind(self) -> str:
        return self.token.type.removesuffix("_open")

    @property
    def start(self) -> int:
        return self.token.map[0] if self.token.map else 0


def _tree(tokens: "Sequence[Token]") -> tuple[_Node, ...]:
    """Return nested nodes from the parser's flat list."""
    stack: list[tuple[Token | None, list[_Node]]] = [(None, [])]
    for token in tokens:
        if token.nesting > 0:
            stack.append((token, []))
        elif token.nesting < 0:
            opened, children = stack.pop()
            if opened is not None:
                stack[-1][1].append(_Node(opened, tuple(children)))
        else:
            stack[-1][1].append(_Node(token))
    return tuple(stack[0][1])


def _units(nodes: Sequence[_Node], number: int | None, lines: Sequence[str]) -> Iterator[Unit]:
    for place, node in enumerate(nodes):
        if node.kind in ("bullet_list", "ordered_list"):
            for index, (item, child) in enumerate(_items(node, number if place == 0 else None)):
                yield Unit(_block_or_source(item, child, lines), child.start, joined=index > 0)
        else:
            yield Unit(_block_or_source(_block(node), node, lines), node.start)


def _block_or_source(block: Block, node: _Node, lines: Sequence[str]) -> Block:
    """Return a block, or its source if it is nested so deep that the parser left something out."""
    if node.token.map is None or _depth(node) < _DEEPEST - 2:
        return block
    start, end = node.token.map
    return Paragraph((("\n".join(lines[start:end]).rstrip("\n"), ""),))


def _depth(node: _Node) -> int:
    """Return the deepest level of a node's tokens."""
    return max((_depth(child) for child in node.children), default=node.token.level)


def _items(node: _Node, number: int | None = None) -> Iterator[tuple[Item, _Node]]:
    """Yield the items of a list with their nodes."""
    first = number if number is not None else int(node.token.attrs.get("start", 1))
    for index, child in enumerate(node.children):
        yield Item(first + index if node.kind == "ordered_list" else None, _blocks(child.children)), child


def _blocks(nodes: Sequence[_Node]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for node in nodes:
        if node.kind in ("bullet_list", "ordered_list"):
            blocks.extend(item for item, _ in _items(node))
        else:
            blocks.append(_block(node))
    return tuple(blocks)


def _block(node: _Node) -> Block:
    """Return a block that is not a list."""
    token = node.token
    match node.kind:
        case "heading":
            return Heading(int(token.tag[1:]), _inline(node))
        case "fence" | "code_block":
            content = sanitise_for_copies(token.content).removesuffix("\n")
            lines = tuple(content.split("\n")) if token.content else ()
            return CodeBlock(sanitise_for_copies(token.info).strip(), lines, fenced=token.type == "fence")
        case "blockquote":
            return Quote(_blocks(node.children))
        case "table":
            return _table(node)
        case "hr":
            return ThematicBreak()
        case _:
            return Paragraph(_inline(node))


def _table(node: _Node) -> Table:
    rows = [row.children for part in node.children for row in part.children]
    cells = tuple(tuple(_inline(cell) for cell in row) for row in rows)
    return Table(cells, tuple(_align(cell.token) for cell in rows[0]))


def _align(token: "Token") -> Align:
    style = str(token.attrs.get("style", ""))
    return "right" if style.endswith("right") else "center" if style.endswith("center") else "left"


def _inline(node: _Node) -> Runs:
    """Return the runs of everything inside a node."""
    if node.token.type == "inline":
        return tuple(_runs(node.token.children or ()))
    if node.children:
        return tuple(run for child in node.children for run in _inline(child))
    return ((sanitise_for_copies(node.token.content), ""),) if node.token.content else ()


def _runs(tokens: "Sequence[Token]") -> Iterator[Run]:
    styles: list[str] = []
    links: list[tuple[str, list[str]]] = []
    for token in tokens:
        if token.nesting > 0:
            styles.append(_INLINE_STYLES.get(token.tag if token.tag != "a" else "link", ""))
            if token.tag == "a":
                links.append((sanitise_for_copies(str(token.attrs.get("href", ""))), []))
            continue
        if token.nesting < 0:
            if token.tag == "a" and links:
                address, words = links.pop()
                # The words of a link may name another address than the one that it opens.
                if not _text_is_url("".join(words), address):
                    yield f" ({address})", "address"
            if styles:
                styles.pop()
            continue
        text, style = _leaf(token)
        if links:
            links[-1][1].append(text)
        if text:
            yield text, " ".join(filter(None, (*styles, style)))


def _leaf(token: "Token") -> Run:
    """Return the text of a token without children."""
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n", ""
        case "code_inline":
            return sanitise_for_copies(token.content).replace("\n", " "), "code"
        case "image":
            address = sanitise_for_copies(str(token.attrs.get("src", "")))
            words = sanitise_for_copies(token.content)
            return (f"{words} ({address})" if words else address), "link"
        case _:
            return sanitise_for_copies(token.content), ""


def _text_is_url(words: str, address: str) -> bool:
    """Return True if a link's text is its address."""
    return words == address or f"mailto:{words}" == address
