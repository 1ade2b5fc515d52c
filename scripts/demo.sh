#!/usr/bin/env bash
# Shows what slices do, on the machine's GPU or else on the software GPU. A latency-sensitive client (LS) issues a short
# kernel every few milliseconds; a batch client runs long kernels back to back. There are four rounds: LS alone; both,
# unmanaged; both, unmanaged, with stream priorities that the programs set themselves; both in slices of a private
# gpuctld, with SMs reserved for LS. The result of every kernel is checked.
# The last line is a summary. --seconds N: length of a round (default 8). --build DIR: use binaries that are built
# already.
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
if [[ -z $binaries ]]; then
  bootstrap
  build_tree
  binaries=$build
fi
# shellcheck source=scripts/instance.sh
source "$here/instance.sh"

bench=$binaries/kernels/gpuslice-bench
in_ls=()     # what the clients are started with: nothing, or gpuctl run
in_batch=()
ls_priority=()  # of its stream, which the program sets itself
batch_priority=()

# Names the GPU that gpuctld found and sets what depends on it. Programs started without gpuctl must be told where the
# software GPU is; gpuctl run does that itself.
choose_device() {
  gpuctl status --json >"$scratch/status.json"
  device=$(field "$scratch/status.json" 'd["devices"][0]["name"].replace(" ", "-")')
  sms=$(field "$scratch/status.json" 'd["devices"][0]["sms"]')
  if [[ $(field "$scratch/status.json" '"software" in d["devices"][0]["kind"]') == True ]]; then
    export LD_LIBRARY_PATH=$binaries/src/softgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
}

# Sizes are chosen by time, alone on the GPU. LS is one block for each SM reserved for it and takes `unit`: 50 us if the
# GPU is fast enough, else a few times its shortest kernel. Batch has block-tasks of 2 units, and kernels of 100
# block-tasks in sequence on each block slot of an SM.
choose_sizes() {
  reserve=$((sms >= 64 ? 8 : sms / 4))
  "$bench" run work --blocks "$reserve" --iterations 4 --count 5 --json >"$scratch/probe.json"
  unit=$(field "$scratch/probe.json" 'max(50, round(2 * d["gpu_us"]["p50"]))')
  "$bench" run work --blocks "$reserve" --calibrate-us "$unit" --count 5 --json >"$scratch/ls-size.json"
  "$bench" run work --task-us $((2 * unit)) --calibrate-us $((200 * unit)) --count 1 --json >"$scratch/batch-size.json"
  period=$((unit * 8 > 2000 ? unit * 8 : 2000))
  ls_options=(--blocks "$reserve" --iterations "$(field "$scratch/ls-size.json" 'd["extent"][1]')"
              --arrival periodic --period-us "$period")
  batch_options=(--blocks "$(field "$scratch/batch-size.json" 'd["extent"][0]')"
                 --iterations "$(field "$scratch/batch-size.json" 'd["extent"][1]')" --depth 2)
  say "LS: kernels of $(field "$scratch/ls-size.json" 'round(d["gpu_us"]["p50"])') us every $period us;" \
    "batch: kernels of $(field "$scratch/batch-size.json" 'round(d["gpu_us"]["p50"])') us," \
    "block-tasks of $((2 * unit)) us"
}

# round_of NAME [batch]: runs LS, with or without batch at the same time, always for the same duration.
round_of() {
  say "round: $1"
  local start batch_pid=
  start=$(soon 2)
  if [[ ${2-} == batch ]]; then
    "${in_batch[@]}" "$bench" run work "${batch_options[@]}" "${batch_priority[@]}" \
      --seconds "$seconds" --start-at "$start" --json \
      >"$scratch/$1-batch.json" &
    batch_pid=$!
    started+=("$batch_pid")
  fi
  "${in_ls[@]}" "$bench" run work "${ls_options[@]}" "${ls_priority[@]}" \
    --seconds "$seconds" --start-at "$start" --json \
    >"$scratch/$1-ls.json" &
  local ls_pid=$! status=0
  started+=("$ls_pid")
  wait "$ls_pid" || status=$?
  [[ -z $batch_pid ]] || wait "$batch_pid" || status=$?
  # Wrong results (status 3) are reported together at the end.
  ((status == 0 || status == 3)) || fail "a client failed in round $1 (status $status)"
}

report() {
  python3 - "$scratch" "$device" <<'PYTHON'
import json, pathlib, sys
scratch, device = pathlib.Path(sys.argv[1]), sys.argv[2]
rounds = ("alone", "unmanaged", "priorities", "managed")
ls = {name: json.loads((scratch / f"{name}-ls.json").read_text()) for name in rounds}
batch = {name: json.loads((scratch / f"{name}-batch.json").read_text()) for name in rounds[1:]}
print(f"{'':10} {'LS p50 us':>10} {'p99 us':>10} {'max us':>10} {'kernels':>8} {'batch kernels/s':>16} "
      f"{'checked':>8} {'wrong':>6}")
for name in rounds:
    runs = [ls[name]] + ([batch[name]] if name in batch else [])
    rate = f"{batch[name]['kernels_per_s']:.2f}" if name in batch else "-"
    latency = ls[name]["latency_us"]
    print(f"{name:10} {latency['p50']:10.0f} {latency['p99']:10.0f} {latency['max']:10.0f} {ls[name]['launches']:8d} "
          f"{rate:>16} {sum(run['checked'] for run in runs):8d} {sum(run['mismatches'] for run in runs):6d}")
mismatches = sum(run["mismatches"] for run in [*ls.values(), *batch.values()])
kept = batch["managed"]["kernels_per_s"] / batch["unmanaged"]["kernels_per_s"]
p99 = {name: round(ls[name]["latency_us"]["p99"]) for name in rounds}
print(f"demo: device={device} alone_p99_us={p99['alone']} unmanaged_p99_us={p99['unmanaged']} "
      f"priorities_p99_us={p99['priorities']} managed_p99_us={p99['managed']} "
      f"batch_kept={kept:.2f} mismatches={mismatches}")
sys.exit(0 if mismatches == 0 else 3)
PYTHON
}

daemon_options=()
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  start_mps
else
  daemon_options=(--software-gpu)
fi
# A private SM table: other users of the software GPU neither wait for this demonstration nor disturb it.
export SOFTGPU_TABLE=$scratch/softgpu
start_gpuctld "${daemon_options[@]}"
choose_device
choose_sizes
round_of alone
round_of unmanaged batch
ls_priority=(--priority high)
batch_priority=(--priority low)
round_of priorities batch
ls_priority=()
batch_priority=()
gpuctl create-slice ls --reserve "$reserve" --reserve-mode strict
gpuctl create-slice batch
in_ls=("$binaries/src/gpuctl/gpuctl" run --slice ls)
in_batch=("$binaries/src/gpuctl/gpuctl" run --slice batch)
round_of managed batch
report
