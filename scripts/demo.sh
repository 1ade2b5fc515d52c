#!/usr/bin/env bash
# Shows what slices do, on the machine's GPU or else on the software GPU. A latency-sensitive program (LS) issues a
# short kernel every few milliseconds; a batch program runs long kernels back to back. There are four rounds: LS alone;
# both, without gpuctl; both, with stream priorities that the programs set themselves; both, unmodified, in slices of a
# private gpuctld that differ in priority. The last round goes on with a limit that is set while the programs run. The
# result of every kernel is checked.
# The last line is a summary. --seconds N: length of a round (default 8). --build DIR: use binaries that are built
# already.
# shellcheck disable=SC2034  # begin reads variables whose names it makes
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/bootstrap.sh
source "$here/bootstrap.sh"

seconds=8
binaries=
while (($#)); do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --build) binaries=$(cd "$2" && pwd); shift 2 ;;
    *) fail "usage: demo.sh [--seconds N] [--build DIR]" ;;
  esac
done

targets=(src/gpuctl/gpuctl src/gpuctld/gpuctld src/libgpuslice/libgpuslice.so src/gpuslice-compile/gpuslice-compile
         kernels/gpuslice-bench)
daemon_options=()
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  gpu="the GPU"
else
  gpu="the software GPU"
  targets+=(softgpu/libcuda.so.1)
  daemon_options=(--software-gpu)
fi
if [[ -z $binaries ]]; then
  bootstrap
  build_tree "${targets[@]}"
  binaries=$build
fi
# shellcheck source=scripts/instance.sh
source "$here/instance.sh"

bench=$binaries/kernels/gpuslice-bench
in_ls=()     # what the programs are started with: nothing, or gpuctl run
in_batch=()
ls_priority=()  # of its stream, which the program sets itself
batch_priority=()

# Names the GPU that gpuctld found and sets what depends on it. Programs started without gpuctl must be told where the
# software GPU is; gpuctl run does that itself.
choose_device() {
  gpuctl status --json >"$scratch/status.json"
  device=$(field "$scratch/status.json" 'd["devices"][0]["name"].replace(" ", "-")')
  sms=$(field "$scratch/status.json" 'd["devices"][0]["sms"]')
  if ((${#daemon_options[@]})); then
    export LD_LIBRARY_PATH=$binaries/softgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
}

# Sizes are chosen by time, alone on the GPU. LS is one block for each of a few SMs and takes `unit`: 50 us if the GPU
# is fast enough, else a few times its shortest kernel. Batch has block-tasks of 2 units, and kernels of 50 block-tasks
# in sequence on each block slot of an SM.
choose_sizes() {
  local blocks=$((sms >= 64 ? 8 : sms / 4)) unit period
  say "measuring how long kernels take on $gpu, to choose their sizes"
  "$bench" run work --blocks "$blocks" --iterations 4 --count 5 --json >"$scratch/probe.json"
  unit=$(field "$scratch/probe.json" 'max(50, round(2 * d["gpu_us"]["p50"]))')
  "$bench" run work --blocks "$blocks" --calibrate-us "$unit" --count 5 --json >"$scratch/ls-size.json"
  "$bench" run work --task-us $((2 * unit)) --calibrate-us $((100 * unit)) --count 1 --json >"$scratch/batch-size.json"
  period=$((unit * 8 > 2000 ? unit * 8 : 2000))
  ls_options=(--blocks "$blocks" --iterations "$(field "$scratch/ls-size.json" 'd["extent"][1]')"
              --arrival periodic --period-us "$period")
  batch_options=(--blocks "$(field "$scratch/batch-size.json" 'd["extent"][0]')"
                 --iterations "$(field "$scratch/batch-size.json" 'd["extent"][1]')" --depth 2)
  say "LS: kernels of $(field "$scratch/ls-size.json" 'round(d["gpu_us"]["p50"])') us every $period us;" \
    "batch: kernels of $(field "$scratch/batch-size.json" 'round(d["gpu_us"]["p50"])') us," \
    "block-tasks of $((2 * unit)) us"
}

# begin NAME PROGRAM: starts LS or batch, for as long as `lasts`, from `start` on; `pid` is its process.
begin() {
  local -n in=in_$2 options=${2}_options priority=${2}_priority
  "${in[@]}" "$bench" run work "${options[@]}" "${priority[@]}" --seconds "$lasts" --start-at "$start" --json \
    --samples "$scratch/$1-$2.samples" >"$scratch/$1-$2.json" &
  pid=$!
  started+=("$pid")
}

# round_of NAME PROGRAM...: runs the programs at the same time, always for the same duration. Where `limit` is set, they
# run as long again, with that limit of batch from the middle on.
round_of() {
  local name=$1 program pid pids=() status=0 start lasts=$seconds
  shift
  [[ -z $limit ]] || lasts=$((2 * seconds))
  start=$(soon 2)
  for program in "$@"; do begin "$name" "$program"; pids+=("$pid"); done
  if [[ -n $limit ]]; then
    sleep $((seconds + 2))
    say "  while both run: gpuctl set batch $limit"
    gpuctl set batch "$limit"
    soon 0 >"$scratch/limited"
  fi
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  # Wrong results (status 3) are reported together at the end.
  ((status == 0 || status == 3)) || fail "a program failed in round $name (status $status)"
  for program in "$@"; do
    say "  $program: $(field "$scratch/$name-$program.json" '"%d kernels, %.2f a second, p99 %.0f us" % (
      d["launches"], d["kernels_per_s"], d["latency_us"]["p99"])')"
  done
}

limit=  # of batch, as gpuctl set takes it
((${#daemon_options[@]})) || start_mps
# A private SM table: other users of the software GPU neither wait for this demonstration nor disturb it.
export SOFTGPU_TABLE=$scratch/softgpu
start_gpuctld "${daemon_options[@]}"
choose_device
choose_sizes
say "round 1 of 4, $seconds s: LS alone"
round_of alone ls
say "round 2 of 4, $seconds s: both at once, without gpuctl"
round_of unmanaged ls batch
say "round 3 of 4, $seconds s: both, without gpuctl; the programs set stream priorities themselves"
ls_priority=(--priority high)
batch_priority=(--priority low)
round_of priorities ls batch
ls_priority=()
batch_priority=()
say "round 4 of 4, $((2 * seconds)) s: both, unmodified, in slices"
gpuctl create-slice ls --priority 50
gpuctl create-slice batch
say "  gpuctl create-slice ls --priority 50; gpuctl create-slice batch"
in_ls=("$binaries/src/gpuctl/gpuctl" run --slice ls)
in_batch=("$binaries/src/gpuctl/gpuctl" run --slice batch)
limit="max=$((sms / 2))"
say "  gpuctl run --slice ls LS; gpuctl run --slice batch BATCH"
round_of managed ls batch
python3 "$here/demo_report.py" "$scratch" "$device" "$limit"
