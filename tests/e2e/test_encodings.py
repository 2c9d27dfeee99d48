"""Keys as terminals send them: each row of a table is typed as bytes into the program, in three encodings."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from tests.support.server_thread import ServerThread

from .script import bodies_of, says, step, words_in
from .user_machine import App, UserMachine

Encoding = Literal["xterm", "tmux", "kitty"]
ENCODINGS = get_args(Encoding)

CLEAR = {"xterm": "\x03", "tmux": "\x03", "kitty": "\x1b[99;5u"}
ESCAPE = {"xterm": "\x1b", "tmux": "\x1b", "kitty": "\x1b[27u"}
ALT_ENTER = {"xterm": "\x1b\r", "tmux": "\x1b[27;3;13~", "kitty": "\x1b[13;3u"}
SHIFT_TAB = {"xterm": "\x1b[Z", "tmux": "\x1b[27;2;9~", "kitty": "\x1b[9;2u"}
NEW_LINE = "\n   "
"""A line break as the composer shows it."""


@dataclass(frozen=True)
class TypedKey:
    """One key: the text before it, its bytes in each encoding, and the draft after an `x` typed behind it."""

    name: str
    before: str
    xterm: str
    tmux: str
    kitty: str
    after: str

    def bytes_in(self, encoding: Encoding) -> str:
        return {"xterm": self.xterm, "tmux": self.tmux, "kitty": self.kitty}[encoding]


KEYS = (
    TypedKey("a", "", "a", "a", "\x1b[97;;97u", "ax"),
    TypedKey("A", "", "A", "A", "\x1b[97;2;65u", "Ax"),
    TypedKey("é", "", "é", "é", "\x1b[233;;233u", "éx"),
    TypedKey("backspace", "ab", "\x7f", "\x7f", "\x1b[127u", "ax"),
    TypedKey("shift+enter", "a", "\x1b[27;2;13~", "\x1b[27;2;13~", "\x1b[13;2u", f"a{NEW_LINE}x"),
    TypedKey("shift+enter, csi u", "a", "\x1b[13;2u", "\x1b[13;2u", "\x1b[13;2u", f"a{NEW_LINE}x"),
    TypedKey("ctrl+j", "a", "\n", "\x1b[27;5;106~", "\x1b[106;5u", f"a{NEW_LINE}x"),
    TypedKey("left", "ab", "\x1b[D", "\x1bOD", "\x1b[1D", "axb"),
    TypedKey("alt+left", "one two", "\x1b[1;3D", "\x1b[1;3D", "\x1b[1;3D", "one xtwo"),
    TypedKey("alt+left as escape and left", "one two", "\x1b\x1b[D", "\x1b\x1bOD", "\x1b\x1b[D", "one xtwo"),
    TypedKey("alt+b", "one two", "\x1bb", "\x1bb", "\x1b[98;3u", "one xtwo"),
    TypedKey("alt+up", "one", "\x1b[1;3A", "\x1b[1;3A", "\x1b[1;3A", "onex"),
    TypedKey("alt+down", "one", "\x1b\x1b[B", "\x1b[1;3B", "\x1b[1;3B", "onex"),
    TypedKey("ctrl+left", "one two", "\x1b[1;5D", "\x1b[1;5D", "\x1b[1;5D", "one xtwo"),
    TypedKey("paste", "a", *["\x1b[200~b\x1bc\x1b[201~"] * 3, r"ab\x1bcx"),
    TypedKey("focus out and in", "a", "\x1b[O\x1b[I", "\x1b[O\x1b[I", "\x1b[O\x1b[I", "ax"),
    TypedKey("background, asked for", "a", *["\x1b]11;rgb:0000/0000/0000\x1b\\"] * 3, "ax"),
    TypedKey("cursor's position, not asked for", "a", *["\x1b[12;34R"] * 3, "ax"),
)


def draft_of(app: App) -> str:
    """Return all lines of the composer; empty while the screen shows half of a frame."""
    lines = app.screen.lines
    first = max((place for place, line in enumerate(lines) if line.startswith(" › ")), default=len(lines) - 1)
    rows = [lines[first][3:], *(f"\n{line}" for line in lines[first + 1 : -1])]
    return "".join(row.rstrip() for row in rows)


def rung(app: App) -> int:
    """Return how often the bell has rung. A bell character also ends titles and other commands."""
    return re.sub(rb"\x1b\].*?(?:\x07|\x1b\\)", b"", bytes(app.raw), flags=re.DOTALL).count(b"\x07")


def clear(app: App, encoding: Encoding) -> None:
    app.write(CLEAR[encoding])
    app.wait_for_draft("")


def test_every_key_has_its_effect(machine: UserMachine) -> None:
    begin, end = "\x1b[200~", "\x1b[201~"
    script = [says(f"It is sent as {encoding}.") for encoding in ENCODINGS]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        for encoding, mode in zip(ENCODINGS, ("accept edits", "plan", "ask"), strict=True):
            for key in KEYS:
                with step(f"{key.name} as {encoding}"):
                    app.write(key.before)
                    app.wait_for(lambda _, text=key.before: draft_of(app) == text if text else not app.draft)
                    app.write(key.bytes_in(encoding))
                    app.write("x")
                    app.wait_for(lambda _, text=key.after: draft_of(app) == text, patience=20.0)
                    clear(app, encoding)
            with step(f"shift+tab and alt+enter as {encoding}"):
                app.write(SHIFT_TAB[encoding])
                app.wait_for_mode(mode)
                app.write("sent")
                app.wait_for_draft("sent")
                app.write(ALT_ENTER[encoding])
                app.write("x")
                app.wait_for(lambda _: draft_of(app).split() == ["sent", "x"])
                app.press("enter")
                app.wait_for_words(f"It is sent as {encoding}.")
                app.wait_for_status("ready")
                assert words_in(bodies_of(server)[-1])[-1] == "sent\nx"

            with step(f"escape alone is escape as {encoding}"):
                app.write("/too")
                app.wait_for("/tools")
                app.write(ESCAPE[encoding])
                app.wait_until_gone("/tools")
                assert app.draft == "/too"
                clear(app, encoding)

        with step("escape in front of a key is not escape"):
            app.write("/too")
            app.wait_for("/tools")
            app.write("\x1b")
            app.write("[D")
            app.write("x")
            app.wait_for_draft("/toxo")
            clear(app, "xterm")

        for cut in range(1, 6):
            with step(f"the brackets of a paste come in two parts, {cut}"):
                app.write("a")
                app.write(begin[:cut])
                app.write(begin[cut:])
                app.write("b\rc")
                app.write(end[:cut])
                app.write(end[cut:])
                app.write("d")
                app.wait_for(lambda _: draft_of(app) == f"ab{NEW_LINE}cd")
                clear(app, "xterm")
        app.quit()
