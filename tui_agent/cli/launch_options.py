"""The agent's launch options, and the types of option values."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from click.shell_completion import CompletionItem

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import Verdict

PICK_SESSION = ""
"""Value of `--resume` without an id."""

DEMO_LABEL = "scripted demo, not a language model"
"""Label that the screen always shows beside the offline model's name."""

OutputFormat = Literal["text", "json", "stream-json", "plain"]
InputFormat = Literal["text", "stream-json", "plain"]


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The command line of one launch."""

    prompt: str | None
    demo: bool
    cwd: Path
    settings: JsonObject
    """Values of the settings' last layer."""
    rules: tuple[tuple[Verdict, str], ...]
    """Permission rules, first match first."""
    system: str | None
    """Replaces the built-in system prompt."""
    continue_last: bool
    resume: str | None
    """Session id, `PICK_SESSION` to let the user choose one, None for a new session."""
    session_id: str | None
    """Id of the new session."""
    keep_session: bool
    print_mode: bool
    output_format: OutputFormat
    input_format: InputFormat
    include_deltas: bool
    trust: bool
    """Apply the folder's own settings for this run, without its allow rules and tool servers."""
    verbose: bool
    record: Path | None = None
    """File to record to."""
    mcp_config: Path | None = None
    """File with tool servers for this launch."""
    notice: str = ""
    """Notice about the choice of the session, for the user."""

    @classmethod
    def for_command(cls, cwd: Path) -> "LaunchOptions":
        """Return the options of a start without any, for commands that show what it would use."""
        return cls(
            prompt=None,
            demo=False,
            cwd=cwd.resolve(),
            settings={},
            rules=(),
            system=None,
            continue_last=False,
            resume=None,
            session_id=None,
            keep_session=False,
            print_mode=True,
            output_format="text",
            input_format="text",
            include_deltas=False,
            trust=False,
            verbose=False,
        )

    @property
    def plain(self) -> bool:
        """True for plain mode."""
        return self.output_format == "plain"

    @property
    def without_screen(self) -> bool:
        """True for print mode and plain mode."""
        return self.print_mode or self.plain


class OneOf(click.ParamType[str]):
    """One of a few values; the error for any other names the closest one."""

    def __init__(self, values: Sequence[str]) -> None:
        self.values = tuple(values)
        """All valid values."""
        self.name = "|".join(values)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value, or fail with a usage error."""
        text = str(value)
        if text not in self.values:
            near = difflib.get_close_matches(text, self.values, n=1, cutoff=0.4)
            self.fail(f"{text!r} is not {self.name}" + (f" (did you mean {near[0]}?)" if near else ""), param, ctx)
        return text

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the values as help shows them."""
        return self.name

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        """Return the values that begin with the text, for a shell."""
        return [CompletionItem(value) for value in self.values if value.startswith(incomplete)]


class StrategyName(OneOf):
    """`auto`, `sequential`, `parallel` or `batched:N`."""

    def __init__(self) -> None:
        super().__init__(("auto", "sequential", "parallel", "batched:N"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the strategy's name; fail with a usage error, also for `batched:0`."""
        text = str(value)
        if re.fullmatch(r"batched:[1-9][0-9]{0,8}", text):
            return text
        if text == "batched:N" or text.startswith("batched:"):
            self.fail(f"{text!r}: a whole number from 1 was expected, as in batched:2", param, ctx)
        return super().convert(value, param, ctx)
