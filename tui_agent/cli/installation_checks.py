"""Checks of the installation, the configuration and the current directory, for `tui-agent doctor` and `/doctor`."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent import __version__
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.programs import install_command
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import LoadedSettings, Locations, Settings, load_settings
from tui_agent.tools.media.image_files import can_scale_images, images_extra
from tui_agent.tools.page_tools import can_fetch_pages
from tui_agent.tools.processes.command_launcher import launcher_problem
from tui_agent.trial.trials import Trials
from tui_agent.workbench.configuration.effective_settings import Credentials
from tui_agent.workbench.configuration.found_files import own_hooks, project_hooks
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.named_endpoints import key_source, lacks_key, missing_extra, plugin_of, target_of
from tui_agent.workbench.configuration.project_trust import FolderTrust, folder_trust, trust_for

from .process.shortage import memory_problem

_INDENT = " " * 17
"""Indent of further lines of a message."""
_SIGNS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    subject: str
    state: Literal["ok", "note", "bad"]
    """`bad`: the agent cannot run."""
    message: str


def findings_text(findings: Sequence[Finding]) -> str:
    """Return a line for each finding."""
    return "\n".join(f"{_SIGNS[finding.state]}  {finding.subject:<10} {finding.message}" for finding in findings)


def probe_findings() -> Iterator[Finding]:
    """Yield a finding for each model server that answers on this machine; without any, one note. Blocks."""
    # Only this option needs the profiles.
    from tui_agent.providers.local_servers import found_servers

    servers = found_servers()
    if not servers:
        yield Finding("probe", "note", "no model server answers on the usual ports of this machine")
    for server in servers:
        model = escaped(server.models[0]) if server.models else "NAME"
        more = f" and {len(server.models) - 1} more" if len(server.models) > 1 else ""
        known = f"{escaped(server.models[0])}{more}" if server.models else "it lists no model"
        # The user copies this into a shell, and the name is any text of the server.
        use = f"tui-agent --model {shlex.quote(f'{server.profile.name}/{model}')}"
        if server.needs_address:
            use += f', with base_url = "{server.address}" in [providers.{server.profile.name}]'
        yield Finding("probe", "ok", f"{server.profile.title} at {server.address}: {known}. Use it: {use}")
        if server.profile.advice:
            yield Finding("probe", "note", server.profile.advice)


def examined(folder: Path) -> str:
    """Return the checks for a folder, a line each. Blocks."""
    return findings_text(list(examine(folder)))


def examine(directory: Path) -> Iterator[Finding]:
    """Yield the result of each check for an agent in this directory. Blocks."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("version", "ok", f"tui-agent {__version__}, Python {python}")
    locations = Locations.of_user()
    try:
        loaded = load_settings(locations, project=directory, trust=trust_for(directory, locations))
    except ConfigurationError as error:
        yield Finding("settings", "bad", str(error))
        loaded = LoadedSettings(Settings(), {})
    else:
        yield Finding("settings", "ok", ", ".join(str(file) for file in loaded.files) or "defaults; no file found")
        yield from (Finding("settings", "note", text) for text in (*loaded.unknown_variables, *loaded.ignored))
    folder = folder_trust(directory, locations)
    yield from (Finding("trust", "note", text) for text in folder.left_out)
    hook_files = (own_hooks(directory), project_hooks(directory))
    yield from (Finding("rules", "note", text) for found in hook_files for text in found.missing_guards)
    if problem := memory_problem():
        yield Finding("memory", "bad", problem)
    yield _terminal()
    yield from _locale()
    yield from _model(loaded)
    yield _program("bash", "bad", "not found: commands cannot run")
    yield _program("git", "note", "not found: the agent runs, but does not know branches")
    yield _program("rg", "note", "not found: the slower built-in search is used")
    yield _web()
    yield _images()
    yield _browser()
    yield from _tool_servers(directory, folder, loaded)
    yield from _language_servers(directory, loaded.settings)
    yield from _plugins(directory, locations, loaded.settings)
    yield _processes(directory)
    yield _trial(directory, locations, loaded.settings)
    yield _writable("workspace", directory, "note", "not writable: files cannot be edited here")
    yield _writable("sessions", locations.state_dir, "bad", "not writable: sessions cannot be saved")


def _terminal() -> Finding:
    name = os.environ.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Finding("terminal", "note", "not a terminal: the full-screen app needs one, -p does not")
    if name in ("", "dumb"):
        return Finding("terminal", "bad", f"TERM={name!r} does not support a full-screen app; use -p")
    size = shutil.get_terminal_size()
    colours = os.environ.get("COLORTERM", "256 colours or fewer")
    return Finding("terminal", "ok", f"{name}, {size.columns}×{size.lines}, {colours}")


def _locale() -> Iterator[Finding]:
    encoding = getattr(sys.__stderr__, "encoding", "utf-8")
    if encoding.lower().replace("-", "") != "utf8":
        yield Finding(
            "locale",
            "note",
            f"output is {encoding}, but the full-screen app writes UTF-8; set LANG=C.UTF-8 if letters look wrong",
        )


def _missing_key(settings: Settings) -> str:
    missing = "ANTHROPIC_API_KEY is not set"
    if not settings.providers:
        return f"{missing}, and no endpoint of your own is configured"
    names = ", ".join(f"{name}/MODEL" for name in settings.providers)
    return f"{missing}, and the model {settings.model} needs it; a model of your own endpoints needs its name: {names}"


def _model(loaded: LoadedSettings) -> Iterator[Finding]:
    settings = loaded.settings
    try:
        if lacks_key(settings, os.environ):
            yield Finding("key", "bad", _missing_key(settings))
        else:
            yield Finding("key", "ok", key_source(settings, os.environ))
        plugin = plugin_of(settings, os.environ)
        target = None if plugin else target_of(settings, os.environ)
    except ConfigurationError as error:
        yield Finding("key", "bad", str(error))
    else:
        credentials = Credentials.of_environment(os.environ, settings.base_url)
        host = credentials.host if target is None else f"{target.provider}, {target.endpoint.place}"
        yield Finding("endpoint", "ok", f"the plugin {plugin}" if plugin else host)
        if target is not None and (extra := missing_extra(target.endpoint)):
            needed = f"{target.provider} needs the extra `{extra}`; `{install_command(extra)}` brings it"
            yield Finding("endpoint", "bad", needed)
    yield Finding("model", "ok", settings.model)
    if settings.models.small:
        yield Finding("model", "ok", f"{settings.models.small} for small tasks")
    if settings.models.fallback:
        yield Finding("model", "ok", f"{settings.models.fallback} while the model is overloaded")


def _program(name: str, state: Literal["note", "bad"], missing: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, state, missing)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10)
    first = (answer.stdout or answer.stderr).splitlines()
    return Finding(name, "ok", f"{path} ({first[0] if first else 'no version'})")


def _web() -> Finding:
    if can_fetch_pages():
        return Finding("web", "ok", "the agent can fetch pages; it asks, unless a rule allows the host")
    return Finding(
        "web",
        "note",
        f"the packages that read pages are missing, so the tool `fetch` is off; `{install_command('web')}` brings them",
    )


def _images() -> Finding:
    if can_scale_images():
        return Finding("images", "ok", "images beyond the limits of the API are scaled")
    return Finding("images", "note", f"large images are refused; {images_extra()} brings what scales them")


def _browser() -> Finding:
    """Return whether the app can be shown in a browser, and who could open it; nothing is started."""
    # Imported here, because the app loads this module, too.
    from tui_agent.serve.browser_page import client_folder

    if client_folder() is None:
        text = f"`tui-agent serve` is off; `{install_command('serve')}` brings what shows the app in a browser"
        return Finding("serve", "note", text)
    text = "`tui-agent serve` shows the app in a browser: on 127.0.0.1, with a token in the address; "
    return Finding("serve", "ok", f"{text}a --host that other machines reach needs --i-know")


def _tool_servers(directory: Path, folder: FolderTrust, loaded: LoadedSettings) -> Iterator[Finding]:
    """Yield which tool servers a start here would use; nothing is started."""
    # Imported here, because the app loads this module, too.
    from tui_agent.mcp.server_task import not_installed
    from tui_agent.workbench.tool_servers import configured_servers

    servers, notes = configured_servers(LaunchOptions.for_command(directory), folder, loaded)
    yield from (Finding("mcp", "note", text) for text in notes)
    if not servers:
        return
    names = ", ".join(one.name for one in servers)
    if importlib.util.find_spec("mcp") is None:
        yield Finding("mcp", "note", f"{names}: {not_installed()}")
    else:
        yield Finding("mcp", "ok", f"{names}; `tui-agent mcp test NAME` tries one")


def _language_servers(directory: Path, settings: Settings) -> Iterator[Finding]:
    """Yield which language servers a start here would use, and which others are installed; nothing is started."""
    # Imported here, because the app loads this module, too.
    from tui_agent.lsp.server_keeper import installed_servers, not_installed, settings_lines

    has_client = importlib.util.find_spec("pygls") is not None
    if settings.lsp and not has_client:
        yield Finding("lsp", "note", f"{', '.join(settings.lsp)}: {not_installed()}")
    for name, server in settings.lsp.items() if has_client else ():
        program = os.path.expanduser(server.command[0])
        if shutil.which(os.path.join(directory, server.root, program) if os.sep in program else program) is None:
            yield Finding("lsp", "note", f"{name}: there is no program {program}")
        else:
            yield Finding("lsp", "ok", f"{name} checks {', '.join(server.files)} after edits")
    programs = {server.command[0] for server in settings.lsp.values()}
    for name, server in installed_servers():
        if server.command[0] not in programs:
            lines = settings_lines(name, server).replace("\n", f"\n{_INDENT}")
            yield Finding("lsp", "note", f"{name} is installed. These settings let it check edits:\n{_INDENT}{lines}")


def _plugins(directory: Path, locations: Locations, settings: Settings) -> Iterator[Finding]:
    """Yield which plugins a start here uses, and why it does not use others; nothing without plugins."""
    # Imported here, because the app loads this module, too.
    from .screen_entry import examine_plugins

    found = examine_plugins(settings, directory, locations)
    if used := [plugin.entry.shown for plugin in found.plugins if plugin.is_used]:
        yield Finding("plugins", "ok", ", ".join(used))
    if off := [plugin.entry.shown for plugin in found.plugins if plugin.is_disabled]:
        yield Finding("plugins", "note", f"off by `plugins.disabled`: {', '.join(off)}")
    yield from (Finding("plugins", "note", text) for text in found.problems)


def _processes(directory: Path) -> Finding:
    """Return whether processes of a command can outlive its call, or a killed tui-agent."""
    problem = launcher_problem(directory)
    if sys.platform != "linux":
        return Finding("processes", "note", "not Linux: daemons that a command starts may outlive it")
    if problem is not None:
        return Finding("processes", "note", f"{problem}: commands may outlive tui-agent if it is killed")
    return Finding("processes", "ok", "commands end with everything they start, and when tui-agent ends")


def _trial(directory: Path, locations: Locations, settings: Settings) -> Finding:
    """Return which kind of trial works here, found out by running a command, and why a better one does not."""
    trials = Trials(directory, locations.state_dir / "trials", "doctor", network=settings.sandbox_network)
    try:
        facts = trials.facts
    finally:
        trials.close()
    off = "off; " if settings.sandbox == "off" else ""
    match facts.backend:
        case "overlay":
            return Finding("trial", "note" if off else "ok", f"{off}a command {facts.words}")
        case "read_only":
            return Finding("trial", "note", f"{off}a command {facts.words}. No layer works: {facts.problem}")
        case _ if settings.sandbox == "required":
            text = f'sandbox = "required" is set and no trial works, so no command can run: {facts.problem}'
            return Finding("trial", "bad", text)
        case _:
            return Finding("trial", "note", f"{off}not available, so commands ask before they run: {facts.problem}")


def _writable(subject: str, directory: Path, state: Literal["note", "bad"], problem: str) -> Finding:
    existing = next((folder for folder in (directory, *directory.parents) if folder.exists()), directory)
    if os.access(existing, os.W_OK | os.X_OK):
        return Finding(subject, "ok", f"{directory} is writable")
    return Finding(subject, state, f"{directory} is {problem}")
