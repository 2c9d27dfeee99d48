"""A page in HTML that needs no other file: no script, nothing loaded, light or dark as the reader prefers."""

from collections.abc import Iterable

from tui_agent.protocol.visible_text import escaped

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Refuses scripts and everything from elsewhere, should the text of a page ever become markup."""
_STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --muted: #656d76; --page: #ffffff; --panel: #f6f8fa; --line: #d1d9e0;
  --accent: #0969da; --good: #1a7f37; --bad: #cf222e; --added: #dafbe1; --removed: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --muted: #8d96a0; --page: #0d1117; --panel: #161b22;
  --line: #30363d; --accent: #58a6ff; --good: #3fb950; --bad: #f85149; --added: #12361f; --removed: #4b1a1d; } }
* { box-sizing: border-box; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .25rem; }
a { color: var(--accent); }
code, pre { font: .875em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { white-space: pre-wrap; margin: .5rem 0; padding: .6rem .8rem; background: var(--panel);
  border: 1px solid var(--line); border-radius: 6px; font-size: .8125rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25rem .75rem; border: 1px solid var(--line); }
th { background: var(--panel); }
.muted, .who { color: var(--muted); } .who { font-size: .8125rem; margin: 1.5rem 0 .25rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
.user { white-space: pre-wrap; padding: .6rem .9rem; background: var(--panel); border-left: 3px solid var(--accent);
  border-radius: 0 6px 6px 0; }
.answer h1, .answer h2, .answer h3 { font-size: 1.1rem; margin: 1rem 0 .25rem; }
.answer p code, .answer li code { padding: .1em .3em; background: var(--panel); border-radius: 4px; }
.answer blockquote { margin: .5rem 0; padding-left: .9rem; border-left: 3px solid var(--line); color: var(--muted); }
details { margin: .35rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .3rem .7rem; }
summary { cursor: pointer; font-size: .875rem; }
dt { font-size: .75rem; color: var(--muted); margin-top: .5rem; } dd { margin: 0; }
.diff span { display: block; } .diff .added { background: var(--added); } .diff .removed { background: var(--removed); }
.diff .at { color: var(--muted); }
.wide { overflow-x: auto; } td { font-size: .875rem; }
svg text { fill: var(--text); } svg .paper { fill: var(--page); }
@media print { details { break-inside: avoid; } }
"""


def html_text(text: str) -> str:
    """Return a text for HTML, with what a reader would not see as escapes."""
    # It has the table of all 2,231 named characters, which only an export needs.
    import html

    return html.escape(escaped(text))


def html_page(title: str, body: Iterable[str]) -> str:
    """Return a page.

    Args:
        title: its title, as plain text.
        body: its lines below the title, as HTML.
    """
    shown = html_text(title)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{shown}</h1>",
            *body,
            "</body>\n</html>\n",
        )
    )
