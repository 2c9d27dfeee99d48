"""The page that shows the app, its files, and what protects it in the browser."""

import importlib.util
from collections.abc import Mapping
from html import escape
from pathlib import Path

FILES: Mapping[str, tuple[str, str]] = {
    "textual.js": ("js/textual.js", "text/javascript"),
    "xterm.css": ("css/xterm.css", "text/css"),
    "RobotoMono.ttf": ("fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
    "RobotoMono-Italic.ttf": ("fonts/RobotoMono-Italic-VariableFont_wght.ttf", "font/ttf"),
}
"""Files of textual-serve that the page uses: name in the address, path below its folder, media type."""

PAGE_SCRIPT = """\
"use strict";
// A key typed while the page connects is sent once it is connected; the client would lose it with an InvalidStateError.
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (data) {
  if (this.readyState === WebSocket.CONNECTING) {
    this.addEventListener("open", () => send.call(this, data), { once: true });
  } else send.call(this, data);
};
// The terminal gets the keys at once; without this only after a click.
window.addEventListener("load", () => document.querySelector(".xterm-helper-textarea")?.focus());
// The browser asks before it closes a page whose session still runs.
window.addEventListener("beforeunload", (event) => {
  if (!document.body.classList.contains("-closed")) event.preventDefault();
});
"""

_STYLE = """\
@font-face { font-family: "Roboto Mono"; src: url("RobotoMono.ttf"); font-weight: 100 700; font-display: block; }
@font-face { font-family: "Roboto Mono"; src: url("RobotoMono-Italic.ttf"); font-style: italic; font-weight: 100 700;
  font-display: block; }
html, body { margin: 0; height: 100%; overflow: hidden; background: #121212; color: #e0e0e0;
  font: 16px "Roboto Mono", monospace; }
.textual-terminal { position: absolute; inset: 0; }
.notice { position: absolute; left: 0; right: 0; bottom: 0; z-index: 10; padding: 12px 16px; background: #1e1e1e; }
.notice a { color: #8ab4f8; }
.ended, body.-first-byte .starting, body.-closed .starting { display: none; }
body.-closed .ended { display: block; }
"""

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>tui-agent</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="xterm.css">
<style>{style}</style>
<script src="textual.js"></script>
<script src="page.js"></script>
</head>
<body>
<div class="textual-terminal" data-font-size="{font_size}" data-session-websocket-url="{socket}"></div>
<div class="notice starting" role="status">tui-agent is <b>starting</b> <i>…</i></div>
<div class="notice ended" role="status">This session has ended. <a href="{address}">Start again</a>:
<code>/resume</code> continues a saved session.</div>
</body>
</html>
"""

PROTECTION = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "clipboard-read=()",
}
"""Headers of every answer: nothing is stored, no address is passed on, no other page embeds it."""


def client_folder() -> Path | None:
    """Return the folder of textual-serve's client; None without the extra `serve`."""
    found = importlib.util.find_spec("textual_serve")
    if found is None or found.origin is None or importlib.util.find_spec("aiohttp") is None:
        return None
    return Path(found.origin).parent / "static"


def page_for(host: str, base: str) -> tuple[str, str]:
    """Return the page, and its policy: everything comes from this server, and no script from the page itself.

    Args:
        host: host and port as the browser names them.
        base: path of the page, with its token.
    """
    socket = f"ws://{host}{base}ws"
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src data:; "
        f"connect-src ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return _PAGE.format(style=_STYLE, font_size=16, socket=escape(socket), address=escape(base)), policy
