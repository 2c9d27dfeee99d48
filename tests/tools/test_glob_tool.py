"""The glob tool on real trees, with and without ripgrep."""

from pathlib import Path

import pytest

from tests.support.table import table
from tests.tools.calls import call, details_of
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Accesses, PathSubject
from tui_agent.tools.glob_tool import MOST_SHOWN, GlobTool
from tui_agent.tools.search.search_engine import Ripgrep
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def glob(workspace: Workspace, engine: Ripgrep | None) -> GlobTool:
    return GlobTool(workspace)


@pytest.fixture
def tree(root: Path) -> Path:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.txt", ".github/w.yml", "node_modules/m/x.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".gitignore").write_text("node_modules/\n")
    return root


@table(
    ("arguments", "files"),
    [
        ({"pattern": "**/*.py"}, "a.py\nsrc/b.py\nsrc/deep/c.py"),
        ({"pattern": "*.py"}, "a.py"),
        ({"pattern": "*.py", "path": "src"}, "src/b.py"),
        ({"pattern": "**/*.{txt,yml}"}, ".github/w.yml\nsrc/d.txt"),
        ({"pattern": "m/*", "path": "node_modules"}, "node_modules/m/x.py"),
        ({"pattern": "*.rs"}, "[no files match *.rs]"),
    ],
)
async def test_finds_files(glob: GlobTool, tree: Path, arguments: dict[str, str], files: str) -> None:
    assert (await call(glob, **arguments)).text == files


NAMED = {
    # pattern: result
    ".env": ".env",
    "./.env": ".env",
    "{.env,gone}": ".env",
    "dist/**/*.js": "dist/b.js\ndist/deep/c.js",
    "dist/*.{js,css}": "dist/b.js",
    "node_modules/m/x.py": "node_modules/m/x.py",
    "node_modules/*/x.py": "node_modules/m/x.py",
    "{src,dist}/**/*.js": "dist/b.js\ndist/deep/c.js",
    "scripts/*.py": "scripts/w.py",
    "app/(group)/[slug]/page.tsx": "app/(group)/[slug]/page.tsx",
    "app/(group)/[slug]/*.tsx": "app/(group)/[slug]/page.tsx",
    "**/[slug]/*": "app/(group)/[slug]/page.tsx",
    "{a,b}.txt": "a.txt\n{a,b}.txt",
    "src": "src/",
    "dist/": "dist/",
    "link": "link",
    "**/.env": "[no files match **/.env, but 1 file that .gitignore excludes does: .env]",
    "**/b.js": "[no files match **/b.js, but 1 file that .gitignore excludes does: dist/b.js]",
    "*.env*": "[no files match *.env*, but 1 file that .gitignore excludes does: .env]",
    "link/*": "[no files match link/*]\n[link is a symbolic link; to look into it, name it in path]",
    "link/x.py": "[no files match link/x.py]\n[link is a symbolic link; to look into it, name it in path]",
    "caf\u00e9 1.md": "cafe\u0301\u00a01.md",
    "gone/*": "[no files match gone/*]",
    "gone.py": "[no files match gone.py]",
    "a.py/x": "[no files match a.py/x]",
}


async def test_what_a_pattern_names_is_found_and_ignored_files_are_counted(glob: GlobTool, tree: Path) -> None:
    (tree / ".gitignore").write_text("node_modules/\n.env\ndist/\nscripts/*\n")
    for name in (
        ".env",
        "dist/b.js",
        "dist/deep/c.js",
        "scripts/w.py",
        "app/(group)/[slug]/page.tsx",
        "{a,b}.txt",
        "a.txt",
        "cafe\u0301\u00a01.md",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "link").symlink_to("src")

    found = {pattern: (await call(glob, pattern=pattern)).text for pattern in NAMED}

    assert found == NAMED


async def test_an_absolute_pattern_and_one_from_home_set_the_directory(
    glob: GlobTool, tree: Path, clean_environment: Path
) -> None:
    (clean_environment / "notes.txt").touch()
    assert (await call(glob, pattern="~/*.txt")).text == f"{clean_environment}/notes.txt"
    assert glob.subject({"pattern": "~/*.txt"}) == PathSubject(str(clean_environment), "search", leaves_out_denied=True)
    assert (await call(glob, pattern=f"{tree}/src/**/*.py")).text == "src/b.py\nsrc/deep/c.py"
    assert (await call(glob, pattern=f"{tree}/a.py")).text == "a.py"
    assert glob.accesses({"pattern": f"{tree}/src/**/*.py"}) == Accesses(searches=frozenset({tree / "src"}))
    assert glob.subject({"pattern": "/etc/*.conf"}) == PathSubject("/etc", "search", leaves_out_denied=True)
    assert glob.subject({"pattern": "/*.conf"}) == PathSubject("/", "search", leaves_out_denied=True)


async def test_too_many_files_are_cut(glob: GlobTool, root: Path) -> None:
    for number in range(MOST_SHOWN + 5):
        (root / f"f{number:05}").touch()

    result = await call(glob, pattern="*")

    assert result.text.endswith(f"f00999\n[1,000 of {MOST_SHOWN + 5:,} files; narrow the pattern to see the others]")
    assert details_of(result) == {
        "outcome": f"{MOST_SHOWN + 5:,} files",
        "files": MOST_SHOWN + 5,
        "complete": True,
    }


@table(
    ("arguments", "words"),
    [
        ({"pattern": "*", "path": "scr"}, r"scr does not exist; did you mean src/\?"),
        ({"pattern": "*", "path": "a.py"}, r"a\.py is not a directory"),
        ({"pattern": "../*"}, "cannot contain"),
    ],
)
async def test_errors_are_clear(glob: GlobTool, tree: Path, arguments: dict[str, str], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        await call(glob, **arguments)
