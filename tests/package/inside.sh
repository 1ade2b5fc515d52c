#!/usr/bin/env bash
# Runs as a service of a booted system that has nothing of gpuctl but /packages: what an administrator does.
set -Eeuo pipefail
phase=$(</results/phase)
exec >"/results/$phase.output" 2>&1 </dev/null
trap 'echo "inside.sh:$LINENO: failed: $BASH_COMMAND"; systemctl status --no-pager --full --lines=20 "gpuctld*" || true' ERR
nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
export PATH=/usr/sbin:/usr/bin HOME=/root DEBIAN_FRONTEND=noninteractive

say() { printf '%s: ' "$phase" && printf '%s\n' "$*"; }
fail() { say "$*"; return 1; }
# until_true WHAT COMMAND...
until_true() {
  local what=$1 i
  shift
  for ((i = 0; i < 300; ++i)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "$what"
}
# Not grep -q, whose end may end who writes to it.
found() { grep -- "$1" >/dev/null; }
lists() { gpuctl list | found "$1"; }
shows_program() { gpuctl show batch --json | found '"pid":'; }

first() {
  say "install"
  dpkg -i /packages/before/*.deb
  systemctl is-enabled gpuctld.socket
  systemctl is-active gpuctld.socket gpuctld.service
  id gpuctl
  "${nobody[@]}" gpuctl status | found "no GPU"
  man_pages=(gpuctl.1 gpuslice-bench.1 gpuctl.toml.5 gpuctld.8)
  for page in "${man_pages[@]}"; do
    dpkg -L gpuctl gpuctld gpuctl-softgpu | found "/$page\(.gz\)\?$" || fail "no page $page"
  done

  say "use"
  printf '[daemon]\nsoftware_gpu = true\n' >/etc/gpuctl.toml.d/software.toml
  systemctl restart gpuctld.service
  until_true "no software GPU" gpuctl list
  gpuctl create-slice batch --max 5 --persist
  gpuctl create-slice gone
  gpuctl run --slice batch gpuslice-bench run vectorAdd --count 3
  cd /tmp
  cp /usr/share/doc/gpuctl/examples/slice.c .
  # shellcheck disable=SC2046  # words
  cc slice.c -o slice $(pkg-config --cflags --libs gpuslice)
  gpuctl run --slice batch ./slice | grep "interface [0-9]*, slice "

  say "upgrade while a program runs"
  gpuctl run --slice batch gpuslice-bench run work --seconds 400 >/tmp/ran &
  program=$!
  until_true "no program in the slice" shows_program
  before=$(systemctl show --value --property=MainPID gpuctld.service)
  dpkg -i /packages/*.deb
  dpkg -l gpuctl gpuctld libgpuslice0
  systemctl is-active gpuctld.socket gpuctld.service
  [[ $(systemctl show --value --property=MainPID gpuctld.service) != "$before" ]] || fail "the old daemon still runs"
  lists gone || fail "a slice is gone after the upgrade"
  until_true "the program did not come back" shows_program
  gpuctl kill batch --signal INT
  wait "$program" || fail "the program ended with $?"
  cat /tmp/ran

  say "keep"
  gpuctl delete-slice gone
  gpuctl save
}

second() {
  say "after a reboot"
  until_true "no daemon" gpuctl list
  gpuctl list
  gpuctl show batch --json | grep '"max":5'

  say "purge"
  mapfile -t names < <(dpkg-query -W -f '${Package}\n' '*gpuctl*' '*gpuslice*')
  ((${#names[@]} == 5)) || fail "packages: ${names[*]}"
  dpkg --purge "${names[@]}"
  if systemctl list-units --all --no-legend 'gpuctl*' | grep .; then fail "units are left"; fi
  left=$(find / -xdev \( -path /results -o -path /packages -o -path /proc -o -path /sys -o -path /tmp -o -path /root \
    -o -path /var/log \) -prune -o \( -name '*gpuctl*' -o -name '*gpuslice*' \) -print)
  [[ -z $left && ! -e /run/gpuctld ]] || fail "left: $left"
}

"$phase"
echo "all of $phase passed"
