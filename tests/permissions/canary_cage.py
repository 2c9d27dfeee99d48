"""A directory in which commands really run, with a check for changes, canaries and secrets.

It is as hostile as a repository can be: settings, attributes and a merge that name programs, a nested repository, a
false `.git`, files that look like options or programs, and itself on the search path.

Commands run without privileges, almost without a network, and with little time. A program called `canary` records that
it ran; every setting of the repository that could start a program names it.
"""

import asyncio
import hashlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.permissions.paths.protected_paths import ProtectedTree, protected_name
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.processes.child_environment import child_environment, read_only_environment
from tui_agent.tools.processes.process import ProcessSpec
from tui_agent.tools.processes.sandbox import Sandbox

SECRET = "nobody-may-read-this"
"""Content of a file beside the workspace, `../secret.txt`."""
SECONDS = 5.0
"""Time limit of one command."""
_NOBODY = 65_534
_INDEX = os.path.join(".git", "index")
"""`git diff` updates file times in it; staged content stays as it is."""
_ODD_NAMES = ("-n", "-exec", "-or", "-delete", "--pre=canary", "@x", "w new", "--files0-from=..", "a b", "[", "1w.")
_CANARY = '#!/bin/sh\necho "$0 $*" >> "{log}"\n'
_PROGRAM_SETTINGS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.alternateRefsCommand",
    "gpg.program", "gpg.ssh.program", "gpg.x509.program", "pager.log", "pager.branch",
    "interactive.diffFilter", "credential.helper", "sequence.editor", "merge.evil.driver", "remote.origin.uploadpack",
)  # fmt: skip


class CanaryCage:
    """Runs commands and detects whether one of them changed something or ran a canary."""

    def __init__(self, place: Path, *, has_odd_names: bool = True) -> None:
        """
        Args:
            place: an empty directory.
            has_odd_names: adds odd file names, with which no listing is used; without them, more commands are allowed.
        """
        self._odd_names = _ODD_NAMES if has_odd_names else ()
        self.work = place / "work"
        self._place = place
        self._log = place / "log"
        self._programs = place / "bin"
        self._programs.mkdir()
        canary = self._programs / "canary"
        canary.write_text(_CANARY.format(log=self._log), "utf-8")
        canary.chmod(0o755)
        path = f"{self.work}:.:{self._programs}:/usr/local/bin:/usr/bin:/bin"
        self._environment = read_only_environment(
            child_environment({"PATH": path, "HOME": str(place / "home"), "LANG": "C.UTF-8"}), self.work
        )
        self._account = self._account_of_commands()
        (place / "home").mkdir()
        (place / "secret.txt").write_text(f"{SECRET}\n", "utf-8")
        self._output = place / "output"
        self._indexes: dict[str, tuple[bytes, str]] = {}
        self.rebuild()

    def _account_of_commands(self) -> dict[str, Any]:
        return {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}

    def rebuild(self) -> None:
        """Restore everything."""
        shutil.rmtree(self.work, ignore_errors=True)
        self._log.unlink(missing_ok=True)
        self._output.write_bytes(b"")
        (self.work / "sub").mkdir(parents=True)
        for name in ("a.txt", "b.txt", "sub/c.txt", *self._odd_names):
            (self.work / name).write_text(f"x {name}\ncanary\n", "utf-8")
        (self.work / "@x").write_text("../secret.txt\n", "utf-8")
        (self.work / "sub" / "link").symlink_to("../../secret.txt")
        (self.work / "none" / ".git").mkdir(parents=True)
        (self.work / "none" / "d.txt").write_text("d\n", "utf-8")
        (self.work / "link").symlink_to("a.txt")
        (self.work / "out").symlink_to("../secret.txt")
        for name in ("canary", "ls", "git", "wc", "json.py"):
            shutil.copy(self._programs / "canary", self.work / name)
        self._make_repository()
        if self._account:
            for path in (self._place, *self._place.rglob("*")):
                os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
        self._before = self._state()

    def changed_by(self, commands: Sequence[str]) -> bool:
        """True if the commands left a trace or showed the secret. Call `rebuild` afterwards."""
        self._output.write_bytes(b"")
        for command in commands:
            self._run(command)
        return self._log.exists() or self._shows_secret() or self._state() != self._before

    def culprits(self, commands: Sequence[str]) -> list[str]:
        """Return the commands that leave a trace, each run alone, with a description."""
        if not self.changed_by(commands):
            return []
        found = [f"{list(commands)} together: {self.story()}"]
        self.rebuild()
        for command in commands:
            if self.changed_by([command]):
                found.append(f"{command!r}: {self.story()}")
                self.rebuild()
        return found[1:] or found

    def story(self) -> str:
        """Describe the differences."""
        recorded = self._log.read_text("utf-8", "replace") if self._log.exists() else ""
        now = self._state()
        names = sorted(name for name in {*now, *self._before} if now.get(name) != self._before.get(name))
        return f"canary: {recorded!r}, changed: {names}, secret shown: {self._shows_secret()}"

    def _shows_secret(self) -> bool:
        return SECRET.encode() in self._output.read_bytes()

    def _make_repository(self) -> None:
        """Make a repository with a conflicted merge, a nested repository and settings that name the canary wherever
        possible.
        """
        environment = {
            **self._environment,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        }
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "safe.directory=*")
        inner = self.work / "inner"
        inner.mkdir()

        def git(*words: str, place: Path = self.work, can_fail: bool = False) -> None:
            subprocess.run(
                ("git", *who, *words),
                cwd=place,
                env=environment,
                check=not can_fail,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

        def commit(branch: str, text: str) -> None:
            git("checkout", "-q", "-B", branch, "main")
            (self.work / "b.txt").write_text(text, "utf-8")
            git("commit", "-q", "-a", "-m", branch)

        git("init", "-q", "-b", "main")
        git("add", "a.txt", "b.txt", "sub", "none/d.txt", "--", *self._odd_names)
        git("commit", "-q", "-m", "x")
        commit("one", "one\n")
        commit("two", "two\n")
        git("merge", "-q", "one", can_fail=True)
        (self.work / "b.txt").write_text("three x\ncanary\n", "utf-8")
        git("commit", "-q", "-a", "-m", "merged")
        git("init", "-q", "-b", "main", place=inner)
        (inner / "a.txt").write_text("inner\n", "utf-8")
        git("add", "a.txt", place=inner)
        git("commit", "-q", "-m", "x", place=inner)
        (inner / "a.txt").write_text("other\n", "utf-8")
        (self.work / ".gitattributes").write_text("* diff=evil filter=evil merge=evil\n", "utf-8")
        (self.work / "a.txt").write_text("other\n", "utf-8")
        canary = self._programs / "canary"
        settings = "".join(
            f"[{_section(key)}]\n\t{key.rsplit('.', 1)[1]} = {canary} {key}\n" for key in _PROGRAM_SETTINGS
        )
        extra = "[log]\n\tshowSignature = true\n[diff]\n\tnoprefix = true\n[format]\n\tpretty = %h %G?\n"
        with (self.work / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(settings + extra)
        with (inner / ".git" / "config").open("a", encoding="utf-8") as file:
            file.write(f"{settings}[diff]\n\texternal = {canary} diff.external\n")

    def _run(self, command: str) -> None:
        """Run one command as the tool would."""
        self._run_program(("/bin/bash", "--noprofile", "--norc", "-c", "--", command), self._environment)

    def _run_program(
        self, argv: Sequence[str], environment: Mapping[str, str], descriptors: Collection[int] = ()
    ) -> None:
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                argv,
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=descriptors,
                **self._account,
            )
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _state(self) -> dict[str, str]:
        """Return every file with its kind, mode and content."""
        found: dict[str, str] = {}
        for directory, folders, files in os.walk(self.work):
            for name in (*folders, *files):
                path = os.path.join(directory, name)
                status = os.lstat(path)
                held = ""
                if os.path.islink(path):
                    held = os.readlink(path)
                elif path.endswith(_INDEX):
                    held = self._staged(directory, path)
                elif os.path.isfile(path):
                    held = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                found[os.path.relpath(path, self.work)] = f"{status.st_mode:o} {held}"
        return found

    def _staged(self, directory: str, path: str) -> str:
        """Return the staged content of an index, without file times."""
        content = Path(path).read_bytes()
        if self._indexes.get(path, (b"", ""))[0] != content:
            words = ("git", "-c", "safe.directory=*", "ls-files", "--stage")
            listed = subprocess.run(words, cwd=Path(directory).parent, env=self._environment, capture_output=True)
            self._indexes[path] = (content, hashlib.sha256(listed.stdout).hexdigest())
        return self._indexes[path][1]


class BoxedCage(CanaryCage):
    """Runs any commands in the sandbox. Only changes of what is protected, or beside the workspace, are traces.

    A nested repository may move, and new protected names may appear: both are reported after a command.
    """

    def __init__(self, place: Path, *, has_odd_names: bool = True) -> None:
        """
        Args:
            place: an empty directory that the sandbox does not hide, so not below `/tmp`.
            has_odd_names: as for `CanaryCage`.

        Raises:
            RuntimeError: the sandbox does not work here.
        """
        super().__init__(place, has_odd_names=has_odd_names)
        self._sandbox = Sandbox(lambda work: ProtectedTree(work).places())
        self._run("echo it-works")
        if "it-works" not in self._output.read_text("utf-8", "replace"):
            raise RuntimeError(f"the sandbox does not work here: {self._output.read_text('utf-8', 'replace')}")

    def _account_of_commands(self) -> dict[str, Any]:
        return {}  # The sandbox takes the rights away.

    def changed_by(self, commands: Sequence[str]) -> bool:
        """True if the commands left a trace. The workspace is rebuilt if they changed it in another way."""
        for command in commands:
            self._run(command)
        now = self._state()
        is_guilty = self._log.exists() or any(map(self._is_guarded, self._differences(now)))
        if not is_guilty and now != self._before:
            self.rebuild()
        return is_guilty

    def _run(self, command: str) -> None:
        bash = ("/bin/bash", "--noprofile", "--norc", "-c", "--", command)

        async def run() -> None:
            async with self._sandbox.around(ProcessSpec(bash, self.work, self._environment, None)) as boxed:
                self._run_program(boxed.spec.argv, boxed.spec.environment, boxed.spec.descriptors)

        with suppress(ToolError):  # Where the sandbox cannot protect everything, no command runs.
            asyncio.run(run())

    def _differences(self, now: dict[str, str]) -> list[str]:
        """Return what changed or is gone, but not what moved with a directory above it: that is reported afterwards."""
        is_here = {name for name in self._before if name in now or name.startswith(("../", ".git"))}
        return [name for name in is_here if now.get(name) != self._before[name]]

    def _is_guarded(self, name: str) -> bool:
        return name.startswith("../") or protected_name(name) is not None

    def _state(self) -> dict[str, str]:
        beside = (self._place / "secret.txt", self._place / "home", self._programs, self._programs / "canary")
        return super()._state() | {f"../{path.name}": str(path.lstat().st_mtime_ns) for path in beside}


def bound_resources() -> None:
    """Limit file size and memory of this process and its children; call it in a process of its own."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000_000, 50_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _section(key: str) -> str:
    section, _, rest = key.partition(".")
    middle = rest.rpartition(".")[0]
    return f'{section} "{middle}"' if middle else section
