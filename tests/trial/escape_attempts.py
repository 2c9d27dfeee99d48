"""Attempts to leave a trial, written by hand. Variables name what is outside: see `test_escapes.py`."""

WRITES = r"""
echo evil > $OUT/canary
echo evil >> $OUT/canary
touch $OUT/new
: > $OUT/canary
rm -f $OUT/canary
mv $OUT/canary $OUT/moved
cp /bin/true $OUT/new
dd if=/dev/zero of=$OUT/canary count=1
truncate -s 0 $OUT/canary
tee $OUT/canary < /etc/passwd
install -m 777 /bin/true $OUT/new
sed -i s/alive/evil/ $OUT/canary
ln -s /etc/passwd $OUT/new
ln $W/kept $OUT/new
mkdir $OUT/new
mkfifo $OUT/new
mknod $OUT/new c 1 3
chmod 777 $OUT/canary
chmod u+s $OUT/canary
chown 1:1 $OUT/canary
chgrp 1 $OUT/canary
touch -d 2001-01-01 $OUT/canary
setfattr -n user.evil -v x $OUT/canary
chattr +i $OUT/canary
echo evil > $W/link/canary
rm $W/link/canary
ln -s $OUT second; echo evil > second/new
ln $OUT/canary hard && echo evil > hard
ln -P $W/link/canary hard && echo evil > hard
cp -l $OUT/canary hard && echo evil > hard
ln $OUT/canary $TMPDIR/hard && echo evil > $TMPDIR/hard
ln $W/kept $TMPDIR/hard && echo evil > $TMPDIR/hard
mv $W/kept $TMPDIR/kept
echo evil > $W/kept; rm $W/kept; mkdir $W/kept
echo evil > $W/hard
chmod 000 $W/kept; touch -d 2001-01-01 $W/kept; setfattr -n user.a -v b $W/kept
rm -rf $W/sub $W/.git
mv $W/sub $W/moved; mkdir $W/sub
cd ..; mkdir evil; mv work moved; rmdir work
cd $W/..; rm -rf $W; mkdir $W; touch $W/new
mv $W $W.old; ln -s $OUT $W; echo evil > $W/canary
echo evil > /proc/self/root$OUT/canary
echo evil > /proc/1/root$OUT/canary
echo evil > /proc/1/cwd/canary
echo evil > /proc/self/cwd/../../../out/canary
echo evil > /proc/$HOSTPID/root$OUT/canary
echo evil > /proc/$HOSTPID/cwd/new
for fd in /proc/self/fd/* /proc/1/fd/*; do echo evil > $fd/canary; echo evil > $fd; done
for fd in /proc/$HOSTPID/fd/*; do echo evil > $fd; done
for fd in 3 4 5 6 7 8 9 10 11 12; do echo evil >&$fd; done
exec 9< $OUT/canary; echo evil > /dev/fd/9; echo evil > /proc/self/fd/9
exec 9< $OUT; echo evil > /dev/fd/9/new; cd /dev/fd/9 && touch new
echo evil > $HOME/new; mkdir -p $HOME/.config/autostart; touch $HOME/.bashrc
echo 'evil' >> $HOME/.ssh/authorized_keys
echo 'evil' >> $HOME/.profile
git config --global core.hooksPath /evil
echo evil > $OTHER/new; rm -rf $OTHER
echo evil > $OURS/journal; rm -rf $OURS; mkdir $OURS/evil
find $OURS -type f -delete
echo evil > /etc/cron.d/evil
echo evil > /etc/ld.so.preload
echo evil >> /etc/passwd
echo evil > /usr/bin/evil; touch /usr/lib/evil
echo evil > /var/spool/cron/evil
echo evil > /var/lib/dpkg/status
mount -o remount,rw / && echo evil > $OUT/canary
mount -o remount,rw,bind $OUT; echo evil > $OUT/canary
mount --bind $OUT . && echo evil > canary
mkdir m; mount --rbind / m; echo evil > m$OUT/canary
umount -l $OUT; umount -l /; echo evil > $OUT/canary
umount -l $W; umount -R $W; echo evil > $W/kept
unshare -Urm bash -c 'mount -o remount,rw,bind /; umount -l /; echo evil > $OUT/canary'
mkdir m; unshare -Urm bash -c 'mount --bind $OUT m; mount -o remount,rw,bind m; echo x > m/canary'
unshare -Urm bash -c 'umount -l $W; echo evil > $W/kept'
unshare -Urm bash -c 'mount -o remount,rw $OUT; mount -o remount,rw,bind $OUT; touch $OUT/new'
mkdir u k m; unshare -Urm bash -c 'mount -t overlay o -olowerdir=$OUT,upperdir=u,workdir=k m; echo x > m/canary'
mkdir u k m; unshare -Urm bash -c 'mount -t overlay o -oupperdir=$OUT,lowerdir=u,workdir=k m; echo x > m/canary'
mkdir k m; unshare -Urm bash -c 'mount -t overlay o -olowerdir=/usr,upperdir=$W,workdir=k m; touch m/new'
unshare -Urmpf --mount-proc bash -c 'echo evil > /proc/1/root$OUT/canary'
unshare -Urm --propagation shared bash -c 'mount --make-rshared /; mount -t tmpfs t $OUT'
unshare -Ur bash -c 'chmod 777 $OUT/canary; chown 0:0 $OUT/canary'
mkdir m; chroot / bash -c 'echo evil > $OUT/canary'; unshare -Ur chroot /proc/1/root bash -c 'echo x > $OUT/canary'
mkdir -p m/old; unshare -Urm bash -c 'mount --bind m m; pivot_root m m/old; echo x > /old$OUT/canary'
nsenter -t 1 -m -U bash -c 'echo x > $OUT/canary'
nsenter -t $HOSTPID -m bash -c 'echo x > $OUT/canary'
nsenter -t $HOSTPID -a bash -c 'echo x > $OUT/canary'
mknod b b 8 0; cat b; mknod c c 1 1; cat c
mknod v b 254 0; dd if=v of=v2 count=1; dd if=/dev/zero of=v count=1
dd if=/dev/zero of=/dev/vda count=1; dd if=/dev/zero of=/dev/sda count=1
echo evil > /dev/mem; echo evil > /dev/kmsg; echo evil > /dev/port
ls /dev/fuse /dev/kvm /dev/net/tun /dev/loop-control /dev/shm; echo evil > /dev/shm/$MARK
rm -f /dev/shm/$MARK /dev/null
echo '|/bin/touch $OUT/new' > /proc/sys/kernel/core_pattern
echo evil > /proc/sys/kernel/hostname; hostname evil
echo 1 > /proc/sys/net/ipv4/ip_forward
echo /tmp/evil > /proc/sys/kernel/modprobe
echo b > /proc/sysrq-trigger
echo -1000 > /proc/$HOSTPID/oom_score_adj
echo 1000 > /proc/1/oom_score_adj
mkdir /sys/fs/cgroup/evil; echo 0 > /sys/fs/cgroup/cgroup.procs; echo $OUT/new > /sys/fs/cgroup/release_agent
mkdir m; mount -t cgroup c m; mount -t cgroup2 c m; mkdir m/evil
echo 1 > /sys/kernel/mm/ksm/run; echo mem > /sys/power/state
mkdir m; mount -t proc p m; echo evil > m/sys/kernel/core_pattern
unshare -Urmpf bash -c 'mount -t proc p /proc; echo evil > /proc/sys/kernel/core_pattern'
mkdir m; mount -t debugfs d m; mount -t securityfs d m; mount -t sysfs s m
cp /bin/bash b; chmod 4755 b; ./b -p -c 'echo x > $OUT/canary'
cp /bin/touch t; chmod 2755 t; ./t $OUT/new
su -c 'echo x > $OUT/canary'; sudo -n touch $OUT/new; pkexec touch $OUT/new
newuidmap $$ 0 0 1; newgrp root; passwd -d root
LD_PRELOAD=$W/evil.so ls; LD_LIBRARY_PATH=$W su -c 'touch $OUT/new'
BASH_ENV=$W/evil bash -c true; PATH=$W:$PATH ls
at now <<< 'touch $OUT/new'; batch <<< 'touch $OUT/new'
crontab - <<< '* * * * * touch $OUT/new'
systemd-run --user touch $OUT/new; systemctl --user start evil
echo 'touch $OUT/new' | bash; echo 'touch $OUT/new' | sh -s
python3 -c 'import os; os.open("/proc/1/root" + os.environ["OUT"] + "/canary", os.O_WRONLY | os.O_TRUNC)'
perl -e 'open F, ">", "$ENV{OUT}/canary"; print F "evil"'
git init -q $OUT/repository; git -C $OUT init
tar -C / -cf a.tar etc/passwd; tar -C $OUT -xf a.tar; tar -P -cf b.tar $OUT; tar -P -xf b.tar
find $OUT -exec touch {} +; find $OUT -delete
rsync -a $W/ $OUT/; cpio -pd $OUT <<< kept
mknod kept2 c 0 0; rm -f $W/kept; mknod $W/kept c 0 0
mkdir o; setfattr -n trusted.overlay.opaque -v y o; setfattr -n user.overlay.opaque -v y o
setfattr -n user.overlay.whiteout -v y kept3; setfattr -n user.overlay.redirect -v $OUT $W/sub
setfattr -n user.overlay.redirect -v /../../out o; setfattr -n user.overlay.metacopy -v x kept3; ls $W/sub
rm -rf $W/sub; ln -s $OUT $W/sub; echo evil > $W/sub/canary
rmdir $TMPDIR; rm -rf /tmp/* /var/tmp/*; ln -s $OUT /tmp/evil; echo evil > /tmp/evil/canary
ln -s $OUT $XDG_CACHE_HOME; mkdir -p $XDG_CACHE_HOME; echo evil > $XDG_CACHE_HOME/canary
rm -rf ${XDG_CACHE_HOME%/*}; mv ${XDG_CACHE_HOME%/*} $OUT
ln -s / $W/root; echo evil > $W/root$OUT/canary; rm -rf $W/root/$OUT/*
mkfifo $W/f; (echo evil > $W/pipe) & sleep 0.1; kill $!
(echo evil > $OUT/pipe) & sleep 0.1; kill $!
(cat $OUT/pipe) & sleep 0.1; kill $!
exec 8<>$OUT/pipe; echo evil >&8
setpriv --reuid 0 touch $OUT/new; setpriv --ambient-caps +all touch $OUT/new; capsh --print
prlimit --pid $HOSTPID --nofile=1:1; renice -n 19 -p $HOSTPID; taskset -p 1 $HOSTPID; ionice -c 3 -p $HOSTPID
kill -9 $HOSTPID; kill -STOP $HOSTPID; kill -TERM -- -$HOSTPID
kill -9 $VICTIM; kill -STOP $VICTIM; pkill -9 -f $MARK; killall -9 sleep
for n in $(seq 2 60); do kill -0 $n; done; kill -9 $((VICTIM-1)) $((VICTIM)) $((VICTIM+1))
date -s 2001-01-01; hwclock -w; reboot -f; swapoff -a; modprobe evil; insmod evil.ko; sysctl -w kernel.panic=1
ip link set lo down; ip addr add 1.2.3.4/8 dev lo; iptables -F; nft flush ruleset
docker run -v /:/h alpine touch /h$OUT/new; podman run -v /:/h alpine true
ssh -o BatchMode=yes localhost touch $OUT/new
losetup -f $W/kept; mount -o loop $W/kept m; fusermount -u $W
flock $OUT/canary -c 'echo evil > $OUT/canary'
ulimit -n 1000000; ulimit -u unlimited; ulimit -c unlimited; bash -c 'kill -SEGV $$'
""".strip().splitlines()
"""Changes of something outside, or of the real workspace."""

READS = r"""
cat $HOME/.ssh/id $HOME/.netrc
cat $OTHER/notes; ls $OTHER
cat $OURS/journal; ls -R $OURS
cat $KUBECONFIG
cat $DENIED; cp $DENIED x; cat x; dd if=$DENIED; grep -r . $W/closed; cat $W/closed/*
cat $W/closed/../$(basename $DENIED); cat /proc/self/cwd/../denied; (cd $W && cat ./denied)
mv $DENIED y; cat y; ln $DENIED z; cat z; umount $DENIED; cat $DENIED; rm $DENIED; cat $DENIED
mv $W/closed y; cat y/*; umount $W/closed; cat $W/closed/*; cp -r $W/closed c; cat c/*
grep -rs words-of $HOME $HOME/.. $OUT/..
find $OUT/.. $HOME -type f -exec cat {} +
cat /proc/self/root$HOME/.ssh/id /proc/1/root$HOME/.ssh/id
cat /proc/$HOSTPID/root$HOME/.ssh/id; ls /proc/$HOSTPID/root$HOME/.ssh
cat /proc/$HOSTPID/environ /proc/$HOSTPID/cmdline /proc/$VICTIM/environ
cat /proc/*/environ | tr '\0' '\n'
cat /proc/$HOSTPID/fd/*; cat /proc/$VICTIM/fd/*; cat /proc/$VICTIM/cwd/*
timeout 0.3 cat /proc/1/fd/*; timeout 0.3 cat /proc/self/fd/[3-9]*
ln -s $HOME/.ssh s; cat s/id; ln $HOME/.netrc n; cat n; cp -r $HOME/. copy; cat copy/.ssh/id copy/.netrc
umount -l $HOME/.ssh $OTHER $OURS; cat $HOME/.ssh/id $OTHER/notes $OURS/journal
mkdir m; mount --bind / m; cat m$HOME/.ssh/id
unshare -Urm bash -c 'umount -l $HOME/.ssh; umount -l $HOME; umount -l $OURS; cat $HOME/.ssh/id $OURS/journal'
mkdir m; unshare -Urm bash -c 'mount --bind $HOME m; cat m/.ssh/id m/.netrc'
unshare -Urm bash -c 'umount -R /tmp /var/tmp /run; ls /tmp /run; cat /tmp/*'
mkdir m; unshare -Urm bash -c 'mount -t overlay o -olowerdir=$HOME/.ssh:$OTHER m; cat m/*'
mkdir m; unshare -Urm bash -c 'mount --bind $W m; cat m/denied m/closed/*'
unshare -Urm bash -c 'umount $DENIED; umount -l $W/closed; cat $DENIED $W/closed/*'
nsenter -t $HOSTPID -m cat $HOME/.ssh/id
env; export -p; declare -p; python3 -c 'import os; print(os.environ)'
cat /dev/shm/$MARK; ls -R /dev; strings /dev/mem | head -1
ls /tmp; ls /run/user; cat /run/secrets/*; ls /var/run
cat /var/log/* /var/mail/* /root/.bash_history /home/*/.bash_history
cat /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/*_key
git config --list --show-origin; git credential fill <<< host=example.com; cat $HOME/.git-credentials
git -C $OTHER log; git --git-dir=$OTHER/.git log
echo "gitdir: $OTHER/repo/.git" > .git; git log; git show HEAD:notes
gdb -p $VICTIM -batch -ex 'info proc'; strace -p $VICTIM; cat /proc/$VICTIM/mem /proc/$VICTIM/maps
dd if=/dev/vda bs=1M count=1 | grep -a words-of; cat /dev/vda | head -c 100; cat /dev/kmsg | head -1
sqlite3 $OURS/journal .dump; strings $HOME/.ssh/id; xxd $HOME/.netrc; base64 $KUBECONFIG
ssh-add -l; ssh-add -L; gpg --list-secret-keys; secret-tool search a b
docker ps; curl -sm 2 --unix-socket $OUT/s http://x/; wl-paste; xclip -o
tar -cf - $HOME/.ssh | cat; zip -r - $HOME; rsync -a $HOME/.ssh .
less $HOME/.netrc; vim -es -c 'print' -c q $HOME/.netrc; awk 1 $HOME/.netrc
losetup -a; lsof -p $HOSTPID; ps auxe; fuser $W; who; last
""".strip().splitlines()
"""Ways to a secret: none may be in the output, the layer or a temporary directory."""

CONNECTIONS = r"""
exec 3<>/dev/tcp/127.0.0.1/$PORT && echo evil >&3
exec 3<>/dev/tcp/localhost/$PORT && echo evil >&3
exec 3<>/dev/tcp/::1/$PORT6 && echo evil >&3
echo evil > /dev/udp/127.0.0.1/$UDP
curl -sm 2 http://127.0.0.1:$PORT/; wget -qT 2 -O- http://127.0.0.1:$PORT/
nc -w 1 127.0.0.1 $PORT <<< evil; nc -u -w 1 127.0.0.1 $UDP <<< evil; nc -U $OUT/s <<< evil
socat - UNIX-CONNECT:$OUT/s <<< evil; socat - ABSTRACT-CONNECT:$MARK <<< evil
unshare -Urn bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo evil >&3'
unshare -Urn bash -c 'ip link set lo up; exec 3<>/dev/tcp/127.0.0.1/$PORT && echo evil >&3'
nsenter -t 1 -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo evil >&3'
nsenter -t $HOSTPID -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo evil >&3'
ip link add d0 type dummy; ip link add v0 type veth peer name v1 netns $HOSTPID; ip route add default via 10.0.0.1
ping -c 1 -W 1 127.0.0.1; getent hosts example.com; dig +time=1 @127.0.0.1 -p $UDP evil
git clone http://127.0.0.1:$PORT/x; git ls-remote git://127.0.0.1:$PORT/x
DOCKER_HOST=unix://$OUT/s docker ps; SSH_AUTH_SOCK=$OUT/s ssh-add -l
ln -s $OUT/s l; nc -U l <<< evil; mv $W/s t; nc -U t <<< evil; cp -a $W/s u
logger evil; systemd-notify --ready; systemd-cat echo evil; notify-send evil
dbus-send --session --dest=org.x / org.x.y; busctl --user list; gdbus call -e -d a -o / -m b.c
""".strip().splitlines()
"""Ways to a server outside; none may receive anything."""

CALLS = r"""
socket.create_connection(("127.0.0.1", port), 1).send(b"evil")
socket.create_connection(("::1", port6), 1).send(b"evil")
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"evil", ("127.0.0.1", udp))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"evil", ("255.255.255.255", udp))
socket.socket(socket.AF_UNIX).connect("\0" + mark)
socket.socket(socket.AF_UNIX).connect(out + "/s")
socket.socket(socket.AF_UNIX).connect(work + "/s")
socket.socket(socket.AF_UNIX).connect("/proc/self/root" + out + "/s")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"evil", out + "/d")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"evil", "\0" + mark + "-d")
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"evil", "/run/systemd/journal/socket")
socket.socket(socket.AF_UNIX).connect("/run/docker.sock")
socket.socket(socket.AF_UNIX).connect("/var/run/dbus/system_bus_socket")
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 1))
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).bind(("eth0", 0))
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(b"evil", ("127.0.0.1", 0))
libc.setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0)
libc.setns(os.open(f"/proc/{host}/ns/mnt", os.O_RDONLY), 0)
libc.setns(libc.syscall(434, host, 0), 0x20000)
libc.ptrace(16, victim, 0, 0)
libc.ptrace(0x4206, victim, 0, 0)
open(f"/proc/{victim}/mem", "r+b").write(b"evil")
libc.process_vm_writev(victim, b"\0" * 16, 1, b"\0" * 16, 1, 0)
os.pidfd_open(victim) and libc.syscall(438, os.pidfd_open(victim), 0, 0)
signal.pidfd_send_signal(os.pidfd_open(victim), 9)
os.kill(victim, 9)
os.kill(host, 9)
os.kill(-1, 0)
os.killpg(os.getpgid(victim), 9)
resource.prlimit(victim, resource.RLIMIT_NOFILE, (1, 1))
os.sched_setaffinity(victim, {0})
os.setpriority(os.PRIO_PROCESS, victim, 19)
os.setpriority(os.PRIO_USER, os.getuid(), 19)
libc.syscall(248, b"user", mark.encode(), b"evil", 4, -5)
libc.syscall(248, b"user", mark.encode(), b"evil", 4, -4)
libc.syscall(248, b"user", mark.encode(), b"evil", 4, -3)
libc.syscall(250, 11, -3, ctypes.create_string_buffer(9000), 9000, 0)
libc.syscall(250, 11, -5, ctypes.create_string_buffer(9000), 9000, 0)
libc.shmget(0x7E57, 64, 0o666) >= 0 and ctypes.memmove(libc.shmat(libc.shmget(0x7E57, 64, 0o666), 0, 0), b"evil", 4)
libc.shmctl(libc.shmget(0x7E57, 64, 0o666), 0, 0)
libc.mq_open(b"/" + mark.encode(), 0o102, 0o600, 0)
libc.mount(b"none", out.encode(), b"tmpfs", 0, None)
libc.mount(None, b"/", None, 0x1000 | 0x20, None)
libc.mount(None, out.encode(), None, 0x1000 | 0x20, None)
libc.umount2(out.encode(), 2)
libc.umount2(work.encode(), 2)
libc.syscall(442, -100, b"/", 0x8000, struct.pack("QQQQ", 0, 1, 0, 0), 32)
libc.syscall(428, -100, out.encode(), 1)
libc.syscall(429, libc.syscall(428, -100, out.encode(), 1), b"", -100, work.encode(), 4)
libc.syscall(430, b"ext4", 0)
libc.chroot(b"/proc/1/root")
libc.pivot_root(b".", b".")
libc.open_by_handle_at(os.open("/", os.O_RDONLY), handle(home + "/.ssh"), os.O_RDONLY)
os.write(libc.open_by_handle_at(os.open(work, os.O_RDONLY), handle(out + "/canary"), os.O_WRONLY), b"evil")
os.open(out + "/canary", os.O_WRONLY)
os.open(out, os.O_TMPFILE | os.O_WRONLY)
os.truncate(out + "/canary", 0)
os.utime(out + "/canary", (1, 1))
os.chmod(out + "/canary", 0o777)
os.fchmod(os.open(out + "/canary", os.O_RDONLY), 0o777)
os.fchown(os.open(out + "/canary", os.O_RDONLY), 1, 1)
os.chown(work + "/kept", 1, 1)
os.fchmod(os.open(work + "/kept", os.O_RDONLY), 0)
os.utime(os.open(work + "/kept", os.O_RDONLY), (1, 1))
os.setxattr(out + "/canary", "user.evil", b"x")
os.setxattr(work + "/kept", "security.capability", bytes(20))
libc.syscall(452, -100, (out + "/canary").encode(), 0o777, 0)
libc.syscall(463, -100, (out + "/canary").encode(), 0, b"user.x", b"", 16)
libc.syscall(469, -100, (out + "/canary").encode(), bytes(32), 32, 0)
libc.renameat2(-100, (out + "/canary").encode(), -100, b"kept", 2)
libc.linkat(os.open(out + "/canary", os.O_PATH), b"", -100, b"linked", 0x1000)
mmap.mmap(os.open(out + "/canary", os.O_RDONLY), 5).write(b"evil")
mmap.mmap(os.open(work + "/kept", os.O_RDWR), 4).write(b"evil")
fcntl.ioctl(os.open(out + "/canary", os.O_RDONLY), 0x40086602, struct.pack("l", 16))
fcntl.ioctl(os.open(out + "/canary", os.O_RDWR), 0x40049409, os.open("/etc/passwd", os.O_RDONLY))
fcntl.ioctl(0, 0x5412, b"e")
fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"e")
fcntl.ioctl(os.open("/dev/pts/0", os.O_RDWR), 0x5412, b"e")
fcntl.ioctl(os.open("/dev/ptmx", os.O_RDWR), 0x5412, b"e")
fcntl.ioctl(0, 0x541C, b"\x03")
libc.syscall(425, 8, ctypes.create_string_buffer(120))
libc.syscall(321, 0, bytes(128), 128)
libc.syscall(298, bytes(128), host, -1, -1, 0)
libc.syscall(323, 0)
libc.syscall(312, host, victim, 0, 0, 0)
libc.iopl(3)
libc.syscall(175, b"", 0, b"")
libc.syscall(169, 0xfee1dead, 672274793, 0)
libc.syscall(170, b"evil", 4)
libc.swapoff(b"/x")
libc.syscall(164, ctypes.create_string_buffer(16), 0)
libc.acct(b"kept")
libc.syscall(179, 0x80000200, b"/dev/vda", 0, 0)
libc.personality(0x0040000) and os.execvp("true", ["true"])
os.mknod("device", 0o60666, os.makedev(254, 0)) or os.write(os.open("device", os.O_WRONLY), b"evil")
os.setuid(0) or os.open(out + "/canary", os.O_WRONLY)
os.setresuid(1001, 1001, 1001)
os.setgroups([0])
libc.capset(struct.pack("Ii", 0x20080522, 0), b"\xff" * 24) or os.open(out + "/canary", os.O_WRONLY)
libc.prctl(47, 2, 7, 0, 0)
libc.unshare(0x10000000) or libc.mount(None, out.encode(), None, 0x1020, None)
libc.syscall(434, 1, 0)
os.posix_fallocate(os.open(out + "/canary", os.O_WRONLY), 0, 9)
os.sendfile(os.open(out + "/new", os.O_WRONLY | os.O_CREAT), os.open("/etc/passwd", os.O_RDONLY), 0, 9)
os.copy_file_range(os.open("/etc/passwd", os.O_RDONLY), os.open(out + "/canary", os.O_WRONLY), 9)
os.splice(os.open(out + "/canary", os.O_RDONLY), os.open(out + "/pipe", os.O_WRONLY | os.O_NONBLOCK), 4)
os.memfd_create("x") and os.execve(f"/proc/self/fd/{os.memfd_create('x')}", ["x"], {})
""".strip().splitlines()
"""Python expressions, for calls that no usual program makes; numbers of system calls are those of x86-64."""
