"""Write `docs/keys.md` and `docs/commands.md` from the tables of keys and commands and from the command line.

`python docs/make_reference_pages.py` writes the pages; with `--stdout` it prints them.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tui_agent.cli.command_line import program
from tui_agent.ui.base.command_type import Where, key_label
from tui_agent.ui.base.commands import COMMANDS, first_keys, slash_commands
from tui_agent.ui.dialogs.text_page import TITLES

DOCS = Path(__file__).parent

KEYS = """\
# Keys

`f1` shows all keys in the app, those that you need first at the top; `?` in an empty composer shows these. Any of
them can be changed by its name: [`[keys]`](settings.md#keys). `ui.vim_keys = true` adds [the modes of
vim](settings.md#vim-keys) to the composer. The mouse does the same: a click on a label acts as its key, except for
answers that store a rule.

`python docs/make_reference_pages.py` writes this page from the tables of the program.
"""

ANSWERS = """\
A key counts once it is bright. A letter takes effect after half a second without another one: if you type on, all
of it is a message, and it answers nothing. `backspace` recalls an answer that waits. After an answer the next
question takes its key at once. The question is back with `ctrl+y`, or when the message is sent.

After a command that changed files in a trial, the same dialog shows the changes: `Keep what black . changed? 3
files +12 −9`. Nothing of them is in your files yet. `y` keeps them, `n` and `k` discard them, `f` discards them and
tells the agent why, `h` keeps some files or parts of them, and `e` edits a text before you keep it. `s` and `p`
keep such changes from now on, by a rule on their paths. A file that you changed meanwhile is kept only if you
choose it with `h`.
"""

COMMANDS_HEAD = """\
# Commands

What begins with `/`, `!` or `@` in the composer is for tui-agent, not for the model. A text that should begin with
one of them is sent as it is after a backslash: `\\/usr is full`. A command that does not exist is never sent; the
app proposes the nearest.

`python docs/make_reference_pages.py` writes this page from the tables of the program.
"""

MORE_TITLES: dict[Where, str] = {
    "server": "When a tool server asks",
    "items": "In a list of choices",
    "confirm": "When a question has two answers",
    "trust": "When a folder asks for trust",
    "picker": "When a session is open elsewhere",
    "fleet": "On the screen of a fleet",
}
"""Titles of parts that the help page of the chat leaves out."""


def keys_page() -> str:
    """Return the page of keys."""
    lines = [KEYS, "## The keys you need first", ""]
    lines += _table(("key", "action"), ((_labels(entry.keys), entry.help) for entry in first_keys()))
    for where, title in {**TITLES, **MORE_TITLES}.items():
        entries = [entry for entry in COMMANDS if entry.where == where and entry.keys]
        if entries:
            lines += ["", f"## {title.format(interrupt='`esc`')}", ""]
            lines += [ANSWERS] if where == "approval" else []
            rows = ((_labels(entry.keys), entry.help, f"`{entry.id}`") for entry in entries)
            lines += _table(("key", "action", "name"), rows)
    return "\n".join((*lines, ""))


def commands_page() -> str:
    """Return the page of commands."""
    lines = [COMMANDS_HEAD, "## In the composer", ""]
    typed = (entry for entry in COMMANDS if entry.argument and not entry.slash)
    lines += _table(("text", "action"), ((f"`{entry.argument}`", entry.help) for entry in typed))
    lines += ["", "## With `/`", "", "Your own are files: [skills and commands](skills.md).", ""]
    given = ((f"`{f'/{entry.slash} {entry.argument}'.strip()}`", entry.help) for entry in slash_commands())
    lines += _table(("command", "action"), given)
    lines += ["", "## In a shell", "", "`tui-agent COMMAND --help` explains each; the manual page has all options.", ""]
    lines += _table(("command", "action"), _shell_commands())
    return "\n".join((*lines, ""))


def _shell_commands() -> Iterator[tuple[str, str]]:
    context = click.Context(program, info_name="tui-agent", **program.context_settings)
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        if command is not None and not command.hidden:
            yield f"`tui-agent {name}`", command.get_short_help_str(120)


def _labels(keys: Iterable[str]) -> str:
    return " ".join(f"`{key_label(key)}`" for key in keys)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


PAGES = {"keys.md": keys_page, "commands.md": commands_page}
"""Functions that return the pages, by name."""


def main() -> None:
    """Write or print the pages."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--stdout", action="store_true", help="print the pages")
    chosen = arguments.parse_args()
    for name, page in PAGES.items():
        if chosen.stdout:
            sys.stdout.write(page())
        else:
            (DOCS / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
