"""Program that turns an HTML page into Markdown. The engine runs it, but never imports it.

Parsing a page can take seconds and much memory; a separate process can be ended and blocks nothing. Arguments: the
page's address, its character set, which may be empty, and the number of the descriptor that has the page.
"""

import re
import resource
import sys
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter  # pyright: ignore[reportMissingTypeStubs]

_MEMORY = 2 * 1024**3
_SECONDS = 60
"""Seconds of the processor, for the case that the engine is gone and cannot end this program."""
_WITHOUT_TEXT = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "object",
    "canvas",
    "head",
    "nav",
    "footer",
)
_LEAST_TEXT = 200
"""Characters that an element must have to be taken for the text of the page."""


def main(url: str, charset: str, descriptor: int) -> int:
    """Write the page as Markdown to the standard output."""
    # A page that makes the parser run wild fails only its call.
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    with open(descriptor, "rb") as file:
        page = BeautifulSoup(file.read(), "html.parser", from_encoding=charset or None)
    title = page.title.get_text(" ", strip=True) if page.title is not None else ""
    for found in page.find_all(_WITHOUT_TEXT):
        found.decompose()
    place = _text_of(page)
    _make_absolute(place, url)
    try:
        text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(place)
    except RecursionError:
        text = place.get_text("\n", strip=True)
    lines = [f"# {title}"] if title and not text.lstrip().startswith(f"# {title}") else []
    sys.stdout.buffer.write("\n\n".join([*lines, _without_gaps(text)]).encode("utf-8", "replace"))
    return 0


def _text_of(page: BeautifulSoup) -> Tag:
    """Return the element that has the page's own text: the only `main` or `article` if it has enough, else all."""
    for name, role in (("main", None), (True, "main"), ("article", None)):
        found = page.find_all(name, attrs={"role": role} if role else {})
        if len(found) == 1 and len(found[0].get_text(strip=True)) >= _LEAST_TEXT:
            return found[0]
    return page.body or page


def _make_absolute(place: Tag, url: str) -> None:
    """Write links out in full, and drop images that are part of the page."""
    for link in place.find_all("a", href=True):
        link["href"] = urljoin(url, str(link["href"]))
    for image in place.find_all("img"):
        source = str(image.get("src", ""))
        if not source or source.startswith("data:"):
            image.replace_with(str(image.get("alt", "")))
        else:
            image["src"] = urljoin(url, source)


def _without_gaps(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
