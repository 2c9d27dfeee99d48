"""A repository from elsewhere: none of its programs runs, and nothing is read through it, before the user answers.

Each one is looked at as at a start, and by every git command that runs without a question.
"""

import asyncio
import os
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.support.programs import hide_walls
from tests.support.sample_tools import sample_tools
from tui_agent.git.git_settings import plain_git_settings
from tui_agent.git.repository_safety import program_settings
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.trial import TrialFacts
from tui_agent.tools.processes.child_environment import child_environment, read_only_environment
from tui_agent.tools.search import tree_listing
from tui_agent.tools.search.tree_listing import GitFiles
from tui_agent.workbench.sessions.session_facts import session_facts

BASE = r"""
git init -q --template= -b main . && mkdir -p .git/info .git/hooks
git config user.name x && git config user.email x@example.org
printf '#!/bin/sh\nid > %s\necho "SECRET""-WOR?"\n' "$HOME/PWNED" > tool.sh && chmod +x tool.sh
echo hello > a.py; printf '*.py filter=x diff=x merge=x\n' > .gitattributes
git add . && git commit -qm first
echo HELLO > a.py; touch -d 2020-01-01 a.py
"""
PRIVATE = r"""
mkdir -p "$HOME/.ssh" "$HOME/private" && echo SECRET-WOR? > "$HOME/.ssh/id_rsa" && cd "$HOME/private"
git init -q --template= -b main . && mkdir -p .git/info .git/hooks
git config user.name x && git config user.email x@example.org
echo SECRET-WOR? > secret.txt && git add . && git commit -qm SECRET-WOR?
"""
CONFIG = "printf '{}' >> .git/config"
PROGRAMS = {
    "comment that ends in a backslash": CONFIG.format(r"[diff]\n; harmless \\\n\texternal = ./tool.sh\n"),
    "comment behind a value": CONFIG.format(r"[diff]\nalgorithm = histogram # x \\\n\texternal = ./tool.sh\n"),
    "two backslashes at the end of a value": CONFIG.format(r"[diff]\n\tfoo = x\\\\\n\texternal = ./tool.sh\n"),
    "carriage return in a comment": CONFIG.format(r"[diff]\n# \r[user]\nexternal = ./tool.sh\n"),
    "filter behind a continued comment": CONFIG.format(r'[filter "x"]\n; harmless \\\n\tclean = ./tool.sh\n'),
    "NUL in a value": CONFIG.format(r"[diff]\n\tfoo = a\0b\n\texternal = ./tool.sh\n"),
    "quotes across a comment sign": CONFIG.format(r'[diff]\n\tfoo = "a # \\\n"\n\texternal = ./tool.sh\n'),
    "byte order mark": r"{ printf '\357\273\277[diff]\nexternal=./tool.sh\n'; cat .git/config; } > c; mv c .git/config",
    "old form of a subsection": CONFIG.format(r"[filter.x]\n\tclean = ./tool.sh\n"),
    "process filter": CONFIG.format(r'[filter "x"]\n\tprocess = ./tool.sh\n\trequired\n'),
    "text conversion": CONFIG.format(r'[diff "x"]\n\ttextconv = ./tool.sh\n'),
    "command of a diff": CONFIG.format(r'[diff "x"]\n\tcommand = ./tool.sh\n'),
    "include": r"printf '[diff]\nexternal=./tool.sh\n' > i; printf '[include]\npath=../i\n' >> .git/config",
    "include with a condition": (
        r"""printf '[diff]\nexternal=./tool.sh\n' > i; printf '[includeIf "gitdir:/"]\npath=../i\n' >> .git/config"""
    ),
    "settings of the work tree": (
        "git config extensions.worktreeConfig true; git config --worktree diff.external ./tool.sh"
    ),
    "monitor": 'git config core.fsmonitor "$PWD/tool.sh"',
    "hook after a change of the index": "cp tool.sh .git/hooks/post-index-change",
    "hook of references": "cp tool.sh .git/hooks/reference-transaction",
    "path of hooks": "mkdir h; cp tool.sh h/post-index-change; git config core.hooksPath h",
    "aliases": "for name in status diff log; do git config alias.$name '!./tool.sh'; done",
    "pagers": "for name in core.pager pager.status pager.log pager.diff; do git config $name ./tool.sh; done",
    "credential helper": "git config credential.helper '!./tool.sh'; git remote add origin https://localhost:1/x",
    "signatures": "git config gpg.program ./tool.sh; git config log.showSignature true; git config format.pretty %G?",
    "ssh and proxy": "git config core.sshCommand ./tool.sh; git config core.gitProxy ./tool.sh",
    "partial clone": (
        "git config extensions.partialClone o; git config remote.o.promisor true; git config protocol.ext.allow always;"
        'git config remote.o.url "ext::sh -c ./tool.sh"; rm -r .git/objects/??'
    ),
    "partial clone with a local program": (
        "git config extensions.partialClone o; git config remote.o.promisor true; git config remote.o.url .;"
        "git config remote.o.uploadpack ./tool.sh; rm -r .git/objects/??"
    ),
    "nested repository": (
        "git init -q n; git -C n -c user.name=x -c user.email=x commit -q --allow-empty -m x; git add n;"
        'git -C n config core.fsmonitor "$PWD/tool.sh"; git -C n config filter.x.clean "$PWD/tool.sh"; echo >> n/a.py'
    ),
    "data under another name": (
        "mv .git data; printf 'gitdir: ./data\\n' > .git; git config diff.external ./tool.sh; ln -s ../data d"
    ),
    "pointer with a line end in it": (
        r"""cp -r .git plain; mv .git "plain
x"; git --git-dir "plain
x" config diff.external ./tool.sh; printf 'gitdir: ./plain\nx\n' > .git"""
    ),
    "repository without a work tree": (
        r"""mv .git keep; mkdir x; cp -r keep/[oHr]* x; printf '[core]\nbare=false\nworktree=..\n"""
        r"""fsmonitor=./tool.sh\n[diff]\nexternal=./tool.sh\n' > x/config; rm -r keep"""
    ),
    "editors and tools": (
        "for name in core.editor sequence.editor core.askPass merge.tool mergetool.x.cmd diff.tool difftool.x.cmd"
        " interactive.diffFilter trailer.x.command uploadpack.packObjectsHook; do git config $name ./tool.sh; done"
    ),
    "attributes beside the settings": (
        "rm .gitattributes; echo '*.py filter=y' > .git/info/attributes; git config filter.y.clean ./tool.sh"
    ),
    "attributes of a setting": (
        "rm .gitattributes; echo '*.py filter=y' > x; git config core.attributesFile x;"
        "for name in clean smudge; do git config filter.y.$name ./tool.sh; done"
    ),
    "submodule with a command": (
        """printf '[submodule "n"]\\npath=n\\nurl=./n\\nupdate=!./tool.sh\\n' > .gitmodules; git init -q n;"""
        "git -C n -c user.name=x -c user.email=x commit -q --allow-empty -m x; git add n;"
        "git config submodule.n.update '!./tool.sh'; git config status.submoduleSummary true;"
        "git -C n config core.fsmonitor ../tool.sh"
    ),
    "remote helper": "git config remote.origin.vcs ext; git config remote.origin.url 'ext::sh -c ./tool.sh'",
    "linked work tree of a neighbour": (
        'mv .git ../m.git; cd ../m.git; mkdir -p worktrees/w; cp HEAD index worktrees/w; echo "$PWD/work/.git" > g;'
        "sed s,m.git/,, g > worktrees/w/gitdir; echo ../.. > worktrees/w/commondir; cd ../work;"
        "git --git-dir ../m.git config filter.x.clean ./tool.sh; echo 'gitdir: ../m.git/worktrees/w' > .git"
    ),
    "merge driver for a merge that is shown": (
        "git config merge.x.driver ./tool.sh; git config log.diffMerges remerge; git config diff.external ./tool.sh"
    ),
}
"""Settings that make git start `tool.sh`, as commands of a shell in the repository."""
LINKS = {
    "objects of another repository": 'echo "$HOME/private/.git/objects" > .git/objects/info/alternates',
    "objects in quotes": r"""printf '"%s/private/.git/objects"\n' "$HOME" > .git/objects/info/alternates""",
    "pointer to another repository": 'rm -r .git; echo "gitdir: $HOME/private/.git" > .git',
    "link to another repository": 'rm -r .git; ln -s "$HOME/private/.git" .git',
    "shared data of another repository": 'echo "$HOME/private/.git" > .git/commondir',
    "link in the objects": 'rm -rf .git/objects/pack; ln -s "$HOME/private/.git/objects" .git/objects/pack',
    "ignored files": 'ln -sf "$HOME/.ssh/id_rsa" .git/info/exclude',
    "packed references": 'ln -s "$HOME/.ssh/id_rsa" .git/packed-refs',
    "sparse checkout": ('git config core.sparseCheckout true; ln -s "$HOME/.ssh/id_rsa" .git/info/sparse-checkout'),
    **{
        f"work tree {name}": (
            f"mkdir -p .git/worktrees/{name}; cd .git/worktrees/{name}; cp ../../HEAD .; echo ../.. > commondir;"
            'for name in gitdir locked; do ln -s "$HOME/.ssh/id_rsa" $name; done'
        )
        for name in ("x", "ab", "lfs")
    },
    "link to a link": 'mkdir l; ln -s "$HOME/.ssh/id_rsa" l/exclude; rm -r .git/info; ln -s ../l .git/info',
    "files of the work tree": 'git config core.worktree "$HOME/private"',
    "work tree behind a pointer": (
        'mv .git data; echo "gitdir: ./data" > .git; git --git-dir data config core.worktree "$HOME/private"'
    ),
    "ignored files of a setting": 'git config core.excludesFile "$HOME/.ssh/id_rsa"',
    "pipe": "rm -f .git/info/exclude; mkfifo .git/info/exclude",
    "settings in a pipe": "rm .git/config; mkfifo .git/config",
}
"""Links and pointers that lead to another repository or to a key."""
RAN = "a program of the repository ran"
SECRET = "SECRET-WOR?"
"""Words of the key and of the other repository, a pattern for ignored files."""
COMMANDS = (
    "git status", "git diff", "git log -p -3", "git show HEAD:secret.txt", "git cat-file --batch-all-objects --batch",
    "git branch -a", "git worktree list", "git check-ignore -v --no-index SECRET-WORD", "git sparse-checkout list",
    "git grep SECRET-", "git -C x status", "cd x && git diff HEAD", "cd .git && git log -p",
)  # fmt: skip


EVERYDAY = {
    "linked work tree next to its repository": ("git init -q m; cd m; {commit}; git worktree add -q ../ws", "ws"),
    "submodule as the workspace": (
        "git init -q s; cd s; {commit}; cd ..; git init -q m; cd m; {commit};"
        "git -c protocol.file.allow=always submodule --quiet add ../s ws",
        "m/ws",
    ),
    "repository with submodules": (
        "git init -q s; cd s; {commit}; cd ..; git init -q m; cd m; {commit};"
        "git -c protocol.file.allow=always submodule --quiet add ../s ws",
        "m",
    ),
    "data in another directory": ("git init -q --separate-git-dir data ws; cd ws; {commit}", "ws"),
    "hooks in the work tree": (
        "git init -q ws; cd ws; {commit}; mkdir h; rm -rf .git/hooks; ln -s ../h .git/hooks",
        "ws",
    ),
    "objects of a neighbour in the workspace": (
        "mkdir w; cd w; git init -q a; cd a; {commit}; cd ..; git clone -qs a b",
        "w/b",
    ),
    "settings of tools": (
        "git init -q ws; cd ws; {commit}; git config merge.ours.driver true;"
        "git config filter.lfs.clean 'git-lfs clean -- %f';"
        "git config branch.main.vscode-merge-base origin/main; git config core.hooksPath .husky/_",
        "ws",
    ),
}
"""Layouts that git makes itself: commands of a shell, and the workspace."""


def shell(script: str, directory: Path, home: Path) -> None:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    subprocess.run(("bash", "-ec", script), cwd=directory, env=environment, check=True, capture_output=True)


@pytest.fixture(params=["walls", "none"])
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The user's home, on a machine with walls and on one without."""
    if request.param == "none":
        hide_walls(tmp_path / "hidden", monkeypatch)
    home = tmp_path / "home"
    home.mkdir()
    (home / "base").mkdir()
    monkeypatch.setenv("HOME", str(home))
    shell(BASE, home / "base", home)
    shell(PRIVATE, home, home)
    return home


def opened(home: Path, craft: str, *, walls: bool) -> str:
    """Look at a repository; return what was shown, with `RAN` if its program ran.

    Without walls, commands run in a trusted folder only, whose programs the user has accepted.
    """
    root = home / "work"
    for left in (root, home / "m.git"):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(home / "base", root, symlinks=True)
    shell(craft, root, home)
    facts, tools, shown = TrialFacts(setting="auto", backend="overlay" if walls else ""), sample_tools(root), ""
    policies = [PermissionPolicy(root, is_trusted=is_trusted, trial=facts) for is_trusted in (True, False)]
    for policy in policies:
        shown += asyncio.run(session_facts(root, policy, list(tools.values())))
    program_settings(str(root))
    plain_git_settings(root)
    for is_trusted in (True, False):
        files = GitFiles(root, is_trusted)
        listing = files.list(compared=True)
        contents = [] if listing is None else list(files.contents([one for one in listing.names.values() if one]))
        shown += f"{files.status()} {listing} {contents}"
    environment = read_only_environment(child_environment(os.environ), root)
    for command, policy in product(COMMANDS, policies if walls else policies[1:]):
        decision = policy.check(tools["bash"], {"command": command})
        if decision.decision == "allow" and decision.place == "outside":
            done = subprocess.run(("bash", "-c", command), cwd=root, env=environment, capture_output=True, check=False)
            shown += os.fsdecode(done.stdout + done.stderr)
    made = home / "PWNED"
    shown += RAN if made.exists() else ""
    made.unlink(missing_ok=True)
    return shown


def test_no_program_of_a_repository_runs_before_an_answer(home: Path, request: pytest.FixtureRequest) -> None:
    walls = "walls" in str(request.node.name)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    found = {name: opened(home, craft, walls=walls) for name, craft in PROGRAMS.items()}
    assert [name for name, shown in found.items() if RAN in shown or SECRET in shown] == []


def test_nothing_is_read_through_the_links_of_a_repository(
    home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    walls = "walls" in str(request.node.name)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    found: dict[str, str] = {}
    for name, craft in LINKS.items():
        with monkeypatch.context() as patch:
            if "pipe" in name:
                # Git waits for one until then.
                patch.setattr(tree_listing, "LISTING_SECONDS", 0.1)
                patch.setattr(tree_listing, "STATUS_SECONDS", 0.1)
            found[name] = opened(home, craft, walls=walls)
    assert [name for name, shown in found.items() if SECRET in shown] == []


def test_everyday_layouts_need_no_answer(home: Path) -> None:
    commit = "git -c user.name=x -c user.email=x commit -q --allow-empty -m x"
    asked: list[str] = []
    for name, (script, workspace) in EVERYDAY.items():
        place = home / name.replace(" ", "-")
        place.mkdir()
        shell(script.format(commit=commit), place, home)
        root = place / workspace
        policy = PermissionPolicy(root.parent if root.name == "b" else root)
        status = {"command": f"git -C {root} status" if root.name == "b" else "git status"}
        if policy.check(sample_tools(root)["bash"], status).decision != "allow" or GitFiles(root).status() is None:
            asked.append(name)
    # Nothing in such data names the work tree. A git of tui-agent's own does not read the objects of a neighbour.
    assert asked == ["data in another directory", "objects of a neighbour in the workspace"]
