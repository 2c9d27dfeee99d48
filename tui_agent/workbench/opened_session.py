"""The session of a workbench while it is opened: its past, its bus, its journal and its files."""

import asyncio
import importlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import click

from tui_agent import __version__
from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError, SessionWriteError
from tui_agent.protocol.events import Noticed, SessionRenamed, SessionSaveFailed, UsageUpdated, Warned
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.past_session import drop_superseded
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.regular_file import branch_of
from tui_agent.protocol.visible_text import escaped
from tui_agent.rewind import Rewinder
from tui_agent.session import JournalWriter, StoredSession
from tui_agent.session.store import CONTENTS_NAME, SessionStore
from tui_agent.settings import LoadedSettings, Locations
from tui_agent.tools import BackgroundJobs
from tui_agent.tools.file_states import ContentStore
from tui_agent.trial.trials import Trials

from .configuration.launch_options import LaunchOptions
from .configuration.project_trust import FolderTrust, folder_trust, without_files
from .launch import Launch
from .plugins.plugin_loader import plugin_news
from .sessions.journal_options import find_session_to_resume, record_journal


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session, new or resumed. Used only while the workbench opens: a long past takes much memory."""

    stored: StoredSession
    bus: EventBus
    journal: JournalWriter | None
    """Writes the journal; None for a session that is not saved."""
    archive: Path
    """Directory for long tool output."""
    contents: ContentStore | None
    """Contents of files before their changes; None without a journal."""
    resumes_calls: bool
    """True if the first run resumes the calls that waited for an approval."""
    unsaved: str
    """Reason why the disk refuses the session; empty if it does not."""

    @classmethod
    async def open(cls, launch: Launch, stack: AsyncExitStack, *, resume_calls: bool) -> "OpenedSession":
        """Open the session and its journal, before anything is published; `stack` closes them.

        Raises:
            ConfigurationError: the id of the new session or the file of `--record` cannot be used.
            SessionOpenError: another program has the session open.
            SessionError: the session cannot be read.
        """
        options, locations, unsaved = launch.options, launch.locations, ""
        try:
            stored, files = await asyncio.to_thread(load_session, options, locations, save=options.keep_session)
            bus, journal = await _open_journal(stored, stack)
        # A full disk must not keep the user from working; the screen says that nothing is saved.
        except SessionWriteError as error:
            unsaved = f"{error} This session runs without being saved."
            stored, files = await asyncio.to_thread(load_session, options, locations, save=False)
            bus, journal = await _open_journal(stored, stack)
        if options.extras.record is not None:
            await record_journal(options.extras.record, stored, bus, stack)
        archive = files or await asyncio.to_thread(_temporary_archive, locations, stack)
        contents = ContentStore(archive / CONTENTS_NAME) if journal is not None else None
        # A journal must record that calls were resumed, or the next program would resume them once more.
        return cls(stored, bus, journal, archive, contents, resume_calls and journal is not None, unsaved)

    async def announce(self, launch: Launch, trials: Trials, stack: AsyncExitStack) -> None:
        """Publish the first events of the session, and remove the layers that it reports as discarded.

        From then on, spans are sent to the collector of the settings, if there is one.
        """
        branch = await asyncio.to_thread(branch_of, launch.cwd)
        # Removed before they are reported: a program that is killed in between reports them again.
        if abandoned := self.stored.abandoned_layers(resume_pending_calls=self.resumes_calls):
            await asyncio.to_thread(_discard_layers, trials, abandoned)
        self.stored.announce(self.bus, __version__, branch=branch, resume_pending_calls=self.resumes_calls)
        if title := launch.options.extras.title:
            self.bus.publish(SessionRenamed(id=self.stored.id, title=title))
        if self.unsaved:
            self.bus.publish(SessionSaveFailed(id=self.stored.id, error=self.unsaved))
        if (endpoint := launch.settings.otel.endpoint) is not None:
            await self._export_spans(endpoint, stack)

    async def _export_spans(self, endpoint: str, stack: AsyncExitStack) -> None:
        try:
            exporter = await asyncio.to_thread(importlib.import_module, "tui_agent.tracing.span_exporter")
        except ImportError:
            text = f"No spans are sent to `otel.endpoint`: install the exporter with: {install_command('otel')}"
            self.bus.publish(Warned(code="left_out", text=text))
            return
        await stack.enter_async_context(exporter.SpanStream.to_collector(self.bus, endpoint, __version__))

    def restore_rules(self, policy: PermissionPolicy, root: Path) -> None:
        """Apply the rules that the user granted or added for this session, and publish notices that name them."""
        if allowed := _restored(policy, [("allow", rule) for rule in self.stored.grants(root)]):
            text = f"Still allowed for this session: {', '.join(allowed)}."
            self.bus.publish(Noticed(code="grants_kept", text=text))
        restrictions = self.stored.restrictions
        restricted = [f"{verdict} {rule}" for verdict, rule in restrictions if _restored(policy, [(verdict, rule)])]
        if restricted:
            text = f"Rules of this session that still apply: {', '.join(restricted)}."
            self.bus.publish(Noticed(code="restrictions_kept", text=text))

    @property
    def past(self) -> Iterator[Envelope]:
        """Earlier events of the session without superseded ones, parsed as they are read."""
        return drop_superseded(self.stored.envelopes)

    @property
    def usage(self) -> UsageUpdated:
        """Usage and cost of the session so far; zeros for a new one."""
        events = (envelope.event for envelope in reversed(self.stored.envelopes))
        none = UsageUpdated(delta=Usage(), total=Usage())
        return next((event for event in events if isinstance(event, UsageUpdated)), none)

    async def rewinder(self, loop: AgentLoop, jobs: BackgroundJobs, root: Path) -> Rewinder | None:
        """Return the rewinder; None without a journal. Remove the temporary files of an interrupted rewind."""
        journal = self.journal
        if journal is None or self.contents is None or self.stored.path is None:
            return None

        async def keep() -> None:
            await jobs.settled()
            await journal.flush()

        rewinder = Rewinder(loop, self.bus, self.stored.path, keep, self.contents, root.resolve())
        await asyncio.to_thread(rewinder.remove_leftovers, self.stored.envelopes)
        return rewinder


def load_session(options: LaunchOptions, locations: Locations, *, save: bool) -> tuple[StoredSession, Path | None]:
    """Return the new or resumed session, and the directory for its long output; None if it is not saved. Blocks.

    Raises:
        ConfigurationError: the new session's id is not valid.
        SessionWriteError: no session can be saved.
        SessionError: the session cannot be read.
    """
    store = SessionStore(locations.sessions_dir)
    past = store.load(find_session_to_resume(options, store)[0]) if options.resume is not None else None
    if save:
        session = past or store.create(options.cwd, options.session_id)
    else:
        session = StoredSession.ephemeral(options.cwd) if past is None else replace(past, path=None)
    session.fold()
    return session, store.files_path(session.id) if save else None


async def _open_journal(session: StoredSession, stack: AsyncExitStack) -> tuple[EventBus, JournalWriter | None]:
    """Return the session's bus, and the writer of its journal; None for a session that is not saved."""
    bus = EventBus(session.origin(), first_seq=session.next_seq)
    if session.path is None:
        return bus, None
    journal = JournalWriter(bus, session.path, expected_size=session.size if session.resumed else None)
    # Before the journal is entered, so that it runs after the journal has closed.
    stack.callback(_report_unsaved_events, journal)
    return bus, await stack.enter_async_context(journal)


def _temporary_archive(locations: Locations, stack: AsyncExitStack) -> Path:
    """Return a directory for long output that `stack` removes. On a full disk it is one that does not exist: commands
    run, and their results say why long output was not saved."""
    try:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tui-agent-")))
    except OSError:
        return locations.state_dir / "unsaved"


def _discard_layers(trials: Trials, calls: Sequence[str]) -> None:
    """Remove the layers of calls whose question no one answers any more. Blocks."""
    for call_id in calls:
        if (waiting := trials.waiting(call_id)) is not None:
            waiting[0].discard()


def _report_unsaved_events(journal: JournalWriter) -> None:
    """Report on standard error how many events the journal lacks: when it closes, no one receives events any more."""
    if journal.lost:
        text = f"the end of this session was not saved: {journal.lost} events could not be written to {journal.path}."
        click.echo(escaped(f"tui-agent: {text}"), err=True)


def _restored(policy: PermissionPolicy, rules: list[tuple[str, str]]) -> list[str]:
    """Add rules to a policy; return those that can be read."""
    restored: list[str] = []
    for verdict, rule in rules:
        try:
            policy.add_session_rule(verdict, rule)
        except ConfigurationError:
            continue  # A call under such a grant needs the user's approval again.
        restored.append(rule)
    return restored


ScreenProblems: TypeAlias = Callable[[LaunchOptions, LoadedSettings], Sequence[str]]
"""Returns warnings about settings of the screen that cannot be applied. Blocks."""

SAFE_START = (
    "Safe start: settings, hooks, tool servers, skills, commands, sub-agents, instructions and plugins are not used, "
    "neither yours nor those of this folder. Rules that deny or ask still count."
)


async def publish_notices(
    launch: Launch,
    session: OpenedSession,
    screen_problems: ScreenProblems | None,
) -> FolderTrust:
    """Publish what this start leaves out, and what is new; return which files of the folder apply."""
    options, loaded, plugins, publish = launch.options, launch.loaded, launch.plugins, session.bus.publish
    model = launch.provider.model
    if loaded.settings.budget.cost_usd is not None and model.output_price is None:
        text = f"The price of {model.name} is unknown, so the cost limit has no effect."
        publish(Warned(code="left_out", text=text))
    if session.stored.resumed and not options.keep_session:
        publish(Noticed(code="not_kept", text="This session will not be saved from here on."))
    if options.notice:
        publish(Warned(code="open_elsewhere", text=options.notice))
    folder = await asyncio.to_thread(folder_trust, options.cwd, launch.locations, given=options.trust)
    wrong = () if screen_problems is None else await asyncio.to_thread(screen_problems, options, loaded)
    if options.extras.is_safe:
        folder = without_files(folder)
        publish(Noticed(code="safe_start", text=SAFE_START))
    left_out = (*loaded.unknown_variables, *loaded.ignored, *folder.left_out, *wrong, *plugins.problems)
    for text in left_out:
        publish(Warned(code="left_out", text=text))
    if news := await asyncio.to_thread(plugin_news, plugins.plugins, launch.locations):
        publish(Noticed(code="plugins_changed", text=news))
    return folder
