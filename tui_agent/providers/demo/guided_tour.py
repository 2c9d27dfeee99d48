"""The guided tour: read, run, fix and rerun a failing test of a small sample project, then one command in a trial.

In two minutes it shows parallel reads, live output, steering, an approval, and changes that wait to be kept. The
package stores the project's files with the suffix `.txt`, so that no tool takes them for code of this package.
"""

import importlib.util
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .demo_task import DemoCall, DemoTurn, Goal, Outcomes, first_error, first_line

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

SAMPLE_FILES = frozenset({"README.md", "cart.py", "prices.py", "pyproject.toml", "test_cart.py"})
"""Names of the files of the sample project, a shop with one failing test."""

_NOTE = re.compile(r"\[((?:kept|discarded): [^\]]*)\]")
_REASON = re.compile(r" \([^)]*\)")
_FAILED = re.compile(r"(\d+) failed|FAILED \((?:failures|errors)=(\d+)")
_PASSED = re.compile(r"(\d+) passed|Ran (\d+) tests?\b.*\n\s*OK\b", re.DOTALL)


def copy_sample_project(target: Path) -> None:
    """Copy the project into `target`, which is created if missing, over files of an earlier copy. Blocks.

    Raises:
        OSError: a file cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(SAMPLE_FILES):
        (target / name).write_bytes((Path(__file__).parent / "sample" / f"{name}.txt").read_bytes())


def sample_test_command(directory: Path) -> str:
    """Return a command that runs the tests of a copy from any working directory, with pytest if it is installed.

    One simple command, so that a permission rule can name it exactly.
    """
    found = shutil.which("python3")
    same = found is not None and Path(found).parent == Path(sys.executable).parent
    python = "python3" if found else shlex.quote(sys.executable)
    where = shlex.quote(str(directory))
    if (same or not found) and importlib.util.find_spec("pytest") is not None:
        return f"{python} -m pytest -q {where}"
    return f"{python} -m unittest discover -v -s {where}"


@dataclass(frozen=True, slots=True)
class DemoWorkspace:
    """The copy of the sample project. Each method is a step of the tour, by the results of the step before."""

    directory: str
    """Absolute path of the copy."""
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

    def start_tour(self) -> DemoTurn:
        """Return the first step of the tour, on a fresh copy of the sample."""
        text = (
            f"I made a fresh copy of a small sample project, a shop, in `{self.directory}`. The whole tour "
            "happens there; your own files stay as they are. One of its tests fails.\n\n"
            "I'll read its README, its code and its tests, all three at the same time."
        )
        return DemoTurn(
            text,
            tuple(DemoCall("read", {"path": self.path_of(name)}) for name in READ_FIRST),
            self._run_tests,
            thinking="Guided tour: look before you change anything. Reads are safe, so all three can run at once.",
            fresh_sample=True,
            in_tour=True,
            tools=frozenset({"read", "bash", "edit"}),
        )

    def _run_tests(self, outcomes: Outcomes | None) -> DemoTurn:
        if outcomes is None:
            return self._propose_edit(None)
        if failed := first_error(outcomes):
            return DemoTurn(f"I cannot read the sample project, so the tour ends here: {first_line(failed.text)}")
        text = (
            "The README promises a discount for *ten or more* of an item. Next I'll run the tests, which takes a "
            "few seconds.\n\n"
            "**Now try steering.** While the tests run, type `also show prices.py`, `skip` or `stop` and press Enter. "
            "I'll act on it as soon as they finish."
        )
        return self._step(text, self._test_run(), self._propose_edit)

    def _propose_edit(self, outcomes: Outcomes | None) -> DemoTurn:
        failed, passed, output = _counts(outcomes)
        if outcomes is None:
            finding = "Skipping the tests: the code shows the mistake."
        elif failed:
            finding = f"{_tests(failed)} of {failed + passed} fails." if passed else "A test fails."
        elif passed:
            return DemoTurn(f"All {_tests(passed)} pass already, so there is nothing to fix. The tour ends here.")
        else:
            finding = f"The tests did not run ({first_line(output)}), but the code shows the mistake."
        text = (
            f"{finding} Ten pieces get no discount: `cart.py` asks for *more than* ten, with `>` instead of `>=`.\n\n"
            "Here is the edit. Nothing is written until you allow it."
        )
        edit = {"path": self.path_of("cart.py"), "old_string": WRONG_LINES, "new_string": RIGHT_LINES}
        thinking = "An off-by-one error: ten itself is left out. Change one sign, and say why in a comment."
        return self._step(text, DemoCall("edit", edit), self._run_tests_again, thinking)

    def _run_tests_again(self, outcomes: Outcomes | None) -> DemoTurn:
        if outcomes is None:
            return DemoTurn("Skipping the edit: the test still fails. The tour ends here.")
        if failed := first_error(outcomes):
            text = f"The edit was not made: {first_line(failed.text)}\n\n"
            return DemoTurn(f"{text}I changed nothing. Type `fix the failing test` to start again.")
        return self._step("The edit is in place. I'll run the tests again.", self._test_run(), self._run_trial)

    def _run_trial(self, outcomes: Outcomes | None) -> DemoTurn:
        if outcomes is None:
            return DemoTurn("Skipping the second test run: the edit is in place, but untested. The tour ends here.")
        failed, passed, output = _counts(outcomes)
        if failed or not passed:
            finding = f"{_tests(failed)} still fail" if failed else f"The tests did not run ({first_line(output)})"
            return DemoTurn(f"{finding}. The edit is in `{self.path_of('cart.py')}`; please check it yourself.")
        text = (
            f"**All {_tests(passed)} pass.** Last, a trial: a command that writes two files into the shop. It runs at "
            "once, on a copy of the folder, and nothing is in the folder before you keep it. **Press `h` to keep one "
            "of the two files, or `n` to discard both.**\n\n"
            "Where trials do not work, the same command asks before it runs."
        )
        command = f"cd {shlex.quote(self.directory)}; {TRIAL_COMMAND}"
        call = DemoCall("bash", {"command": command, "description": "Write two files into the shop"})
        return self._step(text, call, self._summarise)

    def _summarise(self, outcomes: Outcomes | None) -> DemoTurn:
        points = [
            "three reads that ran at the same time, without asking you",
            "a test run with live output, which you could steer",
            "one edit that waited for your answer",
        ]
        if outcomes is None:
            finding = "Skipping the trial."
        elif note := _NOTE.search(_output(outcomes)):
            finding = f"The result: {_REASON.sub('', note[1])}."
            points.append("a command whose changes waited for you")
        elif first_error(outcomes):
            finding = "The command did not run, so the shop is as it was."
        else:
            names = " and ".join(f"`{name}`" for name in TRIAL_FILES)
            finding = f"It ran in the shop itself, not in a trial, and wrote {names}."
        listed = "\n".join(f"- {point}" for point in points)
        return DemoTurn(
            f"{finding}\n\nYou have seen:\n\n{listed}\n\n"
            f"The project stays in `{self.directory}` until you quit. Now try your own files: "
            "`list files`, `show README.md` or `find TODO`. Type `help` for everything I understand."
        )

    def _test_run(self) -> DemoCall:
        return DemoCall("bash", {"command": self.test_command, "description": "Run the sample project's tests"})

    def _step(self, text: str, call: DemoCall, goal: Goal, thinking: str = "") -> DemoTurn:
        return DemoTurn(text, (call,), goal, thinking, in_tour=True)


def _counts(outcomes: Outcomes | None) -> tuple[int, int, str]:
    """Return the numbers of failed and passed tests, and the output that names them."""
    output = _output(outcomes or ())
    failed, passed = _FAILED.search(output), _PASSED.search(output)
    numbers = [int(next(filter(None, match.groups()))) if match else 0 for match in (failed, passed)]
    return numbers[0], numbers[1], output


def _output(outcomes: Outcomes) -> str:
    return "\n".join(outcome.text for outcome in outcomes)


def _tests(number: int) -> str:
    return f"{number} test{'' if number == 1 else 's'}"
