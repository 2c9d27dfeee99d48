"""Commands of the screen that need the whole program: export, doctor, another model or effort."""

import asyncio
import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.protocol.facts.model_facts import ModelFact
from tui_agent.protocol.repository_files import branch_of
from tui_agent.session import SessionStore
from tui_agent.session.export import ExportFormat, export_session
from tui_agent.workbench.build_engine import Engine
from tui_agent.workbench.configuration.model_list import listed_models
from tui_agent.workbench.configuration.user_settings import store_setting
from tui_agent.workbench.launch_options import LaunchOptions

from .model_choice import BUDGETS
from .session_facts import has_changes

_FORMATS: dict[str, ExportFormat] = {".md": "md", ".html": "html", ".jsonl": "jsonl"}
_FILE_MODE = 0o600


class SessionCommands:
    """Export of the session, checks of the installation, and the model of the next requests."""

    def __init__(self, engine: Engine, options: LaunchOptions, examine: Callable[[Path], str] | None = None) -> None:
        """
        Args:
            engine: the session's agent and journal.
            options: the command line.
            examine: returns the checks of the installation, a line each; None: the front end has none.
        """
        self._engine = engine
        self._options = options
        self._examine = examine

    async def export(self, file: str, /) -> str:
        """Write the session to a new file, in the format that its suffix names, and return the file's path.

        Args:
            file: path relative to the working directory; empty for `session-ID.md`.

        Raises:
            ConfigurationError: the suffix names no format.
            SessionError: the session is not saved, or the file exists or cannot be written.
        """
        session_id = self._engine.bus.origin.session_id
        path = self._options.cwd / Path(file or f"session-{session_id}.md").expanduser()
        form = _FORMATS.get(path.suffix)
        if form is None:
            raise ConfigurationError(f"{path.name} ends in none of {', '.join(_FORMATS)}. Nothing was written.")
        if self._engine.flush_journal is None:
            raise SessionError("This session is not saved, so it cannot be exported.")
        await self._engine.flush_journal()
        await asyncio.to_thread(self._write, session_id, form, path)
        return str(path)

    async def work_tree(self) -> tuple[str, bool] | None:
        """Return the branch and True if files are changed; None if that is not known."""
        root, tools = self._options.cwd, self._engine.loop.config.tools
        is_changed = await asyncio.to_thread(has_changes, root, self._engine.policy, tools)
        return None if is_changed is None else (branch_of(root), is_changed)

    def _write(self, session_id: str, form: ExportFormat, path: Path) -> None:
        session = SessionStore(self._engine.locations.sessions_dir).load(session_id)
        content = export_session(session, form).encode("utf-8", "replace")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
            with os.fdopen(descriptor, "wb") as target:
                target.write(content)
        except FileExistsError as error:
            raise SessionError(f"{path} exists. Nothing was written; name another file: /export FILE") from error
        except OSError as error:
            raise SessionError(f"{path} could not be written: {error.strerror or error}.") from error

    async def fork(self, at_seq: int | None, /) -> str:
        """Copy the session up to an event, or all of it, and return the id of the copy.

        Raises:
            SessionError: the session is not saved, or the copy cannot be written.
        """
        if self._engine.flush_journal is None:
            raise SessionError("This session is not saved, so it cannot be copied.")
        await self._engine.flush_journal()
        store = SessionStore(self._engine.locations.sessions_dir)
        return (await asyncio.to_thread(store.fork, self._engine.bus.origin.session_id, at_seq)).id

    async def doctor(self) -> str:
        """Return the checks of `tui-agent doctor`, a line each."""
        return "" if self._examine is None else await asyncio.to_thread(self._examine, self._options.cwd)

    def models(self) -> tuple[ModelFact, ...]:
        """Return the models that the user can choose, grouped by endpoint; the offline demo has one."""
        model = self._engine.loop.provider.model
        if self._options.demo:
            return (ModelFact("Built in", model.name, model.context_window, 0.0, 0.0, is_current=True),)
        return listed_models(self._engine.loaded.settings, model)

    def choose_model(self, name: str, /) -> None:
        """Use another model of the same endpoint from the next request on, for the rest of the session.

        Raises:
            ConfigurationError: this is the offline demo, or no key is set.
        """
        if self._options.demo:
            raise ConfigurationError("The offline demo has one model. Start without --demo to choose another.")
        self._engine.choice.use_model(name)

    def choose_effort(self, name: str, /) -> str:
        """Change how much the model thinks from the next request on, for the rest of the session; return what applies.

        Args:
            name: a key of `BUDGETS`; empty to change nothing.

        Raises:
            ConfigurationError: no effort has this name, the model cannot stop thinking, or this is the offline demo.
        """
        if self._options.demo:
            raise ConfigurationError("The offline demo does not think. Start without --demo to choose an effort.")
        if name and name not in BUDGETS:
            near = difflib.get_close_matches(name, BUDGETS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BUDGETS)}."
            raise ConfigurationError(f"Unknown effort {name}; {hint}")
        model = self._engine.loop.provider.model
        if name == "off" and model.thinking == "always":
            raise ConfigurationError(f"{model.name} always thinks. The least effort is low.")
        if name not in ("", "off", "default") and model.thinking == "none":
            raise ConfigurationError(f"{model.name} does not think, as the settings say.")
        if name:
            self._engine.choice.use_effort(name)
        tokens = self._engine.loop.config.thinking_tokens
        limit = f", up to {tokens:,} tokens" if tokens and model.thinking == "budget" else ""
        effort = self._engine.choice.effort
        begin = "From the next request on, the" if name else "The"
        state = {"off": "is off", "default": "is left to the provider"}.get(effort, f"is {effort}{limit}")
        rest = "" if name else f" /effort NAME changes it: {', '.join(BUDGETS)}."
        return f"{begin} model's effort {state}.{rest}"

    async def keep_default(self, setting: Literal["model", "effort"], /) -> str:
        """Store the model or the effort in force in the user's settings, for new sessions, and return their file.

        Raises:
            ConfigurationError: the file cannot be written; nothing was changed.
        """
        file = self._engine.locations.user_file
        choice = self._engine.choice
        await asyncio.to_thread(store_setting, file, setting, choice.model if setting == "model" else choice.effort)
        return str(file)
