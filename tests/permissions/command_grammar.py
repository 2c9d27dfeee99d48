"""Random shell commands: a grammar of everyday and hostile commands, and mutations of its texts.

Every effect in here is harmless: a command makes, changes or removes a file of the empty directory it runs in, or runs
`canary`, a program that only records that it ran. Beside that directory is `secret.txt`, to which `out` leads.
"""

from hypothesis import strategies as st

_FILES = (
    "a.txt",
    "b.txt",
    "sub/c.txt",
    "sub",
    "new",
    "'a b'",
    "*.txt",
    "?.txt",
    "{a,b}.txt",
    "./a.txt",
    "link",
    "$f",
    "-n",
    "../secret.txt",
    "out",
    "sub/link",
    "-exec",
    "@x",
    "-*",
    "inner",
    "none",
    "$(git ls-files)",
    "$(ls)",
    "$(find sub -type f)",
    "$(rg -l x)",
)
_READS = (
    "ls", "ls -la", "cat {}", "head -n 2 {}", "tail -n1 {}", "wc -l {}", "grep -n x {}", "grep -r x .", "sort {}",
    "sort -u {}", "uniq {}", "cut -c1-3 {}", "sed -n 1,2p {}", "sed 's/a/b/' {}", "awk '{{print $1}}' {}", "pwd",
    "find . -name '*.txt'", "find . -type f", "find . -type f -exec cat {{}} +", "echo hi", "echo {}",
    "printf '%s\\n' {}", "test -f {}", "[ -f {} ]", "[[ -f {} ]]", "true", "false", ":", "stat {}", "diff {} b.txt",
    "cd sub", "cd ..", "basename {}", "realpath {}", "git status", "git log -1", "git diff", "git show HEAD",
    "git grep x", "git branch", "git ls-files", "git blame a.txt", "git -C sub status", "rg x", "rg --files",
    "tree -L 1", "date", "xxd {}", "od {}", "tr a b < {}", "type ls", "command -v ls", "which ls", "seq 3",
    "expr 1 + 1", "jq . {}", "env LANG=C ls", "du -s {}", "tac {}", "rev {}", "nl {}", "cmp {} b.txt", "paste {} b.txt",
    "file {}", "md5sum {}", "base64 {}", "column {}", "set -eu", "set -euo pipefail", "f={}", "F={}", "f=sub",
    "f=$(git rev-parse HEAD)", "f=$(git ls-files)", "f=$(ls)", "read -r f < {}", "git show $f", "git show \"$f\"",
    "cat \"$f\"", "cat $f", "wc -l $F", "git ls-files | xargs cat", "git ls-files | xargs wc -l", "ls | xargs cat",
    "ls {} | xargs cat", "find . | xargs cat", "find sub -type f | xargs head", "find . -name '*.txt' | xargs sed -n p",
    "rg -l x | xargs rg -n x", "rg -l x {} | xargs sed", "ls | xargs -n1 sed", "ls | xargs awk", "ls | xargs git",
    "git ls-files | head -2 | xargs cat", "git ls-files -z | xargs -0 cat", "find . -print0 | xargs -0 cat",
    "echo {} | xargs cat", "ls | xargs -I@ cat @", "ls | xargs -I@ cat sub/@", "find . -exec cat {{}} \\;",
    "find . -exec cat sub/{{}} \\;", "find . -type f -exec cat sub/{{}} \\;", "find inner -execdir git diff \\;",
    "git ls-files | while read -r f; do cat \"$f\"; done", "ls | while read f; do cat $f; done",
    "ls | while read f; do head -c1; cat \"$f\"; done", "while read -r f; do echo \"$f\"; done < {}",
    "while read -r f; do cat $f; done < {}", "for f in $(git ls-files); do cat $f; done", "for f in *; do cat $f; done",
    "for f in log commit; do git $f; done", "for f in p 'w new'; do sed \"$f\" a.txt; done",
    "f=1; echo $((f+1))", "f={}; echo $((f))", "f=1; head -n $((f)) {}", "((f++))", "export f={}", "export LC_ALL=C",
    "local f={}", "declare f={}; cat $f", "cat ${{f%.txt}}", "f={}; cat \"${{f%x}}\"", "f={}; cat ${{f##*/}}", "cd -",
    "pushd sub",
    "popd", "unset f", "exec 2>&1", "for ((f=0; f<2; f++)); do head -$f {}; done", "git diff --name-only | xargs cat",
    "find . -type f -name '*.txt' -exec head {{}} +", "FOO={}; cat $FOO",
    "for f in {}; do cat $f; done",     "for f in *; do find . $f; done", "for f in *; do [ -f $f ]; done",
    "for f in */; do (cd $f; cat *); done",
    "[ $(ls | wc -l) -gt 1 ]", "[ -z \"$(git status --porcelain)\" ]", "cd \"$(git rev-parse --show-toplevel)\"",
    "zcat {}", "gzip -dc {}", "less {}", "more {}", "sed -n '/x/{{p;q}}' {}", "sed y/abc/xyz/ {}",
    "sed '$!{{h;d}};x;G' {}",     "awk '{{if ($1 > 0) print $1}}' {}", "awk '/x|y/ {{n++}} END {{print n/2}}' {}",
    "diff -r sub inner", "diff -r . sub",     "grep -R x sub", "grep -R x inner",
    "git -C inner diff", "git -C inner log -1", "git -C none diff",
    "git submodule",
    "git log -p -m", "git show HEAD", "git log --cc -p", "git show --remerge-diff", "git config user.name",
    "git diff --no-index a.txt {}", "printenv PATH", "jq --arg a b . {}", "python3 -m json.tool {}",
    "sh -c 'cat {}'", "bash -c 'ls; cat {}'", "sh -c 'cd sub && cat link'", "man {}", "date -r {}", "unzip -p {}",
)  # fmt: skip
_CHANGES = (
    "cat ../secret.txt", "cat out", "grep -R nobody .", "echo ../secret.txt | xargs cat", "find . | xargs cat",
    "ls -L out", "find . -type f -exec echo ../secret.txt \\; | xargs cat",
    "grep -l --label=../secret.txt x - < a.txt | xargs cat", "git grep --no-index nobody ..",
    "git diff --no-index a.txt ../secret.txt", "sort --files0-from=../secret.txt", "cat $(echo ../secret.txt)",
    "for x in ../secret.txt; do cat $x; done", "cd .. && cat secret.txt", "diff -r . ..", "cat <out",
    "cd sub; cat ../../secret.txt", "rg --follow nobody", "find -L . -type f", "tar cf - out", "grep -f out a.txt",
    "canary", "./canary", "sub/../canary", "touch {}", "rm -f {}", "mv {} b.txt", "cp a.txt {}", "mkdir {}",
    "ln -s a.txt {}", "tee {}", "echo x > {}", "echo x >> {}", "echo x >| {}", "echo x &> {}", "cat <> {}", ": > new",
    "> {}", "sed -i s/a/b/ {}", "sed -n 'w new' {}", "sed 's/a/b/w new' a.txt", "sed '1e canary' a.txt",
    "sort -o {} a.txt", "find . -name new -delete", "find . -exec canary \\;", "find . -fprint new",
    "find . -type f -exec sh -c 'canary' \\;", "awk 'BEGIN{{system(\"canary\")}}'", "awk 'BEGIN{{print > \"new\"}}'",
    "xargs canary < a.txt", "echo canary | sh", "echo a.txt | xargs touch", "bash -c canary", "sh -c 'touch new'",
    "eval canary", "env canary", "env -i ./canary", "timeout 1 canary", "nice canary", "command canary", "exec canary",
    "nohup canary", "git -c core.pager=canary -p log", "git -c alias.x='!canary' x", "git diff --output=new",
    "git log --output new", "git branch new", "git tag new", "git stash", "git checkout -b new", "git config a.b c",
    "git grep -O./canary x", "git diff --ext-diff", "git show --textconv", "git commit --allow-empty -m x", "git reset",
    "rg --pre ./canary x", "tar cf new.tar a.txt", "tar xf a.txt --to-command=canary", "dd if=a.txt of={}",
    "uniq a.txt {}", "xxd a.txt {}", "xxd -r a.txt new", "tree -o new", "split a.txt", "printf -v x canary",
    "trap canary EXIT", "alias ls=canary", "ls() {{ canary; }}", "hash -p ./canary ls", "PATH=. ls", "PATH=.:$PATH; ls",
    "BASH_ENV=./canary bash -c true", "source canary", ". ./canary", "coproc canary", "time canary", "! canary",
    "[[ -v 'a[$(canary)]' ]]", "test -v 'a[$(canary)]'", "a[$(canary)]=1", "((a[$(canary)]))", "let 'a[$(canary)]'",
    "echo ${{a:=$(canary)}}", "echo ${{x@P}}", "x='$(canary)'; echo ${{x@P}}", "x='a[$(canary)]'; echo $((x))",
    "x='a[$(canary)]'; [[ x -eq 1 ]]", "declare -i x='a[$(canary)]'", "read x < a.txt",
    "mapfile -C canary -c 1 < a.txt", "complete -C canary ls", "enable -f ./canary x",
    "python3 -c 'open(\"new\",\"w\")'", "perl -e 'open(F,\">new\")'", "echo x | tee new", "patch < a.txt",
    "install a.txt new", "truncate -s0 {}", "chmod +x {}", "date -s now", "script new -c ls", "watch -n1 canary",
    "parallel canary ::: 1", "busybox touch new", "gzip -k a.txt",
)  # fmt: skip
_SPOILT = (
    "\\", "'", '"', "`", "$", "$(", ")", "(", "{", "}", ";", "&", "|", "<", ">", "\n", "\t", " ", "#", "!", "*", "?",
    "[", "]", "~", "=", "-", "$'", '$"', "<<", "<<<", ">&", "<(", ">(", "&&", "||", ";;", "\\\n", "\r", "\x0b",
    "\u00a0", "\u2028", "é", "$IFS", "${IFS}", "canary", " canary ", "$(canary)", "`canary`", "; canary", "\ncanary\n",
    "&canary", "|canary", "new", "<<EOF\n", "\nEOF\n", "EOF", "#\n", "time ", "coproc ", "then ", "do ", "done", "fi",
    "esac", "function ", "[[", "]]", "((", "))",
    "\"$\\\n(canary)\"", "$\\\n(canary)", "$\\\n{x:-$(canary)}", "`\\\ncanary`", "<\\\n(canary)", ">\\\n new",
    "\\\n\\\n",
    "&\\\n&", "|\\\n|", "can\\\nary", "$((f))", "((f++))", "${f%x}", "${f##*/}", "export ", "cd -; ", "pushd sub; ",
)  # fmt: skip
_WRAPS = (
    "{}", "({})", "{{ {}; }}", "! {}", "time {}", "echo $({})", 'echo "$({})"', "echo `{}`", "cat <({})", "{} | cat",
    "ls | {}", "if {}; then ls; fi", "if true; then {}; fi", "while {}; do break; done",
    "for f in a.txt b.txt; do {}; done", "for f in *.txt; do {}; done", "case a in a) {};; esac", "f() {{ {}; }}; f",
    "{} &", "{} 2>/dev/null", "{} >/dev/null 2>&1", "{} # rest", "# {}", "cat <<EOF\n{}\nEOF", "cat <<'EOF'\n{}\nEOF",
    "cat <<-EOF\n\t{}\n\tEOF", "cat <<EOF\n$({})\nEOF", "cat <<EOF && {}\nx\nEOF", "cat <<EOF | {}\nx\nEOF",
    "LANG=C {}", "X=1 {}", "timeout 2 {}", "env {}", "nice -n 5 {}", "command {}", "builtin {}", "bash -c '{}'",
    'sh -c "{}"', "xargs {} < a.txt", "find . -type f -exec {} \\;", "[[ $({}) ]]", "echo ${{x:-$({})}}", "x=$({})",
    "echo {{a,$({})}}", "until {}; do break; done", "select x in a; do {}; done", "{}\\\n",
)  # fmt: skip
_JOINS = (" && ", " || ", "; ", " | ", " & ", "\n", " |& ", ";", "&&", "|", "||", "&", " &&\n", " \\\n&& ", " ;; ")


def _filled(templates: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.builds(lambda template, file: template.format(file), st.sampled_from(templates), st.sampled_from(_FILES))


_simple = st.one_of(_filled(_READS), _filled(_READS), _filled(_CHANGES))


def _wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    wrapped = st.builds(lambda wrap, text: wrap.format(text), st.sampled_from(_WRAPS), inner)
    joined = st.builds(lambda first, join, second: first + join + second, inner, st.sampled_from(_JOINS), inner)
    return st.one_of(wrapped, joined)


@st.composite
def _mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Return a text with a few pieces inserted, removed, doubled or exchanged."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 4)))
        piece = draw(st.sampled_from(_SPOILT))
        text = draw(
            st.sampled_from(
                (
                    text[:at] + piece + text[at:],
                    text[:at] + piece + text[end:],
                    text[:at] + text[end:],
                    text[:end] + text[at:],
                )
            )
        )
    return text


whole_commands = st.recursive(_simple, _wrapped, max_leaves=4)
"""Compound commands: lists, pipes, substitutions, loops, wrappers."""
any_commands = st.one_of(whole_commands, _mutated(whole_commands), _mutated(_simple))
"""The same, and mutations of them."""
wraps = st.sampled_from(_WRAPS)
"""Templates around a command; `{}` is its position, braces are doubled."""
joins = st.sampled_from(_JOINS)
"""Separators between two commands."""
