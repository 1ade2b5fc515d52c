#!/usr/bin/env bash
# Boots systemd in namespaces of its own, on a copy-on-write view of this machine's files:
#   container.sh INSTALLED RESULTS UNIT
# INSTALLED: a tree as `meson install --destdir` makes it, laid over the machine's. RESULTS: a directory that is
# /results inside. UNIT: what systemd starts, by path; /results/status is written when it has ended, and systemd ends.
# Nothing outside of RESULTS is changed. Exit status 77: this machine does not allow it.
set -euo pipefail
skip() { echo "container.sh: $*" >&2; exit 77; }

if [[ $1 != --inside ]]; then
  ((EUID == 0)) || skip "not root"
  [[ -x /lib/systemd/systemd ]] || skip "no systemd here"
  # A control group of its own, in which systemd makes those of its units.
  if [[ -f /sys/fs/cgroup/cgroup.controllers ]]; then groups=/sys/fs/cgroup; else groups=/sys/fs/cgroup/systemd; fi
  group=$groups/gpuctl-boot.$$
  mkdir "$group" 2>/dev/null || skip "no control groups may be made here"
  trap 'find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true' EXIT
  unshare --mount --pid --fork true 2>/dev/null || skip "no namespaces may be made here"
  bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' _ "$group" \
    unshare --mount --uts --ipc --net --cgroup --pid --fork --kill-child "$0" --inside "$@" </dev/null
  exit
fi

shift
installed=$(readlink -f "$1") results=$(readlink -f "$2") unit=$(readlink -f "$3")
mount --make-rprivate /
place=$(mktemp -d)
mount -t tmpfs boot "$place"
mkdir "$place/changes" "$place/work" "$place/root" "$place/results"
mount --bind "$results" "$place/results"
mount -t overlay boot "$place/root" -o "lowerdir=/,upperdir=$place/changes,workdir=$place/work" 2>/dev/null ||
  skip "no overlay file system here"
cp -R "$installed/." "$place/root"
cd "$place/root"
v2=false
[[ ! -f /sys/fs/cgroup/cgroup.controllers ]] || v2=true
mount -t proc proc proc
mount -t tmpfs run run
mount -t tmpfs tmp tmp
mount --rbind /sys sys
if $v2; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs cgroup sys/fs/cgroup
  mkdir sys/fs/cgroup/unified sys/fs/cgroup/systemd
  mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd,xattr cgroup sys/fs/cgroup/systemd
fi
mount -t tmpfs dev dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts results
mount -t tmpfs shm dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666
ln -s pts/ptmx dev/ptmx
mount --bind "$place/results" results
ln -s /proc/self/fd dev/fd
touch dev/console
rm -rf etc/systemd/system
mkdir -p etc/systemd/system
cp "$unit" etc/systemd/system
exec env -i container=gpuctl PATH="$PATH" chroot . /lib/systemd/systemd --system --unit="$(basename "$unit")" \
  --log-target=console --show-status=no
