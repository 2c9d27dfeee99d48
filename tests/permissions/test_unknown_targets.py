"""Commands whose targets tui-agent cannot determine: none runs without an answer, whatever carries names."""

import re
from itertools import product

import pytest

from .conftest import SANDBOX, Desk

REACHING = (
    "find . -name HEAD",
    "find . -type f",
    "find . -type d -print",
    "find . -name HEAD -exec echo {} \\;",
    "ls -A",
    "ls -d .*",
    "ls -aR",
    "grep -rl x .",
    "grep -rl --include=HEAD x .",
    "grep -rn x . | cut -d: -f1",
    "rg -uul x",
    "rg --files --hidden",
    "rg -l x -g '.git/**'",
    "fd -H x",
    "tree -afi",
    "du -a | cut -f2",
    "find . -name HEAD | sort | head -2",
    "find . -name HEAD | grep -v y | tee list",
    "find . -name HEAD | awk '{print $1}'",
    "find . -name HEAD | xargs echo",
    "find . -name HEAD | xargs grep -l x",
    "find . -name HEAD | tr '\\n' ' '",
    "echo links/git/HEAD",
    "cat list",
    "head -1 list",
    "ls -a | cut -c1-4",
    "printf '.%s' git",
    "printf '\\x2egit'",
    "echo -e '\\x2egit'",
    "base64 -d <<< LmdpdA==",
    "rev <<< tig.",
    "tr x g <<< .xit",
    "readlink links/git",
    "realpath links/git",
    "jq -r .x list",
    "python3 -c 'print(1)'",
    "nobody-knows",
    "basename .gitx x",
    "comm -23 <(ls -a) <(ls)",
    "sed s/x/y/ list",
    "awk '{print $2}' list",
    "ls src | sed s/lib/../",
    "git log --format=%s",
    "git rev-parse --git-dir",
    "git rev-parse --git-path hooks",
    "find . -printf '%.4f\\n'",
    "ls -A src $x",
)
HARMLESS = (
    "find src -type f",
    "find . -name '*.py'",
    "ls src",
    "ls -d src tests",
    "ls -A src",
    "grep -rl x src",
    "grep -rn x src | cut -d: -f1",
    "rg -l x src",
    "rg -l -t py x src",
    "rg -l x -g '*.py' src",
    "fd -e py",
    "git ls-files",
    "git grep -l x",
    "git diff --name-only",
    "find src -name '*.py' | sort -u | head -3 | grep -v x",
    "find src | awk '{print $1}'",
    "find src -type f | xargs grep -l x",
    "mktemp",
    "date +%F",
    "git rev-parse --short HEAD",
    "git rev-parse HEAD | cut -c1-7",
    "echo src/new",
    "printf '%03d' 3",
    "wc -l < README.md",
    "id -u",
    "seq 3",
    "ls src | head -1",
    "basename src/lib.py .py",
    "dirname src/lib.py",
)
CARRIERS = (
    "{names} | xargs {change}",
    "({names}) | xargs -n1 {change}",
    "{{ {names}; }} | xargs {change}",
    "{names} | xargs -I@ {change} @",
    "{names} | while read f; do {change} $f; done",
    '{names} | while IFS= read -r f; do ls; {change} "$f"; done',
    'while read -r f; do {change} "$f"; done < <({names})',
    'while read -r f; do {change} "$f"; done <<< "$({names})"',
    "for f in $({names}); do {change} $f; done",
    'for f in $({names}); do g=$f; {change} "$g"; done',
    "{change} $({names})",
    '{change} "$({names})"',
    "x=$({names}); {change} $x",
    'x=$({names}); {change} "$x"',
    "export x=$({names}); {change} $x",
    'mapfile -t a < <({names}); {change} "${{a[@]}}"',
    'read x <<< "$({names})"; {change} $x',
    "a=($({names})); {change} ${{a[0]}}",
    'f() {{ {change} "$1"; }}; f $({names})',
    'f() {{ while read x; do {change} "$x"; done; }}; {names} | f',
    'set -- $({names}); {change} "$@"',
    "{names} > names; xargs {change} < names",
    "{names} > names; {change} $(cat names)",
    "{names} | xargs sh -c '{change} $0'",
    "{names} | xargs -n1 timeout 5 {change}",
    "{names} | parallel {change}",
    "x=$({names}); timeout 5 {change} $x",
    "{names} | sh -c 'xargs {change}'",
    "if true; then {names} | xargs {change}; fi",
    "cd $({names}) && {change} x",
    "{names} | (while read f; do {change} $f; done)",
    "x=$({names}); y=${{x%z}}; {change} $y",
)
CHANGES = ("rm -rf", "sed -i s/a/b/", "touch", "cp notes.txt", "tee", "shred", "echo x >", "chmod 600", "mv notes.txt")


@pytest.fixture
def tracked(desk: Desk) -> Desk:
    (desk.root / "list").write_text(".git/HEAD\n", "utf-8")
    return desk


@pytest.mark.parametrize("names", REACHING)
def test_no_carrier_hides_a_protected_name(tracked: Desk, names: str) -> None:
    policy = tracked.policy("allow bash(*)", mode="allow")
    first = REACHING.index(names)
    paired = ((carrier, CHANGES[(first + at) % len(CHANGES)]) for at, carrier in enumerate(CARRIERS))
    commands = [carrier.format(names=names, change=change) for carrier, change in paired
                if ">" not in change or not re.search("xargs|parallel", carrier)]  # fmt: skip
    decided = {one: policy.check(tracked.tools["bash"], {"command": one}) for one in commands}

    assert [one for one, decision in decided.items() if decision.decision == "allow"] == []


@pytest.mark.slow
def test_the_setting_and_the_sandbox_let_them_run(tracked: Desk) -> None:
    by_setting = tracked.policy(mode="allow", unknown_targets="allow")
    in_sandbox = tracked.policy(mode="allow", containment=SANDBOX)
    commands = [
        carrier.format(names=names, change=("sed -i s/a/b/", "touch")[at % 2])
        for at, (names, carrier) in enumerate(product(HARMLESS, CARRIERS))
    ]
    asked = {one: found.reason for policy in (by_setting, in_sandbox) for one in commands
             if (found := policy.check(tracked.tools["bash"], {"command": one})).decision != "allow"}  # fmt: skip

    assert asked == {}


UNKNOWN = 'touch "$X"'


@pytest.mark.parametrize(
    ("command", "mode", "rules", "without", "within"),
    [
        # the sandbox replaces the question about the targets
        (UNKNOWN, "allow", (), "ask", "confined"),
        (UNKNOWN, "ask", ("allow bash(touch:*)",), "ask", "confined"),
        (UNKNOWN, "accept_edits", ("allow bash(touch:*)",), "ask", "confined"),
        (UNKNOWN, "deny", ("allow bash(touch:*)",), "deny", "confined"),
        (UNKNOWN, "ask", ("allow bash",), "ask", "confined"),
        ('echo x > "$X"', "allow", (), "ask", "confined"),
        ('echo x > "$X"', "ask", ("allow bash(*)",), "ask", "confined"),
        # and no other question
        (UNKNOWN, "ask", (), "ask", "ask, confined"),
        (UNKNOWN, "accept_edits", (), "ask", "ask, confined"),
        (UNKNOWN, "deny", (), "deny", "deny, confined"),
        (UNKNOWN, "plan", ("allow bash",), "deny", "deny, confined"),
        (UNKNOWN, "allow", ("ask bash(touch:*)",), "ask", "ask, confined"),
        (UNKNOWN, "allow", ("deny bash(touch:*)",), "deny", "deny, confined"),
        ('echo x > "$X"', "ask", ("allow bash(echo:*)",), "ask", "ask, confined"),
        ('echo x > "$X"', "accept_edits", (), "ask", "ask, confined"),
        (f"{UNKNOWN}; make", "ask", ("allow bash(touch:*)",), "ask", "ask, confined"),
        # rules that deny changes are unknown to the sandbox, which still limits what an approval allows
        (UNKNOWN, "allow", ("deny edit(src/**)",), "ask", "ask, confined"),
        # a rule that spells out a command does not spell out the target of its redirection
        ('echo x > "$X"', "allow", ("allow bash(echo x)",), "ask", "confined"),
        # a rule that spells out the command allows it outside
        ("find src -name x -delete", "ask", ("allow bash(find src -name x -delete)",), "allow", "allow"),
        # commands that only the running shell knows
        ('bash -c "rm $X"', "allow", (), "ask", "confined"),
        ('eval "$(cat a)"', "ask", ("allow bash(eval:*)",), "ask", "ask, confined"),
        ("curl u | sh", "allow", (), "ask", "confined"),
        ("$(cat a) x", "allow", (), "ask", "confined"),
        ("awk '{print > $1}' a", "ask", ("allow bash(awk:*)",), "ask", "confined"),
        ("awk '{system($1)}' a", "ask", ("allow bash(awk:*)",), "ask", "ask, confined"),
        ("awk '{print | \"sort\"}' a", "ask", ("allow bash(awk:*)",), "ask", "ask"),
        ("awk '{print > \"../x\"}' a", "ask", ("allow bash(awk:*)",), "ask", "ask"),
        # a pattern for files that an earlier part may have made
        ("git clone u pkg && mv pkg/*.txt src", "allow", (), "ask", "confined"),
        # a protected path that any part names
        (f"cat .git/HEAD; {UNKNOWN}", "allow", (), "ask", "ask, confined"),
        ("cat .git/HEAD; make $X", "allow", (), "ask", "ask"),
        # a container that gets a directory with a protected path; a rule for the program is meant for the workspace
        ("docker run -v .:/x i", "allow", (), "ask", "confined"),
        ('podman run --volume="$PWD":/x i', "allow", (), "ask", "confined"),
        ("nerdctl run --mount type=bind,source=.,target=/x i", "allow", (), "ask", "confined"),
        ("docker run -v .:/x:ro i", "allow", (), "allow", "allow"),
        ("docker run -v ./src:/x -v data:/y i", "allow", (), "allow", "allow"),
        ("docker run -v .:/x i", "ask", ("allow bash(docker:*)",), "allow", "allow"),
        # another machine, a file of commands and the user's own variables
        ("ssh h rm $X", "allow", (), "allow", "allow"),
        ("bash script.sh $X", "allow", (), "allow", "allow"),
        ("cat script.sh | ssh h bash", "allow", (), "allow", "allow"),
        ("docker exec -it c bash", "allow", (), "allow", "allow"),
        ("$PYTHON -m pytest", "allow", (), "allow", "allow"),
        ("run='python -m pytest'; $run tests", "allow", (), "allow", "allow"),
        ('run() { echo "$1"; "$@"; }; run make', "allow", (), "allow", "allow"),
        ("awk '{print > \"x\"}' a", "allow", (), "allow", "allow"),
        # the sandbox would discard changes elsewhere
        (f"cp a ../b; {UNKNOWN}", "allow", (), "ask", "ask"),
        (f"echo x > /tmp/x; {UNKNOWN}", "allow", (), "ask", "ask"),
        # known targets are never confined
        ("touch x", "allow", (), "allow", "allow"),
        ("cat $X", "allow", (), "allow", "allow"),
        ("make $X", "allow", (), "allow", "allow"),
        # protected paths stay
        ('rm ".git/$X"', "allow", (), "ask", "ask"),
    ],
)  # fmt: skip
def test_unknown_targets_by_mode_and_rule(
    desk: Desk, command: str, mode: str, rules: tuple[str, ...], without: str, within: str
) -> None:
    outside, inside = desk.bash(command, *rules, mode=mode), desk.bash(command, *rules, mode=mode, containment=SANDBOX)
    shown = f"{inside.decision}, confined" if inside.confinement else inside.decision

    assert outside.decision == without, outside.reason
    assert shown.removeprefix("allow, ") == within, inside.reason
    assert outside.confinement == ""


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        # a variable that the script builds from others
        ("x=.gi; x+=t; rm -rf $x", "ask"),
        ("export x=.gi; rm -rf ${x}t", "ask"),
        ("printf -v x .git; rm -rf \"$x\"", "ask"),
        ("d=.gitx; rm -rf ${d%x}", "ask"),
        ("d=.git/x/y; rm -rf ${d%%/*}", "ask"),
        ("d=src.py; touch ${d%.py} ${d##*.}", "allow"),
        ("for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done", "allow"),
        ("rm -rf .$(echo git)", "ask"),
        # variables that the script does not set
        ("rm -rf \"$TMPDIR/x\" \"${BUILD:-build}\"", "ask"),
        ("touch \"$1\"", "ask"),
        # patterns that match hidden names
        ("shopt -s dotglob; rm -rf src/*", "ask"),
        ("GLOBIGNORE=x; rm -rf src/*", "ask"),
        ("bash -O dotglob -c 'rm -rf src/*'", "ask"),
        ("rm -rf src/*", "allow"),
        # directories that the shell changes to
        ("pushd .git; rm HEAD", "ask"),
        ("cd .git; cd ../src; cd -; rm HEAD", "ask"),
        ("pushd src && touch x && popd && touch y", "allow"),
        ("cd src; cd -; touch x", "allow"),
        ("fd -H . -x rm", "ask"),
        ("fd -e py -x sed -i s/a/b/", "ask"),
    ],
)  # fmt: skip
def test_values_that_a_script_makes(desk: Desk, command: str, decision: str) -> None:
    assert desk.bash(command, mode="allow").decision == decision


@pytest.mark.parametrize("command", [
    "set -euo pipefail", "set -Eeux; set +e -o pipefail", "set -a; . ./.env; set +a", "set -- a b; shift", "set +H",
    "shopt -s nullglob globstar", "hash -r; hash python3", "enable", "jobs -l", "bind -l", "complete -p", "history 5",
    "alias ll='ls -l'", "unset X BASH_ENV", "export PATH=$HOME/bin:$PATH", "export X=1 Y", "export -f f", "local x=$1",
    "declare -A m; m[a]=1; m['b c']=2; m[\"$k\"]=3", "declare -i n=1; (( n++ )); let n+=1 \"n = n + 1\"",
    "declare -p x",
    "readonly X=1", "IFS=$'\\n'; for f in $(ls src); do echo $f; done", "IFS=, read -r a b <<< 1,2", "local IFS=,",
    "LANG=C LC_ALL=C make", "HISTCONTROL=ignoredups", "HISTFILE=/dev/null", "OPTIND=1; SECONDS=0; RANDOM=42", "TMOUT=5",
    "PS4='+ ${BASH_SOURCE}:${LINENO}: '; set -x", "while getopts ab: o; do echo $o; done", "mapfile -t xs < notes.txt",
    "read -r x y < notes.txt", "read -rsn1 -p x y", "printf -v x %03d 1", "wait \"$pid\"", "x=a; x+=b; make $x",
    "[ ${PIPESTATUS[0]} = 0 ]", "echo ${BASH_SOURCE[0]##*/}", "trap 'rm -f x' EXIT", "bash -euo pipefail -c ls",
    "git config user.name x", "git config --global pull.rebase true", "git config core.hooksPath",
    "git clone -c core.eol=lf u", "git init --template= x", "git -c user.name=x init x", "git commit --template=x",
    "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git commit -m x", "pre-commit run",
])  # fmt: skip
def test_ordinary_changes_of_the_shell_need_no_answer(desk: Desk, command: str) -> None:
    for rules in ((), ("deny edit(x.lock)",)):
        decision = desk.bash(f"{command}\nmake", *rules, mode="allow")

        assert decision.decision == "allow", decision.reason


def test_a_grant_keeps_the_sandbox_that_its_question_named(desk: Desk) -> None:
    policy = desk.policy(containment=SANDBOX)
    policy.grant("bash(find src -name x -delete)", "session")

    found = policy.check(desk.tools["bash"], {"command": "find src -name x -delete"})
    assert (found.decision, found.source, bool(found.confinement)) == ("allow", "grant", True)
    outside = policy.check(desk.tools["bash"], {"command": "find src -name x -delete > ../x"})
    assert (outside.decision, outside.confinement) == ("ask", "")
