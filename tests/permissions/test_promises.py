"""Properties of every command, every path and every list of rules."""

import re
import shlex
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_agent.permissions import PermissionMode
from tui_agent.permissions.commands.catalogue import all_facts
from tui_agent.permissions.shell.grammar import MAX_BYTES
from tui_agent.permissions.verdicts import STRICTNESS
from tui_agent.protocol.permissions import PermissionDecision

from .command_grammar import any_commands, joins, simple_commands, whole_commands
from .conftest import SANDBOX, Desk

MAX_CALLS = 3_000_000
"""Maximum number of Python calls for one decision on any text."""

RULES = (
    "deny bash(canary:*)", "deny bash(rm:*)", "ask bash(touch:*)", "ask bash(git log:*)", "allow bash(ls:*)",
    "deny bash(cat:*)", "allow bash(touch:*)", "allow bash(echo x)", "allow edit(new)", "deny edit(*.txt)",
    "deny read(sub/**)", "allow bash(tee:*)", "ask bash", "allow bash(rm -f:*)",
)  # fmt: skip
RUNNING_WRAPS = (
    "{}", "({})", "{{ {}; }}", "! {}", "time {}", "echo $({})", 'echo "$({})"', "{} | cat", "ls | {}",
    "if {}; then ls; fi", "if true; then {}; fi", "while {}; do break; done", "case a in a) {};; esac",
    "{} 2>/dev/null", "{} # rest", "LANG=C {}", "X=1 {}", "[[ $({}) ]]", "echo ${{x:-$({})}}", "x=$({})",
    "f() {{ {}; }}; f", "{} &", "ls && {}", "{} || true", "cat <<EOF\n$({})\nEOF",
)  # fmt: skip
"""Compound commands in which the command still runs."""

WRAPPERS = tuple(
    " ".join((name, *["1"] * row.own_words)) for name, row in all_facts().items() if row.runs and name != "parallel"
)
"""Every wrapper of the table, with its own operands."""
REDIRECTIONS = (
    "2>/dev/null",
    ">&2",
    "> new",
    ">> new",
    "< a.txt",
    "2> ../err",
    "> .git/x",
    "> $x",
    "<> a.txt",
    ">| a.txt",
)

rules = st.lists(st.sampled_from(RULES), max_size=4)
plain = simple_commands.filter(lambda text: "cd " not in text and "xargs" not in text)
"""Commands that neither change directory nor read the output of others."""
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def strictness(decision: PermissionDecision) -> int:
    return STRICTNESS[decision.decision]


@relaxed
@given(first=plain, join=joins.filter(lambda join: ";;" not in join), second=plain, given_rules=rules)
def test_another_part_never_loosens(desk: Desk, first: str, join: str, second: str, given_rules: list[str]) -> None:
    alone = max(strictness(desk.bash(part, *given_rules)) for part in (first, second))
    together = strictness(desk.bash(f"{first}{join}{second}", *given_rules))

    assert together > 0 or alone == 0


@relaxed
@given(command=plain, wrap=st.sampled_from(RUNNING_WRAPS), given_rules=rules)
def test_no_compound_loosens(desk: Desk, command: str, wrap: str, given_rules: list[str]) -> None:
    inside = strictness(desk.bash(wrap.format(command), *given_rules))

    assert inside > 0 or strictness(desk.bash(command, *given_rules)) == 0


@relaxed
@given(
    command=plain, wrapper=st.sampled_from(WRAPPERS), given_rules=rules, mode=st.sampled_from(("ask", "allow", "plan"))
)
def test_no_wrapper_loosens(desk: Desk, command: str, wrapper: str, given_rules: list[str], mode: str) -> None:
    gives_words = wrapper == "xargs"
    if gives_words or command.split(" ")[0] in ("[[", "!", "time", "coproc") or not re.match(r"[a-z]", command):
        return
    given_rules = [rule for rule in given_rules if not rule.startswith("allow")]
    before, after = (desk.bash(text, *given_rules, mode=mode) for text in (command, f"{wrapper} {command}"))

    assert after.decision != "allow" or before.decision == "allow", (before.reason, after.reason)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_denied_command_stays_denied_behind_every_wrapper(desk: Desk, wrapper: str) -> None:
    decision = desk.bash(f"{wrapper} canary x", "deny bash(canary:*)", mode="allow")

    assert (decision.decision, decision.source) == ("deny", "rule"), decision.reason


@relaxed
@given(
    command=plain, redirection=st.sampled_from(REDIRECTIONS), given_rules=rules, mode=st.sampled_from(("ask", "allow"))
)
def test_no_redirection_loosens(desk: Desk, command: str, redirection: str, given_rules: list[str], mode: str) -> None:
    before, after = (desk.bash(text, *given_rules, mode=mode) for text in (command, f"{command} {redirection}"))

    assert strictness(after) >= strictness(before) or ">" in command or "<" in command


SEPARATORS = st.sampled_from(
    (" ", ";", "(", "'", '"', "=", ":", ",", "{", "|", "&", "@", "<", ">", "\n", "\t", "`", "[")
)
WORDS = st.lists(st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), max_size=8), max_size=6)


@relaxed
@given(
    before=WORDS, after=WORDS, text=WORDS, left=SEPARATORS, right=SEPARATORS, named=st.sampled_from((".git/x", ".GIT"))
)
def test_a_protected_name_is_found_in_any_word(
    desk: Desk, before: list[str], after: list[str], text: list[str], left: str, right: str, named: str
) -> None:
    """In any word of an unknown command, as a word or within one."""
    inside = f"{' '.join(text)}{left}{named}{right}{' '.join(text)}"
    command = " ".join(("frobnicate", *(shlex.quote(word) for word in (*before, inside, *after))))

    assert desk.bash(command, "allow bash", mode="allow").decision != "allow"


@relaxed
@given(before=WORDS, after=WORDS, text=WORDS, left=SEPARATORS, right=SEPARATORS)
def test_a_forbidden_command_is_found_in_any_word(
    desk: Desk, before: list[str], after: list[str], text: list[str], left: str, right: str
) -> None:
    """In any word of an unknown command, as a word or within one."""
    inside = f"{' '.join(text)}{left}canary{right}{' '.join(text)}"
    command = " ".join(("frobnicate", *(shlex.quote(word) for word in (*before, inside, *after))))

    assert desk.bash(command, "deny bash(canary:*)", mode="allow").decision != "allow"


@relaxed
@given(command=plain, at=st.integers(0, 3), quote=st.sampled_from(("\\", "''", '""')), given_rules=rules)
def test_no_quote_loosens(desk: Desk, command: str, at: int, quote: str, given_rules: list[str]) -> None:
    name = command.split(" ")[0]
    if not name.isalpha() or at >= len(name) or name in ("time", "coproc", "while", "for", "if"):
        return
    quoted = f"{name[:at]}{quote}{name[at:]}{command[len(name) :]}"
    before, after = desk.bash(command, *given_rules), desk.bash(quoted, *given_rules)

    assert after.decision == before.decision, (quoted, after.reason, before.reason)


@relaxed
@given(command=any_commands, given_rules=rules)
def test_stricter_modes_are_stricter(desk: Desk, command: str, given_rules: list[str]) -> None:
    allow, edits, ask, plan, deny = (
        strictness(desk.bash(command, *given_rules, mode=mode))
        for mode in ("allow", "accept_edits", "ask", "plan", "deny")
    )

    assert allow <= edits <= ask <= deny
    assert ask <= plan


@relaxed
@given(
    tool=st.sampled_from(("read", "grep", "write", "edit")),
    path=st.sampled_from(
        ("a", "src/lib.py", ".git/x", "../x", "links/out/x", "/etc/hostname", "/dev/null", ".", "~/x")
    ),
    given_rules=rules,
)
def test_stricter_modes_are_stricter_for_files(desk: Desk, tool: str, path: str, given_rules: list[str]) -> None:
    decided = {mode: strictness(desk.file(tool, path, *given_rules, mode=mode)) for mode in PermissionMode}

    assert decided[PermissionMode.ALLOW] <= decided[PermissionMode.ACCEPT_EDITS] <= decided[PermissionMode.ASK]
    assert decided[PermissionMode.ASK] <= min(decided[PermissionMode.DENY], decided[PermissionMode.PLAN])


@relaxed
@given(command=any_commands, given_rules=rules, denied=st.sampled_from([rule for rule in RULES if "deny" in rule]))
def test_a_denial_in_another_list_never_loosens(desk: Desk, command: str, given_rules: list[str], denied: str) -> None:
    before = desk.bash(command, *given_rules)
    after = desk.bash(command, denied, *given_rules)

    assert strictness(after) >= strictness(before)


@relaxed
@given(command=any_commands, given_rules=rules, mode=st.sampled_from(list(PermissionMode)))
def test_the_sandbox_only_answers_for_the_commands_that_run_in_it(
    desk: Desk, command: str, given_rules: list[str], mode: PermissionMode
) -> None:
    outside = desk.bash(command, *given_rules, mode=mode)
    inside = desk.bash(command, *given_rules, mode=mode, containment=SANDBOX)

    assert inside.confinement or inside.decision == outside.decision
    assert not outside.confinement
    assert strictness(inside) <= strictness(outside)


@relaxed
@given(command=whole_commands, mode=st.sampled_from(list(PermissionMode)))
def test_protected_paths_stay_as_they_are(desk: Desk, command: str, mode: PermissionMode) -> None:
    decision = desk.bash(f"{command}\necho x > .git/config", "allow bash", "allow edit", mode=mode)

    assert decision.decision != "allow"


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.text(max_size=200) | st.text(st.sampled_from("a '\"\\$`(){}[];&|<>\n#*?!=~-"), max_size=60))
def test_any_text_gets_an_answer(desk: Desk, command: str) -> None:
    found = desk.bash(command, "deny bash(rm:*)")

    assert found.decision in ("allow", "ask", "deny")
    assert found == PermissionDecision.model_validate_json(found.model_dump_json())


def calls_made(work: Callable[[], object]) -> int:
    """Return the number of Python calls, a measure of work that is the same on every machine."""
    count = 0

    def counting(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event == "call":
            count += 1

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


PIECES = (
    "ls;", "ls\n", "ls|", "ls &&", "(", "$(", "{ ", "`", "\"$(", "if ", "x=", "a[", "<<A ", "<(ls) ", "'", '"', "\\",
    "$x", "${x}", "${x:-", "{a,b}", "{1..9}", "*/", "?", "[a-z]", "~/", "../", "a/", "\u00e9", "-x ", "x ", "> x ",
    "2>&1 ", "# ", "|| | ", ";; ", "env ", "cd x;", "for i in *; do ", "$((1+", "case x in ", "bash -c '", "f() {",
    "{{", "\t", "rm .git/* ", "[[ x ", "time ", '"$({1..9}', "f() {[[ x ls\n",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_any_long_text_gets_an_answer_with_bounded_work(desk: Desk, piece: str) -> None:
    text = (piece * MAX_BYTES).encode()[: MAX_BYTES - 4].decode("utf-8", "ignore")
    policy = desk.policy("deny bash(rm:*)", "ask bash(* x)", "deny edit(**/x/*)")

    assert calls_made(lambda: policy.check(desk.tools["bash"], {"command": text})) < MAX_CALLS


@relaxed
@given(length=st.integers(MAX_BYTES - 40, MAX_BYTES + 40) | st.integers(10, 4 * MAX_BYTES))
def test_a_text_is_judged_whole_or_not_at_all(desk: Desk, length: int) -> None:
    """A longer text than the limit is never allowed, however harmless; one within the limit is."""
    command = "echo ".ljust(length, "x")

    for mode in ("ask", "allow"):
        assert (desk.bash(command, "allow bash", mode=mode).decision == "allow") == (length <= MAX_BYTES)


@pytest.mark.parametrize("piece", ["ls;", "'", "x ", "a/", "> x ", "$(", "\u00e9"])
def test_a_megabyte_gets_an_answer_with_bounded_work(desk: Desk, piece: str) -> None:
    policy = desk.policy("deny bash(rm:*)", "deny edit(**/x/*)")
    text = piece * (1_000_000 // len(piece))

    assert calls_made(lambda: policy.check(desk.tools["bash"], {"command": text})) < MAX_CALLS
    assert policy.check(desk.tools["bash"], {"command": text}).decision != "allow"
