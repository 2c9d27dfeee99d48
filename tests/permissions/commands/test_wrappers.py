"""Commands that run other commands: the inner command is found."""

import pytest

from tui_agent.permissions.commands.catalogue import is_trusted_name
from tui_agent.permissions.commands.wrappers import Wrapping, expand_command_braces, has_shell_escape, unwrap
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import UNKNOWN, Sequence, SimpleCommand


def command_of(text: str) -> SimpleCommand:
    statement = read_script(text)
    assert isinstance(statement, Sequence)
    [command] = statement.parts
    assert isinstance(command, SimpleCommand)
    return expand_command_braces(command)


def wrapping(text: str) -> Wrapping:
    found = unwrap(command_of(text))
    assert found is not None
    return found


def inner(text: str) -> list[list[str]]:
    return [[word.value for word in one.command.words] for one in wrapping(text).inner_commands]


@pytest.mark.parametrize(
    "text",
    [
        "env rm x", "env -i rm x", "env - rm x", "env A=1 B=2 rm x", "env -u A rm x", "env -C d rm x",
        "env --chdir=d rm x",
        "timeout 5 rm x", "timeout -k 1 -s KILL 5 rm x", "timeout --signal=KILL 5 rm x", "timeout -v -k5 5 rm x",
        "nice rm x", "nice -n 5 rm x", "nice -5 rm x", "nice -n5 rm x", "nohup rm x", "stdbuf -oL rm x", "time rm x",
        "time -p rm x", "time A=1 rm x", "command rm x", "command -p rm x", "command -- rm x", "builtin rm x",
        "exec rm x", "exec -a name rm x", "sudo rm x", "sudo -u me rm x", "sudo -nu me A=1 rm x", "sudo -- rm x",
        "doas rm x", "setsid -w rm x", "ionice -c 3 rm x", "flock file rm x", "flock -w 5 file rm x", "chroot d rm x",
        "strace -f -o f rm x", "busybox rm x", "uv run rm x", "uv run --with p rm x",
        "poetry run rm x", "npx rm x", "npx -y rm x", "npm exec -- rm x", "bundle exec rm x", "docker exec -it c rm x",
        "docker compose exec c rm x", "docker-compose run c rm x", "podman exec -it c rm x",
        "podman container run c rm x",
        "toybox rm x", "fakeroot rm x", "proxychains4 -q rm x", "torsocks rm x", "setpriv --reuid=1 rm x",
        "gosu me rm x",
        "su-exec me rm x", "eatmydata rm x", "numactl -C 0 rm x", "ip netns exec n rm x", "perf stat -e x rm x",
        'docker run -v "$PWD:/x" c rm x', "script -q f -- rm x",
        "kubectl exec -it p -- rm x", "git bisect run rm x", "taskset 1 rm x",
    ],
)  # fmt: skip
def test_the_command_inside_is_found(text: str) -> None:
    assert inner(text) == [["rm", "x"]]


def test_xargs_adds_unknown_words() -> None:
    assert inner("xargs rm x") == [["rm", "x", UNKNOWN]]
    assert inner("xargs -0 -n 1 -P4 rm") == [["rm", UNKNOWN]]
    assert inner("xargs -I {} cp {} y") == [["cp", UNKNOWN, "y"]]
    assert inner("xargs -I% cp %.a y") == [["cp", f"{UNKNOWN}.a", "y"]]
    assert wrapping("xargs").inner_commands == ()


def test_find_passes_paths_below_its_roots() -> None:
    assert inner("find . -exec rm {} +") == [["rm", f"./{UNKNOWN}"]]
    assert inner("find a b -exec rm {} \\; -o -execdir mv x{} y ';'") == [
        ["rm", f"a/{UNKNOWN}", f"b/{UNKNOWN}"],
        *[["mv", f"x{UNKNOWN}", "y"]] * 3,
    ]
    directories = [found.directory for found in wrapping("find a b -execdir rm x ';'").inner_commands]
    assert [directory.value for directory in directories if directory] == ["a", "b", UNKNOWN]
    assert wrapping("find . -type f -exec cat {} +").inner_commands[0].takes == "files"
    assert wrapping("find . -exec cat {} +").inner_commands[0].takes == "paths"
    assert wrapping("find . -execdir cat {} +").inner_commands[0].takes == "nothing"
    assert unwrap(command_of("find . -name x")) is None
    assert unwrap(command_of("find . -exec")) is None


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("sh -c 'rm x'", "rm x"), ("bash -lc 'rm x' name", "rm x"), ("bash -o pipefail -c 'rm x'", "rm x"),
        ("bash --norc -c -e 'rm x'", "rm x"), ("/bin/sh -c 'rm x'", "rm x"), ("eval rm x", "rm x"),
        ("eval 'rm x' y", "rm x y"), ("trap 'rm x' EXIT", "rm x"), ("alias a='rm x'", "rm x"), ("su -c 'rm x'", "rm x"),
        ("su - me -c 'rm x'", "rm x"), ("script -c 'rm x' f", "rm x"), ("bash <<< 'rm x'", "rm x"),
        ("flock f -c 'rm x'", "rm x"), ("git submodule foreach 'rm x'", "rm x"), ("git rebase -x 'rm x' m", "rm x"),
        ("git -c alias.a='!rm x' a", "rm x"), ("watch -n 1 rm x", "rm x"), ("watch 'rm x'", "rm x"),
        ("ssh h rm x", "rm x"),
        ("ssh -p 22 me@h 'rm x'", "rm x"), ("sg g 'rm x'", "rm x"), ("sg g -c 'rm x'", "rm x"),
        ("script -qc 'rm x' f", "rm x"), ("script --command='rm x' f", "rm x"), ("su -c'rm x'", "rm x"),
        ("parallel 'rm {}' ::: x", 'rm "$@"'), ("parallel rm ::: x", 'rm "$@"'), ("parallel ::: 'rm x' ls", "rm x"),
        ("npx -c 'rm x'", "rm x"), ("sh <<EOF\nrm x\nEOF", "rm x\n"),
    ],
)  # fmt: skip
def test_texts_for_a_shell_are_found(text: str, script: str) -> None:
    assert script in wrapping(text).scripts


@pytest.mark.parametrize(
    "text",
    [
        "env A=$x rm", "timeout * rm", "sh", "bash -c \"$x\"", "bash $x", "bash file", "bash --rcfile f", "eval $x",
        "trap \"$x\" EXIT", ". file", "source file", "alias a=b", "sudo --weird rm x", "env -S 'rm x'",
        "timeout $x rm x", "xargs -i rm", "bash -c *", "bash -c", "nice -n", "watch rm $x",
        "ssh h *", "parallel", "docker run -v $x:/x c rm x",
    ],
)  # fmt: skip
def test_unknown_inner_commands_are_reported_as_hidden(text: str) -> None:
    assert wrapping(text).hidden


@pytest.mark.parametrize("text", ["ls", "A=1", "command -v rm", "eval", "trap", "trap -l", "git status", "env", "sudo"])
def test_other_commands_run_nothing_else(text: str) -> None:
    assert unwrap(command_of(text)) is None


def test_only_harmless_wrappers_of_the_system_are_transparent() -> None:
    assert wrapping("timeout 5 ls").is_transparent
    assert wrapping("/usr/bin/env ls").is_transparent
    assert not wrapping("./timeout 5 ls").is_transparent
    assert not wrapping("sudo ls").is_transparent
    assert wrapping("sh -c ls").is_transparent
    assert wrapping("bash -euo pipefail -c 'ls {a,b}' x").is_transparent
    for text in ("bash -lc ls", "bash -ic ls", "sh -c 'ls {a,b}'", "./sh -c ls", "zsh -c ls", "bash --rcfile x -c ls"):
        assert not wrapping(text).is_transparent
    assert wrapping("uv run ls").allows_inner
    assert [is_trusted_name(name) for name in ("ls", "/bin/ls", "./ls", "bin/ls")] == [True, True, False, False]


def test_a_wrapper_tells_start_and_directory_of_its_command() -> None:
    [one] = wrapping("env -C d A=1 rm x").inner_commands

    assert (one.at, one.directory and one.directory.value) == (4, "d")
    assert [(set_.name, set_.value.value) for set_ in one.command.assignments] == [("A", "1")]
    for text in ("sudo -D d x", "sudo --chdir=d x", "env -Cd x", "unshare --wd d x", "uv run --directory=d x"):
        [one] = wrapping(text).inner_commands
        assert one.directory is not None
        assert one.directory.value == "d", text


def test_a_rule_for_a_remote_shell_covers_its_command() -> None:
    assert wrapping("ssh h rm x").allows_inner
    assert not wrapping("watch rm x").allows_inner
    assert [word.value for word in wrapping("ssh -p 22 h rm x").own] == ["ssh", "-p", "22", "h"]


def test_braces_may_produce_the_name() -> None:
    assert [word.value for word in command_of("ls {rm,-rf,x}").words] == ["ls", "rm", "-rf", "x"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ed", "!x"), ("ed", "w !x"), ("vim", "r!x"), ("vim", "silent !x"), ("psql", r"\! x"), ("psql", r"\o |x"),
        ("mysql", "select 1; system x"), ("sqlite3", ".sh x"), ("sqlite3", ".once '|x'"), ("lldb", "platform shell x"),
    ],
)  # fmt: skip
def test_an_escape_to_the_shell_is_found(name: str, text: str) -> None:
    assert has_shell_escape(name, [text])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ed", ",s/a/b/"), ("vim", "w!"), ("vim", "set nowrap|wq!"), ("sqlite3", "select a || b from t where c != 1"),
        ("sqlite3", ".schema system"), ("sqlite3", ".show"), ("mysql", "select * from system"), ("echo", "!x"),
    ],
)  # fmt: skip
def test_other_text_of_editors_and_clients_does_not_escape(name: str, text: str) -> None:
    assert not has_shell_escape(name, [text])
