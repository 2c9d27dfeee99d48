"""Prompt of `/init`, with which the model writes or revises `AGENTS.md`."""

FILE = "AGENTS.md"
"""File that `/init` writes."""

_HEAD = """\
Write AGENTS.md at the root of this project: the instructions that coding agents read before they work here."""

_REVISE = """\
Revise AGENTS.md at the root of this project: the instructions that coding agents read before they work here. Read it \
first. Keep what is still true, correct what the code contradicts, remove what no one needs, and add what is missing. \
Edit the file; do not replace it as a whole."""

_BODY = """

Look before you write: the README and contributing pages, the build and package files, the CI configuration, the \
linter and test settings, CLAUDE.md and similar instructions for other agents, and enough of the code to see how it is \
laid out. Run nothing that changes files or takes long.

Write down only what an agent cannot guess and needs in most tasks:

- The commands to set up, build, lint and test, and to run a single test. Copy them from the files; do not invent any.
- How the code is laid out, in a few lines: the main parts, what each is for, and which may depend on which.
- Conventions that the linter does not check: names, errors, tests, commit messages.
- Traps: generated files, code that must not be edited, steps that are easily forgotten.

Leave out general advice, lists of every file, and whatever the README says already; point to it instead. Mark what \
you could not verify. Aim for less than 60 lines of Markdown, with short sentences. At the end, tell me in two or \
three sentences what you wrote and what I should check."""


def init_prompt(*, revise: bool) -> str:
    """Return the prompt; with `revise` for a file that exists."""
    return (_REVISE if revise else _HEAD) + _BODY
