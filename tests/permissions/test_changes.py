"""Promise: what a command changed is kept by a path rule, the mode or the user, and never against a deny rule."""

from pathlib import Path

from tests.support.table import table
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.permissions import ChangesDecision
from tui_agent.protocol.trial import ChangeSort, ProposedChanges, ProposedFile, ProposedTree


def _file(path: str, sort: ChangeSort = "workspace", conflict: str = "") -> ProposedFile:
    return ProposedFile(path=path, kind="changed", sort=sort, conflict=conflict)


def _tree(path: str, sort: ChangeSort = "ignored") -> ProposedTree:
    return ProposedTree(path=path, sort=sort, files=214)


def _changes(*changed: ProposedFile | ProposedTree, commits: str = "", bound: tuple[str, ...] = ()) -> ProposedChanges:
    files = tuple(one for one in changed if isinstance(one, ProposedFile))
    trees = tuple(one for one in changed if isinstance(one, ProposedTree))
    repository = (commits,) if commits else ()
    return ProposedChanges(layer="l1", files=files, trees=trees, repository=repository, repository_files=bound)


def _decide(workspace: Path, changes: ProposedChanges, *rules: str, mode: str = "ask") -> ChangesDecision:
    return PermissionPolicy(workspace, rules=rules, mode=mode).check_changes(changes)


SORTS = {
    "workspace": _changes(_file("src/a.py")),
    "ignored": _changes(_tree("build/")),
    "packages": _changes(_tree(".venv/", "packages")),
    "repository": _changes(commits="1 commit on main: Fix add"),
    "protected": _changes(_file(".git/hooks/pre-commit", "protected")),
    "refused": _changes(_file("x.sock", "refused")),
    "conflict": _changes(_file("src/a.py", conflict="it changed")),
    "obeyed": _changes(_file(".pre-commit-config.yaml")),
}
"""One change of each sort, and one in conflict."""
DECISIONS = {
    # sort: ask, accept_edits, allow, plan, deny
    "workspace": "ask allow allow deny deny",
    "ignored": "ask allow allow deny deny",
    "packages": "ask ask allow deny deny",
    "repository": "ask ask allow deny deny",
    "protected": "ask ask ask deny deny",
    "refused": "deny deny deny deny deny",
    "conflict": "ask ask ask deny deny",
    "obeyed": "ask allow allow deny deny",
}


@table("sort", SORTS)
def test_each_sort_in_each_mode(tmp_path: Path, sort: str) -> None:
    modes = ["ask", "accept_edits", "allow", "plan", "deny"]
    assert [_decide(tmp_path, SORTS[sort], mode=mode).decision for mode in modes] == DECISIONS[sort].split()
    assert _decide(tmp_path, ProposedChanges(layer="l1")).decision == "allow"


@table(
    ("sort", "rules", "expected"),
    [
        ("workspace", ["allow edit(src/**)"], "allow"),
        ("workspace", ["allow edit(tests/**)"], "ask"),
        ("ignored", ["allow edit(/build/**)"], "allow"),
        ("ignored", ["allow edit(/build/*.o)"], "ask"),
        ("packages", ["allow edit(/.venv/**)"], "allow"),
        ("packages", ["allow edit(/**)"], "ask"),
        ("packages", ["allow edit"], "ask"),
        ("obeyed", ["allow edit(/**)"], "ask"),
        ("obeyed", ["allow edit(/.pre-commit-config.yaml)"], "allow"),
        ("repository", ["allow edit", "allow edit(.git/**)"], "ask"),
        ("protected", ["allow edit", "allow edit(.git/**)"], "ask"),
        ("refused", ["allow edit"], "deny"),
        ("conflict", ["allow edit"], "ask"),
    ],
)
def test_rules_keep_what_they_cover(tmp_path: Path, sort: str, rules: list[str], expected: str) -> None:
    assert _decide(tmp_path, SORTS[sort], *rules).decision == expected


def test_no_one_keeps_what_a_rule_denies(tmp_path: Path) -> None:
    changes = _changes(_file("src/a.py"), _file("secrets/key"))
    decision = _decide(tmp_path, changes, "deny edit(secrets/**)", mode="allow")
    assert (decision.decision, decision.kept, decision.asked) == ("allow", ("src/a.py",), ())
    assert _decide(tmp_path, _changes(_file("secrets/key")), "deny edit(secrets/**)", mode="allow").decision == "deny"
    policy = PermissionPolicy(tmp_path, rules=["deny edit(secrets/**)"])
    assert "deny edit(secrets/**)" in policy.why_never_kept("secrets/key")
    assert not policy.why_never_kept("src/a.py")


def test_a_tree_that_may_contain_denied_files_asks_in_every_mode(tmp_path: Path) -> None:
    for rule in ("deny edit(*.pem)", "deny edit(build/x/**)", "ask edit(**/x)"):
        assert _decide(tmp_path, SORTS["ignored"], rule, mode="allow").decision == "ask", rule
    assert _decide(tmp_path, SORTS["ignored"], "deny edit(other/**)", mode="allow").decision == "allow"
    assert _decide(tmp_path, SORTS["ignored"], "deny edit(build/**)", mode="allow").decision == "deny"
    assert _decide(tmp_path, SORTS["ignored"], "allow edit(build/**)", "deny edit(*.pem)").decision == "allow"


def test_a_repository_is_kept_with_all_its_files_or_not_at_all(tmp_path: Path) -> None:
    bound = _changes(_file("a.py"), _file("b.py"), _file("c.py"), commits="HEAD is at x", bound=("a.py", "b.py"))
    decision = _decide(tmp_path, bound, mode="accept_edits")
    assert (decision.kept, sorted(decision.asked)) == (("c.py",), [".git", "a.py", "b.py"])
    assert _decide(tmp_path, bound, "deny edit(b.py)", mode="allow").kept == ("c.py",)
    assert sorted(_decide(tmp_path, bound, mode="allow").kept) == [".git", "a.py", "b.py", "c.py"]


@table(
    ("changes", "rules"),
    [
        (SORTS["workspace"], ("edit(/src/a.py)", "edit(/src/**)")),
        (_changes(_file("a.py")), ("edit(/a.py)",)),
        (
            _changes(_file("a/b/c"), _file("a/d/e")),
            ("edit(/a/b/c)\nedit(/a/d/e)", "edit(/a/b/**)\nedit(/a/d/**)", "edit(/a/**)"),
        ),
        (SORTS["ignored"], ("edit(/build/**)",)),
        (_changes(_file("we[i]rd/*.py")), (r"edit(/we\[i\]rd/\*.py)", r"edit(/we\[i\]rd/**)")),
        (SORTS["repository"], ()),
        (SORTS["protected"], ()),
        (SORTS["conflict"], ()),
    ],
)  # fmt: skip
def test_offered_rules_are_the_narrowest_that_keep(
    tmp_path: Path, changes: ProposedChanges, rules: tuple[str, ...]
) -> None:
    policy = PermissionPolicy(tmp_path)
    assert policy.check_changes(changes).rules == rules
    for text in rules:
        assert policy.changes_refusal(text, changes) == ""
        granted = PermissionPolicy(tmp_path)
        granted.grant(text, "session")
        assert granted.check_changes(changes).decision == "allow"


@table(
    "typed",
    ["", "edit", "bash(make)", "edit(//etc/**)", "edit(~/x)", "edit(/other/**)", "edit(", "edit(/src/a.py)\nwrite(x)"],
)  # fmt: skip
def test_typed_rules_must_keep_some_of_these_changes(tmp_path: Path, typed: str) -> None:
    policy = PermissionPolicy(tmp_path)
    assert policy.changes_refusal(typed, SORTS["workspace"])
    assert not policy.changes_refusal("edit(src/*.py)", SORTS["workspace"])
    assert policy.check_changes(SORTS["workspace"]).decision == "ask"


def test_an_entry_is_judged_by_its_own_path_and_not_by_a_links_target(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("/etc/passwd")
    (tmp_path / "out").symlink_to("/etc")
    assert _decide(tmp_path, _changes(_file("l")), mode="accept_edits").decision == "allow"
    assert _decide(tmp_path, _changes(_file("out/x")), mode="allow").decision == "ask"
    assert _decide(tmp_path, _changes(_file("/etc/x")), "allow edit", mode="allow").decision == "ask"
