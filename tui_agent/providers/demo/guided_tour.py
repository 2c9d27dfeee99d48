"""The guided tour: read, run, fix and rerun a failing test of a small sample project, then one command in a trial.

In two minutes it shows parallel reads, live output, steering, an approval, and changes that wait to be kept.
"""

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from .demo_goals import first_line
from .demo_transcript import Outcome
from .demo_turn import DemoCall, DemoTurn
from .sample_project import SAMPLE_FILES

READ_FIRST = ("README.md", "cart.py", "test_cart.py")
WRONG_LINES = "        if quantity > BULK:\n            total -= total * BULK_DISCOUNT // 100\n"
RIGHT_LINES = (
    '        # "Ten or more" includes ten itself.\n'
    "        if quantity >= BULK:\n"
    "            total -= total * BULK_DISCOUNT // 100\n"
)

TRIAL_FILES = ("prices.csv", "notes.txt")
TRIAL_COMMAND = (
    f"printf 'apple,40\\nbread,320\\n' > {TRIAL_FILES[0]}; "
    f"printf 'Ten or more of an item: 20 %% off.\\n' > {TRIAL_FILES[1]}"
)
"""Command that writes two files into its directory: in a trial they are there only once the user keeps them."""

_NOTE = re.compile(r"\[((?:kept|discarded): [^\]]*)\]")
_REASON = re.compile(r" \([^)]*\)")
_FAILED = re.compile(r"(\d+) failed|FAILED \((?:failures|errors)=(\d+)")
_PASSED = re.compile(r"(\d+) passed|Ran (\d+) tests?\b.*\n\s*OK\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DemoWorkspace:
    """The sample project of the tour."""

    directory: str
    """Absolute path of the copy of the sample project."""
    test_command: str
    """Command that runs its tests from any working directory."""
    in_tour: bool = False
    """True if names of sample files mean those files."""

    def resolve(self, path: str) -> str:
        """Return the path the user means: during the tour, the sample's files take precedence."""
        return self.path_of(path) if self.in_tour and path in SAMPLE_FILES else path

    def path_of(self, name: str) -> str:
        """Return the path of a file of the sample."""
        return str(PurePosixPath(self.directory) / name)


def start_tour(demo_workspace: DemoWorkspace) -> DemoTurn:
    """Return the first step of the tour, on a fresh copy of the sample."""
    calls = tuple(DemoCall("read", {"path": demo_workspace.path_of(name)}) for name in READ_FIRST)
    text = (
        f"I made a fresh copy of a small sample project, a shop, in `{demo_workspace.directory}`. The whole tour "
        "happens there; your own files stay as they are. One of its tests fails.\n\n"
        "I'll read its README, its code and its tests, all three at the same time."
    )
    return DemoTurn(
        text,
        calls,
        _FilesRead(demo_workspace),
        thinking="Guided tour: look before you change anything. Reads are safe, so all three can run at once.",
        fresh_sample=True,
        tools=frozenset({"read", "bash", "edit"}),
    )


def is_tour(turn: DemoTurn) -> bool:
    """Return True if a turn belongs to the tour."""
    return isinstance(turn.waits, _FilesRead | _TestsRun | _EditMade | _TestsRunAgain | _TrialMade)


@dataclass(frozen=True, slots=True)
class _FilesRead:
    """The files are being read; next the tests run."""

    demo_workspace: DemoWorkspace

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        failed = next((outcome for outcome in outcomes if outcome.is_error), None)
        if failed is not None:
            return DemoTurn(f"I cannot read the sample project, so the tour ends here: {first_line(failed.text)}")
        text = (
            "The README promises a discount for *ten or more* of an item. Next I'll run the tests, which takes a "
            "few seconds.\n\n"
            "**Now try steering.** While the tests run, type `also show prices.py`, `skip` or `stop` and press Enter. "
            "I'll act on it as soon as they finish."
        )
        return DemoTurn(text, (_run_tests(self.demo_workspace),), _TestsRun(self.demo_workspace))

    def skip(self) -> DemoTurn:
        return _TestsRun(self.demo_workspace).skip()


@dataclass(frozen=True, slots=True)
class _TestsRun:
    """The tests are running; next the edit is proposed."""

    demo_workspace: DemoWorkspace

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        output = "\n".join(outcome.text for outcome in outcomes)
        failed, passed = _count(_FAILED, output), _count(_PASSED, output)
        if failed:
            return self._propose(f"{_tests(failed)} of {failed + passed} fails." if passed else "A test fails.")
        if passed:
            return DemoTurn(f"All {_tests(passed)} pass already, so there is nothing to fix. The tour ends here.")
        return self._propose(f"The tests did not run ({first_line(output)}), but the code shows the mistake.")

    def skip(self) -> DemoTurn:
        return self._propose("Skipping the tests: the code shows the mistake.")

    def _propose(self, finding: str) -> DemoTurn:
        text = (
            f"{finding} Ten pieces get no discount: `cart.py` asks for *more than* ten, with `>` instead of `>=`.\n\n"
            "Here is the edit. Nothing is written until you allow it."
        )
        arguments = {
            "path": self.demo_workspace.path_of("cart.py"),
            "old_string": WRONG_LINES,
            "new_string": RIGHT_LINES,
        }
        thinking = "An off-by-one error: ten itself is left out. Change one sign, and say why in a comment."
        return DemoTurn(text, (DemoCall("edit", arguments),), _EditMade(self.demo_workspace), thinking)


@dataclass(frozen=True, slots=True)
class _EditMade:
    """The edit waits for an answer; next the tests run again."""

    demo_workspace: DemoWorkspace

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        failed = next((outcome for outcome in outcomes if outcome.is_error), None)
        if failed is not None:
            text = (
                f"The edit was not made: {first_line(failed.text)}\n\n"
                "I changed nothing. Type `fix the failing test` to start again."
            )
            return DemoTurn(text)
        text = "The edit is in place. I'll run the tests again."
        return DemoTurn(text, (_run_tests(self.demo_workspace),), _TestsRunAgain(self.demo_workspace))

    def skip(self) -> DemoTurn:
        return DemoTurn("Skipping the edit: the test still fails. The tour ends here.")


@dataclass(frozen=True, slots=True)
class _TestsRunAgain:
    """The tests run for the second time; next a command runs in a trial."""

    demo_workspace: DemoWorkspace

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        output = "\n".join(outcome.text for outcome in outcomes)
        failed, passed = _count(_FAILED, output), _count(_PASSED, output)
        if failed or not passed:
            finding = f"{_tests(failed)} still fail" if failed else f"The tests did not run ({first_line(output)})"
            return DemoTurn(
                f"{finding}. The edit is in `{self.demo_workspace.path_of('cart.py')}`; please check it yourself."
            )
        text = (
            f"**All {_tests(passed)} pass.** Last, a trial: a command that writes two files into the shop. It runs at "
            "once, on a copy of the folder, and nothing is in the folder before you keep it. **Press `h` to keep one "
            "of the two files, or `n` to discard both.**\n\n"
            "Where trials do not work, the same command asks before it runs."
        )
        command = f"cd {shlex.quote(self.demo_workspace.directory)}; {TRIAL_COMMAND}"
        call = DemoCall("bash", {"command": command, "description": "Write two files into the shop"})
        return DemoTurn(text, (call,), _TrialMade(self.demo_workspace))

    def skip(self) -> DemoTurn:
        return DemoTurn("Skipping the second test run: the edit is in place, but untested. The tour ends here.")


@dataclass(frozen=True, slots=True)
class _TrialMade:
    """The changes of a command wait for an answer; after that comes the summary."""

    demo_workspace: DemoWorkspace

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        output = "\n".join(outcome.text for outcome in outcomes)
        names = " and ".join(f"`{name}`" for name in TRIAL_FILES)
        if note := _NOTE.search(output):
            return self._summary(f"The result: {_REASON.sub('', note[1])}.", "a command whose changes waited for you")
        if any(outcome.is_error for outcome in outcomes):
            return self._summary("The command did not run, so the shop is as it was.")
        return self._summary(f"It ran in the shop itself, not in a trial, and wrote {names}.")

    def skip(self) -> DemoTurn:
        return self._summary("Skipping the trial.")

    def _summary(self, finding: str, *seen: str) -> DemoTurn:
        points = (
            "three reads that ran at the same time, without asking you",
            "a test run with live output, which you could steer",
            "one edit that waited for your answer",
            *seen,
        )
        listed = "\n".join(f"- {point}" for point in points)
        text = (
            f"{finding}\n\nYou have seen:\n\n{listed}\n\n"
            f"The project stays in `{self.demo_workspace.directory}` until you quit. Now try your own files: "
            "`list files`, `show README.md` or `find TODO`. Type `help` for everything I understand."
        )
        return DemoTurn(text)


def with_sample_names(demo_workspace: DemoWorkspace) -> DemoWorkspace:
    """Return the project with `in_tour` set."""
    return replace(demo_workspace, in_tour=True)


def _run_tests(demo_workspace: DemoWorkspace) -> DemoCall:
    return DemoCall("bash", {"command": demo_workspace.test_command, "description": "Run the sample project's tests"})


def _count(pattern: re.Pattern[str], output: str) -> int:
    match = pattern.search(output)
    return int(next(group for group in match.groups() if group)) if match else 0


def _tests(number: int) -> str:
    return f"{number} test{'' if number == 1 else 's'}"
