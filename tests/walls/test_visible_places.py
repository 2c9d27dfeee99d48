"""The places that a command behind walls sees beside its workspace: programs, tools and caches, and no secrets."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.workspace import Workspace
from tui_agent.trial.trials import Trials
from tui_agent.walls import visible_places as page
from tui_agent.walls.visible_places import visible_places

WORD = "planted-word"

CREDENTIALS = (
    ".ssh/id_ed25519", ".ssh/config", ".gnupg/private-keys-v1.d/x", ".aws/credentials",
    ".azure/msal_token_cache.json", ".kube/config", ".config/gcloud/credentials.db", ".docker/config.json",
    ".docker/run/docker.sock.txt", ".password-store/x.gpg", ".netrc", ".npmrc", ".local/share/keyrings/login.keyring",
    ".config/gh/hosts.yml", ".config/op/config", ".git-credentials", ".config/git/credentials", ".yarnrc.yml",
    ".pypirc", ".cargo/credentials.toml", ".cargo/config.toml", ".gem/credentials", ".vault-token", ".pgpass",
    ".my.cnf", ".s3cfg", ".mozilla/firefox/x/logins.json", ".config/google-chrome/Default/Cookies", ".bash_history",
    ".python_history", ".boto", ".oci/key.pem", ".local/share/fish/fish_history", ".claude/.credentials.json",
    ".claude.json", ".codex/auth.json", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
    ".config/pip/pip.conf", ".pip/pip.conf", ".cache/huggingface/token", ".config/rclone/rclone.conf",
    ".config/containers/auth.json", ".config/sops/age/keys.txt", ".fly/config.yml", ".1password/agent",
    ".local/share/atuin/key", "other-project/.env", ".config/anthropic/credentials.json", ".config/openai/key",
    ".gemini/oauth_creds.json", ".condarc", ".wgetrc", ".config/opencode/auth.json",
    ".local/share/opencode/auth.json", ".cursor/mcp.json", ".config/stripe/config.toml", ".config/ngrok/ngrok.yml",
    ".config/wandb/settings", ".huggingface/token", ".kaggle/kaggle.json", ".databrickscfg", ".curlrc",
    ".pulumi/credentials.json", ".authinfo", ".msmtprc", ".config/Bitwarden/data.json", ".config/Signal/config.json",
    ".bundle/config", ".config/Slack/Cookies", ".terraform.d/credentials.tfrc.json", ".terraformrc",
    ".composer/auth.json", ".nuget/NuGet/NuGet.Config", ".config/hub", ".config/glab-cli/config.yml",
    ".ansible/vault_pass", ".snowflake/config.toml", ".config/doctl/config.yaml", "Documents/passwords.txt",
    ".local/share/chezmoi/x", ".config/uv/uv.toml", ".vercel/auth.json", ".config/fish/config.fish", ".bashrc",
    ".profile", ".zsh_history", ".local/state/x", ".var/app/x", ".config/nvim/x", "go/src/x", "bin/../secret.txt",
    "miniconda3/.condarc",
)  # fmt: skip
"""Files of a home that hold passwords, tokens, keys or private words."""
NEEDED = (
    ".local/bin/tool", ".local/lib/python3.11/site-packages/x.py", ".pyenv/versions/3.11.9/lib/x.py",
    ".nvm/versions/node/v20/lib/x.js", ".rustup/toolchains/stable/lib/x", ".cargo/registry/src/x.rs",
    "go/pkg/mod/x.go", ".m2/repository/x.jar", ".gradle/caches/x.jar", ".cache/pip/x", ".cache/uv/x",
    ".cache/go-build/x", ".cache/ms-playwright/x", ".npm/_cacache/x", ".local/share/uv/python/x",
    "miniconda3/envs/x/lib/x.py", ".config/git/ignore",
)  # fmt: skip
"""Tools, packages and caches."""
VARIABLES = (
    "DATABASE_URL", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "DB_PASS", "SECRET_KEY_BASE", "AWS_ACCESS_KEY_ID",
    "BASIC_AUTH", "KUBE_CONFIG_DATA", "GH_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "MY_APP_MODE", "PGPASSFILE",
    "SSH_AUTH_SOCK", "VAULT_ADDR", "KUBECONFIG", "HISTFILE",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in a directory of homes that is not one of the usual ones, without variables that name other places."""
    directory = tmp_path / "export" / "home" / "me"
    for path in (directory, directory.with_name("other")):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setattr(page, "_HOMES", ())
    for variable in (*page._MOVED, *page._NAMED_BY, *page._INSTALLED_AT):
        monkeypatch.delenv(variable, raising=False)
    return directory


@pytest.fixture
def root(home: Path) -> Path:
    directory = home / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def bash(root: Path, tmp_path: Path) -> Iterator[BashTool]:
    """The tool with trials that work here."""
    trials = Trials(root, tmp_path / "trials", "one")
    workspace = Workspace(root, spool_dir=tmp_path / "spool")
    yield BashTool(workspace, is_read_only_command=lambda _: False, trials=trials)
    trials.close()


def in_trial() -> Recorded:
    """Return the context of a call in a trial, whose changes no one keeps."""
    recorded = Recorded()
    recorded.context.place, recorded.context.propose = "trial", lambda _: None
    return recorded


def plant(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{WORD} in {path}\n", "utf-8")
    return path


def shown(root: Path, *search_path: object, environment: Mapping[str, str] | None = None) -> set[str]:
    """Return what is visible below the temporary directory of the test, without the programs of the system."""
    found = visible_places(root, os.pathsep.join(map(str, search_path)), environment or {})
    return {path for path in found.shown if path.startswith(str(root.parents[3]))}


def is_shown(root: Path, path: Path, *search_path: object, environment: Mapping[str, str] | None = None) -> bool:
    return any(path.is_relative_to(place) for place in shown(root, *search_path, environment=environment))


# --- what is absent ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_no_credential_of_the_machine_is_readable_and_no_secret_variable_is_set(
    bash: BashTool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*CREDENTIALS, "../other/notes"):
        plant(home / name)
    needed = [plant(home / name) for name in NEEDED]
    programs = [home / name / "bin" for name in (".", ".local", ".cargo", ".fly", "go", ".pulumi", ".docker")]
    for place in programs:
        place.mkdir(parents=True, exist_ok=True)
    path = (os.environ["PATH"], *programs, home, home.parent, "/")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))
    for name in VARIABLES:
        monkeypatch.setenv(name, f"{WORD} in {name}")

    result = await call(
        bash, in_trial(), command="env; grep -rs . ~ ..; cat /etc/shadow /etc/sudoers /etc/fstab; ls -a ~", timeout=60
    )

    found = {line.partition(f"{WORD} in ")[2] for line in result.text.splitlines() if WORD in line}
    assert found == {str(path) for path in needed}
    assert "root:" not in result.text


def test_other_homes_and_what_contains_one_are_never_shown(home: Path, root: Path) -> None:
    plant(home.parent / "other" / "bin" / "x")

    assert shown(root, "/", home, home.parent, home / "..", root / "bin") == set()
    assert shown(root, home.parent / "other" / "bin") == {str(home.parent / "other" / "bin")}


def test_settings_of_the_system_that_only_some_may_read_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in {"passwd": 0o644, "ssl/cert.pem": 0o644, "ssl/private/key": 0o600, "fonts/a": 0o644}.items():
        plant(tmp_path / name).chmod(mode)
    plant(tmp_path / "unknown.conf")
    (tmp_path / "ssl" / "private").chmod(0o710)

    found = page._etc_names(str(tmp_path), 0)

    assert found == tuple(f"{tmp_path}/{name}" for name in ("fonts", "passwd", "ssl/cert.pem"))


# --- channels to other programs ---------------------------------------------------------------------------------------


@pytest.fixture
def channels(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Sockets and pipes with a reader outside, in the home, in a directory of programs and in the workspace."""
    tools = home / "bin"
    opened: list[int | socket.socket] = []
    made: list[Path] = []
    for directory in (home / "d", tools, tools / "deep", root / "sub"):
        directory.mkdir(parents=True)
        # Bound by a relative name, of which the system's list does not tell the directory.
        monkeypatch.chdir(directory)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("rel.sock")
        listening.listen()
        opened.append(listening)
        made.append(directory / "rel.sock")
    monkeypatch.chdir(tools / "deep")
    for directory in (home, tools):
        os.mkfifo(directory / "fifo")
        opened.append(os.open(directory / "fifo", os.O_RDWR))
        made.append(directory / "fifo")
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    yield made
    for one in opened:
        one.close() if isinstance(one, socket.socket) else os.close(one)


@pytest.mark.slow
async def test_no_socket_and_no_pipe_of_another_program_is_reached(bash: BashTool, channels: list[Path]) -> None:
    command = f"""python3 - <<'END'
import os, socket
for name in {json.dumps(list(map(str, channels)))}:
    try:
        if name.endswith("sock"):
            socket.socket(socket.AF_UNIX).connect(name)
        else:
            os.write(os.open(name, os.O_WRONLY | os.O_NONBLOCK), b"x")
        print("reached", name)
    except OSError as error:
        print("cannot", error)
END"""

    result = await call(bash, in_trial(), command=command)

    assert "reached" not in result.text, result.text
    assert result.text.count("cannot") == len(channels), result.text


# --- what is needed ---------------------------------------------------------------------------------------------------


def test_a_directory_of_programs_is_shown_with_its_installation_and_nothing_beside_it(home: Path, root: Path) -> None:
    kit = home / "kit"
    for name in ("bin/tool", "lib/x", "share/x", "credentials.json", "src/secret"):
        plant(kit / name)
    plant(home / "lib" / "x")
    plant(home / "bin" / "x")

    assert shown(root, kit / "bin") == {f"{kit}/{name}" for name in ("bin", "lib", "share")}
    assert shown(root, home / "bin") == {f"{home}/bin"}


def test_links_to_programs_are_followed_and_those_in_the_workspace_are_not(home: Path, root: Path) -> None:
    for name in ("apps/black/bin/black", "apps/black/lib/x", "apps/black/token", "base/bin/python3", "base/lib/x",
                 "js/node_modules/tool/cli.js", "js/node_modules/dep/x", "js/secret", "notes/run.sh", "notes/secret",
                 "private/bin/x", ".ssh/id"):  # fmt: skip
        plant(home / name)
    for directory in (home / ".local" / "bin", root / "bin"):
        directory.mkdir(parents=True)
    links = {"black": "apps/black/bin/black", "js": "js/node_modules/tool/cli.js", "run": "notes/run.sh"}
    for name, target in links.items():
        (home / ".local" / "bin" / name).symlink_to(home / target)
    (home / "apps" / "black" / "bin" / "python").symlink_to(home / "base" / "bin" / "python3")
    (root / "bin" / "a").symlink_to(home / ".ssh" / "id")
    (root / "bin" / "b").symlink_to(home / "private" / "bin" / "x")

    found = shown(root, home / ".local" / "bin", root / "bin")

    names = (
        ".local/bin",
        "apps/black/bin",
        "apps/black/lib",
        "base/bin",
        "base/lib",
        "js/node_modules",
        "notes/run.sh",
    )
    assert found == {f"{home}/{name}" for name in names}


def test_tools_that_a_variable_moves_are_shown(home: Path, root: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    for name in ("registry/x", "credentials.toml", "jdk/bin/java", "jdk/conf/x", "jdk/keys/x", "ca.pem"):
        plant(moved / name)
    environment = {"CARGO_HOME": str(moved), "JAVA_HOME": str(moved / "jdk"), "SSL_CERT_FILE": str(moved / "ca.pem"),
                   "XDG_CACHE_HOME": "/", "GOCACHE": str(home.parent)}  # fmt: skip

    found = shown(root, environment=environment)

    assert found == {f"{moved}/{name}" for name in ("registry", "jdk/bin", "jdk/conf", "ca.pem")}


def test_a_home_behind_a_link_is_found_at_both_paths(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(home / "bin" / "tool")
    link = home.parents[1] / "link"
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(link))

    found = visible_places(root, f"{link}/bin", {})

    assert found.links[str(link)] == str(home)
    assert is_shown(root, home / "bin" / "tool", link / "bin")
    assert str(link / "bin") not in found.shown


def git(place: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(("git", *who, *words), cwd=place, check=True, capture_output=True)


def test_the_repository_of_a_work_tree_is_shown_only_if_git_has_recorded_it(home: Path, root: Path) -> None:
    main, other, settings = home / "main", home / "private", home / ".config"
    for place in (main, other, settings):
        place.mkdir()
        git(place, "init", "-q")
        git(place, "commit", "-q", "--allow-empty", "-m", "a")
    git(main, "worktree", "add", "-q", str(root / "tree"))
    (root / "false").mkdir()
    (root / "false" / ".git").write_text(f"gitdir: {other}/.git\n", "utf-8")
    (main / "sub").mkdir()
    (settings / "editor").mkdir()

    assert shown(root / "tree") == {f"{main}/.git"}
    assert shown(root / "false") == set()
    assert shown(main / "sub") == {str(main)}
    assert shown(settings / "editor") == {f"{settings}/.git"}


@pytest.mark.slow
async def test_git_knows_the_user_and_not_the_passwords(
    bash: BashTool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work.inc").write_text("[user]\n\temail = at@work.example\n", "utf-8")
    (home / ".gitconfig").write_text(
        f'[user]\n\tname = "A \\"B\\" C"\n\temail = me@example.org\n[includeIf "gitdir:~/work/"]\n\tpath = work.inc\n'
        f'[url "https://me:{WORD}@h/"]\n\tinsteadOf = h:\n[http "https://h/"]\n\textraHeader = X: {WORD}\n'
        f"[github]\n\ttoken = {WORD}\n[core]\n\tquotePath\n",
        "utf-8",
    )

    result = await call(
        bash, in_trial(), command="git init -q tree; cd tree; git var GIT_AUTHOR_IDENT; git config -l; cat ~/.gitconfig"
    )

    assert 'A "B" C <me@example.org>' in result.text
    assert WORD not in result.text
    assert "core.quotepath\n" in result.text
