#!/usr/bin/env bash
# Runs as a service of a booted system that has nothing of gpuctl but /packages: what an administrator does.
set -Eeuo pipefail
phase=$(</results/phase)
exec >"/results/$phase.output" 2>&1 </dev/null
trap 'echo "inside.sh:$LINENO: failed: $BASH_COMMAND"; systemctl status --no-pager --full --lines=20 "gpuctl*" || true' ERR
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
fetch() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$1"; }
serves() { fetch http://127.0.0.1:9836/metrics | found "$1"; }
# Not grep -q, whose end may end who writes to it.
found() { grep -- "$1" >/dev/null; }
lists() { gpuctl list | found "$1"; }
shows_program() { gpuctl show batch --json | found '"pid":'; }

# as_the_pages_say BEGINNING: what tells how packages are installed and asked, in this shell. Each is run once.
as_the_pages_say() {
  local command commands ran=false
  mapfile -t commands </results/commands
  for command in "${commands[@]}"; do
    [[ $command == "$1"* ]] || continue
    say "$command"
    eval "$command"
    ran=true
  done
  $ran || fail "no page says: $1"
  sed -i "\\|^$1|d" /results/commands
}
sudo() { "$@"; }

# interface: it is asked by systemd's own program for Varlink, from Debian 13 on.
interface() {
  local at=/run/gpuctld/io.gpuctl
  if ! command -v varlinkctl >/dev/null; then
    say "there is no varlinkctl"
    sed -i '/^varlinkctl/d' /results/commands
    [[ $(. /etc/os-release && echo "$VERSION_ID") == 12 ]]
    return
  fi
  say "ask by varlinkctl"
  varlinkctl info $at | found io.gpuctl
  varlinkctl introspect $at io.gpuctl >/tmp/interface
  varlinkctl validate-idl /tmp/interface >/dev/null
  found "^method ListSlices" </tmp/interface
  varlinkctl call $at io.gpuctl.GetSlice '{"path":"batch"}' | found '"max" *: *5'
  if varlinkctl call $at io.gpuctl.GetSlice '{"path":"none"}' 2>/tmp/refused; then fail "no error for a slice that is not"; fi
  found io.gpuctl.NoSuchSlice </tmp/refused
  as_the_pages_say "varlinkctl call /"
  gpuctl show batch --json | found '"max":40'
  gpuctl set batch max=5
  (
    # shellcheck disable=SC2317  # eval calls it; the command has no end
    varlinkctl() { timeout 5 varlinkctl "$@" || [[ $? == 124 ]]; }
    as_the_pages_say "varlinkctl call --more" | found '"slices"'
  )
}

# plugin_for_slurm: Slurm's programs load it, and know its options.
plugin_for_slurm() {
  if [[ -z $(compgen -G '/packages/gpuctl-slurm*.deb') ]]; then
    say "there is no plugin for the Slurm of this system"
    return
  fi
  say "ask Slurm for the plugin's options"
  printf 'ClusterName=one\nSlurmctldHost=localhost\n' >/etc/slurm/slurm.conf
  printf 'required gpuctl.so\n' >/etc/slurm/plugstack.conf.d/slices.conf
  srun --help | found --gpu-slice=
  rm /etc/slurm/slurm.conf /etc/slurm/plugstack.conf.d/slices.conf
}

dpkg_is_clean() { if dpkg --audit | grep .; then fail "dpkg is not content"; fi; }

# start_mps: by gpuctld, for the first program, in a unit of its own. A program of our own stands in for NVIDIA's.
start_mps() {
  install /results/stands_in_for_mps.sh /usr/bin/nvidia-cuda-mps-control
  printf '[daemon]\nmps = "manage"\n' >/etc/gpuctl.toml.d/mps.toml
  systemctl reload gpuctld.service
  gpuctl run --slice batch true
  mps=$(</run/gpuctl/mps/shared/nvidia-cuda-mps-control.pid)
  found gpuctld-mps-start@ <"/proc/$mps/cgroup"
}

first() {
  say "install"
  # As one who says yes, in the directory of which README speaks.
  echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes
  mkdir /build-package
  ln -s /packages/before /build-package/out
  cd /
  as_the_pages_say "sudo apt install"
  as_the_pages_say "PATH="
  dpkg -i /packages/before/*.deb
  systemctl is-enabled gpuctld.socket
  systemctl is-active gpuctld.socket gpuctld.service
  id gpuctl
  "${nobody[@]}" gpuctl status | found "no GPU"
  dpkg_is_clean

  # What goes on until then is of the packages before, which may be older.
  say "upgrade while a program runs"
  printf '[daemon]\nsoftware_gpu = true\n' >/etc/gpuctl.toml.d/software.toml
  systemctl restart gpuctld.service
  until_true "no software GPU" gpuctl list
  gpuctl create-slice batch --max 5 --persist
  gpuctl create-slice gone
  systemctl enable --now gpuctl-exporter.service
  until_true "no metrics of the slice" serves '^gpuctl_slice_max_sms{.*slice="batch".* 5'
  systemctl enable --now gpuctl-cdi.path gpuctl-cdi.service
  found '"batch"' </run/cdi/gpuctl.json
  gpuctl run --slice batch gpuslice-bench run work --seconds 400 >/tmp/ran &
  program=$!
  until_true "no program in the slice" shows_program
  before=$(systemctl show --value --property=MainPID gpuctld.service)
  dpkg -i /packages/*.deb
  dpkg -l gpuctl gpuctld libgpuslice0
  dpkg_is_clean
  systemctl is-active gpuctld.socket gpuctld.service
  [[ $(systemctl show --value --property=MainPID gpuctld.service) != "$before" ]] || fail "the old daemon still runs"
  lists gone || fail "a slice is gone after the upgrade"
  until_true "the program did not come back" shows_program
  until_true "no metrics after the upgrade" serves '^gpuctl_slice_max_sms{.*slice="batch".* 5'
  found '"batch"' </run/cdi/gpuctl.json
  gpuctl kill batch --signal INT
  wait "$program" || fail "the program ended with $?"
  cat /tmp/ran

  say "use"
  man_pages=(gpuctl.1 gpuslice-bench.1 gpuctl.toml.5 gpuctld.8)
  for page in "${man_pages[@]}"; do
    dpkg -L gpuctl gpuctld gpuctl-softgpu | found "/$page\(.gz\)\?$" || fail "no page $page"
  done
  bash -c '. /usr/share/bash-completion/completions/gpuctl; complete -p gpuctl'
  fish -c 'complete -C "gpuctl cre"' | found '^create-slice$'
  zsh -c 'autoload -Uz compinit && compinit -u -D && print -r -- $_comps[gpuctl]' | found '^_gpuctl$'
  gpuctl run --slice batch gpuslice-bench run vectorAdd --count 3
  gpuctl run --scope --slice batch sh -c 'cat /proc/self/cgroup' | found '/gpuctl-run-[0-9]*-[0-9a-f]*\.scope$'
  cd /tmp
  cp /usr/share/doc/gpuctl/examples/slice.c .
  # shellcheck disable=SC2046  # words
  cc slice.c -o slice $(pkg-config --cflags --libs gpuslice)
  gpuctl run --slice batch ./slice | grep "interface [0-9]*, slice "
  python3 -c 'import gpuctl; print(gpuctl.connect().slice("batch"))' | grep "max=5"
  echo 'GPUCTL_EXPORTER_OPTIONS="--listen 127.0.0.2:9836"' >/etc/default/gpuctl-exporter
  systemctl restart gpuctl-exporter.service
  until_true "it does not listen where its options say" fetch http://127.0.0.2:9836/metrics
  rm /etc/default/gpuctl-exporter
  systemctl restart gpuctl-exporter.service
  interface
  plugin_for_slurm

  say "a service whose unit names its slice"
  mkdir -p /etc/systemd/system/train.service.d
  printf '[Service]\nExecStart=gpuslice-bench run work --seconds 400\n' >/etc/systemd/system/train.service
  cp /usr/share/doc/gpuctl/examples/service.conf /etc/systemd/system/train.service.d
  # The software GPU takes the place of NVIDIA's driver.
  printf '[Service]\nEnvironment=LD_LIBRARY_PATH=%s\n' /usr/lib/x86_64-linux-gnu/gpuctl/softgpu \
    >/etc/systemd/system/train.service.d/software.conf
  systemctl daemon-reload
  systemctl start train.service
  until_true "the service is in no slice" shows_program
  systemctl stop train.service

  [[ ! -s /results/commands ]] || fail "nobody ran: $(cat /results/commands)"

  say "keep"
  gpuctl delete-slice gone
  gpuctl save
}

second() {
  say "after a reboot"
  until_true "no daemon" gpuctl list
  gpuctl list
  gpuctl show batch --json | grep '"max":5'
  systemctl is-active gpuctl-cdi.path gpuctl-exporter.service
  until_true "no devices for containers" test -e /run/cdi/gpuctl.json
  start_mps

  say "purge"
  echo 'GPUCTL_EXPORTER_OPTIONS="--listen 127.0.0.2:9836"' >/etc/default/gpuctl-exporter # which is to go too
  mapfile -t names < <(dpkg-query -W -f '${Package}\n' '*gpuctl*' '*gpuslice*')
  packages=(/packages/*.deb)
  ((${#names[@]} == ${#packages[@]})) || fail "packages: ${names[*]}"
  sudo apt purge '*gpuctl*' '*gpuslice*' # as docs/troubleshooting.md says
  dpkg_is_clean
  if dpkg-query -W | grep -E 'gpuctl|gpuslice'; then fail "packages are left"; fi
  [[ ! -e /proc/$mps ]] || fail "the MPS that gpuctld started still runs"
  if systemctl list-units --all --no-legend 'gpuctl*' | grep .; then fail "units are left"; fi
  left=$(find / -xdev \( -path /results -o -path /packages -o -path /proc -o -path /sys -o -path /tmp -o -path /root \
    -o -path /var/log \) -prune -o \( -name '*gpuctl*' -o -name '*gpuslice*' \) -print)
  left+=$(find /run -path /run/credentials -prune -o -name '*gpuctl*' -print)
  left+=$(find /dev/shm -name 'softgpu*')
  [[ -z $left ]] || fail "left: $left"
}

"$phase"
echo "all of $phase passed"
