"""Texts from a model or a tool that are expensive to parse, each of about the requested number of characters."""

SIGNS = (
    *("[", "![", "[a](", "](", "[a]", "]", "*", "*a ", "a*", "**a ", "***a", "_a ", "x*y_z", "~~a ", "`", "`a``b"),
    *("<", "<a", "<!--", "&", "&amp;", "\\", "|", "http://", "a@b.c ", ":", "$", "{", ">", "- ", "#", "(", "x", "漢"),
    *("word ", "e" + "\u0301" * 9, "\U0001f468\u200d\U0001f469\u200d\U0001f467 ", "\u202e", "\0", "\t", "\r", "\x1b["),
    *("\x1b]0;", " ", "[*", "[[", "**_"),
)
"""Repeated without line breaks."""
LINES = (
    *("\n", "x\n", "x\n\n", "- x\n", "1. x\n", "# x\n", "---\n", "> x\n", "    x\n", "[r]: http://x\n", "* * *\n"),
    *("[" * 190 + "\n", "*a " * 300 + "\n", "a | b\n", "  \n", "> > > - x\n"),
)
"""Repeated, one or two lines each."""
CODE = ('"', "(", "{", "\\", "<", "a ", "a.", "/*", "'", "`", "$", "-", "0", "{{", "<<a", "@")
"""Repeated within lines of code."""
LANGUAGES = (
    "json",
    "python",
    "javascript",
    "typescript",
    "java",
    "c++",
    "html",
    "bash",
    "make",
    "scala",
    "ruby",
    "yaml",
)


def pathological_texts(length: int) -> dict[str, str]:
    """Return the Markdown texts by name."""
    texts = {f"{sign[:20]!r} {len(sign)}": sign * (length // len(sign)) for sign in (*SIGNS, *LINES)}
    side = int(length**0.5)
    texts["deep quotes"] = "\n".join(">" * depth + " x" for depth in range(side))
    texts["deep lists"] = "\n".join("  " * depth + "- x" for depth in range(side))
    texts["wide table"] = "".join("|" + f"{cell}|" * (length // 10) + "\n" for cell in ("a", "-", "b", "c", "d"))
    texts["long table"] = "|a|b|\n|-|-|\n" + "|1|2|\n" * (length // 6)
    texts["blank code"] = "```python\n" + "\n" * length
    texts["one line of code"] = "```json\n" + '{"' * (length // 2)
    for language in LANGUAGES:
        for sign in CODE:
            texts[f"{language} {sign!r}"] = code(language, sign, length)
    return texts


def code(language: str, sign: str, length: int) -> str:
    """Return a block of code whose lines have the greatest length that is still highlighted."""
    line = (sign * 400)[:399] + "\n"
    return f"```{language}\n{line * (length // 400)}```\n"
