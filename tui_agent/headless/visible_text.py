"""Text from outside on its way to a terminal: what would act there is shown instead."""

import unicodedata

KEPT = "\n\t"
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that act, reorder or cannot be seen."""


def visible(text: str) -> str:
    """The text with every such character as an escape like `\\x1b`; line feeds and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text.replace("\r\n", "\n"))


def _shown(character: str) -> str:
    if character in KEPT or unicodedata.category(character) not in HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")
