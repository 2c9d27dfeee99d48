"""The user's machine for one test: home, work directory, installed program, and a view of its screen."""

import json
import os
import re
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.support.forked_program import PROGRAM, PipedProgram, run_forked
from tests.support.server_thread import ServerThread
from tests.support.terminal import PATIENCE, ScreenBuffer, Terminal
from tui_agent.session import SessionStore

PROMPT_SIGN = " › "
PLACEHOLDERS = ("Ask for something", "Type to steer")
"""Placeholder of the empty composer."""
WIDE = (120, 40)
NARROW = (80, 24)


_QUESTIONS = {"bash": r"▲ Run this command", "edit": r"▲ Edit \S", "write": r"▲ (Create|Edit) \S"}
"""Patterns of the titles of questions by tool."""


class App(Terminal):
    """The full-screen program as a user operates it: read the screen, then type."""

    def ready(self) -> None:
        """Wait until it accepts input."""
        self.wait_for(lambda screen: PROMPT_SIGN in screen.text and screen.lines[-1].startswith(" ●"))

    def say(self, text: str) -> None:
        """Type a line, wait until the composer shows it, and send it."""
        self.type(text)
        self.wait_for_draft(text)
        self.press("enter")
        self.wait_for_draft("")

    @property
    def draft(self) -> str:
        """Text in the composer; empty if a dialog covers it."""
        return draft_on(self.screen)

    def wait_for_draft(self, text: str) -> None:
        """Wait until the composer contains exactly this text."""
        self.wait_for(lambda screen: draft_on(screen) == text)

    def wait_for_all(self, *texts: str) -> str:
        """Wait until the screen shows all of these texts at the same time."""
        return self.wait_for(lambda screen: all(text in screen.text for text in texts))

    def wait_for_words(self, words: str) -> str:
        """Wait until the transcript contains this text, with any line breaks; return the transcript."""
        return conversation_on(self.wait_for(lambda screen: words in conversation_on(screen.text)))

    def wait_until_gone(self, text: str) -> str:
        """Wait until the screen no longer shows this text."""
        return self.wait_for(lambda screen: text not in screen.text)

    def wait_for_status(self, words: str) -> str:
        """Wait until the last line begins with this text, after its symbol."""
        return self.wait_for(lambda screen: screen.lines[-1][3:].startswith(words))

    def wait_for_mode(self, mode: str) -> None:
        """Wait until the frame of the composer shows the mode."""
        self.wait_for_row(rf" · {mode}$")

    def wait_for_row(self, pattern: str) -> re.Match[str]:
        """Wait until a row of the screen matches the pattern."""
        found: list[re.Match[str]] = []

        def holds(screen: ScreenBuffer) -> bool:
            found[:] = [match for line in screen.lines if (match := re.search(pattern, line))]
            return bool(found)

        self.wait_for(holds)
        return found[0]

    def wait_for_call(self, sign: str, number: int, tool: str) -> None:
        """Wait until the conversation or the column shows a call with this sign; a done one may have no number."""
        done = rf"|{tool}\b(?!.* #\d)" if sign == "✔" else ""
        self.wait_for_row(rf"{sign} (#{number} {tool}\b|{tool}\b.* #{number}\b{done})")

    def wait_for_question(self, tool: str) -> str:
        """Wait until the screen shows a question about this tool and accepts answers.

        The keys have a colour of their own from then on.
        """
        self.wait_for_row(_QUESTIONS.get(tool, rf"▲ Use {re.escape(tool)}\?"))
        self.wait_until_armed("y yes")
        return self.screen.text

    def answer_trial(self, key: str) -> None:
        """Answer the question about a command: about its changes, or where no trial works before it runs."""
        self.wait_for_row(r"▲ (Keep what|Run this command)")
        self.wait_until_armed("y keep" if "Keep what" in self.screen.text else "y yes")
        self.press(key)

    def wait_until_armed(self, hint: str) -> None:
        """Wait until the key of a hint, such as `y yes`, has another colour than its text."""
        words = hint.index(" ") + 1
        self.wait_for(lambda screen: hint in screen.text and screen.look_of(hint) != screen.look_of(hint, words))

    def quit(self) -> None:
        """Quit, and check that the terminal is restored."""
        self.press("ctrl+q")
        assert self.wait_for_end() == 0
        assert self.left_behind == []


class UserMachine:
    """Environment of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.work, self.temporary = root / "home", root / "work", root / "tmp"
        for directory in (self.home, self.work, self.temporary):
            directory.mkdir()
        self.tag = f"{os.getpid()}{zlib.crc32(os.fsencode(root)):010d}"
        """Digits that occur in no other command line, to find processes by."""
        self.forks = True
        """False if the start itself is tested: each program imports its modules, which takes a second of CPU time."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the program, without the variables of the test run."""
        path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
        return {"HOME": str(self.home), "TMPDIR": str(self.temporary), "PATH": path, "LANG": "C.UTF-8"}

    def app(self, *arguments: str, size: tuple[int, int] = WIDE, variables: Mapping[str, str] | None = None) -> App:
        """Start the full-screen program."""
        return App(
            [str(PROGRAM), *arguments],
            cwd=self.work,
            environment={**self.environment, **(variables or {})},
            columns=size[0],
            rows=size[1],
            forked=self._may_fork(variables),
        )

    def _may_fork(self, variables: Mapping[str, str] | None) -> bool:
        """Return False if something runs at the start of the interpreter."""
        folders = (variables or {}).get("PYTHONPATH", "").split(os.pathsep)
        return self.forks and not any(folder and Path(folder, "sitecustomize.py").exists() for folder in folders)

    def app_on(self, server: ServerThread, *arguments: str, size: tuple[int, int] = WIDE) -> App:
        """Start the full-screen program with a scripted model."""
        return self.app(*arguments, size=size, variables=server.environment)

    def shell(self) -> App:
        """Start a shell with job control, from which to start the program."""
        variables = {**self.environment, "PS1": "shell> "}
        return App(["bash", "--norc", "--noprofile", "-i"], cwd=self.work, environment=variables)

    def run(
        self, *arguments: str, stdin: str | None = None, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program without a terminal, to its end."""
        command = [str(PROGRAM), *arguments]
        environment = {**self.environment, **(variables or {})}
        if self._may_fork(variables):
            return run_forked(command, cwd=self.work, environment=environment, stdin=stdin, patience=PATIENCE)
        return subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def piped(self, *arguments: str, variables: Mapping[str, str] | None = None) -> PipedProgram:
        """Start the program with pipes."""
        environment = {**self.environment, **(variables or {})}
        return PipedProgram([str(PROGRAM), *arguments], cwd=self.work, environment=environment)

    def file(self, name: str, text: str) -> Path:
        """Put a file into the work directory."""
        path = self.work / name
        path.write_text(text, "utf-8")
        return path

    @property
    def sample(self) -> Path:
        """Directory of the guided tour."""
        return next(self.temporary.glob("tour-*"))

    @property
    def journals(self) -> list[Path]:
        """Return the files of the sessions."""
        return sorted((self.home / ".local/state/tui-agent/sessions").glob("*.jsonl"))

    def events(self) -> list[dict[str, Any]]:
        """Return every event of the only session.

        Raises:
            AssertionError: there is a problem with the journal.
        """
        (journal,) = self.journals
        # Here and not by the installed program, whose start would take longer than many a test.
        session = SessionStore(journal.parent).load(journal.stem)
        assert session.problems == ()
        return [json.loads(envelope.to_json()) for envelope in session.envelopes]

    def processes(self) -> list[str]:
        """Return the command lines of running processes with this test's tag."""
        found: list[str] = []
        for process in psutil.process_iter():
            try:
                line = " ".join(process.cmdline())
                if self.tag in line and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(line)
            except psutil.Error:
                continue
        return found

    def end_processes(self) -> None:
        """Kill the processes left by this test; for tests that kill the program."""
        for process in psutil.process_iter():
            try:
                if self.tag in " ".join(process.cmdline()):
                    process.kill()
            except psutil.Error:
                continue


def conversation_on(text: str) -> str:
    """Return the text of a screen in one line, without the panel."""
    return " ".join(" ".join(line.partition("│")[0].split()) for line in text.splitlines())


def draft_on(screen: ScreenBuffer) -> str:
    """Return the composer's first line; empty if it is hidden."""
    lines = [line.removeprefix(PROMPT_SIGN) for line in screen.lines if line.startswith(PROMPT_SIGN)]
    draft = lines[-1].rstrip() if lines else ""
    return "" if draft.startswith(PLACEHOLDERS) else draft
