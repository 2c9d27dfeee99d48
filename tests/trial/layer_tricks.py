"""Commands that try to make the reading or the keeping of their layer lie, hang, or write elsewhere."""

_MARKS = ("opaque", "redirect", "metacopy", "origin", "whiteout", "impure", "nlink", "upper", "uuid", "protattr")
_SET = "python3 -c 'import os,sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())'"


def _marked() -> list[str]:
    """Return commands that set the notes of overlayfs themselves."""
    found: list[str] = []
    for mark in _MARKS:
        for prefix in ("user.overlay.", "user.overlay.overlay.", "trusted.overlay."):
            value = "/../around" if mark == "redirect" else "y"
            found.append(
                f"{_SET} d {prefix}{mark} {value}; echo x > d/b; mkdir n; {_SET} n {prefix}{mark} {value}; echo x > n/x; "
                f": > z; {_SET} z {prefix}{mark} {value}; {_SET} a {prefix}{mark} {value}"
            )
    return found


NAMES = r"""
echo x > $'new\nline'
echo x > $'kept: all\ndiscarded: none'
echo x > $'bad-\xff\xfe'
echo x > $'\e[2J\e]0;title\a'
echo x > $'\u202egpj.exe'
echo x > "$(printf 'x%.0s' {1..255})"
mkdir "$(printf 'd%.0s' {1..255})"; echo x > "$(printf 'd%.0s' {1..255})/$(printf 'f%.0s' {1..255})"
echo x > ' '; echo x > '-rf'; echo x > '*'; echo x > '$(touch pwned)'; echo x > '`id`'; echo x > ';id'
echo x > 'a/'; echo x > '"'; echo x > "'"; echo x > '\'
for i in $(seq 1 1500); do mkdir ddd && cd ddd || break; done; echo x > end
for i in $(seq 1 30); do d=$(printf 'd%.0s' {1..200}); mkdir $d && cd $d || break; done; echo x > end
mkdir .GIT; echo x > .GIT/config; mkdir .Git; echo x > .Git/hooks
mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit
echo 'gitdir: ../around' > sub/.git
git init -q sub2; git init -q --bare bare.git
rm -rf .git; echo "gitdir: $PWD/../around" > .git
mv .git .git2; mkdir .git
rm -rf .git; ln -s ../around .git
rm -rf .git; git init -q .
""".strip().splitlines()
"""Names that do not fit into a line or a path, or stand for something."""

MODES = r"""
chmod 000 a d; chmod 000 .
mkdir n; echo x > n/x; chmod 000 n/x n
mkdir -p n/m/o; echo x > n/m/o/x; chmod 000 n/m/o n/m n
chmod 4755 a; cp /bin/true t; chmod 6755 t
chmod 2777 d; mkdir -m 3777 n; echo x > n/x
chmod 1777 d; chmod 777 .
echo x > ro; chmod 400 ro; mkdir -m 500 rod
rm -rf d; mkdir -m 000 d
chmod u-r a; echo more >> d/b; chmod u-w d
umask 777; echo x > n; mkdir m
setfacl -m u:1:rwx a; setfacl -d -m u:1:rwx d; chown 1:1 a
touch -d 1901-01-01 a; touch -d 2400-01-01 d/b; echo x >> a; touch -d '1960-01-01' a
""".strip().splitlines()
"""Permissions taken away, and those that give more."""

SPECIAL = r"""
mkfifo p; rm a; mkfifo a; rm -r d; mkfifo d
mknod n c 0 0; rm a; mknod a c 0 0; mknod b b 8 0; mknod t c 5 0; rm -r d; mknod d c 0 0
python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind("s"); s2=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s2.bind("d/s")'
rm -r rep; mkfifo rep; mkdir q; mkfifo q/p; echo x > q/x
ln -s /dev/zero z; ln -s /dev/stdin i; ln -s /proc/self/fd/0 j; ln -s /proc/self/environ e
ln -s loop loop; ln -s l2 l1; ln -s l1 l2; rm -r d; ln -s d d
ln -s $PWD/../around/file out; ln -s ../around out2; ln -s .. up; ln -s / root; rm a; ln -s ../around/file a
ln -s d/../../around/file o1; ln -s ./../around o2; ln -s d/e/../../../around o3
ln -s . q; ln -s q/../around/file hop
ln -s d/e deep; ln -s deep/../../../around/file hop2
ln -s missing/../around/file later
mkdir m; ln -s ../m m/self; ln -s m/self/../../around o4
ln -s 'a' "$(printf 'k%.0s' {1..200})"; ln -s "$(printf 'a/%.0s' {1..2000})" long
ln -s "" empty; ln -s $'new\nline' nl; ln -s $'\xff' bad
rm -r d; ln -s rep d; echo x > d/new; rm l; ln -s d l
rm -r d; ln -s ../around d; echo x > d/file
rm -r d; ln -s .git d; echo x > d/config; echo x > d/hooks/post-checkout
ln -s .git/hooks h; echo x > h/post-checkout; ln -s .git/config c; echo '[alias] x = !id' >> c
ln .git/config c; echo '[alias] x = !id' >> c; ln .git/HEAD h; echo x > h
ln a a2; ln a a3; echo x >> a2; ln d/b b2; rm d/b; for i in $(seq 1 300); do ln a many$i; done
ln hard hard2; echo evil > hard2; echo evil >> hard
""".strip().splitlines()
"""Devices, pipes, sockets, links out and links in a circle."""

SIZES = r"""
truncate -s 80G big; truncate -s 1T bigger; fallocate -l 1T biggest; dd if=/dev/zero of=end bs=1 count=1 seek=1500M
truncate -s 1500M a; rm rep/x; truncate -s 1900M rep/x
for i in $(seq 1 2000); do : > n$i; done
mkdir n; cd n; for i in $(seq 1 400); do mkdir -p d$i/e; done
head -c 3000000 /dev/urandom > r; cat r r > a; yes | head -c 5000000 > d/b
printf '\0\0\0' > a; printf '\xff\xfe\xfd' > d/b; printf 'no end' > rep/x; printf 'x\r\ny\r' > mv
(kill -STOP $$; echo x > a) & sleep 0.1; kill -STOP $$
(setsid bash -c 'while :; do echo x >> late; mv late later; done' &) ; sleep 0.2
trap '' TERM HUP INT; (trap '' TERM HUP; while :; do echo x > f$RANDOM; rm -f f*; done) & sleep 0.2; kill -9 $$
python3 -c 'import os,time; [os.fork() for _ in range(4)]; os.setsid(); [open(f"w{os.getpid()}","w") for _ in range(9)]'
exec 9>held; rm held; echo x >&9; (sleep 5; echo y >&9) &
python3 -c 'import os; f=os.open(".", os.O_TMPFILE|os.O_RDWR); os.write(f,b"x"); os.link(f"/proc/self/fd/{f}","tmpfile")'
""".strip().splitlines()
"""Large and sparse files, many files, and processes that go on writing."""

REPOSITORY = r"""
echo '*' > .gitignore; echo evil > new.py; echo evil > d/b
echo 'new.py' >> .git/info/exclude; echo evil > new.py
git config core.excludesFile $PWD/x; echo '*' > x; echo evil > new.py
echo '* filter=x' > .gitattributes; git config filter.x.clean 'touch pwned'; echo x > a
echo '* filter=x' > .git/info/attributes; echo '* filter=x' > d/.gitattributes
echo ../../around/objects > .git/objects/info/alternates
echo ../around > .git/commondir; echo ../around > .git/gitdir
echo 'ref: refs/heads/../../config' > .git/HEAD; echo 'ref: refs/heads/main' > .git/refs/heads/loop
ln -sf ../../around/file .git/index; ln -s ../../../../around/file .git/refs/heads/out
rm .git/HEAD; ln -s refs/heads/main .git/HEAD
mkdir .git/refs/heads/main.lock; touch .git/index.lock .git/HEAD.lock .git/packed-refs.lock .git/config.lock
mkdir -p .git/hooks .git/worktrees/x; echo x > .git/hooks/pre-commit; echo ../../../around > .git/worktrees/x/gitdir
mkdir -p .git/modules/x/hooks; echo x > .git/modules/x/hooks/post-checkout; echo x > .git/modules/x/config
echo '[include] path = ../../around/file' >> .git/config; git config include.path /tmp/x
git config core.worktree ../around; git config core.hooksPath d; git config core.fsmonitor 'touch pwned'
git config --worktree core.fsmonitor id; echo '[core] fsmonitor=id' > .git/config.worktree
for o in $(find .git/objects -type f); do chmod u+w $o; echo evil > $o; done
rm -rf .git/objects; mkdir .git/objects
echo 0000000000000000000000000000000000000000 > .git/refs/heads/main; echo x > .git/refs/heads/$'new\nline'
echo "$(git rev-parse HEAD) refs/heads/../../hooks/x" > .git/packed-refs; echo garbage > .git/index
git -c user.name=x -c user.email=x@y commit -qam "$(printf 'x\e[2J\n\nkept: all')" --allow-empty; git tag -f v1
git checkout -q -b $'new'; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; git update-ref refs/evil HEAD
git update-ref HEAD HEAD; git symbolic-ref HEAD refs/heads/../config; git symbolic-ref refs/heads/s refs/heads/main
echo "$(git rev-parse HEAD)" > .git/MERGE_HEAD; echo x > .git/MERGE_MSG; mkdir -p .git/rebase-merge; echo 'exec id' > .git/rebase-merge/git-rebase-todo
mkdir -p .git/logs/refs; ln -sf ../../../around/file .git/logs/HEAD; ln -sfn ../../around .git/refs/remotes
rm -rf .git/refs; ln -s ../../around .git/refs
git stash -q; git worktree add -q ../around/wt; git worktree add -q wt; git submodule add ./inner 2>&1
git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),submodule; printf '[submodule "x"]\n\tpath=x\n\turl=../around\n\tupdate=!id\n' > .gitmodules
git update-index --add --cacheinfo 120000,$(echo -n ../around/file | git hash-object -w --stdin),linked
""".strip().splitlines()
"""Repositories that hide changes from the question or name programs and files elsewhere."""

TRICKS = [*_marked(), *NAMES, *MODES, *SPECIAL, *SIZES, *REPOSITORY]
